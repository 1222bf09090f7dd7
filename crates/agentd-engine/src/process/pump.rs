//! The loop that feeds a program, reads it and watches the clock.

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
use super::supervise::PROGRAM;
use super::{
    Cancel, CancelReason, Flow, Input, Limits, ProcessEnd, ProcessError, Program, Supervisor,
    Watcher,
};

/// How much is read at once.
const CHUNK: usize = 256 << 10;
/// The size that pipes are set to where the system allows it.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;
/// How long the end may take after SIGKILL, and the clean-up after that.
const KILL_WAIT: Duration = Duration::from_secs(10);

/// Runs a program to its end, and returns when nothing of it is left.
pub fn run(
    supervisor: &Supervisor,
    program: Program<'_>,
    limits: Limits,
    cancel: &Cancel,
    watcher: &mut dyn Watcher,
) -> Result<ProcessEnd, ProcessError> {
    let name = || program.program.to_owned();
    let system = |source| ProcessError::System { program: name(), source };
    let mut pump =
        Pump::start(supervisor, program, limits, watcher).map_err(|error| match error {
            StartError::Supervisor(source) => {
                ProcessError::Supervisor { program: supervisor.program.clone(), source }
            }
            StartError::System(source) => system(source),
        })?;
    loop {
        pump.wait(cancel).map_err(system)?;
        if let Some(error) = pump.failed_to_start.take() {
            pump.finish();
            return Err(ProcessError::Start { program: name(), source: error });
        }
        if let Some((step, source)) = pump.cage_failed.take() {
            pump.finish();
            return Err(ProcessError::Cage { program: name(), step: cage_step(step), source });
        }
        if pump.supervisor_gone && pump.ending.is_none() {
            pump.kill_group();
            return Err(ProcessError::SupervisorLost { program: name() });
        }
        if pump.is_done() {
            break;
        }
        if !pump.keep_limits(cancel) {
            pump.finish();
            return Err(ProcessError::Unkillable { program: name() });
        }
    }
    pump.end_of_output();
    pump.finish();
    Ok(pump.ended())
}

enum StartError {
    Supervisor(io::Error),
    System(io::Error),
}

/// How far stopping has got.
#[derive(Debug, Clone, Copy)]
enum Stopping {
    Asked { kill_at: Instant },
    Killed { give_up_at: Instant },
}

struct Pump<'a> {
    supervisor: Child,
    _own: OwnChild,
    control: UnixStream,
    reports: Vec<u8>,
    stdin: Option<PipeWriter>,
    input: &'a [u8],
    /// The other end of standard input, once all of it is in the pipe: what nobody has read.
    rest: Option<OwnedFd>,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
    lines: Lines,
    chunk: Vec<u8>,
    stderr_tail: Vec<u8>,
    watcher: &'a mut dyn Watcher,
    limits: Limits,
    started: Instant,
    last_output: Instant,
    group: Option<Pid>,
    failed_to_start: Option<io::Error>,
    supervisor_gone: bool,
    ending: Option<Report>,
    drain_until: Option<Instant>,
    stop_wanted: bool,
    stopped: Option<Stopped>,
    stopping: Option<Stopping>,
    stragglers: i32,
    confined: Option<Enforced>,
    cage_failed: Option<(i32, io::Error)>,
}

impl<'a> Pump<'a> {
    fn start(
        supervisor: &Supervisor,
        program: Program<'a>,
        limits: Limits,
        watcher: &'a mut dyn Watcher,
    ) -> Result<Self, StartError> {
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
            prepare().map_err(StartError::System)?;
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
        let (child, own) = family::spawn(&mut command).map_err(StartError::Supervisor)?;
        // It holds our ends of the pipes of the child.
        drop(command);
        Ok(Self {
            supervisor: child,
            _own: own,
            control,
            reports: Vec::new(),
            stdin: Some(stdin),
            input: program.stdin,
            rest: None,
            stdout: Some(stdout),
            stderr: Some(stderr),
            lines: Lines::new(limits.line_bytes),
            chunk: vec![0; CHUNK],
            stderr_tail: Vec::new(),
            watcher,
            limits,
            started,
            last_output: started,
            group: None,
            failed_to_start: None,
            supervisor_gone: false,
            ending: None,
            drain_until: None,
            stop_wanted: false,
            stopped: None,
            stopping: None,
            stragglers: 0,
            confined: None,
            cage_failed: None,
        })
    }

