//! `questions.json`: what the planner wants to know before it plans, kept until a
//! person has answered, and the answers that a person gives.
//!
//! The file belongs to agentd and to one machine; what is kept for good is
//! `clarifications.md`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::clarifications::{Answered, MAX_QUESTIONS};
use crate::ids::ChangeId;
use crate::span::Uncompared;
use crate::stamp::Stamp;
use crate::text::{Line, Prose};

/// The fewest questions that are proposed.
pub const MIN_QUESTIONS: usize = 3;
/// The fewest options of a question.
pub const MIN_OPTIONS: usize = 2;
/// The most options of a question.
pub const MAX_OPTIONS: usize = 4;

/// Questions that wait for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Questions {
    /// The change that they are about.
    pub change_id: ChangeId,
    /// When they were proposed.
    pub proposed_at: Stamp,
    /// The questions, the most important first.
    pub questions: Vec<Question>,
}

/// A question with the answers that are suggested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// What it is about, in a word or two; no two questions have the same.
    pub header: Line,
    /// The question.
    pub question: Prose,
    /// What could be answered, the recommended one first.
    pub options: Vec<Suggestion>,
    /// Whether several options may be picked.
    #[serde(default)]
    pub multi_select: bool,
}

/// A suggested answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suggestion {
    /// The answer, in a few words.
    pub label: Line,
    /// What it means.
    pub description: Prose,
}

/// What a person picks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// The suggestion at this place.
    Suggested(usize),
    /// Words of their own.
    Own(Prose),
}

/// Why questions cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuestionsError {
    /// The text is not what agentd has written.
    #[error("it is not a list of questions: {0}")]
    Unreadable(String),
    /// They are about another change.
    #[error("it holds the questions of `{found}`, not of `{wanted}`")]
    OtherChange {
        /// The change in the text.
        found: ChangeId,
        /// The change whose questions were wanted.
        wanted: ChangeId,
    },
    /// Too few or too many questions.
    #[error("the number of questions is {0}; it must be {MIN_QUESTIONS} to {MAX_QUESTIONS}")]
    Count(usize),
    /// Too few or too many options.
    #[error(
        "the number of options of `{header}` is {count}; it must be {MIN_OPTIONS} to {MAX_OPTIONS}"
    )]
    Options {
        /// The question.
        header: Line,
        /// How many options it has.
        count: usize,
    },
    /// A text that is needed is empty.
    #[error("question {0} has an empty text")]
    Empty(usize),
    /// Two questions with the same header could not be distinguished.
    #[error("two questions have the header `{0}`")]
    SameHeader(Line),
    /// Two options with the same label could not be distinguished.
    #[error("two options of `{header}` are called `{label}`")]
    SameLabel {
        /// The question.
        header: Line,
        /// The label.
        label: Line,
    },
}

/// Whether these can be asked.
pub fn check(questions: &[Question]) -> Result<(), QuestionsError> {
    if !(MIN_QUESTIONS..=MAX_QUESTIONS).contains(&questions.len()) {
        return Err(QuestionsError::Count(questions.len()));
    }
    let mut headers = BTreeSet::new();
    for (i, question) in questions.iter().enumerate() {
        let header = question.header.clone();
        if !(MIN_OPTIONS..=MAX_OPTIONS).contains(&question.options.len()) {
            return Err(QuestionsError::Options { header, count: question.options.len() });
        }
        let blank = |option: &Suggestion| option.label.is_empty() || option.description.is_empty();
        if header.is_empty() || question.question.is_empty() || question.options.iter().any(blank) {
            return Err(QuestionsError::Empty(i + 1));
        }
        if !headers.insert(folded(header.as_str())) {
            return Err(QuestionsError::SameHeader(header));
        }
        let mut labels = BTreeSet::new();
        for option in &question.options {
            if !labels.insert(folded(option.label.as_str())) {
                return Err(QuestionsError::SameLabel { header, label: option.label.clone() });
            }
        }
    }
    Ok(())
}

/// Reads the questions of a change.
pub fn parse(text: &str, change: &ChangeId) -> Result<Questions, QuestionsError> {
    let questions: Questions = serde_json::from_str(text)
        .map_err(|error| QuestionsError::Unreadable(error.to_string()))?;
    if questions.change_id != *change {
        let (found, wanted) = (questions.change_id, change.clone());
        return Err(QuestionsError::OtherChange { found, wanted });
    }
    check(&questions.questions)?;
    Ok(questions)
}

/// Writes questions as agentd does.
pub fn render(questions: &Questions) -> String {
    let mut text = serde_json::to_string_pretty(questions).unwrap_or_default();
    text.push('\n');
    text
}

