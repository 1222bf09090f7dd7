//! Locks, within a process and across processes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::ControlFlow;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use agentd_core::layout::ChangeFile;
use agentd_engine::store::{
    Holder, LockError, LockName, LockState, Project, StoreError, Waiting, lock_state,
};

use super::{child, child_project, holder, id, sandbox};

const PROCESSES: usize = 40;

fn record(project: &Project, text: &str) {
    let change = project.change(&id("mine")).unwrap();
    let lock = project.write_lock(change.id(), &holder("record")).unwrap();
    let mut state = change.read_if_exists(&ChangeFile::State).unwrap().unwrap_or_default();
    state.push_str(text);
    state.push('\n');
    change.write(&lock, &ChangeFile::State, state.as_bytes()).unwrap();
}

fn recorded(project: &Project) -> Vec<String> {
    let state = project.change(&id("mine")).unwrap().read(&ChangeFile::State).unwrap();
    state.lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "started by the test below"]
fn child_records() {
    let Some(project) = child_project() else { return };
    record(&project, &format!("pid {}", std::process::id()));
}

#[test]
fn forty_processes_leave_forty_records() {
    let (_dir, project) = sandbox();
    let start = |_| {
        let mut command = child("store::locks::child_records", project.root());
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..PROCESSES).map(start).collect();
    let pids: BTreeSet<String> = children.iter().map(|c| format!("pid {}", c.id())).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let lines = recorded(&project);
    assert_eq!(lines.len(), PROCESSES);
    assert_eq!(lines.into_iter().collect::<BTreeSet<_>>(), pids);
}

#[test]
fn threads_of_one_process_take_turns_too() {
    let (_dir, project) = sandbox();
    thread::scope(|scope| {
        for i in 0..PROCESSES {
            let project = &project;
            scope.spawn(move || record(project, &format!("thread {i}")));
        }
    });
    assert_eq!(recorded(&project).into_iter().collect::<BTreeSet<_>>().len(), PROCESSES);
}

#[test]
#[ignore = "started by the tests below"]
fn child_holds_the_run_lock() {
    let Some(project) = child_project() else { return };
    let _lock = project.try_run_lock(&id("mine"), &holder("agentd plan mine")).unwrap();
    println!("held");
    let _ = std::io::stdin().read(&mut [0]);
}

fn start_holder(project: &Project) -> Child {
    let mut command = child("store::locks::child_holds_the_run_lock", project.root());
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.as_mut().unwrap());
    assert!(output.lines().map_while(Result::ok).any(|line| line.ends_with("held")));
    child
}

#[test]
fn a_refusal_names_the_holder_and_death_frees_the_lock() {
    let (_dir, project) = sandbox();
    let mut child = start_holder(&project);
    let error = project.try_run_lock(&id("mine"), &holder("agentd impl mine")).unwrap_err();
    let text = error.to_string();
    let expected =
        format!("change `mine` is held by pid {} (agentd plan mine) since 2", child.id());
    assert!(text.starts_with(&expected), "{text}");
    let name = LockName::Run(id("mine"));
    match lock_state(project.dir(), &name).unwrap() {
        LockState::Held(Some(holder)) => assert_eq!(holder.pid, child.id()),
        other => panic!("{other:?}"),
    }
    // The child of a holder may write.
    record(&project, "while the run lock is held");

    child.kill().unwrap();
    child.wait().unwrap();
    let stale = fs::read_to_string(project.root().join("agentd/.locks/mine.run")).unwrap();
    let stale: Holder = serde_json::from_str(&stale).unwrap();
    assert_eq!(stale.command, "agentd plan mine", "a dead holder leaves its name");
    assert_eq!(lock_state(project.dir(), &name).unwrap(), LockState::Free);
    drop(project.try_run_lock(&id("mine"), &holder("agentd impl mine")).unwrap());
    let ignored = fs::read_to_string(project.root().join("agentd/.locks/.gitignore")).unwrap();
    assert_eq!(ignored, "*\n");
}

