//! The decoders against what the real CLIs printed
//! (`testing/fixtures/streams`, see the README there).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use agentd_core::agent::{AgentKind, Role, Transport};
use agentd_core::event::AgentEvent;
use agentd_core::ids::ChangeId;
use agentd_core::outcome::{AgentOutcome, Exit};
use agentd_core::provider::{
    AgentRequest, FoundInProject, McpServer, Session, Surroundings, provider, sessions,
};
use agentd_core::step_name::StepName;
use serde::Deserialize;

fn fixtures(kind: AgentKind) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../../testing/fixtures/streams").join(kind.name())
}

#[derive(Deserialize)]
struct Run {
    exit_code: Option<i32>,
    signal: Option<i32>,
    stderr: String,
}

fn request(kind: AgentKind) -> AgentRequest {
    let change = ChangeId::new("add-oauth").unwrap();
    AgentRequest {
        role: Role::Planner,
        mcp: Some(McpServer::new(
            "agentd",
            "/p",
            &change,
            Role::Planner,
            &StepName::ProposalGen,
            None,
        )),
        change,
        step: StepName::ProposalGen,
        prompt: String::new(),
        project_root: "/p".into(),
        private_dir: "/p/a/1".into(),
        program: kind.name().into(),
        extra_args: vec![],
        extra_env: vec![],
        extra_state: vec![],
        env_names: vec![],
        model: None,
        effort: None,
        session: Session::Fresh,
        surroundings: Surroundings::default(),
        found: FoundInProject::default(),
    }
}

struct Decoded {
    events: Vec<AgentEvent<'static>>,
    outcome: AgentOutcome,
}

fn decode(kind: AgentKind, case: &str, request: &AgentRequest) -> Decoded {
    let dir = fixtures(kind);
    let stream = std::fs::read(dir.join(format!("{case}.jsonl"))).unwrap();
    let run = std::fs::read_to_string(dir.join(format!("{case}.run.json"))).unwrap();
    let run: Run = serde_json::from_str(&run).unwrap();
    let mut decoder = provider(kind, Transport::Cli).decoder(request);
    let mut events = Vec::new();
    for line in String::from_utf8_lossy(&stream).lines().filter(|line| !line.is_empty()) {
        decoder.line(line, &mut |event| events.push(event.into_owned()));
    }
    let exit = Exit {
        code: run.exit_code,
        signal: run.signal,
        stderr_tail: run.stderr,
        ..Exit::default()
    };
    Decoded { events, outcome: decoder.finish(&exit) }
}

fn name(event: &AgentEvent<'_>) -> &'static str {
    match event {
        AgentEvent::Session { .. } => "session",
        AgentEvent::Text { .. } => "text",
        AgentEvent::ToolCall { .. } => "call",
        AgentEvent::ToolResult { ok: true, .. } => "result",
        AgentEvent::ToolResult { ok: false, .. } => "result-failed",
        AgentEvent::Retry { .. } => "retry",
        AgentEvent::Usage { .. } => "usage",
        AgentEvent::Warning { .. } => "warning",
        AgentEvent::Failed { .. } => "failed",
        AgentEvent::Finished { .. } => "finished",
        AgentEvent::Raw { .. } => "RAW",
    }
}

/// Every case of a CLI in two lines: what happened, and what came of it.
fn summary(kind: AgentKind) -> String {
    let mut cases: Vec<String> = std::fs::read_dir(fixtures(kind))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned))
        .collect();
    cases.sort();
    let mut text = String::new();
    for case in cases {
        let Decoded { events, outcome } = decode(kind, &case, &request(kind));
        let mut names: Vec<(&str, u32)> = Vec::new();
        for event in &events {
            match names.last_mut() {
                Some((last, count)) if *last == name(event) => *count += 1,
                _ => names.push((name(event), 1)),
            }
        }
        let names: Vec<String> = names
            .iter()
            .map(
                |(name, count)| if *count > 1 { format!("{name}*{count}") } else { (*name).into() },
            )
            .collect();
        let result = match &outcome.failure {
            None => "success".to_owned(),
            Some(failure) => {
                let kind = serde_json::to_string(&failure.kind).unwrap();
                let transient = if failure.is_transient() { ", transient" } else { "" };
                let first = failure.message.lines().next().unwrap_or_default();
                let first: String = first.chars().take(90).collect();
                format!("{}{transient}: {first}", kind.trim_matches('"'))
            }
        };
        let usage = outcome.usage.map_or_else(
            || "-".to_owned(),
            |u| format!("{}/{}/{}/{}", u.input, u.cached, u.output, u.reasoning),
        );
        let model = outcome.model.as_deref().unwrap_or("-");
        let review = outcome.review.map_or_else(String::new, |mark| format!(" {mark:?}"));
        writeln!(text, "{case}: {}", names.join(" ")).unwrap();
        writeln!(text, "    {result} | {usage} {model}{review}").unwrap();
    }
    text
}

