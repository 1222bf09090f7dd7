//! The output of a command: one typed value, printed as text or as one JSON document.

use std::io::{self, Write};

use agentd_core::text::printable;
use anstream::AutoStream;
use serde::Serialize;

use super::{Ui, WARN, escape_control};
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
    err: &'a mut dyn Write,
}

impl Screen<'_> {
    /// Adds a remark that is no data.
    pub(crate) fn note(&mut self, text: &str) {
        note(self.remarks(), text);
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, text: &str) {
        warn(self.remarks(), text);
    }

    /// Where remarks go. If both are the same terminal, they appear in the order in which they
    /// were written.
    pub(super) fn remarks(&mut self) -> &mut dyn Write {
        let _ = self.out.flush();
        self.err
    }
}

impl Write for Screen<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

// If stderr is gone, there is no one left to report that to.

pub(super) fn note(err: &mut dyn Write, text: &str) {
    let _ = writeln!(err, "{}", printable(text));
}

pub(super) fn warn(err: &mut dyn Write, text: &str) {
    let _ = writeln!(err, "{WARN}warning{WARN:#}: {}", printable(text));
}

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

    fn print_text(&self, output: &impl Output) -> io::Result<()> {
        let mut out = AutoStream::auto(io::stdout()).lock();
        let mut err = anstream::stderr();
        output.text(&mut Screen { out: &mut out, err: &mut err })?;
        out.flush()
    }
}

/// The document that `--json` prints.
#[cfg(test)]
pub(crate) fn document(output: &impl Output) -> serde_json::Value {
    serde_json::to_value(Document::new(output)).unwrap()
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

    #[test]
    fn data_and_remarks_are_kept_apart() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut screen = Screen { out: &mut out, err: &mut err };
        Fruit { count: 2, ..Fruit::sample() }.text(&mut screen).unwrap();
        let plain =
            |bytes| anstream::adapter::strip_str(std::str::from_utf8(bytes).unwrap()).to_string();
        assert_eq!(plain(&out), "2 apple\n");
        assert_eq!(plain(&err), "about fruit\nwarning: not ripe\n");
    }
}
