//! The children of this process: those that it has started, and those that it has inherited.
//!
//! On Linux agentd adopts what loses its parent below it. Should an agent manage to kill its
//! supervisor, everything that the supervisor was responsible for becomes a child of agentd,
//! and [`end_adopted`] ends it.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::descendants;

/// The children that this process has started itself and still looks after.
static OWN: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// How long killing continues before giving up on processes that the kernel keeps.
const KILL_LIMIT: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(5);

/// Marks a child as one of ours, for as long as this lives.
#[derive(Debug)]
pub(super) struct OwnChild(i32);

impl Drop for OwnChild {
    fn drop(&mut self) {
        OWN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Makes this process the parent of everything below it that loses its own parent.
pub(super) fn adopt_orphans() {
    static ADOPTS: Once = Once::new();
    ADOPTS.call_once(|| {
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    });
}

/// Starts a program as one of ours.
pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, OwnChild)> {
    // Held from before the start, so that the child is never taken for an adopted one.
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    let pid = Pid::from_child(&child).as_raw_nonzero().get();
    own.insert(pid);
    Ok((child, OwnChild(pid)))
}

/// Ends every child that this process has inherited, and what these leave in turn.
pub(super) fn end_adopted() {
    let start = Instant::now();
    // One round without any is not enough: a child that is killed leaves its own children to us.
    let mut quiet = 0;
    while quiet < 2 && start.elapsed() < KILL_LIMIT {
        let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        let adopted = descendants::children().into_iter();
        let adopted: Vec<Pid> =
            adopted.filter(|pid| !own.contains(&pid.as_raw_nonzero().get())).collect();
        drop(own);
        quiet = if adopted.is_empty() { quiet + 1 } else { 0 };
        for pid in adopted {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
        std::thread::sleep(STEP);
    }
}
