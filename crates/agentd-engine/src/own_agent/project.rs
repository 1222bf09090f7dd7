//! What the built-in agent looks at: the change, its documents and the project's files.

use std::path::Path;

use agentd_core::check::{self, FileReport};
use agentd_core::config::Config;
use agentd_core::document::clarifications::{self, Answered};
use agentd_core::document::spec::Spec;
use agentd_core::documents::Documents;
use agentd_core::draft::Brief;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_core::state::State;

use super::{Call, OwnError};
use crate::agents::work_tree;
use crate::change::documents;
use crate::store::{Change, Project};

/// The change as it is on the disk.
pub(super) struct Looked {
    pub(super) project: Project,
    pub(super) config: Config,
    /// None where the change has not begun.
    pub(super) change: Option<Change>,
    pub(super) state: Option<State>,
    id: ChangeId,
}

impl Looked {
    pub(super) fn at(call: &Call, cwd: &Path) -> Result<Self, OwnError> {
        let project = crate::opening::open_within_call(
            call.project_start(cwd),
            crate::store::UserDirs::from_env(),
        )?;
        let config = documents::load_config(&project)?;
        let change = match project.change(&call.change) {
            Ok(change) => Some(change),
            Err(crate::store::StoreError::NoSuchChange { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let state = match &change {
            Some(change) => documents::load_state_if_begun(change)?,
            None => None,
        };
        Ok(Self { project, config, change, state, id: call.change.clone() })
    }

    /// What the person asked for: from the state, or else from the prompt.
    pub(super) fn description(&self, prompt: &str) -> String {
        let known = self.state.as_ref().and_then(|state| state.description.as_ref());
        match known.filter(|text| !text.is_empty()) {
            Some(text) => text.to_string(),
            None => prompt.split_once('\n').map_or("", |(_, rest)| rest).trim().to_owned(),
        }
    }

    /// What was asked, and answered.
    pub(super) fn answers(&self) -> Result<Vec<Answered>, OwnError> {
        let Some(change) = &self.change else { return Ok(Vec::new()) };
        let text = change.read_if_exists(&ChangeFile::Clarifications)?.unwrap_or_default();
        Ok(clarifications::parse(&text).value.questions)
    }

    pub(super) fn brief(&self, prompt: &str, work_tree: &Path) -> Result<Brief, OwnError> {
        let mut main_specs = Vec::new();
        for id in self.project.spec_ids()?.ids {
            let spec = documents::load_main_spec(&self.project, &id);
            let last = check::requirement_ids(spec.value()).last().copied();
            main_specs.push((id, last));
        }
        Ok(Brief {
            change: self.id.clone(),
            description: self.description(prompt),
            answers: self.answers()?,
            survey: work_tree::survey(work_tree),
            main_specs,
            extras: self.config.extras(),
        })
    }

    pub(super) fn documents(&self) -> Result<Option<Documents>, OwnError> {
        let snapshot = self.change.as_ref().map(Change::snapshot).transpose()?;
        Ok(snapshot.map(|snapshot| snapshot.documents))
    }

    /// The specs of the change that can be read.
    pub(super) fn specs(&self) -> Result<Vec<(SpecId, Spec)>, OwnError> {
        let Some(documents) = self.documents()? else { return Ok(Vec::new()) };
        let specs = documents.readable_specs();
        Ok(specs.map(|(id, spec)| (id.clone(), spec.clone())).collect())
    }

    /// What `agentd validate` finds.
    pub(super) fn findings(&self) -> Result<Vec<FileReport>, OwnError> {
        let Some(change) = &self.change else { return Ok(Vec::new()) };
        Ok(change.snapshot()?.findings(&self.project, &self.config.extras()))
    }
}
