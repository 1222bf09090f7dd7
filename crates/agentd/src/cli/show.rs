use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::error_kind::Kind;
use agentd_core::ids::SpecId;
use agentd_core::layout::{self, ChangeFile};
use agentd_core::nearest::nearest;
use agentd_core::rel_path::RelPath;
use agentd_core::text::printable;
use agentd_engine::change::documents;
use agentd_engine::store::{Change, Project, StoreError};
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{Output, Screen};

/// Show a document of a change, or a main spec.
///
/// Without a document the proposal is shown. A single name that is no open
/// change may be a main spec, or a document of the only open change.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd show add-oauth\n  agentd show add-oauth tasks\n  agentd show add-oauth auth-flow      its spec of that name\n  agentd show auth-flow                the main spec\n  agentd show tasks                    of the only open change"
)]
pub(crate) struct Args {
    /// The change, or a main spec; may be left out where exactly one change is open.
    id: Option<String>,

    /// proposal, tasks, clarifications, challenge, review, state, or a spec of the change.
    document: Option<String>,
}

/// A document, as it is on disk.
#[derive(Debug, Serialize)]
pub(super) struct ShownDocument {
    /// Its path in the project.
    file: RelPath,
    text: String,
}

impl Output for ShownDocument {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        write!(screen, "{}", printable(&self.text))
    }

    #[cfg(test)]
    fn sample() -> Self {
        let file = RelPath::new("agentd/changes/add-oauth/tasks.md").unwrap();
        Self { file, text: "# Tasks\n".to_owned() }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    context.ui.print(&find(context, &project, args)?)?;
    Ok(ExitCode::SUCCESS)
}

fn find(context: &Context, project: &Project, args: &Args) -> Result<ShownDocument, CommandError> {
    let change = match context.change(project, args.id.as_deref()) {
        Ok(change) => change,
        Err(error) => {
            let (Some(name), None) = (&args.id, &args.document) else { return Err(error) };
            if let Some(found) = main_spec(project, name) {
                return Ok(found);
            }
            return match context.change(project, None) {
                Ok(only) if is_document(&only, name)? => document(&only, name),
                _ => Err(error),
            };
        }
    };
    document(&change, args.document.as_deref().unwrap_or("proposal"))
}

/// The documents that are not specs, by the names that people give them.
const NAMED: [(&str, ChangeFile); 6] = [
    ("proposal", ChangeFile::Proposal),
    ("tasks", ChangeFile::Tasks),
    ("clarifications", ChangeFile::Clarifications),
    ("challenge", ChangeFile::Challenge),
    ("review", ChangeFile::Review),
    ("state", ChangeFile::State),
];

/// The file that a name means: `tasks`, `tasks.md`, `auth-flow`, `specs/auth-flow.md`.
fn file(name: &str) -> Option<ChangeFile> {
    let bare = name.trim_end_matches(".md").trim_end_matches(".yaml");
    let named = NAMED.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(bare));
    let spec = || SpecId::new(bare.trim_start_matches("specs/")).ok().map(ChangeFile::Spec);
    named.map(|(_, file)| file).or_else(spec)
}

fn is_document(change: &Change, name: &str) -> Result<bool, StoreError> {
    match file(name) {
        Some(spec @ ChangeFile::Spec(_)) => change.has(&spec),
        named => Ok(named.is_some()),
    }
}

fn document(change: &Change, name: &str) -> Result<ShownDocument, CommandError> {
    let Some(file) = file(name) else { return Err(missing(change, name)?) };
    match change.read(&file) {
        Ok(text) => Ok(ShownDocument { file: file.path_in_project(change.id()), text }),
        Err(error) if error.is_not_found() => Err(missing(change, name)?),
        Err(error) => Err(error.into()),
    }
}

/// There is no such document; these are there.
fn missing(change: &Change, wanted: &str) -> Result<CommandError, StoreError> {
    let mut there = Vec::new();
    for (name, file) in NAMED {
        if change.has(&file)? {
            there.push(name.to_owned());
        }
    }
    there.extend(change.spec_ids()?.ids.iter().map(ToString::to_string));
    let message = format!("`{}` has no document `{wanted}`", change.id());
    let error = CommandError::new(Kind::NoSuchDocument, message);
    Ok(match nearest(wanted, there.iter().map(String::as_str)) {
        _ if there.is_empty() => error.hint("it has no documents yet"),
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("it has: {}", there.join(", "))),
    })
}

fn main_spec(project: &Project, name: &str) -> Option<ShownDocument> {
    let id = SpecId::new(name).ok()?;
    let text = documents::load_main_spec(project, &id).text()?.to_owned();
    Some(ShownDocument { file: layout::main_spec(&id), text })
}
