//! Short outputs, kept as text.

use super::output::LOSSY_BYTES;
use crate::process::{Flow, Line, Watcher};

/// Keeps what a program prints.
#[derive(Default)]
pub(super) struct Capture {
    pub(super) text: String,
    /// Whether the end of a long output is kept rather than its beginning.
    pub(super) keep_end: bool,
}

impl Watcher for Capture {
    fn line(&mut self, line: Line<'_>) -> Flow {
        if self.keep_end && self.text.len() > 2 * LOSSY_BYTES {
            let end = agentd_core::text::tail(&self.text, LOSSY_BYTES).to_owned();
            self.text = end;
        }
        if self.keep_end || self.text.len() < LOSSY_BYTES {
            self.text.push_str(&String::from_utf8_lossy(line.bytes));
            self.text.push('\n');
        }
        Flow::Continue
    }

    fn stderr(&mut self, _: &[u8]) {}

    fn pause(&mut self) {}
}
