//! The questions of `clarify`, answered with arrow keys.

use std::fmt;

use agentd_core::document::clarifications::Answered;
use agentd_core::document::questions::{Pick, Question};
use agentd_core::text::{Prose, printable};
use inquire::validator::{ErrorMessage, Validation};
use inquire::{MultiSelect, Select, Text};

use super::ask::not_asked;
use super::{Ui, fit};
use crate::error::CommandError;

/// How much of what an option means is shown beside it.
const SHOWN: usize = 160;

/// One line of a list.
struct Entry {
    pick: Option<usize>,
    shown: String,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// The options of a question, the recommended one first and marked, and one to answer
/// in own words.
fn entries(question: &Question) -> Vec<Entry> {
    let suggested = question.options.iter().enumerate().map(|(i, option)| {
        let mark = if i == 0 { " (recommended)" } else { "" };
        let means = fit(option.description.first_line().as_str(), SHOWN);
        let shown = format!("{}{mark}: {means}", printable(option.label.as_str()));
        Entry { pick: Some(i), shown }
    });
    let own = Entry { pick: None, shown: "other: type your own answer".to_owned() };
    suggested.chain([own]).collect()
}

/// Asks one question after the other. Ctrl-C and Esc end the command.
pub(crate) fn ask(ui: &Ui, questions: &[Question]) -> Result<Vec<Answered>, CommandError> {
    let mut answers = Vec::new();
    for (i, question) in questions.iter().enumerate() {
        let header = question.header.as_str();
        ui.note(&format!("\n{header} ({} of {})", i + 1, questions.len()));
        answers.push(question.answered(&picks(question)?));
    }
    Ok(answers)
}

fn picks(question: &Question) -> Result<Vec<Pick>, CommandError> {
    let words = printable(question.question.as_str()).into_owned();
    let chosen = if question.multi_select {
        MultiSelect::new(&words, entries(question))
            .with_help_message("space marks, enter continues, Esc stops")
            .with_validator(|chosen: &[inquire::list_option::ListOption<&Entry>]| {
                Ok(needed(chosen.is_empty(), "mark at least one"))
            })
            .prompt()
            .map_err(not_asked)?
    } else {
        let select = Select::new(&words, entries(question));
        vec![
            select
                .with_help_message("↑↓ moves, enter answers, Esc stops")
                .prompt()
                .map_err(not_asked)?,
        ]
    };
    chosen
        .into_iter()
        .map(|entry| match entry.pick {
            Some(i) => Ok(Pick::Suggested(i)),
            None => own_words().map(Pick::Own),
        })
        .collect()
}

fn needed(is_missing: bool, message: &str) -> Validation {
    if is_missing {
        Validation::Invalid(ErrorMessage::Custom(message.to_owned()))
    } else {
        Validation::Valid
    }
}

fn own_words() -> Result<Prose, CommandError> {
    let text = Text::new("Your answer:")
        .with_validator(|text: &str| Ok(needed(text.trim().is_empty(), "an answer is needed")))
        .prompt()
        .map_err(not_asked)?;
    Ok(Prose::new(&text))
}
