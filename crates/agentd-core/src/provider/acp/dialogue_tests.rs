use super::*;
use crate::agent::Role;
use crate::provider::tests::{exit, request};
use FailureKind as K;

/// A dialogue, and what came of it so far.
struct Talk {
    dialogue: Dialogue,
    events: Vec<String>,
}

impl Talk {
    fn new(agent: &str, request: &AgentRequest) -> Self {
        let (connection, _) = Connection::new();
        Self::on(agent, request, connection)
    }

    fn on(agent: &str, request: &AgentRequest, connection: Connection) -> Self {
        let dialogue = Dialogue::new(agent.parse().unwrap(), request, connection);
        Self { dialogue, events: Vec::new() }
    }

    /// The agent says something; returns what is answered, each message without what is always
    /// the same.
    fn hear(&mut self, line: &str) -> Vec<String> {
        let events = &mut self.events;
        self.dialogue.line(line, &mut |event| events.push(serde_json::to_string(&event).unwrap()));
        self.said()
    }

    fn said(&mut self) -> Vec<String> {
        let output = self.dialogue.take_output();
        output.lines().map(|line| line.replace(r#""jsonrpc":"2.0","#, "")).collect()
    }

    /// Greets, opens a session and sends the prompt.
    fn begin(&mut self) {
        self.hear(GREETING);
        self.hear(r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}"#);
    }

    fn update(&mut self, update: &str) {
        let params = format!(r#"{{"sessionId":"s1","update":{update}}}"#);
        self.hear(&format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#));
    }

    fn finish(self) -> AgentOutcome {
        Box::new(self.dialogue).finish(&exit(0))
    }
}

const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"2"},"agentCapabilities":{"loadSession":true}}}"#;

fn with_tools(role: Role) -> AgentRequest {
    let mut request = request(role);
    if let Some(mcp) = &mut request.mcp {
        mcp.tools = vec!["create_spec".to_owned(), "read_file".to_owned()];
    }
    request
}

#[test]
fn a_call_is_greeted_opened_prompted_and_over() {
    let mut talk = Talk::new("opencode", &with_tools(Role::Planner));
    assert!(talk.said().is_empty(), "the greeting is written when the process starts");
    insta::assert_snapshot!(talk.hear(GREETING).join("\n"), @r#"{"id":2,"method":"session/new","params":{"cwd":"/work/p","mcpServers":[{"name":"agentd","command":"/opt/agentd","args":["-C","/p","mcp","--change","add-oauth","--role","planner","--step","proposal-gen","--receipt","-"],"env":[]}]}}"#);
    let opened = r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1","configOptions":[{"id":"model","category":"model","currentValue":"anthropic/claude-x"}]}}"#;
    insta::assert_snapshot!(talk.hear(opened).join("\n"), @r#"{"id":3,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"agentd proposal-gen add-oauth\nhello"}]}}"#);
    talk.update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I "}}"#);
    talk.update(
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"do."}}"#,
    );
    talk.update(r#"{"sessionUpdate":"tool_call","toolCallId":"t1","title":"agentd_create_spec","kind":"other","status":"pending","rawInput":{}}"#);
    talk.update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress","rawInput":{"id":"auth"}}"#);
    talk.update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","rawOutput":{"output":"Wrote it"}}"#);
    talk.update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"<review>PASS</review>"}}"#);
    talk.update(r#"{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.25,"currency":"USD"}}"#);
    let end = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":900,"cachedReadTokens":100,"outputTokens":20,"totalTokens":1020}}}"#;
    assert!(!talk.dialogue.is_over());
    assert!(talk.hear(end).is_empty());
    assert!(talk.dialogue.is_over());
    insta::assert_snapshot!(talk.events.join("\n"), @r#"
    {"event":"session","session_id":"s1","model":"anthropic/claude-x"}
    {"event":"text","text":"I ","delta":true}
    {"event":"text","text":"do.","delta":true}
    {"event":"tool_call","id":"t1","server":"agentd","name":"create_spec","arguments":{"id":"auth"}}
    {"event":"tool_result","id":"t1","ok":true,"output":"Wrote it"}
    {"event":"text","text":"<review>PASS</review>","delta":true}
    {"event":"usage","input":0,"cached":0,"output":0,"reasoning":0,"cost_usd":0.25}
    {"event":"usage","input":1000,"cached":100,"output":20,"reasoning":0,"cost_usd":0.25}
    {"event":"finished"}
    "#);
    let outcome = talk.finish();
    assert!(outcome.reported_success());
    assert_eq!(outcome.model.as_deref(), Some("anthropic/claude-x"));
    assert_eq!(outcome.review, Some(crate::outcome::ReviewMark::Pass));
    assert_eq!(outcome.tools.done, ["create_spec"]);
    assert_eq!((outcome.cost_usd, outcome.usage.unwrap().input), (Some(0.25), 1000));
}

// contract G2
#[test]
fn permission_is_given_by_role() {
    let asks = |role: Role, call: &str| {
        let mut talk = Talk::new("opencode", &with_tools(role));
        talk.begin();
        let options =
            r#"[{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]"#;
        let said = talk.hear(&format!(
            r#"{{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{{"sessionId":"s1","options":{options},"toolCall":{call}}}}}"#
        ));
        let denied = talk.finish().denied_tools;
        (said.join("\n"), denied)
    };
    let shell = r#"{"toolCallId":"t","title":"rm -rf x","kind":"execute","rawInput":{"command":"rm -rf x"}}"#;
    let (said, denied) = asks(Role::Planner, shell);
    assert_eq!(said, r#"{"id":"p","result":{"outcome":{"outcome":"selected","optionId":"no"}}}"#);
    assert_eq!(denied, ["rm -rf x"]);
    let yes = r#"{"id":"p","result":{"outcome":{"outcome":"selected","optionId":"yes"}}}"#;
    assert_eq!(asks(Role::Implementer, shell), (yes.to_owned(), vec![]));
    let own = r#"{"toolCallId":"t","title":"agentd_create_spec","kind":"other"}"#;
    assert_eq!(asks(Role::Reviewer, own), (yes.to_owned(), vec![]));
    let reads = r#"{"toolCallId":"t","title":"Read a.rs","kind":"read"}"#;
    assert_eq!(asks(Role::Challenger, reads), (yes.to_owned(), vec![]));
}

// contract G2
#[test]
fn files_and_terminals_are_refused() {
    let mut talk = Talk::new("opencode", &with_tools(Role::Implementer));
    talk.begin();
    for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "x/y"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{}}}}"#);
        let said = talk.hear(&line).join("\n");
        let expected = format!("agentd does not offer {method}");
        assert!(said.contains(r#""code":-32601"#) && said.contains(&expected), "{said}");
    }
}

#[test]
fn a_second_call_goes_on_where_the_process_is() {
    let mut first = Talk::new("opencode", &with_tools(Role::Planner));
    first.begin();
    first.hear(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#);
    let connection = first.dialogue.connection().unwrap();
    let mut second = Talk::on("opencode", &with_tools(Role::Planner), connection);
    assert!(second.said()[0].starts_with(r#"{"id":4,"method":"session/new""#));
    // What the first call left is not taken for an answer.
    assert!(
        second.hear(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#).is_empty()
    );
    let said = second.hear(r#"{"jsonrpc":"2.0","id":4,"result":{"sessionId":"s2"}}"#);
    assert!(said[0].starts_with(r#"{"id":5,"method":"session/prompt""#), "{said:?}");
    second.update(
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"late"}}"#,
    );
    assert!(second.events.iter().all(|event| !event.contains("late")), "{:?}", second.events);
}

// contract C6, C31
#[test]
fn earlier_sessions_are_resumed_or_loaded_and_their_history_is_not_the_answer() {
    let mut request = with_tools(Role::Planner);
    request.session = Session::Resume {
        id: "s1".into(),
        index: None,
        thread_usage: None,
        cost_before: Some(1.5),
    };
    let mut talk = Talk::new("opencode", &request);
    let said = talk.hear(GREETING);
    assert!(said[0].contains(r#""method":"session/load""#), "{said:?}");
    talk.update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"<review>PASS</review>"}}"#);
    assert!(talk.hear(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#).is_empty());
    // Gemini CLI repeats the history after it has answered.
    talk.update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"<review>PASS</review>"}}"#);
    assert!(talk.dialogue.wants_silence().is_some());
    talk.dialogue.silence(&mut |_| {});
    assert!(talk.said()[0].contains("session/prompt"));
    talk.update(r#"{"sessionUpdate":"usage_update","cost":{"amount":2.0}}"#);
    talk.update(
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"new"}}"#,
    );
    talk.hear(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#);
    let outcome = talk.finish();
    assert_eq!((outcome.text.as_str(), outcome.review), ("new", None));
    assert_eq!(outcome.session_id.as_deref(), Some("s1"));
    assert_eq!(outcome.cost_usd, Some(0.5), "opencode reports the cost of the whole session");

    let resumes = GREETING
        .replace(r#""loadSession":true"#, r#""sessionCapabilities":{"resume":{},"close":{}}"#);
    let mut talk = Talk::new("claude", &request);
    let said = talk.hear(&resumes);
    assert!(said[0].contains(r#""method":"session/resume""#), "{said:?}");
    let said = talk.hear(r#"{"jsonrpc":"2.0","id":2,"result":null}"#);
    assert!(said[0].contains("session/prompt"), "{said:?}");
    let said = talk.hear(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#);
    assert!(said[0].contains(r#""method":"session/close""#), "{said:?}");

    let cannot = GREETING.replace("true", "false");
    let mut talk = Talk::new("opencode", &request);
    assert!(talk.hear(&cannot).is_empty() && talk.dialogue.is_over());
    assert_eq!(talk.finish().failure.unwrap().kind, FailureKind::SessionNotFound);
}

#[test]
fn errors_end_the_call_with_a_kind() {
    let fails = |line: &str| {
        let mut talk = Talk::new("opencode", &with_tools(Role::Planner));
        talk.begin();
        talk.hear(line);
        assert!(talk.dialogue.is_over(), "{line}");
        talk.finish().failure.map(|failure| (failure.kind, failure.message))
    };
    let error = |error: &str| fails(&format!(r#"{{"jsonrpc":"2.0","id":3,"error":{error}}}"#));
    let kind = |found: Option<(K, String)>| found.unwrap().0;
    assert_eq!(kind(error(r#"{"code":-32000,"message":"Authentication required"}"#)), K::Auth);
    let details =
        r#"{"code":-32603,"message":"Internal error","data":{"details":"429 Too Many Requests"}}"#;
    assert_eq!(error(details).unwrap(), (K::RateLimited, "429 Too Many Requests".to_owned()));
    assert_eq!(kind(error(r#"{"code":-32603,"message":"x","data":[{"a":1}]}"#)), K::Other);
    let stop = |reason: &str| {
        fails(&format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"stopReason":"{reason}"}}}}"#))
    };
    assert_eq!(kind(stop("max_tokens")), K::OutputLimit);
    assert_eq!(kind(stop("refusal")), K::Refused);
    // Nobody has asked for it.
    assert_eq!(kind(stop("cancelled")), K::Other);
    assert_eq!(kind(stop("whatever")), K::Other);
    assert_eq!(stop("end_turn").unwrap().0, K::EmptyAnswer);
    // Nothing beside it hides that the turn is over.
    let odd = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":-1},"_meta":7}}"#;
    assert_eq!(kind(fails(odd)), K::EmptyAnswer);
}

// contract G4
#[test]
fn a_turn_of_codex_that_breaks_down_is_a_failure() {
    let mut talk = Talk::new("codex", &with_tools(Role::Planner));
    talk.begin();
    talk.update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Config warning: x"}}"#);
    talk.update(r#"{"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":"systemError"}}}}"#);
    talk.update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"exceeded retry limit, last status: 429 Too Many Requests\n\n"}}"#);
    talk.hear(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":null,"_meta":{"quota":{"token_count":null,"model_usage":[]}}}}"#);
    let failure = talk.finish().failure.unwrap();
    assert_eq!(failure.kind, K::RateLimited);
    assert_eq!(failure.message, "exceeded retry limit, last status: 429 Too Many Requests");
}

// contract G4
#[test]
fn details_for_programs_say_what_kind_of_error_it_is() {
    let fails = |error: &str| {
        let mut talk = Talk::new("codex", &with_tools(Role::Planner));
        talk.begin();
        talk.hear(&format!(r#"{{"jsonrpc":"2.0","id":3,"error":{error}}}"#));
        talk.finish().failure.unwrap()
    };
    let quota = r#"{"code":-32603,"message":"Internal error","data":{"message":"Nothing is left.","codexErrorInfo":"usageLimitExceeded"}}"#;
    let failure = fails(quota);
    assert_eq!((failure.kind, failure.message.as_str()), (K::QuotaExhausted, "Nothing is left."));
    let kind = r#"{"code":-32603,"message":"Internal error: x","data":{"errorKind":"rate_limit"}}"#;
    assert_eq!(fails(kind).kind, K::RateLimited);
    // When it is renewed, and not when another limit passes.
    for (said, wait) in [("in 58 hours", Some(208_800_000)), ("after 2s: insufficient_quota", None)]
    {
        let error = format!(r#"{{"code":-32603,"message":"Rate limit: try again {said}"}}"#);
        let failure = fails(&error);
        assert_eq!((failure.kind, failure.retry_after_ms), (K::QuotaExhausted, wait), "{said}");
    }
    // The words of the message are about something that passes.
    let credit =
        r#"{"code":-32603,"message":"Too many requests","data":{"code":"insufficient_quota"}}"#;
    assert_eq!(fails(credit).kind, K::QuotaExhausted);
    let credit = r#"{"code":-32000,"message":"Unauthorized","data":{"type":"CreditsError","message":"Insufficient balance."}}"#;
    assert_eq!(fails(credit).kind, K::QuotaExhausted);
}

#[test]
fn another_version_of_the_protocol_is_an_error() {
    let mut talk = Talk::new("opencode", &with_tools(Role::Planner));
    talk.hear(&GREETING.replace(r#""protocolVersion":1"#, r#""protocolVersion":2"#));
    let failure = talk.finish().failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Config);
    assert_eq!(failure.message, "the agent speaks version 2 of ACP, not 1");
}

#[test]
fn a_recorded_call_is_read_again() {
    let request = with_tools(Role::Planner);
    let mut dialogue = Box::new(Dialogue::recorded("opencode".parse().unwrap(), &request));
    for line in [
        r#"{"jsonrpc":"2.0","id":17,"result":{"sessionId":"s9"}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s9","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"},"_meta":{"usage":{"inputTokens":10,"outputTokens":2,"totalTokens":12}}}}}"#,
    ] {
        dialogue.line(line, &mut |_| {});
    }
    let outcome = dialogue.finish(&Exit::default());
    assert_eq!(outcome.session_id.as_deref(), Some("s9"));
    assert_eq!(outcome.usage.unwrap().total(), 12);
}

#[test]
fn a_call_that_is_stopped_says_so_to_the_agent() {
    let mut talk = Talk::new("opencode", &with_tools(Role::Planner));
    talk.dialogue.cancel();
    assert!(talk.said().is_empty(), "nothing runs yet");
    talk.begin();
    talk.dialogue.cancel();
    assert_eq!(talk.said(), [r#"{"method":"session/cancel","params":{"sessionId":"s1"}}"#]);
}

proptest::proptest! {
    /// Whatever an agent sends, it is read or skipped.
    #[test]
    fn nothing_that_an_agent_sends_is_a_panic(lines in proptest::collection::vec("\\PC{0,120}", 0..6)) {
        let mut talk = Talk::new("opencode", &with_tools(Role::Planner));
        talk.begin();
        for line in lines {
            talk.hear(&line);
            talk.update(&line);
            talk.update(&format!(r#"{{"sessionUpdate":"tool_call","toolCallId":"t","rawInput":{line}}}"#));
        }
        talk.finish();
    }
}

/// Qwen Code promises `session/resume`, and does not know it.
#[test]
fn a_session_is_loaded_if_it_cannot_be_resumed_after_all() {
    let mut request = request(Role::Planner);
    request.session =
        Session::Resume { id: "s1".into(), index: None, thread_usage: None, cost_before: None };
    let mut talk = Talk::new("qwen", &request);
    let greeting = GREETING.replace(
        r#""loadSession":true"#,
        r#""loadSession":true,"sessionCapabilities":{"resume":{}}"#,
    );
    let opened = talk.hear(&greeting);
    assert!(opened[0].contains("session/resume"), "{opened:?}");
    let missing =
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}"#;
    let opened = talk.hear(missing);
    assert!(opened[0].contains("session/load") && opened[0].contains("s1"), "{opened:?}");
    talk.hear(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    talk.dialogue.silence(&mut |_| {});
    let said = talk.said();
    assert!(said[0].contains("session/prompt"), "{said:?}");
}

/// Some agents end their turn when they are denied something: that is not an interruption.
#[test]
fn a_turn_that_ends_at_a_denial_says_so() {
    let ended = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}"#;
    let asks = r#"{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c","title":"edit a","kind":"edit"},"options":[{"optionId":"n","kind":"reject_once"}]}}"#;
    let kind = |denied: bool, told: bool| {
        let mut talk = Talk::new("codex", &request(Role::Planner));
        talk.begin();
        if denied {
            talk.hear(asks);
        }
        if told {
            talk.dialogue.cancel();
        }
        talk.hear(ended);
        talk.finish().failure.unwrap().kind
    };
    assert_eq!(kind(true, false), K::Denied);
    assert_eq!(kind(false, false), K::Other);
    assert_eq!(kind(true, true), K::Cancelled);
}

/// What agentd answers is kept until it is read, so an agent that asks and never reads is ended.
// contract G2
#[test]
fn floods_of_requests_end_the_call() {
    let ask = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"fs/read_text_file","params":{{}}}}"#)
    };
    let mut talk = Talk::new("opencode", &with_tools(Role::Planner));
    talk.begin();
    for id in 0..MOST_REQUESTS {
        assert_eq!(talk.hear(&ask(&id.to_string())).len(), 1);
    }
    assert!(!talk.dialogue.is_hopeless());
    assert!(talk.hear(&ask("\"last\"")).is_empty());
    assert!(talk.dialogue.is_hopeless());

    let mut talk = Talk::new("opencode", &with_tools(Role::Planner));
    talk.begin();
    assert!(talk.hear(&ask(&format!("\"{}\"", "x".repeat(1000)))).is_empty());
    assert!(talk.dialogue.is_hopeless());
    assert_eq!(talk.finish().failure.map(|failure| failure.kind), Some(K::Other));
}

/// What an agent says of itself goes into STATE.yaml.
#[test]
fn absurd_ids_and_costs_are_not_kept() {
    for id in ["x".repeat(5 << 20), "a\\u001b[2Jb".to_owned(), String::new()] {
        let mut talk = Talk::new("opencode", &with_tools(Role::Planner));
        talk.hear(GREETING);
        talk.hear(&format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"sessionId":"{id}"}}}}"#));
        let outcome = talk.finish();
        assert_eq!((outcome.session_id, outcome.failure.map(|it| it.kind)), (None, Some(K::Other)));
    }
    let mut talk = Talk::new("opencode", &with_tools(Role::Planner));
    talk.begin();
    talk.update(r#"{"sessionUpdate":"usage_update","cost":{"amount":1e308,"currency":"USD"}}"#);
    assert_eq!(talk.finish().cost_usd, None);
}
