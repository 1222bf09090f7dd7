//! Running a program under supervision: its own session and group, its input
//! written at once, time limits, bounded memory, and nothing left behind.
//!
//! One thread and one `poll` loop do all of it, for programs that get their input at once and
//! for those that are talked to. There is nothing to be gained from
//! an async runtime here: a call has four descriptors and lasts minutes, and a
//! plain loop that decodes where it reads is both the fastest and the one in which
//! every deadline is in one place. The tree of processes is the business of a
//! [supervisor](supervise()) process.

mod cage;
mod cancel;
pub(crate) mod child;
mod control;
mod descendants;
pub(crate) mod detached;
mod family;
mod interrupt;
mod lines;
mod lookup;
#[cfg(target_os = "linux")]
mod outside;
mod pump;
mod running;
mod supervise;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use agentd_core::outcome::{Exit, Stopped};
use rustix::process::Signal;

pub(crate) use cage::hidden_by_private_tmp;
pub use cage::{Cage, Enforced, Layers, confine};
pub use cancel::{Cancel, CancelReason, LastWords, set_last_words};
pub use detached::ProcessId;
pub(crate) use interrupt::{InterruptError, interrupt_holder};
pub use lines::Line;
pub(crate) use lookup::without_relative_paths;
pub use lookup::{InsideProject, find_program, resolve};
pub use pump::{Talk, run};
pub use running::Running;
pub use supervise::{SUPERVISE, supervise};

#[cfg(target_os = "linux")]
use child::{Child, ChildCommand, ChildError, ChildLimits};

/// Makes the kernel send a signal to a child when the thread that started it is gone, even if this
/// program gets SIGKILL. Children of that child are not affected.
#[cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "PR_SET_PDEATHSIG must be set between fork and exec")
)]
pub(crate) fn dies_with_parent(command: &mut Command, signal: Signal) -> &mut Command {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt as _;
        let parent = rustix::process::getpid();
        // SAFETY: the closure makes two system calls and touches no memory of the parent, takes
        // no lock and does not allocate, so it is sound after a fork.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(signal))?;
                // The parent may be gone already, and then no signal would ever come.
                if rustix::process::getppid() == Some(parent) {
                    Ok(())
                } else {
                    Err(rustix::io::Errno::SRCH.into())
                }
            });
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = signal;
    command
}

/// How to start the supervisor: this program again, with an argument that makes it one.
#[derive(Debug, Clone)]
pub struct Supervisor {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub args: Vec<OsString>,
}

impl Supervisor {
    /// A program whose `main` hands over to [`supervise()`] when its first argument
    /// is [`SUPERVISE`].
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: vec![SUPERVISE.into()] }
    }

    /// What this system can enforce for a caged program. Tried once per process.
    pub fn enforceable(&self) -> Enforced {
        #[cfg(target_os = "linux")]
        {
            static KNOWN: std::sync::OnceLock<Enforced> = std::sync::OnceLock::new();
            *KNOWN.get_or_init(|| {
                let text = self.probe().unwrap_or_default();
                let number = String::from_utf8_lossy(&text).trim().parse().ok();
                number.map(Enforced::decode).unwrap_or_default()
            })
        }
        #[cfg(not(target_os = "linux"))]
        Enforced::default()
    }

    /// What the supervisor prints when it is asked what it can enforce.
    #[cfg(target_os = "linux")]
    fn probe(&self) -> Result<Vec<u8>, ChildError> {
        let args = [&*self.args, &[cage::PROBE.into()]].concat();
        let limits = ChildLimits {
            time: Duration::from_mins(1),
            grace: Duration::ZERO,
            drain: Duration::from_secs(2),
            stdout_bytes: 4096,
            stderr_bytes: 0,
        };
        let command = ChildCommand {
            program: self.program.as_os_str(),
            args: &args,
            cwd: Path::new("/"),
            env: &[],
            input: b"",
            orphan_signal: Signal::KILL,
            limits,
        };
        Ok(Child::start(&command)?.wait(None)?.stdout)
    }

    /// The running program itself, even when its file has been replaced meanwhile.
    #[cfg(target_os = "linux")]
    pub fn this_program() -> io::Result<Self> {
        let link = Path::new("/proc/self/exe");
        if link.exists() { Ok(Self::new(link)) } else { std::env::current_exe().map(Self::new) }
    }

    /// The running program itself.
    #[cfg(not(target_os = "linux"))]
    pub fn this_program() -> io::Result<Self> {
        std::env::current_exe().map(Self::new)
    }
}

