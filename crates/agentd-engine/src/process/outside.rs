//! The half of a supervisor that stays outside of the namespaces it has made.
//!
//! It only has to exist: the half inside is killed with it, and the kernel then ends everything in
//! there. If the half inside does not end when agentd is gone, it is killed.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts the supervisor once more, inside of the namespaces"
)]

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::cage::{Cage, Enforced, INSIDE, landlock, namespaces};
use super::control::Report;
use super::supervise::{SUPERVISE, release_output, report};

/// How long the half inside may take to end everything, once agentd is gone.
const PATIENCE: Duration = Duration::from_secs(8);

/// Enters the namespaces, and starts the supervisor once more in there.
pub(super) fn run(cage: &Cage, words: &[OsString]) -> ExitCode {
    let held = match namespaces::enter(cage) {
        Ok(held) => held,
        Err(error) => {
            report(failed(&error));
            return ExitCode::FAILURE;
        }
    };
    let child = match start_inside(held, words) {
        Ok(child) => child,
        Err(source) => {
            report(failed(&namespaces::StepFailure { step: namespaces::Step::Inside, source }));
            return ExitCode::FAILURE;
        }
    };
    release_output();
    wait(child)
}

#[expect(unsafe_code, reason = "PR_SET_PDEATHSIG must be set between fork and exec")]
fn start_inside(held: Enforced, words: &[OsString]) -> std::io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("agent-guard").args([SUPERVISE, INSIDE, &held.encode().to_string()]).args(words);
    // SAFETY: the closure makes one system call; this process has one thread.
    unsafe {
        command
            .pre_exec(|| Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    command.spawn()
}

/// What failed, for agentd.
pub(super) fn failed(failed: &namespaces::StepFailure) -> Report {
    Report::CageFailed {
        step: failed.step as i32,
        error: failed.source.raw_os_error().unwrap_or(0),
    }
}

fn wait(mut child: Child) -> ExitCode {
    let control = std::io::stdin();
    let Ok(ended) = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty())
    else {
        let _ = child.wait();
        return ExitCode::SUCCESS;
    };
    let mut gone_at: Option<Instant> = None;
    loop {
        let mut fds = vec![PollFd::new(&ended, PollFlags::IN)];
        if gone_at.is_none() {
            fds.push(PollFd::new(&control, PollFlags::RDHUP));
        }
        let left = gone_at.map(|at| PATIENCE.saturating_sub(at.elapsed()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let _ = poll(&mut fds, timeout.as_ref());
        if !fds[0].revents().is_empty() {
            break;
        }
        if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
            gone_at = Some(Instant::now());
        }
        if gone_at.is_some_and(|at| at.elapsed() >= PATIENCE) {
            let _ = child.kill();
            break;
        }
    }
    let _ = child.wait();
    ExitCode::SUCCESS
}

/// Prints what this system can enforce, as a number on standard output. The namespaces are tried,
/// since nothing else shows whether they may be created here.
pub(super) fn probe() -> ExitCode {
    let tmp = std::env::temp_dir();
    let cage = Cage { tmp: Some(tmp), network: false, ..Cage::default() };
    let rules = landlock::Rules::of(&cage, Enforced::default()).map(|rules| rules.enforced());
    let inside = match namespaces::enter(&Cage { tmp: None, ..cage.clone() }) {
        Ok(_) if settles() => Some(Enforced::by_namespaces(&cage, true)),
        _ => None,
    };
    let enforced = inside.unwrap_or_default().and_also(rules);
    let _ = writeln!(std::io::stdout(), "{}", enforced.encode());
    ExitCode::SUCCESS
}

/// Whether the first process in the namespaces gets as far as starting something.
fn settles() -> bool {
    let words = [Cage::default().to_args(), vec!["--".into()]].concat();
    let child = start_inside(Enforced::default(), &words);
    // It ends with 2, because there is no program; before that, with 1.
    child.and_then(|mut child| child.wait()).is_ok_and(|status| status.code() == Some(2))
}
