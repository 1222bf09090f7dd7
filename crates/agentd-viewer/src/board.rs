//! What the board shows, and a number that changes whenever the board does.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ArchiveName};
use agentd_engine::store::{Project, StoreError};

use super::summaries::ChangeOverview;
use super::{App, subject};

/// The board at one moment.
pub(super) struct Board {
    /// The open changes, in the order of their ids.
    pub(super) changes: Vec<Arc<ChangeOverview>>,
    /// Those on which a workflow is running.
    pub(super) running: BTreeSet<ChangeId>,
    pub(super) specs: Vec<SpecId>,
    pub(super) archived: Vec<ArchiveName>,
    /// A hash of all of that. It covers the files as they were before they were read, so that
    /// a write in between gives another hash the next time.
    pub(super) mark: u64,
}

impl Board {
    /// Checks everything; only files that changed since the last time are read.
    pub(super) fn load(app: &App) -> Result<Self, StoreError> {
        let project = &app.project;
        let mut hasher = DefaultHasher::new();
        app.conflicts.times().hash(&mut hasher);
        let open = project.open_everywhere()?;
        let changes = app.summaries.of(&open);
        for known in &changes {
            known.mark(&mut hasher);
        }
        let mut running = running(project);
        let elsewhere = open.iter().filter(|(_, home)| home.root() != project.root());
        running.extend(
            elsewhere
                .filter(|(id, home)| subject::running(home, id).is_some())
                .map(|(id, _)| id.clone()),
        );
        let (specs, archived) = (project.spec_ids()?.ids, project.archived()?.ids);
        for id in &running {
            id.as_str().hash(&mut hasher);
        }
        specs.len().hash(&mut hasher);
        for id in &specs {
            id.as_str().hash(&mut hasher);
        }
        for name in &archived {
            name.to_string().hash(&mut hasher);
        }
        Ok(Self { changes, running, specs, archived, mark: hasher.finish() })
    }
}

/// The changes on which a workflow is running: only those with a lock file are checked.
fn running(project: &Project) -> BTreeSet<ChangeId> {
    let entries = project.dir().list_dir(&layout::locks_dir()).unwrap_or_default();
    let ids =
        entries.iter().filter_map(|entry| ChangeId::new(entry.name.strip_suffix(".run")?).ok());
    ids.filter(|id| subject::running(project, id).is_some()).collect()
}
