//! `append_review`: the verdict on the plan of a change.

use agentd_core::agent::Role;
use agentd_core::document::proposal;
use agentd_core::document::review_block::{self, Issue, PlanVerdict, ReviewBlock};
use agentd_core::document::round;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::span::Uncompared;
use serde::Deserialize;
use serde_json::Value;

use super::Session;
use super::input::{self, List, LongText, SeverityInput, ShortText, TEXT, TITLE};
use super::outcome::{ActionError, Refusal, Written};
use super::review_rules::{self, PreviousList};
use super::schema::{JsonObject, free_text, optional, reviewed};
use super::tool::{Answer, Tool, Toolset};
use super::writing::Gate;

pub(super) const TOOL: Tool = Tool {
    name: "append_review",
    purpose: "Give the verdict on the plan, once, at the end of your review.",
    offered_to: &[Toolset::Role(Role::Challenger)],
    by_hand: false,
    read_only: false,
    input: schema,
    output: Some(reviewed),
    run: |session, arguments| {
        Answer::written(session, &append_review(session, input::read(arguments)?)?)
    },
};

/// A review of the plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppendReview {
    /// The change.
    pub change_id: ChangeId,
    /// What is said of the plan.
    pub verdict: PlanVerdict,
    /// Why, in short.
    pub summary: LongText<TEXT>,
    /// What became of the issues of earlier rounds.
    #[serde(default, deserialize_with = "input::or_default")]
    pub(crate) previous: PreviousList,
    /// What was found.
    #[serde(default, deserialize_with = "input::or_default")]
    pub issues: List<PlanIssueInput, 0, 200>,
}

/// Something found in a plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanIssueInput {
    /// How much it weighs.
    pub severity: SeverityInput,
    /// What it is, in a few words.
    pub title: ShortText<TITLE>,
    /// What is wrong.
    pub description: LongText<TEXT>,
    /// Where: a spec, a requirement, a task, a file.
    #[serde(default, deserialize_with = "input::optional_line")]
    pub location: Option<ShortText<TITLE>>,
    /// What to do.
    #[serde(default, deserialize_with = "input::optional_text")]
    pub recommendation: Option<LongText<TEXT>>,
}

fn schema(change: Value) -> JsonObject {
    let verdict = "APPROVED: ready to implement, no high issue. NEEDS_REVISION: can be fixed. \
                   REJECTED: fundamentally wrong";
    let location = "Where, e.g. auth-flow:R1, task 2.1, proposal.md";
    let issue = review_rules::issue(
        "high stops the plan, medium misleads, low could be better",
        vec![optional("location", free_text(location))],
    );
    review_rules::schema(change, &["APPROVED", "NEEDS_REVISION", "REJECTED"], verdict, &issue)
}

/// Appends a review to `proposal.md` and renders `CHALLENGE.md`. The phase
/// stays: the workflow moves it when it reads the block.
pub fn append_review(session: &Session<'_>, input: AppendReview) -> Result<Written, ActionError> {
    let mut open = session.open(&input.change_id)?;
    let mut issues: Vec<Issue> = input
        .issues
        .0
        .into_iter()
        .map(|issue| Issue {
            number: 0,
            severity: issue.severity.0,
            title: issue.title.0,
            location: issue.location.map(|line| line.0).unwrap_or_default(),
            description: issue.description.0,
            recommendation: issue.recommendation.map(|text| text.0).unwrap_or_default(),
        })
        .collect();
    let Some(old) = open.text(&ChangeFile::Proposal)? else {
        return Err(Refusal::new("There is no proposal.md to review.").into());
    };
    let earlier = proposal::parse(old).value.reviews;
    review_block::number_issues(&earlier, 0, &mut issues);
    let known = |number| {
        let all = earlier.iter().rev().flat_map(|block| &block.issues);
        all.into_iter().find(|issue| issue.number == number)
    };
    let previous = review_rules::previous(input.previous, |number| known(number).is_some())?;
    review_rules::take_over(&previous, known, &mut issues)?;
    let approved = input.verdict == PlanVerdict::Approved;
    let instead = "NEEDS_REVISION or REJECTED";
    review_rules::consistent(input.verdict.label(), approved, &issues, instead)?;
    let last = earlier.iter().map(|block| block.iteration).max().unwrap_or(0);
    let block = ReviewBlock {
        iteration: last.saturating_add(1),
        reviewer: session.actor.clone(),
        date: Some(session.now),
        plan: Some(open.documents.digest()),
        verdict: input.verdict,
        summary: input.summary.0,
        previous,
        issues,
        place: Uncompared::default(),
    };
    let text = review_block::append(old, &block);
    // The verdict decides what happens next: it must be read exactly as it was given.
    let read = proposal::parse(&text).value.reviews;
    if read.len() != earlier.len() + 1 || read.last() != Some(&block) {
        return Err(ActionError::Internal("the review cannot be read back as given".to_owned()));
    }
    // What this round has judged, so that people can see what the next one changed.
    let seen = round::render(&open.documents.round());
    open.put_unchecked(&ChangeFile::Round(block.iteration), &seen)?;
    open.put_unchecked(
        &ChangeFile::Challenge,
        &review_block::render_report(&input.change_id, &block),
    )?;
    open.put_receipt(Role::Challenger, &block.hash())?;
    // The block is what counts, and comes last: if agentd is killed before it, the agent is asked
    // again, and nobody finds a verdict beside the report of an earlier one.
    let mut written = open.put(&ChangeFile::Proposal, &text, Gate::Unchecked)?;
    written.iteration = Some(block.iteration);
    Ok(written)
}
