//! Where a change is worked on, as `status` shows it.

use agentd_core::state::{GitSetup, Placement};
use agentd_core::text::printable;
use agentd_engine::store::Project;
use serde::Serialize;

/// Where a change is worked on.
#[derive(Debug, Serialize)]
pub(super) struct GitPlace {
    pub(super) workflow: Placement,
    /// None in place.
    pub(super) branch: Option<String>,
    /// The commit that the work starts from; none without git.
    pub(super) base_commit: Option<String>,
    /// The branch that its branch was started from.
    pub(super) base_branch: Option<String>,
    /// The checkout with its code and its documents.
    pub(super) work_tree: String,
}

impl GitPlace {
    pub(super) fn new(project: &Project, setup: &GitSetup) -> Self {
        Self {
            workflow: setup.workflow,
            branch: setup.branch.clone(),
            base_commit: setup.base_commit.clone(),
            base_branch: setup.base_branch.clone(),
            work_tree: project.root().display().to_string(),
        }
    }

    /// Where the work starts, for people.
    pub(super) fn base(&self) -> Option<String> {
        let short = |commit: &String| commit.get(..10).unwrap_or(commit).to_owned();
        match (&self.base_branch, self.base_commit.as_ref().map(short)) {
            (Some(branch), Some(commit)) => Some(format!("{} ({commit})", printable(branch))),
            (Some(branch), None) => Some(printable(branch).into_owned()),
            (None, commit) => commit,
        }
    }
}
