use std::path::{Path, PathBuf};
use std::time::Duration;

use agentd_core::agent::{AgentKind, Role, Transport};
use agentd_core::event::AgentEvent;
use agentd_core::ids::ChangeId;
use agentd_core::outcome::FailureKind;
use agentd_core::provider::sessions::{SessionError, find};
use agentd_core::provider::{
    AgentRequest, FoundInProject, McpServer, Session, Surroundings, provider,
};
use agentd_core::run_format::Record;
use agentd_core::step_name::StepName;
use agentd_engine::agents::run_record::{RecordLimits, read_run};
use agentd_engine::agents::runner::{CallReport, Retry, Runner, Spending};
use agentd_engine::opening::open_root;
use agentd_engine::process::{Cancel, Limits};
use agentd_engine::store::Change;
use test_project::TestProject;

use crate::support::{environment, example, mark, marked, supervisor};

/// A call of an agent, in a project of its own.
struct Call {
    project: TestProject,
    mark: String,
    retries: u32,
    request: AgentRequest,
}

impl Call {
    /// A project whose agent does these things.
    fn new(actions: &[&str]) -> Self {
        let project = TestProject::empty();
        let change = ChangeId::new("add-oauth").unwrap();
        let request = AgentRequest {
            role: Role::Planner,
            mcp: Some(McpServer::new(
                "/opt/agentd",
                "/p",
                &change,
                Role::Planner,
                &StepName::ProposalGen,
                None,
            )),
            change,
            step: StepName::ProposalGen,
            prompt: "agentd proposal-gen add-oauth\n".into(),
            project_root: project.root(),
            private_dir: project.root().join("calls/1"),
            program: example("fake-agent").to_str().unwrap().into(),
            extra_args: vec![],
            extra_env: vec![("FAKE_AGENT".into(), actions.join("\u{1f}"))],
            extra_state: vec![],
            env_names: vec![],
            model: None,
            effort: None,
            session: Session::Fresh,
            surroundings: Surroundings::default(),
            found: FoundInProject::default(),
        };
        Self { project, mark: mark(), retries: 0, request }
    }

    fn change(&self) -> Change {
        let (project, holder) = (&self.project, || self.project.holder());
        let store = open_root(&project.root(), project.user(), &holder).unwrap().project;
        let id = &self.request.change;
        store.change(id).or_else(|_| store.create_change(id)).unwrap()
    }

    fn runs(&self) -> PathBuf {
        self.project.root().join("agentd/changes/add-oauth/runs")
    }

    fn runner(&self) -> Runner {
        let mut environment = environment(&self.mark);
        environment.push(("SOME_API_KEY".into(), "a-very-secret-key".into()));
        Runner {
            supervisor: supervisor(),
            environment,
            retry: Retry {
                retries: self.retries,
                delay: Duration::from_millis(1),
                longest: Duration::from_millis(5),
            },
            record: RecordLimits::default(),
            spending: Spending::default(),
            warm: std::sync::Arc::default(),
            estimate_usd: None,
            carrier: None,
            cancel: Cancel::new().unwrap(),
            sandbox: None,
        }
    }

    fn call(&self, kind: AgentKind) -> (CallReport, Vec<AgentEvent<'static>>) {
        let mut events = Vec::new();
        let mut observer = |event: &AgentEvent<'_>| events.push(event.clone().into_owned());
        let limits = Limits { drain: Duration::from_millis(300), ..Limits::default() };
        let report = self
            .runner()
            .call(
                &*provider(kind, Transport::Cli),
                &self.request,
                &self.change(),
                limits,
                &mut observer,
            )
            .unwrap();
        assert_eq!(marked(&self.mark), []);
        (report, events)
    }
}

fn records(path: &Path) -> Vec<Record> {
    read_run(path).unwrap().map(Result::unwrap).collect()
}

/// The lines that the agent printed.
fn printed(records: &[Record]) -> Vec<&str> {
    let raw = records.iter().filter_map(|record| match record {
        Record::Raw { line, .. } => Some(line.as_str()),
        _ => None,
    });
    raw.collect()
}

