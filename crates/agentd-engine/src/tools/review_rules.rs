//! What the reviews of plans and of code have in common: the form of their input, what they say
//! of earlier issues, and that verdict and issues must agree.

use std::collections::BTreeSet;

use agentd_core::diagnostic::Severity;
use agentd_core::document::previous::{IssueStatus, Previous};
use agentd_core::document::review_block::Issue;
use serde::Deserialize;
use serde_json::{Value, json};

use super::input::{self, IssueNumber, List, SENTENCE, ShortText};
use super::outcome::{ActionError, Refusal};
use super::schema::{
    Field, ISSUE, JsonObject, free_text, list, matching, one_of, optional, part, required, text,
    with_change,
};

/// What is said of the issues of earlier rounds.
pub(super) type PreviousList = List<PreviousInput, 0, 200>;

/// What is said of one issue of an earlier round.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviousInput {
    /// Which.
    pub id: IssueNumber,
    /// What became of it.
    pub status: IssueStatus,
    /// Why.
    #[serde(default, deserialize_with = "input::optional_line")]
    pub reason: Option<ShortText<SENTENCE>>,
}

/// The schema of an issue; `place` is how it says where it is.
pub(super) fn issue(severities: &str, place: Vec<Field>) -> Value {
    let severity =
        json!({"type": "string", "description": severities, "enum": ["high", "medium", "low"]});
    let title = "A few words; those of an earlier review for the same issue";
    let mut fields = vec![
        required("severity", severity),
        required("title", text(title)),
        required("description", text("What is wrong and why it matters")),
    ];
    fields.extend(place);
    fields.push(optional("recommendation", free_text("What to do about it")));
    part(fields)
}

/// The schema of a review.
pub(super) fn schema(change: Value, verdicts: &[&str], meaning: &str, issue: &Value) -> JsonObject {
    let verdict = json!({"type": "string", "description": meaning, "enum": verdicts});
    let previous = part(vec![
        required("id", matching(ISSUE, "I1, I2, …")),
        required("status", one_of(&["fixed", "open", "rejected", "deferred"])),
        optional("reason", free_text("How you know")),
    ]);
    with_change(
        change,
        vec![
            required("verdict", verdict),
            required("summary", text("Why, in a few sentences")),
            optional("previous", list("What became of each issue of earlier rounds", &previous)),
            optional("issues", list("Everything found; empty only with APPROVED", issue)),
        ],
    )
}

/// What is said of earlier issues, which must exist; `exists` knows their numbers.
pub(super) fn previous(
    said: PreviousList,
    exists: impl Fn(u32) -> bool,
) -> Result<Vec<Previous>, ActionError> {
    let mut seen = BTreeSet::new();
    let mut previous = Vec::new();
    for PreviousInput { id: IssueNumber(number), status, reason } in said.0 {
        if !exists(number) {
            return Err(Refusal::new(format!("`previous` names I{number}, which does not exist."))
                .hint("Use the ids of the earlier issues in your prompt; new ones have none.")
                .into());
        }
        if !seen.insert(number) {
            return Err(Refusal::new(format!("`previous` names I{number} more than once.")).into());
        }
        let reason = reason.map(|line| line.0).unwrap_or_default();
        previous.push(Previous { number, status, reason });
    }
    Ok(previous)
}

/// Holds the issues, which have their numbers, against what is said of earlier ones. One that is
/// said to be open and is not described again is taken over as it was: a verdict must
/// reckon with it.
pub(super) fn take_over<'i>(
    previous: &[Previous],
    earlier: impl Fn(u32) -> Option<&'i Issue>,
    issues: &mut Vec<Issue>,
) -> Result<(), ActionError> {
    for Previous { number, status, .. } in previous {
        let named = issues.iter().any(|issue| issue.number == *number);
        match (status, named) {
            (IssueStatus::Open, false) => match earlier(*number) {
                Some(issue) => issues.push(issue.clone()),
                None => {
                    return Err(Refusal::new(format!("I{number} is open, but is not described."))
                        .hint(format!(
                            "Add it to `issues`, with a title that starts with `I{number}:`."
                        ))
                        .into());
                }
            },
            (IssueStatus::Fixed | IssueStatus::Rejected | IssueStatus::Deferred, true) => {
                let status = status.name();
                return Err(Refusal::new(format!(
                    "`previous` calls I{number} {status}, but it is among the issues."
                ))
                .hint("Say `open`, or leave it out of `issues`.")
                .into());
            }
            (IssueStatus::Open, true)
            | (IssueStatus::Fixed | IssueStatus::Rejected | IssueStatus::Deferred, false) => {}
        }
    }
    Ok(())
}

/// A verdict and its issues must say the same.
pub(super) fn consistent(
    label: &str,
    approved: bool,
    issues: &[Issue],
    instead: &str,
) -> Result<(), ActionError> {
    let high = issues.iter().find(|issue| issue.severity == Severity::High);
    if let Some(Issue { title, .. }) = high.filter(|_| approved) {
        return Err(Refusal::new(format!(
            "The verdict is APPROVED, but the severity of `{title}` is high."
        ))
        .hint(format!("Say {instead}, or lower the severity if it does not stop the work."))
        .into());
    }
    // What is rejected as a whole may be so for the reason in the summary; what is to be
    // fixed needs something to fix.
    let asks_for_fixes = ["NEEDS_REVISION", "NEEDS_FIX"].contains(&label);
    if asks_for_fixes && issues.is_empty() {
        return Err(Refusal::new(format!("The verdict is {label}, but there is no issue."))
            .hint("Name at least one issue, with what to do about it, or say APPROVED.")
            .into());
    }
    Ok(())
}
