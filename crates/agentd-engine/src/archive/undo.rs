//! Taking an archived change back.

use agentd_core::document::changelog;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, ArchiveName, ChangeFile};
use agentd_core::phase::Transition;
use agentd_core::rel_path::RelPath;
use agentd_core::state::{self, State};

use super::error::ArchiveError;
use super::record::{FileRecord, OnDisk, Record, read_if_exists};
use super::transaction::{Action, Journal, recover_locked, remove_made, restore};
use crate::change::documents::{DocumentError, load_state_if_begun};
use crate::store::{EntryKind, Holder, Project, StoreError};

/// What taking a change back has done.
#[derive(Debug, Clone)]
pub struct Unarchived {
    /// The change.
    pub change: ChangeId,
    /// Its state now; none where it had none before it was archived.
    pub state: Option<State>,
    /// The directory in the archive where it was.
    pub name: ArchiveName,
    /// The main specs that are as they were.
    pub specs: Vec<RelPath>,
}

/// Takes an archived change back: the main specs are as they were, and the change is open
/// again. `which` is the id of the change or the name of its directory in the archive.
///
/// Main specs that were changed since, by another change or by hand, stand in the way.
pub fn unarchive(
    project: &Project,
    which: &str,
    holder: &Holder,
) -> Result<Unarchived, ArchiveError> {
    let (name, found) = find(project, which)?;
    let id = found.change_id;
    let _run = project.try_run_lock(&id, holder)?;
    let _project = project.project_lock(holder)?;
    recover_locked(project, holder)?;
    let _write = project.write_lock(&id, holder)?;
    let at = layout::archived_change(&name);
    let Some((record, digest)) = Record::read_with_digest(project.dir(), &at)? else {
        return Err(ArchiveError::NotArchived { change: which.to_owned() });
    };
    if project.dir().kind(&layout::change_dir(&id))?.is_some() {
        return Err(ArchiveError::IsOpen { change: id });
    }
    check_state(project, &at, &record)?;
    let mut changed = Vec::new();
    for file in &record.specs {
        if file.found(project.dir())? == OnDisk::Neither {
            changed.push(file.rel_path());
        }
    }
    if !changed.is_empty() {
        return Err(ArchiveError::ChangedSince { change: id, files: changed });
    }
    Journal::new(Action::Unarchive, &id, &name, digest.clone()).begin(project)?;
    finish(project, &id, &name, &digest)?;
    Journal::end(project)?;
    let specs = record.specs.iter().map(FileRecord::rel_path).collect();
    let state = load_state_if_begun(&project.change(&id)?)?;
    Ok(Unarchived { change: id, state, name, specs })
}

/// Does the rest of it, from wherever it was left: every step may have been done before.
pub(super) fn finish(
    project: &Project,
    id: &ChangeId,
    name: &ArchiveName,
    known: &Digest,
) -> Result<Vec<RelPath>, ArchiveError> {
    let at = layout::archived_change(name);
    let back = layout::change_dir(id);
    let mut left = Vec::new();
    if project.dir().kind(&at)? == Some(EntryKind::Dir)
        && let Some(record) = Record::read_known(project.dir(), &at, known)?
    {
        left = restore(project, &RelPath::root(), &record.specs)?;
        take_entry_out(project, &record)?;
        restore_own(project, &at, &record)?;
        project.dir().rename_dir(&at, &back)?;
    }
    if let Some(record) = Record::read_known(project.dir(), &back, known)? {
        // First the directories: once the record is gone nobody knows of them.
        remove_made(project, &record)?;
        project.dir().remove_file(&back.join(&ChangeFile::ArchiveRecord.path()))?;
    }
    Ok(left)
}

/// The entry leaves the changelog; others may have come since.
fn take_entry_out(project: &Project, record: &Record) -> Result<(), ArchiveError> {
    let log = &record.changelog;
    if log.found(project.dir())? != OnDisk::Neither {
        restore(project, &RelPath::root(), [log])?;
        return Ok(());
    }
    let path = log.rel_path();
    if project.dir().kind(&path)? == Some(EntryKind::Symlink) {
        return Ok(());
    }
    let Some(bytes) = read_if_exists(project.dir(), &path)? else { return Ok(()) };
    let text = String::from_utf8(bytes).unwrap_or_default();
    if let Some(without) = changelog::remove(&text, &record.entry) {
        project.dir().write_atomic(&path, without.as_bytes())?;
    }
    Ok(())
}

/// The documents of the change as they were; a state that was written since moves on.
fn restore_own(project: &Project, at: &RelPath, record: &Record) -> Result<(), ArchiveError> {
    let left = restore(project, at, &record.own)?;
    let path = at.join(&ChangeFile::State.path());
    if left.contains(&path) {
        let state = archived_state(project, at, record)?.apply(&Transition::Unarchived)?;
        project.dir().write_atomic(&path, state::render(&state).as_bytes())?;
    }
    Ok(())
}

/// A state that cannot be read stops everything before anything is changed.
fn check_state(project: &Project, at: &RelPath, record: &Record) -> Result<(), ArchiveError> {
    let dir = project.dir().strict_subdir(at)?;
    let untouched = record.own.iter().any(|file| {
        file.path.0 == ChangeFile::State
            && file.found(&dir).is_ok_and(|found| found != OnDisk::Neither)
    });
    if !untouched {
        archived_state(project, at, record)?.apply(&Transition::Unarchived)?;
    }
    Ok(())
}

fn archived_state(project: &Project, at: &RelPath, record: &Record) -> Result<State, ArchiveError> {
    let text = project.dir().read_to_string(&at.join(&ChangeFile::State.path()))?;
    let change = record.change_id.clone();
    Ok(state::parse(&text, &change).map_err(|source| DocumentError::State { change, source })?)
}

/// The latest archived change of an id, or that of a directory.
fn find(project: &Project, which: &str) -> Result<(ArchiveName, Record), ArchiveError> {
    let mut latest: Option<(ArchiveName, Record)> = None;
    let mut bare = None;
    for name in project.archived()?.ids {
        let exact = name.to_string() == which;
        // The directory of a second change of that day has a number behind the id.
        if !exact && !name.change.as_str().starts_with(which) {
            continue;
        }
        let at = layout::archived_change(&name);
        let Some(record) = Record::read(project.dir(), &at)? else {
            if exact || name.change.as_str() == which {
                bare = Some(at);
            }
            continue;
        };
        let is_it = exact || record.change_id.as_str() == which;
        let newer = latest
            .as_ref()
            .is_none_or(|(old, before)| (before.archived_at, old) < (record.archived_at, &name));
        if is_it && newer {
            latest = Some((name, record));
        }
    }
    match (latest, bare) {
        (Some(found), _) => Ok(found),
        (None, Some(dir)) => Err(ArchiveError::NoRecord { dir }),
        (None, None) => {
            let open = ChangeId::new(which).ok().map(|id| project.change(&id));
            match open {
                Some(Ok(change)) => Err(ArchiveError::IsOpen { change: change.id().clone() }),
                Some(Err(StoreError::NoSuchChange { .. })) | None => {
                    Err(ArchiveError::NotArchived { change: which.to_owned() })
                }
                Some(Err(error)) => Err(error.into()),
            }
        }
    }
}
