//! A program that runs under supervision: its pipes, the socket to its supervisor, and what has come
//! through them so far. How long it may take is for [`super::pump`] to say.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts the supervisor, with pipes and a socket of its own"
)]

use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agentd_core::outcome::Stopped;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use super::cage::{Cage, Enforced};
use super::control::{REPORT_BYTES, Report, command, send_start};
use super::family::{self, OwnChild};
use super::lines::Lines;
use super::pump::Unheard;
use super::supervise::PROGRAM;
use super::{Cancel, Flow, Input, Limits, ProcessEnd, ProcessError, Program, Supervisor, Watcher};

/// How much is read at once.
const CHUNK: usize = 256 << 10;
/// The size that pipes are set to where the system allows it.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;
/// How long the end may take after SIGKILL, and the clean-up after that.
pub(super) const KILL_WAIT: Duration = Duration::from_secs(10);
/// How long freezing may take.
const FREEZE_WAIT: Duration = Duration::from_secs(4);

/// A program that runs under supervision. Dropping it ends the program and all that it has started.
#[derive(Debug)]
pub struct Running {
    name: String,
    supervisor: Child,
    _own: OwnChild,
    control: UnixStream,
    reports: Vec<u8>,
    stdin: Option<PipeWriter>,
    /// What is to be written to it.
    input: Vec<u8>,
    /// Whether its input is closed once all of it is written.
    closes_input: bool,
    /// The other end of standard input, once all of it is in the pipe: what nobody has read.
    rest: Option<OwnedFd>,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
    lines: Lines,
    chunk: Vec<u8>,
    stderr_tail: Vec<u8>,
    stderr_cap: usize,
    started: Instant,
    pub(super) last_output: Instant,
    group: Option<Pid>,
    pub(super) failed_to_start: Option<io::Error>,
    pub(super) cage_failed: Option<(i32, io::Error)>,
    pub(super) supervisor_gone: bool,
    pub(super) ending: Option<Report>,
    /// When it has ended.
    pub(super) ended_at: Option<Instant>,
    stragglers: i32,
    confined: Option<Enforced>,
    frozen: Option<bool>,
    /// Nothing is left to be cleaned up.
    is_finished: bool,
}

