//! The output of a command: one typed value, printed as text or as one JSON document.

use std::io::{self, Write};
use std::time::Duration;

use agentd_core::figures::ago;
use agentd_core::hint::Hint;
use agentd_core::next_step::NextStep;
use agentd_core::stamp::Stamp;
use agentd_core::text::{counted, printable};
use anstream::AutoStream;
use anstyle::Style;
use jiff::Timestamp;
use serde::Serialize;

use super::ask::STOPPED;
use super::measure::{fold, width, wrap};
use super::table::Table;
use super::{BAD, BOLD, DIM, USUAL_COLUMNS, Ui, WARN, columns_of, escape_control};
use crate::error::{CommandError, printed};

/// The format of every JSON document. Keys may be added to a version; none is removed, and
/// none changes its meaning.
const VERSION: u32 = 1;

/// What a command prints on stdout: the fields are the keys of its `--json` document, in their
/// order, and `version` is added in front of them.
///
/// A new output gets a row in `cli/contract.rs`, from which the key table of
/// docs/agent-contract.md is generated.
pub(crate) trait Output: Serialize {
    /// Writes the text that a person reads.
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()>;

    /// A value in which every optional key is present and no list is empty, so that all keys
    /// can be listed.
    #[cfg(test)]
    fn sample() -> Self
    where
        Self: Sized;
}

/// Where text goes: what is written to it is data for stdout, and remarks go to stderr.
pub(crate) struct Screen<'a> {
    out: &'a mut dyn Write,
    err: Remarks<'a>,
    /// The columns of the terminal that stdout is; none for a pipe, which gets everything in full.
    columns: Option<usize>,
    now: Timestamp,
    /// What was written of a line that is not at its end: no line is wider than the terminal.
    line: Vec<u8>,
}

impl<'a> Screen<'a> {
    pub(super) fn new(
        out: &'a mut dyn Write,
        err: Remarks<'a>,
        columns: Option<usize>,
        now: Timestamp,
    ) -> Self {
        Self { out, err, columns, now, line: Vec::new() }
    }

    /// The columns of the terminal; none for a pipe.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Adds a remark that is no data.
    pub(crate) fn note(&mut self, text: &str) {
        self.remarks().note(text);
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, text: &str) {
        self.remarks().warn(text);
    }

    /// Where remarks go. If both are the same terminal, they appear in the order in which they
    /// were written.
    pub(super) fn remarks(&mut self) -> &mut Remarks<'a> {
        let _ = self.flush();
        &mut self.err
    }

    /// Writes a table.
    pub(crate) fn table(&mut self, table: &Table) -> io::Result<()> {
        let columns = self.columns;
        table.write(self, columns)
    }

    /// Writes text that is broken where a line ends: below `label`, further lines are indented as
    /// far as the label is wide.
    pub(crate) fn labeled(&mut self, label: &str, text: &str) -> io::Result<()> {
        self.labeled_as(label, text, Style::new())
    }

    /// The same in a look of its own.
    pub(crate) fn labeled_as(&mut self, label: &str, text: &str, style: Style) -> io::Result<()> {
        let columns = self.columns;
        hanging(self, label, text, style, columns)
    }

    /// Writes a paragraph.
    pub(crate) fn paragraph(&mut self, text: &str, style: Style) -> io::Result<()> {
        let columns = self.columns;
        hanging(self, "", text, style, columns)
    }

    /// When something was: how long ago for a person, the time itself for a pipe.
    pub(crate) fn when(&self, at: Stamp) -> String {
        match self.columns {
            Some(_) => ago(self.now, at.moment()),
            None => at.to_string(),
        }
    }

    /// How long ago something began.
    pub(crate) fn since(&self, at: Timestamp) -> Duration {
        self.now.duration_since(at).try_into().unwrap_or_default()
    }

    /// Writes the commands that come next, the usual one first.
    pub(crate) fn next(&mut self, next: &[NextStep]) -> io::Result<()> {
        for (index, command) in next.iter().enumerate() {
            if index == 0 {
                writeln!(self)?;
            }
            let words = if index == 0 { "Next: " } else { "  or: " };
            match self.columns {
                Some(columns) => command_line(self, words, &command.to_string(), columns)?,
                None => writeln!(self, "{words}{command}")?,
            }
        }
        Ok(())
    }
}

