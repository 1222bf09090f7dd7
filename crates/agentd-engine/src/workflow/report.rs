//! What a workflow reports while it runs.

use std::time::Duration;

use agentd_core::agent::AgentKind;
use agentd_core::document::review_block::Issue;
use agentd_core::event::AgentEvent;
use agentd_core::outcome::Usage;
use agentd_core::state::TestRun;
use agentd_core::step_name::StepName;

use super::Verdict;
use super::outlook::Outlook;

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
        /// How far the workflow is.
        outlook: &'a Outlook,
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
        /// The verdict that it gave, if it was a review.
        verdict: Option<Verdict>,
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
    /// What a review found that the workflow now has worked on, the heaviest first.
    Findings(&'a [Issue]),
    /// The tests begin.
    TestsStarted {
        /// The command line.
        command: &'a str,
    },
    /// The tests have ended.
    TestsEnded(&'a TestRun),
    /// Something to know.
    Note(&'a str),
    /// Something to worry about.
    Warning(&'a str),
}

/// Watches a workflow.
pub type Watch<'w> = dyn FnMut(Progress<'_>) + 'w;

/// What came of a step, in a few words, and the verdict that it gave.
#[derive(Debug, Default)]
pub(super) struct StepSummary {
    pub(super) text: String,
    pub(super) verdict: Option<Verdict>,
}

impl From<String> for StepSummary {
    fn from(text: String) -> Self {
        Self { text, verdict: None }
    }
}
