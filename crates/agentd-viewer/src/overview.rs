//! All changes at a glance, read again only if a file has changed: with a thousand changes reading
//! them takes most of the time of the first page.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use agentd_core::check::Extras;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::phase::Phase;
use agentd_core::rel_path::RelPath;
use agentd_core::standing::Standing;
use agentd_engine::change::documents;
use agentd_engine::change::glance::{self, Glance, TreeDigest};
use agentd_engine::store::{Change, FileStamp, Project, map_parallel};

use super::markdown::headline;
use super::trees::Trees;

/// The files that a glance is made from, besides the specs.
const FILES: [ChangeFile; 5] = [
    ChangeFile::State,
    ChangeFile::Proposal,
    ChangeFile::Tasks,
    ChangeFile::Review,
    ChangeFile::Comments,
];

/// The versions of the files of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    files: [Option<FileStamp>; 5],
    specs: Vec<(SpecId, Option<FileStamp>)>,
    /// What was in the working tree; only of changes whose code was approved.
    tree: Option<u64>,
}

impl Seen {
    fn of(change: &Change) -> Self {
        let stamp = |file: &ChangeFile| change.dir().stamp(&file.path()).ok().flatten();
        let dir = RelPath::new("specs").ok();
        let names = dir.and_then(|dir| change.dir().list_dir(&dir).ok()).unwrap_or_default();
        let specs = names.iter().filter_map(|entry| layout::spec_of_file_name(&entry.name));
        let specs = specs.map(|id| (id.clone(), stamp(&ChangeFile::Spec(id)))).collect();
        Self { files: FILES.each_ref().map(stamp), specs, tree: None }
    }
}

/// A change at a glance.
#[derive(Debug)]
pub(super) struct Overview {
    seen: Seen,
    pub(super) glance: Glance,
    /// What it is about, in a few words.
    pub(super) title: String,
    /// Its id and title in lower case, to look for words in.
    pub(super) words: String,
}

impl Overview {
    pub(super) fn id(&self) -> &ChangeId {
        &self.glance.summary.change_id
    }

    /// Adds which change it is, and which versions of its files were read.
    pub(super) fn mark(&self, hasher: &mut impl Hasher) {
        self.id().as_str().hash(hasher);
        (&self.seen.files, &self.seen.specs).hash(hasher);
        // Whether its code was edited shows here; what is in the tree does not.
        (self.glance.state, self.glance.why).hash(hasher);
        self.glance.running.as_ref().map(|running| running.pid).hash(hasher);
    }

    /// Whether a person has to do something before it goes on.
    pub(super) fn needs_person(&self) -> bool {
        let waits =
            matches!(self.glance.standing, None | Some(Standing::Waiting | Standing::Stale));
        self.glance.running.is_none() && (waits || self.glance.failed.is_some())
    }
}

/// What has been read so far.
#[derive(Debug, Default)]
pub(super) struct Overviews(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The version of the settings with which they were made.
    settings: Option<FileStamp>,
    changes: BTreeMap<ChangeId, Arc<Overview>>,
}

impl Overviews {
    /// These changes as they are now. One that cannot be read is left out, so that the others can
    /// still be shown.
    pub(super) fn of(
        &self,
        project: &Project,
        open: &[(ChangeId, Project)],
        running: &BTreeSet<ChangeId>,
        trees: &Arc<Trees>,
    ) -> Vec<Arc<Overview>> {
        let settings = project.dir().stamp(&layout::config()).ok().flatten();
        let extras =
            documents::load_config(project).map(|config| config.extras()).unwrap_or_default();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.settings != settings {
            known.changes.clear();
            known.settings = settings;
        }
        let before = &known.changes;
        let now: Vec<Arc<Overview>> = map_parallel(open, |(id, home)| {
            read(home, id, &extras, before.get(id), running.contains(id), trees)
        })
        .into_iter()
        .flatten()
        .collect();
        known.changes = now.iter().map(|it| (it.id().clone(), Arc::clone(it))).collect();
        now
    }
}

fn read(
    home: &Project,
    id: &ChangeId,
    extras: &Extras,
    before: Option<&Arc<Overview>>,
    is_running: bool,
    trees: &Arc<Trees>,
) -> Option<Arc<Overview>> {
    let change = home.change(id).ok()?;
    // Before the files are read: a write in between is noticed the next time.
    let mut seen = Seen::of(&change);
    let is_approved = |glance: &Glance| glance.summary.phase == Some(Phase::Complete);
    if let Some(known) = before {
        if is_approved(&known.glance) {
            seen.tree = Some(trees.version(home.root()));
        }
        let was_running = known.glance.running.is_some();
        if known.seen == seen && !is_running && !was_running {
            return Some(Arc::clone(known));
        }
    }
    let digest = |root: &std::path::Path| -> TreeDigest { trees.digest_later(root) };
    let glance = glance::of(home, &change, extras, &digest).ok()?;
    if is_approved(&glance) {
        seen.tree = Some(trees.version(home.root()));
    }
    let title = headline(&glance.summary.title);
    let title = if title.is_empty() { id.to_string() } else { title };
    let words = format!("{id} {}", glance.summary.title).to_lowercase();
    Some(Arc::new(Overview { seen, glance, title, words }))
}
