//! The archived changes of a project, by their IDs and by the names of their directories.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, ArchiveName, ChangeFile};
use agentd_core::state::{self, StateError};

use super::confined::EntryKind;
use super::error::StoreError;
use super::project::{Change, Listed, ListedName, Project};

impl Project {
    /// The archived changes, oldest first.
    pub fn archived(&self) -> Result<Listed<ArchiveName>, StoreError> {
        self.listed(&layout::archive_dir(), |entry| match entry.kind {
            EntryKind::Dir => ListedName::from(entry.name.parse().ok()),
            EntryKind::Symlink => ListedName::Odd,
            EntryKind::File | EntryKind::Other => ListedName::Ignored,
        })
    }

    /// Opens an archived change, for reading: a write to it finds no open change and fails.
    pub fn archived_change(&self, name: &ArchiveName) -> Result<Change, StoreError> {
        let path = layout::archived_change(name);
        let dir = self.dir().strict_subdir(&path)?;
        let change = self.opened(&name.change, dir, &path);
        let id = id_of(&change, name);
        Ok(change.in_archive(id, name.clone()))
    }

    /// The archived changes that an ID or the name of a directory means, the newest first.
    pub fn archived_as(&self, which: &str) -> Result<Vec<ArchiveName>, StoreError> {
        let mut found = Vec::new();
        for name in self.archived()?.ids {
            let may_be = name.change.as_str() == which
                || name.without_number().is_some_and(|(stem, _)| which.starts_with(stem));
            if name.to_string() == which || (may_be && self.is_called(&name, which)) {
                found.push(name);
            }
        }
        let number = |name: &ArchiveName| match name.without_number() {
            Some((_, number)) if name.change.as_str() != which => number,
            _ => 0,
        };
        found.sort_by_key(|name| Reverse((name.date, number(name))));
        Ok(found)
    }

    /// The change of an ID, open or else the newest that is archived; or the archived one in the
    /// directory of that name. For reading.
    pub fn find_change(&self, which: &str) -> Result<Option<Change>, StoreError> {
        let id = ChangeId::new(which).ok();
        if let Some(open) = id.map(|id| self.change_if_open(&id)).transpose()?.flatten() {
            return Ok(Some(open));
        }
        let newest = self.archived_as(which)?.into_iter().next();
        newest.map(|name| self.archived_change(&name)).transpose()
    }

    /// The archived changes of all checkouts that agentd knows, oldest first, with the projects
    /// that they are in: what was archived in a worktree gets here when its branch is merged.
    pub fn archived_everywhere(&self) -> Result<Vec<(ArchiveName, Self)>, StoreError> {
        let mut found: BTreeMap<ArchiveName, Self> = BTreeMap::new();
        for project in self.checkouts() {
            for name in project.archived()?.ids {
                found.entry(name).or_insert_with(|| project.clone());
            }
        }
        Ok(found.into_iter().collect())
    }

    /// The project that an archived change is in, no matter whether it is there.
    #[must_use]
    pub fn home_of_archived(&self, name: &ArchiveName) -> Self {
        let is_there = |project: &Self| {
            matches!(project.dir().kind(&layout::archived_change(name)), Ok(Some(EntryKind::Dir)))
        };
        self.checkouts().into_iter().find(is_there).unwrap_or_else(|| self.clone())
    }

    fn is_called(&self, name: &ArchiveName, id: &str) -> bool {
        self.archived_change(name).is_ok_and(|change| change.id().as_str() == id)
    }
}

/// What an archived change was called. The directory of a second one of the same ID and day has a
/// number behind the ID, and an ID may itself end in one: then the state has to say which it is.
fn id_of(change: &Change, name: &ArchiveName) -> ChangeId {
    let Some((_, number)) = name.without_number() else { return name.change.clone() };
    let text = change.read(&ChangeFile::State).unwrap_or_default();
    match state::parse(&text, &name.change) {
        Err(StateError::OtherChange { found, .. }) if found.with_suffix(number) == name.change => {
            found
        }
        _ => name.change.clone(),
    }
}
