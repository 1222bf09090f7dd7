//! Commands of agentd itself that go on when nobody waits for them: in a group of their own, so that
//! Ctrl-C in the terminal of who started them does not reach them.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the layer that starts programs; everyone else goes through it"
)]

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::family;

/// A process, told from a later one with the same number by when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// When it started, in a unit of the system; none where the system does not say.
    pub started: Option<u64>,
}

impl ProcessId {
    /// The process that has this number now.
    fn of(pid: u32) -> Self {
        Self { pid, started: stat(pid).map(|stat| stat.started) }
    }

    /// Whether it is still running.
    pub(crate) fn is_alive(self) -> bool {
        match stat(self.pid) {
            Some(stat) => !stat.is_dead && Some(stat.started) == self.started,
            // Where nothing is known of processes, nobody can say that it is.
            None => false,
        }
    }
}

struct Stat {
    started: u64,
    is_dead: bool,
}

/// What Linux says about a process.
fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses, and may contain any character.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    Some(Stat { started: fields.nth(18)?.parse().ok()?, is_dead })
}

/// Starts a command that nobody waits for. What it prints goes to files.
pub(crate) fn start(
    program: &Path,
    args: &[OsString],
    cwd: &Path,
    output: File,
    errors: File,
) -> io::Result<ProcessId> {
    let mut command = Command::new(program);
    command.args(args).current_dir(cwd).env("NO_COLOR", "1").process_group(0);
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let (mut child, own) = family::spawn(&mut command)?;
    let id = ProcessId::of(child.id());
    // Nobody needs to know how it ended, but the system keeps it until somebody has asked.
    std::thread::spawn(move || {
        let _ = child.wait();
        drop(own);
    });
    Ok(id)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_is_known_by_its_start() {
        let own = ProcessId::of(std::process::id());
        assert!(own.is_alive());
        assert!(!ProcessId { started: own.started.map(|at| at + 1), ..own }.is_alive());
        assert!(!ProcessId { started: None, ..own }.is_alive());
    }

    #[test]
    fn a_command_goes_on_by_itself_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (out, err) = (dir.path().join("out"), dir.path().join("err"));
        let args = ["-c".into(), "echo a; echo b >&2; ps -o pgid= -p $$".into()];
        let file = |path| File::create(path).unwrap();
        let id = start(Path::new("/bin/sh"), &args, dir.path(), file(&out), file(&err)).unwrap();
        let begun = Instant::now();
        while id.is_alive() || Path::new(&format!("/proc/{}", id.pid)).exists() {
            assert!(begun.elapsed() < Duration::from_secs(20), "it is reaped");
            std::thread::sleep(Duration::from_millis(5));
        }
        let printed = std::fs::read_to_string(&out).unwrap();
        assert_eq!(printed.replace(' ', ""), format!("a\n{}\n", id.pid), "a group of its own");
        assert_eq!(std::fs::read_to_string(&err).unwrap(), "b\n");
    }
}
