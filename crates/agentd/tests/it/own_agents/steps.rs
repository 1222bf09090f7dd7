//! Projects in which agentd's own agents play the roles, and their steps.

use agentd_core::agent::Role;
use agentd_core::check::FileReport;
use agentd_core::diagnostic::Severity;
use agentd_core::document::proposal;
use agentd_core::ids::SpecId;
use agentd_core::layout::ChangeFile;
use agentd_core::stamp::Stamp;
use agentd_engine::agents::step::{Artifact, Step, StepError, StepReport};
use agentd_engine::change::documents;
use jiff::Timestamp;
use test_project::{TestProject, agentd, run_step};

pub(crate) const BUILTIN: &str = "[workflow]\nscript_retries = 0\n[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\nimplementer = \"builtin\"\nreviewer = \"builtin\"\n";

pub(crate) fn now() -> Stamp {
    Stamp::new(Timestamp::now())
}

/// A git repository with files and settings, and a change that has begun.
pub(crate) fn project(
    id: &str,
    description: &str,
    config: &str,
    files: &[(&str, &str)],
) -> TestProject {
    let mut project = TestProject::new().programs(&["git"]);
    for (path, text) in files {
        project = project.root_file(path, text);
    }
    let project = project.repository();
    project.commit("start");
    project.root_file("agentd/config.toml", config).described(id, description, now())
}

/// Single steps, as the workflows make them.
pub(crate) trait Steps {
    /// One step; what came of it, and the warnings.
    fn step_seen(
        &self,
        role: Role,
        name: &str,
        artifact: Artifact,
    ) -> (Result<StepReport, StepError>, Vec<String>);

    /// The specs that the proposal announces.
    fn announced(&self) -> Vec<String>;

    /// What `agentd validate` finds that is HIGH or MEDIUM.
    fn serious(&self) -> Vec<String>;

    fn step(&self, role: Role, name: &str, artifact: Artifact) -> Result<StepReport, StepError> {
        self.step_seen(role, name, artifact).0
    }

    /// All planning steps, with self-reviews.
    fn plan(&self) {
        let planner = |name: &str, file: ChangeFile| {
            let report = self.step(Role::Planner, name, Artifact::File(file));
            report.unwrap_or_else(|error| panic!("{name}: {error:?}"))
        };
        let review = |name: &str| {
            let report = self.step(Role::Planner, name, Artifact::Nothing).unwrap();
            assert!(report.outcome.review.is_some(), "{name}: {}", report.outcome.text);
        };
        planner("proposal-gen", ChangeFile::Proposal);
        review("proposal-review");
        for spec in self.announced() {
            let file = ChangeFile::Spec(SpecId::new(&spec).unwrap());
            planner(&format!("spec-gen-{spec}"), file);
            review(&format!("spec-review-{spec}"));
        }
        planner("tasks-gen", ChangeFile::Tasks);
        review("tasks-review");
    }

    fn challenge(&self) -> StepReport {
        self.step(Role::Challenger, "challenge", Artifact::PlanReview).unwrap()
    }
}

impl Steps for TestProject {
    fn step_seen(
        &self,
        role: Role,
        name: &str,
        artifact: Artifact,
    ) -> (Result<StepReport, StepError>, Vec<String>) {
        let agents = self.agents(&agentd());
        let step = Step {
            change: self.id(),
            role,
            agent: agents.config.roles.agent(role),
            name: name.into(),
            prompt: format!("agentd {name} {}\n", self.id()),
            resume: None,
            artifact,
            on_success: None,
        };
        run_step(&agents, &step, &now)
    }

    fn announced(&self) -> Vec<String> {
        let proposal = proposal::parse(&self.read("proposal.md")).value;
        proposal.affected_specs.iter().map(|spec| spec.id.to_string()).collect()
    }

    fn serious(&self) -> Vec<String> {
        let store = self.store();
        let change = store.change(&self.id()).unwrap();
        let extras = documents::load_config(&store).unwrap().extras();
        let reports = change.snapshot().unwrap().findings(&store, &extras);
        let of = |report: FileReport| {
            let serious = report.diagnostics.into_iter().filter(|d| d.severity() != Severity::Low);
            serious.map(|d| format!("{} {}", d.rule.code, d.message)).collect::<Vec<_>>()
        };
        reports.into_iter().flat_map(of).collect()
    }
}
