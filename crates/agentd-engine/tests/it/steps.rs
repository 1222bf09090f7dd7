//! Steps with the stand-in for an agent: what is recorded, what is judged, what is refused.

use std::fs;
use std::path::PathBuf;

use agentd_core::agent::{AgentKind, Role, Transport};
use agentd_core::config::Config;
use agentd_core::document::proposal::{self, Proposal};
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::provider::{
    AgentRequest, FoundInProject, McpServer, Session, Surroundings, provider,
};
use agentd_core::state::LlmCall;
use agentd_core::step_name::StepName;
use agentd_engine::agents::files::AgentFiles;
use agentd_engine::agents::step::{Agents, Artifact, Step, StepError, StepReport};
use agentd_engine::explain::Explain as _;
use agentd_engine::guard::trust::Trusted;
use agentd_engine::process::CancelReason;
use test_project::{TestProject, now, run_step, write_script};

use crate::support::{example, mark};

fn change() -> ChangeId {
    ChangeId::new("add-login").unwrap()
}

const START: &str = r#"{"type":"system","subtype":"init","session_id":"daa347b4","mcp_servers":[{"name":"agentd","status":"connected"}],"model":"claude-opus-4-8"}"#;
const SAY: &str = r#"{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-opus-4-8","content":[{"type":"text","text":"It is written."}]},"session_id":"daa347b4"}"#;
const BUSY: &str = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":503,"result":"API Error: 503 busy","session_id":"daa347b4"}"#;
const END: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"It is written.","session_id":"daa347b4","total_cost_usd":0.25,"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":2}}"#;

/// A project in which claude is a script, and what its steps need. `script` is run by a shell in
/// the project; `$N` is the number of the call, from 1.
pub(crate) fn scripted(script: &str, config: &str) -> (TestProject, Agents) {
    let project = TestProject::new().described("add-login", "Add a login", now());
    let lines = format!(
        "cat >/dev/null\necho x >> \"{0}/calls\"\nN=$(wc -l < \"{0}/calls\" | tr -d ' ')\nC=agentd/changes/add-login\n{script}",
        project.change_dir().display()
    );
    let program = project.root().join("agent");
    write_script(&program, &lines);
    for (name, line) in [("start", START), ("say", SAY), ("busy", BUSY), ("end", END)] {
        project.write_root(name, format!("{line}\n"));
    }
    project.write_root("good.md", proposal_text("Add a login."));
    let config = format!(
        "[workflow]\nretry_delay_secs = 0\n[roles]\nplanner = \"claude\"\n[claude]\ncommand = \"{}\"\n{config}",
        program.display()
    );
    project.write_root("agentd/config.toml", config);
    let mut agents = project.agents(&example("drive"));
    agents.environment.push(("IT_MARK".into(), mark().into()));
    (project, agents)
}

/// Where agentd keeps what it needs during calls.
pub(crate) fn kept(project: &TestProject) -> PathBuf {
    project.user().state_path(&project.root()).unwrap().join("calls")
}

/// The step that writes the proposal.
fn run(agents: &Agents) -> (Result<StepReport, StepError>, Vec<String>) {
    ask(agents, Role::Planner, "proposal-gen", Artifact::File(ChangeFile::Proposal))
}

/// Runs a step; what came of it, and the warnings.
pub(crate) fn ask(
    agents: &Agents,
    role: Role,
    name: &str,
    artifact: Artifact,
) -> (Result<StepReport, StepError>, Vec<String>) {
    let step = Step {
        change: change(),
        role,
        agent: agents.config.roles.agent(role),
        name: name.into(),
        prompt: format!("agentd {name} add-login\n"),
        resume: None,
        artifact,
        on_success: None,
    };
    run_step(agents, &step, &now)
}

/// How often the script was called.
fn calls(project: &TestProject) -> usize {
    fs::read_to_string(project.path("calls")).unwrap_or_default().lines().count()
}

fn proposal_text(summary: &str) -> String {
    proposal::render(&Proposal {
        id: Some(change()),
        version: 1,
        summary: summary.into(),
        why: "Because.".into(),
        what_changes: vec!["A login".into()],
        ..Proposal::default()
    })
}

const WRITES: &str = "cat start say; cp good.md $C/proposal.md; cat end";

#[test]
fn a_step_that_writes_its_artifact_succeeds_and_is_in_the_ledger() {
    let (project, agents) = scripted(WRITES, "");
    let report = run(&agents).0.unwrap();
    assert!((report.cost_usd - 0.25).abs() < 1e-9, "the CLI's own figure");
    let state = project.state();
    let expected = LlmCall {
        step: StepName::ProposalGen,
        agent: Some(AgentKind::Claude),
        model: "claude-opus-4-8".to_owned(),
        tokens_in: 15,
        tokens_out: 2,
        tokens_cached: 5,
        duration_ms: state.llm_calls[0].duration_ms,
        cost: 0.25,
        unsettled: false,
        timestamp: Some(now()),
        session_id: Some("daa347b4".to_owned()),
        run: Some(1),
        failure: None,
        asked: false,
    };
    assert_eq!(state.llm_calls, [expected]);
    assert_eq!((state.total_tokens_in, state.total_tokens_out), (15, 2));
    assert_eq!(state.last_action, Some(StepName::ProposalGen.into()));
}

