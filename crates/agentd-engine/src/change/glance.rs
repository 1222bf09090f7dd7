//! All changes of a project at a glance, with what each of them is waiting for.
//!
//! A project may have a thousand changes, so nothing is read or checked that does not decide what
//! comes next: findings only for plans that are about to be judged, and code only for changes that
//! could be archived.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;

use agentd_core::check::{self, Extras};
use agentd_core::diagnostic::Counts;
use agentd_core::document::review::Review;
use agentd_core::document::review_block::{PlanVerdict, ReviewBlock};
use agentd_core::hash::Digest;
use agentd_core::ids::SpecId;
use agentd_core::layout::ArchiveName;
use agentd_core::next_step::NextStep;
use agentd_core::phase::Phase;
use agentd_core::stamp::Stamp;
use agentd_core::standing::Standing;
use agentd_core::state::{LlmCall, State};
use serde::Serialize;

use super::documents::{self, DocumentError};
use super::position::{self, Running};
use super::staleness::{self, Stale};
use super::summary::Summary;
use super::tree::tree;
use super::{Snapshot, comments};
use crate::git::GitTool;
use crate::store::{Change, Project, StoreError, map_parallel};
use crate::workflow::Verdict;

/// A change at a glance.
#[derive(Debug, Serialize)]
pub struct Glance {
    /// What it is.
    #[serde(flatten)]
    pub summary: Summary,
    /// When it began.
    pub created_at: Option<Stamp>,
    /// The name of its directory in the archive, if it is there.
    pub archived: Option<String>,
    /// What it is waiting for; none if its state cannot be read.
    pub standing: Option<Standing>,
    /// The same in a word or two.
    pub state: &'static str,
    /// Why, as the end of a sentence.
    pub why: &'static str,
    /// The command that is working on it.
    pub running: Option<Running>,
    /// The latest verdict: on its code, if that was reviewed since the plan was approved.
    pub verdict: Option<&'static str>,
    /// The issues that came with it.
    pub issues: Option<Counts>,
    /// The commands that take it on, the usual one first.
    pub next: Vec<NextStep>,
    /// The same for a person at a terminal, who can be asked.
    #[serde(skip)]
    pub next_for_people: Vec<NextStep>,
    /// The specs that it is about.
    #[serde(skip)]
    pub specs: Vec<SpecId>,
    /// The last call of an agent, if it failed.
    #[serde(skip)]
    pub failed: Option<LlmCall>,
    /// How many comments on it are open.
    #[serde(skip)]
    pub open_comments: usize,
}

impl Glance {
    /// Whether a person has to decide about its plan.
    pub fn waits_for_decision(&self) -> bool {
        self.standing == Some(Standing::Waiting)
            && self.verdict == Some(PlanVerdict::NeedsRevision.label())
    }
}

/// What is in a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeDigest {
    /// This.
    Known(Digest),
    /// It cannot be read.
    Unreadable,
    /// Nobody has looked yet. Nothing counts as edited then.
    Unknown,
}

impl TreeDigest {
    /// Reads a working tree.
    pub fn read(root: &Path) -> Self {
        tree(&GitTool::default(), root).map_or(Self::Unreadable, Self::Known)
    }
}

/// Working trees that were read, each of them once.
#[derive(Debug, Default)]
struct Trees(Mutex<BTreeMap<PathBuf, TreeDigest>>);

impl Trees {
    fn digest(&self, root: &Path) -> TreeDigest {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(root.to_owned()).or_insert_with_key(|root| TreeDigest::read(root)).clone()
    }
}

/// The open changes of all checkouts, in the order of their IDs.
pub fn open(project: &Project) -> Result<Vec<Glance>, StoreError> {
    let trees = Trees::default();
    // Settings that cannot be read are reported by the commands that need them.
    let extras = documents::load_config(project).map(|config| config.extras()).unwrap_or_default();
    let glances = map_parallel(&project.open_everywhere()?, |(id, home)| {
        let Some(change) = home.change_if_open(id)? else { return Ok(None) };
        let elsewhere = (home.root() != project.root()).then(|| home.root().display().to_string());
        let mut glance = of(home, &change, &extras, &|root| trees.digest(root))?;
        glance.summary.work_tree = elsewhere;
        Ok::<_, StoreError>(Some(glance))
    });
    glances.into_iter().filter_map(Result::transpose).collect()
}

