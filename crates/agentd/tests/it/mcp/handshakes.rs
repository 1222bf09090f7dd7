//! The three generations of the protocol.

use serde_json::{Value, json};

use test_project::mask;

use super::{CHANGE, Client, Servers as _, plan, planned, project};

#[test]
fn versions_with_handshake() {
    let project = project();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::spawn(project.server(&["--change", CHANGE, "--role", "planner"]));
        let result = client.initialize(version);
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "agentd");
        assert!(result["capabilities"]["tools"].is_object(), "{result}");
        assert!(result["capabilities"]["resources"].is_object(), "{result}");
        insta::allow_duplicates! { insta::assert_snapshot!(result["instructions"], @r#""agentd keeps the plan of a change: proposal.md, specs/<spec>.md, tasks.md. You work on the change `add-oauth`; its documents are in agentd/changes/add-oauth/. Pass change_id \"add-oauth\" to every tool. Order: create_proposal, then create_spec for every affected spec, then create_tasks. Fix a document with edit_file. Documents are written with these tools only. A call that is refused has changed nothing and says what to correct; warnings in an answer are worth fixing.""#); }
        assert_eq!(client.result("ping", json!({})), json!({}));
        let tools = client.result("tools/list", json!({}));
        assert_eq!(tools["tools"].as_array().unwrap().len(), 9);
        let call = json!({"name": "list_directory", "arguments": plan::list()});
        let answer = client.ask("tools/call", call);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        assert!(answer["result"].get("resultType").is_none(), "{answer}");
    }
}

/// What a request of 2026-07-28 carries instead of a handshake.
fn stateless(params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "stateless-client", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    params
}

#[test]
fn stateless_version_needs_no_handshake() {
    let project = project();
    let mut client = Client::spawn(project.server(&["--change", CHANGE, "--role", "planner"]));
    let found = client.result("server/discover", stateless(json!({})));
    insta::assert_snapshot!(mask(&format!("{found:#}"), &project.base()), @r#"
    {
      "resultType": "complete",
      "supportedVersions": [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28"
      ],
      "capabilities": {
        "resources": {},
        "tools": {}
      },
      "instructions": "agentd keeps the plan of a change: proposal.md, specs/<spec>.md, tasks.md. You work on the change `add-oauth`; its documents are in agentd/changes/add-oauth/. Pass change_id \"add-oauth\" to every tool. Order: create_proposal, then create_spec for every affected spec, then create_tasks. Fix a document with edit_file. Documents are written with these tools only. A call that is refused has changed nothing and says what to correct; warnings in an answer are worth fixing.",
      "ttlMs": 0,
      "cacheScope": "private",
      "_meta": {
        "io.modelcontextprotocol/serverInfo": {
          "name": "agentd",
          "version": "[VERSION]"
        }
      }
    }
    "#);
    let tools = client.result("tools/list", stateless(json!({})));
    assert_eq!(tools["tools"].as_array().unwrap().len(), 9);
    let call = stateless(json!({"name": "create_proposal", "arguments": plan::proposal()}));
    let result = client.result("tools/call", call);
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["structuredContent"]["path"], "agentd/changes/add-oauth/proposal.md");
    let resources = client.result("resources/list", stateless(json!({})));
    assert_eq!(resources["resources"][0]["uri"], "agentd://changes/add-oauth/proposal.md");
    let uri = json!({"uri": "agentd://changes/add-oauth/tasks.md"});
    let answer = client.ask("resources/read", stateless(uri));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn stateless_call_may_come_first() {
    let project = planned();
    let mut client = Client::spawn(project.server(&["--change", CHANGE, "--role", "challenger"]));
    let call = stateless(json!({"name": "append_review", "arguments": plan::plan_review()}));
    let result = client.result("tools/call", call);
    assert_eq!(result["structuredContent"]["iteration"], 1);
    let bare = client.ask("tools/list", json!({}));
    insta::assert_snapshot!(format!("{:#}", bare["error"]), @r#"
    {
      "code": -32602,
      "message": "request _meta is missing or has malformed required fields: io.modelcontextprotocol/protocolVersion, io.modelcontextprotocol/clientCapabilities"
    }
    "#);
}

#[test]
fn unknown_version_gets_a_known_one() {
    let project = project();
    let mut client = Client::spawn(project.server(&[]));
    assert_eq!(client.initialize("1999-01-01")["protocolVersion"], "2025-11-25");
}
