//! A question as a form that a client shows to a person, and what comes back (MCP elicitation).
//!
//! Forms use only what the first version of elicitation has: texts, texts out of a list, and yes or
//! no. The values in a list are the words that the person reads, so every client shows them.

use agentd_core::document::questions::{Pick, Question, Questions};
use agentd_core::ids::ChangeId;
use agentd_core::state::AgentQuestion;
use agentd_core::text::{Prose, head, printable};
use agentd_engine::workflow::begin::PlacementQuestion;
use agentd_engine::workflow::decisions::PlanAnswer;
use agentd_engine::workflow::open_questions::PlanToDecide;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// The longest text that a form shows, in bytes.
const LONGEST_MESSAGE: usize = 8000;
/// The longest answer, in characters.
const LONGEST_ANSWER: usize = 2000;
/// How many issues of a review are listed.
const MOST_ISSUES: usize = 20;

/// The field with the one answer that is picked.
const ANSWER: &str = "answer";
/// The field with the person's own words.
const WORDS: &str = "own_words";

/// What can be picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Picks {
    /// One of them.
    One,
    /// Any of them.
    Several,
}

/// What a person can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    /// Nothing.
    No,
    /// An answer of their own, instead of a pick or beside it.
    Answer,
    /// A note on what they have picked.
    Note,
}

/// A question to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// The text above the fields.
    pub(super) message: String,
    labels: Vec<String>,
    picks: Picks,
    words: Words,
}

/// A form as a person has filled it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filled {
    /// Which answers were picked.
    pub(super) picks: Vec<usize>,
    /// What was written; may be empty.
    pub(super) words: String,
}

impl Form {
    fn new(message: &str, labels: Vec<String>, words: Words) -> Self {
        let message = head(&printable(message), LONGEST_MESSAGE).to_owned();
        Self { message, labels, picks: Picks::One, words }
    }

    /// The schema that says which fields there are.
    pub(super) fn schema(&self) -> JsonObject {
        let mut fields = JsonObject::new();
        let mut required = Vec::new();
        match self.picks {
            Picks::One if self.labels.is_empty() => {}
            Picks::One => {
                if self.words != Words::Answer {
                    required.push(ANSWER);
                }
                let field = json!({"type": "string", "title": "Answer", "enum": self.labels});
                fields.insert(ANSWER.to_owned(), field);
            }
            Picks::Several => {
                for (at, label) in self.labels.iter().enumerate() {
                    fields.insert(option(at), json!({"type": "boolean", "title": label}));
                }
            }
        }
        let (title, description) = match (self.words, self.labels.is_empty()) {
            (Words::No, _) => ("", ""),
            (Words::Answer, true) => ("Answer", "In your own words"),
            (Words::Answer, false) => ("In your own words", "Instead of the answers above"),
            (Words::Note, _) => ("Note", "Optional: why, or what the planner should know"),
        };
        if self.words != Words::No {
            let field = json!({"type": "string", "title": title, "description": description,
                "maxLength": LONGEST_ANSWER});
            fields.insert(WORDS.to_owned(), field);
        }
        if self.words == Words::Answer && self.labels.is_empty() {
            required.push(WORDS);
        }
        object(fields, &required)
    }

    /// Reads what the client has sent, which may be anything.
    pub(super) fn read(&self, content: &Value) -> Result<Filled, String> {
        let Some(content) = content.as_object() else {
            return Err("the form came back without its fields".to_owned());
        };
        let picks = match self.picks {
            Picks::One => self.picked(content.get(ANSWER))?,
            Picks::Several => {
                let mut picks = Vec::new();
                for at in 0..self.labels.len() {
                    match content.get(&option(at)) {
                        None | Some(Value::Null | Value::Bool(false)) => {}
                        Some(Value::Bool(true)) => picks.push(at),
                        Some(_) => return Err(format!("`{}` is neither yes nor no", option(at))),
                    }
                }
                picks
            }
        };
        let words = match content.get(WORDS) {
            None | Some(Value::Null) => "",
            Some(Value::String(text)) => text.trim(),
            Some(_) => return Err(format!("`{WORDS}` is no text")),
        };
        if words.chars().count() > LONGEST_ANSWER {
            return Err(format!("the answer is longer than {LONGEST_ANSWER} characters"));
        }
        if self.words == Words::No && !words.is_empty() {
            return Err(format!("there is no field `{WORDS}` in the form"));
        }
        if picks.is_empty() && (self.words != Words::Answer || words.is_empty()) {
            return Err("the form came back without an answer".to_owned());
        }
        Ok(Filled { picks, words: words.to_owned() })
    }

