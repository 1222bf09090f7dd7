//! The one place that writes to the terminal. Data goes to stdout, everything
//! else to stderr; colours only where a terminal wants them.

pub(crate) mod ask;
pub(crate) mod diagnostics;
pub(crate) mod editor;
pub(crate) mod issues;
pub(crate) mod markdown;
pub(crate) mod measure;
pub(crate) mod output;
mod pager;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod questions;
mod region;
pub(crate) mod table;

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;

use agentd_engine::opening::Repair;
use anstyle::{AnsiColor, Style};
use serde::Serialize;

pub(crate) use self::measure::fit;
use self::output::{Document, Remarks};
pub(crate) use self::output::{Output, Screen};
use self::progress::{ProgressMode, json};
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

/// The columns of the terminal that a stream is, now; none if it is no terminal, or does not know.
fn columns_of(stream: impl io::IsTerminal + AsFd) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| size.ws_col);
    Some(if columns == 0 { USUAL_COLUMNS } else { usize::from(columns) })
}

/// Where a terminal does not say how wide it is.
const USUAL_COLUMNS: usize = 80;

/// The columns that help has: those of the terminal, or as many as it likes.
pub(crate) fn columns_of_help() -> usize {
    columns_of(io::stdout()).or_else(|| columns_of(io::stderr())).unwrap_or(usize::MAX)
}

/// The width of the terminal that stderr is; 80 columns where it cannot be known.
pub(crate) fn columns() -> usize {
    columns_of(io::stderr()).unwrap_or(USUAL_COLUMNS)
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
    /// Whether long output may go through a pager.
    pub(crate) pages: bool,
    /// How progress is reported; remarks are part of it.
    pub(crate) progress: ProgressMode,
}

impl Ui {
    /// Whether a person can be asked.
    pub(crate) fn can_prompt(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Prints a remark that is no data.
    pub(crate) fn note(&self, text: &str) {
        match self.progress {
            ProgressMode::Json => Remarks::stderr().raw(&format!("{}\n", json::note(text))),
            ProgressMode::Silent => {}
            ProgressMode::Live | ProgressMode::Plain => Remarks::stderr().note(text),
        }
    }

    /// Prints a remark that hangs on a label, for a person who is asked about it.
    pub(crate) fn labeled(&self, label: &str, text: &str) {
        match self.progress {
            ProgressMode::Live | ProgressMode::Plain => Remarks::stderr().labeled(label, text),
            ProgressMode::Json | ProgressMode::Silent => self.note(&format!("{label}{text}")),
        }
    }

    /// Prints a remark for a person who watches; with `--json` there is none.
    pub(crate) fn remark(&self, text: &str) {
        if !self.json {
            self.note(text);
        }
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: &str) {
        match self.progress {
            ProgressMode::Json => Remarks::stderr().raw(&format!("{}\n", json::warning(text))),
            ProgressMode::Silent | ProgressMode::Live | ProgressMode::Plain => {
                Remarks::stderr().warn(text);
            }
        }
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
        Remarks::stderr().error(error);
    }
}
