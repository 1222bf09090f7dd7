//! What a workflow tells whoever watches it.

use std::time::Duration;

use agentd_core::agent::AgentKind;
use agentd_core::event::{AgentEvent, Usage};

/// Something that happened in a workflow.
pub enum Progress<'a> {
    /// A step begins.
    Started {
        /// The step, as the ledger calls it.
        step: &'a str,
        /// The step, for people: "Spec 1/3: auth-flow".
        label: &'a str,
        /// Who does it.
        agent: AgentKind,
        /// Whether it goes on with an earlier session.
        resumed: bool,
    },
    /// Something the agent of the current step did.
    Agent(&'a AgentEvent<'a>),
    /// The step has ended well.
    Done {
        /// The step.
        step: &'a str,
        /// The step, for people.
        label: &'a str,
        /// What came of it.
        summary: &'a str,
        /// What it used.
        usage: Usage,
        /// What it cost.
        cost_usd: f64,
        /// How long it took.
        duration: Duration,
    },
    /// The step has failed.
    Failed {
        /// The step.
        step: &'a str,
        /// The step, for people.
        label: &'a str,
        /// Why.
        message: &'a str,
        /// How long it took.
        duration: Duration,
    },
    /// A step was found done already.
    Skipped {
        /// The step.
        step: &'a str,
        /// The step, for people.
        label: &'a str,
        /// Why.
        why: &'a str,
    },
    /// Something to know ("No specs required for this change").
    Note(&'a str),
    /// Something to worry about.
    Warning(&'a str),
}

/// Watches a workflow.
pub type Watch<'w> = dyn FnMut(Progress<'_>) + 'w;
