//! The main specs of a project at a glance.

use agentd_core::ids::SpecId;
use agentd_core::stamp::Stamp;
use agentd_core::text::Line;
use serde::Serialize;

use crate::change::documents::load_main_spec;
use crate::store::{Project, StoreError, map_parallel};

/// A main spec at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpecSummary {
    /// Which one.
    pub spec_id: SpecId,
    /// What it is about.
    pub title: Line,
    /// How many requirements it has.
    pub requirements: usize,
    /// How many scenarios it has.
    pub scenarios: usize,
    /// When a change was last merged into it.
    pub updated_at: Option<Stamp>,
}

/// All main specs, in the order of their IDs. One that cannot be read has nothing in it.
pub fn summaries(project: &Project) -> Result<Vec<SpecSummary>, StoreError> {
    let ids = project.spec_ids()?.ids;
    Ok(map_parallel(&ids, |id| {
        let document = load_main_spec(project, id);
        let spec = document.value();
        let below = spec.requirements.iter().map(|requirement| requirement.scenarios.len());
        SpecSummary {
            spec_id: id.clone(),
            title: spec.title.clone(),
            requirements: spec.requirements.len(),
            scenarios: spec.scenarios.len() + below.sum::<usize>(),
            updated_at: spec.updated_at,
        }
    }))
}
