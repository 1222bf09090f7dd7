//! A child process that answers one question: started in a group of its own, given its input,
//! read up to a cap, and ended when its time is up, when a stop is requested, when nobody waits
//! for it any more, and when agentd itself is gone.
//!
//! Git, the `--version` probes and the probe of the sandbox run like this. Agents, which live for
//! minutes and start what they like, get a supervisor on top ([`super::run`]).

#![expect(
    clippy::disallowed_methods,
    reason = "this is the layer that starts programs; everyone else goes through it"
)]

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{self, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Cancel;
use super::dies_with_parent;
use super::family::{self, OwnChild};

/// What to start.
#[derive(Debug)]
pub(crate) struct ChildCommand<'a> {
    pub(crate) program: &'a OsStr,
    pub(crate) args: &'a [OsString],
    pub(crate) cwd: &'a Path,
    /// Changes to the environment of agentd, in order: a value sets the variable, none removes it.
    pub(crate) env: &'a [(OsString, Option<OsString>)],
    /// What it gets on standard input.
    pub(crate) input: &'a [u8],
    /// The signal that it gets from the kernel when agentd is gone.
    pub(crate) orphan_signal: Signal,
    pub(crate) limits: ChildLimits,
}

/// How long a child may take, and how much is kept of what it prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChildLimits {
    /// From the start to the end.
    pub(crate) time: Duration,
    /// Between SIGINT and SIGKILL; zero kills at once.
    pub(crate) grace: Duration,
    /// How long its pipes are read after it has ended: a process that it left behind may hold
    /// them open forever.
    pub(crate) drain: Duration,
    /// The most that is kept of standard output. A child that prints more is killed.
    pub(crate) stdout_bytes: usize,
    /// The most that is kept of standard error; the rest is read and dropped.
    pub(crate) stderr_bytes: usize,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    #[error(transparent)]
    System(#[from] io::Error),
    #[error("it took too long")]
    TimedOut,
    #[error("it was interrupted")]
    Cancelled,
}

/// What a child printed, and how it ended.
#[derive(Debug)]
pub(crate) struct ChildOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    /// Whether it printed more than was to be kept, and was killed for that.
    pub(crate) cut: bool,
    pub(crate) stderr: Vec<u8>,
}

impl ChildOutput {
    /// The exit code as a shell reports it. A child that was cut off has done its job.
    pub(crate) fn code(&self) -> i32 {
        if self.cut { 0 } else { shell_code(self.status.code(), self.status.signal()) }
    }
}

/// An exit code or a signal as one number, as a shell reports it.
pub(crate) fn shell_code(code: Option<i32>, signal: Option<i32>) -> i32 {
    code.unwrap_or_else(|| 128 + signal.unwrap_or(0))
}

/// A running child; dropping it kills its whole group.
#[derive(Debug)]
pub(crate) struct Child {
    inner: process::Child,
    _own: OwnChild,
    /// Reaped: its number may belong to another process by now.
    is_reaped: bool,
    stdout: CappedPipe,
    stderr: CappedPipe,
    limits: ChildLimits,
    started: Instant,
}

