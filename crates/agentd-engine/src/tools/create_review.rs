//! `create_review`: the verdict on the code of a change.

use agentd_core::agent::Role;
use agentd_core::document::review::{self, CodeVerdict, Review};
use agentd_core::document::review_block::{self, Issue, PlanVerdict, ReviewBlock};
use agentd_core::document::tasks::{self, Status, Task};
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::span::Uncompared;
use agentd_core::stamp::Stamp;
use agentd_core::text::Line;
use serde::Deserialize;
use serde_json::Value;

use super::Session;
use super::input::{self, List, LongText, Number, Path, SeverityInput, ShortText, TEXT, TITLE};
use super::outcome::{ActionError, Refusal, Written};
use super::review_rules::{self, PreviousList};
use super::schema::{JsonObject, count, optional, reviewed, text};
use super::tool::{Answer, Tool, Toolset};
use super::writing::Gate;
use crate::change::documents;

pub(super) const TOOL: Tool = Tool {
    name: "create_review",
    purpose: "Give the verdict on the implementation, once, at the end of your review.",
    offered_to: &[Toolset::Role(Role::Reviewer)],
    by_hand: false,
    read_only: false,
    input: schema,
    output: Some(reviewed),
    run: |session, arguments| {
        Answer::written(session, &create_review(session, input::read(arguments)?)?)
    },
};

/// A review of the implementation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateReview {
    /// The change.
    pub change_id: ChangeId,
    /// What is said of the code.
    pub verdict: CodeVerdict,
    /// Why, in short.
    pub summary: LongText<TEXT>,
    /// What became of the issues of earlier rounds.
    #[serde(default, deserialize_with = "input::or_default")]
    pub(crate) previous: PreviousList,
    /// What was found.
    #[serde(default, deserialize_with = "input::or_default")]
    pub issues: List<CodeIssueInput, 0, 200>,
}

/// Something found in the code.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeIssueInput {
    /// How much it weighs.
    pub severity: SeverityInput,
    /// What it is, in a few words.
    pub title: ShortText<TITLE>,
    /// What is wrong.
    pub description: LongText<TEXT>,
    /// The file.
    #[serde(default)]
    pub file: Option<Path>,
    /// The line in it.
    #[serde(default)]
    pub line: Option<Number<1, 10_000_000>>,
    /// What to do.
    #[serde(default, deserialize_with = "input::optional_text")]
    pub recommendation: Option<LongText<TEXT>>,
}

fn schema(change: Value) -> JsonObject {
    let verdict = "APPROVED: done, tests pass, no high issue. NEEDS_FIX: can be fixed. \
                   MAJOR_ISSUES: a person has to look";
    let issue = review_rules::issue(
        "high: wrong or missing, medium: should be fixed, low: could be better",
        vec![
            optional("file", text("From the project root")),
            optional("line", count("Line in that file", 1)),
        ],
    );
    review_rules::schema(change, &["APPROVED", "NEEDS_FIX", "MAJOR_ISSUES"], verdict, &issue)
}

/// Writes `REVIEW.md`, the next round. Tests that failed cannot be approved.
pub fn create_review(session: &Session<'_>, input: CreateReview) -> Result<Written, ActionError> {
    let mut open = session.open(&input.change_id)?;
    let earlier = open.text(&ChangeFile::Review)?.map(|text| review::parse(text).value);
    let document = next_review(earlier.as_ref(), input, session.actor.clone(), session.now)?;
    let approved = document.verdict == Some(CodeVerdict::Approved);
    let issues = &document.issues;
    let label = document.verdict.map_or("", CodeVerdict::label);
    review_rules::consistent(label, approved, issues, "NEEDS_FIX or MAJOR_ISSUES")?;
    if approved {
        refuse_failed_tests(&open.change)?;
        refuse_open_tasks(open.text(&ChangeFile::Tasks)?.unwrap_or_default())?;
    }
    let text = review::render(&document);
    if review::parse(&text).value != document {
        return Err(ActionError::Internal("the review cannot be read back as given".to_owned()));
    }
    open.put_receipt(Role::Reviewer, &Digest::of(&text))?;
    let mut written = open.put(&ChangeFile::Review, &text, Gate::Clean)?;
    written.iteration = Some(document.iteration);
    Ok(written)
}

