//! Where a change lives: in this checkout, or in the worktree of its branch (C36).
//!
//! A change in worktree mode has its documents in the worktree, which is a project of its own with
//! locks and state. The checkout where it began keeps a note of where that is, and the worktree one of
//! where it came from. Both are in the user's state directory: if git or a file of the project decided,
//! an agent could make a change live where a forged copy of it lies.

use std::collections::BTreeMap;
use std::path::Path;

use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::rel_path::RelPath;
use agentd_core::stamp::Stamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::bytes::Bytes;
use super::confined::EntryKind;
use super::error::StoreError;
use super::project::Project;

/// Where a change has moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveNote {
    /// The root of the project there: a path need not be text.
    root: Bytes,
    /// Whether the documents in the old place are part of a commit, and stay.
    pub(crate) stays: bool,
    /// Whether something is left to do in the old place.
    pub(crate) unfinished: bool,
}

impl MoveNote {
    pub(crate) fn new(root: &Path, stays: bool) -> Self {
        Self { root: root.into(), stays, unfinished: true }
    }

    /// Of a change that is there, and was never here.
    pub(crate) fn settled(root: &Path) -> Self {
        Self { root: root.into(), stays: false, unfinished: false }
    }
}

/// What agentd has created in git for a change, and may delete. What was there before belongs to
/// someone else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Created {
    /// The branch.
    pub branch: bool,
    /// The worktree.
    pub work_tree: bool,
}

/// The note of it, for the change that began then: a later one with the same ID is another.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CreatedNote {
    began: Option<Stamp>,
    created: Created,
}

impl Project {
    /// What agentd has created in git for a change that began then.
    pub(crate) fn created(&self, id: &ChangeId, began: Option<Stamp>) -> Created {
        let note = self.note::<CreatedNote>(&layout::created_note(id));
        note.filter(|note| note.began == began).map(|note| note.created).unwrap_or_default()
    }

    /// Notes what agentd has created, besides what it had created before.
    pub(crate) fn note_created(
        &self,
        id: &ChangeId,
        began: Option<Stamp>,
        more: Created,
    ) -> Result<(), StoreError> {
        let known = self.created(id, began);
        let created = Created {
            branch: known.branch || more.branch,
            work_tree: known.work_tree || more.work_tree,
        };
        if created == known {
            return Ok(());
        }
        let text = serde_json::to_vec(&CreatedNote { began, created }).unwrap_or_default();
        self.state_dir()?.write_atomic(&layout::created_note(id), &text)
    }

    /// The project that a change lives in: that of its worktree, the checkout where it began, or
    /// this one, no matter whether the change is there.
    #[must_use]
    pub fn home_of(&self, id: &ChangeId) -> Self {
        match self.origin() {
            Some(origin) => {
                let home = origin.home_from_here(id);
                if home.has(id) { home } else { self.clone() }
            }
            None => self.home_from_here(id),
        }
    }

    /// Archived changes in a worktree count if this project knows none of that name.
    fn home_from_here(&self, id: &ChangeId) -> Self {
        match self.moved_to(id) {
            Some(other) if other.has_open(id) || (!self.has(id) && other.has_archived(id)) => other,
            _ => self.clone(),
        }
    }

    /// The open changes of all checkouts that agentd knows, with the projects that they live in.
    pub fn open_everywhere(&self) -> Result<Vec<(ChangeId, Self)>, StoreError> {
        let origin = self.origin();
        let main = origin.as_ref().unwrap_or(self);
        // Where a change has moved to outweighs what is left of it elsewhere.
        let mut found: BTreeMap<ChangeId, Self> = main.in_worktrees().into_iter().collect();
        for project in [Some(main), origin.is_some().then_some(self)].into_iter().flatten() {
            for id in project.change_ids()?.ids {
                found.entry(id).or_insert_with(|| project.clone());
            }
        }
        Ok(found.into_iter().collect())
    }

    /// The open changes that have moved from here into worktrees.
    pub(crate) fn in_worktrees(&self) -> Vec<(ChangeId, Self)> {
        self.moved().filter(|(id, home)| home.has_open(id)).collect()
    }

