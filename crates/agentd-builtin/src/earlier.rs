//! What the built-in agent says of the issues of earlier rounds: only of its own, since it can
//! apply its rules again, but cannot judge what others have found.

use std::collections::BTreeSet;

use agentd_core::agent::AgentKind;
use agentd_core::document::previous::IssueStatus;
use agentd_core::document::review_block::Issue;
use agentd_core::text::Line;
use serde_json::{Value, json};

/// Whether a review is one of its own.
pub(crate) fn is_own(reviewer: &Line) -> bool {
    reviewer.as_str() == AgentKind::Builtin.name()
}

/// What became of its own issues, by what it finds now.
pub(crate) fn previous<'i>(own: impl Iterator<Item = &'i Issue>, found: &[&Value]) -> Vec<Value> {
    let key = |title: &str| Line::new(title).as_str().to_lowercase();
    let found: BTreeSet<String> =
        found.iter().filter_map(|issue| issue["title"].as_str()).map(key).collect();
    own.map(|issue| {
        let (status, reason) = if found.contains(&key(issue.title.as_str())) {
            (IssueStatus::Open, "The rules find it again.")
        } else {
            (IssueStatus::Fixed, "The rules no longer find it.")
        };
        json!({"id": format!("I{}", issue.number), "status": status, "reason": reason})
    })
    .collect()
}