/// The review that follows on an earlier one: its round, and its issues with their numbers.
pub(crate) fn next_review(
    earlier: Option<&Review>,
    input: CreateReview,
    reviewer: Line,
    now: Stamp,
) -> Result<Review, ActionError> {
    let mut issues = Vec::new();
    for issue in input.issues.0 {
        issues.push(code_issue(issue)?);
    }
    let blocks: Vec<ReviewBlock> = earlier.into_iter().map(as_block).collect();
    let numbered = earlier.map_or(0, |review| review.numbered);
    review_block::number_issues(&blocks, numbered, &mut issues);
    // REVIEW.md has the latest round only, but its issues were numbered over all of them.
    let previous = review_rules::previous(input.previous, |number| number <= numbered)?;
    let known = |number| {
        let issues = earlier.iter().flat_map(|review| &review.issues);
        issues.into_iter().find(|issue| issue.number == number)
    };
    review_rules::take_over(&previous, known, &mut issues)?;
    let highest = issues.iter().map(|issue| issue.number).max().unwrap_or(0);
    Ok(Review {
        numbered: numbered.max(highest),
        change_id: Some(input.change_id),
        iteration: earlier.map_or(1, |review| review.iteration.saturating_add(1)),
        reviewer,
        created_at: Some(now),
        verdict: Some(input.verdict),
        summary: input.summary.0,
        previous,
        issues,
    })
}

fn code_issue(input: CodeIssueInput) -> Result<Issue, ActionError> {
    let location = match (&input.file, input.line) {
        (Some(file), Some(line)) => format!("{}:{}", file.0, line.0),
        (Some(file), None) => file.0.to_string(),
        (None, None) => String::new(),
        (None, Some(line)) => {
            return Err(Refusal::new(format!(
                "The issue `{}` names line {} but no file.",
                input.title.0, line.0
            ))
            .hint("Add `file`, or leave `line` out.")
            .into());
        }
    };
    Ok(Issue {
        number: 0,
        severity: input.severity.0,
        title: input.title.0,
        location: Line::new(&location),
        description: input.description.0,
        recommendation: input.recommendation.map(|text| text.0).unwrap_or_default(),
    })
}

/// The issues of an earlier review of code, as those of a plan are kept: for their numbers.
fn as_block(review: &Review) -> ReviewBlock {
    ReviewBlock {
        iteration: review.iteration,
        reviewer: review.reviewer.clone(),
        date: None,
        plan: None,
        verdict: PlanVerdict::NeedsRevision,
        summary: review.summary.clone(),
        previous: Vec::new(),
        issues: review.issues.clone(),
        place: Uncompared::default(),
    }
}

/// What is approved is complete, and a task that is not ticked is not done.
fn refuse_open_tasks(text: &str) -> Result<(), ActionError> {
    let tasks = tasks::parse(text).value.tasks;
    let is_open = |task: &&Task| task.status != Status::Done;
    let open: Vec<String> = tasks.iter().filter(is_open).map(|task| task.id.to_string()).collect();
    if open.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "Tasks are not done, so the verdict cannot be APPROVED: {}.",
        open.join(", ")
    ))
    .hint("Say NEEDS_FIX, with an issue for what is missing.")
    .into())
}

fn refuse_failed_tests(change: &crate::store::Change) -> Result<(), ActionError> {
    // A change without a state has no recorded run either.
    let recorded = documents::load_state_if_begun(change)?.and_then(|state| state.test_run);
    let Some(run) = recorded.filter(|run| !run.passed()) else { return Ok(()) };
    let exit =
        run.exit_code.map_or_else(|| "was killed".to_owned(), |c| format!("exited with {c}"));
    let tail = run.output_tail.as_str();
    let from = tail.char_indices().rev().nth(1500).map_or(0, |(at, _)| at);
    Err(Refusal::new(format!(
        "The tests failed, so the verdict cannot be APPROVED: `{}` {exit}.",
        run.command
    ))
    .findings(if tail.is_empty() {
        Vec::new()
    } else {
        vec![format!("Its last output:\n{}", &tail[from..])]
    })
    .hint("Say NEEDS_FIX, with an issue for every failing test.")
    .into())
}
