//! The record of an archived change: every file as it was before.

use agentd_core::document::changelog;
use agentd_core::document::changelog::Touched;
use agentd_core::document::proposal;
use agentd_core::hash::Digest;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ArchiveName, ChangeFile};
use agentd_core::rel_path::RelPath;
use agentd_core::stamp::Stamp;
use agentd_core::state::State;
use agentd_core::text::{Line, Prose};
use serde::{Deserialize, Serialize};

use super::Request;
use super::error::ArchiveError;
use super::paths::{Changelog, MadeDir, MainSpec, OwnFile, RecordedPath};
use super::plan::Plan;
use crate::change::journal;
use crate::store::{Change, Project, ProjectDir, StoreError};

/// `archive.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) version: u32,
    pub(super) change_id: ChangeId,
    /// The directory in the archive.
    pub(super) name: String,
    pub(super) archived_at: Stamp,
    /// Main specs, by their paths in the project.
    pub(super) specs: Vec<FileRecord<MainSpec>>,
    /// Documents of the change, by their paths in its directory.
    pub(super) own: Vec<FileRecord<OwnFile>>,
    pub(super) changelog: FileRecord<Changelog>,
    /// What was written into the changelog.
    pub(super) entry: String,
    /// Directories that were not there.
    pub(super) made: Vec<MadeDir>,
}

/// One file: how it was, and what it is from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRecord<P> {
    pub(super) path: P,
    pub(super) before: Option<String>,
    pub(super) after: Digest,
}

/// What a file is, compared with its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnDisk {
    Before,
    After,
    /// Somebody else has written it.
    Neither,
}

impl<P: RecordedPath> FileRecord<P> {
    fn new(path: P, before: Option<&str>, after: &str) -> Self {
        Self { path, before: before.map(str::to_owned), after: Digest::of(after) }
    }

    pub(super) fn rel_path(&self) -> RelPath {
        self.path.rel_path()
    }

    /// How the file is now.
    pub(super) fn found(&self, dir: &ProjectDir) -> Result<OnDisk, StoreError> {
        let now = read_if_exists(dir, &self.rel_path())?;
        Ok(match &now {
            now if now.as_deref() == self.before.as_deref().map(str::as_bytes) => OnDisk::Before,
            Some(now) if Digest::of(now) == self.after => OnDisk::After,
            _ => OnDisk::Neither,
        })
    }
}

/// The largest record that is read, and the largest file that one speaks of.
const RECORD_CAP: u64 = 64 << 20;

