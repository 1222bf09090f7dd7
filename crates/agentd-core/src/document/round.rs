//! `rounds/NNNN.json`: the plan as it was when a round of review judged it.
//!
//! A review names the plan by its digest only. To show what has changed between two
//! rounds, the texts themselves are needed, so each round keeps them: one file, written
//! by agentd, with which its viewer and a later challenge compare.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::document::spec::Spec;
use crate::hash::Digest;
use crate::outline::Outline;

/// The texts of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Round {
    /// The digest of the plan, as the review has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Digest>,
    /// The texts, by their path in the change. Of the proposal what reviewers judge.
    pub files: BTreeMap<String, String>,
    /// What the specs say in their frontmatter about the main specs, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub main_edits: BTreeMap<String, String>,
}

/// A text without its frontmatter, whose times and versions move by themselves.
pub(crate) fn body(text: &str) -> &str {
    text[Outline::scan(text).body_start..].trim_start_matches(['\r', '\n'])
}

/// What a spec removes from the main spec and renames there, in words; none for nothing.
pub(crate) fn main_edits(spec: &Spec) -> Option<String> {
    let removes = spec.removes.iter().map(|id| format!("removes {id}"));
    let renames = spec.renames.iter().map(|(id, title)| format!("renames {id} to {title}"));
    let all: Vec<String> = removes.chain(renames).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Reads a round; nothing where the text is none.
pub fn parse(text: &str) -> Option<Round> {
    serde_json::from_str(text).ok()
}

/// Writes a round.
pub fn render(round: &Round) -> String {
    let mut out = serde_json::to_string_pretty(round).unwrap_or_default();
    out.push('\n');
    out
}
