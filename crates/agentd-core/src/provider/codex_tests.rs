use super::super::tests::{decode, exit, request};
use super::*;
use crate::agent::Role;
use crate::outcome::ReviewMark;
use crate::provider::FoundInProject;

const STREAM: &str = r#"{"type":"thread.started","thread_id":"01a1"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"I will write the note."}}
{"type":"item.started","item":{"id":"item_1","type":"mcp_tool_call","server":"agentd","tool":"write_note","arguments":{"a":1},"result":null,"error":null,"status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"agentd","tool":"write_note","arguments":{"a":1},"result":{"content":[{"type":"text","text":"done"}],"structured_content":{"path":"p"}},"error":null,"status":"completed"}}
{"type":"error","message":"Reconnecting... 1/5 (x)"}
{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"<review>PASS</review>"}}
{"type":"turn.completed","usage":{"input_tokens":2468,"cached_input_tokens":400,"cache_write_input_tokens":0,"output_tokens":112,"reasoning_output_tokens":14}}"#;

#[test]
fn a_stream_is_decoded() {
    let (events, outcome) = decode(&Codex, &request(Role::Challenger), STREAM, &exit(0));
    assert_eq!(
        events,
        [
            r#"{"event":"session","session_id":"01a1"}"#,
            r#"{"event":"text","text":"I will write the note."}"#,
            r#"{"event":"tool_call","id":"item_1","server":"agentd","name":"write_note","arguments":{"a":1}}"#,
            r#"{"event":"tool_result","id":"item_1","ok":true,"output":"done"}"#,
            r#"{"event":"retry","attempt":1,"reason":"Reconnecting... 1/5 (x)"}"#,
            r#"{"event":"text","text":"<review>PASS</review>"}"#,
            r#"{"event":"usage","input":2468,"cached":400,"output":112,"reasoning":14}"#,
            r#"{"event":"finished"}"#,
        ]
    );
    assert_eq!(outcome.review, Some(ReviewMark::Pass));
    assert_eq!(outcome.failure, None);
}

#[test]
fn the_usage_of_a_resumed_thread_is_the_difference() {
    let mut request = request(Role::Challenger);
    let before = Usage { input: 1000, cached: 100, cache_write: 0, output: 50, reasoning: 4 };
    request.session = Session::Resume {
        id: "01a1".into(),
        index: None,
        thread_usage: Some(before),
        cost_before: None,
    };
    let (_, outcome) = decode(&Codex, &request, STREAM, &exit(0));
    let expected = Usage { input: 1468, cached: 300, cache_write: 0, output: 62, reasoning: 10 };
    assert_eq!(outcome.usage, Some(expected));
    assert_eq!(outcome.thread_usage, Some(before + expected));
}

#[test]
fn failures_have_kinds() {
    let case = |stream: &str, stderr: &str| {
        let exit = Exit { stderr_tail: stderr.into(), ..exit(1) };
        let (_, outcome) = decode(&Codex, &request(Role::Challenger), stream, &exit);
        outcome.failure.unwrap().kind
    };
    let failed = |message: &str| {
        serde_json::json!({"type":"turn.failed","error":{"message":message}}).to_string()
    };
    assert_eq!(
        case(&failed("Missing environment variable: `OPENAI_API_KEY`."), ""),
        FailureKind::Auth
    );
    assert_eq!(
        case(&failed("Incomplete response returned, reason: max_output_tokens"), ""),
        FailureKind::OutputLimit
    );
    assert_eq!(
        case("", "Error: thread/resume: thread/resume failed: no rollout found for thread id x"),
        FailureKind::SessionNotFound
    );
    assert_eq!(case("", ""), FailureKind::Other);
    let (_, killed) = decode(
        &Codex,
        &request(Role::Challenger),
        STREAM,
        &Exit { signal: Some(15), ..Exit::default() },
    );
    assert_eq!(killed.failure.unwrap().kind, FailureKind::Crashed);
}

#[test]
fn a_failed_tool_is_reported_with_its_reason() {
    let refused = r#"{"type":"item.completed","item":{"id":"i","type":"mcp_tool_call","server":"agentd","tool":"t","arguments":null,"result":null,"error":{"message":"no"},"status":"failed"}}"#;
    let (events, _) = decode(&Codex, &request(Role::Challenger), refused, &exit(1));
    assert_eq!(events, [r#"{"event":"tool_result","id":"i","ok":false,"output":"no"}"#]);
}

#[test]
fn a_challenger_reads_and_an_implementer_writes_in_the_work_tree() {
    let mut request = request(Role::Challenger);
    request.effort = Some("high".into());
    request.session =
        Session::Resume { id: "T".into(), index: None, thread_usage: None, cost_before: None };
    let spec = Codex.command(&request);
    assert_eq!(
        spec.args,
        [
            "exec",
            "--json",
            "-c",
            "model_reasoning_effort=\"high\"",
            "-c",
            "mcp_servers.agentd={command=\"/opt/agentd\",args=[\"-C\",\"/p\",\"mcp\",\"--change\",\"add-oauth\",\"--role\",\"challenger\",\"--step\",\"proposal-gen\",\"--receipt\",\"-\"],required=true,startup_timeout_sec=30,default_tools_approval_mode=\"approve\"}",
            "-c",
            "sandbox_mode=\"read-only\"",
            "-c",
            "approval_policy=\"never\"",
            "-c",
            "analytics.enabled=false",
            "--disable",
            "plugins",
            "--skip-git-repo-check",
            "resume",
            "T",
            "-"
        ]
    );
    let spec = Codex.command(&super::super::tests::request(Role::Implementer));
    assert!(spec.args.contains(&"sandbox_mode=\"workspace-write\"".to_owned()));
}

#[test]
fn instructions_of_an_untrusted_directory_are_handed_over() {
    let mut request = request(Role::Challenger);
    request.found = FoundInProject {
        settings_dirs: vec!["/work/p".into(), "/work \"x\"".into()],
        instructions: Some("Use tabs.".into()),
    };
    let spec = Codex.command(&request);
    let wanted =
        r#"projects={"/work/p"={trust_level="untrusted"},"/work \"x\""={trust_level="untrusted"}}"#;
    assert!(spec.args.iter().any(|arg| arg == wanted), "{:?}", spec.args);
    assert!(spec.stdin.starts_with(&request.prompt) && spec.stdin.contains("Use tabs."));
    request.session =
        Session::Resume { id: "T".into(), index: None, thread_usage: None, cost_before: None };
    assert_eq!(Codex.command(&request).stdin, request.prompt, "the session has them already");
}