impl Write for Screen<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(columns) = self.columns else { return self.out.write(bytes) };
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let line = std::mem::replace(&mut self.line, rest);
            let line = String::from_utf8_lossy(&line[..end]);
            for piece in fold(&line, columns) {
                writeln!(self.out, "{piece}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.out.write_all(&line)?;
        self.out.flush()
    }
}

/// Where remarks go. If stderr is gone, there is no one left to report that to.
pub(crate) struct Remarks<'a> {
    out: Box<dyn Write + 'a>,
    /// The columns of the terminal; none for a pipe.
    columns: Option<usize>,
}

impl Remarks<'static> {
    /// Those of this process.
    pub(super) fn stderr() -> Self {
        Self { out: Box::new(anstream::stderr()), columns: columns_of(io::stderr()) }
    }
}

impl Remarks<'_> {
    /// Text as it is.
    pub(super) fn raw(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes());
    }

    /// The columns that text has.
    pub(super) fn columns(&self) -> usize {
        self.columns.unwrap_or(USUAL_COLUMNS)
    }

    pub(super) fn note(&mut self, text: &str) {
        let _ = hanging(&mut self.out, "", text, Style::new(), self.columns);
    }

    pub(super) fn labeled(&mut self, label: &str, text: &str) {
        let _ = hanging(&mut self.out, label, text, Style::new(), self.columns);
    }

    pub(super) fn warn(&mut self, text: &str) {
        let label = format!("{WARN}warning{WARN:#}: ");
        let _ = hanging(&mut self.out, &label, text, Style::new(), self.columns);
    }

    /// An error: what is wrong, why, and what to do about it.
    pub(super) fn error(&mut self, error: &CommandError) {
        let columns = self.columns;
        let mut line = |label: &str, text: &str| {
            let _ = hanging(&mut self.out, label, text, Style::new(), columns);
        };
        // A program gets all of it; for people, the hints name the place to read the rest.
        let shown = |text: &str, keep: Keep| match columns {
            Some(_) => few_lines(text, keep),
            None => text.to_owned(),
        };
        // A person who leaves a question with Esc is not told of an error.
        let is_error = !error.message.starts_with(STOPPED);
        let label = if is_error { format!("{BAD}error{BAD:#}: ") } else { String::new() };
        line(&label, &shown(&error.message, Keep::First));
        if let Some(cause) = &error.cause {
            line("  cause: ", &shown(cause, Keep::Last));
        }
        if !error.hints.is_empty() {
            let _ = writeln!(self.out);
        }
        for one in &error.hints {
            let _ = hint(&mut self.out, one, columns);
        }
        // For people alone: programs have the kind, and what is piped stays as short as it can be.
        if error.kind.exit_code() == 1 && columns.is_some() {
            let more = format!("more: agentd explain {}", error.kind);
            let _ = hanging(&mut self.out, "", &more, DIM, columns);
        }
    }
}

/// Which lines of a long text people see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// Of a message, those that say what is wrong.
    First,
    /// Of what a program has printed, the last, where errors are.
    Last,
}

/// So many lines of the output of others are shown in an error.
const FEW_LINES: usize = 8;

/// A text without most of its lines if it has many, and a mark that says how many.
fn few_lines(text: &str, keep: Keep) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let left = lines.len().saturating_sub(FEW_LINES);
    if left == 0 {
        return text.to_owned();
    }
    let more = format!("… {} more", counted(left, "line"));
    match keep {
        Keep::First => format!("{}\n{more}", lines[..FEW_LINES].join("\n")),
        Keep::Last => format!("{more}\n{}", lines[left..].join("\n")),
    }
}

/// Writes text behind a label; on a terminal, lines that are too long are broken, and further ones
/// indented to where the text began.
fn hanging(
    out: &mut dyn Write,
    label: &str,
    text: &str,
    style: Style,
    columns: Option<usize>,
) -> io::Result<()> {
    let shown = printable(text);
    let Some(columns) = columns else { return writeln!(out, "{label}{style}{shown}{style:#}") };
    let indent = width(&anstream::adapter::strip_str(label).to_string());
    let room = columns.saturating_sub(indent).max(MIN_COLUMNS);
    let mut before = label.to_owned();
    for line in shown.lines() {
        if line.trim().is_empty() {
            writeln!(out, "{}", before.trim_end())?;
            before = " ".repeat(indent);
            continue;
        }
        // Text that is indented stays so.
        let inner = " ".repeat(line.len() - line.trim_start_matches(' ').len());
        for piece in wrap(line, room.saturating_sub(inner.len()).max(MIN_COLUMNS)) {
            writeln!(out, "{before}{inner}{style}{piece}{style:#}")?;
            before = " ".repeat(indent);
        }
    }
    Ok(())
}

