use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::ids::SpecId;
use agentd_core::layout::{self, ChangeFile};
use agentd_core::text::printable;
use agentd_engine::documents;
use agentd_engine::store::{Change, Project, StoreError};
use serde_json::json;

use super::Context;
use crate::error::CommandError;

/// Show a document of a change, or a main spec.
///
/// Without a document the proposal is shown. A name that is no open change but
/// a main spec shows that spec.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd show add-oauth\n  agentd show add-oauth tasks\n  agentd show add-oauth auth-flow      its spec of that name\n  agentd show auth-flow                the main spec"
)]
pub(crate) struct Args {
    /// The change, or a main spec; may be left out where exactly one change is open.
    id: Option<String>,

    /// proposal, tasks, clarifications, challenge, review, state, or a spec of the change.
    document: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let (path, text) = find(context, &project, args)?;
    if context.ui.json {
        context.ui.print_json(&json!({ "version": 1, "file": path, "text": text }))?;
    } else {
        let mut out = context.ui.out();
        write!(out, "{}", printable(&text))?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn find(
    context: &Context,
    project: &Project,
    args: &Args,
) -> Result<(String, String), CommandError> {
    let change = match context.change(project, args.id.as_deref()) {
        Ok(change) => change,
        Err(error) => return main_spec(project, args).unwrap_or(Err(error)),
    };
    let wanted = args.document.as_deref().unwrap_or("proposal");
    let file = match wanted.trim_end_matches(".md") {
        "proposal" => ChangeFile::Proposal,
        "tasks" => ChangeFile::Tasks,
        "clarifications" => ChangeFile::Clarifications,
        "challenge" | "CHALLENGE" => ChangeFile::Challenge,
        "review" | "REVIEW" => ChangeFile::Review,
        "state" | "STATE.yaml" => ChangeFile::State,
        spec => ChangeFile::Spec(spec_of(&change, spec.trim_start_matches("specs/"))?),
    };
    let path = file.path_in_project(change.id());
    match change.read(&file) {
        Ok(text) => Ok((path.as_str().to_owned(), text)),
        Err(error) if error.is_not_found() => Err(missing(&change, wanted)?),
        Err(error) => Err(error.into()),
    }
}

fn spec_of(change: &Change, name: &str) -> Result<SpecId, CommandError> {
    SpecId::new(name).or_else(|_| Err(missing(change, name)?))
}

/// There is no such document; these are there.
fn missing(change: &Change, wanted: &str) -> Result<CommandError, StoreError> {
    let mut there = Vec::new();
    let named = [
        ("proposal", ChangeFile::Proposal),
        ("tasks", ChangeFile::Tasks),
        ("clarifications", ChangeFile::Clarifications),
        ("challenge", ChangeFile::Challenge),
        ("review", ChangeFile::Review),
        ("state", ChangeFile::State),
    ];
    for (name, file) in named {
        if change.has(&file)? {
            there.push(name.to_owned());
        }
    }
    there.extend(change.spec_ids()?.ids.iter().map(ToString::to_string));
    let message = format!("`{}` has no document `{wanted}`", change.id());
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    Ok(CommandError::new("no_such_document", message).hint(format!("there: {there}")))
}

fn main_spec(project: &Project, args: &Args) -> Option<Result<(String, String), CommandError>> {
    let id = SpecId::new(args.id.as_deref()?).ok()?;
    let text = documents::load_main_spec(project, &id).text()?.to_owned();
    Some(Ok((layout::main_spec(&id).as_str().to_owned(), text)))
}
