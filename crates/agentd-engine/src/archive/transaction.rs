//! The one step, and how it is undone or finished after a crash.

use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, ArchiveName, ChangeFile};
use agentd_core::rel_path::RelPath;
use serde::{Deserialize, Serialize};

use super::error::ArchiveError;
use super::paths::RecordedPath;
use super::record::{FileRecord, OnDisk, Prepared, Record};
use super::undo;
use crate::store::{Change, EntryKind, Holder, LockError, Project, StoreError, WriteLock};

/// What is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    Archive,
    Unarchive,
}

/// `archive.json` in the user's state directory, where no repository can write: it decides
/// whether a record is acted upon, and which one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    pub(super) action: Action,
    pub(super) change_id: ChangeId,
    /// The directory in the archive.
    pub(super) name: String,
    /// Of the file of the record.
    pub(super) record: Digest,
}

impl Journal {
    pub(super) fn new(
        action: Action,
        change: &ChangeId,
        name: &ArchiveName,
        record: Digest,
    ) -> Self {
        Self { action, change_id: change.clone(), name: name.to_string(), record }
    }

    /// Durable before anything is written in the project, which may be on another disk.
    pub(super) fn begin(&self, project: &Project) -> Result<(), ArchiveError> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        Ok(project.state_dir()?.write_atomic(&layout::archive_journal(), &bytes)?)
    }

    pub(super) fn end(project: &Project) -> Result<(), ArchiveError> {
        match project.state_dir()?.remove_file(&layout::archive_journal()) {
            Err(error) if error.is_not_found() => Ok(()),
            result => Ok(result?),
        }
    }

    fn archive_name(&self) -> Result<ArchiveName, ArchiveError> {
        self.name.parse().map_err(|error: layout::NameError| ArchiveError::BadRecord {
            file: layout::archive_journal(),
            why: error.to_string(),
        })
    }
}

/// Writes everything. What goes wrong half-way is taken back at once.
pub(super) fn archive(
    project: &Project,
    change: &Change,
    lock: &WriteLock,
    prepared: &Prepared,
) -> Result<(), ArchiveError> {
    let record = prepared.record.bytes();
    let digest = Digest::of(&record);
    Journal::new(Action::Archive, change.id(), &prepared.name, digest.clone()).begin(project)?;
    let written = write(project, change, lock, prepared, &record);
    if let Err(error) = written {
        // If this fails too, the journal stays and the next command tries again.
        roll_back(project, change, lock, &digest)?;
        Journal::end(project)?;
        return Err(error);
    }
    Journal::end(project)
}

fn write(
    project: &Project,
    change: &Change,
    lock: &WriteLock,
    prepared: &Prepared,
    record: &[u8],
) -> Result<(), ArchiveError> {
    for (path, _) in &prepared.main {
        if project.dir().kind(path)? == Some(EntryKind::Symlink) {
            return Err(StoreError::Symlink { path: path.clone() }.into());
        }
    }
    change.write(lock, &ChangeFile::ArchiveRecord, record)?;
    let main: Vec<(RelPath, &[u8])> =
        prepared.main.iter().map(|(path, text)| (path.clone(), text.as_bytes())).collect();
    project.dir().write_batch(&main)?;
    for (file, text) in &prepared.own {
        change.write(lock, file, text.as_bytes())?;
    }
    let (from, to) = (layout::change_dir(change.id()), layout::archived_change(&prepared.name));
    Ok(project.dir().rename_dir(&from, &to)?)
}

/// What was found unfinished, and what has become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The change.
    pub change: ChangeId,
    /// Whether the change is in the archive now.
    pub archived: bool,
    /// Files that somebody has edited since: they were left as they are.
    pub left: Vec<RelPath>,
}

