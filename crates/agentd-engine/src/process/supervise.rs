//! The supervisor: a small process between agentd and an agent, so that nothing
//! of the agent outlives agentd, not even after `kill -9`.
//!
//! agentd starts its own program again with [`SUPERVISE`] as the first argument.
//! That process starts the agent in a group of its own and then only waits: for
//! the agent to end, and for agentd to send a command or to be gone, which it
//! notices because the socket between them closes. Output never passes through
//! it: the agent writes to agentd's pipes directly.

#![expect(clippy::disallowed_methods, reason = "it is the supervisor, which starts the program")]

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::cage::{Cage, Enforced};
#[cfg(target_os = "linux")]
use super::cage::{INSIDE, PROBE, landlock, namespaces};
use super::control::{Report, command, receive_start};
#[cfg(target_os = "linux")]
use super::outside;
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
    /// agentd is gone, or has no more commands.
    Closed,
    /// The agent has ended.
    ProcessEnd,
}

/// Stands before the program.
pub(super) const PROGRAM: &str = "--";

/// Runs as the supervisor; `args` are what follows [`SUPERVISE`]. To be called before anything
/// else in `main`.
pub fn supervise(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter().peekable();
    #[cfg(target_os = "linux")]
    match args.next_if(|word| word == PROBE || word == INSIDE) {
        Some(word) if word == PROBE => return outside::probe(),
        Some(_) => return inside(args),
        None => {}
    }
    // A session of its own: the terminal's Ctrl-C is for agentd, which forwards it,
    // and an agent that wants a password fails instead of waiting for one.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    {
        // `pkill agentd` must not take the supervisor before its work is done.
        let _ = rustix::thread::set_name(c"agent-guard");
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
    let words: Vec<OsString> = args.collect();
    let mut args = words.clone().into_iter();
    let Ok(cage) = Cage::from_args(&mut args, PROGRAM) else { return ExitCode::from(2) };
    #[cfg(target_os = "linux")]
    if let Some(cage) = cage.as_ref().filter(|cage| cage.layers.namespaces) {
        return outside::run(cage, &words);
    }
    watch_over(cage.as_ref(), Enforced::default(), args)
}

/// The supervisor as the first process of a namespace, which [`outside::run`] has made.
#[cfg(target_os = "linux")]
fn inside(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let _ = rustix::thread::set_name(c"agent-guard");
    let held = args.next().and_then(|held| held.to_str()?.parse().ok()).map(Enforced::decode);
    let Some(held) = held else { return ExitCode::from(2) };
    let Ok(cage) = Cage::from_args(&mut args, PROGRAM) else { return ExitCode::from(2) };
    let makes_mounts = cage.as_ref().is_some_and(|cage| cage.makes_mounts);
    if let Err(failed) = namespaces::settle(makes_mounts) {
        report(outside::failed(&failed));
        return ExitCode::FAILURE;
    }
    watch_over(cage.as_ref(), held, args)
}

/// Starts the program and stays until nothing of it is left. `held` is what the namespaces
/// enforce already.
fn watch_over(
    cage: Option<&Cage>,
    held: Enforced,
    mut args: impl Iterator<Item = OsString>,
) -> ExitCode {
    let Some(program) = args.next() else { return ExitCode::from(2) };
    let Ok(Some(stdin)) = receive_start(std::io::stdin()) else { return ExitCode::FAILURE };
    let leader = match start(&program, args, Stdio::from(stdin), cage, held) {
        Ok((leader, enforced)) => {
            if cage.is_some() {
                report(Report::Confined(enforced.encode()));
            }
            leader
        }
        Err(error) => {
            report(Report::SpawnFailed(error.raw_os_error().unwrap_or(0)));
            return ExitCode::FAILURE;
        }
    };
    release_output();
    // The number is one of a namespace; for agentd it would be another process.
    let shown = if held.processes { 0 } else { leader.as_raw_nonzero().get() };
    report(Report::Started(shown));
    let (sender, events) = channel();
    let waiter = sender.clone();
    std::thread::spawn(move || wait_for(leader, &waiter));
    std::thread::spawn(move || listen(&sender));
    watch(leader, &events, held.processes);
    ExitCode::SUCCESS
}

/// Starts the program, and returns what it is kept from. The rules of Landlock take effect in the
/// child alone: they let a process send signals to those that have the same rules.
#[cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "what holds for the child alone is set between fork and exec")
)]
fn start(
    program: &OsString,
    args: impl Iterator<Item = OsString>,
    stdin: Stdio,
    cage: Option<&Cage>,
    held: Enforced,
) -> std::io::Result<(Pid, Enforced)> {
    let mut command = Command::new(program);
    command.args(args).stdin(stdin).process_group(0);
    #[cfg(target_os = "linux")]
    let enforced = {
        let mut rules = cage.and_then(|cage| landlock::Rules::of(cage, held));
        let enforced = held.and_also(rules.as_ref().map(landlock::Rules::enforced));
        // The last resort, for a supervisor that is itself killed with SIGKILL.
        dies_with_parent(&mut command, Signal::KILL);
        // SAFETY: the closure makes system calls and drops the descriptor of the rules. This
        // process has one thread so far, so that no lock can be held by another one.
        unsafe {
            command.pre_exec(move || match rules.take().map(landlock::Rules::restrict) {
                Some(Err(error)) => Err(error),
                _ => Ok(()),
            });
        }
        enforced
    };
    #[cfg(not(target_os = "linux"))]
    let enforced = {
        let _ = cage;
        held
    };
    let child = command.spawn()?;
    // The command holds our end of the agent's input; dropping it here lets agentd
    // notice when the agent closes its own. The child is waited for by its id.
    Ok((Pid::from_child(&child), enforced))
}

/// The agent has its copies; ours would keep the pipes open.
pub(super) fn release_output() {
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// Standard input is the socket, which goes both ways.
pub(super) fn report(report: Report) {
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
    // NOWAIT: the dead leader stays, and so the id of its group stays reserved.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(leader), options) {}
    let _ = events.send(Event::ProcessEnd);
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

/// The whole life of the agent: returns when nothing of it is left. `is_first` says that this is
/// the first process of a namespace, in which there is nobody else.
fn watch(leader: Pid, events: &Receiver<Event>, is_first: bool) {
    let mut ended = false;
    let mut closed_at: Option<Instant> = None;
    loop {
        match events.recv_timeout(if closed_at.is_some() { ORPHAN_GRACE } else { REAP_EVERY }) {
            Ok(Event::ProcessEnd) => {
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
            Ok(Event::Command(command::FREEZE)) => {
                report(Report::Frozen(i32::from(is_first && descendants::freeze_namespace())));
            }
            Ok(Event::Command(command::THAW)) => {
                if is_first {
                    descendants::thaw_namespace();
                }
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
