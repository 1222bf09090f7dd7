//! Steps with the stand-in for an agent: what is recorded, what is judged, what is refused.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use agentd_core::agent::{AgentKind, Role};
use agentd_core::config::Config;
use agentd_core::document::proposal::{self, Proposal};
use agentd_core::error_kind::Kind;
use agentd_core::event::AgentEvent;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::provider::{
    AgentRequest, FoundInProject, McpServer, Session, Surroundings, provider,
};
use agentd_core::stamp::Stamp;
use agentd_core::state::{self, LlmCall, State};
use agentd_core::step_name::StepName;
use agentd_engine::agents::files::AgentFiles;
use agentd_engine::agents::step::{self, Agents, Artefact, Step, StepError, StepReport};
use agentd_engine::change::documents;
use agentd_engine::explain::Explain as _;
use agentd_engine::guard::trust::Trusted;
use agentd_engine::process::{Cancel, CancelReason};
use agentd_engine::store::{Holder, UserDirs};

use crate::support::{environment, example, mark, supervisor};

fn now() -> Stamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn change() -> ChangeId {
    ChangeId::new("add-login").unwrap()
}

const START: &str = r#"{"type":"system","subtype":"init","session_id":"daa347b4","mcp_servers":[{"name":"agentd","status":"connected"}],"model":"claude-opus-4-8"}"#;
const SAY: &str = r#"{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-opus-4-8","content":[{"type":"text","text":"It is written."}]},"session_id":"daa347b4"}"#;
const BUSY: &str = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":503,"result":"API Error: 503 busy","session_id":"daa347b4"}"#;
const END: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"It is written.","session_id":"daa347b4","total_cost_usd":0.25,"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":2}}"#;

/// A project in which claude is a script.
pub(crate) struct World {
    dir: tempfile::TempDir,
    home: tempfile::TempDir,
    pub(crate) agents: Agents,
}

/// The environment of tests, with a home of its own.
fn environment_at(home: &Path) -> Vec<(OsString, OsString)> {
    let mut environment = environment(&mark());
    environment.retain(|(name, _)| name != "HOME");
    environment.push(("HOME".into(), home.into()));
    environment
}

impl World {
    /// `script` is run by a shell in the project; `$N` is the number of the call, from 1.
    pub(crate) fn new(script: &str, config: &str) -> Self {
        let dir = scratch::dir();
        let root = dir.path();
        let change_dir = root.join("agentd/changes/add-login");
        fs::create_dir_all(&change_dir).unwrap();
        let program = root.join("agent");
        let lines = format!(
            "#!/bin/sh\ncat >/dev/null\necho x >> \"{0}/calls\"\nN=$(wc -l < \"{0}/calls\" | tr -d ' ')\nC=agentd/changes/add-login\n{script}\n",
            change_dir.display()
        );
        fs::write(&program, lines).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&program, mode).unwrap();
        for (name, line) in [("start", START), ("say", SAY), ("busy", BUSY), ("end", END)] {
            fs::write(root.join(name), format!("{line}\n")).unwrap();
        }
        fs::write(root.join("good.md"), proposal_text("Add a login.")).unwrap();
        let config = format!(
            "[workflow]\nretry_delay_secs = 0\n[roles]\nplanner = \"claude\"\n[claude]\ncommand = \"{}\"\n{config}",
            program.display()
        );
        fs::write(root.join("agentd/config.toml"), config).unwrap();
        fs::write(
            change_dir.join("STATE.yaml"),
            state::render(&State::new(change(), "Add a login", now())),
        )
        .unwrap();
        let home = scratch::dir();
        let project =
            agentd_engine::opening::open_within_call(root, UserDirs::below(home.path())).unwrap();
        let agents = Agents {
            config: Trusted::written_here(documents::load_config(&project).unwrap()),
            work_tree: root.to_owned(),
            environment: environment_at(home.path()),
            agentd: example("drive").to_str().unwrap().to_owned(),
            supervisor: supervisor(),
            cancel: Cancel::new().unwrap(),
            holder: Holder::this_process("test", now().moment()),
            project,
        };
        Self { dir, home, agents }
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    /// The home directory of the user.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Where what agentd keeps about calls lies.
    pub(crate) fn kept(&self) -> PathBuf {
        let user = UserDirs::below(self.home.path());
        user.state_path(self.agents.project.root()).unwrap().join("calls")
    }