#[test]
fn gemini_streams() {
    insta::assert_snapshot!(summary(AgentKind::Gemini));
}

#[test]
fn codex_streams() {
    insta::assert_snapshot!(summary(AgentKind::Codex));
}

#[test]
fn claude_streams() {
    insta::assert_snapshot!(summary(AgentKind::Claude));
}

#[test]
fn events_of_real_streams_survive_a_run_file() {
    for kind in AgentKind::CLIS {
        for case in ["tool-call", "tool-error", "work"] {
            for event in decode(kind, case, &request(kind)).events {
                let text = serde_json::to_string(&event).unwrap();
                assert_eq!(serde_json::from_str::<AgentEvent<'static>>(&text).unwrap(), event);
            }
        }
    }
}

#[test]
fn codex_usage_of_a_resumed_thread() {
    let first = decode(AgentKind::Codex, "plain", &request(AgentKind::Codex)).outcome;
    let mut resumed = request(AgentKind::Codex);
    let alone = decode(AgentKind::Codex, "resume", &resumed).outcome;
    let id = alone.session_id.clone().unwrap();
    let thread_usage = first.thread_usage;
    resumed.session = Session::Resume { id, index: None, thread_usage, cost_before: None };
    let after = decode(AgentKind::Codex, "resume", &resumed).outcome;
    assert_eq!(after.usage.unwrap() + thread_usage.unwrap(), alone.usage.unwrap());
    assert_eq!(after.failure, None);
}

#[test]
fn the_lists_of_sessions_are_read() {
    let dir = fixtures(AgentKind::Gemini);
    let mut found = BTreeMap::new();
    for case in ["list-sessions", "list-sessions-none"] {
        let stdout = std::fs::read_to_string(dir.join(format!("{case}.txt"))).unwrap();
        let output = sessions::ListOutput { code: Some(0), stdout, ..Default::default() };
        found.insert(case, sessions::sessions(&output).unwrap());
    }
    assert!(!found["list-sessions"].is_empty());
    assert!(found["list-sessions-none"].is_empty());
}

proptest::proptest! {
    /// Whatever is printed, nothing panics, and every line is taken.
    #[test]
    fn no_line_breaks_a_decoder(lines in proptest::collection::vec(".{0,80}", 0..8)) {
        for kind in AgentKind::CLIS {
            let mut decoder = provider(kind, Transport::Cli).decoder(&request(kind));
            for line in &lines {
                decoder.line(line, &mut |_| {});
            }
            decoder.finish(&Exit::default());
        }
    }
}

/// Real lines with a piece missing, anywhere: the streams of a CLI that is killed, or
/// of a version that has renamed things.
#[test]
fn damaged_lines_do_not_break_a_decoder() {
    for kind in AgentKind::CLIS {
        let stream = std::fs::read_to_string(fixtures(kind).join("tool-call.jsonl")).unwrap();
        let mut decoder = provider(kind, Transport::Cli).decoder(&request(kind));
        for line in stream.lines() {
            let line: String = line.chars().take(1500).collect();
            let ends: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
            for at in ends.iter().copied().step_by(3) {
                decoder.line(&line[..at], &mut |_| {});
                let rest = ends.iter().copied().find(|end| *end >= at + 5).unwrap_or(line.len());
                decoder.line(&format!("{}{}", &line[..at], &line[rest..]), &mut |_| {});
                decoder.line(&format!("{}null{}", &line[..at], &line[at..]), &mut |_| {});
            }
        }
        decoder.finish(&Exit::default());
    }
}