    fn picked(&self, value: Option<&Value>) -> Result<Vec<usize>, String> {
        match value {
            None | Some(Value::Null) => Ok(Vec::new()),
            // What a client sends that lets a person leave the list untouched.
            Some(Value::String(text)) if text.is_empty() => Ok(Vec::new()),
            Some(Value::String(text)) => {
                let found = self.labels.iter().position(|label| label == text);
                found.map(|at| vec![at]).ok_or_else(|| "that answer was not offered".to_owned())
            }
            Some(_) => Err(format!("`{ANSWER}` is no text")),
        }
    }
}

/// The schema of an object with these fields.
pub(super) fn object(fields: JsonObject, required: &[&str]) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(fields));
    schema.insert("required".to_owned(), json!(required));
    schema
}

fn option(at: usize) -> String {
    format!("answer_{}", at + 1)
}

fn labels(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for text in texts.map(|text| printable(&text).into_owned()) {
        if !text.is_empty() && !labels.contains(&text) {
            labels.push(text);
        }
    }
    labels
}

/// The question of an agent.
pub(super) fn of_agent(change: &ChangeId, question: &AgentQuestion) -> Form {
    let message = format!(
        "{} works on the change `{change}` and asks:\n\n{}",
        question.asker(),
        question.asked.question
    );
    let choices = question.asked.choices.iter().map(ToString::to_string);
    Form::new(&message, labels(choices), Words::Answer)
}

/// What is answered to an agent.
pub(super) fn agent_answer(form: &Form, filled: &Filled) -> String {
    let picked = filled.picks.iter().filter_map(|at| form.labels.get(*at)).map(String::as_str);
    let words = Some(filled.words.as_str()).filter(|words| !words.is_empty());
    picked.chain(words).collect::<Vec<_>>().join(". ")
}

/// The questions about a change that was not planned yet, a form each.
pub(super) fn of_questions(questions: &Questions) -> Vec<Form> {
    let (id, count) = (&questions.change_id, questions.questions.len());
    let form = |(at, question): (usize, &Question)| {
        let options = question.options.iter().enumerate().map(|(at, option)| {
            let mark = if at == 0 { " (recommended)" } else { "" };
            format!("\n- {}{mark}: {}", option.label, option.description)
        });
        let message = format!(
            "Before `{id}` is planned ({} of {count}): {}\n\n{}\n{}",
            at + 1,
            question.header,
            question.question,
            options.collect::<String>()
        );
        // By place, so none may be left out.
        let labels =
            question.options.iter().map(|option| printable(option.label.as_str()).into_owned());
        let mut form = Form::new(&message, labels.collect(), Words::Answer);
        if question.multi_select {
            form.picks = Picks::Several;
        }
        form
    };
    questions.questions.iter().enumerate().map(form).collect()
}

/// What was picked, as `agentd clarify` takes it.
pub(super) fn picks(filled: &Filled) -> Vec<Pick> {
    let own = Some(&filled.words).filter(|words| !words.is_empty());
    let own = own.map(|words| Pick::Own(Prose::new(words)));
    filled.picks.iter().map(|at| Pick::Suggested(*at)).chain(own).collect()
}

/// Where to work on a change.
pub(super) fn of_placement(question: &PlacementQuestion) -> Form {
    let offers = question.offers.iter().map(|it| format!("\n- {}: {}", it.label, it.meaning));
    let message = format!("{}\n{}\n{}", question.text, question.remark, offers.collect::<String>());
    let labels = question.offers.iter().map(|offer| printable(&offer.label).into_owned());
    Form::new(&message, labels.collect(), Words::No)
}

/// What can be decided about a plan: a note goes with each, so none asks for it.
pub(super) fn plan_answers(plan: &PlanToDecide) -> Vec<PlanAnswer> {
    plan.question.decisions().into_iter().filter(|answer| *answer != PlanAnswer::Tell).collect()
}

