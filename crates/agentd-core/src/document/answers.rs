//! Answers to questions, from a JSON file: for scripts, and for agents that ask the
//! person themselves.
//!
//! Two forms are read. Whole, as `create_clarifications` takes them:
//! `{"answers": [{"topic": "…", "question": "…", "answer": "…", "rationale": "…"}]}`,
//! where `header` means the same as `topic`, and the question may be left out where
//! one was proposed under that header. Short, where questions were proposed:
//! `{"<header>": "<label or own words>"}`, with a list of texts where several may be
//! picked.

use serde_json::{Map, Value};

use super::clarifications::{Answered, MAX_QUESTIONS};
use super::questions::{Pick, Question, Questions, same};
use crate::nearest::nearest;
use crate::span::Uncompared;
use crate::text::{Line, Prose};

/// Why answers cannot be used: the place in the JSON and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", if place.is_empty() { String::new() } else { format!("`{place}`: ") })]
pub struct AnswersError {
    /// The place, such as `answers[1].answer`; empty for the whole.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

fn wrong<T>(place: impl Into<String>, message: impl Into<String>) -> Result<T, AnswersError> {
    Err(AnswersError { place: place.into(), message: message.into() })
}

/// Reads answers, in the order of the questions that were proposed or, where none
/// were, in their own.
pub fn parse(text: &str, proposed: Option<&Questions>) -> Result<Vec<Answered>, AnswersError> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return wrong("", format!("it is not JSON: {error}")),
    };
    let Value::Object(object) = value else {
        return wrong("", "an object is wanted: {\"answers\": [...]} or {\"<header>\": \"...\"}");
    };
    let questions = proposed.map(|proposed| proposed.questions.as_slice()).unwrap_or_default();
    match object.get("answers") {
        Some(Value::Array(items)) if object.len() == 1 && !items.iter().all(Value::is_string) => {
            whole(items, questions)
        }
        Some(Value::Array(items)) if object.len() == 1 && items.is_empty() => {
            wrong("answers", "the list is empty")
        }
        _ => short(&object, questions),
    }
}

fn whole(items: &[Value], questions: &[Question]) -> Result<Vec<Answered>, AnswersError> {
    if items.len() > MAX_QUESTIONS {
        let count = items.len();
        return wrong("answers", format!("there are {count}; at most {MAX_QUESTIONS} are kept"));
    }
    items
        .iter()
        .enumerate()
        .map(|(i, item)| one(&format!("answers[{i}]"), item, questions))
        .collect()
}

fn one(place: &str, item: &Value, questions: &[Question]) -> Result<Answered, AnswersError> {
    const FIELDS: [&str; 5] = ["topic", "header", "question", "answer", "rationale"];
    let Value::Object(item) = item else {
        return wrong(place, "an object with topic, question and answer is wanted");
    };
    if let Some(key) = item.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        let near = nearest(key, FIELDS.into_iter()).map(|near| format!("; did you mean `{near}`?"));
        return wrong(
            format!("{place}.{key}"),
            format!("unknown field{}", near.unwrap_or_default()),
        );
    }
    let topic = match (item.get("topic"), item.get("header")) {
        (Some(_), Some(_)) => return wrong(place, "`topic` and `header` mean the same; give one"),
        (_, None) => needed(place, item, "topic")?,
        (None, Some(_)) => needed(place, item, "header")?,
    };
    let known = questions.iter().find(|question| same(question.header.as_str(), topic));
    let rationale = match item.get("rationale") {
        None | Some(Value::Null) => Prose::default(),
        Some(_) => Prose::new(needed(place, item, "rationale")?),
    };
    let answered = match (item.get("question"), known) {
        (None, Some(question)) => {
            let picks = picks(&format!("{place}.answer"), item.get("answer"), question)?;
            question.answered(&picks)
        }
        _ => Answered {
            topic: Line::new(topic),
            question: Prose::new(needed(place, item, "question")?),
            answer: Prose::new(needed(place, item, "answer")?),
            rationale: Prose::default(),
            place: Uncompared::default(),
        },
    };
    Ok(if rationale.is_empty() { answered } else { Answered { rationale, ..answered } })
}