#[test]
fn waiting_ends_with_the_holder_or_the_time_limit() {
    let (_dir, project) = sandbox();
    let change = id("mine");
    let mut child = start_holder(&project);
    let pid = child.id();

    let mut notices = 0;
    let count = |waiting: &Waiting| {
        assert_eq!(waiting.holder.as_ref().unwrap().pid, pid);
        notices += 1;
        ControlFlow::Continue(())
    };
    let time = Duration::from_millis(500);
    let error = project.run_lock(&change, &holder("test"), time, count).unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    assert!((1..=4).contains(&notices), "{notices}");

    let time = Duration::from_mins(1);
    let stop = |_: &Waiting| ControlFlow::Break(());
    let error = project.run_lock(&change, &holder("test"), time, stop).unwrap_err();
    assert!(matches!(error, LockError::Cancelled { .. }), "{error}");

    let end = |_: &Waiting| {
        drop(child.stdin.take());
        ControlFlow::Continue(())
    };
    drop(project.run_lock(&change, &holder("test"), time, end).unwrap());
    child.wait().unwrap();
}

#[test]
fn locks_of_other_kinds_and_changes_are_free() {
    let (_dir, project) = sandbox();
    project.create_change(&id("other")).unwrap();
    let _run = project.try_run_lock(&id("mine"), &holder("a")).unwrap();
    let write = project.write_lock(&id("mine"), &holder("a")).unwrap();
    let _other = project.try_run_lock(&id("other"), &holder("a")).unwrap();
    let _all = project.project_lock(&holder("a")).unwrap();
    assert!(matches!(
        project.try_run_lock(&id("mine"), &holder("b")),
        Err(LockError::Held { holder: Some(_), .. })
    ));
    let other = project.change(&id("other")).unwrap();
    let error = other.write(&write, &ChangeFile::Tasks, b"x").unwrap_err();
    assert!(matches!(error, StoreError::WrongLock { .. }), "{error}");
}

#[test]
fn a_removed_lock_file_is_created_again() {
    let (_dir, project) = sandbox();
    drop(project.try_run_lock(&id("mine"), &holder("a")).unwrap());
    fs::remove_dir_all(project.root().join("agentd/.locks")).unwrap();
    assert_eq!(lock_state(project.dir(), &LockName::Run(id("mine"))).unwrap(), LockState::Free);
    drop(project.try_run_lock(&id("mine"), &holder("a")).unwrap());
}

/// Attack L13: of those who asked again and again, the lucky ones won.
#[test]
fn a_waiter_gets_the_lock_before_a_greedy_holder() {
    const TURNS: usize = 100;
    let (_dir, project) = sandbox();
    let mine = id("mine");
    let hold = || project.write_lock(&mine, &holder("hog")).unwrap();
    let first = hold();
    let done = std::sync::atomic::AtomicBool::new(false);
    let turns = thread::scope(|scope| {
        let (began, begun) = std::sync::mpsc::channel();
        let (project, mine, done) = (&project, &mine, &done);
        scope.spawn(move || {
            let waiting = |_: &Waiting| {
                let _ = began.send(());
                ControlFlow::Continue(())
            };
            let _lock = project.write_lock_or(mine, &holder("waiter"), waiting).unwrap();
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        begun.recv().unwrap();
        drop(first);
        let mut turns = 0;
        while turns < TURNS && !done.load(std::sync::atomic::Ordering::SeqCst) {
            let _lock = hold();
            thread::sleep(Duration::from_millis(3));
            turns += 1;
        }
        turns
    });
    assert!(turns < TURNS / 4, "the waiter got its turn after {turns}");
}

/// Attack L4: what a killed writer left beside the locks stayed there forever.
#[test]
fn leftovers_beside_the_locks_are_removed() {
    let (_dir, project) = sandbox();
    drop(project.try_run_lock(&id("mine"), &holder("first")).unwrap());
    let left = project.root().join("agentd/.locks/.agentd-tmp-123-4");
    fs::write(&left, "half").unwrap();
    drop(project.write_lock(&id("mine"), &holder("a tool")).unwrap());
    drop(project.try_run_lock(&id("mine"), &holder("second")).unwrap());
    assert!(!left.exists());
}