/// What becomes of a plan that needs revision.
pub(super) fn of_plan(change: &ChangeId, plan: &PlanToDecide) -> Form {
    let review = &plan.review;
    let shown = review.issues.iter().take(MOST_ISSUES).map(|issue| {
        let at = &issue.location;
        let place = if at.is_empty() { String::new() } else { format!(" ({at})") };
        format!("\n- {} I{}: {}{place}", issue.severity.label(), issue.number, issue.title)
    });
    let more = review.issues.len().saturating_sub(MOST_ISSUES);
    let more = if more > 0 { format!("\n- and {more} more") } else { String::new() };
    let gate = plan.question.gate;
    let answers = plan_answers(plan);
    let meanings = answers.iter().map(|it| format!("\n- {}: {}", it.label(gate), it.details(gate)));
    let message = format!(
        "`{change}`: {}\n\n{} says: {}\n{}{more}\n\n{}",
        plan.question.text(),
        review.reviewer,
        head(review.summary.as_str(), LONGEST_MESSAGE / 4),
        shown.collect::<String>(),
        meanings.collect::<String>().trim_start()
    );
    let labels = answers.iter().map(|answer| answer.label(gate).to_owned());
    Form::new(&message, labels.collect(), Words::Note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(labels: &[&str], picks: Picks, words: Words) -> Form {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        Form { picks, ..Form::new("Which?", labels, words) }
    }

    #[test]
    fn a_form_takes_what_it_offers_and_nothing_else() {
        let one = form(&["A", "B"], Picks::One, Words::Answer);
        let several = form(&["A", "B"], Picks::Several, Words::Answer);
        let note = form(&["A", "B"], Picks::One, Words::Note);
        let only = form(&["A", "B"], Picks::One, Words::No);
        let open = form(&[], Picks::One, Words::Answer);
        let long = "x".repeat(LONGEST_ANSWER + 1);
        let good: [(&Form, Value, &[usize], &str); 10] = [
            (&one, json!({"answer": "B"}), &[1], ""),
            (&one, json!({"answer": "", "own_words": " C "}), &[], "C"),
            (&one, json!({"answer": "A", "own_words": "C"}), &[0], "C"),
            (&one, json!({"own_words": "C", "other": 1}), &[], "C"),
            (&several, json!({"answer_2": true, "answer_1": false}), &[1], ""),
            (&several, json!({"answer_1": true, "answer_2": true, "own_words": "C"}), &[0, 1], "C"),
            (&note, json!({"answer": "A"}), &[0], ""),
            (&note, json!({"answer": "A", "own_words": "so"}), &[0], "so"),
            (&only, json!({"answer": "A", "own_words": null}), &[0], ""),
            (&open, json!({"own_words": "C"}), &[], "C"),
        ];
        for (form, content, picks, words) in good {
            let filled = Filled { picks: picks.to_vec(), words: words.to_owned() };
            assert_eq!(form.read(&content), Ok(filled), "{content}");
        }
        let bad: [(&Form, Value); 14] = [
            (&one, json!({})),
            (&one, json!([])),
            (&one, json!("A")),
            (&one, json!({"answer": "C"})),
            (&one, json!({"answer": "a"})),
            (&one, json!({"answer": 0})),
            (&one, json!({"answer": ["A"]})),
            (&one, json!({"own_words": "  "})),
            (&one, json!({"answer": "A", "own_words": long})),
            (&several, json!({"answer": "A"})),
            (&several, json!({"answer_1": "yes"})),
            (&note, json!({"own_words": "only a note"})),
            (&only, json!({"answer": "A", "own_words": "and"})),
            (&open, json!({"own_words": {"a": 1}})),
        ];
        for (form, content) in bad {
            assert!(form.read(&content).is_err(), "{content}");
        }
        assert!(one.read(&Value::Null).is_err());
    }

    #[test]
    fn a_schema_has_a_field_for_each_answer() {
        let schema = |labels: &[&str], picks, words| {
            let schema = form(labels, picks, words).schema();
            let names: Vec<String> =
                schema["properties"].as_object().unwrap().keys().cloned().collect();
            (names.join(" "), schema["required"].clone())
        };
        for (labels, picks, words, names, required) in [
            (&["A"][..], Picks::One, Words::Answer, "answer own_words", json!([])),
            (&["A"], Picks::One, Words::Note, "answer own_words", json!(["answer"])),
            (&["A"], Picks::One, Words::No, "answer", json!(["answer"])),
            (&[], Picks::One, Words::Answer, "own_words", json!(["own_words"])),
            (&["A", "B"], Picks::Several, Words::Answer, "answer_1 answer_2 own_words", json!([])),
        ] {
            assert_eq!(schema(labels, picks, words), (names.to_owned(), required), "{names}");
        }
    }
}
