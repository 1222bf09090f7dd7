//! An archiving that is killed in front of every system call that changes the disk: all of
//! it or nothing, after the next command.
//!
//! The calls are those of the real program, seen through ptrace; nothing in agentd knows
//! of it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use test_project::{Node, TestProject, agentd, write};

type Tree = BTreeMap<PathBuf, String>;

/// A complete change with so many specs; one in ten is new.
pub(crate) fn set_up(root: &Path, specs: usize) {
    let change = root.join("agentd/changes/big");
    write(
        &change.join("STATE.yaml"),
        "change_id: big\nphase: complete\niteration: 0\ncode_review:\n  verdict: APPROVED\n  iteration: 1\n  reviewer: codex\n  at: 2026-11-15T09:00:00Z\n  run: 1\nllm_calls:\n  - step: review\n    run: 1\n",
    );
    write(
        &change.join("tasks.md"),
        "# Tasks: big\n\n## 1. Data Layer\n\n- [x] 1.1 All\n  Spec: s-1:R2\n",
    );
    for n in 0..specs {
        let main = format!("# Specification: S\n\n## Requirements\n\n### R1: One\n\nOne of {n}.\n");
        let taken = format!("{main}\n### R2: Theirs\n\nThey were first.\n");
        let own = "# Specification: S\n\n## Requirements\n\n### R1: One\n\nEdited.\n\n### R2: Ours\n\nAdded, R2.\n";
        let is_new = n % 10 == 9;
        write(&change.join(format!("specs/s-{n}.md")), own);
        write(&change.join(format!("base/s-{n}.md")), if is_new { "" } else { &main });
        if !is_new {
            let text = if n == 1 { &taken } else { &main };
            write(&root.join(format!("agentd/specs/s-{n}.md")), text);
        }
    }
}

/// Everything but the locks; times, and digests of texts with times in them, do not count.
fn tree(project: &TestProject) -> Tree {
    let text = |node: &Node| node.text().map_or_else(|| format!("{node:?}"), timeless);
    project.contents().iter().map(|(path, node)| (path.clone(), text(node))).collect()
}

fn timeless(text: &str) -> String {
    let is_time =
        |word: &str| word.len() == 20 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
    let is_digest = |word: &str| word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != ':');
    words
        .map(|word| {
            let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let digest = bare.strip_prefix("sha256:").unwrap_or(bare);
            let changes = bare.is_ascii() && is_time(bare) || is_digest(digest);
            if changes { "*" } else { word }
        })
        .collect()
}

/// Whether a system call changes the disk.
fn changes_disk(pid: Pid, regs: &libc::user_regs_struct) -> bool {
    let creates = |flags: u64| flags & u64::try_from(libc::O_CREAT).unwrap() != 0;
    match i64::try_from(regs.orig_rax).unwrap_or(-1) {
        libc::SYS_open => creates(regs.rsi),
        libc::SYS_openat => creates(regs.rdx),
        libc::SYS_openat2 => {
            let how = usize::try_from(regs.rdx).unwrap();
            let flags = ptrace::read(pid, std::ptr::with_exposed_provenance_mut(how)).unwrap();
            creates(u64::from_ne_bytes(flags.to_ne_bytes()))
        }
        // What goes to the terminal is not on the disk.
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 => regs.rdi > 2,
        libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_ftruncate
        | libc::SYS_fchmod
        | libc::SYS_fchmodat
        | libc::SYS_rename
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_unlink
        | libc::SYS_unlinkat
        | libc::SYS_rmdir
        | libc::SYS_mkdir
        | libc::SYS_mkdirat
        | libc::SYS_linkat => true,
        _ => false,
    }
}