/// Whether nothing is left of a text in a document, which has no control characters.
fn is_blank(text: &str) -> bool {
    Line::new(text).is_empty()
}

/// A text that must be there and not be blank.
fn needed<'j>(
    place: &str,
    item: &'j Map<String, Value>,
    field: &str,
) -> Result<&'j str, AnswersError> {
    let at = format!("{place}.{field}");
    match item.get(field) {
        None => wrong(at, "it is missing"),
        Some(Value::String(text)) if is_blank(text) => wrong(at, "the text is empty"),
        Some(Value::String(text)) => Ok(text),
        Some(_) => wrong(at, "a text is wanted"),
    }
}

fn short(
    object: &Map<String, Value>,
    questions: &[Question],
) -> Result<Vec<Answered>, AnswersError> {
    if questions.is_empty() {
        let message = "no questions were proposed, so the questions have to be given as well: \
                       {\"answers\": [{\"topic\": \"...\", \"question\": \"...\", \"answer\": \"...\"}]}";
        return wrong("", message);
    }
    let headers = || questions.iter().map(|question| question.header.as_str());
    if let Some(key) = object.keys().find(|key| !headers().any(|header| same(header, key))) {
        let hint = match nearest(key, headers()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("asked was about {}", headers().collect::<Vec<_>>().join(", ")),
        };
        return wrong(key.as_str(), format!("no question has this header; {hint}"));
    }
    let mut answered = Vec::new();
    for question in questions {
        let header = question.header.as_str();
        let mut given = object.iter().filter(|(key, _)| same(key, header));
        let Some((key, value)) = given.next() else {
            return wrong(header, "this question is not answered");
        };
        if let Some((again, _)) = given.next() {
            return wrong(again.as_str(), "this question is answered twice");
        }
        answered.push(question.answered(&picks(key, Some(value), question)?));
    }
    Ok(answered)
}

