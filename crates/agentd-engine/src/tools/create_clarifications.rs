//! `create_clarifications`.

use agentd_core::agent::Role;
use agentd_core::document::clarifications::{self, Answered, Clarifications, MAX_QUESTIONS};
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::span::Uncompared;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Session;
use super::input::{self, List, LongText, SENTENCE, ShortText, TITLE};
use super::outcome::{ActionError, Written};
use super::schema::{
    JsonObject, free_text, named, optional, part, required, text, with_change, written,
};
use super::tool::{Answer, Tool, Toolset};
use super::writing::Gate;
use crate::store::Change;

pub(super) const TOOL: Tool = Tool {
    name: "create_clarifications",
    purpose: "Write clarifications.md.",
    offered_to: &[Toolset::All, Toolset::Role(Role::Planner)],
    // A planner that agentd calls asks with `ask_user`, and does not write what a person has said.
    by_hand: true,
    read_only: false,
    input: schema,
    output: Some(written),
    run: |session, arguments| {
        Answer::written(session, &create_clarifications(session, input::read(arguments)?)?)
    },
};

/// Questions that were asked before planning, with their answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateClarifications {
    /// The change; it is begun if there is none of this id.
    pub change_id: ChangeId,
    /// The questions, in order.
    pub questions: List<QuestionInput, 1, MAX_QUESTIONS>,
}

/// A question with its answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionInput {
    /// What it is about, in a few words.
    pub topic: ShortText<TITLE>,
    /// The question.
    pub question: LongText<SENTENCE>,
    /// The answer.
    pub answer: LongText<SENTENCE>,
    /// Why this answer.
    #[serde(default, deserialize_with = "input::optional_text")]
    pub rationale: Option<LongText<SENTENCE>>,
}

fn schema(change: Value) -> JsonObject {
    let question = part(vec![
        required("topic", text("E.g. Auth Method")),
        required("question", named()),
        required("answer", text("The user's answer")),
        optional("rationale", free_text("Why this answer")),
    ]);
    let questions =
        json!({"type": "array", "items": question, "minItems": 1, "maxItems": MAX_QUESTIONS});
    with_change(change, vec![required("questions", questions)])
}

/// Writes `clarifications.md`, beginning the change if need be.
pub fn create_clarifications(
    session: &Session<'_>,
    input: CreateClarifications,
) -> Result<Written, ActionError> {
    create_clarifications_if(session, input, |_| Ok(()))
}

/// The same, unless `check` refuses it: it looks at the change under its lock.
pub(crate) fn create_clarifications_if(
    session: &Session<'_>,
    input: CreateClarifications,
    check: impl FnOnce(&Change) -> Result<(), ActionError>,
) -> Result<Written, ActionError> {
    let id = &input.change_id;
    let mut open = session.open_or_begin(id)?;
    check(&open.change)?;
    let answered = |question: QuestionInput| Answered {
        topic: question.topic.0,
        question: question.question.0,
        answer: question.answer.0,
        rationale: question.rationale.map(|text| text.0).unwrap_or_default(),
        place: Uncompared::default(),
    };
    let document = Clarifications {
        change: Some(id.clone()),
        date: Some(session.now),
        questions: input.questions.0.into_iter().map(answered).collect(),
    };
    open.text(&ChangeFile::Clarifications)?;
    let text = clarifications::render(&document);
    open.put(&ChangeFile::Clarifications, &text, Gate::Clean)
}
