//! Testing the sandbox: what a system claims to enforce is one thing, what a program in it can do
//! is another.

use std::ffi::OsString;
use std::path::Path;

use crate::process::{
    Cage, Cancel, Enforced, Flow, Limits, Line, Program, Supervisor, Watcher, run,
};
use crate::store::{OutsideDir, SHARED};

/// The result of trying to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Whether writing succeeded where it is allowed.
    pub inside: bool,
    /// Whether writing succeeded where it is forbidden.
    pub outside: bool,
    /// What the system claims to enforce.
    pub enforced: Enforced,
}

/// Runs a shell in the sandbox that writes where it may and where it may not, below an empty
/// directory.
pub fn try_out(supervisor: &Supervisor, dir: &Path) -> Result<Trial, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let empty = OutsideDir::open(dir).map_err(|error| said(&error))?;
    for name in ["in", "out", "tmp"] {
        empty.create_dir(name, SHARED).map_err(|error| said(&error))?;
    }
    let enforced = supervisor.enforceable();
    let cage = Cage {
        writable: vec![dir.join("in")],
        layers: enforced.layers(),
        visible: vec![dir.to_owned()],
        tmp: Some(dir.join("tmp")),
        ..Cage::default()
    };
    let script = "echo x > in/x; echo x > out/x; exit 0".to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let env: [(OsString, OsString); 1] = [("PATH".into(), path)];
    let program = Program {
        program: "/bin/sh",
        args: &["-c".to_owned(), script],
        env: &env,
        cwd: dir,
        stdin: b"",
        keeps_input_open: false,
        cage: Some(&cage),
    };
    let cancel = Cancel::new().map_err(|error| said(&error))?;
    run(supervisor, program, Limits::default(), &cancel, &mut IgnoreOutput)
        .map_err(|error| format!("{error}: {}", cause(&error)))?;
    Ok(Trial { inside: dir.join("in/x").exists(), outside: dir.join("out/x").exists(), enforced })
}

fn cause(error: &dyn std::error::Error) -> String {
    error.source().map(ToString::to_string).unwrap_or_default()
}

/// Ignores what a program prints.
struct IgnoreOutput;

impl Watcher for IgnoreOutput {
    fn line(&mut self, _: Line<'_>) -> Flow {
        Flow::Continue
    }

    fn stderr(&mut self, _: &[u8]) {}

    fn pause(&mut self) {}
}
