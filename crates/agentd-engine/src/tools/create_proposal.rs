//! `create_proposal`.

use agentd_core::agent::Role;
use agentd_core::document::proposal::{self, AffectedSpec, Impact, Proposal, Scope};
use agentd_core::document::rewrite;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::text::Line;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::Session;
use super::input::{self, List, LongText, Number, SENTENCE, ShortText, TEXT, TITLE};
use super::outcome::{ActionError, Written};
use super::schema::{
    ID, JsonObject, count, full_list, list, named, one_of, optional, part, required, text,
    with_change, written,
};
use super::tool::{Answer, Tool, Toolset};
use super::writing::{Gate, Open};

pub(super) const TOOL: Tool = Tool {
    name: "create_proposal",
    purpose: "Write proposal.md, the first document of a plan.",
    offered_to: &[Toolset::All, Toolset::Role(Role::Planner)],
    by_hand: false,
    read_only: false,
    input: schema,
    output: Some(written),
    run: |session, arguments| {
        Answer::written(session, &create_proposal(session, input::read(arguments)?)?)
    },
};

/// A proposal in its structured form.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateProposal {
    /// The change.
    pub change_id: ChangeId,
    /// What it is, in short.
    pub summary: LongText<SENTENCE>,
    /// Why it is wanted.
    pub why: LongText<TEXT>,
    /// What will change.
    pub what_changes: List<ShortText<SENTENCE>, 1, 100>,
    /// How far it reaches.
    pub impact: ImpactInput,
}

/// How far a change reaches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpactInput {
    /// patch, minor or major.
    pub scope: Scope,
    /// The specs it touches.
    pub affected_specs: List<AffectedSpecInput, 0, 50>,
    /// How many files will change, new ones included.
    #[serde(default)]
    pub affected_files: Option<Number<0, 100_000>>,
    /// How many of them are new.
    #[serde(default)]
    pub new_files: Option<Number<0, 100_000>>,
    /// Files and directories that will change.
    #[serde(default, deserialize_with = "input::or_default")]
    pub affected_code: List<ShortText<TITLE>, 0, 200>,
    /// What breaks, if anything.
    #[serde(default, deserialize_with = "input::optional_line")]
    pub breaking_changes: Option<ShortText<SENTENCE>>,
}

/// A spec that a change touches: its id, or an object with the order.
#[derive(Debug, Clone)]
pub struct AffectedSpecInput(AffectedSpec);

impl<'de> Deserialize<'de> for AffectedSpecInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Full {
            id: SpecId,
            #[serde(default, deserialize_with = "input::or_default")]
            depends: List<SpecId, 0, 50>,
        }
        let expecting = "the id of a spec, or an object {id, depends}";
        let full = input::text_or_object(deserializer, expecting, |text| {
            let id = SpecId::new(text).map_err(|error| error.to_string())?;
            Ok(Full { id, depends: List::default() })
        })?;
        Ok(Self(AffectedSpec { id: full.id, depends: full.depends.0 }))
    }
}

fn schema(change: Value) -> JsonObject {
    let id = json!({"type": "string", "pattern": ID});
    let name = json!({"type": "string"});
    let affected = json!({"anyOf": [id, part(vec![
        required("id", name.clone()),
        optional("depends", json!({"type": "array", "items": name})),
    ])]});
    let specs = "Specs to write; {id, depends} if one builds on others";
    let breaking = json!({"type": ["string", "null"], "description": "What breaks, or null"});
    let impact = part(vec![
        required("scope", one_of(&["patch", "minor", "major"])),
        required("affected_specs", list(specs, &affected)),
        optional("affected_files", count("Files that change", 0)),
        optional("new_files", count("New ones of these", 0)),
        optional("affected_code", list("Paths, e.g. src/auth/", &named())),
        optional("breaking_changes", breaking),
    ]);
    with_change(
        change,
        vec![
            required("summary", text("One sentence")),
            required("why", text("The problem; Markdown")),
            required("what_changes", full_list("One concrete change each", &named())),
            required("impact", impact),
        ],
    )
}

/// Writes `proposal.md`. What people wrote around agentd's sections stays, and
/// so do the reviews. It is the first document of a plan, and so begins a change
/// that the caller of the tools has named.
pub fn create_proposal(
    session: &Session<'_>,
    input: CreateProposal,
) -> Result<Written, ActionError> {
    let id = input.change_id.clone();
    let begins = session.names_change && session.project.change(&id).is_err();
    let mut open = if begins { session.open_or_begin(&id)? } else { session.open(&id)? };
    let written = write(session, &mut open, input);
    if begins && written.is_err() {
        // A refusal changes nothing: a change that was begun for it goes, being empty.
        let _ = session.project.dir().remove_empty_dir(&layout::change_dir(&id));
    }
    written
}

fn write(
    session: &Session<'_>,
    open: &mut Open<'_>,
    input: CreateProposal,
) -> Result<Written, ActionError> {
    let impact = input.impact;
    // Backticks would end the code span in which a path is shown.
    let code = |path: &ShortText<TITLE>| Line::new(&path.0.as_str().replace('`', ""));
    let affected_code: Vec<Line> =
        impact.affected_code.0.iter().map(code).filter(|line| !line.is_empty()).collect();
    let count = u32::try_from(affected_code.len()).unwrap_or(u32::MAX);
    let mut document = Proposal {
        id: Some(input.change_id),
        version: 1,
        created_at: Some(session.now),
        updated_at: Some(session.now),
        summary: input.summary.0,
        why: input.why.0,
        what_changes: input.what_changes.0.into_iter().map(|item| item.0).collect(),
        impact: Impact {
            scope: impact.scope,
            affected_files: impact.affected_files.map_or(count, |n| n.0),
            new_files: impact.new_files.map_or(0, |n| n.0),
            affected_code,
            breaking_changes: impact.breaking_changes.map(|line| line.0),
        },
        affected_specs: impact.affected_specs.0.into_iter().map(|spec| spec.0).collect(),
        ..Proposal::default()
    };
    let text = match open.text(&ChangeFile::Proposal)? {
        None => proposal::render(&document),
        Some(old) => {
            let earlier = proposal::parse(old).value;
            document.created_at = earlier.created_at.or(document.created_at);
            // Said again, the same thing changes nothing, so that a call may be repeated.
            let same = Proposal {
                version: earlier.version,
                updated_at: earlier.updated_at,
                ..document.clone()
            };
            if rewrite::proposal(old, &same) == old {
                return open.unchanged(&ChangeFile::Proposal, old);
            }
            document.version = earlier.version.saturating_add(1);
            rewrite::proposal(old, &document)
        }
    };
    open.put(&ChangeFile::Proposal, &text, Gate::Clean)
}
