//! `propose_questions`.

use agentd_core::document::clarifications::MAX_QUESTIONS;
use agentd_core::document::questions::{
    self, MAX_OPTIONS, MIN_OPTIONS, MIN_QUESTIONS, Question, Questions, Suggestion,
};
use agentd_core::ids::ChangeId;
use agentd_core::layout;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Session;
use super::input::{self, List, LongText, SENTENCE, ShortText, TITLE};
use super::outcome::{self, ActionError, Refusal, Written};
use super::schema::{JsonObject, optional, part, required, text, with_change, written};
use super::tool::{Answer, Tool, Toolset};

pub(super) const TOOL: Tool = Tool {
    name: "propose_questions",
    purpose: "Propose all questions for the user at once. They are asked after you have ended.",
    offered_to: &[Toolset::Clarify],
    by_hand: false,
    read_only: false,
    input: schema,
    output: Some(written),
    run: |session, arguments| {
        Answer::written(session, &propose_questions(session, input::read(arguments)?)?)
    },
};

/// Questions for the person who wants the change.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposeQuestions {
    /// The change.
    pub change_id: ChangeId,
    /// The questions, the most important first.
    pub questions: List<QuestionProposal, MIN_QUESTIONS, MAX_QUESTIONS>,
}

/// A question with suggested answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionProposal {
    /// What it is about, in a word or two.
    pub header: ShortText<TITLE>,
    /// The question.
    pub question: LongText<SENTENCE>,
    /// Suggested answers, the recommended one first.
    pub options: List<OptionInput, MIN_OPTIONS, MAX_OPTIONS>,
    /// Whether several may be picked.
    #[serde(default, deserialize_with = "input::or_default")]
    pub multi_select: bool,
}

/// A suggested answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionInput {
    /// The answer, in a few words.
    pub label: ShortText<TITLE>,
    /// What it means.
    pub description: LongText<SENTENCE>,
}

fn schema(change: Value) -> JsonObject {
    let option = part(vec![
        required("label", text("The answer, in one to five words")),
        required("description", text("What it means, and what it costs")),
    ]);
    let options = json!({
        "type": "array", "description": "Answers that differ; the recommended one first",
        "items": option, "minItems": MIN_OPTIONS, "maxItems": MAX_OPTIONS,
    });
    let question = part(vec![
        required("header", text("What it is about, in one to three words, e.g. Auth method")),
        required("question", text("One question, ending in a question mark")),
        required("options", options),
        optional(
            "multi_select",
            json!({"type": "boolean", "description": "Whether several options may be picked"}),
        ),
    ]);
    let questions = json!({
        "type": "array", "description": "The most important first; headers differ",
        "items": question, "minItems": MIN_QUESTIONS, "maxItems": MAX_QUESTIONS,
    });
    with_change(change, vec![required("questions", questions)])
}

/// Keeps questions until a person answers them; those from before are replaced.
pub fn propose_questions(
    session: &Session<'_>,
    input: ProposeQuestions,
) -> Result<Written, ActionError> {
    let id = input.change_id;
    // Asked before the lock, so that a wrong id leaves no lock file behind.
    session.project.change(&id)?;
    let suggestion = |option: OptionInput| Suggestion {
        label: option.label.0,
        description: option.description.0,
    };
    let question = |question: QuestionProposal| Question {
        header: question.header.0,
        question: question.question.0,
        options: question.options.0.into_iter().map(suggestion).collect(),
        multi_select: question.multi_select,
    };
    let asked: Vec<Question> = input.questions.0.into_iter().map(question).collect();
    questions::check(&asked).map_err(|error| {
        Refusal::new(format!("These questions cannot be asked: {error}."))
            .hint("Nothing was kept. Correct that and call the tool again.")
    })?;
    let questions = Questions { change_id: id.clone(), proposed_at: session.now, questions: asked };
    let text = questions::render(&questions);
    let path = layout::questions(&id);
    // No link is followed here: nothing but agentd has business in this directory.
    let dir = session.project.dir().without_symlinks();
    let _lock = session.project.write_lock_or(&id, &session.holder, session.on_wait)?;
    dir.write_atomic(&path, text.as_bytes())?;
    if dir.read_to_string(&path)? != text {
        let message = format!("{path} was written, but something else is on disk now");
        return Err(ActionError::Internal(message));
    }
    let sha256 = outcome::sha256(text.as_bytes());
    Ok(Written { path, sha256, warnings: Vec::new(), iteration: None })
}