/// A program to run.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// A name, looked up in the `PATH` of `env`, or a path.
    pub program: &'a str,
    /// Its arguments.
    pub args: &'a [String],
    /// Its whole environment; nothing else is inherited.
    pub env: &'a [(OsString, OsString)],
    /// Its working directory.
    pub cwd: &'a Path,
    /// What it gets on standard input.
    pub stdin: &'a [u8],
    /// Whether its input stays open after that, for more.
    pub keeps_input_open: bool,
    /// What it and everything that it starts may do; none means whatever the user may.
    pub cage: Option<&'a Cage>,
}

/// How long and how much.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The whole call.
    pub whole: Duration,
    /// No output for that long, on either stream.
    pub idle: Duration,
    /// Between asking it to stop and killing it.
    pub grace: Duration,
    /// How long its pipes are read after it has exited, since a process that it
    /// left behind may hold them open forever.
    pub drain: Duration,
    /// The longest line; the rest of a longer one is dropped.
    pub line_bytes: usize,
    /// How much of the end of standard error is kept.
    pub stderr_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            whole: Duration::from_mins(30),
            idle: Duration::from_mins(5),
            grace: Duration::from_secs(5),
            drain: Duration::from_secs(2),
            line_bytes: 16 << 20,
            stderr_bytes: 64 << 10,
        }
    }
}

/// Whether the program may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It may.
    Continue,
    /// It is to be stopped.
    Stop,
}

/// Sees what a program prints, while it prints it.
pub trait Watcher {
    /// A line of standard output.
    fn line(&mut self, line: Line<'_>) -> Flow;
    /// A piece of standard output as it arrives. A watcher that handles it gets no lines.
    fn raw(&mut self, _bytes: &[u8]) -> Option<Flow> {
        None
    }
    /// A piece of standard error.
    fn stderr(&mut self, bytes: &[u8]);
    /// The loop is about to wait: the time to flush.
    fn pause(&mut self);
    /// What is to be written to the program now.
    fn input(&mut self) -> Vec<u8> {
        Vec::new()
    }
    /// Whether everything is said, although the program may continue to run.
    fn is_over(&self) -> bool {
        false
    }
    /// How long the program has to be silent before [`Watcher::silence`] is called.
    fn wants_silence(&self) -> Option<Duration> {
        None
    }
    /// The program was silent for as long as was wanted.
    fn silence(&mut self) {}
    /// The program has to stop. True if it was asked to in its own protocol, so that it gets no
    /// signal before it is killed.
    fn stop(&mut self) -> bool {
        false
    }
    /// How long a person was waited for; it does not count against the limit for the whole call.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }
}

/// How much of its input a program has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// All of it.
    Written,
    /// The program closed its input, or ended, with bytes left (WF8).
    ClosedEarly {
        /// The number of bytes that were left.
        unread: u64,
    },
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEnd {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it was stopped, if it was.
    pub stopped: Option<Stopped>,
    /// How much of its input it has read.
    pub input: Input,
    /// The end of standard error.
    pub stderr_tail: String,
    /// A pipe was still open when the time for draining was over.
    pub undrained: bool,
    /// How many processes it had left behind, which were then ended.
    pub stragglers: u32,
    /// What the system kept it from; none if it was in no cage.
    pub confined: Option<Enforced>,
    /// From the start to the end.
    pub duration: Duration,
}

impl ProcessEnd {
    /// What a decoder needs to know about it.
    pub fn exit(&self) -> Exit {
        Exit {
            code: self.code,
            signal: self.signal,
            stopped: self.stopped,
            stdin_unread: match self.input {
                Input::Written => None,
                Input::ClosedEarly { unread } => Some(unread),
            },
            stderr_tail: self.stderr_tail.clone(),
        }
    }
}

/// Why a program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The program itself: not there, not executable.
    #[error("cannot start `{program}`")]
    Start {
        /// The program.
        program: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The supervisor could not be started.
    #[error("cannot start the supervisor `{}`", program.display())]
    Supervisor {
        /// The program of the supervisor.
        program: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The cage could not be set up. Nothing was started.
    #[error("cannot set up the sandbox for `{program}`: cannot {step}")]
    Cage {
        /// The program.
        program: String,
        /// What was being done.
        step: &'static str,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The supervisor was killed; the program was killed after it.
    #[error("the supervisor of `{program}` was killed")]
    SupervisorLost {
        /// The program.
        program: String,
    },
    /// The program cannot be killed: the kernel holds on to it.
    #[error("`{program}` does not end, not even when killed")]
    Unkillable {
        /// The program.
        program: String,
    },
    /// The system refused a pipe, a socket or a wait.
    #[error("cannot talk to `{program}`")]
    System {
        /// The program.
        program: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}
