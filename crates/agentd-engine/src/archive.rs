//! Putting a change away: its specs are merged into the main specs and its directory
//! moves to the archive, all of it or nothing.
//!
//! Several files change, so the disk passes through states that are neither before nor
//! after. Three things make it one step all the same:
//!
//! 1. a **journal** in the user's state directory says that it has begun, and by which record,
//!    before anything else is touched, and is removed last;
//! 2. a **record**, `archive.json` in the directory of the change, holds every file as it
//!    was before, and is durable before the first of them changes;
//! 3. the **move of the directory** is the moment at which it counts. Found before it, the
//!    record is played back; found after it, all is done already.
//!
//! Opening a project calls [`recover`], which costs one look for the journal. The
//! record moves into the archive with the change, where [`unarchive`] reads it: there the
//! move back is made after everything else, and an unfinished one is finished.

mod error;
mod paths;
mod plan;
mod record;
mod transaction;
mod undo;

use agentd_core::document::changelog::Touched;
use agentd_core::ids::{ChangeId, RequirementId, SpecId};
use agentd_core::layout::ArchiveName;
use agentd_core::merge::Conflict;
use agentd_core::stamp::Stamp;
use agentd_core::state::{LastAction, State};
use agentd_core::text::counted;
use serde::Serialize;

use crate::change::documents::{self, DocumentError};
use crate::change::journal;
use crate::store::{Change, Holder, Project};

pub use error::ArchiveError;
pub use transaction::{Recovered, recover};
pub use undo::{Unarchived, unarchive};

/// What is to be archived, and who wants it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// Why it is archived although its implementation is not approved.
    pub force: Option<&'a str>,
    /// Why it is archived although it was edited since its review.
    pub accept_stale: Option<&'a str>,
    /// Why it is given up: it is put away without merging anything (W3).
    pub drop: Option<&'a str>,
    /// Whether the conflicts that were shown last time end with the change's text.
    pub resume: bool,
    /// Who asks.
    pub by: &'a str,
    /// Who holds the locks.
    pub holder: &'a Holder,
    /// The time.
    pub now: Stamp,
}

/// What archiving a change does to one main spec.
#[derive(Debug, Clone, Serialize)]
pub struct SpecChange {
    /// The spec.
    pub spec: SpecId,
    /// What happens to it.
    #[serde(flatten)]
    pub touched: Touched,
    /// Its text before, if there was one.
    #[serde(skip)]
    pub before: Option<String>,
    /// Its text after.
    #[serde(skip)]
    pub after: String,
}

/// A requirement that gets another id, since its own was given away meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Renumbering {
    /// The spec.
    pub spec: SpecId,
    /// Its id in the change.
    pub from: RequirementId,
    /// Its id from now on.
    pub to: RequirementId,
}

/// A conflict in a spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpecConflict {
    /// The spec.
    pub spec: SpecId,
    /// What is in conflict.
    #[serde(flatten)]
    pub conflict: Conflict,
}

/// How many requirements come, change and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// Main specs that change.
    pub specs: usize,
    /// Requirements that come in.
    pub added: usize,
    /// Requirements whose text or scenarios change.
    pub edited: usize,
    /// Requirements that leave.
    pub removed: usize,
    /// Requirements that get another title.
    pub renamed: usize,
}

impl Totals {
    fn of(specs: &[SpecChange]) -> Self {
        Self::of_touched(specs.iter().map(|spec| &spec.touched))
    }

    /// What is done to some specs in all.
    pub fn of_touched<'t>(specs: impl IntoIterator<Item = &'t Touched>) -> Self {
        let mut totals = Self::default();
        for touched in specs {
            totals.specs += 1;
            totals.added += touched.added.len();
            totals.edited += touched.edited.len();
            totals.removed += touched.removed.len();
            totals.renamed += touched.renamed.len();
        }
        totals
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { specs, added, edited, removed, renamed } = *self;
        let all =
            [(added, "added"), (edited, "edited"), (removed, "removed"), (renamed, "renamed")];
        let mut some = all.into_iter().filter(|(count, _)| *count > 0);
        let specs = counted(specs, "spec");
        let Some((count, how)) = some.next() else {
            return write!(f, "no requirement changed, in {specs}");
        };
        write!(f, "{} {how}", counted(count, "requirement"))?;
        some.try_for_each(|(count, how)| write!(f, ", {count} {how}"))?;
        write!(f, ", in {specs}")
    }
}

/// What archiving would do.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The main specs that change.
    pub specs: Vec<SpecChange>,
    /// Requirements that get another id.
    pub renumbered: Vec<Renumbering>,
    /// What stands in the way.
    pub conflicts: Vec<SpecConflict>,
    /// Specs of the change that its proposal does not list, and that are not merged.
    pub unlisted: Vec<SpecId>,
    /// How much changes.
    pub totals: Totals,
    /// Why its phase does not allow it, if so.
    pub refused: Option<String>,
}

