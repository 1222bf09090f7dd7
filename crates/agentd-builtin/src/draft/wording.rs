//! One thing that a description asks for, as a requirement. What a rule cannot word is quoted, and
//! asked about: a rule that rewords it would only pretend to have understood.

use agentd_core::check;

use super::points::is_verb;
use super::{QUOTES, capital};

/// Verbs that ask for something to be there.
const PROVIDE: [&str; 9] =
    ["add", "build", "create", "implement", "include", "introduce", "offer", "provide", "support"];

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

/// Words a point.
pub(super) fn worded(point: &str) -> Worded {
    let quoted = |question: String| Worded::Quoted { point: point.to_owned(), question };
    if let Some(word) = check::vague_words(point).first() {
        return quoted(format!("which figure shows that it is `{word}`: `{point}`?"));
    }
    let (first, rest) = point.split_once(' ').unwrap_or((point, ""));
    let verb = first.to_lowercase();
    if rest.is_empty() && !check::obliges(point) {
        return quoted(format!("what must hold for `{point}`?"));
    }
    if matches!(verb.as_str(), "fix" | "repair" | "correct") {
        // `Fix the greeting: print it on stdout` says what must hold behind the colon.
        return match rest.split_once([':', '：']) {
            Some((_, what)) if !what.trim().is_empty() => worded(what.trim()),
            _ => quoted(format!("what must hold once this is fixed: `{rest}`?")),
        };
    }
    if PROVIDE.contains(&verb.as_str()) {
        Worded::Sentence(format!("The system MUST provide {rest}."))
    } else if is_verb(&verb) {
        Worded::Sentence(format!("The system MUST {verb} {rest}."))
    } else if check::obliges(point) {
        let stop = if point.ends_with(|c: char| c >= '\u{3000}') { "。" } else { "." };
        Worded::Sentence(format!("{}{stop}", capital(point)))
    } else {
        quoted(format!("what must hold for `{point}`?"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R7: a fix is not inverted, and what is not understood is asked
    #[test]
    fn points_are_worded_or_asked_about() {
        for (point, expected) in [
            ("Fix the greeting: print it on stdout", "The system MUST print it on stdout."),
            ("Fix login: users must see an error", "Users must see an error."),
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
