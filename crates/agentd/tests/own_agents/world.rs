//! A project in which agentd's own agents play the roles.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use agentd_core::agent::Role;
use agentd_core::check::FileReport;
use agentd_core::diagnostic::Severity;
use agentd_core::document::proposal;
use agentd_core::event::AgentEvent;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::stamp::Stamp;
use agentd_core::state::{self, State};
use agentd_engine::agents::step::{self, Agents, Artefact, Step, StepError, StepReport};
use agentd_engine::change::documents;
use agentd_engine::guard::trust::Trusted;
use agentd_engine::process::{Cancel, Supervisor};
use agentd_engine::store::{Holder, Project, UserDirs};
use jiff::Timestamp;

pub(crate) const AGENTD: &str = env!("CARGO_BIN_EXE_agentd");

pub(crate) const BUILTIN: &str = "[workflow]\nscript_retries = 0\n[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\nimplementer = \"builtin\"\nreviewer = \"builtin\"\n";

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    home: tempfile::TempDir,
    pub(crate) id: ChangeId,
}

impl World {
    /// A git repository with files, and a change that has begun.
    pub(crate) fn new(id: &str, description: &str, config: &str, files: &[(&str, &str)]) -> Self {
        let world = Self::empty(id, config, files);
        let state = State::new(world.id.clone(), description, Stamp::new(Timestamp::now()));
        let dir = world.change_dir();
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("STATE.yaml"), state::render(&state)).unwrap();
        world
    }

    /// A git repository with files, set up for agentd.
    pub(crate) fn empty(id: &str, config: &str, files: &[(&str, &str)]) -> Self {
        let world =
            Self { dir: scratch::dir(), home: scratch::dir(), id: ChangeId::new(id).unwrap() };
        for (path, text) in files {
            let path = world.root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        world.git(&["init", "-q"]);
        world.git(&["add", "-A"]);
        world.git(&["commit", "-q", "--allow-empty", "-m", "start"]);
        fs::create_dir_all(world.root().join("agentd/changes")).unwrap();
        fs::write(world.root().join("agentd/config.toml"), config).unwrap();
        world
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn change_dir(&self) -> PathBuf {
        self.root().join("agentd/changes").join(self.id.as_str())
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.change_dir().join(file)).unwrap()
    }

    pub(crate) fn git(&self, args: &[&str]) {
        let identity =
            ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        let status = Command::new("git")
            .args(identity)
            .args(args)
            .current_dir(self.root())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .status();
        assert!(status.unwrap().success(), "git {args:?}");
    }

    pub(crate) fn agentd(&self, args: &[&str]) -> Output {
        let mut command = Command::new(AGENTD);
        command.args(args).current_dir(self.root()).env("HOME", self.home.path());
        command.env_remove("XDG_STATE_HOME").output().unwrap()
    }

    pub(crate) fn project(&self) -> Project {
        agentd_engine::opening::open_within_call(self.root(), UserDirs::below(self.home.path()))
            .unwrap()
    }

    pub(crate) fn agents(&self) -> Agents {
        let project = self.project();
        let keep = ["PATH", "HOME", "TMPDIR"];
        Agents {
            config: Trusted::written_here(documents::load_config(&project).unwrap()),
            work_tree: self.root().to_owned(),
            environment: std::env::vars_os()
                .filter(|(name, _)| keep.iter().any(|keep| name == keep))
                .collect(),
            agentd: AGENTD.to_owned(),
            supervisor: Supervisor::new(AGENTD),
            cancel: Cancel::new().unwrap(),
            holder: Holder::this_process("test", Timestamp::now()),
            project,
        }
    }

    /// One step, as the workflows make it.
    pub(crate) fn step(
        &self,
        role: Role,
        name: &str,
        artefact: Artefact,
    ) -> Result<StepReport, StepError> {
        self.step_seen(role, name, artefact, &mut Vec::new())
    }

    pub(crate) fn step_seen(
        &self,
        role: Role,
        name: &str,
        artefact: Artefact,
        warnings: &mut Vec<String>,
    ) -> Result<StepReport, StepError> {
        let step = Step {
            change: self.id.clone(),
            role,
            name: name.into(),
            prompt: format!("agentd {name} {}\n", self.id),
            resume: None,
            artefact,
            on_success: None,
        };
        let now = || Stamp::new(Timestamp::now());
        step::run(&self.agents(), &step, &now, &mut |event| {
            if let AgentEvent::Warning { message } = event {
                warnings.push(message.to_string());
            }
        })
    }

    /// The specs that the proposal announces.
    pub(crate) fn announced(&self) -> Vec<String> {
        let proposal = proposal::parse(&self.read("proposal.md")).value;
        proposal.affected_specs.iter().map(|spec| spec.id.to_string()).collect()
    }

    /// All planning steps, with self-reviews.
    pub(crate) fn plan(&self) {
        let planner = |name: &str, file: ChangeFile| {
            let report = self.step(Role::Planner, name, Artefact::File(file));
            report.unwrap_or_else(|error| panic!("{name}: {error:?}"))
        };
        let review = |name: &str| {
            let report = self.step(Role::Planner, name, Artefact::Nothing).unwrap();
            assert!(report.outcome.review.is_some(), "{name}: {}", report.outcome.text);
        };
        planner("proposal-gen", ChangeFile::Proposal);
        review("proposal-review");
        for spec in self.announced() {
            let file = ChangeFile::Spec(agentd_core::ids::SpecId::new(&spec).unwrap());
            planner(&format!("spec-gen-{spec}"), file);
            review(&format!("spec-review-{spec}"));
        }
        planner("tasks-gen", ChangeFile::Tasks);
        review("tasks-review");
    }

    pub(crate) fn challenge(&self) -> StepReport {
        self.step(Role::Challenger, "challenge", Artefact::PlanReview).unwrap()
    }

    /// What `agentd validate` finds that is HIGH or MEDIUM.
    pub(crate) fn serious(&self) -> Vec<String> {
        let project = self.project();
        let change = project.change(&self.id).unwrap();
        let extras = documents::load_config(&project).unwrap().extras();
        let reports = change.snapshot().unwrap().findings(&project, &extras);
        let of = |report: FileReport| {
            let serious = report.diagnostics.into_iter().filter(|d| d.severity() != Severity::Low);
            serious.map(|d| format!("{} {}", d.rule.code, d.message)).collect::<Vec<_>>()
        };
        reports.into_iter().flat_map(of).collect()
    }

    pub(crate) fn state(&self) -> State {
        documents::load_state(&self.project().change(&self.id).unwrap()).unwrap()
    }
}
