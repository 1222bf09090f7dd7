//! Long output in a pager, as git has it: `AGENTD_PAGER`, else `PAGER`, else `less`.

use std::borrow::Cow;
use std::env;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use agentd_engine::process::{Cancel, find_program};
use anstream::{AutoStream, ColorChoice};

use super::output::{Remarks, now};
use super::{Output, Screen, Ui, columns_of};
use crate::error::{CommandError, printed};

/// What makes `less` leave short texts on the screen and show colors, unless the user has settings
/// of their own.
const LESS: &str = "FRX";

impl Ui {
    /// Prints the output of a command; in a pager, if it is longer than the terminal. A pager inside
    /// the project, which a repository may bring along, is never run.
    pub(crate) fn print_paged<T: Output>(
        &self,
        output: &T,
        root: &Path,
    ) -> Result<(), CommandError> {
        let (Some(columns), false) = (columns_of(io::stdout()), self.json) else {
            return self.print(output);
        };
        let mut text = Vec::new();
        let mut screen = Screen::new(&mut text, Remarks::stderr(), Some(columns), now());
        output.text(&mut screen)?;
        screen.flush()?;
        drop(screen);
        let lines = text.split(|byte| *byte == b'\n').count() - 1;
        let paged = lines >= rows() && self.pages && through_pager(&text, root);
        if paged {
            return Ok(());
        }
        let mut out = AutoStream::auto(io::stdout()).lock();
        let written = out.write_all(&text).and_then(|()| out.flush());
        printed(written.map_err(CommandError::from))
    }
}

/// How many rows the terminal has.
fn rows() -> usize {
    rustix::termios::tcgetwinsize(io::stdout()).map_or(24, |size| usize::from(size.ws_row).max(5))
}

/// Shows a text in the pager; says whether that worked.
fn through_pager(text: &[u8], root: &Path) -> bool {
    let set = |name| env::var(name).ok();
    let line = set("AGENTD_PAGER").or_else(|| set("PAGER")).unwrap_or_else(|| "less".to_owned());
    let Ok(words) = shell_words::split(&line) else { return false };
    let Some((name, args)) = words.split_first().filter(|(name, _)| *name != "cat") else {
        return false;
    };
    let path = env::var_os("PATH").unwrap_or_default();
    let Some(program) = find_program(name, &path, root) else { return false };
    let colors = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    // Ctrl-C is for the pager, which is not at its end yet.
    let _ignored = Cancel::new().and_then(|cancel| cancel.on_signals());
    let Ok(mut pager) = command.spawn() else { return false };
    if let Some(mut stdin) = pager.stdin.take() {
        let plain = || anstream::adapter::strip_bytes(text).into_vec();
        // Somebody who has seen enough closes it before the end.
        let _ = stdin.write_all(&if colors { Cow::Borrowed(text) } else { Cow::Owned(plain()) });
    }
    let _ = pager.wait();
    true
}
