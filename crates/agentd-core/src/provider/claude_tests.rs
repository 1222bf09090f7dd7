use super::super::tests::{decode, exit, request};
use super::*;
use crate::agent::Role;
use crate::outcome::{ReviewMark, Stopped};

const STREAM: &str = r#"{"type":"system","subtype":"init","cwd":"/p","session_id":"daa3","tools":["Task"],"mcp_servers":[{"name":"agentd","status":"connected"}],"model":"claude-opus-4-8[1m]"}
{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-opus-4-8","content":[{"type":"text","text":"I \"will\" write."}],"usage":{"input_tokens":1034,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"daa3"}
{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"toolu_1","name":"mcp__agentd__write_note","input":{"a":"b"}}]},"parent_tool_use_id":null}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"{\"path\":1}"}]},"tool_use_result":{"content":"x"}}
{"type":"user","message":{"role":"user","content":"<review>NEEDS_REVISION</review>"}}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_2","type":"tool_result","is_error":true,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}}
{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":537.6,"error_status":529,"error":"overloaded"}
{"type":"assistant","message":{"content":[{"type":"text","text":"<review>NEEDS_REVISION</review>"}]},"parent_tool_use_id":"toolu_9"}
{"type":"assistant","message":{"content":[{"type":"text","text":"<review>PASS</review>"}]},"parent_tool_use_id":null}
{"type":"result","subtype":"success","is_error":false,"api_error_status":null,"duration_ms":269,"num_turns":2,"result":"<review>PASS</review>","session_id":"daa3","total_cost_usd":0.02001,"usage":{"input_tokens":2068,"cache_creation_input_tokens":0,"cache_read_input_tokens":400,"output_tokens":112},"modelUsage":{"claude-opus-4-8[1m]":{"inputTokens":3102,"outputTokens":168,"cacheReadInputTokens":600,"cacheCreationInputTokens":10,"costUSD":0.02001}},"permission_denials":[{"tool_name":"Write","tool_use_id":"t","tool_input":{}}]}"#;

#[test]
fn a_stream_is_decoded() {
    let (events, outcome) = decode(&Claude, &request(Role::Planner), STREAM, &exit(0));
    assert_eq!(
        events,
        [
            r#"{"event":"session","session_id":"daa3","model":"claude-opus-4-8[1m]"}"#,
            r#"{"event":"usage","input":1034,"cached":0,"output":1,"reasoning":0}"#,
            r#"{"event":"text","text":"I \"will\" write."}"#,
            r#"{"event":"tool_call","id":"toolu_1","server":"agentd","name":"write_note","arguments":{"a":"b"}}"#,
            r#"{"event":"tool_result","id":"toolu_1","ok":true,"output":"{\"path\":1}"}"#,
            r#"{"event":"tool_result","id":"toolu_2","ok":false,"output":"a\nb"}"#,
            r#"{"event":"retry","attempt":1,"delay_ms":538,"reason":"529 overloaded"}"#,
            r#"{"event":"text","text":"<review>PASS</review>"}"#,
            r#"{"event":"usage","input":3712,"cached":600,"cache_write":10,"output":168,"reasoning":0,"cost_usd":0.02001}"#,
            r#"{"event":"finished","text":"<review>PASS</review>"}"#,
        ]
    );
    assert_eq!(outcome.review, Some(ReviewMark::Pass));
    assert_eq!(outcome.cost_usd, Some(0.02001));
    assert_eq!(outcome.denied_tools, ["Write"]);
    assert_eq!(outcome.failure, None);
}

// contract T8
#[test]
fn usage_is_known_while_a_call_runs() {
    let message = |id: &str, input: u64, output: u64| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","content":[],"usage":{{"input_tokens":{input},"cache_read_input_tokens":5,"output_tokens":{output}}}}}}}"#
        )
    };
    // Pieces of a message repeat its usage; a call that is ended has used what they say.
    let stream =
        [message("a", 10, 1), message("a", 10, 3), message("b", 20, 1), message("b", 20, 1)];
    let (events, outcome) =
        decode(&Claude, &request(Role::Planner), &stream.join("\n"), &exit(143));
    let sums: Vec<u64> = events
        .iter()
        .map(|event| serde_json::from_str::<AgentEvent<'_>>(event).unwrap())
        .map(|event| match event {
            AgentEvent::Usage { usage, .. } => usage.total(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sums, [16, 18, 44]);
    assert_eq!(outcome.usage.unwrap().total(), 44);
}

#[test]
fn success_with_is_error_is_a_failure() {
    let case = |line: &str| {
        decode(&Claude, &request(Role::Planner), line, &exit(1)).1.failure.unwrap().kind
    };
    assert_eq!(
        case(
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":400,"result":"API Error: 400 x"}"#
        ),
        FailureKind::InvalidRequest
    );
    // contract G4
    for (status, said, kind) in [
        (400, "Credit balance is too low", FailureKind::QuotaExhausted),
        (429, "You've hit your session limit · resets 3pm", FailureKind::QuotaExhausted),
        (429, "API Error: Request rejected (429) · Slow down.", FailureKind::RateLimited),
    ] {
        let line = format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":{status},"result":"{said}"}}"#
        );
        assert_eq!(case(&line), kind, "{said}");
    }
    assert_eq!(
        case(
            r#"{"type":"result","subtype":"success","is_error":true,"result":"Not logged in · Please run /login"}"#
        ),
        FailureKind::Auth
    );
    assert_eq!(
        case(
            r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]}"#
        ),
        FailureKind::SessionNotFound
    );
    assert_eq!(
        case(r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#),
        FailureKind::LimitReached
    );
    // SIGINT: exit 0 and a result that is not a success.
    let aborted = r#"{"type":"result","subtype":"error_during_execution","is_error":false,"errors":[],"terminal_reason":"aborted_streaming"}"#;
    let (_, outcome) = decode(&Claude, &request(Role::Planner), aborted, &exit(0));
    assert!(!outcome.reported_success());
}

