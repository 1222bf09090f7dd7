//! `ask_user`: a question that waits until a person has answered it (G6).

use agentd_core::agent::Role;
use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::state::{ASKING, Asked, KeptQuestion, MAX_ASKED, MAX_CHOICES};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Session;
use super::input::{self, List, LongText, SENTENCE, ShortText, TITLE};
use super::outcome::{ActionError, Refusal};
use super::schema::{JsonObject, named, optional, required, with_change};
use super::tool::{Answer, Tool, Toolset};
use crate::agents::asked;
use crate::change::documents;

pub(super) const TOOL: Tool = Tool {
    name: "ask_user",
    purpose: "Ask the user what only they can decide, if you cannot go on without it. Then end your turn; you are called again with the answer.",
    offered_to: &[Toolset::Step(Role::Planner), Toolset::Step(Role::Implementer)],
    by_hand: false,
    read_only: false,
    input: schema,
    output: None,
    run: |session, arguments| {
        ask_user(session, input::read(arguments)?)?;
        let words = "The question is kept. End your turn now, without doing anything else: you are \
                     called again when the user has answered.";
        Ok(Answer { value: None, words: words.to_owned(), note: None })
    },
};

/// A question to the person who wants the change.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskUser {
    /// The change.
    pub change_id: ChangeId,
    /// The question.
    pub question: LongText<SENTENCE>,
    /// Answers to choose from; the user may always say something else.
    #[serde(default, deserialize_with = "input::or_default")]
    pub choices: List<ShortText<TITLE>, 0, MAX_CHOICES>,
}

fn schema(change: Value) -> JsonObject {
    let choices = json!({"type": "array", "items": named(), "maxItems": MAX_CHOICES});
    with_change(change, vec![required("question", named()), optional("choices", choices)])
}

/// Keeps a question until the call is over. One that no call of agentd asks is nobody's.
pub fn ask_user(session: &Session<'_>, input: AskUser) -> Result<(), ActionError> {
    let id = &input.change_id;
    // Asked before the lock, so that a wrong id leaves no lock file behind.
    session.project.change(id)?;
    let role = session.step.as_ref().and_then(|step| Some((step, step.role()?)));
    let role = role.filter(|(_, role)| ASKING.contains(role));
    let (Some((step, role)), Some(key)) = (role, &session.receipt) else {
        return Err(Refusal::new("Nobody can be asked here: agentd did not start this call.")
            .hint("Decide yourself, and write down what you assumed.")
            .into());
    };
    let _lock = session.project.write_lock_or(id, &session.holder, session.on_wait)?;
    let state = documents::load_state(&session.project.change(id)?)?;
    if !state.may_ask(step) {
        return Err(Refusal::new(format!(
            "You have asked {MAX_ASKED} questions in this step; no more are asked."
        ))
        .hint("Decide yourself, write down what you assumed, and finish the step.")
        .into());
    }
    let is_kept = |kept: &KeptQuestion| key.proves(&kept.receipt, id, role, &kept.asked.digest());
    if asked::read(session.project, id).as_ref().is_some_and(is_kept) {
        return Err(Refusal::new("You have asked already, and the question waits for the user.")
            .hint("End your turn now: you are called again with the answer.")
            .into());
    }
    let choices = input.choices.0.into_iter().map(|choice| choice.0).collect();
    let asked = Asked { question: input.question.0, choices };
    let receipt = key.receipt(id, role, &asked.digest());
    let text = KeptQuestion { asked, receipt }.render();
    // No link is followed here: nothing but agentd has business in this directory.
    let dir = session.project.dir().without_symlinks();
    Ok(dir.write_atomic(&layout::asked_question(id), text.as_bytes())?)
}