impl Running {
    /// Starts a program. It may still turn out that it cannot be started: the first time that it is
    /// waited for.
    pub fn start(
        supervisor: &Supervisor,
        program: Program<'_>,
        limits: Limits,
    ) -> Result<Self, ProcessError> {
        let name = program.program.to_owned();
        let prepare = || -> io::Result<_> {
            let (ours, theirs) = UnixStream::pair()?;
            let (stdin_reader, stdin) = io::pipe()?;
            let (stdout, stdout_writer) = io::pipe()?;
            let (stderr, stderr_writer) = io::pipe()?;
            send_start(&ours, stdin_reader.as_fd())?;
            ours.set_nonblocking(true)?;
            for fd in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
                rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK)?;
            }
            #[cfg(target_os = "linux")]
            {
                let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE_BYTES);
            }
            Ok((ours, theirs, stdin, stdout, stdout_writer, stderr, stderr_writer))
        };
        let (control, theirs, stdin, stdout, stdout_writer, stderr, stderr_writer) =
            prepare().map_err(|source| ProcessError::System { program: name.clone(), source })?;
        let started = Instant::now();
        let mut command = Command::new(&supervisor.program);
        command
            // What `ps` shows.
            .arg0("agent-guard")
            .args(&supervisor.args)
            .args(program.cage.map(Cage::to_args).unwrap_or_default())
            .arg(PROGRAM)
            .arg(program.program)
            .args(program.args)
            .env_clear()
            .envs(program.env.iter().map(|(name, value)| (name, value)))
            .current_dir(program.cwd)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(OwnedFd::from(stdout_writer)))
            .stderr(Stdio::from(OwnedFd::from(stderr_writer)));
        family::adopt_orphans();
        let (child, own) = family::spawn(&mut command).map_err(|source| {
            ProcessError::Supervisor { program: supervisor.program.clone(), source }
        })?;
        // It holds our ends of the pipes of the child.
        drop(command);
        Ok(Self {
            name,
            supervisor: child,
            _own: own,
            control,
            reports: Vec::new(),
            stdin: Some(stdin),
            input: program.stdin.to_vec(),
            closes_input: !program.keeps_input_open,
            rest: None,
            stdout: Some(stdout),
            stderr: Some(stderr),
            lines: Lines::new(limits.line_bytes),
            chunk: vec![0; CHUNK],
            stderr_tail: Vec::new(),
            stderr_cap: limits.stderr_bytes,
            started,
            last_output: started,
            group: None,
            failed_to_start: None,
            cage_failed: None,
            supervisor_gone: false,
            ending: None,
            ended_at: None,
            stragglers: 0,
            confined: None,
            frozen: None,
            is_finished: false,
        })
    }

    /// The program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it still runs, as far as its supervisor has reported.
    pub fn is_alive(&mut self) -> bool {
        self.wait_for_report(Duration::ZERO);
        self.ending.is_none() && !self.supervisor_gone
    }

    /// Writes to its standard input, as far as it takes it now; the rest goes with the next wait.
    pub fn write(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.write_input();
    }

    /// Waits for something to happen, at most until `deadline`, and handles everything that has.
    pub(super) fn wait(
        &mut self,
        deadline: Instant,
        cancel: Option<&Cancel>,
        watcher: &mut dyn Watcher,
    ) -> io::Result<Flow> {
        watcher.pause();
        let timeout = deadline.saturating_duration_since(Instant::now());
        // Rounded up, so that the deadline has passed when the wait is over.
        let timeout = Timespec::try_from(timeout + Duration::from_millis(1)).ok();
        // Leave out what would always be ready and change nothing.
        let mut fds = Vec::with_capacity(5);
        if !self.supervisor_gone {
            fds.push(PollFd::new(&self.control, PollFlags::IN));
        }
        let control_end = fds.len();
        if let Some(cancel) = cancel {
            fds.push(PollFd::new(cancel, PollFlags::IN));
        }
        let stdin_at = fds.len();
        let has_input = !self.input.is_empty() || self.closes_input;
        if let Some(stdin) = self.stdin.as_ref().filter(|_| has_input) {
            fds.push(PollFd::new(stdin, PollFlags::OUT));
        }
        let stdout_at = fds.len();
        if let Some(stdout) = &self.stdout {
            fds.push(PollFd::new(stdout, PollFlags::IN));
        }
        let stderr_at = fds.len();
        if let Some(stderr) = &self.stderr {
            fds.push(PollFd::new(stderr, PollFlags::IN));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let at = |range: std::ops::Range<usize>| happened[range].contains(&true);
        let mut flow = Flow::Continue;
        if at(stdin_at..stdout_at) {
            self.write_input();
        }
        if at(stdout_at..stderr_at) {
            flow = self.read_output(watcher);
        }
        if at(stderr_at..happened.len()) {
            self.read_errors(watcher);
        }
        // Last, so that output which came before the exit is taken before it.
        if at(0..control_end) {
            self.read_reports();
        }
        Ok(flow)
    }

    fn write_input(&mut self) {
        let Some(stdin) = &self.stdin else { return };
        let mut written = 0;
        let mut is_closed = false;
        while written < self.input.len() {
            match rustix::io::write(stdin, &self.input[written..]) {
                Ok(bytes) => written += bytes,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => {
                    is_closed = true;
                    break;
                }
            }
        }
        self.input.drain(..written);
        if self.input.is_empty() && self.closes_input {
            self.rest = reader_of(stdin);
        }
        // Written, or closed by the other side: either way there is no more to say.
        if is_closed || self.input.is_empty() && self.closes_input {
            self.stdin = None;
        }
    }

    fn read_output(&mut self, watcher: &mut dyn Watcher) -> Flow {
        let Some(stdout) = &mut self.stdout else { return Flow::Continue };
        match stdout.read(&mut self.chunk) {
            Ok(0) => self.stdout = None,
            Ok(size) => {
                self.last_output = Instant::now();
                if let Some(flow) = watcher.raw(&self.chunk[..size]) {
                    return flow;
                }
                let mut flow = Flow::Continue;
                self.lines.push(&self.chunk[..size], &mut |line| {
                    if watcher.line(line) == Flow::Stop {
                        flow = Flow::Stop;
                    }
                });
                return flow;
            }
            Err(error) if is_passing(&error) => {}
            Err(_) => self.stdout = None,
        }
        Flow::Continue
    }

    fn read_errors(&mut self, watcher: &mut dyn Watcher) {
        let Some(stderr) = &mut self.stderr else { return };
        match stderr.read(&mut self.chunk) {
            Ok(0) => self.stderr = None,
            Ok(size) => {
                self.last_output = Instant::now();
                let bytes = &self.chunk[..size];
                watcher.stderr(bytes);
                let cap = self.stderr_cap;
                self.stderr_tail.extend_from_slice(&bytes[size.saturating_sub(cap)..]);
                if self.stderr_tail.len() > 2 * cap {
                    self.stderr_tail.drain(..self.stderr_tail.len() - cap);
                }
            }
            Err(error) if is_passing(&error) => {}
            Err(_) => self.stderr = None,
        }
    }

    fn read_reports(&mut self) {
        let mut bytes = [0; 64];
        match self.control.read(&mut bytes) {
            Ok(0) => self.supervisor_gone = true,
            Ok(size) => self.reports.extend_from_slice(&bytes[..size]),
            Err(error) if is_passing(&error) => {}
            Err(_) => self.supervisor_gone = true,
        }
        while let Some((report, rest)) = self.reports.split_first_chunk::<REPORT_BYTES>() {
            let (report, rest) = (Report::decode(*report), rest.to_vec());
            self.reports = rest;
            match report {
                Some(Report::Started(pid)) => self.group = Pid::from_raw(pid),
                Some(Report::SpawnFailed(error)) => {
                    self.failed_to_start = Some(io::Error::from_raw_os_error(error));
                }
                Some(report @ (Report::Exited(_) | Report::Killed(_))) => {
                    self.ending = Some(report);
                    self.ended_at = Some(Instant::now());
                    self.stdin = None;
                }
                Some(Report::Confined(held)) => self.confined = Some(Enforced::decode(held)),
                Some(Report::CageFailed { step, error }) => {
                    self.cage_failed = Some((step, io::Error::from_raw_os_error(error)));
                }
                Some(Report::Frozen(held)) => self.frozen = Some(held != 0),
                Some(Report::Clean(stragglers)) => self.stragglers = stragglers,
                None => {}
            }
        }
    }

    /// Whether everything that it printed is read.
    pub(super) fn is_drained(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    pub(super) fn send(&self, command: u8) {
        // Fails only when the supervisor is gone, which the loop notices by itself.
        let _ = rustix::io::write(&self.control, &[command]);
    }

    /// Stops everything of it until [`Running::thaw`]. False where that cannot be done, or not
    /// proven: without namespaces nobody knows all of its processes.
    pub fn freeze(&mut self) -> bool {
        self.frozen = None;
        self.send(command::FREEZE);
        let until = Instant::now() + FREEZE_WAIT;
        while self.frozen.is_none() && !self.supervisor_gone && self.ending.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.wait_for_report(left);
        }
        self.frozen == Some(true) && self.ending.is_none()
    }

    /// Lets it continue.
    pub fn thaw(&mut self) {
        self.send(command::THAW);
        // What it has not said meanwhile does not count as silence.
        self.last_output = Instant::now();
    }

    fn wait_for_report(&mut self, timeout: Duration) {
        let timeout = Timespec::try_from(timeout).ok();
        let _ = poll(&mut [PollFd::new(&self.control, PollFlags::IN)], timeout.as_ref());
        self.read_reports();
    }

    /// Only if the supervisor can no longer do it.
    pub(super) fn kill_group(&mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.supervisor.wait();
        self.is_finished = true;
        family::end_adopted();
    }

    /// Output without a final line ending is a line too.
    pub(super) fn end_of_output(&mut self, watcher: &mut dyn Watcher) {
        self.lines.finish(&mut |line| {
            watcher.line(line);
        });
        watcher.pause();
    }

    /// Lets the supervisor clean up, and waits until it has.
    pub(super) fn finish(&mut self) {
        if std::mem::replace(&mut self.is_finished, true) {
            return;
        }
        self.stdin = None;
        let _ = self.control.shutdown(Shutdown::Write);
        let until = Instant::now() + KILL_WAIT;
        while !self.supervisor_gone {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let _ = self.supervisor.kill();
                break;
            }
            self.wait_for_report(left);
        }
        let _ = self.supervisor.wait();
    }

    /// Closes its input, and lets it end by itself for as long as `patience`; then it is asked to,
    /// and killed after the same time again. Returns how it ended: by SIGKILL if it did not.
    pub fn close(mut self, patience: Duration) -> ProcessEnd {
        self.stdin = None;
        self.input.clear();
        for ask in [None, Some(command::TERMINATE)] {
            if let Some(ask) = ask.filter(|_| self.ending.is_none()) {
                self.send(ask);
            }
            let until = Instant::now() + patience;
            while self.ending.is_none() && !self.supervisor_gone && Instant::now() < until {
                if self.wait(until, None, &mut Unheard).is_err() {
                    break;
                }
            }
        }
        self.end()
    }

    /// Ends it, whatever it does, and returns how.
    pub fn end(mut self) -> ProcessEnd {
        if self.ending.is_none() {
            self.send(command::KILL);
        }
        self.finish();
        self.ended(None)
    }

    pub(super) fn ended(&mut self, stopped: Option<Stopped>) -> ProcessEnd {
        let (code, signal) = match self.ending {
            Some(Report::Exited(code)) => (Some(code), None),
            Some(Report::Killed(signal)) => (None, Some(signal)),
            _ => (None, None),
        };
        // A short input fits into the pipe, whether or not somebody reads it.
        let in_pipe = self.rest.as_ref().and_then(|rest| rustix::io::ioctl_fionread(rest).ok());
        let unread = self.input.len() as u64 + in_pipe.unwrap_or(0);
        let input = if unread == 0 || !self.closes_input {
            Input::Written
        } else {
            Input::ClosedEarly { unread }
        };
        ProcessEnd {
            code,
            signal,
            stopped,
            input,
            stderr_tail: self.stderr_tail(),
            undrained: !self.is_drained(),
            stragglers: u32::try_from(self.stragglers).unwrap_or(0),
            confined: self.confined,
            duration: self.started.elapsed(),
        }
    }

    /// What is known about a turn that is over, while the program continues to run.
    pub fn so_far(&mut self, stopped: Option<Stopped>) -> ProcessEnd {
        let stderr_tail = String::new();
        ProcessEnd { code: Some(0), undrained: false, stderr_tail, ..self.ended(stopped) }
    }

    /// The end of what it wrote to standard error.
    fn stderr_tail(&self) -> String {
        let tail = self.stderr_tail.len().saturating_sub(self.stderr_cap);
        String::from_utf8_lossy(&self.stderr_tail[tail..]).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_finished {
            if self.ending.is_none() {
                self.send(command::KILL);
            }
            self.finish();
        }
    }
}

/// A reader of a pipe of which only the writer is at hand, where the system can give one. The
/// program still gets the end of its input once the writer is closed.
fn reader_of(pipe: &PipeWriter) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
