//! The same project for tests that call the engine in their own process.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;

use agentd_core::event::AgentEvent;
use agentd_core::stamp::Stamp;
use agentd_core::state::State;
use agentd_core::text::Line;
use agentd_engine::agents::step::{self, Agents, Step, StepError, StepReport};
use agentd_engine::change::documents;
use agentd_engine::explain::Explain;
use agentd_engine::guard::trust::Trusted;
use agentd_engine::opening;
use agentd_engine::process::{Cancel, Supervisor};
use agentd_engine::store::{Holder, Project, UserDirs};
use agentd_engine::tools::Session;
use jiff::Timestamp;

use crate::TestProject;

/// The time at which most tests happen.
pub fn now() -> Stamp {
    stamp("2026-01-02T03:04:05Z")
}

/// A time, as it is written in documents.
pub fn stamp(text: &str) -> Stamp {
    text.parse().unwrap()
}

impl TestProject {
    /// The project, opened for the user whose home is beside it.
    pub fn store(&self) -> Project {
        opening::open_within_call(&self.root(), self.user()).unwrap()
    }

    /// Where agentd keeps what it knows of this user.
    pub fn user(&self) -> UserDirs {
        UserDirs::below(&self.home())
    }

    /// Who holds the locks that a test takes.
    pub fn holder(&self) -> Holder {
        Holder::this_process("test", Timestamp::now())
    }

    /// An error as a person sees it, and its kind, for a snapshot.
    pub fn explained(&self, error: &impl Explain) -> String {
        let report = error.explain();
        let mut text = format!("{}: {}\n", report.kind, report.message);
        if let Some(cause) = report.cause {
            text += &format!("cause: {cause}\n");
        }
        for hint in report.hints {
            text += &format!("hint: {hint}\n");
        }
        self.mask(text)
    }

    /// The state of the change.
    pub fn state(&self) -> State {
        let id = self.id();
        documents::load_state(&self.store().home_of(&id).change(&id).unwrap()).unwrap()
    }

    /// Does something as the tools do it for an agent, at a given time.
    pub fn as_agent<T>(&self, actor: &str, now: Stamp, act: impl FnOnce(&Session<'_>) -> T) -> T {
        act(&Session {
            project: &self.store(),
            actor: Line::new(actor),
            holder: Holder::this_process("test", now.moment()),
            now,
            names_change: false,
            step: None,
            receipt: None,
            on_wait: &|_| ControlFlow::Continue(()),
        })
    }

    /// The environment of agents: the programs of this machine, the home of the project.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        if let Some(variables) = &self.environment {
            return variables.clone();
        }
        let keep = ["PATH", "TMPDIR"];
        let kept = std::env::vars_os().filter(|(name, _)| keep.iter().any(|keep| name == keep));
        kept.chain([("HOME".into(), self.home().into())]).collect()
    }

    /// What a step needs, with the settings of the project; `agentd` is the program that
    /// supervises agents and serves their tools.
    pub fn agents(&self, agentd: &Path) -> Agents {
        let project = self.store();
        Agents {
            config: Trusted::written_here(documents::load_config(&project).unwrap()),
            work_tree: self.root(),
            environment: self.environment(),
            agentd: agentd.to_str().unwrap().to_owned(),
            supervisor: Supervisor::new(agentd),
            cancel: Cancel::new().unwrap(),
            warm: std::sync::Arc::default(),
            holder: self.holder(),
            carrier: None,
            project,
        }
    }
}

/// Runs a step; what came of it, and the warnings.
pub fn run_step(
    agents: &Agents,
    step: &Step,
    now: &dyn Fn() -> Stamp,
) -> (Result<StepReport, StepError>, Vec<String>) {
    let mut warnings = Vec::new();
    let result = step::run(agents, step, now, &mut |event| {
        if let AgentEvent::Warning { message } = event {
            warnings.push(message.to_string());
        }
    });
    (result, warnings)
}