/// Writes a hint. A command stays on a line of its own if the purpose leaves no room for it, so that
/// it can be copied.
fn hint(out: &mut dyn Write, hint: &Hint, columns: Option<usize>) -> io::Result<()> {
    let label = format!("{BOLD}hint{BOLD:#}: ");
    let indent = "hint: ".len();
    let all = hint.to_string();
    if let (Hint::Run { purpose, command }, Some(columns)) = (hint, columns)
        && indent + width(&all) > columns
    {
        hanging(out, &label, &format!("{purpose}:"), Style::new(), Some(columns))?;
        return command_line(out, &" ".repeat(indent), &command.to_string(), columns);
    }
    hanging(out, &label, &all, Style::new(), columns)
}

/// Writes a command behind a label, over several lines if need be, so that a shell takes all of them
/// as one command. No word of it is shortened.
fn command_line(out: &mut dyn Write, label: &str, command: &str, columns: usize) -> io::Result<()> {
    let indent = width(&anstream::adapter::strip_str(label).to_string());
    let room = columns.saturating_sub(indent);
    let command = printable(command);
    let mut lines: Vec<String> = vec![String::new()];
    for word in words_of(&command) {
        let last = lines.len() - 1;
        let joined = width(&lines[last]) + 1 + width(word);
        if lines[last].is_empty() {
            lines[last].push_str(word);
        } else if joined + 2 <= room || (joined <= room && command.ends_with(word)) {
            lines[last].push(' ');
            lines[last].push_str(word);
        } else {
            lines[last].push_str(" \\");
            lines.push(format!("  {word}"));
        }
    }
    for (index, line) in lines.iter().enumerate() {
        let before = if index == 0 { label.to_owned() } else { " ".repeat(indent) };
        writeln!(out, "{before}{BOLD}{line}{BOLD:#}")?;
    }
    Ok(())
}

/// The words of a command line, each with its quotes.
fn words_of(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut quote) = (0, None);
    for (at, c) in command.char_indices() {
        match (c, quote) {
            (' ', None) => {
                words.push(&command[start..at]);
                start = at + 1;
            }
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
    }
    words.push(&command[start..]);
    words.retain(|word| !word.is_empty());
    words
}

/// The time from which people count back. In builds for development a test may set it, so that what
/// it compares does not grow older.
pub(super) fn now() -> Timestamp {
    if cfg!(debug_assertions)
        && let Ok(set) = std::env::var("AGENTD_SHOWN_NOW")
        && let Ok(set) = set.parse()
    {
        return set;
    }
    Timestamp::now()
}

/// In fewer columns nobody can read, and the terminal may break lines as it likes.
const MIN_COLUMNS: usize = 20;

/// An output with the version in front.
#[derive(Serialize)]
pub(super) struct Document<'a, T> {
    version: u32,
    #[serde(flatten)]
    output: &'a T,
}

impl<'a, T: Serialize> Document<'a, T> {
    pub(super) fn new(output: &'a T) -> Self {
        Self { version: VERSION, output }
    }
}

impl Ui {
    /// Prints the output of a command, as text or as JSON. A reader that goes away before the
    /// end is no error: what the command did stands, and so does its exit code.
    pub(crate) fn print<T: Output>(&self, output: &T) -> Result<(), CommandError> {
        if self.json {
            return self.print_json(&Document::new(output));
        }
        printed(self.print_text(output).map_err(CommandError::from))
    }

    /// Writes a JSON document as it is. Outputs of agentd go through [`Ui::print`]; this is for
    /// formats that are not its own, such as SARIF.
    pub(crate) fn print_json(&self, value: &impl Serialize) -> Result<(), CommandError> {
        let text = serde_json::to_string_pretty(value)?;
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{}", escape_control(&text)).and_then(|()| out.flush());
        printed(written.map_err(CommandError::from))
    }