/// Whether two names are the same to a person.
pub(super) fn same(a: &str, b: &str) -> bool {
    folded(a) == folded(b)
}

fn folded(text: &str) -> String {
    Line::new(text).as_str().to_lowercase()
}

impl Question {
    /// What is picked by this text: an option by its label, otherwise the text itself.
    pub fn pick(&self, text: &str) -> Pick {
        let found = self.options.iter().position(|option| same(option.label.as_str(), text));
        found.map_or_else(|| Pick::Own(Prose::new(text)), Pick::Suggested)
    }

    /// The question with the answer that was picked. What a suggestion means is kept
    /// as the reason for it.
    pub fn answered(&self, picks: &[Pick]) -> Answered {
        let suggested = |pick: &Pick| match pick {
            Pick::Suggested(i) => self.options.get(*i),
            Pick::Own(_) => None,
        };
        let answers: Vec<&str> = picks
            .iter()
            .filter_map(|pick| match pick {
                Pick::Suggested(_) => suggested(pick).map(|option| option.label.as_str()),
                Pick::Own(text) => Some(text.as_str()),
            })
            .collect();
        let reasons: Vec<&str> =
            picks.iter().filter_map(suggested).map(|option| option.description.as_str()).collect();
        Answered {
            topic: self.header.clone(),
            question: self.question.clone(),
            answer: Prose::new(&answers.join(", ")),
            rationale: Prose::new(&reasons.join("\n")),
            place: Uncompared::default(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn question(header: &str, labels: &[&str]) -> Question {
        let options = labels.iter().map(|label| Suggestion {
            label: (*label).into(),
            description: format!("What {label} means.").as_str().into(),
        });
        Question {
            header: header.into(),
            question: format!("Which {header}?").as_str().into(),
            options: options.collect(),
            multi_select: false,
        }
    }

    pub(in super::super) fn questions() -> Questions {
        Questions {
            change_id: ChangeId::new("add-login").unwrap(),
            proposed_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            questions: vec![
                question("Method", &["OAuth", "JWT"]),
                question("Storage", &["PostgreSQL", "SQLite", "Memory"]),
                Question { multi_select: true, ..question("Clients", &["Web", "Phone"]) },
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let questions = questions();
        assert_eq!(parse(&render(&questions), &questions.change_id), Ok(questions));
    }

    #[test]
    fn invalid_questions_are_refused() {
        let cases: [&dyn Fn(&mut Questions); 8] = [
            &|q| q.questions.truncate(2),
            &|q| q.questions.extend(["A", "B", "C"].map(|h| question(h, &["x", "y"]))),
            &|q| q.questions[0].options.truncate(1),
            &|q| q.questions[0] = question("M", &["a", "b", "c", "d", "e"]),
            &|q| q.questions[1].header = "METHOD".into(),
            &|q| q.questions[0].options[1].label = "oauth".into(),
            &|q| q.questions[2].question = "".into(),
            &|q| q.change_id = ChangeId::new("other").unwrap(),
        ];
        let errors = cases.map(|spoil| {
            let mut spoiled = questions();
            let change = spoiled.change_id.clone();
            spoil(&mut spoiled);
            parse(&render(&spoiled), &change).unwrap_err().to_string()
        });
        insta::assert_snapshot!(errors.join("\n"), @"
        the number of questions is 2; it must be 3 to 5
        the number of questions is 6; it must be 3 to 5
        the number of options of `Method` is 1; it must be 2 to 4
        the number of options of `M` is 5; it must be 2 to 4
        two questions have the header `METHOD`
        two options of `Method` are called `oauth`
        question 3 has an empty text
        it holds the questions of `other`, not of `add-login`
        ");
        let change = questions().change_id;
        for text in ["", "[]", "{", "{\"questions\": 3}"] {
            assert!(matches!(parse(text, &change), Err(QuestionsError::Unreadable(_))), "{text}");
        }
    }

    #[test]
    fn picks_become_an_answer_with_its_reason() {
        let clients = &questions().questions[2];
        let answered = clients.answered(&[clients.pick("phone "), clients.pick("A printer")]);
        assert_eq!(answered.answer.as_str(), "Phone, A printer");
        assert_eq!(answered.rationale.as_str(), "What Phone means.");
        assert_eq!(answered.topic.as_str(), "Clients");
        let own = clients.answered(&[Pick::Own("None".into())]);
        assert_eq!((own.answer.as_str(), own.rationale.as_str()), ("None", ""));
    }
}
