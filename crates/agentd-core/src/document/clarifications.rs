//! `clarifications.md`: questions that were asked before planning, and their answers.

use std::fmt::Write as _;

use serde::Deserialize;

use super::fields::{self, fields};
use super::{frontmatter_place, read_id};
use crate::diagnostic::Parsed;
use crate::frontmatter::{self, scalar};
use crate::ids::ChangeId;
use crate::outline::Outline;
use crate::rules;
use crate::span::{Location, Uncompared};
use crate::stamp::Stamp;
use crate::text::{Line, Prose};

/// The most questions that are asked.
pub const MAX_QUESTIONS: usize = 5;

/// Questions and answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clarifications {
    /// The change they belong to.
    pub change: Option<ChangeId>,
    /// The day they were answered, as its first second.
    pub date: Option<Stamp>,
    /// The questions, in order.
    pub questions: Vec<Answered>,
}

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// What it is about, in a few words.
    pub topic: Line,
    /// The question.
    pub question: Prose,
    /// The answer.
    pub answer: Prose,
    /// Why this answer.
    pub rationale: Prose,
    /// Its heading.
    pub place: Location,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FrontmatterFields {
    change: Option<String>,
    date: Option<Stamp>,
}

/// Reads clarifications.
pub fn parse(text: &str) -> Parsed<Clarifications> {
    let outline = Outline::scan(text);
    let mut diagnostics = super::structure_diagnostics(&outline);
    let front: FrontmatterFields = frontmatter::read(text, &outline, &mut diagnostics);
    let mut questions = Vec::new();
    for section in outline.sections(text, 2, outline.body(text)) {
        let labels = fields(text, section.body);
        let prose = |name: &str| labels.iter().find(|f| f.is(&[name])).map(fields::Field::prose);
        let (Some(question), Some(answer)) = (prose("Question"), prose("Answer")) else {
            let message = format!("`{}` has no question or no answer", section.title);
            diagnostics.push(rules::CLARIFICATION_INCOMPLETE.at(section.heading.span, message));
            continue;
        };
        let topic = match section.title.split_once(':') {
            Some((mark, topic)) if mark.trim_start_matches(['Q', 'q']).parse::<u32>().is_ok() => {
                topic
            }
            _ => section.title,
        };
        questions.push(Answered {
            topic: Line::new(topic),
            question,
            answer,
            rationale: prose("Rationale").unwrap_or_default(),
            place: Uncompared(section.heading.span),
        });
    }
    let change = read_id(
        front.change.as_ref(),
        &rules::BAD_ID,
        frontmatter_place(&outline),
        &mut diagnostics,
    );
    Parsed { value: Clarifications { change, date: front.date, questions }, diagnostics }
}

/// Writes clarifications as agentd does.
pub fn render(clarifications: &Clarifications) -> String {
    let mut out = String::from("---\n");
    if let Some(change) = &clarifications.change {
        let _ = writeln!(out, "change: {}", scalar(change.as_str()));
    }
    if let Some(date) = clarifications.date {
        let _ = writeln!(out, "date: {}", date.date());
    }
    out.push_str("---\n\n# Clarifications\n\n");
    for (i, answered) in clarifications.questions.iter().enumerate() {
        let _ = write!(out, "## Q{}: {}\n\n", i + 1, answered.topic);
        fields::push_prose(&mut out, "Question", &answered.question);
        fields::push_prose(&mut out, "Answer", &answered.answer);
        if !answered.rationale.is_empty() {
            fields::push_prose(&mut out, "Rationale", &answered.rationale);
        }
        out.push('\n');
    }
    super::end_with_one_newline(out)
}
