//! The one place that writes to the terminal. Data goes to stdout, everything
//! else to stderr; colours only where a terminal wants them.

pub(crate) mod ask;
pub(crate) mod diagnostics;
pub(crate) mod editor;
pub(crate) mod issues;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod questions;

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use agentd_core::text::printable;
use agentd_engine::opening::Repair;
use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use self::output::Document;
pub(crate) use self::output::{Output, Screen};
use crate::error::CommandError;

/// Bold.
pub(crate) const BOLD: Style = Style::new().bold();
/// For what matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// For what is good.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// For what wants attention.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// For what is wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// JSON escapes the control characters of ASCII, but not those that some
/// terminals obey as well. In JSON they can stand in strings only.
fn escape_control(json: &str) -> Cow<'_, str> {
    let bad = |c: char| {
        // Those that turn the direction of writing.
        let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || ('\u{7f}'..='\u{9f}').contains(&c)
    };
    if !json.contains(bad) {
        return Cow::Borrowed(json);
    }
    let escaped = |c: char| if bad(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    Cow::Owned(json.chars().map(escaped).collect())
}

/// At most this many columns of a terminal, without control characters.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let text = printable(text);
    if text.width() <= columns {
        return text.into_owned();
    }
    let mut fitting = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        fitting.push(c);
    }
    fitting.truncate(fitting.trim_end().len());
    fitting.push('…');
    fitting
}

/// The width of the terminal that stderr is, now; 80 columns where it cannot be known.
pub(crate) fn columns() -> usize {
    let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
    if columns == 0 { 80 } else { usize::from(columns) }
}

/// The document of a command that failed.
#[derive(Serialize)]
struct Failed<'a> {
    error: &'a CommandError,
}

/// Where a command writes to.
#[derive(Debug)]
pub(crate) struct Ui {
    /// Whether exactly one JSON document goes to stdout, and nothing else.
    pub(crate) json: bool,
}

impl Ui {
    /// Stdout, for data.
    pub(crate) fn out(&self) -> AutoStream<io::StdoutLock<'static>> {
        AutoStream::auto(io::stdout()).lock()
    }

    /// Whether a person can be asked.
    pub(crate) fn can_prompt(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Prints a remark that is no data.
    pub(crate) fn note(&self, text: &str) {
        output::note(&mut anstream::stderr(), text);
    }

    /// Prints a remark for a person who watches; with `--json` there is none.
    pub(crate) fn remark(&self, text: &str) {
        if !self.json {
            self.note(text);
        }
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: &str) {
        output::warn(&mut anstream::stderr(), text);
    }

    /// Reports what a killed agentd left behind, and what became of it.
    pub(crate) fn repaired(&self, repaired: &[Repair]) {
        for repair in repaired {
            self.warn(&repair.to_string());
        }
    }

    /// Reports the error with which a command ends.
    pub(crate) fn error(&self, error: &CommandError) {
        if self.json {
            // If this fails, there is no one left to report that to.
            let _ = self.print_json(&Document::new(&Failed { error }));
            return;
        }
        let mut err = anstream::stderr();
        let _ = writeln!(err, "{BAD}error{BAD:#}: {}", printable(&error.message));
        if let Some(cause) = &error.cause {
            let _ = writeln!(err, "  cause: {}", printable(cause));
        }
        if !error.hints.is_empty() {
            let _ = writeln!(err);
        }
        for hint in &error.hints {
            let _ = writeln!(err, "{BOLD}hint{BOLD:#}: {}", printable(&hint.to_string()));
        }
        // For people alone: programs have the kind, and what is piped stays as short as it can be.
        if error.kind.exit_code() == 1 && io::stderr().is_terminal() {
            let _ = writeln!(err, "{DIM}more: agentd explain {}{DIM:#}", error.kind);
        }
    }
}
