//! Questions on the terminal: answers to choose from, own words, and a way back.
//!
//! The library that was used before (inquire) filters a list where people type an answer of their
//! own, shows what an option means on the same line, and knows no way back; so the widgets are ours,
//! as pure functions of keys, and crossterm reads the keys.

mod input;
mod menu;

use std::io::{self, Write as _};
use std::path::Path;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

pub(crate) use self::menu::{Choice, Menu, Outcome, RECOMMENDED};
use super::measure::{fit, one_line, width};
use super::region::{Frame, Region};
use super::{BOLD, GOOD, columns, editor};

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// Esc.
    Stopped,
    /// Ctrl-C.
    Interrupted,
    /// The question before is wanted again.
    Back,
    /// The terminal cannot be used.
    Failed(io::Error),
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The choices that were taken.
    pub(crate) picks: Vec<usize>,
    /// Own words.
    pub(crate) own: Option<String>,
}

/// The terminal as prompts need it, until this is dropped.
struct RawMode;

impl RawMode {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let _ = crossterm::execute!(io::stderr(), EnableBracketedPaste);
        Ok(Self)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = crossterm::execute!(io::stderr(), DisableBracketedPaste);
        let _ = disable_raw_mode();
    }
}

/// Asks a question. What was answered stays on the screen, in one line. `root` is the directory whose
/// programs are no editors.
pub(crate) fn ask(menu: &mut Menu, root: &Path) -> Result<Answer, NoAnswer> {
    let mut region = Region::default();
    let outcome = loop {
        match converse(menu, &mut region)? {
            Outcome::Editor => match editor::compose(menu.own(), root) {
                Ok(text) => menu.set_own(&text),
                Err(error) => menu.set_problem(&match &error.cause {
                    Some(cause) => format!("{}: {cause}", error.message),
                    None => error.message.clone(),
                }),
            },
            outcome => break outcome,
        }
    };
    match outcome {
        Outcome::Chosen { picks, own } => {
            let answer = Answer { picks, own };
            show_answer(menu, &answer)?;
            Ok(answer)
        }
        Outcome::Back => Err(NoAnswer::Back),
        Outcome::Interrupted => Err(NoAnswer::Interrupted),
        Outcome::Stopped | Outcome::Editor => Err(NoAnswer::Stopped),
    }
}

/// Shows the answer to a question, in one line.
pub(crate) fn show_answer(menu: &Menu, answer: &Answer) -> io::Result<()> {
    let words = menu.in_words(&answer.picks, answer.own.as_deref());
    let words = if words.is_empty() { "nothing".to_owned() } else { words };
    write(&answered(&one_line(&menu.question), &one_line(&words)))
}

/// Takes the answer that was shown last off the screen, since its question comes again.
pub(crate) fn take_back() -> io::Result<()> {
    write("\u{1b}[A\r\u{1b}[J")
}

/// Draws the question and reads keys, until something comes of one. Then the question is gone.
fn converse(menu: &mut Menu, region: &mut Region) -> Result<Outcome, NoAnswer> {
    let _raw = RawMode::enter()?;
    loop {
        let (columns, rows) = size();
        let frame = painted(menu.frame(columns.saturating_sub(1), rows));
        write(&region.draw(frame, columns))?;
        let outcome = match read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => menu.key(key),
            Event::Paste(text) => {
                menu.paste(&text);
                None
            }
            _ => None,
        };
        if let Some(outcome) = outcome {
            write(&region.erase(size().0))?;
            return Ok(outcome);
        }
    }
}

/// The question with its answer.
fn answered(question: &str, answer: &str) -> String {
    let columns = columns().saturating_sub(1);
    // The answer is what people want to see again; the question gets the rest.
    let least = width(answer).min(columns / 2);
    let question = fit(question, columns.saturating_sub(2 + 2 + least).max(12));
    let room = columns.saturating_sub(2 + width(&question) + 2).max(8);
    let answer = fit(answer, room);
    let line = format!("{GOOD}✓{GOOD:#} {question}  {BOLD}{answer}{BOLD:#}\r\n");
    if colors() { line } else { anstream::adapter::strip_str(&line).to_string() }
}

fn colors() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

/// Without colors, where there are none.
fn painted(mut frame: Frame) -> Frame {
    if !colors() {
        for (line, _) in &mut frame.lines {
            *line = anstream::adapter::strip_str(line).to_string();
        }
    }
    frame
}

fn size() -> (usize, usize) {
    let rows = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_row);
    (columns().max(1), if rows == 0 { 24 } else { usize::from(rows) })
}

/// One write.
fn write(text: &str) -> io::Result<()> {
    let mut err = io::stderr().lock();
    err.write_all(text.as_bytes())?;
    err.flush()
}