/// Runs agentd and kills it in front of the call number `kill_at` that changes the disk;
/// says how many there were.
#[expect(clippy::zombie_processes, reason = "waited for by its number, as ptrace wants it")]
pub(crate) fn traced(project: &TestProject, arguments: &[&str], kill_at: Option<usize>) -> usize {
    // A shell that waits until it is watched, then becomes agentd.
    let mut child = project
        .any_command("/bin/sh")
        .args(["-c", "read -r go && exec \"$@\"", "sh"])
        .arg(agentd())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let options = ptrace::Options::PTRACE_O_TRACESYSGOOD
        | ptrace::Options::PTRACE_O_TRACEEXEC
        | ptrace::Options::PTRACE_O_EXITKILL;
    ptrace::seize(pid, options).expect("this test needs ptrace");
    ptrace::interrupt(pid).unwrap();
    let mut is_agentd = false;
    let mut count = 0;
    let mut reported = false;
    loop {
        let mut signal = None;
        match waitpid(pid, None).unwrap() {
            WaitStatus::Exited(_, code) => {
                assert_eq!(
                    (code, kill_at.is_none_or(|at| at >= count)),
                    (0, true),
                    "{arguments:?}"
                );
                return count;
            }
            WaitStatus::Signaled(_, Signal::SIGKILL, _) => return count,
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXEC) => is_agentd = true,
            WaitStatus::PtraceSyscall(_) if is_agentd => {
                let regs = ptrace::getregs(pid).unwrap();
                let enters = regs.rax == (-i64::from(libc::ENOSYS)).cast_unsigned();
                if enters && changes_disk(pid, &regs) {
                    if kill_at == Some(count) {
                        kill(pid, Signal::SIGKILL).unwrap();
                        continue;
                    }
                    count += 1;
                }
            }
            WaitStatus::Stopped(_, other) => signal = Some(other),
            _ => {}
        }
        if !reported {
            child.stdin.take().unwrap().write_all(b"go\n").unwrap();
            reported = true;
        }
        // It may have been killed in between.
        let _ = ptrace::syscall(pid, signal);
    }
}

/// The calls in front of which a command is killed: every other one, or all where `AGENTD_BARS` is set.
pub(crate) fn moments(total: usize) -> Vec<usize> {
    let step = if std::env::var_os("AGENTD_BARS").is_some() { 1 } else { 2 };
    (0..total).step_by(step).collect()
}

/// Tries each of these calls, two at a time: most of it is waiting for one process.
pub(crate) fn try_each<T: Send>(calls: &[usize], attempt: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut found = Vec::new();
        while let Some(at) = calls.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.push(attempt(*at));
        }
        found
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

/// Where the journal of an archiving is while it is under way.
pub(crate) fn journal(project: &TestProject) -> PathBuf {
    project.user().state_path(&project.root()).unwrap().join("archive.json")
}

/// Kills a command at these calls, each time from the same beginning.
fn all_or_nothing(
    specs: usize,
    prepare: &[&[&str]],
    arguments: &[&str],
    calls: impl Fn(usize) -> Vec<usize>,
) {
    let begin = || {
        let project = TestProject::new();
        set_up(&project.root(), specs);
        for arguments in prepare {
            project.run(*arguments).exits(0);
        }
        project
    };
    let project = begin();
    let before = tree(&project);
    let total = traced(&project, arguments, None);
    let after = tree(&project);
    assert_ne!(before, after);
    assert!(total > 4 * specs, "{total} calls that change the disk");
    let done = try_each(&calls(total), |at| {
        let project = begin();
        traced(&project, arguments, Some(at));
        project.run(["list"]).exits(0);
        assert!(!journal(&project).exists(), "call {at}");
        let found = tree(&project);
        if found != before && found != after {
            let differs = |(path, text): (&PathBuf, &String)| {
                (before.get(path) != Some(text)).then(|| path.display().to_string())
            };
            let partial: Vec<String> = found.iter().filter_map(differs).take(10).collect();
            panic!("killed at call {at} of {total}: neither before nor after: {partial:?}");
        }
        found == after
    });
    assert!(done.contains(&true) && done.contains(&false), "{done:?}");
}

#[test]
fn heavy_killed_archive_is_atomic() {
    all_or_nothing(3, &[], &["archive", "big"], |total| (0..total).collect());
}

#[test]
fn heavy_killed_unarchive_is_atomic() {
    let before: &[&[&str]] = &[&["archive", "big"]];
    all_or_nothing(3, before, &["unarchive", "big"], |total| (0..total).collect());
}

/// Every call would take minutes; the ends are tried one by one, the middle in steps.
#[test]
fn heavy_killed_archive_of_200_specs_is_atomic() {
    all_or_nothing(200, &[], &["archive", "big"], |total| {
        let ends = (0..12).chain(total - 20..total);
        let step = (total - 32) / 48;
        let mut calls: Vec<usize> = ends.chain((12..total - 20).step_by(step)).collect();
        calls.sort_unstable();
        calls
    });
}