/// The archived changes of all checkouts, oldest first.
pub fn archived(project: &Project) -> Result<Vec<Glance>, StoreError> {
    let glances = map_parallel(&project.archived_everywhere()?, |(name, home)| {
        match home.archived_change(name) {
            Err(error) if error.is_not_found() => Ok(None),
            change => Ok::<_, StoreError>(Some(of_archived(&change?, name))),
        }
    });
    glances.into_iter().filter_map(Result::transpose).collect()
}

fn of_archived(change: &Change, name: &ArchiveName) -> Glance {
    let (summary, state) = Summary::with_state(change);
    let was_dropped = state.as_ref().is_some_and(State::was_dropped);
    Glance {
        created_at: state.as_ref().and_then(|state| state.created_at),
        archived: Some(name.to_string()),
        standing: summary.problem.is_none().then_some(Standing::Done),
        state: if was_dropped { "dropped" } else { "archived" },
        why: if was_dropped { "it was dropped" } else { "it is archived" },
        running: None,
        verdict: state.and_then(|state| Some(state.code_review?.verdict.label())),
        issues: None,
        next: Vec::new(),
        next_for_people: Vec::new(),
        specs: Vec::new(),
        failed: None,
        open_comments: 0,
        summary,
    }
}

/// An open change. `digest` says what is in a working tree, which takes long to find out.
pub fn of(
    project: &Project,
    change: &Change,
    extras: &Extras,
    digest: &dyn Fn(&Path) -> TreeDigest,
) -> Result<Glance, StoreError> {
    let snapshot = change.snapshot()?;
    let mut glance = Glance {
        summary: Summary::of(&snapshot),
        created_at: None,
        archived: None,
        standing: None,
        state: "unreadable",
        why: "its state cannot be read",
        running: None,
        verdict: None,
        issues: None,
        next: Vec::new(),
        next_for_people: Vec::new(),
        specs: snapshot.documents.specs.keys().cloned().collect(),
        failed: None,
        open_comments: comments::list(change)?.open().count(),
    };
    let Ok(state) = snapshot.state_if_begun() else { return Ok(glance) };
    glance.created_at = state.and_then(|state| state.created_at);
    let last = state.and_then(|state| state.llm_calls.last());
    glance.failed = last.filter(|call| call.failure.is_some()).cloned();
    let high = || check::counts(&snapshot.findings(project, extras)).high;
    let stale = |state: &State| stale(project, &snapshot, state, digest);
    if let Ok((course, running)) = position::at_a_glance(project, &snapshot, high, stale) {
        glance.standing = Some(course.standing);
        (glance.state, glance.why) = (course.brief, course.why);
        glance.next_for_people = course.next_for_people();
        glance.next = course.next;
        glance.running = running;
    }
    if let Some((verdict, issues)) = state.and_then(|state| verdict(&snapshot, state)) {
        glance.verdict = Some(verdict.label());
        glance.issues = issues;
    }
    Ok(glance)
}

/// What is stale in a change: its code only if it could be archived, which nobody else needs to know
/// at a glance.
fn stale(
    project: &Project,
    snapshot: &Snapshot,
    state: &State,
    digest: &dyn Fn(&Path) -> TreeDigest,
) -> Result<Vec<Stale>, DocumentError> {
    if state.phase != Phase::Complete {
        return Ok(Vec::new());
    }
    let root = staleness::code_root(project, state).ok();
    let digest = match root.map_or(TreeDigest::Unreadable, |root| digest(&root)) {
        TreeDigest::Known(digest) => Some(digest),
        TreeDigest::Unreadable => None,
        TreeDigest::Unknown => return Ok(Vec::new()),
    };
    staleness::stale_with(project, snapshot, |_| digest)
}

/// The latest verdict that counts, and its issues where they are known.
fn verdict(snapshot: &Snapshot, state: &State) -> Option<(Verdict, Option<Counts>)> {
    let documents = &snapshot.documents;
    if matches!(state.phase, Phase::Implementing | Phase::Complete)
        && let Some(review) = &state.code_review
    {
        let text = documents.review.text().map(Digest::of);
        let is_it = review.review_hash.is_none() || review.review_hash == text;
        let found = documents.review.value_if_there().filter(|_| is_it);
        return Some((Verdict::Code(review.verdict), found.map(Review::counts)));
    }
    let known = state.plan_review.as_ref()?;
    let block = documents.reviews().iter().rfind(|review| known.is_of(review));
    Some((Verdict::Plan(known.verdict), block.map(ReviewBlock::counts)))
}
