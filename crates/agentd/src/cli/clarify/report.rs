//! What `agentd clarify` prints.

use std::io::{self, Write as _};

use agentd_core::document::clarifications::Answered;
use agentd_core::document::questions::Question;
use agentd_core::ids::ChangeId;
use agentd_core::next_step::NextStep;
use agentd_core::phase::Phase;
use agentd_core::text::{Line, Prose, counted, printable};
use serde::Serialize;

use crate::ui::{BOLD, DIM, Output, Screen};

/// Answers that were written.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct ClarifyReport {
    /// `clarified`
    pub(super) action: &'static str,
    /// The change.
    pub(super) change_id: ChangeId,
    /// Its phase.
    pub(super) phase: Phase,
    /// The file that has the answers.
    pub(super) file: String,
    /// How many answers there are.
    pub(super) answers: usize,
    /// Commands that continue from here, the best one first.
    pub(super) next: Vec<NextStep>,
}

impl Output for ClarifyReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let count = counted(self.answers, "answer");
        writeln!(screen, "{BOLD}{}{BOLD:#}: {count}", self.file)?;
        self.next.iter().try_for_each(|next| writeln!(screen, "Next: {next}"))
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::next_step::Command;
        let change_id = ChangeId::new("add-oauth").unwrap();
        Self {
            action: "clarified",
            next: vec![Command::Plan.on(&change_id)],
            change_id,
            phase: Phase::Proposed,
            file: "agentd/changes/add-oauth/clarifications.md".to_owned(),
            answers: 3,
        }
    }
}

/// Questions that the planner has proposed.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct QuestionsReport {
    /// `questions_proposed`
    pub(super) action: &'static str,
    /// The change.
    pub(super) change_id: ChangeId,
    /// Its phase.
    pub(super) phase: Phase,
    /// The questions.
    pub(super) questions: Vec<Question>,
    /// What proposing them cost now, in US dollars.
    pub(super) cost_usd: f64,
    /// Commands that continue from here, the best one first.
    pub(super) next: Vec<NextStep>,
}

impl Output for QuestionsReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        self.questions.iter().try_for_each(|question| write_question(screen, question))
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::next_step::Command;
        let ClarificationsReport { change_id, questions, .. } = ClarificationsReport::sample();
        Self {
            action: "questions_proposed",
            next: vec![Command::Clarify.on(&change_id)],
            change_id,
            phase: Phase::Proposed,
            questions,
            cost_usd: 0.01,
        }
    }
}

/// The questions about a change, and the answers.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct ClarificationsReport {
    /// `shown`
    pub(super) action: &'static str,
    /// The change.
    pub(super) change_id: ChangeId,
    /// Whether the change has a clarifications.md.
    pub(super) clarified: bool,
    /// Whether `agentd plan` waits for answers.
    pub(super) needed: bool,
    /// The questions that were proposed.
    pub(super) questions: Vec<Question>,
    /// The questions that were answered.
    pub(super) answers: Vec<AnswerReport>,
}

/// A question with its answer.
#[derive(Debug, Serialize)]
pub(super) struct AnswerReport {
    /// What it is about.
    topic: Line,
    /// The question.
    question: Prose,
    /// The answer.
    answer: Prose,
    /// The reason for this answer.
    rationale: Prose,
}

impl From<Answered> for AnswerReport {
    fn from(answered: Answered) -> Self {
        let Answered { topic, question, answer, rationale, place: _ } = answered;
        Self { topic, question, answer, rationale }
    }
}

impl Output for ClarificationsReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        if self.questions.is_empty() && !self.clarified {
            writeln!(screen, "No questions were asked about {} yet.", self.change_id)?;
        }
        for question in &self.questions {
            write_question(screen, question)?;
        }
        for AnswerReport { topic, answer, .. } in &self.answers {
            let (topic, answer) = (printable(topic.as_str()), printable(answer.as_str()));
            writeln!(screen, "{BOLD}{topic}{BOLD:#} → {answer}")?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::document::questions::Suggestion;
        let option = Suggestion { label: Line::new("30 days"), description: Prose::new("Common") };
        let question = Question {
            header: Line::new("Session"),
            question: Prose::new("How long does a session last?"),
            options: vec![option],
            multi_select: false,
        };
        let answer = AnswerReport {
            topic: question.header.clone(),
            question: question.question.clone(),
            answer: Prose::new("30 days"),
            rationale: Prose::new("As before"),
        };
        Self {
            action: "shown",
            change_id: ChangeId::new("add-oauth").unwrap(),
            clarified: true,
            needed: false,
            questions: vec![question],
            answers: vec![answer],
        }
    }
}

fn write_question(screen: &mut Screen<'_>, question: &Question) -> io::Result<()> {
    let several = if question.multi_select { " (several)" } else { "" };
    let (header, asked) = (question.header.as_str(), question.question.as_str());
    writeln!(screen, "{BOLD}{}{BOLD:#}: {}{several}", printable(header), printable(asked))?;
    for (i, option) in question.options.iter().enumerate() {
        let mark = if i == 0 { " (recommended)" } else { "" };
        let label = printable(option.label.as_str());
        let means = printable(option.description.as_str());
        writeln!(screen, "  - {label}{mark}{DIM}: {means}{DIM:#}")?;
    }
    Ok(())
}
