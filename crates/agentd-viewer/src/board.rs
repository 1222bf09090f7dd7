//! What the board shows, and a number by which a look at it is told from the next.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ArchiveName};
use agentd_engine::store::{Project, StoreError};

use super::summaries::Known;
use super::{App, subject};

/// The board at one moment.
pub(super) struct Board {
    /// The open changes, in the order of their ids.
    pub(super) changes: Vec<Arc<Known>>,
    /// Those on which a workflow runs.
    pub(super) running: BTreeSet<ChangeId>,
    pub(super) specs: Vec<SpecId>,
    pub(super) archived: Vec<ArchiveName>,
    /// Another one where any of that is another. Of files it takes what was seen before they
    /// were read, so that what is written meanwhile makes another one the next time.
    pub(super) mark: u64,
}

impl Board {
    /// Looks at everything; only what has changed since the last look is read.
    pub(super) fn look(app: &App) -> Result<Self, StoreError> {
        let project = &app.project;
        let mut hasher = DefaultHasher::new();
        app.conflicts.times().hash(&mut hasher);
        let changes = app.summaries.of(project, &project.change_ids()?.ids);
        for known in &changes {
            known.mark(&mut hasher);
        }
        let running = running(project);
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

/// The changes on which a workflow runs now: only those with a lock file are looked at.
fn running(project: &Project) -> BTreeSet<ChangeId> {
    let entries = project.dir().list_dir(&layout::locks_dir()).unwrap_or_default();
    let ids =
        entries.iter().filter_map(|entry| ChangeId::new(entry.name.strip_suffix(".run")?).ok());
    ids.filter(|id| subject::running(project, id).is_some()).collect()
}