/// Lesson 2: success is what is on the disk.
#[test]
fn success_in_words_alone_is_a_failure() {
    let (project, agents) = scripted("cat start say end", "");
    let error = run(&agents).0.unwrap_err();
    assert!(matches!(&error, StepError::NoArtifact { exists: false, .. }), "{error:?}");
    insta::assert_snapshot!(project.explained(&error), @"
    no_artefact: claude reported success, but proposal.md does not exist
    cause: it called no tool; its last words were: It is written.
    hint: retry: a model may forget to call its tool
    hint: see what it said and did: agentd log <id> --run last
    hint: check that the MCP server starts: agentd doctor
    ");
    assert_eq!(project.state().llm_calls.len(), 1, "it has cost something all the same");
}

#[test]
fn an_unchanged_artifact_is_a_failure() {
    let (project, agents) = scripted(WRITES, "");
    run(&agents).0.unwrap();
    let error = run(&agents).0.unwrap_err();
    assert!(matches!(error, StepError::NoArtifact { exists: true, .. }), "{error:?}");
    assert_eq!(project.state().llm_calls.len(), 2);
}

#[test]
fn an_invalid_artifact_is_a_failure_with_its_findings() {
    let (project, agents) = scripted("cat start say; echo nonsense > $C/proposal.md; cat end", "");
    let error = run(&agents).0.unwrap_err();
    let StepError::InvalidArtifact { findings, .. } = &error else { panic!("{error:?}") };
    assert!(findings.iter().any(|finding| finding.rule.code == "P001"));
    insta::assert_snapshot!(project.explained(&error), @"
    invalid_artefact: proposal.md is not valid after claude: 5 findings
    cause: the section `## Summary` is missing
    hint: fix it, or retry: proposal.md
    hint: P001: the section `## Summary` is missing. Add the section with at least one sentence.
    hint: P001: the section `## Why` is missing. Add the section with at least one sentence.
    hint: P001: the section `## What Changes` is missing. Add the section with at least one sentence.
    hint: P001: the section `## Impact` is missing. Add the section with at least one sentence.
    hint: P009: proposal.md has no frontmatter. Let the planner write the proposal again, or add a frontmatter with `id`, `type: proposal` and `affected_specs`.
    ");
}

/// C13, and lesson 3: every attempt is in the ledger.
#[test]
fn transient_failures_are_retried_and_in_the_ledger() {
    let fails_once = format!("if [ $N = 1 ]; then cat start busy; exit 1; fi\n{WRITES}");
    let (project, agents) = scripted(&fails_once, "");
    run(&agents).0.unwrap();
    assert_eq!((calls(&project), project.state().llm_calls.len()), (2, 2));
    let runs = fs::read_dir(project.root().join("agentd/changes/add-login/runs")).unwrap().count();
    assert_eq!(runs, 2, "a record for each");
}

#[test]
fn a_lasting_failure_is_reported_after_the_retries() {
    let (project, agents) = scripted("cat start busy; echo 'the disk is on fire' >&2; exit 1", "");
    let error = run(&agents).0.unwrap_err();
    assert!(matches!(error, StepError::Agent { .. }), "{error:?}");
    assert_eq!(calls(&project), 3, "once and two retries");
    insta::assert_snapshot!(project.explained(&error), @"
    agent_failed: claude failed: API Error: 503 busy
    cause: the disk is on fire
    ");
}

#[test]
fn a_used_up_budget_starts_nothing() {
    for budget in ["[budget]\nmax_cost_usd = 0.2\n", "[budget]\nmax_tokens = 17\n"] {
        let (project, agents) = scripted(WRITES, budget);
        run(&agents).0.unwrap();
        let error = run(&agents).0.unwrap_err();
        assert!(matches!(error, StepError::Budget { .. }), "{error:?}");
        assert_eq!(calls(&project), 1);
    }
}

/// T8: the call is ended while it runs, and what it has used until then is in the ledger.
#[test]
fn a_budget_ends_a_running_call() {
    let message = |id: &str, input: u64| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","model":"claude-opus-4-8","content":[{{"type":"text","text":"{id}"}}],"usage":{{"input_tokens":{input},"output_tokens":1}}}}}}"#
        )
    };
    let script = format!(
        "cat start\necho '{}'\necho '{}'\nsleep 600\ncat end",
        message("m1", 400),
        message("m2", 700)
    );
    for budget in ["max_tokens = 1000", "max_cost_usd = 0.001"] {
        let price = "[prices.\"claude-opus-4-8\"]\ninput = 1.0\noutput = 1.0\n";
        let (project, agents) = scripted(&script, &format!("{price}[budget]\n{budget}\n"));
        let error = run(&agents).0.unwrap_err();
        let StepError::Budget { spent, ended, .. } = &error else { panic!("{error:?}") };
        assert_eq!(*ended, Some(AgentKind::Claude));
        let state = project.state();
        let [call] = &state.llm_calls[..] else { panic!("{:?}", state.llm_calls) };
        assert_eq!((call.tokens_in, call.tokens_out), (1100, 2), "{spent}");
        assert!(call.cost > 0.001 && call.duration_ms < 60_000, "{call:?}");
        assert_eq!(calls(&project), 1, "it is not called again");
        if budget.starts_with("max_tokens") {
            insta::assert_snapshot!(project.explained(&error), @"
            budget: `add-login` has used up its budget: 1102 tokens of 1000 tokens
            cause: the call of claude was ended when its usage showed it; what it had written stays
            hint: see where it went: agentd cost add-login
            hint: raise the limits in [budget], or finish by hand: agentd/config.toml
            ");
        }
    }
    // A call that is done is not taken back: the next one is refused.
    let (project, agents) = scripted(WRITES, "[budget]\nmax_tokens = 10\n");
    run(&agents).0.unwrap();
    let error = run(&agents).0.unwrap_err();
    assert!(matches!(&error, StepError::Budget { ended: None, .. }), "{error:?}");
    assert_eq!(project.state().llm_calls.len(), 1);
}

#[test]
fn a_model_without_a_price_is_reported_and_not_guessed() {
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"x","session_id":"daa347b4","usage":{"input_tokens":10,"output_tokens":2}}"#;
    let unpriced = "sed 's/claude-opus-4-8/some-model/' start; cat say; cp good.md $C/proposal.md; cat unpriced";
    let (project, agents) = scripted(unpriced, "");
    fs::write(project.root().join("unpriced"), format!("{end}\n")).unwrap();
    let (result, warnings) = run(&agents);
    result.unwrap();
    assert!(project.state().total_cost.abs() < 1e-9);
    insta::assert_snapshot!(warnings.join("\n"), @r#"no price is known for the model some-model; set [prices."some-model"] to count its cost"#);
}

#[test]
fn a_missing_agent_is_named_with_a_hint() {
    let (project, mut agents) = scripted(WRITES, "");
    let mut config = Config::clone(&agents.config);
    config.claude.command = Some("/nowhere/claude".to_owned());
    agents.config = Trusted::written_here(config);
    let error = run(&agents).0.unwrap_err();
    insta::assert_snapshot!(project.explained(&error), @"
    agent_not_installed: claude failed: cannot start `/nowhere/claude`: No such file or directory (os error 2)
    hint: install it with `npm install -g @anthropic-ai/claude-code`, or set `command` in [claude]
    hint: or name another agent in [roles]: agentd/config.toml
    hint: for a plan alone, `--agent builtin` drafts and checks it by rules, without a model
    ");
}

#[test]
fn an_interrupted_step_is_recorded() {
    let (project, agents) = scripted("cat start; exec sleep 60", "");
    let cancel = agents.cancel.clone();
    let waiter = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        cancel.cancel(CancelReason::Interrupt);
    });
    let error = run(&agents).0.unwrap_err();
    waiter.join().unwrap();
    assert_eq!(error.kind(), Kind::Interrupted);
    assert_eq!(project.state().llm_calls.len(), 1);
}

/// What a killed agentd left in the settings of Gemini CLI goes first, whichever agent is next.
#[test]
fn any_step_restores_settings_that_a_killed_agentd_left() {
    let (project, agents) = scripted(WRITES, "");
    let settings = project.root().join(".gemini/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let mine = "{ \"mine\":  true }";
    fs::write(&settings, mine).unwrap();
    let kept = kept(&project);
    agents.project.state_dir().unwrap();
    let request = AgentRequest {
        role: Role::Planner,
        change: change(),
        step: StepName::ProposalGen,
        prompt: String::new(),
        project_root: project.root(),
        private_dir: kept.join("killed"),
        program: "gemini".to_owned(),
        extra_args: Vec::new(),
        extra_env: Vec::new(),
        extra_state: vec![],
        env_names: Vec::new(),
        model: None,
        effort: None,
        session: Session::Fresh,
        mcp: Some(McpServer::new(
            "agentd",
            "/p",
            &change(),
            Role::Planner,
            &StepName::ProposalGen,
            None,
        )),
        surroundings: Surroundings::default(),
        found: FoundInProject::default(),
    };
    let spec = provider(AgentKind::Gemini, Transport::Cli).command(&request);
    let files = AgentFiles::prepare(&spec, &project.root(), &request.private_dir).unwrap();
    let backups = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().path());
    let backup =
        backups.into_iter().find(|path| path.extension().is_some_and(|e| e == "backup")).unwrap();
    let left = [&settings, &backup].map(|path| (path, fs::read(path).unwrap()));
    drop(files);
    assert_eq!(fs::read_to_string(&settings).unwrap(), mine);
    // As it is after a kill: nobody has put anything back.
    for (path, bytes) in left {
        fs::write(path, bytes).unwrap();
    }
    assert_ne!(fs::read_to_string(&settings).unwrap(), mine);
    run(&agents).0.unwrap();
    assert_eq!(fs::read_to_string(&settings).unwrap(), mine);
}
