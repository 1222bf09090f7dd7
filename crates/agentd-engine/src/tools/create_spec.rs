//! `create_spec`.

use agentd_core::agent::Role;
use agentd_core::document::rewrite;
use agentd_core::document::spec::{self, Keyword, Priority, Requirement, Scenario, Spec, Step};
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_core::span::Uncompared;
use agentd_core::text::{Line, Prose};
use serde::Deserialize;
use serde_json::Value;

use super::input::{self, List, LongText, SENTENCE, ShortText, TEXT, TITLE};
use super::outcome::{ActionError, Refusal, Written};
use super::schema::{
    ID, JsonObject, REQUIREMENT, free_text, list, matching, named, one_of, optional, part,
    required, text, with_change, written,
};
use super::tool::{Answer, Tool, Toolset};
use super::{Session, spec_file};

pub(super) const TOOL: Tool = Tool {
    name: "create_spec",
    purpose: "Write specs/<spec_id>.md, for each affected spec in order.",
    offered_to: &[Toolset::All, Toolset::Role(Role::Planner)],
    by_hand: false,
    read_only: false,
    input: schema,
    output: Some(written),
    run: |session, arguments| {
        Answer::written(session, &create_spec(session, input::read(arguments)?)?)
    },
};

/// A spec in its structured form.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateSpec {
    /// The change.
    pub change_id: ChangeId,
    /// The spec.
    pub spec_id: SpecId,
    /// Its title.
    pub title: ShortText<TITLE>,
    /// What it is about.
    pub overview: LongText<TEXT>,
    /// What must hold.
    pub requirements: List<RequirementInput, 0, 200>,
    /// How it is seen to hold.
    pub scenarios: List<ScenarioInput, 0, 400>,
    /// A Mermaid diagram, with or without its fence.
    #[serde(default, deserialize_with = "input::optional_text")]
    pub flow_diagram: Option<LongText<TEXT>>,
}

/// One requirement.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequirementInput {
    /// `R1`, `R2`, …
    pub id: input::Requirement,
    /// Its title.
    pub title: ShortText<TITLE>,
    /// What must hold.
    pub description: LongText<TEXT>,
    /// How important it is; medium where nothing is said.
    #[serde(default, deserialize_with = "input::or_default")]
    pub priority: Priority,
}

/// One scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioInput {
    /// Its name.
    pub name: ShortText<TITLE>,
    /// What holds before.
    #[serde(default, deserialize_with = "input::optional_line")]
    pub given: Option<ShortText<SENTENCE>>,
    /// What happens.
    pub when: ShortText<SENTENCE>,
    /// What is seen then.
    pub then: ShortText<SENTENCE>,
}

fn schema(change: Value) -> JsonObject {
    let requirement = part(vec![
        required("id", matching(REQUIREMENT, "R1, R2, …; that of the main spec to edit it")),
        required("title", named()),
        required("description", text("What MUST hold, measurably")),
        optional("priority", one_of(&["high", "medium", "low"])),
    ]);
    let scenario = part(vec![
        required("name", text("Unique")),
        optional("given", free_text("State before")),
        required("when", text("What happens")),
        required("then", text("What is observed")),
    ]);
    with_change(
        change,
        vec![
            required("spec_id", matching(ID, "One of affected_specs")),
            required("title", named()),
            required("overview", text("Markdown")),
            required("requirements", list("Added or edited", &requirement)),
            required("scenarios", list("Failures too", &scenario)),
            optional("flow_diagram", free_text("Mermaid")),
        ],
    )
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
    spec_file::put(&mut open, &spec_id, &file, &text)
}

fn requirement(input: RequirementInput) -> Requirement {
    Requirement {
        id: input.id.0,
        title: input.title.0,
        priority: input.priority,
        text: input.description.0,
        scenarios: Vec::new(),
        place: Uncompared::default(),
        section: Uncompared::default(),
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
        place: Uncompared::default(),
        section: Uncompared::default(),
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
