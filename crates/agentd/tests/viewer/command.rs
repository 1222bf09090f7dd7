//! The command itself: what it prints and how it ends.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{Project, Viewer};

#[test]
fn the_first_line_is_the_address_and_signals_end_it_well() {
    let project = Project::new();
    for signal in [Signal::INT, Signal::TERM] {
        let mut viewer = Viewer::start_with(project.root(), &["add-oauth"]);
        let expected = format!("http://127.0.0.1:{}/changes/add-oauth?token=", viewer.port);
        assert!(viewer.address.starts_with(&expected), "{}", viewer.address);
        assert_eq!(viewer.get("/changes/add-oauth").status, 200);
        let pid = Pid::from_raw(i32::try_from(viewer.pid()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        assert!(viewer.wait().success());
    }
}

#[test]
fn a_port_can_be_chosen_and_one_that_is_taken_is_told() {
    let project = Project::new();
    let viewer = Viewer::start(project.root());
    let output = Command::new(env!("CARGO_BIN_EXE_agentd"))
        .args(["view", "--no-open", "--json", "--port", &viewer.port.to_string()])
        .current_dir(project.root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(error["error"]["kind"], "port", "{error}");
}

#[test]
fn a_change_that_is_not_there_is_told_at_once() {
    let project = Project::new();
    let output = Command::new(env!("CARGO_BIN_EXE_agentd"))
        .args(["view", "--no-open", "add-oaut"])
        .current_dir(project.root())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("add-oauth"));
}
