//! Agents that ask a person (G6): while a question waits nobody is called, and the call after the
//! answer is given it.

use agentd_core::agent::Role;
use agentd_core::prompt::{Answer, one_line};
use agentd_core::step_name::StepName;

use super::{Action, Report, Workflow, WorkflowError};

/// How much of a question is said in a sentence.
const QUESTION_BYTES: usize = 300;

/// A prompt, and the session that it is for.
pub(super) struct Prompted {
    /// The prompt.
    pub(super) prompt: String,
    /// The prompt if there is no such session any more (C31).
    pub(super) fresh: String,
    /// The session to resume.
    pub(super) resume: Option<String>,
}

impl Workflow<'_> {
    /// Stops where an agent waits for an answer.
    pub(super) fn unanswered(&self) -> Result<(), WorkflowError> {
        // A question of a call that was killed with agentd is taken here.
        self.history()?;
        let state = self.state()?;
        let Some(question) = state.open_question() else { return Ok(()) };
        let (change, asker) = (self.change.clone(), question.asker());
        let question = one_line(question.asked.question.as_str(), QUESTION_BYTES);
        Err(WorkflowError::Unanswered { change, asker, question })
    }

    /// The report of a workflow, which also ends where an agent waits for an answer.
    pub(super) fn or_waiting(
        &mut self,
        report: Result<Report, WorkflowError>,
    ) -> Result<Report, WorkflowError> {
        match report {
            Err(WorkflowError::Unanswered { .. }) => self.report(Action::WaitingForDecision),
            report => report,
        }
    }

    /// A prompt with what a person has answered, for the session that has asked or for another one.
    pub(super) fn with_answer(
        &mut self,
        step: &StepName,
        role: Role,
        prompt: String,
        resume: Option<String>,
    ) -> Result<Prompted, WorkflowError> {
        let state = self.state()?;
        let Some((question, answer)) = state.new_answer(role) else {
            return Ok(Prompted { fresh: prompt.clone(), prompt, resume });
        };
        // Words that nobody here has said are given to nobody.
        self.check_record()?;
        let (change, text) = (&self.change, question.asked.question.as_str());
        let said = Answer { change, step: &question.step, question: text, answer: answer.as_str() };
        let fresh = said.after(&prompt);
        // A revision knows itself which session it resumes, and has another prompt without one.
        let session = match step {
            StepName::Reproposal => resume.clone(),
            _ => question.session_id.clone(),
        };
        let has_asked = |session: &String| {
            question.step == *step
                && question.session_id.as_ref() == Some(session)
                && self.is_own_session(role, session)
        };
        Ok(match session.filter(has_asked) {
            Some(session) => Prompted { prompt: said.render(), fresh, resume: Some(session) },
            None => Prompted { prompt: fresh.clone(), fresh, resume },
        })
    }
}