impl Child {
    pub(crate) fn start(spec: &ChildCommand<'_>) -> io::Result<Self> {
        let mut command = Command::new(spec.program);
        command.args(spec.args).current_dir(spec.cwd);
        for (name, value) in spec.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let stdin = if spec.input.is_empty() { Stdio::null() } else { Stdio::piped() };
        command.process_group(0).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut inner, own) = family::spawn(dies_with_parent(&mut command, spec.orphan_signal))?;
        if let Some(stdin) = inner.stdin.take() {
            feed(stdin, spec.input.to_vec());
        }
        let limits = spec.limits;
        let stdout = CappedPipe::read(inner.stdout.take(), limits.stdout_bytes);
        let stderr = CappedPipe::read(inner.stderr.take(), limits.stderr_bytes);
        let started = Instant::now();
        Ok(Self { inner, _own: own, is_reaped: false, stdout, stderr, limits, started })
    }

    /// Waits until it has ended, for as long as its limits and `cancel` let it run.
    pub(crate) fn wait(mut self, cancel: Option<&Cancel>) -> Result<ChildOutput, ChildError> {
        let ended = Ended::of(&self.inner);
        // Most answers come within a millisecond or two.
        let mut pause = Duration::from_micros(500);
        let status = loop {
            if let Some(status) = self.inner.try_wait()? {
                self.is_reaped = true;
                break status;
            }
            if self.stdout.is_full() {
                break self.kill()?;
            }
            if cancel.is_some_and(|cancel| cancel.reason().is_some()) {
                self.stop();
                return Err(ChildError::Cancelled);
            }
            if self.started.elapsed() >= self.limits.time {
                self.stop();
                return Err(ChildError::TimedOut);
            }
            ended.wait(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        };
        let (stdout, cut) = self.stdout.take(self.limits.drain);
        let (stderr, _) = self.stderr.take(self.limits.drain);
        Ok(ChildOutput { status, stdout, cut, stderr })
    }

    /// Asks it to stop, so that it can clean up, and kills it when the grace period is over.
    fn stop(&mut self) {
        if !self.limits.grace.is_zero() {
            self.signal(Signal::INT);
            let until = Instant::now() + self.limits.grace;
            while Instant::now() < until {
                // Not reaped yet: its group must keep its number until the group is killed.
                if has_ended(&self.inner) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let _ = self.kill();
    }

    fn kill(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let _ = self.inner.kill();
        let status = self.inner.wait()?;
        self.is_reaped = true;
        Ok(status)
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(Pid::from_child(&self.inner), signal);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_reaped {
            let _ = self.kill();
        }
    }
}

/// The end of a child, as something to wait for. Where the system has no such thing, it is only slept.
struct Ended {
    #[cfg(target_os = "linux")]
    process: Option<OwnedFd>,
}

impl Ended {
    #[cfg(target_os = "linux")]
    fn of(child: &process::Child) -> Self {
        use rustix::process::{PidfdFlags, pidfd_open};
        Self { process: pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok() }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_: &process::Child) -> Self {
        Self {}
    }

    /// Returns after this time, or as soon as the child has ended.
    fn wait(&self, most: Duration) {
        #[cfg(target_os = "linux")]
        if let Some(process) = &self.process {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let _ = poll(
                &mut [PollFd::new(process, PollFlags::IN)],
                Timespec::try_from(most).ok().as_ref(),
            );
            return;
        }
        std::thread::sleep(most);
    }
}

fn has_ended(child: &process::Child) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(Pid::from_child(child)), options), Ok(None))
}

fn feed(mut stdin: ChildStdin, input: Vec<u8>) {
    // A child may end without reading all of it; its exit code says what that means.
    std::thread::spawn(move || stdin.write_all(&input));
}

/// A pipe that a thread reads to its end, and of which the beginning is kept. A pipe that nobody
/// reads would block the child, and a closed one would kill it.
#[derive(Debug)]
struct CappedPipe {
    kept: Arc<Mutex<Vec<u8>>>,
    cap: usize,
    ended: Receiver<()>,
}

impl CappedPipe {
    fn read(pipe: Option<impl Read + Send + 'static>, cap: usize) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (sender, ended) = mpsc::channel();
        let shared = Arc::clone(&kept);
        std::thread::spawn(move || {
            let _dropped_at_the_end = sender;
            let Some(mut pipe) = pipe else { return };
            let mut piece = vec![0; 64 << 10];
            while let Ok(read @ 1..) = pipe.read(&mut piece) {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                // One byte more than the cap shows that there was more.
                let room = (cap + 1).saturating_sub(kept.len());
                kept.extend_from_slice(&piece[..read.min(room)]);
            }
        });
        Self { kept, cap, ended }
    }

    fn is_full(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).len() > self.cap
    }

    /// What was kept, once the child has ended, and whether there was more.
    fn take(&self, drain: Duration) -> (Vec<u8>, bool) {
        let _ = self.ended.recv_timeout(drain);
        let mut kept =
            std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        let is_cut = kept.len() > self.cap;
        kept.truncate(self.cap);
        (kept, is_cut)
    }
}