    /// The changes that have moved from here, with the projects that they have moved to.
    fn moved(&self) -> impl Iterator<Item = (ChangeId, Self)> {
        let state = self.state_dir_if_there().ok().flatten();
        let notes = state.and_then(|state| state.list_dir(&layout::moves_dir()).ok());
        let notes = notes.unwrap_or_default().into_iter();
        notes
            .filter_map(|entry| layout::change_of_move_note(&entry.name))
            .filter_map(|id| self.moved_to(&id).map(|home| (id, home)))
    }

    /// Every checkout that agentd knows, the one where changes begin first.
    pub(super) fn checkouts(&self) -> Vec<Self> {
        let main = self.origin().unwrap_or_else(|| self.clone());
        let moved = main.moved().map(|(_, home)| home);
        let mut all: Vec<Self> = Vec::new();
        for project in std::iter::once(main.clone()).chain(moved).chain([self.clone()]) {
            if all.iter().all(|known| known.root() != project.root()) {
                all.push(project);
            }
        }
        all
    }

    /// The project that a change has moved to, if that is still there.
    fn moved_to(&self, id: &ChangeId) -> Option<Self> {
        self.checkout(&self.move_note(id)?.root)
    }

    /// The checkout where the changes in this worktree began, if it is one.
    fn origin(&self) -> Option<Self> {
        self.checkout(&self.note::<Bytes>(&layout::origin_note())?)
    }

    fn checkout(&self, root: &Bytes) -> Option<Self> {
        Some(Self::open(&root.path()).ok()?.for_user(self.user().clone()))
    }

    /// One that cannot be read says nothing: then the change lives here.
    pub(crate) fn note<T: DeserializeOwned>(&self, path: &RelPath) -> Option<T> {
        let state = self.state_dir_if_there().ok().flatten()?;
        serde_json::from_slice(&state.read(path).ok()?).ok()
    }

    pub(crate) fn move_note(&self, id: &ChangeId) -> Option<MoveNote> {
        self.note(&layout::move_note(id))
    }

    pub(crate) fn write_move_note(&self, id: &ChangeId, note: &MoveNote) -> Result<(), StoreError> {
        let text = serde_json::to_vec(note).unwrap_or_default();
        self.state_dir()?.write_atomic(&layout::move_note(id), &text)
    }

    pub(crate) fn write_origin(&self, origin: &Self) -> Result<(), StoreError> {
        let text = serde_json::to_vec(&Bytes::from(origin.root())).unwrap_or_default();
        self.state_dir()?.write_atomic(&layout::origin_note(), &text)
    }

    /// Whether a change has this ID in any checkout that agentd knows, and if so, whether it is
    /// archived there.
    pub(crate) fn knows(&self, id: &ChangeId) -> Option<bool> {
        let origin = self.origin();
        let main = origin.as_ref().unwrap_or(self);
        let places = [Some(self.clone()), Some(main.clone()), main.moved_to(id)];
        let places: Vec<Self> = places.into_iter().flatten().collect();
        let archived = || places.iter().any(|place| place.has_archived(id)).then_some(true);
        places.iter().any(|place| place.has_open(id)).then_some(false).or_else(archived)
    }

    /// The checkout from which a change has moved here.
    pub(crate) fn began_in(&self, id: &ChangeId) -> Option<Self> {
        let is_here = |origin: &Self| {
            origin.move_note(id).is_some_and(|note| note.root.path() == self.root())
        };
        self.origin().filter(is_here)
    }

    /// Notes under another ID where a change lives; nothing of that ID is left here.
    pub(crate) fn copy_move_note(&self, from: &ChangeId, to: &ChangeId) -> Result<(), StoreError> {
        let Some(note) = self.move_note(from) else { return Ok(()) };
        self.write_move_note(to, &MoveNote { stays: false, unfinished: false, ..note })
    }

    /// Removes the note of where a change lives.
    pub(crate) fn forget_move(&self, id: &ChangeId) -> Result<(), StoreError> {
        self.state_dir()?.remove_tree(&layout::move_note(id))
    }

    fn has(&self, id: &ChangeId) -> bool {
        self.has_open(id) || self.has_archived(id)
    }

    fn has_open(&self, id: &ChangeId) -> bool {
        matches!(self.dir().kind(&layout::change_dir(id)), Ok(Some(EntryKind::Dir)))
    }

    fn has_archived(&self, id: &ChangeId) -> bool {
        self.archived_as(id.as_str()).is_ok_and(|archived| !archived.is_empty())
    }
}