#[test]
fn a_disconnected_server_is_reported_at_once() {
    let failed = STREAM.replace("connected", "failed");
    let (events, outcome) = decode(&Claude, &request(Role::Planner), &failed, &exit(0));
    assert!(events[1].contains("warning"), "{}", events[1]);
    assert_eq!(outcome.failure, None, "a tool of it has worked since");
    let only_text: Vec<&str> = failed.lines().filter(|line| !line.contains("tool")).collect();
    let text = failed.lines().next().unwrap().to_owned() + "\n" + failed.lines().last().unwrap();
    assert!(only_text.len() < 10);
    let (_, outcome) = decode(&Claude, &request(Role::Planner), &text, &exit(0));
    assert_eq!(outcome.failure.unwrap().kind, FailureKind::McpUnavailable);
}

#[test]
fn roles_have_their_tools() {
    let spec = Claude.command(&request(Role::Reviewer));
    let line = spec.args.join(" ");
    assert!(
        line.contains("--tools Read,Grep,Glob --allowedTools mcp__agentd__* --mcp-config"),
        "{line}"
    );
    assert!(line.ends_with("--strict-mcp-config"));
    assert!(spec.files[0].contents.contains(
        r#""args":["-C","/p","mcp","--change","add-oauth","--role","reviewer","--step","proposal-gen","--receipt","-"]"#
    ));
    let line = Claude.command(&request(Role::Implementer)).args.join(" ");
    assert!(line.contains("--permission-mode acceptEdits"), "{line}");
}

#[test]
fn project_settings_are_ignored_and_instructions_handed_over() {
    let mut request = request(Role::Planner);
    let line = Claude.command(&request).args.join(" ");
    assert!(line.contains("--setting-sources user --strict-mcp-config"), "{line}");
    request.found.instructions = Some("Use tabs.".into());
    let spec = Claude.command(&request);
    let path = "/work/p/agentd/.agents/1/claude-instructions.md";
    assert!(spec.args.join(" ").contains(&format!("--append-system-prompt-file {path}")));
    assert!(spec.files[1].contents.contains("Use tabs."));
}

/// Claude Code tries ten times, for minutes, whatever the cause is. The first attempts renew a login
/// that has expired; after them nobody is logged in.
#[test]
fn refused_logins_are_not_waited_for() {
    let retry = |attempt: u32, status: u32| {
        format!(
            r#"{{"type":"system","subtype":"api_retry","attempt":{attempt},"max_retries":10,"retry_delay_ms":537.6,"error_status":{status},"error":"authentication_failed"}}"#
        )
    };
    let hopeless = |lines: &[String]| {
        let mut decoder = Claude.decoder(&request(Role::Planner));
        for line in lines {
            decoder.line(line, &mut |_| {});
        }
        let stopped = Exit { stopped: Some(Stopped::Cancelled), ..exit(143) };
        let hopeless = decoder.is_hopeless();
        (hopeless, decoder.finish(&stopped).failure.map(|failure| failure.kind))
    };
    assert!(!hopeless(&[retry(1, 401), retry(2, 401)]).0);
    assert!(!hopeless(&[retry(3, 529), retry(9, 429)]).0);
    let lines = [retry(1, 401), retry(2, 401), retry(3, 401)];
    assert_eq!(hopeless(&lines), (true, Some(FailureKind::Auth)));
}
