//! The runner of agentd against the real CLIs: what the providers say about how to
//! call them, and what the decoders make of it, is true.

use std::path::Path;

use agentd_core::agent::{AgentKind, Role, Transport};
use agentd_core::event::AgentEvent;
use agentd_core::ids::ChangeId;
use agentd_core::outcome::{AgentOutcome, FailureKind, ReviewMark};
use agentd_core::provider::sessions::find;
use agentd_core::provider::{
    AgentRequest, FoundInProject, McpServer, Session, Surroundings, provider,
};
use agentd_engine::agents::run_record::{RecordLimits, read_run};
use agentd_engine::agents::runner::{Retry, Runner, Spending};
use agentd_engine::agents::step::Agents;
use agentd_engine::process::{Limits, Supervisor};
use real_agents::{Cli, Sandbox, work};
use scripted_models::{Reply, Rule, Script};
use serde_json::json;

real_agents::for_every_cli!(
    a_planner_writes_through_mcp_and_is_resumed,
    an_implementer_works_in_the_project,
    an_implementer_cannot_edit_outside_the_project,
    a_planner_cannot_touch_the_project,
    a_server_that_does_not_start_is_a_failure,
    an_unknown_session_is_a_failure,
);

fn kind(cli: Cli) -> AgentKind {
    match cli {
        Cli::Gemini => AgentKind::Gemini,
        Cli::Codex => AgentKind::Codex,
        Cli::Claude => AgentKind::Claude,
    }
}

/// Where the notes server writes, as agentd's own does: in the change.
const NOTES: &str = "agentd/changes/add-login/notes";

fn runner(sandbox: &Sandbox) -> Runner {
    std::fs::create_dir_all(sandbox.root().join(NOTES)).unwrap();
    let supervisor = Supervisor::new(env!("CARGO_BIN_EXE_supervise"));
    let agents = sandbox.agents(Path::new(env!("CARGO_BIN_EXE_notes-mcp")));
    let agents = Agents { supervisor, ..agents };
    let change = ChangeId::new("add-login").unwrap();
    Runner {
        sandbox: agentd_engine::guard::sandbox::Sandbox::open(&agents, Some(&change)).unwrap(),
        supervisor: agents.supervisor,
        environment: agents.environment,
        retry: Retry { retries: 0, ..Retry::default() },
        record: RecordLimits::default(),
        cancel: agents.cancel,
        spending: Spending::default(),
        warm: agents.warm,
        estimate_usd: None,
        carrier: None,
    }
}

fn request(sandbox: &Sandbox, cli: Cli, role: Role) -> AgentRequest {
    let notes = sandbox.root().join(NOTES);
    let names = sandbox.environment().into_iter();
    AgentRequest {
        role,
        change: ChangeId::new("add-login").unwrap(),
        step: "plan".into(),
        prompt: "agentd plan add-login\n\nWrite the note.".into(),
        project_root: sandbox.root(),
        private_dir: sandbox.root().join("agentd/.agents/plan"),
        program: sandbox.clis().program(cli).to_str().unwrap().into(),
        extra_args: vec![],
        extra_env: vec![],
        extra_state: vec![],
        env_names: names.map(|(name, _)| name.into_string().unwrap()).collect(),
        model: None,
        effort: None,
        session: Session::Fresh,
        surroundings: Surroundings::default(),
        found: FoundInProject::default(),
        mcp: Some(McpServer {
            command: env!("CARGO_BIN_EXE_notes-mcp").into(),
            args: vec![notes.to_str().unwrap().into()],
            tools: vec![],
        }),
    }
}

fn call(sandbox: &Sandbox, cli: Cli, request: &AgentRequest) -> AgentOutcome {
    let mut events = Vec::new();
    let mut observer = |event: &AgentEvent<'_>| events.push(event.clone().into_owned());
    let runner = runner(sandbox);
    let change = sandbox.store().change(&request.change).unwrap();
    let surroundings = runner.sandbox.as_ref().unwrap().surroundings();
    let request = &AgentRequest { surroundings, ..request.clone() };
    let report = runner
        .call(
            &*provider(kind(cli), Transport::Cli),
            request,
            &change,
            Limits::default(),
            &mut observer,
        )
        .unwrap();
    let attempt = report.last().unwrap();
    let records = read_run(&attempt.run_file).unwrap().map(Result::unwrap).count();
    assert!(records >= 2);
    assert!(!sandbox.root().join(".gemini/settings.json").exists(), "it was put back");
    for event in &events {
        assert!(!matches!(event, AgentEvent::Raw { .. }), "not understood: {event:?}");
    }
    attempt.outcome.clone()
}

fn write_note() -> Script {
    let note = json!({"name": "plan", "text": "the plan\n"});
    Script::new().rule(
        Rule::new()
            .step("plan")
            .reply(Reply::call("write_note", note).saying("I will write the note."))
            .reply(Reply::text("<review>PASS</review>")),
    )
}

