//! `create_spec` and `write_spec`.

use agentd_core::document::rewrite;
use agentd_core::document::spec::{self, Keyword, Priority, Requirement, Scenario, Spec, Step};
use agentd_core::documents::Source;
use agentd_core::frontmatter;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_core::span::Aside;
use agentd_core::stamp::Stamp;
use agentd_core::text::{Line, Prose};
use serde::Deserialize;

use super::Session;
use super::input::{self, List, Long, MAX_DOCUMENT, SENTENCE, Short, TEXT, TITLE};
use super::outcome::{ActionError, Refusal, Written};
use super::writing::{Gate, Open};
use crate::change::documents;

/// A spec in its structured form.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateSpec {
    /// The change.
    pub change_id: ChangeId,
    /// The spec.
    pub spec_id: SpecId,
    /// Its title.
    pub title: Short<TITLE>,
    /// What it is about.
    pub overview: Long<TEXT>,
    /// What must hold.
    pub requirements: List<RequirementInput, 0, 200>,
    /// How it is seen to hold.
    pub scenarios: List<ScenarioInput, 0, 400>,
    /// A Mermaid diagram, with or without its fence.
    #[serde(default, deserialize_with = "input::optional_text")]
    pub flow_diagram: Option<Long<TEXT>>,
}

/// One requirement.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequirementInput {
    /// `R1`, `R2`, …
    pub id: input::Requirement,
    /// Its title.
    pub title: Short<TITLE>,
    /// What must hold.
    pub description: Long<TEXT>,
    /// How important it is; medium where nothing is said.
    #[serde(default, deserialize_with = "input::or_default")]
    pub priority: Priority,
}

/// One scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioInput {
    /// Its name.
    pub name: Short<TITLE>,
    /// What holds before.
    #[serde(default, deserialize_with = "input::optional_line")]
    pub given: Option<Short<SENTENCE>>,
    /// What happens.
    pub when: Short<SENTENCE>,
    /// What is seen then.
    pub then: Short<SENTENCE>,
}

/// A spec as whole Markdown.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteSpec {
    /// The change.
    pub change_id: ChangeId,
    /// The spec.
    pub spec_id: SpecId,
    /// The Markdown, with or without frontmatter.
    pub content: Long<MAX_DOCUMENT>,
}

/// Writes `specs/<spec>.md` from its parts. What people wrote around agentd's
/// sections stays.
pub fn create_spec(session: &Session<'_>, input: CreateSpec) -> Result<Written, ActionError> {
    let mut open = session.open(&input.change_id)?;
    let file = ChangeFile::Spec(input.spec_id.clone());
    let flow = input.flow_diagram.map(|text| fenced(&text.0)).transpose()?.unwrap_or_default();
    let spec_id = input.spec_id.clone();
    let mut document = Spec {
        id: Some(input.spec_id),
        title: input.title.0,
        version: 1,
        created_at: Some(session.now),
        updated_at: Some(session.now),
        overview: input.overview.0,
        requirements: input.requirements.0.into_iter().map(requirement).collect(),
        scenarios: input.scenarios.0.into_iter().map(scenario).collect(),
        flow,
        ..Spec::default()
    };
    let text = match open.text(&file)? {
        None => spec::render(&document),
        Some(old) => {
            let earlier = spec::parse(old).value;
            document.created_at = earlier.created_at.or(document.created_at);
            // These come from people or from write_spec.
            document.removes = earlier.removes;
            document.renames = earlier.renames;
            document.interfaces = earlier.interfaces;
            document.data_model = earlier.data_model;
            let (version, updated_at) = (earlier.version, earlier.updated_at);
            let same = Spec { version, updated_at, ..document.clone() };
            if rewrite::spec(old, &same) == old {
                return open.unchanged(&file, old);
            }
            document.version = version.saturating_add(1);
            rewrite::spec(old, &document)
        }
    };
    put(&mut open, &spec_id, &file, &text)
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
    put(&mut open, &spec_id, &file, &text)
}