const INIT: &str = r#"{"type":"init","session_id":"s-1","model":"flash"}"#;
const TEXT: &str = r#"{"type":"message","role":"assistant","content":"the key is a-very-secret-key","delta":true}"#;
const DONE: &str = r#"{"type":"result","status":"success","stats":{"total_tokens":3,"input_tokens":2,"output_tokens":1}}"#;

#[test]
fn a_call_is_decoded_recorded_and_leaves_nothing() {
    let call = Call::new(&["read", "say", INIT, "say", TEXT, "err", "noise", "say", DONE]);
    let (report, events) = call.call(AgentKind::Gemini);
    let outcome = report.outcome().unwrap();
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.session_id.as_deref(), Some("s-1"));
    assert_eq!(outcome.usage.unwrap().total(), 3);
    assert_eq!(events.len(), 4);
    let path = &report.last().unwrap().run_file;
    assert!(path.ends_with("0001-proposal-gen.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    assert!(!text.contains("a-very-secret-key"), "{text}");
    let records = records(path);
    let Some(Record::Header(header)) = records.first() else { panic!() };
    assert_eq!(header.prompt, "agentd proposal-gen add-oauth\n");
    insta::assert_snapshot!(header.env.join("\n"), @"
    GEMINI_CLI_TRUST_WORKSPACE
    GEMINI_CLI_NO_RELAUNCH
    TMPDIR
    AGENTD_MCP_COMMAND
    AGENTD_MCP_ARG_1
    AGENTD_MCP_ARG_2
    AGENTD_MCP_ARG_3
    AGENTD_MCP_ARG_4
    AGENTD_MCP_ARG_5
    AGENTD_MCP_ARG_6
    AGENTD_MCP_ARG_7
    AGENTD_MCP_ARG_8
    AGENTD_MCP_ARG_9
    AGENTD_MCP_ARG_10
    AGENTD_MCP_ARG_11
    FAKE_AGENT
    ");
    insta::assert_snapshot!(printed(&records).join("\n"), @r#"
    {"type":"init","session_id":"s-1","model":"flash"}
    {"type":"message","role":"assistant","content":"the key is [redacted]","delta":true}
    {"type":"result","status":"success","stats":{"total_tokens":3,"input_tokens":2,"output_tokens":1}}
    "#);
    assert!(matches!(records.last(), Some(Record::End { end, .. }) if end.exit_code == Some(0)));
    assert!(!call.project.root().join(".gemini").exists());
    assert!(!call.request.private_dir.exists());
}

#[test]
fn gemini_has_its_settings_during_the_call() {
    let call = Call::new(&["script", ".gemini/settings.json", "env", "AGENTD_MCP_ARG_5"]);
    let (report, _) = call.call(AgentKind::Gemini);
    let records = records(&report.last().unwrap().run_file);
    insta::assert_snapshot!(printed(&records).join("\n"), @r#"
    {
      "mcpServers": {
        "agentd": {
          "command": "${AGENTD_MCP_COMMAND}",
          "args": [
            "${AGENTD_MCP_ARG_1}",
            "${AGENTD_MCP_ARG_2}",
            "${AGENTD_MCP_ARG_3}",
            "${AGENTD_MCP_ARG_4}",
            "${AGENTD_MCP_ARG_5}",
            "${AGENTD_MCP_ARG_6}",
            "${AGENTD_MCP_ARG_7}",
            "${AGENTD_MCP_ARG_8}",
            "${AGENTD_MCP_ARG_9}",
            "${AGENTD_MCP_ARG_10}",
            "${AGENTD_MCP_ARG_11}"
          ],
          "trust": true,
          "timeout": 60000
        }
      },
      "general": {
        "sessionRetention": {
          "enabled": false
        }
      },
      "advanced": {
        "ignoreLocalEnv": true
      }
    }
    AGENTD_MCP_ARG_5=add-oauth
    "#);
}

#[test]
fn transient_failures_are_retried_and_recorded() {
    let mut call = Call::new(&["err", "429 too many requests", "exit", "1"]);
    call.retries = 2;
    call.request.session = Session::FreshWithId("u".into());
    let (report, events) = call.call(AgentKind::Codex);
    assert_eq!(report.attempts.len(), 3);
    assert_eq!(std::fs::read_dir(call.runs()).unwrap().count(), 3);
    let retries = events.iter().filter(|event| matches!(event, AgentEvent::Retry { .. })).count();
    assert_eq!(retries, 2);
    let failure = report.outcome().unwrap().failure.clone().unwrap();
    assert_eq!(failure.kind, FailureKind::RateLimited);
    assert_eq!(failure.stderr_tail.trim(), "429 too many requests");
}

#[test]
fn final_failures_are_not_retried() {
    let mut call = Call::new(&["exit", "41"]);
    call.retries = 2;
    let (report, _) = call.call(AgentKind::Gemini);
    assert_eq!(report.attempts.len(), 1);
    let failure = report.outcome().unwrap().failure.clone().unwrap();
    assert_eq!(failure.kind, FailureKind::Auth);
    insta::assert_snapshot!(failure.hint.unwrap(), @"log in by running `gemini` once, or set GEMINI_API_KEY");
}

#[test]
fn a_missing_program_is_a_failure_with_a_hint() {
    let mut call = Call::new(&[]);
    call.request.program = "no-such-agent".into();
    let (report, _) = call.call(AgentKind::Claude);
    let failure = report.outcome().unwrap().failure.clone().unwrap();
    assert_eq!(failure.kind, FailureKind::NotInstalled);
    insta::assert_snapshot!(failure.hint.unwrap(), @"install it with `npm install -g @anthropic-ai/claude-code`, or set `command` in [claude]");
}

#[test]
fn odd_output_is_survived_and_kept() {
    let call = Call::new(&[
        "read", "say", INIT, "say", TEXT, "bytes", "ff 41 0a", "long", "20000000", "say",
        "not json", "say", "", "half", DONE,
    ]);
    let (report, events) = call.call(AgentKind::Gemini);
    assert_eq!(report.outcome().unwrap().failure, None);
    let cut = events
        .iter()
        .any(|event| matches!(event, AgentEvent::Warning { message } if message.contains("cut")));
    assert!(cut);
    let records = records(&report.last().unwrap().run_file);
    assert_eq!(printed(&records).len(), 6);
}

#[test]
fn a_wrong_session_is_stopped_at_once() {
    let mut call = Call::new(&["say", INIT, "forever"]);
    call.request.session = Session::Resume {
        id: "other".into(),
        index: Some(1),
        thread_usage: None,
        cost_before: None,
    };
    let (report, _) = call.call(AgentKind::Gemini);
    let failure = report.outcome().unwrap().failure.clone().unwrap();
    assert_eq!(failure.kind, FailureKind::WrongSession);
    // C32: by its index, and once more by its ID.
    let asked: Vec<String> = report
        .attempts
        .iter()
        .map(|attempt| match records(&attempt.run_file).swap_remove(0) {
            Record::Header(header) => {
                let at = header.argv.iter().position(|word| word == "--resume").unwrap();
                header.argv[at + 1].clone()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(asked, ["1", "other"]);
}

#[test]
fn a_closed_input_is_reported() {
    let mut call = Call::new(&["close-stdin", "sleep", "100", "exit", "3"]);
    call.request.prompt = "x".repeat(1 << 20);
    call.retries = 1;
    let (report, _) = call.call(AgentKind::Codex);
    assert_eq!(report.attempts.len(), 2, "it is tried again");
    let failure = report.outcome().unwrap().failure.clone().unwrap();
    assert_eq!(failure.kind, FailureKind::StdinClosed);
}

#[test]
fn sessions_are_listed_and_failures_are_typed() {
    let list = "Available sessions for this project (1):\n  1. x [y] (Just now) [u-1]";
    let call = Call::new(&["say", list]);
    let output = call.runner().list_sessions(&call.request, Limits::default()).unwrap();
    assert_eq!(find(&output, "u-1").unwrap().index, 1);
    let call = Call::new(&["err", "no auth", "exit", "41"]);
    let output = call.runner().list_sessions(&call.request, Limits::default()).unwrap();
    let error = find(&output, "u-1").unwrap_err();
    assert!(matches!(error, SessionError::ListFailed { code: Some(41), .. }));
    let call = Call::new(&["forever"]);
    let limits = Limits { whole: Duration::from_millis(200), ..Limits::default() };
    let output = call.runner().list_sessions(&call.request, limits).unwrap();
    assert!(matches!(find(&output, "u-1"), Err(SessionError::ListTimedOut { .. })));
}
