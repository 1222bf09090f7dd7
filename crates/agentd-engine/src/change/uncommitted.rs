//! What is not committed in the checkout of a change, by whose it is: noted in the user's state
//! directory, where an agent cannot make its work look like the user's.

use std::collections::BTreeSet;

use agentd_core::ids::ChangeId;
use agentd_core::layout;
use serde::{Deserialize, Serialize};

use crate::store::{Bytes, Project, StoreError};

/// What is not committed in a checkout, by whose it is; paths from its top.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Uncommitted {
    /// What was there before the agent was called.
    pub(crate) users: BTreeSet<Bytes>,
    /// What was there when the call had ended, besides; none while an agent is at work.
    pub(crate) agents: Option<BTreeSet<Bytes>>,
}

impl Uncommitted {
    /// What was noted last.
    pub(crate) fn read(project: &Project, change: &ChangeId) -> Option<Self> {
        project.note(&layout::uncommitted_note(change))
    }

    /// Notes it.
    pub(crate) fn keep(&self, project: &Project, change: &ChangeId) -> Result<(), StoreError> {
        let text = serde_json::to_vec(self).unwrap_or_default();
        // Without a state directory, the next run takes what is left for the user's.
        if let Ok(state) = project.state_dir() {
            state.write_atomic(&layout::uncommitted_note(change), &text)?;
        }
        Ok(())
    }
}

/// Notes that everything that is not committed is the work of agents: it came with a snapshot.
pub(crate) fn note_as_agents(
    project: &Project,
    change: &ChangeId,
    files: BTreeSet<Bytes>,
) -> Result<(), StoreError> {
    Uncommitted { users: BTreeSet::new(), agents: Some(files) }.keep(project, change)
}
