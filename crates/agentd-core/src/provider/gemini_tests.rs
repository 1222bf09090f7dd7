use super::super::tests::{decode, exit, request};
use super::*;
use crate::agent::Role;
use crate::outcome::ReviewMark;

const STREAM: &str = r#"{"type":"init","timestamp":"t","session_id":"3f04ffe7","model":"auto"}
{"type":"message","timestamp":"t","role":"user","content":"<review>NEEDS_REVISION</review>"}
{"type":"message","timestamp":"t","role":"assistant","content":"I will write\nthe note.","delta":true}
{"type":"tool_use","timestamp":"t","tool_name":"mcp_agentd_write_note","tool_id":"w_0","parameters":{"name":"plan"}}
{"type":"tool_result","timestamp":"t","tool_id":"w_0","status":"success","output":"{\"bytes\": 27}"}
{"type":"message","timestamp":"t","role":"assistant","content":"<review>PA","delta":true}
{"type":"message","timestamp":"t","role":"assistant","content":"SS</review>","delta":true}
{"type":"result","timestamp":"t","status":"success","stats":{"total_tokens":3891,"input_tokens":3702,"output_tokens":168,"cached":600,"input":3102,"duration_ms":463,"tool_calls":1,"models":{"gemini-3.5-flash-lite":{"total_tokens":1297},"gemini-3.8-flash":{"total_tokens":2594}}}}"#;

#[test]
fn a_stream_is_decoded() {
    let (events, outcome) = decode(&Gemini, &request(Role::Planner), STREAM, &exit(0));
    assert_eq!(
        events,
        [
            r#"{"event":"session","session_id":"3f04ffe7","model":"auto"}"#,
            r#"{"event":"text","text":"I will write\nthe note.","delta":true}"#,
            r#"{"event":"tool_call","id":"w_0","server":"agentd","name":"write_note","arguments":{"name":"plan"}}"#,
            r#"{"event":"tool_result","id":"w_0","ok":true,"output":"{\"bytes\": 27}"}"#,
            r#"{"event":"text","text":"<review>PA","delta":true}"#,
            r#"{"event":"text","text":"SS</review>","delta":true}"#,
            r#"{"event":"usage","input":3702,"cached":600,"output":189,"reasoning":21}"#,
            r#"{"event":"finished"}"#,
        ]
    );
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.session_id.as_deref(), Some("3f04ffe7"));
    assert_eq!(outcome.model.as_deref(), Some("gemini-3.8-flash"));
    assert_eq!(outcome.text, "<review>PASS</review>");
    assert_eq!(outcome.review, Some(ReviewMark::Pass));
    assert_eq!(outcome.tool_calls, 1);
}

#[test]
fn exit_zero_without_a_result_is_not_success() {
    let half = STREAM.lines().take(3).collect::<Vec<_>>().join("\n");
    let (_, outcome) = decode(&Gemini, &request(Role::Planner), &half, &exit(0));
    assert_eq!(outcome.failure.unwrap().kind, FailureKind::NoResult);
}

#[test]
fn failures_have_kinds() {
    let case = |stream: &str, code: i32, stderr: &str| {
        let exit = Exit { stderr_tail: stderr.into(), ..exit(code) };
        let (_, outcome) = decode(&Gemini, &request(Role::Planner), stream, &exit);
        outcome.failure.unwrap().kind
    };
    let cut = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: terminated]"},"stats":{}}"#;
    assert_eq!(case(cut, 1, ""), FailureKind::Network);
    let empty = "{\"type\":\"error\",\"severity\":\"error\",\"message\":\"Model stream ended with empty response\"}\n{\"type\":\"result\",\"status\":\"error\"}";
    assert_eq!(case(empty, 0, ""), FailureKind::EmptyAnswer);
    assert_eq!(case("", 41, "Please set an Auth method"), FailureKind::Auth);
    assert_eq!(case("", 145, ""), FailureKind::Auth);
    assert_eq!(case("", 144, ""), FailureKind::InvalidRequest);
    assert_eq!(case("", 173, ""), FailureKind::RateLimited);
    assert_eq!(case("", 244, ""), FailureKind::ServerError);
    assert_eq!(case("", 53, ""), FailureKind::LimitReached);
    assert_eq!(
        case("", 42, "Error resuming session: Invalid session identifier \"x\"."),
        FailureKind::SessionNotFound
    );
    assert_eq!(case("", 42, ""), FailureKind::Config);
    assert_eq!(case("", 137, ""), FailureKind::Crashed);
}

