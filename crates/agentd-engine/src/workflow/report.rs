//! What a workflow reports while it runs.

use std::time::Duration;

use agentd_core::agent::AgentKind;
use agentd_core::document::review::{CodeVerdict, Review};
use agentd_core::document::review_block::{Issue, PlanVerdict, ReviewBlock};
use agentd_core::event::AgentEvent;
use agentd_core::outcome::Usage;
use agentd_core::state::TestRun;
use agentd_core::step_name::StepName;
use agentd_core::text::Prose;

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
    /// What a review found: as soon as its step has ended, or before it is worked on if an earlier
    /// command has found it.
    Findings {
        /// The reviewer's summary.
        summary: &'a str,
        /// What was found, in the order of the review.
        issues: &'a [Issue],
    },
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
    pub(super) found: Option<Found>,
}

/// What a review found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) summary: String,
    pub(super) issues: Vec<Issue>,
}

impl Found {
    /// What is worth showing of a review; nothing if it approves without an issue.
    pub(super) fn of(summary: &Prose, issues: &[Issue], is_approved: bool) -> Option<Self> {
        let found = || Self { summary: summary.to_string(), issues: issues.to_vec() };
        (!is_approved || !issues.is_empty()).then(found)
    }

    /// The same of a review of a plan.
    pub(super) fn in_plan(review: &ReviewBlock) -> Option<Self> {
        let is_approved = review.verdict == PlanVerdict::Approved;
        Self::of(&review.summary, &review.issues, is_approved)
    }

    /// The same of a review of code.
    pub(super) fn in_code(review: &Review) -> Option<Self> {
        let is_approved = review.verdict == Some(CodeVerdict::Approved);
        Self::of(&review.summary, &review.issues, is_approved)
    }
}

impl From<String> for StepSummary {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}
