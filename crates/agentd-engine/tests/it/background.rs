//! Commands that go on by themselves, and how they are stopped.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use agentd_core::state::Placement;
use agentd_engine::store::Holder;
use agentd_engine::workflow::background::{
    BackgroundCommand, BackgroundFailure, BackgroundOutcome, StartError, StopError, last, start,
    stop,
};
use jiff::Timestamp;
use test_project::{TestProject, write_script};

fn project() -> TestProject {
    TestProject::new().change("add-oauth")
}

/// A stand-in for agentd that does this.
fn program(project: &TestProject, script: &str) -> PathBuf {
    let path = project.base().join("stand-in");
    write_script(&path, script);
    path
}

fn outcome(project: &TestProject) -> BackgroundOutcome {
    last(&project.store(), &project.id()).unwrap().unwrap().outcome
}

fn ended(project: &TestProject) -> BackgroundOutcome {
    let begun = Instant::now();
    while outcome(project) == BackgroundOutcome::Running {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    outcome(project)
}

#[test]
fn a_command_is_started_and_its_result_is_known() {
    let project = project();
    let (store, id) = (project.store(), project.id());
    assert_eq!(last(&store, &id).unwrap(), None);
    let go = project.base().join("go");
    let script = format!(
        "echo \"$* in $PWD\" > args; while [ ! -e {} ]; do sleep 0.01; done; echo '{{\"version\": 1}}'",
        go.display()
    );
    let agentd = program(&project, &script);
    let begin = |command| start(&store, &id, command, Some(Placement::Branch), &agentd);
    begin(BackgroundCommand::Impl).unwrap();
    assert_eq!(outcome(&project), BackgroundOutcome::Running);
    // A second click, or a second viewer.
    let second = begin(BackgroundCommand::Impl);
    assert!(matches!(second, Err(StartError::Running { .. })), "{second:?}");
    fs::write(&go, "").unwrap();
    assert_eq!(ended(&project), BackgroundOutcome::Done);
    let root = fs::canonicalize(project.root()).unwrap();
    let expected = format!("impl add-oauth --json in {}\n", root.display());
    assert_eq!(project.read_root("args"), expected);
    begin(BackgroundCommand::Plan).unwrap();
    ended(&project);
    assert!(project.read_root("args").starts_with("plan add-oauth --git branch --json in "));
}

#[test]
fn why_a_command_failed_is_known() {
    let project = project();
    let (store, id) = (project.store(), project.id());
    let run = |script: &str| {
        start(&store, &id, BackgroundCommand::Plan, None, &program(&project, script)).unwrap();
        let BackgroundOutcome::Failed(failure) = ended(&project) else { panic!() };
        failure
    };
    let error = r#"echo '{"version":1,"error":{"kind":"budget","message":"too dear","cause":null,"hints":["pay"]}}'; exit 1"#;
    let expected = BackgroundFailure {
        kind: "budget".into(),
        message: "too dear".into(),
        cause: None,
        hints: vec!["pay".into()],
    };
    assert_eq!(run(error), expected);
    let killed = run("echo 'last words' >&2; kill -9 $$");
    assert_eq!((killed.kind.as_str(), killed.cause.as_deref()), ("", Some("last words")));
    assert_eq!(run("echo nonsense; exit 3").cause, None);
}

/// A process that has locked the change, as its holder says or not.
fn holder(project: &TestProject, signed_by: impl Fn(u32) -> Holder) -> Child {
    let locks = project.root().join("agentd/.locks");
    fs::create_dir_all(&locks).unwrap();
    let lock = locks.join("add-oauth.run");
    fs::write(&lock, "").unwrap();
    let script = format!("exec 9<>{0}; flock 9; echo > {0}.taken; exec sleep 60", lock.display());
    let child = Command::new("bash").args(["-c", &script]).spawn().unwrap();
    while !locks.join("add-oauth.run.taken").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    fs::write(&lock, serde_json::to_vec(&signed_by(child.id())).unwrap()).unwrap();
    child
}

fn here(pid: u32) -> Holder {
    Holder { pid, ..Holder::this_process("agentd impl add-oauth", Timestamp::now()) }
}

#[test]
fn the_process_that_works_on_a_change_is_stopped() {
    let project = project();
    let (store, id) = (project.store(), project.id());
    let nobody = stop(&store, &id);
    assert!(matches!(nobody, Err(StopError::NotRunning { .. })), "{nobody:?}");
    let mut child = holder(&project, here);
    assert_eq!(stop(&store, &id).unwrap().pid, child.id());
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2), "{status}");
    let gone = stop(&store, &id);
    assert!(matches!(gone, Err(StopError::NotRunning { .. })), "{gone:?}");
}

/// Anyone who can write to the project can write any number there.
#[test]
fn no_other_process_is_stopped() {
    let project = project();
    let (store, id) = (project.store(), project.id());
    let mut bystander = Command::new("sleep").arg("60").spawn().unwrap();
    let victim = bystander.id();
    for pid in [victim, 1, 0, u32::MAX, std::process::id()] {
        let mut child = holder(&project, |_| here(pid));
        let refused = stop(&store, &id);
        assert!(matches!(refused, Err(StopError::Unknown { .. })), "{pid}: {refused:?}");
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(project.root().join("agentd/.locks/add-oauth.run.taken")).unwrap();
    }
    let mut child = holder(&project, |pid| Holder { host: "elsewhere".into(), ..here(pid) });
    let elsewhere = stop(&store, &id);
    assert!(matches!(elsewhere, Err(StopError::Elsewhere { .. })), "{elsewhere:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(bystander.try_wait().unwrap().is_none(), "it was not touched");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}
