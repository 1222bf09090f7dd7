//! `[git]`: where a change is worked on, and what goes into git.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::state::Placement;

/// `[git]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Git {
    /// Where the code of a change is written; nothing means that the person is asked once.
    #[serde(deserialize_with = "placement_or_ask")]
    pub workflow: Option<Placement>,
    /// The branch from which new branches start; `HEAD` for what is checked out. Nothing means the
    /// branch that the repository is about.
    pub base: Option<String>,
    /// What is committed.
    pub commit: GitCommit,
    /// Whether the records of what agents did go into git with the change. They hold prompts,
    /// code and outputs, and are left out unless somebody asks for them.
    pub commit_runs: bool,
    /// Where the result of a change goes that was carried between machines, once it is archived. What
    /// counts is what the default branch of the remote repository says.
    pub land: GitLand,
}

/// Reads a placement, or `ask`, which leaves the choice to the person.
fn placement_or_ask<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Placement>, D::Error> {
    let text = String::deserialize(from)?;
    if text == "ask" {
        return Ok(None);
    }
    let named = Placement::ALL.into_iter().find(|placement| placement.name() == text);
    let expected = &["ask", "branch", "worktree", "in-place"];
    named.map(Some).ok_or_else(|| D::Error::unknown_variant(&text, expected))
}

/// What is committed, on the branch of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitCommit {
    /// Each layer and each fix once it is done, and the documents after a plan and after a review.
    Layer,
    /// The same, and the documents after each step.
    Step,
    /// Nothing; that is left to the person.
    #[default]
    None,
}

/// Where an archived change goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitLand {
    /// It stays on its branch, and people merge it: for base branches that are protected, and where
    /// there are pull requests.
    #[default]
    Branch,
    /// It is merged into the base branch.
    Base,
}
