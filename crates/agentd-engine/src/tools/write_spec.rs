//! `write_spec`.

use agentd_core::agent::Role;
use agentd_core::document::spec;
use agentd_core::frontmatter;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_core::stamp::Stamp;
use serde::Deserialize;
use serde_json::Value;

use super::input::{self, LongText, MAX_DOCUMENT};
use super::outcome::{ActionError, Written};
use super::schema::{JsonObject, id, required, text, with_change, written};
use super::tool::{Answer, Tool, Toolset};
use super::{Session, spec_file};

pub(super) const TOOL: Tool = Tool {
    name: "write_spec",
    purpose: "Write specs/<spec_id>.md as Markdown.",
    offered_to: &[Toolset::All, Toolset::Role(Role::Planner)],
    by_hand: false,
    read_only: false,
    input: schema,
    output: Some(written),
    run: |session, arguments| {
        Answer::written(session, &write_spec(session, input::read(arguments)?)?)
    },
};

/// A spec as whole Markdown.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteSpec {
    /// The change.
    pub change_id: ChangeId,
    /// The spec.
    pub spec_id: SpecId,
    /// The Markdown, with or without frontmatter.
    pub content: LongText<MAX_DOCUMENT>,
}

fn schema(change: Value) -> JsonObject {
    let content = "## Overview, ## Requirements (### R1: title), ## Acceptance Criteria (### Scenario: \
                   name, - **WHEN** …, - **THEN** …); frontmatter removes: [R3], renames: {R2: title}";
    with_change(change, vec![required("spec_id", id()), required("content", text(content))])
}

/// Writes `specs/<spec>.md` as given; agentd fills the frontmatter.
pub fn write_spec(session: &Session<'_>, input: WriteSpec) -> Result<Written, ActionError> {
    let mut open = session.open(&input.change_id)?;
    let file = ChangeFile::Spec(input.spec_id.clone());
    let content = format!("{}\n", input.content.0);
    let spec_id = input.spec_id;
    let stamped = |version, created_at, updated_at| {
        with_frontmatter(&content, &spec_id, version, created_at, updated_at)
    };
    let text = match open.text(&file)? {
        None => stamped(1, session.now, session.now),
        Some(old) => {
            let earlier = spec::parse(old).value;
            let created_at = earlier.created_at.unwrap_or(session.now);
            let updated_at = earlier.updated_at.unwrap_or(session.now);
            if stamped(earlier.version, created_at, updated_at) == old {
                return open.unchanged(&file, old);
            }
            stamped(earlier.version.saturating_add(1), created_at, session.now)
        }
    };
    spec_file::put(&mut open, &spec_id, &file, &text)
}

/// The content with the frontmatter that every spec has.
fn with_frontmatter(
    content: &str,
    id: &SpecId,
    version: u32,
    created_at: Stamp,
    updated_at: Stamp,
) -> String {
    let parsed = spec::parse(content).value;
    let title = frontmatter::scalar(parsed.title.as_str());
    if !parsed.place.has_frontmatter.0 && !content.starts_with("---") {
        return format!(
            "---\nid: {id}\ntype: spec\ntitle: {title}\nversion: {version}\n\
             created_at: {created_at}\nupdated_at: {updated_at}\n---\n\n{content}",
            id = frontmatter::scalar(id.as_str()),
        );
    }
    let mut text = content.to_owned();
    let mut set = |key: &str, value: &str| {
        // A frontmatter that cannot be patched is found by the check that follows.
        if let Ok(patched) = frontmatter::set(&text, key, value) {
            text = patched;
        }
    };
    if parsed.id.is_none() {
        set("id", &frontmatter::scalar(id.as_str()));
    }
    set("type", "spec");
    if !parsed.title.is_empty() {
        set("title", &title);
    }
    set("version", &version.to_string());
    set("created_at", &created_at.to_string());
    set("updated_at", &updated_at.to_string());
    text
}
