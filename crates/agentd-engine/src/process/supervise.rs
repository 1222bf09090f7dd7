//! The supervisor: a small process between agentd and an agent, so that nothing
//! of the agent outlives agentd, not even after `kill -9`.
//!
//! agentd starts its own program again with [`SUPERVISE`] as the first argument.
//! That process starts the agent in a group of its own and then only waits: for
//! the agent to end, and for agentd to say something or to be gone, which it
//! notices because the socket between them closes. Output never passes through
//! it: the agent writes to agentd's pipes directly.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::control::{Report, command, receive_start};
use super::{descendants, dies_with_parent};

/// The first argument that makes agentd a supervisor.
pub const SUPERVISE: &str = "__supervise";

/// How long an agent gets after SIGTERM when agentd is gone.
const ORPHAN_GRACE: Duration = Duration::from_millis(1500);
/// How often orphans of the agent are reaped while it runs.
const REAP_EVERY: Duration = Duration::from_secs(1);

/// What happens to a supervisor.
enum Event {
    Command(u8),
    /// agentd is gone, or has nothing more to say.
    Closed,
    /// The agent has ended.
    Ended,
}

/// Stands before each path that the program may write to.
pub(super) const WRITABLE: &str = "--writable";
/// Stands before the program.
pub(super) const PROGRAM: &str = "--";

/// Runs as the supervisor; `args` are what follows [`SUPERVISE`]. To be called before anything else in `main`.
pub fn supervise(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // A session of its own: the terminal's Ctrl-C is for agentd, which forwards it,
    // and an agent that wants a password fails instead of waiting for one.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    {
        // `pkill agentd` must not take the supervisor before its work is done.
        let _ = rustix::thread::set_name(c"agent-guard");
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
    let mut args = args.into_iter();
    let mut writable: Vec<PathBuf> = Vec::new();
    let mut is_confined = false;
    while let Some(arg) = args.next().filter(|arg| arg != PROGRAM) {
        is_confined = true;
        if arg == WRITABLE {
            writable.extend(args.next().map(PathBuf::from));
        }
    }
    let Some(program) = args.next() else { return ExitCode::from(2) };
    let Ok(Some(stdin)) = receive_start(std::io::stdin()) else { return ExitCode::FAILURE };
    if is_confined {
        report(Report::Confined(i32::from(super::confine::confine(&writable))));
    }
    let leader = match start(&program, args, Stdio::from(stdin)) {
        Ok(leader) => leader,
        Err(error) => {
            report(Report::SpawnFailed(error.raw_os_error().unwrap_or(0)));
            return ExitCode::FAILURE;
        }
    };
    release_output();
    report(Report::Started(leader.as_raw_nonzero().get()));
    let (sender, events) = channel();
    let waiter = sender.clone();
    std::thread::spawn(move || wait_for(leader, &waiter));
    std::thread::spawn(move || listen(&sender));
    watch(leader, &events);
    ExitCode::SUCCESS
}

fn start(
    program: &OsString,
    args: impl Iterator<Item = OsString>,
    stdin: Stdio,
) -> std::io::Result<Pid> {
    let mut command = Command::new(program);
    command.args(args).stdin(stdin).process_group(0);
    // The last net, for a supervisor that is itself killed with SIGKILL.
    dies_with_parent(&mut command, Signal::KILL);
    let child = command.spawn()?;
    // The command holds our end of the agent's input; dropping it here lets agentd
    // notice when the agent closes its own. The child is waited for by its id.
    Ok(Pid::from_child(&child))
}

/// The agent has its copies; ours would keep the pipes open.
fn release_output() {
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// Standard input is the socket, which goes both ways.
fn report(report: Report) {
    let mut bytes: &[u8] = &report.encode();
    while let Ok(sent @ 1..) = rustix::net::send(std::io::stdin(), bytes, send_flags()) {
        bytes = &bytes[sent.min(bytes.len())..];
        if bytes.is_empty() {
            break;
        }
    }
    let _ = std::io::stdout().flush();
}

fn send_flags() -> rustix::net::SendFlags {
    #[cfg(target_os = "linux")]
    return rustix::net::SendFlags::NOSIGNAL;
    #[cfg(not(target_os = "linux"))]
    rustix::net::SendFlags::empty()
}

fn wait_for(leader: Pid, events: &Sender<Event>) {
    // NOWAIT: the dead leader stays, and with it the name of its group.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(leader), options) {}
    let _ = events.send(Event::Ended);
}

fn listen(events: &Sender<Event>) {
    let mut byte = [0];
    loop {
        match rustix::io::read(std::io::stdin(), &mut byte) {
            Ok(1) => {
                let _ = events.send(Event::Command(byte[0]));
            }
            Err(rustix::io::Errno::INTR) => {}
            _ => break,
        }
    }
    let _ = events.send(Event::Closed);
}

/// The whole life of the agent: returns when nothing of it is left.
fn watch(leader: Pid, events: &Receiver<Event>) {
    let mut ended = false;
    let mut closed_at: Option<Instant> = None;
    loop {
        match events.recv_timeout(if closed_at.is_some() { ORPHAN_GRACE } else { REAP_EVERY }) {
            Ok(Event::Ended) => {
                ended = true;
                report(ending(leader));
            }
            Ok(Event::Closed) => {
                closed_at = Some(Instant::now());
                if !ended {
                    descendants::signal(leader, &[], Signal::TERM);
                }
            }
            Ok(Event::Command(command::INTERRUPT)) => {
                descendants::signal(leader, &[], Signal::INT);
            }
            Ok(Event::Command(command::TERMINATE)) => {
                descendants::signal(leader, &[], Signal::TERM);
            }
            Ok(Event::Command(command::KILL)) => {
                descendants::signal(leader, &descendants::living_children(leader), Signal::KILL);
            }
            Ok(Event::Command(_)) => {}
            Err(RecvTimeoutError::Timeout) => descendants::reap_orphans(leader),
            Err(RecvTimeoutError::Disconnected) => closed_at = Some(Instant::now()),
        }
        if let Some(at) = closed_at
            && (ended || at.elapsed() >= ORPHAN_GRACE)
        {
            break;
        }
    }
    report(Report::Clean(descendants::end_all(leader, ended)));
}

fn ending(leader: Pid) -> Report {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    match waitid(WaitId::Pid(leader), options) {
        Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Report::Exited(code),
            (None, Some(signal)) => Report::Killed(signal),
            _ => Report::Exited(-1),
        },
        _ => Report::Exited(-1),
    }
}