/// Writes the spec, and keeps the main spec as it is now for the later merge.
fn put(
    open: &mut Open<'_>,
    id: &SpecId,
    file: &ChangeFile,
    text: &str,
) -> Result<Written, ActionError> {
    let warnings = open.approve(file, text, Gate::Clean)?;
    let base = ChangeFile::Base(id.clone());
    let kept = open.change.has(&base)?;
    let main = documents::load_main_spec(open.project, id);
    // Before the spec: whoever is killed between the two writes
    // the spec again, but nobody would miss the base of one that is there.
    match main.source() {
        _ if kept => {}
        Source::Text(main) => open.put_unchecked(&base, main)?,
        // So that a spec which others add meanwhile is not taken for one that was edited.
        Source::Missing => open.put_unchecked(&base, "")?,
        Source::Unreadable(_) => {}
    }
    let written = open.write(file, text, warnings);
    if written.is_err() && !kept && open.change.has(&base)? {
        // The disk refused it, such as a link in its place.
        open.take_back(&base)?;
    }
    written
}

fn requirement(input: RequirementInput) -> Requirement {
    Requirement {
        id: input.id.0,
        title: input.title.0,
        priority: input.priority,
        text: input.description.0,
        scenarios: Vec::new(),
        place: Aside::default(),
        section: Aside::default(),
    }
}

fn scenario(input: ScenarioInput) -> Scenario {
    let given = input.given.map(|text| (Keyword::Given, text.0));
    let steps =
        given.into_iter().chain([(Keyword::When, input.when.0), (Keyword::Then, input.then.0)]);
    let steps = steps.map(|(keyword, text)| Step::new(keyword, without_keyword(keyword, &text)));
    Scenario {
        name: input.name.0,
        steps: steps.collect(),
        place: Aside::default(),
        section: Aside::default(),
    }
}

/// Models like to say the keyword again: `when: "WHEN the user …"`.
fn without_keyword(keyword: Keyword, text: &Line) -> &str {
    let text = text.as_str();
    let rest = text.strip_prefix(keyword.label()).and_then(|rest| rest.strip_prefix([' ', ':']));
    rest.filter(|rest| !rest.trim().is_empty()).unwrap_or(text)
}

/// A diagram in one Mermaid fence, whether it came with a fence or without.
fn fenced(diagram: &Prose) -> Result<Prose, ActionError> {
    let text = diagram.as_str().trim();
    let bare = match text.strip_prefix("```") {
        Some(rest) => {
            let (_, body) = rest.split_once('\n').unwrap_or((rest, ""));
            body.trim_end().strip_suffix("```").unwrap_or(body)
        }
        None => text,
    };
    let is_fence = |line: &str| line.trim_start().starts_with("```");
    if bare.trim().is_empty() || bare.lines().any(is_fence) {
        return Err(Refusal::new("`flow_diagram` is not one Mermaid diagram.")
            .hint("Send the text of a single diagram, as in `sequenceDiagram\\n  A->>B: hello`.")
            .into());
    }
    Ok(Prose::new(&format!("```mermaid\n{}\n```", bare.trim_end().trim_start_matches('\n'))))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagram_is_fenced_once() {
        let bare = fenced(&Prose::new("flowchart LR\n  A --> B")).unwrap();
        assert_eq!(bare.as_str(), "```mermaid\nflowchart LR\n  A --> B\n```");
        for same in
            ["```mermaid\nflowchart LR\n  A --> B\n```", "```\nflowchart LR\n  A --> B\n```"]
        {
            assert_eq!(fenced(&Prose::new(same)).unwrap(), bare);
        }
        assert!(fenced(&Prose::new("```mermaid\na\n```\nb\n```\nc\n```")).is_err());
        assert!(fenced(&Prose::new("```mermaid\n```")).is_err());
    }
}
