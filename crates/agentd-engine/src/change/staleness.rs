//! What was edited since it was reviewed or tested (T3).

use std::borrow::Cow;
use std::path::PathBuf;

use agentd_core::hash::Digest;
use agentd_core::state::{CodeReview, State};
use serde::Serialize;

use super::Snapshot;
use super::documents::DocumentError;
use super::tree::tree;
use crate::git::{self, GitTool};
use crate::store::Project;
use crate::workflow::{bug_test, revision};

/// Something whose verdict is about an earlier version of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stale {
    /// `plan`, `code`, `tests`, a requirement whose code was written for another plan (W2), or a file
    /// of the test for a bug.
    pub what: Cow<'static, str>,
    /// Why.
    pub why: Cow<'static, str>,
}

/// What is stale and why, in one line.
pub(crate) fn listed(stale: &[Stale]) -> String {
    let all: Vec<String> = stale.iter().map(|one| format!("{}: {}", one.what, one.why)).collect();
    all.join("; ")
}

/// Where the code of a change is.
pub(crate) fn code_root(project: &Project, state: &State) -> Result<PathBuf, git::GitError> {
    match &state.git {
        Some(setup) => git::work_tree(&GitTool::default(), project.root(), &state.change_id, setup),
        None => Ok(project.root().to_owned()),
    }
}

/// What is stale in a change. Verdicts of versions that did not record what they are about are
/// taken as they are.
pub fn stale(project: &Project, snapshot: &Snapshot) -> Result<Vec<Stale>, DocumentError> {
    stale_with(project, snapshot, |root| tree(&GitTool::default(), &root).ok())
}

/// The same with another way to read a working tree.
pub(super) fn stale_with(
    project: &Project,
    snapshot: &Snapshot,
    digest: impl FnOnce(PathBuf) -> Option<Digest>,
) -> Result<Vec<Stale>, DocumentError> {
    let Some(state) = snapshot.state_if_begun()? else { return Ok(Vec::new()) };
    let mut stale = Vec::new();
    let plan = snapshot.documents.digest();
    if state.plan_review.as_ref().is_some_and(|review| review.plan_hash != plan) {
        stale
            .push(Stale { what: "plan".into(), why: "it was edited since it was reviewed".into() });
    }
    let changes = revision::changes(snapshot, state).unwrap_or_default();
    stale.extend(changes.specs.iter().map(|(what, how)| Stale {
        what: what.to_string().into(),
        why: format!("it {} since the code was written", how.words()).into(),
    }));
    let changed = bug_test::changed(project.root(), state);
    stale.extend(changed.into_iter().map(|file| Stale {
        what: file.into(),
        why: "it was edited since agentd saw its test fail".into(),
    }));
    // Otherwise a file that cannot be read would free a verdict from what it is about.
    let unbound = |review: &CodeReview| review.review_hash.is_some() && review.tree.is_none();
    if state.code_review.as_ref().is_some_and(unbound) {
        stale.push(Stale {
            what: "code".into(),
            why: "its files could not be read for the review".into(),
        });
    }
    let reviewed = state.code_review.as_ref().and_then(|review| review.tree.as_ref());
    let tested = state.test_run.as_ref().filter(|run| run.tree.is_some());
    if reviewed.is_none() && tested.is_none() {
        return Ok(stale);
    }
    let now = code_root(project, state).ok().and_then(digest);
    let Some(now) = now else {
        stale.push(Stale { what: "code".into(), why: "its working tree cannot be read".into() });
        return Ok(stale);
    };
    if reviewed.is_some_and(|reviewed| *reviewed != now) {
        stale.push(Stale {
            what: "code".into(),
            why: "files were edited since they were reviewed".into(),
        });
    }
    if tested.is_some_and(|run| !run.covers(&now)) {
        stale.push(Stale {
            what: "tests".into(),
            why: "files were edited since the tests ran".into(),
        });
    }
    Ok(stale)
}