/// Finishes or takes back what a killed agentd has left half done. Everyone who opens a
/// project calls this first; it costs one look for a file that is hardly ever there.
pub fn recover(
    project: &Project,
    holder: impl FnOnce() -> Holder,
) -> Result<Option<Recovered>, ArchiveError> {
    let Some(state) = project.state_dir_if_there()? else { return Ok(None) };
    if state.kind(&layout::archive_journal())? != Some(EntryKind::File) {
        return Ok(None);
    }
    let holder = &holder();
    let _project = match project.try_project_lock(holder) {
        Ok(lock) => lock,
        // Its holder is alive and at work.
        Err(LockError::Held { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    recover_locked(project, holder)
}

/// The same for who holds the lock of the project.
pub(super) fn recover_locked(
    project: &Project,
    holder: &Holder,
) -> Result<Option<Recovered>, ArchiveError> {
    let path = layout::archive_journal();
    let Some(state) = project.state_dir_if_there()? else { return Ok(None) };
    let bytes = match state.read(&path) {
        Err(error) if error.is_not_found() => return Ok(None),
        bytes => bytes?,
    };
    let journal: Journal = serde_json::from_slice(&bytes)
        .map_err(|error| ArchiveError::BadRecord { file: path.clone(), why: error.to_string() })?;
    let name = journal.archive_name()?;
    let id = &journal.change_id;
    let lock = project.write_lock(id, holder)?;
    let recovered = match journal.action {
        Action::Archive => match project.change(id) {
            Ok(change) => {
                let left = roll_back(project, &change, &lock, &journal.record)?;
                Recovered { change: id.clone(), archived: false, left }
            }
            // The directory has moved: all that was left to do is to say so.
            Err(StoreError::NoSuchChange { .. }) => {
                Recovered { change: id.clone(), archived: true, left: Vec::new() }
            }
            Err(error) => return Err(error.into()),
        },
        Action::Unarchive => {
            let left = undo::finish(project, id, &name, &journal.record)?;
            Recovered { change: id.clone(), archived: false, left }
        }
    };
    sweep(project, &layout::change_dir(id));
    sweep(project, &layout::archived_change(&name));
    Journal::end(project)?;
    Ok(Some(recovered))
}

/// Puts every file back as it was. Without the record of this digest nothing had been changed
/// yet: one that is there came with the change, and the next archiving replaces it.
fn roll_back(
    project: &Project,
    change: &Change,
    lock: &WriteLock,
    record: &Digest,
) -> Result<Vec<RelPath>, ArchiveError> {
    let at = layout::change_dir(change.id());
    let Some(record) = Record::read_known(project.dir(), &at, record)? else {
        return Ok(Vec::new());
    };
    let mut left = restore(project, &RelPath::root(), &record.specs)?;
    left.extend(restore(project, &RelPath::root(), [&record.changelog])?);
    restore(project, &at, &record.own)?;
    change.remove(lock, &ChangeFile::ArchiveRecord)?;
    remove_made(project, &record)?;
    Ok(left)
}

/// Puts files back as they were, below a directory; those that somebody else has written
/// since are left alone and named.
pub(super) fn restore<'f, P: RecordedPath + 'f>(
    project: &Project,
    at: &RelPath,
    files: impl IntoIterator<Item = &'f FileRecord<P>>,
) -> Result<Vec<RelPath>, ArchiveError> {
    let dir = if at.is_root() { project.dir().clone() } else { project.dir().strict_subdir(at)? };
    let mut left = Vec::new();
    let mut back: Vec<(RelPath, &[u8])> = Vec::new();
    for file in files {
        let path = file.rel_path();
        // What a link leads to was never archived.
        if dir.kind(&path)? == Some(EntryKind::Symlink) {
            left.push(at.join(&path));
            continue;
        }
        match (file.found(&dir)?, &file.before) {
            (OnDisk::Before, _) => {}
            (OnDisk::After, Some(before)) => back.push((path, before.as_bytes())),
            (OnDisk::After, None) => dir.remove_file(&path)?,
            (OnDisk::Neither, _) => left.push(at.join(&path)),
        }
    }
    dir.write_batch(&back)?;
    Ok(left)
}

/// Removes the directories that archiving has made, where nothing else is in them.
pub(super) fn remove_made(project: &Project, record: &Record) -> Result<(), ArchiveError> {
    for dir in &record.made {
        let dir = dir.rel_path();
        project.dir().sweep(&dir);
        project.dir().remove_empty_dir(&dir)?;
    }
    Ok(())
}

/// Removes what killed writers have left in the directories that were written to.
fn sweep(project: &Project, change: &RelPath) {
    project.dir().sweep(&layout::main_specs_dir());
    project.dir().sweep(change);
    if let Ok(specs) = RelPath::new("specs") {
        project.dir().sweep(&change.join(&specs));
    }
}
