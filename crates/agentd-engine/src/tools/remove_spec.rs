//! `remove_spec`.

use agentd_core::agent::Role;
use agentd_core::document::rewrite;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_core::rel_path::RelPath;
use serde::Deserialize;
use serde_json::Value;

use super::Session;
use super::input;
use super::outcome::{ActionError, Refusal};
use super::schema::{JsonObject, id, required, with_change};
use super::tool::{Answer, Tool, Toolset};
use super::writing::Gate;

pub(super) const TOOL: Tool = Tool {
    name: "remove_spec",
    purpose: "Drop a spec from the change.",
    offered_to: &[Toolset::All, Toolset::Role(Role::Planner)],
    by_hand: false,
    read_only: false,
    input: schema,
    output: None,
    run: |session, arguments| {
        let removed = remove_spec(session, &input::read(arguments)?)?;
        let mut words = format!("Removed {} at {}.", removed.path, session.now);
        for warning in &removed.warnings {
            words.push_str("\n- ");
            words.push_str(warning);
        }
        Ok(Answer { value: None, words, note: None })
    },
};

/// A spec that is no longer part of a change.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoveSpec {
    /// The change.
    pub change_id: ChangeId,
    /// The spec.
    pub spec_id: SpecId,
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Where the spec was, from the root of the project.
    pub path: RelPath,
    /// What does not fit to the rest of the plan now, in words.
    pub warnings: Vec<String>,
}

fn schema(change: Value) -> JsonObject {
    with_change(change, vec![required("spec_id", id())])
}

/// Drops a spec from the plan: from the list in proposal.md, and from the disk. The main spec of
/// that name stays as it is.
pub fn remove_spec(session: &Session<'_>, input: &RemoveSpec) -> Result<Removed, ActionError> {
    let mut open = session.open(&input.change_id)?;
    let spec = &input.spec_id;
    let file = ChangeFile::Spec(spec.clone());
    let before = open.findings();
    let text = open.text(&ChangeFile::Proposal)?.map(str::to_owned);
    let on_disk = open.change.has(&file)?;
    let is_listed = text.is_some() && open.documents.lists(spec);
    if !on_disk && !is_listed {
        let known: Vec<&str> = open.documents.specs.keys().map(SpecId::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Refusal::new(format!("The change has no spec `{spec}`."))
            .hint(format!("Its specs are: {known}. Specs in agentd/specs are not removed."))
            .into());
    }
    // The list comes first: if agentd is killed between the writes, a file is left that nobody
    // merges. The other way round the plan would wait for a spec that was dropped.
    if let Some(old) = text {
        let Some(new) = rewrite::without_spec(&old, spec, session.now) else {
            return Err(Refusal::new(format!(
                "proposal.md lists `{spec}` in a way that cannot be edited here."
            ))
            .hint("Take it out of proposal.md with edit_file or create_proposal, then call again.")
            .into());
        };
        if new != old {
            open.put(&ChangeFile::Proposal, &new, Gate::NoNew)?;
        }
    }
    for file in [&file, &ChangeFile::Base(spec.clone())] {
        if open.change.has(file)? {
            open.take_back(file)?;
        }
    }
    let warnings = open.warnings_without(&file, &before);
    Ok(Removed { path: file.path_in_project(open.id()), warnings })
}
