//! The prompt that gives an agent what a person has answered (G6).

use minijinja::context;

use super::data::{KeepEnd, fenced};
use super::render;
use crate::ids::ChangeId;
use crate::step_name::StepName;

/// How much of a question is repeated.
const QUESTION_BYTES: usize = 2500;
/// How much of an answer is given; no longer ones are recorded.
const ANSWER_BYTES: usize = 4000;

/// A person's answer to the question of an agent.
#[derive(Debug, Clone)]
pub struct Answer<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// The step in which it was asked.
    pub step: &'a StepName,
    /// What was asked.
    pub question: &'a str,
    /// What the person says.
    pub answer: &'a str,
}

impl Answer<'_> {
    /// The prompt for the session that has asked.
    pub fn render(&self) -> String {
        let context = context! { question => self.question, answer => self.answer };
        render(self.step, self.change, "answer", context)
    }

    /// The prompt of a step for a session that knows nothing of the question, with both.
    pub fn after(&self, prompt: &str) -> String {
        let question = fenced("the question", self.question, QUESTION_BYTES, KeepEnd::Head);
        let answer = fenced("what the person says", self.answer, ANSWER_BYTES, KeepEnd::Head);
        format!(
            "{}\n\nAn earlier session asked the person who wants the change a question. Don't ask it \
             again:\n{question}\n\nFollow their answer; it takes precedence over what was guessed \
             before:\n{answer}\n",
            prompt.trim_end()
        )
    }
}
