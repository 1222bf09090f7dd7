//! What the built-in agent knows of the project: all of it read over MCP.

use std::collections::BTreeSet;

use agentd_core::check::{self, Extras, FileReport, MainSpecs};
use agentd_core::config::Config;
use agentd_core::document::spec;
use agentd_core::documents::{Documents, Source};
use agentd_core::ids::{RequirementId, SpecId};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::rel_path::RelPath;
use agentd_core::state::State;

use crate::error::AgentError;
use crate::session::Session;

/// The names in a directory that has specs.
#[derive(Default)]
struct SpecNames {
    ids: Vec<SpecId>,
    /// Files that are no specs.
    strays: Vec<String>,
}

impl Session<'_, '_> {
    /// Whether there is a directory of the change yet.
    pub(crate) fn has_begun(&mut self) -> Result<bool, AgentError> {
        Ok(self.list(&layout::change_dir(&self.change))?.is_some())
    }

    /// The documents of the change, and the names among its specs that are none. Nothing where
    /// the change has not begun.
    fn read_change(&mut self) -> Result<Option<(Documents, Vec<String>)>, AgentError> {
        let id = self.change.clone();
        let Some(names) = self.list(&layout::change_dir(&id))? else { return Ok(None) };
        let listed = self.spec_names(&names, &layout::change_specs_dir(&id))?;
        let mut files: Vec<ChangeFile> = listed.ids.into_iter().map(ChangeFile::Spec).collect();
        files.extend(Documents::FILES.into_iter().filter(|file| has(&names, file.path().as_str())));
        let mut texts = Vec::new();
        for file in files {
            let text = self.read(&file.path_in_project(&id))?;
            texts.push((file, text));
        }
        Ok(Some((Documents::read(id, texts), listed.strays)))
    }

    /// The documents of the change; all are missing where it has not begun.
    pub(crate) fn documents(&mut self) -> Result<Documents, AgentError> {
        let read = self.read_change()?.map(|(documents, _)| documents);
        Ok(read.unwrap_or_else(|| Documents::read(self.change.clone(), [])))
    }

    /// What `agentd validate` finds.
    pub(crate) fn findings(&mut self) -> Result<Vec<FileReport>, AgentError> {
        let Some((documents, strays)) = self.read_change()? else { return Ok(Vec::new()) };
        let mut main = MainSpecs::new();
        for id in documents.referred_specs() {
            if let Some(requirements) = self.main_spec(id)? {
                main.insert(id.clone(), requirements);
            }
        }
        let mut reports = documents.findings(&main, &self.extras()?);
        let dir = layout::change_specs_dir(&self.change);
        let stray = |name: &String| check::stray_spec(name, format!("{dir}/{name}"));
        reports.extend(strays.iter().map(stray));
        check::cap(&mut reports);
        Ok(reports)
    }

    /// What the project asks of a spec beyond the built-in rules.
    pub(crate) fn extras(&mut self) -> Result<Extras, AgentError> {
        let names = self.list(&layout::agentd_dir())?.unwrap_or_default();
        if !has(&names, "config.toml") {
            return Ok(Config::default().extras());
        }
        match self.read(&layout::config())? {
            Source::Text(text) => {
                Config::parse(&text).map(|config| config.extras()).map_err(|why| {
                    AgentError::other(format!("agentd/config.toml cannot be used: {why}"))
                })
            }
            Source::Missing => Ok(Config::default().extras()),
            Source::Unreadable(why) => Err(AgentError::other(why)),
        }
    }

    /// The main specs, with their highest requirement.
    pub(crate) fn main_specs(
        &mut self,
    ) -> Result<Vec<(SpecId, Option<RequirementId>)>, AgentError> {
        let names = self.list(&layout::agentd_dir())?.unwrap_or_default();
        let mut found = Vec::new();
        for id in self.spec_names(&names, &layout::main_specs_dir())?.ids {
            let last = self.main_spec(&id)?.and_then(|requirements| requirements.last().copied());
            found.push((id, last));
        }
        Ok(found)
    }

    /// The requirements of a main spec; none where it cannot be read.
    fn main_spec(&mut self, id: &SpecId) -> Result<Option<BTreeSet<RequirementId>>, AgentError> {
        let source = self.read(&layout::main_spec(id))?;
        Ok(source.text().map(|text| check::requirement_ids(&spec::parse(text).value)))
    }

    /// The specs in a directory, if it is among the names of the one above it.
    fn spec_names(&mut self, names: &[String], dir: &RelPath) -> Result<SpecNames, AgentError> {
        if !dir.file_name().is_some_and(|name| has(names, name)) {
            return Ok(SpecNames::default());
        }
        let Some(names) = self.list(dir)? else {
            return Err(AgentError::other(format!("{dir} cannot be read")));
        };
        let mut listed = SpecNames::default();
        for name in names.into_iter().filter(|name| !name.starts_with('.')) {
            match layout::spec_of_file_name(&name) {
                Some(id) => listed.ids.push(id),
                None => listed.strays.push(name.trim_end_matches('/').to_owned()),
            }
        }
        listed.ids.sort_unstable();
        Ok(listed)
    }
}

/// Whether a listing has a name, whatever kind of file it is.
fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|listed| listed.strip_suffix('/').unwrap_or(listed) == name)
}

/// What the person asked for: from the state, or else from the prompt.
pub(crate) fn description(documents: &Documents, prompt: &str) -> Result<String, AgentError> {
    let known = state(documents)?.and_then(|state| state.description.as_ref());
    Ok(match known.filter(|text| !text.is_empty()) {
        Some(text) => text.to_string(),
        None => prompt.split_once('\n').map_or("", |(_, rest)| rest).trim().to_owned(),
    })
}

/// The state; none where agentd has not written one.
pub(crate) fn state(documents: &Documents) -> Result<Option<&State>, AgentError> {
    match (documents.state.value(), documents.state.source()) {
        (Some(Ok(state)), _) => Ok(Some(state)),
        (Some(Err(error)), _) => {
            let change = &documents.id;
            let message = format!("the STATE.yaml of `{change}` cannot be used: {error}");
            Err(AgentError::other(message))
        }
        (None, Source::Unreadable(why)) => Err(AgentError::other(why.clone())),
        (None, _) => Ok(None),
    }
}