pub(super) fn read_if_exists(
    dir: &ProjectDir,
    path: &RelPath,
) -> Result<Option<Vec<u8>>, StoreError> {
    match dir.read_capped(path, RECORD_CAP) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Record {
    /// As the file holds it.
    pub(super) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// Reads a record; none where there is no such file.
    pub(super) fn read(dir: &ProjectDir, at: &RelPath) -> Result<Option<Self>, ArchiveError> {
        Ok(Self::read_with_digest(dir, at)?.map(|(record, _)| record))
    }

    /// The record of this digest. Another one is somebody else's, and says nothing about what
    /// is under way here.
    pub(super) fn read_known(
        dir: &ProjectDir,
        at: &RelPath,
        known: &Digest,
    ) -> Result<Option<Self>, ArchiveError> {
        let file = at.join(&ChangeFile::ArchiveRecord.path());
        let Some(bytes) = read_if_exists(dir, &file)? else { return Ok(None) };
        if Digest::of(&bytes) != *known {
            return Ok(None);
        }
        Self::read(dir, at)
    }

    /// Reads a record, with the digest of its file.
    pub(super) fn read_with_digest(
        dir: &ProjectDir,
        at: &RelPath,
    ) -> Result<Option<(Self, Digest)>, ArchiveError> {
        let file = at.join(&ChangeFile::ArchiveRecord.path());
        let Some(bytes) = read_if_exists(dir, &file)? else { return Ok(None) };
        let record: Self = serde_json::from_slice(&bytes).map_err(|error| {
            ArchiveError::BadRecord { file: file.clone(), why: error.to_string() }
        })?;
        if record.version != 1 {
            let why = format!("it has version {}", record.version);
            return Err(ArchiveError::BadRecord { file, why });
        }
        Ok(Some((record, Digest::of(&bytes))))
    }
}

/// Everything that is about to be written.
pub(super) struct Prepared {
    pub(super) record: Record,
    pub(super) name: ArchiveName,
    pub(super) state: State,
    /// Main specs and the changelog.
    pub(super) main: Vec<(RelPath, String)>,
    /// Documents of the change.
    pub(super) own: Vec<(ChangeFile, String)>,
}

/// Works out every byte.
pub(super) fn prepare(
    project: &Project,
    change: &Change,
    plan: &Plan,
    state: &State,
    recorded: &journal::Prepared,
    request: &Request<'_>,
) -> Result<Prepared, ArchiveError> {
    let name = free_name(project, change.id(), request.now)?;
    let summary = match request.drop {
        Some(_) => Line::new(&format!("Dropped: {}", summary(change, state))),
        None => summary(change, state),
    };
    let touched: Vec<(SpecId, Touched)> =
        plan.specs.iter().map(|spec| (spec.spec.clone(), spec.touched.clone())).collect();
    let entry = changelog::entry(&request.now.date(), change.id(), &summary, &touched);
    let log_path = layout::changelog();
    let old_log = match project.dir().read_to_string(&log_path) {
        Err(error) if error.is_not_found() => None,
        text => Some(text?),
    };
    let log = changelog::add(old_log.as_deref(), &entry);
    let mut main = Vec::new();
    let mut specs = Vec::new();
    for spec in &plan.specs {
        let path = layout::main_spec(&spec.spec);
        let recorded = MainSpec(spec.spec.clone());
        specs.push(FileRecord::new(recorded, spec.before.as_deref(), &spec.after));
        main.push((path, spec.after.clone()));
    }
    let changelog = FileRecord::new(Changelog, old_log.as_deref(), &log);
    main.push((log_path, log));
    let state_before = change.read_if_exists(&ChangeFile::State)?;
    let state_file = (ChangeFile::State, state_before, recorded.state_text.clone());
    let journal =
        (ChangeFile::Journal, recorded.public_before.clone(), recorded.public_after.clone());
    let others = plan.own.iter().map(|(file, a, b)| (file.clone(), Some(a.clone()), b.clone()));
    let own_texts: Vec<(ChangeFile, Option<String>, String)> =
        [state_file, journal].into_iter().chain(others).collect();
    let own = own_texts
        .iter()
        .map(|(file, before, after)| {
            FileRecord::new(OwnFile(file.clone()), before.as_deref(), after)
        })
        .collect();
    let mut made = Vec::new();
    for dir in MadeDir::ALL {
        if project.dir().kind(&dir.rel_path())?.is_none() {
            made.push(dir);
        }
    }
    let record = Record {
        version: 1,
        change_id: change.id().clone(),
        name: name.to_string(),
        archived_at: request.now,
        specs,
        own,
        changelog,
        entry,
        made,
    };
    let own = own_texts.into_iter().map(|(file, _, after)| (file, after)).collect();
    Ok(Prepared { record, name, state: state.clone(), main, own })
}

/// What the change is about, in one line.
fn summary(change: &Change, state: &State) -> Line {
    let text = change.read(&ChangeFile::Proposal).unwrap_or_default();
    let summary = proposal::parse(&text).value.summary.first_line();
    let asked = || state.description.as_ref().map(Prose::first_line).unwrap_or_default();
    if summary.is_empty() { asked() } else { summary }
}

/// `YYYY-MM-DD-<id>`, with `-1`, `-2`, … where another was archived on the same day.
fn free_name(project: &Project, id: &ChangeId, now: Stamp) -> Result<ArchiveName, ArchiveError> {
    let date = now.moment().to_zoned(jiff::tz::TimeZone::UTC).date();
    let mut name = ArchiveName { date, change: id.clone() };
    let mut n = 0;
    while project.dir().kind(&layout::archived_change(&name))?.is_some() {
        n += 1;
        name.change = id.with_suffix(n);
    }
    Ok(name)
}
