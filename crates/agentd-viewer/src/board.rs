//! What the first page shows, and a number that changes whenever it does.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ArchiveName};
use agentd_engine::store::{LockName, LockState, Project, StoreError, lock_state};
use serde_json::{Value, json};

use super::App;
use super::overview::Overview;

/// All changes at one moment.
pub(super) struct Board {
    /// The open changes, in the order of their ids.
    pub(super) changes: Vec<Arc<Overview>>,
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
        app.fleet.mark(&mut hasher);
        let open = project.open_everywhere()?;
        let mut running = running(project);
        let elsewhere = open.iter().filter(|(_, home)| home.root() != project.root());
        running
            .extend(elsewhere.filter(|(id, home)| is_locked(home, id)).map(|(id, _)| id.clone()));
        for id in &running {
            id.as_str().hash(&mut hasher);
        }
        let changes = app.overviews.of(project, &open, &running, &app.trees);
        for known in &changes {
            known.mark(&mut hasher);
        }
        let (specs, archived) = (project.spec_ids()?.ids, project.archived()?.ids);
        for id in &specs {
            id.as_str().hash(&mut hasher);
        }
        for name in &archived {
            name.to_string().hash(&mut hasher);
        }
        Ok(Self { changes, specs, archived, mark: hasher.finish() })
    }

    /// What wants the attention of a person, for notices: what waits, what failed, what runs.
    pub(super) fn attention(&self) -> Value {
        let waiting: Vec<Value> = self
            .changes
            .iter()
            .filter(|known| known.needs_person())
            .map(|known| {
                let kind = if known.glance.failed.is_some() { "failed" } else { "waits" };
                json!({ "id": known.id(), "title": known.title, "kind": kind, "why": known.glance.why })
            })
            .collect();
        let running: Vec<&ChangeId> = self
            .changes
            .iter()
            .filter(|known| known.glance.running.is_some())
            .map(|known| known.id())
            .collect();
        json!({ "waiting": waiting, "running": running })
    }
}

/// The changes on which a workflow is running: only those with a lock file are checked.
fn running(project: &Project) -> BTreeSet<ChangeId> {
    let entries = project.dir().list_dir(&layout::locks_dir()).unwrap_or_default();
    let ids =
        entries.iter().filter_map(|entry| ChangeId::new(entry.name.strip_suffix(".run")?).ok());
    ids.filter(|id| is_locked(project, id)).collect()
}

fn is_locked(project: &Project, id: &ChangeId) -> bool {
    matches!(lock_state(project.dir(), &LockName::Run(id.clone())), Ok(LockState::Held(_)))
}