fn a_planner_writes_through_mcp_and_is_resumed(cli: Cli) {
    let script = write_note().rule(Rule::new().step("again").reply(Reply::text("Again.")));
    Sandbox::enter(script, |sandbox| {
        let mut request = request(sandbox, cli, Role::Planner);
        let first = call(sandbox, cli, &request);
        assert_eq!(first.failure, None, "{first:#?}");
        assert_eq!(first.review, Some(ReviewMark::Pass));
        assert_eq!(first.tool_calls, 1);
        assert!(first.usage.unwrap().input > first.usage.unwrap().cached);
        let note = std::fs::read_to_string(sandbox.root().join(NOTES).join("plan.md")).unwrap();
        assert_eq!(note, "the plan\n");

        let id = first.session_id.clone().unwrap();
        let index = (cli == Cli::Gemini).then(|| {
            let output = runner(sandbox).list_sessions(&request, Limits::default()).unwrap();
            find(&output, &id).unwrap().index
        });
        let before = sandbox.models().requests().len();
        request.prompt = "agentd again add-login\n".into();
        request.session = Session::Resume {
            id: id.clone(),
            index,
            thread_usage: first.thread_usage,
            cost_before: None,
        };
        let second = call(sandbox, cli, &request);
        assert_eq!(second.failure, None, "{second:#?}");
        assert_eq!(second.session_id.as_deref(), Some(&*id));
        assert_eq!(second.text, "Again.");
        let requests = sandbox.models().requests();
        let last = requests[before..].last().unwrap();
        let remembers =
            last.messages.iter().any(|message| message.text.contains("Write the note."));
        assert!(remembers, "{last:#?}");
    });
}

fn an_implementer_works_in_the_project(cli: Cli) {
    Sandbox::enter(work(cli), |sandbox| {
        let outcome = call(sandbox, cli, &request(sandbox, cli, Role::Implementer));
        assert_eq!(outcome.failure, None, "{outcome:#?}");
        let copy = std::fs::read_to_string(sandbox.root().join("copy.txt")).unwrap();
        assert_eq!(copy, "hello\n");
    });
}

/// Neither by the tools that edit files nor by commands.
fn an_implementer_cannot_edit_outside_the_project(cli: Cli) {
    let mut replies = Rule::new();
    let outside = |path: &str| match cli {
        Cli::Gemini => Reply::call("write_file", json!({"file_path": path, "content": "x"})),
        Cli::Codex => {
            let patch = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n");
            Reply::call("apply_patch", json!(patch))
        }
        Cli::Claude => Reply::call("Write", json!({"file_path": path, "content": "x"})),
    };
    replies = replies.reply(outside("${cwd}/../outside.txt"));
    for command in ["touch ../outside.txt", "touch tried.txt"] {
        replies = replies.reply(match cli {
            Cli::Gemini => Reply::call("run_shell_command", json!({"command": command})),
            Cli::Codex => Reply::call("exec_command", json!({"cmd": command})),
            Cli::Claude => Reply::call("Bash", json!({"command": command})),
        });
    }
    let script = Script::new().rule(replies.reply(Reply::text("Done.")));
    Sandbox::enter(script, |sandbox| {
        let outcome = call(sandbox, cli, &request(sandbox, cli, Role::Implementer));
        assert_eq!(outcome.failure, None, "{outcome:#?}");
        assert!(sandbox.root().join("tried.txt").exists(), "{outcome:#?}");
        assert!(!sandbox.base().join("outside.txt").exists());
    });
}

fn a_planner_cannot_touch_the_project(cli: Cli) {
    Sandbox::enter(work(cli), |sandbox| {
        call(sandbox, cli, &request(sandbox, cli, Role::Planner));
        assert!(!sandbox.root().join("hello.txt").exists());
        assert!(!sandbox.root().join("copy.txt").exists());
    });
}

fn a_server_that_does_not_start_is_a_failure(cli: Cli) {
    let script = Script::new().rule(Rule::new().reply(Reply::text("<review>PASS</review>")));
    Sandbox::enter(script, |sandbox| {
        let mut request = request(sandbox, cli, Role::Planner);
        request.mcp =
            Some(McpServer { command: "/nowhere/agentd".into(), args: vec![], tools: vec![] });
        let outcome = call(sandbox, cli, &request);
        assert_eq!(outcome.failure.unwrap().kind, FailureKind::McpUnavailable);
    });
}

fn an_unknown_session_is_a_failure(cli: Cli) {
    Sandbox::enter(write_note(), |sandbox| {
        let mut request = request(sandbox, cli, Role::Planner);
        let id = "0a1b2c3d-0000-4000-8000-000000000000".to_owned();
        request.session =
            Session::Resume { id, index: None, thread_usage: None, cost_before: None };
        let outcome = call(sandbox, cli, &request);
        assert_eq!(outcome.failure.unwrap().kind, FailureKind::SessionNotFound);
    });
}