    fn run(&self) -> (Result<StepReport, StepError>, Vec<String>) {
        self.ask(Role::Planner, "proposal-gen", Artefact::File(ChangeFile::Proposal))
    }

    /// Runs a step; what came of it, and what was warned of.
    pub(crate) fn ask(
        &self,
        role: Role,
        name: &str,
        artefact: Artefact,
    ) -> (Result<StepReport, StepError>, Vec<String>) {
        let step = Step {
            change: change(),
            role,
            name: name.into(),
            prompt: format!("agentd {name} add-login\n"),
            resume: None,
            artefact,
            on_success: None,
        };
        let mut warnings = Vec::new();
        let result = step::run(&self.agents, &step, &now, &mut |event| {
            if let AgentEvent::Warning { message } = event {
                warnings.push(message.to_string());
            }
        });
        (result, warnings)
    }

    pub(crate) fn state(&self) -> State {
        documents::load_state(&self.agents.project.change(&change()).unwrap()).unwrap()
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.root().join("agentd/changes/add-login/calls"))
            .unwrap_or_default()
            .lines()
            .count()
    }
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
fn a_step_that_writes_its_artefact_succeeds_and_is_in_the_ledger() {
    let world = World::new(WRITES, "");
    let report = world.run().0.unwrap();
    assert!((report.cost_usd - 0.25).abs() < 1e-9, "the CLI's own figure");
    let state = world.state();
    let expected = LlmCall {
        step: StepName::ProposalGen,
        model: "claude-opus-4-8".to_owned(),
        tokens_in: 15,
        tokens_out: 2,
        tokens_cached: 5,
        duration_ms: state.llm_calls[0].duration_ms,
        cost: 0.25,
        timestamp: Some(now()),
        session_id: Some("daa347b4".to_owned()),
        run: Some(1),
    };
    assert_eq!(state.llm_calls, [expected]);
    assert_eq!((state.total_tokens_in, state.total_tokens_out), (15, 2));
    assert_eq!(state.last_action, Some(StepName::ProposalGen.into()));
}

/// Lesson 2: success is what is on the disk.
#[test]
fn success_in_words_alone_is_a_failure() {
    let world = World::new("cat start say end", "");
    let error = world.run().0.unwrap_err();
    assert!(
        matches!(&error, StepError::NoArtefact { exists: false, said, .. } if said == "It is written."),
        "{error:?}"
    );
    assert_eq!(error.kind(), Kind::NoArtefact);
    assert!(
        !error.explain().hints.is_empty()
            && error.explain().cause.unwrap().contains("It is written.")
    );
    assert_eq!(world.state().llm_calls.len(), 1, "it has cost something all the same");
}

#[test]
fn an_artefact_that_is_as_it_was_is_none() {
    let world = World::new(WRITES, "");
    world.run().0.unwrap();
    let error = world.run().0.unwrap_err();
    assert!(matches!(error, StepError::NoArtefact { exists: true, .. }), "{error:?}");
    assert_eq!(world.state().llm_calls.len(), 2);
}

#[test]
fn an_invalid_artefact_is_a_failure_with_its_findings() {
    let world = World::new("cat start say; echo nonsense > $C/proposal.md; cat end", "");
    let error = world.run().0.unwrap_err();
    let StepError::InvalidArtefact { findings, .. } = &error else { panic!("{error:?}") };
    assert!(findings.iter().any(|finding| finding.rule.code == "P001"));
    assert!(error.explain().hints.iter().any(|hint| hint.to_string().contains("P001")));
}

/// C13, and lesson 3: every attempt is in the ledger.
#[test]
fn transient_failures_are_tried_again_and_all_attempts_are_recorded() {
    let fails_once = format!("if [ $N = 1 ]; then cat start busy; exit 1; fi\n{WRITES}");
    let world = World::new(&fails_once, "");
    world.run().0.unwrap();
    assert_eq!((world.calls(), world.state().llm_calls.len()), (2, 2));
    let runs = fs::read_dir(world.root().join("agentd/changes/add-login/runs")).unwrap().count();
    assert_eq!(runs, 2, "a record for each");
}