    /// Waits for something to happen, at most until the next deadline, and handles
    /// everything that has.
    fn wait(&mut self, cancel: &Cancel) -> io::Result<()> {
        self.watcher.pause();
        let timeout = self.next_deadline().saturating_duration_since(Instant::now());
        // Rounded up, so that the deadline has passed when the wait is over.
        let timeout = Timespec::try_from(timeout + Duration::from_millis(1)).ok();
        // Leave out what would always be ready and change nothing.
        let mut fds = Vec::with_capacity(5);
        if !self.supervisor_gone {
            fds.push(PollFd::new(&self.control, PollFlags::IN));
        }
        let control_end = fds.len();
        if self.stopped.is_none() && self.ending.is_none() {
            fds.push(PollFd::new(cancel, PollFlags::IN));
        }
        let stdin_at = fds.len();
        if let Some(stdin) = &self.stdin {
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
        if at(stdin_at..stdout_at) {
            self.write_input();
        }
        if at(stdout_at..stderr_at) {
            self.read_output();
        }
        if at(stderr_at..happened.len()) {
            self.read_errors();
        }
        // Last, so that output which came before the exit is taken before it.
        if at(0..control_end) {
            self.read_reports();
        }
        Ok(())
    }

    fn next_deadline(&self) -> Instant {
        let stopping = match self.stopping {
            Some(Stopping::Asked { kill_at }) => kill_at,
            Some(Stopping::Killed { give_up_at }) => give_up_at,
            None => (self.started + self.limits.whole).min(self.last_output + self.limits.idle),
        };
        self.drain_until.map_or(stopping, |drain| drain.min(stopping))
    }

    fn write_input(&mut self) {
        let Some(stdin) = &self.stdin else { return };
        while !self.input.is_empty() {
            match rustix::io::write(stdin, self.input) {
                Ok(written) => self.input = &self.input[written..],
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        // Written, or closed by the other side: either way there is no more to say.
        if self.input.is_empty() {
            self.rest = reader_of(stdin);
        }
        self.stdin = None;
    }

    fn read_output(&mut self) {
        let Some(stdout) = &mut self.stdout else { return };
        match stdout.read(&mut self.chunk) {
            Ok(0) => self.stdout = None,
            Ok(size) => {
                self.last_output = Instant::now();
                let (watcher, stop) = (&mut *self.watcher, &mut self.stop_wanted);
                if let Some(flow) = watcher.raw(&self.chunk[..size]) {
                    *stop |= flow == Flow::Stop;
                    return;
                }
                self.lines.push(&self.chunk[..size], &mut |line| {
                    *stop |= watcher.line(line) == Flow::Stop;
                });
            }
            Err(error) if is_passing(&error) => {}
            Err(_) => self.stdout = None,
        }
    }

    fn read_errors(&mut self) {
        let Some(stderr) = &mut self.stderr else { return };
        match stderr.read(&mut self.chunk) {
            Ok(0) => self.stderr = None,
            Ok(size) => {
                self.last_output = Instant::now();
                let bytes = &self.chunk[..size];
                self.watcher.stderr(bytes);
                let cap = self.limits.stderr_bytes;
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
                    self.drain_until = Some(Instant::now() + self.limits.drain);
                    self.stdin = None;
                }
                Some(Report::Confined(held)) => self.confined = Some(Enforced::decode(held)),
                Some(Report::CageFailed { step, error }) => {
                    self.cage_failed = Some((step, io::Error::from_raw_os_error(error)));
                }
                Some(Report::Clean(stragglers)) => self.stragglers = stragglers,
                None => {}
            }
        }
    }

    fn is_done(&self) -> bool {
        self.ending.is_some()
            && (self.stdout.is_none() && self.stderr.is_none()
                || self.drain_until.is_some_and(|until| Instant::now() >= until))
    }

    /// Asks the program to stop when it has to. False: it cannot even be killed.
    fn keep_limits(&mut self, cancel: &Cancel) -> bool {
        if self.ending.is_some() {
            return true;
        }
        let now = Instant::now();
        match self.stopping {
            Some(Stopping::Asked { kill_at }) if now >= kill_at => {
                self.send(command::KILL);
                self.stopping = Some(Stopping::Killed { give_up_at: now + KILL_WAIT });
            }
            Some(Stopping::Killed { give_up_at }) => return now < give_up_at,
            Some(Stopping::Asked { .. }) => {}
            None => {
                let cause = match cancel.reason() {
                    Some(reason) => Some((Stopped::Cancelled, Some(reason))),
                    None if self.stop_wanted => Some((Stopped::Cancelled, None)),
                    None if now >= self.started + self.limits.whole => {
                        Some((Stopped::TimeLimit, None))
                    }
                    None if now >= self.last_output + self.limits.idle => {
                        Some((Stopped::IdleLimit, None))
                    }
                    None => None,
                };
                if let Some((stopped, reason)) = cause {
                    self.stopped = Some(stopped);
                    let interrupted = reason == Some(CancelReason::Interrupt);
                    self.send(if interrupted { command::INTERRUPT } else { command::TERMINATE });
                    self.stopping = Some(Stopping::Asked { kill_at: now + self.limits.grace });
                }
            }
        }
        true
    }

    fn send(&self, command: u8) {
        // Fails only when the supervisor is gone, which the loop notices by itself.
        let _ = rustix::io::write(&self.control, &[command]);
    }

    /// Only if the supervisor can no longer do it.
    fn kill_group(&mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.supervisor.wait();
        family::end_adopted();
    }

    /// Output without a final line ending is a line too.
    fn end_of_output(&mut self) {
        let watcher = &mut *self.watcher;
        self.lines.finish(&mut |line| {
            watcher.line(line);
        });
        watcher.pause();
    }

    /// Lets the supervisor clean up, and waits until it has.
    fn finish(&mut self) {
        self.stdin = None;
        let _ = self.control.shutdown(Shutdown::Write);
        let until = Instant::now() + KILL_WAIT;
        while !self.supervisor_gone {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let _ = self.supervisor.kill();
                break;
            }
            let timeout = Timespec::try_from(left).ok();
            let _ = poll(&mut [PollFd::new(&self.control, PollFlags::IN)], timeout.as_ref());
            self.read_reports();
        }
        let _ = self.supervisor.wait();
    }

    fn ended(self) -> ProcessEnd {
        let (code, signal) = match self.ending {
            Some(Report::Exited(code)) => (Some(code), None),
            Some(Report::Killed(signal)) => (None, Some(signal)),
            _ => (None, None),
        };
        // A short input fits into the pipe, whether or not somebody reads it.
        let in_pipe = self.rest.and_then(|rest| rustix::io::ioctl_fionread(rest).ok());
        let unread = self.input.len() as u64 + in_pipe.unwrap_or(0);
        let input = if unread == 0 { Input::Written } else { Input::ClosedEarly { unread } };
        let tail = self.stderr_tail.len().saturating_sub(self.limits.stderr_bytes);
        ProcessEnd {
            code,
            signal,
            stopped: self.stopped,
            input,
            stderr_tail: String::from_utf8_lossy(&self.stderr_tail[tail..]).into_owned(),
            undrained: self.stdout.is_some() || self.stderr.is_some(),
            stragglers: u32::try_from(self.stragglers).unwrap_or(0),
            confined: self.confined,
            duration: self.started.elapsed(),
        }
    }
}

/// What was being done when a cage could not be made.
fn cage_step(step: i32) -> &'static str {
    #[cfg(target_os = "linux")]
    return super::cage::namespaces::Step::words(step);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = step;
        "set it up"
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