fn picks(
    place: &str,
    value: Option<&Value>,
    question: &Question,
) -> Result<Vec<Pick>, AnswersError> {
    let text = |place: String, value: &Value| match value {
        Value::String(text) if is_blank(text) => wrong(place, "the text is empty"),
        Value::String(text) => Ok(question.pick(text)),
        _ => wrong(place, "a text is wanted"),
    };
    match value {
        None => wrong(place, "it is missing"),
        Some(Value::Array(items)) if items.is_empty() => wrong(place, "the list is empty"),
        Some(Value::Array(items)) if items.len() > 1 && !question.multi_select => {
            wrong(place, "one answer is wanted, not several")
        }
        Some(Value::Array(items)) => {
            let items = items.iter().enumerate();
            items.map(|(i, item)| text(format!("{place}[{i}]"), item)).collect()
        }
        Some(value) => Ok(vec![text(place.to_owned(), value)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::questions::tests::questions;
    use super::*;

    /// Topic, answer and reason of each.
    fn read(text: &str, proposed: bool) -> Result<Vec<[String; 3]>, String> {
        let questions = questions();
        let parsed = parse(text, proposed.then_some(&questions));
        let texts =
            |a: Answered| [a.topic.to_string(), a.answer.to_string(), a.rationale.to_string()];
        parsed.map(|all| all.into_iter().map(texts).collect()).map_err(|error| error.to_string())
    }

    fn row(topic: &str, answer: &str, reason: &str) -> [String; 3] {
        [topic.to_owned(), answer.to_owned(), reason.to_owned()]
    }

    #[test]
    fn both_forms_are_read() {
        let short = r#"{"clients": ["Phone", "A kiosk"], "Method": "jwt", "Storage": "A file"}"#;
        let expected = vec![
            row("Method", "JWT", "What JWT means."),
            row("Storage", "A file", ""),
            row("Clients", "Phone, A kiosk", "What Phone means."),
        ];
        assert_eq!(read(short, true), Ok(expected), "in the order of the questions");
        let whole = r#"{"answers": [
            {"topic": "Size", "question": "How large?", "answer": "Small", "rationale": "Cheap."},
            {"header": "Lock", "question": "When?", "answer": "After 5"}]}"#;
        let expected = vec![row("Size", "Small", "Cheap."), row("Lock", "After 5", "")];
        assert_eq!(read(whole, false), Ok(expected.clone()));
        assert_eq!(read(whole, true), Ok(expected));
        let mixed = r#"{"answers": [{"header": "method", "answer": "OAuth"},
            {"header": "Storage", "answer": "SQLite", "rationale": "One file."}]}"#;
        let expected = vec![
            row("Method", "OAuth", "What OAuth means."),
            row("Storage", "SQLite", "One file."),
        ];
        assert_eq!(read(mixed, true), Ok(expected));
    }

    #[test]
    fn errors_name_the_place() {
        let all = r#""Storage": "x", "Clients": "x""#;
        let cases = [
            ("{", true),
            ("[]", true),
            ("{}", true),
            ("{}", false),
            (r#"{"answers": []}"#, true),
            (&format!(r#"{{"Metod": "x", {all}}}"#), true),
            (&format!(r#"{{"Method": "x", "method": "y", {all}}}"#), true),
            (&format!(r#"{{"Method": ["a", "b"], {all}}}"#), true),
            (&format!(r#"{{"Method": 3, {all}}}"#), true),
            (&format!(r#"{{"Method": " ", {all}}}"#), true),
            (r#"{"Method": "x", "Storage": "x", "Clients": ["a", 1]}"#, true),
            (r#"{"Method": "x", "Storage": "x", "Clients": []}"#, true),
            (r#"{"answers": [{"topic": "a", "question": "b"}]}"#, false),
            (r#"{"answers": [{"topic": "a", "answer": "b"}]}"#, true),
            (r#"{"answers": [{"topic": "a", "question": "", "answer": "b"}]}"#, false),
            (r#"{"answers": [{"topic": "a", "question": "q", "anser": "b"}]}"#, false),
            (r#"{"answers": [{"question": "q", "answer": "b"}]}"#, false),
            (
                r#"{"answers": [{"topic": "a", "header": "a", "question": "q", "answer": "b"}]}"#,
                false,
            ),
            (r#"{"answers": [7]}"#, false),
            (r#"{"answers": [{}, {}, {}, {}, {}, {}]}"#, false),
            (r#"{"answers": [{"header": "Method"}]}"#, true),
        ];
        let errors = cases.map(|(text, proposed)| read(text, proposed).unwrap_err());
        insta::assert_snapshot!(errors.join("\n"), @r#"
        it is not JSON: EOF while parsing an object at line 1 column 1
        an object is wanted: {"answers": [...]} or {"<header>": "..."}
        `Method`: this question is not answered
        no questions were proposed, so the questions have to be given as well: {"answers": [{"topic": "...", "question": "...", "answer": "..."}]}
        `answers`: the list is empty
        `Metod`: no question has this header; did you mean `Method`?
        `method`: this question is answered twice
        `Method`: one answer is wanted, not several
        `Method`: a text is wanted
        `Method`: the text is empty
        `Clients[1]`: a text is wanted
        `Clients`: the list is empty
        `answers[0].answer`: it is missing
        `answers[0].question`: it is missing
        `answers[0].question`: the text is empty
        `answers[0].anser`: unknown field; did you mean `answer`?
        `answers[0].topic`: it is missing
        `answers[0]`: `topic` and `header` mean the same; give one
        `answers[0]`: an object with topic, question and answer is wanted
        `answers`: there are 6; at most 5 are kept
        `answers[0].answer`: it is missing
        "#);
    }
}
