//! `list_directory`.

use agentd_core::ids::ChangeId;
use agentd_core::rel_path::RelPath;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Session;
use super::input::{self, Path};
use super::outcome::ActionError;
use super::schema::{JsonObject, names, required, text, with_change};
use super::tool::{Answer, Tool, Toolset};
use super::visible_path::{is_hidden, locate};
use crate::store::EntryKind;

/// How many names of a directory are shown.
const LIST_CAP: usize = 1000;

pub(super) const TOOL: Tool = Tool {
    name: "list_directory",
    purpose: "List a directory of the project.",
    offered_to: Toolset::EVERY,
    by_hand: false,
    read_only: true,
    input: schema,
    output: Some(output),
    run: |session, arguments| listed(&list_directory(session, &input::read(arguments)?)?),
};

/// A directory to list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListDirectory {
    /// The change.
    pub change_id: ChangeId,
    /// The directory, relative to the project or to the change.
    pub path: Path,
}

fn schema(change: Value) -> JsonObject {
    with_change(change, vec![required("path", text("As in read_file; . is the project"))])
}

/// The answer of `list_directory`.
fn output() -> JsonObject {
    names(&["path", "entries", "truncated"])
}

/// The names in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The directory, from the root of the project.
    pub path: RelPath,
    /// The names; those of directories end in `/`.
    pub entries: Vec<String>,
    /// Whether there are more names than were listed.
    pub truncated: bool,
}

/// The names in a directory.
pub fn list_directory(
    session: &Session<'_>,
    input: &ListDirectory,
) -> Result<Listing, ActionError> {
    let (dir, path) = locate(session, &input.change_id, &input.path.0)?;
    let mut entries = Vec::new();
    for entry in dir.list_dir(&path)? {
        let shown = match RelPath::new(&entry.name) {
            Ok(name) => !is_hidden(&path.join(&name)),
            // A name that no tool takes; git's and agentd's own are none of these.
            Err(_) => true,
        };
        if shown {
            let slash = if entry.kind == EntryKind::Dir { "/" } else { "" };
            entries.push(format!("{}{slash}", entry.name));
        }
    }
    let truncated = entries.len() > LIST_CAP;
    entries.truncate(LIST_CAP);
    Ok(Listing { path, entries, truncated })
}

fn listed(listing: &Listing) -> Result<Answer, ActionError> {
    let mut words = format!("{}:\n{}", listing.path, listing.entries.join("\n"));
    if listing.truncated {
        words.push_str("\n… and more");
    }
    Answer::both(listing, words)
}
