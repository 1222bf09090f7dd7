//! What a workflow reports while it runs.

use std::time::Duration;

use agentd_core::agent::AgentKind;
use agentd_core::event::AgentEvent;
use agentd_core::outcome::Usage;
use agentd_core::step_name::StepName;

/// Something that happened in a workflow.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A step begins.
    Started {
        /// Its name, such as `spec-gen-auth-flow`.
        step: &'a StepName,
        /// What people call it: `Spec 1/3: auth-flow`.
        label: &'a str,
        /// Who does it.
        agent: AgentKind,
        /// Whether the agent resumes an earlier session.
        resumed: bool,
    },
    /// Something the agent of the current step did.
    Agent(&'a AgentEvent<'a>),
    /// The step has ended well.
    Done {
        /// Its name.
        step: &'a StepName,
        /// What people call it.
        label: &'a str,
        /// What came of it, in a few words; may be empty.
        summary: &'a str,
        /// What it used.
        usage: Usage,
        /// What it cost, as far as that is known.
        cost_usd: f64,
        /// How long it took.
        duration: Duration,
    },
    /// The step has failed.
    Failed {
        /// Its name.
        step: &'a StepName,
        /// What people call it.
        label: &'a str,
        /// Why.
        message: &'a str,
        /// How long it took.
        duration: Duration,
    },
    /// A step was found done already.
    Skipped {
        /// Its name.
        step: &'a StepName,
        /// What people call it.
        label: &'a str,
        /// Why it need not be done.
        why: &'a str,
    },
    /// Something to know.
    Note(&'a str),
    /// Something to worry about.
    Warning(&'a str),
}

/// Watches a workflow.
pub type Watch<'w> = dyn FnMut(Progress<'_>) + 'w;
