//! One thing that a description asks for, as a requirement. What a rule cannot word is quoted, and
//! asked about: a rule that rewords it would only pretend to have understood.

use agentd_core::check;
use agentd_core::language::is_unspaced;

use super::points::sentences;
use super::reading::{Demand, Mood, Reading, Unclear, first_word, read};
use super::words::{Act, bare};
use super::{QUOTES, capital};

/// A point, in the words of a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Worded {
    /// A sentence that says what must hold.
    Sentence(String),
    /// What no rule can word, and what has to be asked about it.
    Quoted {
        /// The words of the description.
        point: String,
        /// What a person has to say.
        question: String,
    },
}

impl Worded {
    /// What the requirement says.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Sentence(sentence) => sentence.clone(),
            Self::Quoted { point, .. } => {
                format!("The system MUST do {QUOTES}{point}`.")
            }
        }
    }
}

/// Words a point, which is a sentence, or several of which each goes on with the one before.
pub(super) fn worded(point: &str) -> Worded {
    let quoted = |question: String| Worded::Quoted { point: point.to_owned(), question };
    if let Some(word) = check::vague_words(point).first() {
        return quoted(format!("which figure shows that it is `{word}`: `{point}`?"));
    }
    let mut text = String::new();
    for sentence in sentences(point) {
        let worded = match one(sentence.trim()) {
            Ok(worded) => worded,
            Err(Unclear::Fix) => {
                let wrong = point.split_once(' ').map_or(point, |(_, wrong)| wrong);
                return quoted(format!("what must hold once this is fixed: `{wrong}`?"));
            }
            Err(Unclear::Unsaid) => {
                return quoted(format!("what must hold once this is done: `{point}`?"));
            }
            Err(Unclear::Weak) => {
                return quoted(format!("must this hold, or is it what is wrong today: `{point}`?"));
            }
            Err(Unclear::Other) => return quoted(format!("what must hold for `{point}`?")),
        };
        if !text.is_empty() && !text.ends_with('。') {
            text.push(' ');
        }
        text.push_str(&worded);
    }
    if text.is_empty() {
        quoted(format!("what must hold for `{point}`?"))
    } else {
        Worded::Sentence(text)
    }
}

/// A sentence as a requirement, or why there is none.
fn one(sentence: &str) -> Result<String, Unclear> {
    let text = said(&read(sentence))?;
    let stop = if text.ends_with(is_unspaced) { "。" } else { "." };
    Ok(format!("{}{stop}", capital(&text)))
}

fn said(read: &Reading<'_>) -> Result<String, Unclear> {
    let mut text = clause(read.demand)?;
    if let Some(lead) = read.lead {
        text = format!("{lead}, {text}");
    }
    if let Some(topic) = read.topic {
        text = format!("for {topic}: {text}");
    }
    // What follows a semicolon is said of the same topic.
    for more in read.more() {
        text = format!("{text}; {}", said(&more)?);
    }
    Ok(text)
}

fn clause(demand: Demand<'_>) -> Result<String, Unclear> {
    let (act, mood, text) = match demand {
        Demand::Duty(text) => return Ok(text.to_owned()),
        Demand::Act { act, mood, text } => (act, mood, text),
        Demand::Unclear(why) => return Err(why),
    };
    let first = first_word(text);
    let (verb, rest) = (first.to_lowercase(), text[first.len()..].trim());
    Ok(match (mood, act) {
        (Mood::Never, _) => format!("the system MUST NOT {verb} {rest}"),
        (Mood::Always, _) => format!("the system MUST always {verb} {rest}"),
        // `a column to the table` is nothing that could be provided.
        (Mood::Plain, Act::Provide) if names_a_thing(rest) => {
            format!("the system MUST provide {rest}")
        }
        (Mood::Plain, Act::OfPeople) => format!("people MUST be able to {verb} {rest}"),
        (Mood::Plain, Act::Behavior) => format!("the system MUST {verb} {rest}"),
        (Mood::Plain, Act::Provide | Act::Work | Act::Unsaid) => {
            format!("this MUST be done: {verb} {rest}")
        }
    })
}

/// Whether a text is a noun for something in the program, and not more than that.
fn names_a_thing(text: &str) -> bool {
    let ties = [
        "to",
        "into",
        "from",
        "on",
        "in",
        "when",
        "if",
        "after",
        "before",
        "every",
        "each",
        "once",
        "test",
        "tests",
        "docs",
        "documentation",
        "comment",
        "comments",
        "readme",
        "changelog",
    ];
    !text.split_whitespace().any(|word| ties.contains(&bare(word).as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // R7: a fix is not inverted, and what is not understood is asked
    #[test]
    fn points_are_worded_or_asked_about() {
        for (point, expected) in [
            (
                "Fix the greeting: print it on stdout",
                "For the greeting: the system MUST print it on stdout.",
            ),
            ("Fix login: users must see an error", "For login: users must see an error."),
            ("add login with email", "The system MUST provide login with email."),
            ("exit with code 0", "The system MUST exit with code 0."),
            ("limit uploads to 10 MB", "The system MUST limit uploads to 10 MB."),
            ("系統必須顯示錯誤訊息", "系統必須顯示錯誤訊息。"),
        ] {
            assert_eq!(worded(point), Worded::Sentence(expected.to_owned()), "{point}");
        }
        for (point, expected) in [
            ("Make search faster", "which figure shows that it is `faster`: `Make search faster`?"),
            ("讓搜尋更快", "which figure shows that it is `更快`: `讓搜尋更快`?"),
            ("Fix the crash", "what must hold once this is fixed: `the crash`?"),
            ("Fix the crash:", "what must hold once this is fixed: `the crash:`?"),
            (
                "Fix speed: make it fast",
                "which figure shows that it is `fast`: `Fix speed: make it fast`?",
            ),
            ("dark mode", "what must hold for `dark mode`?"),
            ("oauth", "what must hold for `oauth`?"),
        ] {
            let Worded::Quoted { question, .. } = worded(point) else { panic!("{point}") };
            assert_eq!(question, expected);
        }
    }
}