#[test]
fn a_failure_that_stays_is_reported_after_the_retries() {
    let world = World::new("cat start busy; echo 'the disk is on fire' >&2; exit 1", "");
    let error = world.run().0.unwrap_err();
    assert!(matches!(error, StepError::Agent { .. }), "{error:?}");
    assert_eq!(world.calls(), 3, "once and two retries");
    assert!(error.explain().cause.unwrap().contains("the disk is on fire"));
}

#[test]
fn a_used_up_budget_starts_nothing() {
    for budget in ["[budget]\nmax_cost_usd = 0.2\n", "[budget]\nmax_tokens = 17\n"] {
        let world = World::new(WRITES, budget);
        world.run().0.unwrap();
        let error = world.run().0.unwrap_err();
        assert!(matches!(error, StepError::Budget { .. }), "{error:?}");
        assert_eq!(world.calls(), 1);
    }
}

#[test]
fn a_model_without_a_price_is_said_and_not_guessed() {
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"x","session_id":"daa347b4","usage":{"input_tokens":10,"output_tokens":2}}"#;
    let unpriced = "sed 's/claude-opus-4-8/some-model/' start; cat say; cp good.md $C/proposal.md; cat unpriced";
    let world = World::new(unpriced, "");
    fs::write(world.root().join("unpriced"), format!("{end}\n")).unwrap();
    let (result, warnings) = world.run();
    result.unwrap();
    assert!(world.state().total_cost.abs() < 1e-9);
    assert!(warnings.iter().any(|warning| warning.contains("some-model")), "{warnings:?}");
}

#[test]
fn an_agent_that_is_not_there_is_named_with_what_to_do() {
    let mut world = World::new(WRITES, "");
    let mut config = Config::clone(&world.agents.config);
    config.claude.command = Some("/nowhere/claude".to_owned());
    world.agents.config = Trusted::written_here(config);
    let error = world.run().0.unwrap_err();
    assert_eq!(error.kind(), Kind::AgentNotInstalled);
    assert!(!error.explain().hints.is_empty());
}

#[test]
fn an_interrupted_step_is_recorded() {
    let world = World::new("cat start; exec sleep 60", "");
    let cancel = world.agents.cancel.clone();
    let waiter = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        cancel.cancel(CancelReason::Interrupt);
    });
    let error = world.run().0.unwrap_err();
    waiter.join().unwrap();
    assert_eq!(error.kind(), Kind::Interrupted);
    assert_eq!(world.state().llm_calls.len(), 1);
}

/// Whoever is called next, what a killed agentd left in the settings of Gemini CLI goes first.
#[test]
fn settings_that_a_killed_agentd_left_are_restored_by_any_step() {
    let world = World::new(WRITES, "");
    let settings = world.root().join(".gemini/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let mine = "{ \"mine\":  true }";
    fs::write(&settings, mine).unwrap();
    let agents = world.kept();
    world.agents.project.state_dir().unwrap();
    let request = AgentRequest {
        role: Role::Planner,
        change: change(),
        step: StepName::ProposalGen,
        prompt: String::new(),
        project_root: world.root().to_owned(),
        private_dir: agents.join("killed"),
        program: "gemini".to_owned(),
        extra_args: Vec::new(),
        extra_env: Vec::new(),
        env_names: Vec::new(),
        model: None,
        effort: None,
        session: Session::Fresh,
        mcp: Some(McpServer::new("agentd", "/p", &change(), Role::Planner, &StepName::ProposalGen)),
        surroundings: Surroundings::default(),
        found: FoundInProject::default(),
    };
    let spec = provider(AgentKind::Gemini).command(&request);
    let files = AgentFiles::prepare(&spec, world.root(), &request.private_dir).unwrap();
    let backups = fs::read_dir(&agents).unwrap().map(|entry| entry.unwrap().path());
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
    world.run().0.unwrap();
    assert_eq!(fs::read_to_string(&settings).unwrap(), mine);
}