#[test]
fn the_session_must_be_the_one_that_was_asked_for() {
    let mut request = request(Role::Planner);
    request.session = Session::Resume {
        id: "other".into(),
        index: Some(2),
        thread_usage: None,
        cost_before: None,
    };
    let (events, outcome) = decode(&Gemini, &request, STREAM, &exit(0));
    assert!(events[1].contains("wrong_session"), "{}", events[1]);
    assert_eq!(outcome.failure.unwrap().kind, FailureKind::WrongSession);
}

#[test]
fn a_dead_mcp_server_is_a_failure_unless_a_tool_worked() {
    let dead =
        Exit { stderr_tail: "MCP issues detected. Run /mcp list for status.".into(), ..exit(0) };
    let (_, outcome) = decode(&Gemini, &request(Role::Planner), STREAM, &dead);
    assert_eq!(outcome.failure, None);
    let only_text: String =
        STREAM.lines().filter(|line| !line.contains("tool_id")).collect::<Vec<_>>().join("\n");
    let (_, outcome) = decode(&Gemini, &request(Role::Planner), &only_text, &dead);
    assert_eq!(outcome.failure.unwrap().kind, FailureKind::McpUnavailable);
}

#[test]
fn odd_lines_are_kept_and_never_an_error() {
    let odd = "not json\n[1]\n{\"type\":\"later\"}\n{\"type\":\"message\"}\n{\"type\":1}\n\u{fffd}";
    let (events, _) = decode(&Gemini, &request(Role::Planner), odd, &exit(0));
    assert_eq!(events.len(), 5, "{events:?}");
    assert!(events.iter().all(|event| event.starts_with(r#"{"event":"raw""#)));
}

#[test]
fn a_planner_is_called_with_read_tools_and_mcp_only() {
    let mut request = request(Role::Planner);
    request.model = Some("flash".into());
    request.session =
        Session::Resume { id: "u".into(), index: Some(3), thread_usage: None, cost_before: None };
    let spec = Gemini.command(&request);
    assert_eq!(
        spec.args.join(" "),
        "-m flash --output-format stream-json --resume 3 --policy \
         /work/p/agentd/.agents/1/gemini-policy.toml --allowed-mcp-server-names agentd"
    );
    let policy = &spec.files[0].contents;
    assert!(policy.contains("\"deny\"\npriority = 980"), "above all that settings allow");
    assert!(!policy.contains("write_file") && !policy.contains("run_shell_command"));
    assert!(policy.contains("mcpName = \"agentd\""));
    let implementer = Gemini.command(&super::super::tests::request(Role::Implementer));
    assert!(implementer.files[0].contents.contains("run_shell_command"));
    assert!(implementer.files[0].contents.contains("allowRedirection = true"));
    assert!(!policy.contains("allowRedirection"));
    assert!(spec.env.contains(&("AGENTD_MCP_ARG_5".into(), "add-oauth".into())));
    assert_eq!(spec.merge, implementer.merge, "the settings are the same for every call");
}

#[test]
fn the_auth_type_is_set_only_where_it_must_be() {
    let mut request = request(Role::Planner);
    let has_auth = |request: &AgentRequest| {
        Gemini.command(request).merge.unwrap().set.iter().any(|(path, _)| path[0] == "security")
    };
    assert!(!has_auth(&request));
    request.env_names = vec!["GEMINI_API_KEY".into(), "GOOGLE_GEMINI_BASE_URL".into()];
    assert!(has_auth(&request));
}
