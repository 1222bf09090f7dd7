//! What a person at a terminal meets: questions, keys, Ctrl-C.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::harness::Project;

/// Long enough for any machine; only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// agentd on a terminal of its own.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    pub(crate) fn start(command: &mut Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = std::ffi::OsStr::from_bytes(name.to_bytes());
        let open = || OwnedFd::from(File::options().read(true).write(true).open(path).unwrap());
        command.stdin(open()).stdout(open()).stderr(open());
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        let child = command.spawn().unwrap();
        // The command keeps its ends of the terminal open; the end of the output must show.
        *command = Command::new("true");
        let keys = File::from(master);
        let mut screen = keys.try_clone().unwrap();
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = screen.read(&mut piece) {
                if sender.send(piece[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keys, output, seen: String::new() }
    }

    /// Waits for a text to appear after what was waited for before.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            match self.output.recv_timeout(PATIENCE) {
                Ok(piece) => self.seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(error) => panic!("no {text:?} ({error}): {:?}", self.seen),
            }
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// The exit code, and everything that was printed at last.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        loop {
            match self.output.recv_timeout(PATIENCE) {
                Ok(piece) => self.seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end: {:?}", self.seen),
            }
        }
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.seen))
    }
}

impl Drop for Terminal {
    /// A test that fails leaves no program behind that waits for keys.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) const DOWN: &str = "\u{1b}[B";
pub(crate) const CTRL_C: &str = "\u{3}";

#[test]
fn init_asks_which_agents_and_space_and_enter_answer() {
    let project = Project::empty().program("codex", "");
    let mut terminal = Terminal::start(project.command(["init"]).env("NO_COLOR", "1"));
    terminal.wait_for("Which agents work on this project?");
    terminal.wait_for("[x] codex");
    // Not codex, which is marked because it is on PATH, but claude below it.
    terminal.press(DOWN);
    terminal.press(" ");
    terminal.wait_for("[ ] codex");
    terminal.press(DOWN);
    terminal.press(" ");
    terminal.wait_for("[x] claude");
    terminal.press("\r");
    terminal.wait_for("CLAUDE.md");
    let (code, _) = terminal.end();
    assert_eq!(code, Some(0));
    let names = project.names();
    assert!(names.contains(&"CLAUDE.md".to_owned()), "{names:?}");
    assert!(!names.contains(&"AGENTS.md".to_owned()), "{names:?}");
    assert!(!names.contains(&"GEMINI.md".to_owned()), "{names:?}");
}

#[test]
fn ctrl_c_at_the_question_writes_nothing() {
    let project = Project::empty();
    let mut terminal = Terminal::start(project.command(["init"]).env("NO_COLOR", "1"));
    terminal.wait_for("Which agents work on this project?");
    terminal.press(CTRL_C);
    let (code, _) = terminal.end();
    assert_eq!(code, Some(130));
    assert_eq!(project.names(), Vec::<String>::new());
}

#[test]
fn nothing_is_asked_where_the_answer_is_given() {
    for args in [vec!["init", "--yes"], vec!["init", "--agents", "none"], vec!["init", "--json"]] {
        let project = Project::empty();
        let (code, seen) = Terminal::start(&mut project.command(&args)).end();
        assert_eq!(code, Some(0), "{args:?}");
        assert!(!seen.contains("Which agents"), "{seen}");
        assert!(project.root().join("agentd/config.toml").is_file());
    }
}

#[test]
fn a_terminal_gets_colours_unless_it_wants_none() {
    let project = Project::new().change("add-oauth");
    let (code, seen) = Terminal::start(&mut project.command(["list"])).end();
    assert_eq!(code, Some(0));
    assert!(seen.contains("\u{1b}["), "{seen:?}");
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut terminal = Terminal::start(project.command(["list"]).env(name, value));
        terminal.wait_for("add-oauth");
        let (_, seen) = terminal.end();
        assert!(!seen.contains('\u{1b}'), "{name}: {seen:?}");
    }
}
