//! Who wrote what is reviewed, who reviewed it, and whether they are independent (T4); and whether
//! what a change says of itself is what agentd recorded (T1, T6).

use std::collections::BTreeSet;
use std::fmt;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::config::IndependentReview;
use agentd_core::hash::Digest;
use agentd_core::known_agent::{UNKNOWN_VENDOR, are_independent};
use agentd_core::state::{Actor, LlmCall, State};
use agentd_core::step_name::StepName;

use super::{Workflow, WorkflowError};
use crate::agents::receipts;
use crate::change::journal;
use crate::change::tree::tree;

/// Why two roles do not judge each other as strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotIndependent {
    /// Both use models of this vendor.
    SameVendor(&'static str),
    /// It is not known whose models one of them uses.
    Unknown,
}

impl NotIndependent {
    fn of(one: &'static str, other: &'static str) -> Self {
        if one == UNKNOWN_VENDOR || other == UNKNOWN_VENDOR {
            Self::Unknown
        } else {
            Self::SameVendor(one)
        }
    }
}

impl fmt::Display for NotIndependent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameVendor(vendor) => write!(f, "are both from {vendor}"),
            Self::Unknown => f.write_str("are not known to be from two vendors"),
        }
    }
}

/// The agents that were called in a role, each model once.
pub(super) fn authors_of(state: &State, role: Role) -> Vec<Actor> {
    let calls = state.llm_calls.iter().filter(|call| call.step.role() == Some(role));
    // Proposing questions writes nothing of a plan.
    let calls = calls.filter(|call| call.step != StepName::Clarify);
    let authors: BTreeSet<Actor> = calls.filter_map(actor).collect();
    authors.into_iter().collect()
}

/// The agent that was called last for a step, and the number of its run.
pub(super) fn last_actor(state: &State, step: &StepName) -> Option<(Actor, Option<u32>)> {
    let call = state.llm_calls.iter().rfind(|call| call.step == *step)?;
    Some((actor(call)?, call.run))
}

fn actor(call: &LlmCall) -> Option<Actor> {
    call.agent.map(|agent| Actor::new(agent, &call.model))
}

impl Workflow<'_> {
    /// Whether somebody else will review than has written, by the agents that are configured.
    pub(super) fn check_independence(
        &mut self,
        author: Role,
        reviewer: Role,
    ) -> Result<(), WorkflowError> {
        let (writes, reviews) = (self.vendor_of(author)?, self.vendor_of(reviewer)?);
        if self.agents.config.workflow.require_independent_review.is_some() {
            self.warn(
                "workflow.require_independent_review is an old name: use [policy] \
                 independent_review = \"require\"",
            );
        }
        if are_independent(writes, reviews) {
            return Ok(());
        }
        let why = NotIndependent::of(writes, reviews);
        if self.agents.config.independent_review() == IndependentReview::Require {
            return Err(WorkflowError::NotIndependent { author, reviewer, why });
        }
        // The recorded agents may be from two vendors; the warning was printed when they ran.
        if self.player(author) != AgentKind::Replay {
            let have = if why == NotIndependent::Unknown { "may have" } else { "have" };
            self.warn(&format!("{author} and {reviewer} {why}: they {have} the same blind spots"));
        }
        Ok(())
    }

    /// Stops where the phase, a verdict or a decision is not one that agentd recorded.
    pub(super) fn check_record(&mut self) -> Result<(), WorkflowError> {
        let snapshot = self.snapshot()?;
        let state = snapshot.state()?;
        let text = snapshot.documents.state.source().text().unwrap_or_default();
        let record = journal::check(&self.agents.project, snapshot.change(), state, text)?;
        if record.is_none() && (state.plan_review.is_some() || state.code_review.is_some()) {
            self.warn(
                "its verdicts are from before agentd kept a journal, or were written by hand: \
                 nothing proves them",
            );
        }
        Ok(())
    }

    /// The files of the working tree, for a look at what comes next.
    pub(super) fn tree_now(&self) -> Option<Digest> {
        tree(&self.agents.git_tool_outside(), &self.agents.work_tree).ok()
    }

    /// The files of the working tree; none where they cannot be read.
    pub(super) fn tree(&mut self) -> Option<Digest> {
        match tree(&self.agents.git_tool_outside(), &self.agents.work_tree) {
            Ok(tree) => Some(tree),
            Err(error) => {
                self.warn(&format!("cannot read all files of the working tree: {error}"));
                None
            }
        }
    }

    /// The verdict is taken: its receipt and key prove nothing more.
    pub(super) fn close_receipt(&self) -> Result<(), WorkflowError> {
        Ok(receipts::close(&self.agents.project, &self.change, &self.agents.holder)?)
    }
}
