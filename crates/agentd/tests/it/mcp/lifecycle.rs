//! How the server begins, ends, waits and keeps its streams apart.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use test_project::{TestProject, agentd};

use super::{CHANGE, Client, Servers as _, plan, project};

/// Waits for a process to end.
fn ends_within(client: &mut Client, limit: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        if client.child.try_wait().unwrap().is_some() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn closed_input_ends_the_server() {
    let project = project();
    for shake_hands in [false, true] {
        let mut client = Client::spawn(project.server(&[]));
        if shake_hands {
            client.initialize("2025-06-18");
        }
        client.close_input();
        assert!(ends_within(&mut client, Duration::from_secs(1)));
        assert!(client.child.wait().unwrap().success());
    }
}

#[test]
fn requests_before_eof_are_answered() {
    let project = project();
    let mut client = Client::spawn(project.server(&["--change", CHANGE, "--role", "planner"]));
    client.initialize("2025-06-18");
    for i in 0..5 {
        client.request(
            "tools/call",
            json!({"name": "create_spec", "arguments": plan::spec(&format!("spec-{i}"))}),
        );
    }
    let (lines, _) = client.finish();
    assert_eq!(lines.len(), 5, "{lines:?}");
    for line in lines {
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["result"]["isError"], false, "{line}");
    }
}

/// Holds the write lock of the change, as another agentd would.
pub(crate) fn hold_lock(project: &TestProject) -> std::fs::File {
    std::fs::create_dir_all(project.root().join("agentd/.locks")).unwrap();
    let file = std::fs::File::create(project.root().join(format!("agentd/.locks/{CHANGE}.write")))
        .unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn wait_is_reported_and_can_be_canceled() {
    let project = project();
    let lock = hold_lock(&project);
    let mut client = project.client("planner");
    let params = json!({"name": "create_proposal", "arguments": plan::proposal(), "_meta": {"progressToken": "p1"}});
    let id = client.request("tools/call", params);
    let progress = client.receive();
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p1");
    insta::assert_snapshot!(progress["params"]["message"], @r#""waiting for the files of change `add-oauth`, held by another process""#);
    // Others are served meanwhile.
    let ping = client.request("ping", json!({}));
    while client.receive()["id"] != ping {}
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    thread::sleep(Duration::from_millis(400));
    drop(lock);
    let after = client.ok("create_spec", plan::spec("auth-flow"));
    assert!(after["path"].is_string());
    assert!(
        !project.root().join("agentd/changes/add-oauth/proposal.md").exists(),
        "cancelled is not done"
    );
}

#[test]
fn hanging_up_ends_a_wait() {
    let project = project();
    let _lock = hold_lock(&project);
    let mut client = project.client("planner");
    client.request("tools/call", json!({"name": "create_proposal", "arguments": plan::proposal()}));
    thread::sleep(Duration::from_millis(300));
    client.close_input();
    assert!(ends_within(&mut client, Duration::from_secs(1)));
}

#[test]
fn stdout_carries_only_the_protocol() {
    let project = project();
    let mut command = project.server(&["--change", CHANGE, "--role", "planner"]);
    command.env("RUST_LOG", "trace").env("RUST_BACKTRACE", "1");
    let mut client = Client::spawn(command);
    client.initialize("2025-11-25");
    client.send_line("this is no JSON");
    client.send_line("{\"jsonrpc\":\"2.0\",\"id\":");
    client.send_line("[]");
    client.send_line("");
    client.send_line("{\"id\": 77}");
    client.send_line("\u{0}\u{1}\u{1b}[31m");
    client.request("no/such/method", json!({}));
    client.request("tools/call", json!({"name": "nothing"}));
    client.request("tools/call", json!({"name": "read_file", "arguments": [1]}));
    client.request("tools/call", json!({"arguments": {}}));
    client.request("tools/call", json!({"name": "read_file"}));
    // A directory where a document should be: a failure of the machine, not of the model.
    std::fs::create_dir_all(project.root().join("agentd/changes/add-oauth/tasks.md")).unwrap();
    client.request("tools/call", json!({"name": "create_tasks", "arguments": plan::tasks()}));
    client.request("ping", json!({}));
    let (lines, _stderr) = client.finish();
    assert!(lines.len() >= 6, "{lines:?}");
    for line in &lines {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
    }
}

#[test]
fn missing_project_is_reported_on_stderr() {
    let output = TestProject::empty().run(["mcp"]);
    assert!(output.code != 0 && output.stdout.is_empty(), "{output}");
    assert!(!output.stderr.is_empty());
}

/// A parent that dies while a sibling still holds the pipe open.
#[cfg(target_os = "linux")]
#[test]
fn a_dead_parent_ends_the_server() {
    let project = project();
    let fifo = project.root().join("in");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // The shell starts the server and dies; the test holds the other end of the fifo.
    let script = format!("{} mcp <in >out 2>err & echo $! >pid; sleep 0.3", agentd().display());
    let mut shell =
        Command::new("sh").arg("-c").arg(script).current_dir(project.root()).spawn().unwrap();
    let _held = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    shell.wait().unwrap();
    let pid = project.read_root("pid").trim().to_owned();
    let start = Instant::now();
    let alive = || {
        let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !line.is_empty() && !line.contains(") Z ")
    };
    while alive() {
        assert!(start.elapsed() < Duration::from_secs(3), "the server outlives its parent");
        thread::sleep(Duration::from_millis(20));
    }
    insta::assert_snapshot!(project.read_root("err"), @"agentd mcp: the process that started agentd mcp has ended");
}