/// What archiving has done.
#[derive(Debug, Clone)]
pub struct Archived {
    /// The state of the change now.
    pub state: State,
    /// The directory in the archive.
    pub name: ArchiveName,
    /// The main specs that have changed.
    pub specs: Vec<SpecChange>,
    /// Requirements that have got another id.
    pub renumbered: Vec<Renumbering>,
    /// Specs of the change that its proposal does not list, and that were not merged.
    pub unlisted: Vec<SpecId>,
    /// How much has changed.
    pub totals: Totals,
}

/// What merging the specs of a change into the main specs would come to, wherever it stands.
pub(crate) struct MergedSpecs {
    pub(crate) specs: Vec<SpecChange>,
    pub(crate) renumbered: Vec<Renumbering>,
    pub(crate) conflicts: Vec<SpecConflict>,
}

/// Merges the specs of a change, in memory.
pub(crate) fn merged(project: &Project, change: &Change) -> Result<MergedSpecs, ArchiveError> {
    let plan::Plan { specs, renumbered, conflicts, .. } = plan::merge_into(project, change, &[])?;
    Ok(MergedSpecs { specs, renumbered, conflicts })
}

/// What archiving a change would do, without doing it.
pub fn preview(project: &Project, request: &Request<'_>) -> Result<Preview, ArchiveError> {
    let change = project.change(request.change)?;
    let plan = plan::make(project, &change, request)?;
    let before = plan::StateBefore::read(project, &change, request)?;
    let refused = match before.state_after(&change, request) {
        Ok(_) => None,
        Err(ArchiveError::Document(DocumentError::Refused(refused))) => Some(refused.to_string()),
        Err(error @ ArchiveError::Stale { .. }) => Some(error.to_string()),
        Err(error) => return Err(error),
    };
    Ok(Preview {
        totals: Totals::of(&plan.specs),
        specs: plan.specs,
        renumbered: plan.renumbered,
        conflicts: plan.conflicts,
        unlisted: plan.unlisted,
        refused,
    })
}

/// The change as it was archived before, if no open one has its ID. One that was dropped is not
/// archived: nothing of it was merged.
pub fn archived_before(project: &Project, id: &ChangeId) -> Result<Option<Archived>, ArchiveError> {
    if project.change_if_open(id)?.is_some() {
        return Ok(None);
    }
    let archived = project.archived()?.ids;
    let Some(name) = archived.into_iter().rfind(|name| name.change == *id) else { return Ok(None) };
    let change = project.archived_change(&name)?;
    let Some(state) = documents::load_state_if_begun(&change)? else { return Ok(None) };
    if state.last_action == Some(LastAction::Drop) {
        return Ok(None);
    }
    let (specs, renumbered, unlisted) = (Vec::new(), Vec::new(), Vec::new());
    let totals = Totals::default();
    Ok(Some(Archived { state, name, specs, renumbered, unlisted, totals }))
}

/// Archives a change.
///
/// Edits that contradict those of others end in [`ArchiveError::Conflicts`], with
/// nothing changed; what was shown is noted, so that `resume` can distinguish it from what is new.
pub fn archive(project: &Project, request: &Request<'_>) -> Result<Archived, ArchiveError> {
    // Asked before the locks, so that a wrong id leaves no lock file behind.
    project.change(request.change)?;
    let _run = project.try_run_lock(request.change, request.holder)?;
    let _project = project.project_lock(request.holder)?;
    transaction::recover_locked(project, request.holder)?;
    let lock = project.write_lock(request.change, request.holder)?;
    let change = project.change(request.change)?;
    let before = plan::StateBefore::read(project, &change, request)?;
    let state = before.state_after(&change, request)?;
    let plan = plan::make(project, &change, request)?;
    if !plan.conflicts.is_empty() {
        plan::note_conflicts(project, request, &plan.conflicts)?;
        return Err(ArchiveError::Conflicts { conflicts: plan.conflicts });
    }
    let entry = before.entry(project, &change, &lock, &state, &plan, request)?;
    let prepared = record::prepare(project, &change, &plan, &state, &entry, request)?;
    let copy = journal::Copy::of(project, request.change)?;
    entry.begin(copy.as_ref())?;
    transaction::archive(project, &change, &lock, &prepared)?;
    journal::end(copy.as_ref())?;
    plan::forget_conflicts(project, request.change);
    Ok(Archived {
        state: prepared.state,
        name: prepared.name,
        totals: Totals::of(&plan.specs),
        specs: plan.specs,
        renumbered: plan.renumbered,
        unlisted: plan.unlisted,
    })
}
