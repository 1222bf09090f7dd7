//! The summaries of all changes, read again only if a file has changed: with a thousand changes
//! reading them takes most of the time of the first page.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_engine::change::summary::Summary;
use agentd_engine::store::{FileStamp, Project, map_parallel};

use super::markdown::headline;

/// What a summary is made from.
const FILES: [ChangeFile; 3] = [ChangeFile::State, ChangeFile::Proposal, ChangeFile::Tasks];

/// A change at a glance.
#[derive(Debug)]
pub(super) struct ChangeOverview {
    /// The versions of the files that were read.
    seen: [Option<FileStamp>; 3],
    pub(super) summary: Summary,
    /// What it is about, in a few words.
    pub(super) title: String,
}

impl ChangeOverview {
    /// Adds which change it is, and which versions of its files were read.
    pub(super) fn mark(&self, hasher: &mut impl Hasher) {
        self.summary.change_id.as_str().hash(hasher);
        self.seen.hash(hasher);
    }
}

/// What has been read so far.
#[derive(Debug, Default)]
pub(super) struct Summaries(Mutex<BTreeMap<ChangeId, Arc<ChangeOverview>>>);

impl Summaries {
    /// The current summaries of these changes. One that cannot be read is left out, so that the
    /// others can still be shown.
    pub(super) fn of(&self, open: &[(ChangeId, Project)]) -> Vec<Arc<ChangeOverview>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = &*kept;
        let now: Vec<Arc<ChangeOverview>> =
            map_parallel(open, |(id, project)| read(project, id, before.get(id)))
                .into_iter()
                .flatten()
                .collect();
        *kept =
            now.iter().map(|known| (known.summary.change_id.clone(), Arc::clone(known))).collect();
        now
    }
}

fn read(
    project: &Project,
    id: &ChangeId,
    before: Option<&Arc<ChangeOverview>>,
) -> Option<Arc<ChangeOverview>> {
    let change = project.change(id).ok()?;
    // Before the files are read: a write in between is noticed the next time.
    let seen = FILES.map(|file| change.dir().stamp(&file.path()).ok().flatten());
    if let Some(known) = before.filter(|known| known.seen == seen) {
        return Some(Arc::clone(known));
    }
    let summary = Summary::read(&change);
    let title = if summary.title.is_empty() { id.to_string() } else { headline(&summary.title) };
    Some(Arc::new(ChangeOverview { seen, summary, title }))
}
