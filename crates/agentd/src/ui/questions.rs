//! The questions of `clarify`, one after the other, with a way back.

use std::path::Path;

use agentd_core::document::clarifications::Answered;
use agentd_core::document::questions::{Pick, Question};
use agentd_core::text::Prose;

use super::prompt::{self, Answer, Choice, Menu, NoAnswer, RECOMMENDED};

/// What a person has answered so far, by the headers of the questions: labels, or own words.
pub(crate) type Given = Vec<(String, Vec<String>)>;

/// A question as the terminal shows it: the recommended option first and marked.
fn menu(question: &Question, number: usize, count: usize, given: Option<&Answer>) -> Menu {
    let choices = question.options.iter().enumerate().map(|(i, option)| {
        let mark = if i == 0 { RECOMMENDED } else { "" };
        Choice { label: format!("{}{mark}", option.label), details: option.description.to_string() }
    });
    let asked = format!("{} ({number} of {count}): {}", question.header, question.question);
    let mut menu = Menu::new(asked, choices.collect()).with_own_words();
    menu.several = question.multi_select;
    menu.can_go_back = number > 1;
    match given {
        Some(given) => menu.answered(&given.picks, given.own.as_deref()),
        None => menu,
    }
}

/// An answer that was given before, as far as the question still knows it.
fn known(question: &Question, given: &Given) -> Option<Answer> {
    let (_, texts) = given.iter().find(|(header, _)| header == question.header.as_str())?;
    let at =
        |text: &String| question.options.iter().position(|option| option.label.as_str() == text);
    let picks = texts.iter().filter_map(at).collect();
    let own = texts.iter().find(|text| at(text).is_none()).cloned();
    Some(Answer { picks, own })
}

fn texts(question: &Question, answer: &Answer) -> Vec<String> {
    let labels = answer.picks.iter().filter_map(|pick| question.options.get(*pick));
    labels.map(|option| option.label.to_string()).chain(answer.own.clone()).collect()
}

fn picks(answer: &Answer) -> Vec<Pick> {
    let own = answer.own.iter().map(|text| Pick::Own(Prose::new(text)));
    answer.picks.iter().map(|pick| Pick::Suggested(*pick)).chain(own).collect()
}

/// Asks all questions. `given` is what was answered before; where somebody stops, it holds what they
/// have answered by then.
pub(crate) fn ask(
    questions: &[Question],
    given: &mut Given,
    root: &Path,
) -> Result<Vec<Answered>, NoAnswer> {
    let mut answers: Vec<Option<Answer>> =
        questions.iter().map(|question| known(question, given)).collect();
    // What was answered is shown, and can be gone back to.
    let open = answers.iter().position(Option::is_none);
    let mut at = open.unwrap_or(questions.len().saturating_sub(1));
    for (index, (question, answer)) in questions.iter().zip(&answers).take(at).enumerate() {
        if let Some(answer) = answer {
            prompt::show_answer(&menu(question, index + 1, questions.len(), None), answer)?;
        }
    }
    while let Some(question) = questions.get(at) {
        let mut menu = menu(question, at + 1, questions.len(), answers[at].as_ref());
        match prompt::ask(&mut menu, root) {
            Ok(answer) => {
                answers[at] = Some(answer);
                at += 1;
            }
            Err(NoAnswer::Back) => {
                prompt::take_back()?;
                at = at.saturating_sub(1);
            }
            Err(error) => {
                let all = questions.iter().zip(&answers);
                *given = all
                    .filter_map(|(question, answer)| {
                        Some((question.header.to_string(), texts(question, answer.as_ref()?)))
                    })
                    .collect();
                return Err(error);
            }
        }
    }
    let all = questions.iter().zip(answers);
    Ok(all.filter_map(|(question, answer)| Some(question.answered(&picks(&answer?)))).collect())
}
