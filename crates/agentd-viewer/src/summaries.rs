//! The summaries of all changes, read again only where a file has changed: with a thousand
//! changes reading is most of the time of the first page.

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

/// A change in one look.
#[derive(Debug)]
pub(super) struct Known {
    /// The files when they were read.
    seen: [Option<FileStamp>; 3],
    pub(super) summary: Summary,
    /// What it is about, in a few words.
    pub(super) title: String,
}

impl Known {
    /// Tells which change it is, and which versions of its files were seen.
    pub(super) fn mark(&self, hasher: &mut impl Hasher) {
        self.summary.change_id.as_str().hash(hasher);
        self.seen.hash(hasher);
    }
}

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Summaries(Mutex<BTreeMap<ChangeId, Arc<Known>>>);

impl Summaries {
    /// The summaries of these changes as they are now. One that cannot be looked at is left
    /// out; it must not take the others with it.
    pub(super) fn of(&self, project: &Project, ids: &[ChangeId]) -> Vec<Arc<Known>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = &*kept;
        let now: Vec<Arc<Known>> = map_parallel(ids, |id| look(project, id, before.get(id)))
            .into_iter()
            .flatten()
            .collect();
        *kept =
            now.iter().map(|known| (known.summary.change_id.clone(), Arc::clone(known))).collect();
        now
    }
}

fn look(project: &Project, id: &ChangeId, before: Option<&Arc<Known>>) -> Option<Arc<Known>> {
    let change = project.change(id).ok()?;
    // Looked at before it is read: what is written in between is noticed the next time.
    let seen = FILES.map(|file| change.dir().stamp(&file.path()).ok().flatten());
    if let Some(known) = before.filter(|known| known.seen == seen) {
        return Some(Arc::clone(known));
    }
    let summary = Summary::read(&change);
    let title = if summary.title.is_empty() { id.to_string() } else { headline(&summary.title) };
    Some(Arc::new(Known { seen, summary, title }))
}
