//! A program on a terminal of its own.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::screen::Recording;

/// Long enough for any machine; only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The columns of a terminal, unless a test wants others.
const COLUMNS: u16 = 80;

/// What is written to the terminal after the program has ended. Without it, the last lines may be lost:
/// once nobody has a terminal open any more, the kernel may drop what was not read yet.
const END: &[u8] = b"\x1eend of the program\x1e";

/// A program on a terminal of its own.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    /// Starts it with all three streams on the terminal.
    pub fn start(command: &mut Command) -> Self {
        Self::start_with(command, true, COLUMNS)
    }

    /// The same, on a terminal of so many columns.
    pub fn start_wide(command: &mut Command, columns: u16) -> Self {
        Self::start_with(command, true, columns)
    }

    /// Starts it with stdout going nowhere.
    pub fn start_for_stderr(command: &mut Command) -> Self {
        Self::start_with(command, false, COLUMNS)
    }

    /// The same, on a terminal of so many columns.
    pub fn start_wide_for_stderr(command: &mut Command, columns: u16) -> Self {
        Self::start_with(command, false, columns)
    }

    fn start_with(command: &mut Command, stdout: bool, columns: u16) -> Self {
        let master = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        set_columns(&master, columns);
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = std::ffi::OsStr::from_bytes(name.to_bytes());
        let open = || OwnedFd::from(File::options().read(true).write(true).open(path).unwrap());
        command.stdin(open()).stderr(open());
        command.stdout(if stdout { Stdio::from(open()) } else { Stdio::null() });
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        let mut end = File::from(open());
        let child = command.spawn().unwrap();
        let pid = Pid::from_child(&child);
        std::thread::spawn(move || {
            // Not reaped here: others ask for its exit code.
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            let _ = end.write_all(END);
        });
        let keys = master;
        let screen = keys.try_clone().unwrap();
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || read_to_end(screen, &sender));
        Self { child, keys, output, seen: String::new() }
    }

    /// Waits for a text to appear after what was waited for before.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
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

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes the terminal as wide.
    pub fn resize(&self, columns: u16) {
        set_columns(&self.keys, columns);
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Reads what comes, until `enough` of all that was seen.
    #[track_caller]
    pub fn wait_until(&mut self, enough: impl Fn(&str) -> bool) -> &str {
        while !enough(&self.seen) {
            match self.output.recv_timeout(PATIENCE) {
                Ok(piece) => self.seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(error) => panic!("not yet ({error}): {:?}", self.seen),
            }
        }
        &self.seen
    }

    /// Lets it run to its end: the exit code, and what it has written, with times.
    pub fn record(self, columns: u16) -> (Option<i32>, Recording) {
        self.answer_all(columns, &[])
    }

    /// The same; wherever one of these texts appears, its keys are pressed.
    pub fn answer_all(
        mut self,
        columns: u16,
        questions: &[(&str, &str)],
    ) -> (Option<i32>, Recording) {
        self.resize(columns);
        let started = Instant::now();
        let mut pieces = Vec::new();
        while let Ok(piece) = self.output.recv() {
            self.seen.push_str(&String::from_utf8_lossy(&piece));
            let asked = |seen: &str| {
                let found = |(text, keys): &(&str, _)| Some((seen.find(text)? + text.len(), *keys));
                questions.iter().filter_map(found).min()
            };
            while let Some((end, keys)) = asked(&self.seen) {
                self.seen.drain(..end);
                self.press(keys);
            }
            pieces.push((started.elapsed(), piece));
        }
        (self.child.wait().unwrap().code(), Recording { columns, pieces })
    }

    /// The exit code, and everything that was printed at last.
    pub fn end(mut self) -> (Option<i32>, String) {
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

/// Passes on what is written to a terminal, until [`END`].
fn read_to_end(mut screen: File, sender: &Sender<Vec<u8>>) {
    let mut piece = [0; 4096];
    let mut held = Vec::new();
    while let Ok(read @ 1..) = screen.read(&mut piece) {
        held.extend_from_slice(&piece[..read]);
        let end = held.windows(END.len()).position(|window| window == END);
        // What may be the beginning of the end is kept back.
        let whole = end.unwrap_or_else(|| {
            let is_begun = |at: &usize| END.starts_with(&held[*at..]);
            let at = held.len().saturating_sub(END.len());
            (at..held.len()).find(is_begun).unwrap_or(held.len())
        });
        let rest = held.split_off(whole);
        let sent = sender.send(std::mem::replace(&mut held, rest));
        if end.is_some() || sent.is_err() {
            return;
        }
    }
}

/// The key that goes down in a list.
pub const DOWN: &str = "\u{1b}[B";
/// The key that interrupts.
pub const CTRL_C: &str = "\u{3}";

fn set_columns(terminal: &File, columns: u16) {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}
