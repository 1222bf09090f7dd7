//! `[git]`: where a change is worked on, and what goes into git.

use serde::Deserialize;

use crate::state::Workflow;

/// `[git]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Git {
    /// Where a change is worked on.
    pub workflow: GitWorkflow,
    /// What is committed.
    pub commit: GitCommit,
    /// Whether the records of what agents did go into git with the change. They hold prompts,
    /// code and outputs, and are left out unless somebody asks for them.
    pub commit_runs: bool,
}

/// Where a change is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitWorkflow {
    /// The person is asked once.
    #[default]
    Ask,
    /// On a branch of its own.
    Branch,
    /// In a work tree of its own.
    Worktree,
    /// Where one stands.
    InPlace,
}

impl GitWorkflow {
    /// The workflow that is configured, unless the person is to be asked.
    pub fn configured(self) -> Option<Workflow> {
        match self {
            Self::Ask => None,
            Self::Branch => Some(Workflow::Branch),
            Self::Worktree => Some(Workflow::Worktree),
            Self::InPlace => Some(Workflow::InPlace),
        }
    }
}

/// What is committed during an implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitCommit {
    /// Each layer, once it is done.
    Layer,
    /// Nothing; that is left to the person.
    #[default]
    None,
}