    /// Shows text that is no output of its own, such as what an error is about.
    pub(crate) fn show(
        &self,
        text: impl FnOnce(&mut Screen<'_>) -> io::Result<()>,
    ) -> Result<(), CommandError> {
        printed(self.write_text(text).map_err(CommandError::from))
    }

    fn print_text(&self, output: &impl Output) -> io::Result<()> {
        self.write_text(|screen| output.text(screen))
    }

    #[expect(clippy::unused_self, reason = "only what has the terminal writes to it")]
    fn write_text(&self, text: impl FnOnce(&mut Screen<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut out = AutoStream::auto(io::stdout()).lock();
        let (columns, now) = (columns_of(io::stdout()), now());
        let mut screen = Screen::new(&mut out, Remarks::stderr(), columns, now);
        text(&mut screen)?;
        screen.flush()
    }
}

/// The document that `--json` prints.
#[cfg(test)]
pub(crate) fn document(output: &impl Output) -> serde_json::Value {
    serde_json::to_value(Document::new(output)).unwrap()
}

/// What a person sees on a terminal of so many columns, or a pipe gets: data and remarks, as they
/// appear.
#[cfg(test)]
pub(crate) fn shown(output: &impl Output, columns: Option<usize>, now: Timestamp) -> String {
    use std::cell::RefCell;
    struct Shared<'s>(&'s RefCell<Vec<u8>>);
    impl Write for Shared<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let all = RefCell::default();
    let err = Remarks { out: Box::new(Shared(&all)), columns };
    let mut out = Shared(&all);
    let mut screen = Screen::new(&mut out, err, columns, now);
    output.text(&mut screen).unwrap();
    screen.flush().unwrap();
    drop(screen);
    String::from_utf8(all.into_inner()).unwrap()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Fruit {
        name: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        color: Option<&'static str>,
        count: u64,
    }

    impl Output for Fruit {
        fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
            screen.note("about fruit");
            writeln!(screen, "{} {}", self.count, self.name)?;
            screen.warn("not \u{1b}ripe");
            Ok(())
        }

        fn sample() -> Self {
            Self { name: "apple", color: Some("red"), count: u64::MAX }
        }
    }

    #[test]
    fn the_version_comes_first_and_keys_keep_their_order() {
        let text = serde_json::to_string(&Document::new(&Fruit::sample())).unwrap();
        assert_eq!(
            text,
            r#"{"version":1,"name":"apple","color":"red","count":18446744073709551615}"#
        );
        let plain = Fruit { color: None, ..Fruit::sample() };
        assert_eq!(document(&plain), json!({"version": 1, "name": "apple", "count": u64::MAX}));
    }

    /// Issue 19, m6: a traceback does not fill the screen, and a program gets all of it.
    #[test]
    fn most_of_a_long_text_is_left_out_for_people() {
        let lines: Vec<String> = (1..=20).map(|n| format!("line {n}")).collect();
        let error = CommandError::new(agentd_core::error_kind::Kind::AgentFailed, "gemini failed")
            .cause(lines.join("\n"));
        let written = |columns| {
            let mut out = Vec::new();
            Remarks { out: Box::new(&mut out), columns }.error(&error);
            anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
        };
        let shown = written(Some(80));
        let tail: String = (14..=20).map(|n| format!("         line {n}\n")).collect();
        let expected =
            format!("error: gemini failed\n  cause: … 12 lines more\n         line 13\n{tail}");
        assert!(shown.starts_with(&expected), "{shown}");
        assert!(written(None).contains("line 1\nline 2\n"));
        assert_eq!(
            few_lines(&lines.join("\n"), Keep::First).lines().last(),
            Some("… 12 lines more")
        );
    }

    #[test]
    fn data_and_remarks_are_kept_apart() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let remarks = Remarks { out: Box::new(&mut err), columns: None };
        let now = Timestamp::UNIX_EPOCH;
        let mut screen = Screen::new(&mut out, remarks, None, now);
        Fruit { count: 2, ..Fruit::sample() }.text(&mut screen).unwrap();
        drop(screen);
        let plain =
            |bytes| anstream::adapter::strip_str(std::str::from_utf8(bytes).unwrap()).to_string();
        assert_eq!(plain(&out), "2 apple\n");
        assert_eq!(plain(&err), "about fruit\nwarning: not ripe\n");
    }
}
