//! The documents of open changes as resources, for interactive clients.

use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_engine::change::position::{self, Position};
use agentd_engine::store::{Change, Project, StoreError};
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

/// How the address of a resource starts; the rest is `<change>/<file>`.
const SCHEME: &str = "agentd://changes/";
/// Where the change stands, which is no file.
const STATUS: &str = "status.json";
/// The most changes whose documents are listed.
const MAX_CHANGES: usize = 100;

/// The documents that exist, of one change or of all.
pub(super) fn list(
    project: &Project,
    bound: Option<&ChangeId>,
) -> Result<Vec<Resource>, StoreError> {
    let open = match bound {
        Some(id) => vec![(id.clone(), project.clone())],
        None => project.open_everywhere()?,
    };
    let mut resources = Vec::new();
    for (id, home) in open.into_iter().take(MAX_CHANGES) {
        let Some(change) = home.change_if_open(&id)? else { continue };
        for file in documents(&change)? {
            if change.has(&file)? {
                let name = file.path();
                let resource = Resource::new(address(&id, &file), format!("{id}/{name}"))
                    .with_description(what(&file))
                    .with_mime_type(mime_type(&file));
                resources.push(resource);
            }
        }
    }
    Ok(resources)
}

fn documents(change: &Change) -> Result<Vec<ChangeFile>, StoreError> {
    let mut files = vec![
        ChangeFile::State,
        ChangeFile::Clarifications,
        ChangeFile::Proposal,
        ChangeFile::Tasks,
        ChangeFile::Challenge,
        ChangeFile::Review,
    ];
    files.splice(3..3, change.spec_ids()?.ids.into_iter().map(ChangeFile::Spec));
    Ok(files)
}

/// The forms of addresses.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |file: &str, what: &str, mime: &str| {
        ResourceTemplate::new(format!("{SCHEME}{{change_id}}/{file}"), file)
            .with_description(what)
            .with_mime_type(mime)
    };
    vec![
        template("proposal.md", what(&ChangeFile::Proposal), "text/markdown"),
        template("specs/{spec_id}.md", "What the change adds to a spec", "text/markdown"),
        template("tasks.md", what(&ChangeFile::Tasks), "text/markdown"),
        template("STATE.yaml", what(&ChangeFile::State), "application/yaml"),
        template(STATUS, "Where the change stands, and what comes next", "application/json"),
    ]
}

/// The text behind an address; none where there is no such document.
pub(super) fn read(
    project: &Project,
    bound: Option<&ChangeId>,
    uri: &str,
) -> Result<Option<ResourceContents>, StoreError> {
    if let Some(id) = status_of(uri) {
        return status(project, bound, &id, uri);
    }
    let Some((id, file)) = parse(uri) else { return Ok(None) };
    if bound.is_some_and(|bound| *bound != id) {
        return Ok(None);
    }
    let home = if bound.is_some() { project.clone() } else { project.home_of(&id) };
    let text = match home.change(&id) {
        Err(error) if error.is_not_found() => None,
        result => result?.read_if_exists(&file)?,
    };
    Ok(text.map(|text| ResourceContents::text(text, uri).with_mime_type(mime_type(&file))))
}

/// The change whose status an address means.
fn status_of(uri: &str) -> Option<ChangeId> {
    let (id, file) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    (file == STATUS).then(|| ChangeId::new(id).ok()).flatten()
}

/// Where a change stands, as `agentd status --json` says it (W6).
fn status(
    project: &Project,
    bound: Option<&ChangeId>,
    id: &ChangeId,
    uri: &str,
) -> Result<Option<ResourceContents>, StoreError> {
    if bound.is_some_and(|bound| bound != id) {
        return Ok(None);
    }
    let home = if bound.is_some() { project.clone() } else { project.home_of(id) };
    let Some(change) = home.change_if_open(id)? else { return Ok(None) };
    let snapshot = change.snapshot()?;
    let Ok(Position { course, stale, running, .. }) = position::of(&home, &snapshot) else {
        return Ok(None);
    };
    let text = json!({
        "change_id": id,
        "standing": course.standing,
        "why": course.why,
        "running": running,
        "stale": stale,
        "next": course.next,
    });
    let contents = ResourceContents::text(text.to_string(), uri);
    Ok(Some(contents.with_mime_type("application/json")))
}

fn address(id: &ChangeId, file: &ChangeFile) -> String {
    format!("{SCHEME}{id}/{}", file.path())
}

/// Only addresses that [`list`] or [`templates`] could have given are taken.
fn parse(uri: &str) -> Option<(ChangeId, ChangeFile)> {
    let (id, file) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let id = ChangeId::new(id).ok()?;
    let file = match file {
        "STATE.yaml" => ChangeFile::State,
        "clarifications.md" => ChangeFile::Clarifications,
        "proposal.md" => ChangeFile::Proposal,
        "tasks.md" => ChangeFile::Tasks,
        "CHALLENGE.md" => ChangeFile::Challenge,
        "REVIEW.md" => ChangeFile::Review,
        _ => {
            let spec = file.strip_prefix("specs/")?.strip_suffix(".md")?;
            ChangeFile::Spec(SpecId::new(spec).ok()?)
        }
    };
    Some((id, file))
}

fn what(file: &ChangeFile) -> &'static str {
    match file {
        ChangeFile::State => "Phase, sessions and cost of the change",
        ChangeFile::Clarifications => "Questions before planning, and their answers",
        ChangeFile::Proposal => "Why and what, with the reviews of the plan",
        ChangeFile::Tasks => "The work, in layers",
        ChangeFile::Challenge => "The latest review of the plan",
        ChangeFile::Review => "The latest review of the implementation",
        _ => "What the change adds to a spec or edits in it",
    }
}

fn mime_type(file: &ChangeFile) -> &'static str {
    if *file == ChangeFile::State { "application/yaml" } else { "text/markdown" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_documents_have_addresses() {
        for good in ["proposal.md", "specs/auth-flow.md", "STATE.yaml", "tasks.md"] {
            let uri = format!("agentd://changes/add-oauth/{good}");
            let (id, file) = parse(&uri).unwrap();
            assert_eq!(address(&id, &file), uri);
        }
        for bad in [
            "",
            "proposal.md",
            "file:///etc/passwd",
            "agentd://changes/../proposal.md",
            "agentd://changes/a/../b/proposal.md",
            "agentd://changes/a/specs/../STATE.yaml",
            "agentd://changes/a/GEMINI.md",
            "agentd://changes/a/runs/0001-x.jsonl",
            "agentd://changes/a/specs/%2e%2e.md",
        ] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }
}
