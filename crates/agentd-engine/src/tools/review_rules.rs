//! What the reviews of plans and of code have in common: the form of their input, and
//! that verdict and issues must agree.

use agentd_core::diagnostic::Severity;
use agentd_core::document::review_block::Issue;
use serde_json::{Value, json};

use super::outcome::{ActionError, Refusal};
use super::schema::{
    Field, JsonObject, free_text, list, optional, part, required, text, with_change,
};

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
    with_change(
        change,
        vec![
            required("verdict", verdict),
            required("summary", text("Why, in a few sentences")),
            optional("issues", list("Everything found; empty only with APPROVED", issue)),
        ],
    )
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
