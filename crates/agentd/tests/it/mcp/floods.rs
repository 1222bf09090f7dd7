//! Clients that send more than they read, and lines that are no messages.

use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CHANGE, Client, Servers as _, plan, project};

/// How much memory a process has, in kilobytes.
#[cfg(target_os = "linux")]
fn memory(client: &Client) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Attack M4: 3.2 GB for 29,850 requests whose answers nobody read.
#[cfg(target_os = "linux")]
#[test]
fn heavy_slow_client_is_not_read() {
    const REQUESTS: u64 = 3000;
    let project = project();
    let mut client = project.free_client();
    let before = memory(&client);
    let mut input = client.input.take().unwrap();
    let sender = thread::spawn(move || {
        for id in 0..REQUESTS {
            let line = json!({"jsonrpc": "2.0", "id": 1000 + id, "method": "tools/list"});
            // Refused lines are answered, too, and no way around the limit.
            writeln!(input, "{line}\n[]\nnonsense").unwrap();
        }
        input
    });
    // Until the pipes are full: nothing that could be waited for.
    thread::sleep(Duration::from_millis(700));
    assert!(!sender.is_finished(), "everything was read");
    let grown = memory(&client) - before;
    assert!(grown < 20_000, "{grown} kB more");
    let (mut answers, mut errors) = (0, 0);
    while answers < REQUESTS || errors < 2 * REQUESTS {
        let message = client.receive();
        match message.get("error") {
            Some(error) if error["code"] == -32700 || error["code"] == -32600 => errors += 1,
            Some(error) => panic!("{error}"),
            None => answers += 1,
        }
    }
    let _input = sender.join().unwrap();
    let grown = memory(&client) - before;
    assert!(grown < 20_000, "{grown} kB more");
}

#[test]
fn too_long_message_is_answered() {
    let project = project();
    let mut client = project.free_client();
    for length in [16 * 1024 * 1024 + 1, 40 * 1024 * 1024] {
        client.send_line(&"x".repeat(length));
        let answer = client.receive();
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        assert_eq!(answer.get("id"), Some(&Value::Null), "{answer}");
        client.result("tools/list", json!({}));
    }
}

/// Sixteen calls wait for a lock, and the seventeenth for them.
#[test]
fn heavy_hangup_is_noticed_while_nothing_is_read() {
    let project = project();
    let _lock = super::lifecycle::hold_lock(&project);
    let mut client = project.client("planner");
    for _ in 0..40 {
        let params = json!({"name": "create_proposal", "arguments": plan::proposal()});
        client.request("tools/call", params);
    }
    client.close_input();
    let start = Instant::now();
    while client.child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(10), "the server waits for the lock");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn one_of_many_waiting_calls_is_canceled() {
    let project = project();
    let lock = super::lifecycle::hold_lock(&project);
    let mut client = project.client("planner");
    let params = json!({"name": "create_proposal", "arguments": plan::proposal()});
    let ids: Vec<u64> = (0..16).map(|_| client.request("tools/call", params.clone())).collect();
    for id in &ids {
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id}}));
    }
    client.result("ping", json!({}));
    drop(lock);
    assert!(!project.root().join(format!("agentd/changes/{CHANGE}/proposal.md")).exists());
}

/// Attack L2, and the codes of JSON-RPC 2.0.
#[test]
fn invalid_requests_get_their_error_code() {
    let project = project();
    let mut client = project.free_client();
    for (line, code, id) in [
        ("this is no JSON", -32700, Value::Null),
        ("{\"jsonrpc\":\"2.0\",\"id\":", -32700, Value::Null),
        ("\u{0}\u{1}", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Value::Null),
        ("17", -32600, Value::Null),
        ("null", -32600, Value::Null),
        (r#"{"id": 77}"#, -32600, json!(77)),
        (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#, -32602, json!(5)),
        (r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{}}"#, -32602, json!(6)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[1]}"#, -32602, json!(7)),
        (
            r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"read_file","arguments":[1]}}"#,
            -32602,
            json!(8),
        ),
        (r#"{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{}}"#, -32602, json!(9)),
        (r#"{"jsonrpc":"2.0","id":10,"method":"no/such","params":{}}"#, -32601, json!(10)),
    ] {
        client.send_line(line);
        let answer = client.receive();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
        assert_eq!(answer.get("id"), Some(&id), "{line}: {answer}");
    }
    // These want no answer.
    client.send_line(r#"{"jsonrpc":"2.0","method":"no/such/notification"}"#);
    client.send_line(r#"{"jsonrpc":"1.0","method":"x"}"#);
    client.send_line("");
    client.result("ping", json!({}));
}

#[test]
fn line_before_handshake_is_answered() {
    let project = project();
    let mut client = Client::spawn(project.server(&[]));
    client.send_line("nonsense");
    let (lines, _) = client.finish();
    assert_eq!(lines.len(), 1, "{lines:?}");
    insta::assert_snapshot!(lines[0], @r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the line is not JSON: expected ident at line 1 column 2"}}"#);
}
