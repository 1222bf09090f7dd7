//! P28, lesson 2: the cause of a missing document is what became of the tools that were called. These
//! are the kinds that a real CLI does not show on demand; the others are in the tests of real agents.

use std::fmt::Write as _;
use std::fs;

use agentd_core::agent::Role;
use agentd_core::layout::ChangeFile;
use agentd_engine::agents::step::Artifact;
use agentd_engine::explain::Explain as _;
use serde_json::{Value, json};

use crate::steps::{ask, scripted};

/// A call of a tool of agentd, as Claude Code prints it.
fn call(id: &str, tool: &str) -> Value {
    let name = format!("mcp__agentd__{tool}");
    json!({"type": "assistant", "message": {"content": [
        {"type": "tool_use", "id": id, "name": name, "input": {}}]}})
}

fn answer(id: &str, is_error: bool, text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": id, "is_error": is_error, "content": text}]}})
}

/// A tool that is called and fails with this text.
fn fails(tool: &str, text: &str) -> Vec<Value> {
    vec![call(tool, tool), answer(tool, true, text)]
}

fn works(tool: &str) -> Vec<Value> {
    vec![call(tool, tool), answer(tool, false, "Wrote it.")]
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_kind_of_failed_call_has_its_cause() {
    let denied = json!({"type": "result", "subtype": "success", "is_error": false, "result": "Sorry.",
        "permission_denials": [{"tool_name": "mcp__agentd__create_proposal"}]});
    let own = json!({"type": "assistant", "message": {"content": [
        {"type": "tool_use", "id": "b", "name": "Bash", "input": {}}]}});
    let no_words = json!({"type": "result", "subtype": "success", "is_error": false, "result": ""});
    let create = "create_proposal";
    // A name, what is printed between the session and the end, and what is done to the disk.
    let cases: Vec<(&str, Vec<Value>, &str)> = vec![
        ("the server died (gemini, claude)", fails(create, "MCP error -32000: Connection closed"), ""),
        ("the server died (codex)", fails(create, "tool call error: Transport closed"), ""),
        ("no answer in time", fails(create, "MCP error -32001: Request timed out"), ""),
        ("canceled", fails(create, "The call was cancelled by the client"), ""),
        ("never answered", vec![call("1", create)], ""),
        ("denied by the CLI", [fails(create, "Claude requested permissions to use mcp__agentd__create_proposal, but you haven't granted it yet."), vec![denied]].concat(), ""),
        ("success without a document", works(create), ""),
        ("the same text again", works(create), "again"),
        ("another document", works("create_spec"), "mkdir -p $C/specs; echo x > $C/specs/other.md"),
        ("another document, by hand", vec![], "echo x > $C/tasks.md"),
        ("answers instead of a proposal", works("create_clarifications"), "echo x > $C/clarifications.md"),
        ("a tool of the CLI only", vec![own, answer("b", false, "ok")], ""),
        ("a failed command of the CLI", vec![json!({"type": "assistant", "message": {"content": [
            {"type": "tool_use", "id": "b", "name": "Bash", "input": {}}]}}), answer("b", true, "exit 1")], ""),
        ("refused, then only read", [fails(create, "No."), works("read_file")].concat(), ""),
        ("two tools refused", [fails("write_spec", "First."), fails(create, "Second.")].concat(), ""),
        ("three times", [fails(create, "a"), fails(create, "b"), fails(create, "c")].concat(), ""),
        ("no reason", fails(create, ""), ""),
        ("a wrapped reason", fails(create, "<tool_use_error>InputValidationError: bad</tool_use_error>"), ""),
        ("a reason of several lines", fails(create, "Not valid.\n1. P001: no summary\n2. P002: no why"), ""),
        ("control characters", fails(create, "\u{1b}[31mred\u{7}\u{202e}"), ""),
        ("a secret", fails(create, "key sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA refused"), ""),
        ("somebody else writes", fails(create, "the files of change `add-login` is still held by pid 7"), ""),
        ("the disk is full", fails(create, "cannot write `proposal.md`: No space left on device"), ""),
        ("an answer without a call", vec![answer("9", true, "who asked?")], ""),
        ("nothing at all", vec![no_words], ""),
    ];
    let mut table = String::new();
    for (name, lines, done) in &cases {
        let ends = lines.iter().any(|line| line["type"] == "result");
        let end = if ends { "" } else { "cat end" };
        // Where nothing else is printed, the agent says something.
        let say = if lines.iter().any(|line| line["type"] == "assistant") { "" } else { "cat say" };
        let again = *done == "again";
        let done = if again { "" } else { done };
        let script = format!("cat start lines\n{}\n{done}\n{end}", if ends { "" } else { say });
        let (project, agents) = scripted(&script, "");
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        project.write_root("lines", text);
        fs::create_dir_all(project.path("specs")).unwrap();
        if again {
            fs::copy(project.root().join("good.md"), project.path("proposal.md")).unwrap();
        }
        let file = Artifact::File(ChangeFile::Proposal);
        let error = ask(&agents, Role::Planner, "proposal-gen", file).0.unwrap_err();
        let report = error.explain();
        writeln!(table, "{name}\n  {}: {}", report.kind, report.cause.unwrap_or(report.message))
            .unwrap();
    }
    insta::assert_snapshot!(table, @"
    the server died (gemini, claude)
      no_artefact: the MCP server of agentd ended during `create_proposal`: MCP error -32000: Connection closed
    the server died (codex)
      no_artefact: the MCP server of agentd ended during `create_proposal`: tool call error: Transport closed
    no answer in time
      no_artefact: the MCP server of agentd did not answer in time during `create_proposal`: MCP error -32001: Request timed out
    canceled
      no_artefact: the call was canceled during `create_proposal`: The call was cancelled by the client
    never answered
      no_artefact: `create_proposal` was called and has not answered
    denied by the CLI
      no_artefact: `create_proposal` was refused: Claude requested permissions to use mcp__agentd__create_proposal, but you haven't granted it yet; its CLI did not let it call `mcp__agentd__create_proposal`
    success without a document
      no_artefact: `create_proposal` reported success, and nothing was changed
    the same text again
      no_artefact: `create_proposal` was given what is there already, and nothing was changed
    another document
      no_artefact: it changed specs/other.md instead
    another document, by hand
      no_artefact: it changed tasks.md instead; its last words were: It is written.
    answers instead of a proposal
      no_artefact: it changed clarifications.md instead
    a tool of the CLI only
      no_artefact: it called no tool of agentd
    a failed command of the CLI
      no_artefact: it called no tool of agentd
    refused, then only read
      no_artefact: `create_proposal` was refused: No
    two tools refused
      no_artefact: `create_proposal` was refused: Second; `write_spec` was refused: First
    three times
      no_artefact: `create_proposal` was refused 3 times, most recently: c
    no reason
      no_artefact: `create_proposal` was refused: no reason was given
    a wrapped reason
      no_artefact: `create_proposal` was refused: InputValidationError: bad
    a reason of several lines
      no_artefact: `create_proposal` was refused: Not valid. 1. P001: no summary 2. P002: no why
    control characters
      no_artefact: `create_proposal` was refused: [31mred
    a secret
      no_artefact: `create_proposal` was refused: key [redacted] refused
    somebody else writes
      no_artefact: `create_proposal` was refused: the files of change `add-login` is still held by pid 7
    the disk is full
      no_artefact: `create_proposal` was refused: cannot write `proposal.md`: No space left on device
    an answer without a call
      no_artefact: it called no tool; its last words were: It is written.
    nothing at all
      agent_failed: claude failed: the model answered with nothing
    ");
}

/// However much is refused, little of it is kept.
#[test]
fn a_flood_of_refusals_is_bounded() {
    let (project, agents) = scripted("cat start lines say end", "");
    let long = "x".repeat(1 << 13);
    let lines: Vec<Value> = (0..100).flat_map(|i| fails(&format!("create_{i}"), &long)).collect();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    project.write_root("lines", text);
    let file = Artifact::File(ChangeFile::Proposal);
    let error = ask(&agents, Role::Planner, "proposal-gen", file).0.unwrap_err();
    let cause = error.explain().cause.unwrap();
    assert!(cause.len() < 10_000, "{}", cause.len());
    assert!(cause.starts_with("`create_99` was refused: xxx"), "{}", &cause[..100]);
}
