//! Finding and ending the processes that a child has left behind.
//!
//! On Linux the supervisor is a subreaper: whatever the child's descendants do
//! (leave the group, start a session, fork twice), once their parent is gone they
//! are children of the supervisor, and nobody else can reap them, so that their
//! ids cannot be reused while they are being killed. Elsewhere only the group is
//! known.

use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

/// How long descendants get to end by themselves once their pipes are closed.
const SETTLE: Duration = Duration::from_millis(300);
/// How long they get after SIGTERM.
const TERM_GRACE: Duration = Duration::from_millis(700);
/// How long killing continues before giving up on processes that the kernel keeps.
const KILL_LIMIT: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(10);
/// How long stopping everything may take: a thread in the kernel stops when it comes out of it.
#[cfg(target_os = "linux")]
const FREEZE_LIMIT: Duration = Duration::from_secs(3);
#[cfg(target_os = "linux")]
const FREEZE_STEP: Duration = Duration::from_millis(2);

/// Ends everything that is left, the group first, and returns how many processes
/// had to be signaled. The leader is dead or dying and not reaped yet, so that
/// the id of its group stays reserved.
pub(super) fn end_all(leader: Pid, mut gentle: bool) -> i32 {
    let mut signalled = std::collections::BTreeSet::new();
    let start = Instant::now();
    let mut terminated = None;
    loop {
        let left = living_children(leader);
        if left.is_empty() {
            break;
        }
        let waited = start.elapsed();
        if waited > KILL_LIMIT {
            break;
        }
        if gentle && waited > SETTLE && terminated.is_none() {
            signal(leader, &left, Signal::TERM);
            signalled.extend(left.iter().map(|pid| pid.as_raw_nonzero()));
            terminated = Some(Instant::now());
        }
        gentle = gentle && terminated.is_none_or(|at| at.elapsed() < TERM_GRACE);
        if !gentle {
            signal(leader, &left, Signal::KILL);
            signalled.extend(left.iter().map(|pid| pid.as_raw_nonzero()));
        }
        std::thread::sleep(STEP);
    }
    // Members of the group that are not ours to reap (no subreaper here).
    let _ = kill_process_group(leader, Signal::KILL);
    let _ = waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    i32::try_from(signalled.len()).unwrap_or(i32::MAX)
}

/// A signal to the group and to every child that has left it.
pub(super) fn signal(leader: Pid, children: &[Pid], signal: Signal) {
    let _ = kill_process_group(leader, signal);
    for child in children {
        let _ = kill_process(*child, signal);
    }
}

/// Stops every other process of the namespace of which this is the first, and returns whether all
/// have stopped. A process that is about to fork when the signal comes stops before it does.
#[cfg(target_os = "linux")]
pub(super) fn freeze_namespace() -> bool {
    let start = Instant::now();
    // One look is not enough: a process that was not listed may have started another.
    let mut quiet = 0;
    while quiet < 2 {
        if start.elapsed() > FREEZE_LIMIT {
            return false;
        }
        // The group of the first process stands for everybody that it may signal.
        let _ = kill_process_group(Pid::INIT, Signal::STOP);
        quiet = if all_stopped() { quiet + 1 } else { 0 };
        if quiet < 2 {
            std::thread::sleep(FREEZE_STEP);
        }
    }
    true
}

/// Not possible on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn freeze_namespace() -> bool {
    false
}

/// Lets every other process of the namespace continue.
pub(super) fn thaw_namespace() {
    let _ = kill_process_group(Pid::INIT, Signal::CONT);
}

/// Whether every thread of every other process has stopped or ended.
#[cfg(target_os = "linux")]
fn all_stopped() -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let own = std::process::id();
    let others = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    others.filter(|pid: &u32| *pid != own).all(|pid| {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
        tasks.flatten().all(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat"));
            // `pid (name) state …`, where the name may hold anything.
            let state =
                stat.ok().and_then(|stat| stat.rsplit_once(')')?.1.trim_start().chars().next());
            state.is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'X' | 'x'))
        })
    })
}

/// Reaps dead children other than the leader.
pub(super) fn reap_orphans(leader: Pid) {
    living_children(leader);
}

/// The children that are alive, except the leader if it is dead; dead ones are
/// reaped on the way.
pub(super) fn living_children(leader: Pid) -> Vec<Pid> {
    let mut living = Vec::new();
    for child in children() {
        let mut options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        if child == leader {
            options |= WaitIdOptions::NOWAIT;
        }
        if let Ok(None) = waitid(WaitId::Pid(child), options) {
            living.push(child);
        }
    }
    living
}

/// The children of this process.
#[cfg(target_os = "linux")]
pub(super) fn children() -> Vec<Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut listed = false;
    let mut found = Vec::new();
    for task in tasks {
        // Missing where the kernel was built without it.
        if let Ok(text) = std::fs::read_to_string(task.path().join("children")) {
            listed = true;
            found.extend(text.split_ascii_whitespace().filter_map(pid));
        }
    }
    if listed { found } else { children_by_scan() }
}

#[cfg(target_os = "linux")]
fn children_by_scan() -> Vec<Pid> {
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child = |stat: &str| {
        // `pid (name) state ppid …`, where the name may hold anything.
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1))
            == Some(&own)
    };
    processes
        .filter(|entry| {
            std::fs::read_to_string(entry.path().join("stat")).is_ok_and(|stat| is_child(&stat))
        })
        .filter_map(|entry| entry.file_name().to_str().and_then(pid))
        .collect()
}

#[cfg(target_os = "linux")]
fn pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

/// Unknown on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn children() -> Vec<Pid> {
    Vec::new()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_finding_children_agree() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(children().contains(&pid));
        assert!(children_by_scan().contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children().contains(&pid));
    }
}
