//! Rules for the words of requirements. They are heuristics: none of them is
//! HIGH, and each names the word that it stumbled over.

use std::sync::OnceLock;

use memchr::memmem;

use crate::diagnostic::Diagnostic;
use crate::document::spec::{Requirement, Scenario};
use crate::rules;
use crate::span::Span;

/// Words that promise something without saying what. Lower case; phrases are
/// matched word by word.
static VAGUE: Words = Words::new(&[
    "fast",
    "quick",
    "quickly",
    "rapid",
    "rapidly",
    "slow",
    "easy",
    "easily",
    "user-friendly",
    "intuitive",
    "intuitively",
    "appropriate",
    "appropriately",
    "adequate",
    "adequately",
    "reasonable",
    "reasonably",
    "efficient",
    "efficiently",
    "robust",
    "robustly",
    "flexible",
    "seamless",
    "seamlessly",
    "scalable",
    "state-of-the-art",
    "gracefully",
    "properly",
    "sufficient",
    "sufficiently",
    "modern",
    "nice",
    "smart",
    "if possible",
    "where possible",
    "as needed",
    "as necessary",
    "if needed",
    "if necessary",
    "as appropriate",
    "and so on",
    "and/or",
    "etc",
    "as soon as possible",
    "best effort",
    "high quality",
    "high performance",
]);

const OBLIGATION: &[&str] = &["must", "shall", "should", "may", "will", "required", "requires"];

/// Word starts that name something that can be seen from outside.
static OBSERVABLE: Words = Words::new(&[
    "return", "respon", "answer", "reject", "refus", "error", "message", "status", "stor", "show",
    "display", "log", "emit", "writ", "creat", "delet", "remov", "exit", "equal", "exact", "most",
    "least", "within", "before", "after", "until", "contain", "list", "unique", "redirect", "send",
    "sent", "print", "record", "lock", "expire", "notif", "accept", "allow", "den", "valid",
    "only", "never", "always", "every", "each", "no", "not", "all", "any", "one", "two", "three",
    "first", "last", "same", "between", "when", "if", "sort", "encrypt", "hash", "sign", "signed",
    "read", "open", "clos", "start", "stop", "retr", "count", "limit", "match", "add", "replac",
]);

static UNHAPPY: Words = Words::new(&[
    "error",
    "fail",
    "invalid",
    "wrong",
    "missing",
    "refus",
    "reject",
    "denied",
    "deny",
    "denies",
    "expire",
    "timeout",
    "time-out",
    "timed",
    "unavailable",
    "without",
    "empty",
    "exceed",
    "unknown",
    "duplicate",
    "lock",
    "conflict",
    "cannot",
    "not",
    "no",
    "never",
    "unauthorized",
    "unauthorised",
    "forbidden",
    "abort",
    "cancel",
    "corrupt",
    "broken",
    "malformed",
    "unreachable",
    "crash",
    "interrupt",
    "overflow",
    "too",
    "already",
    "absent",
    "incorrect",
    "bad",
    "down",
    "lost",
    "illegal",
    "mismatch",
    "stale",
    "revoked",
]);

/// A list of words, found by their first letter: every word of every
/// requirement is looked up in all of them.
struct Words {
    words: &'static [&'static str],
    by_letter: OnceLock<[Vec<&'static str>; 26]>,
}

impl Words {
    const fn new(words: &'static [&'static str]) -> Self {
        Self { words, by_letter: OnceLock::new() }
    }

    /// The words of the list that begin with the same letter as `word`, which is lower case.
    fn like(&self, word: &str) -> &[&'static str] {
        let table = self.by_letter.get_or_init(|| {
            std::array::from_fn(|letter| {
                let first =
                    |word: &str| word.bytes().next().map(|b| usize::from(b.wrapping_sub(b'a')));
                self.words.iter().copied().filter(|word| first(word) == Some(letter)).collect()
            })
        });
        let letter = word.bytes().next().map_or(usize::MAX, |b| usize::from(b.wrapping_sub(b'a')));
        table.get(letter).map_or(&[], Vec::as_slice)
    }
}

/// The words of a text with their places; hyphens and slashes hold a word together.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = text.as_bytes();
    // Letters beyond ASCII are distinguished from dashes and quotes; the rest needs no decoding.
    let word_len = move |at: usize| match bytes[at] {
        b if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'/' | b'_') => 1,
        b if b.is_ascii() => 0,
        _ => text
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .filter(|c| c.is_alphanumeric())
            .map_or(0, char::len_utf8),
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && word_len(at) == 0 {
            at += 1;
        }
        let start = at;
        while at < bytes.len() {
            match word_len(at) {
                0 => break,
                len => at += len,
            }
        }
        (start < at).then(|| (start, &text[start..at]))
    })
}

/// Rules for one requirement. `whole` is the text of the document, so that a
/// word can be pointed at.
pub(super) fn requirement(requirement: &Requirement, whole: &str, found: &mut Vec<Diagnostic>) {
    let section = requirement.section.0;
    let body_start = requirement.place.0.end;
    let end = requirement.scenarios.first().map_or(section.end, |s| s.place.0.start);
    let body = whole.get(body_start..end).unwrap_or_default();
    let place = requirement.place.0;
    placeholders(body, Span::at(body_start), found);
    let mut obliged = false;
    let mut observable = body.contains(['`', '"', '“']);
    let mut previous = "";
    let mut in_code = false;
    let mut scanned = 0;
    let mut lower = String::new();
    for (start, word) in words(body) {
        // Names in backticks are not prose.
        in_code ^= memchr::memchr_iter(b'`', &body.as_bytes()[scanned..start]).count() % 2 == 1;
        scanned = start;
        if in_code {
            continue;
        }
        lower.clear();
        lower.extend(word.chars().map(|c| c.to_ascii_lowercase()));
        obliged |= OBLIGATION.contains(&&*lower);
        observable |= word.starts_with(|c: char| c.is_ascii_digit())
            || OBSERVABLE.like(&lower).iter().any(|stem| lower.starts_with(stem));
        if let Some(vague) = vague(previous, &lower, &body[start..]) {
            let span = Span::new(body_start + start, body_start + start + vague.len());
            let message = format!("`{vague}` can mean anything in {}", requirement.id);
            found.push(rules::VAGUE_WORD.at(span, message));
        }
        previous = word;
    }
    if !obliged {
        let message = format!("{} says neither MUST nor SHALL nor SHOULD", requirement.id);
        found.push(rules::NO_OBLIGATION.at(place, message));
    }
    if !observable {
        let message = format!("{} names no outcome that can be observed", requirement.id);
        found.push(rules::NOT_MEASURABLE.at(place, message));
    }
}

/// The vague word or phrase that starts here.
fn vague(previous: &str, lower: &str, rest: &str) -> Option<&'static str> {
    VAGUE.like(lower).iter().copied().find(|&phrase| {
        if !phrase.contains(' ') {
            // "not easy to guess" and "too fast" are still vague; "as fast as 5 ms" is not.
            return phrase == lower && !previous.eq_ignore_ascii_case("as");
        }
        phrase.starts_with(lower)
            && rest.get(..phrase.len()).is_some_and(|start| start.eq_ignore_ascii_case(phrase))
            && !rest[phrase.len()..].starts_with(char::is_alphanumeric)
    })
}

/// Words that say that something is still to be said.
const OPEN: [&str; 4] = ["TBD", "TODO", "FIXME", "XXX"];

/// TBD, TODO and their like.
pub(super) fn placeholders(text: &str, place: Span, found: &mut Vec<Diagnostic>) {
    // Hardly any text has one, and looking for the bytes is quicker than for words.
    if !["TBD", "TODO", "FIXME", "XXX", "???"]
        .iter()
        .any(|mark| memmem::find(text.as_bytes(), mark.as_bytes()).is_some())
    {
        return;
    }
    for (start, word) in words(text) {
        if OPEN.contains(&word) {
            let at = place.start + start;
            let span =
                if place.start == place.end { Span::new(at, at + word.len()) } else { place };
            found.push(rules::PLACEHOLDER.at(span, format!("`{word}` is left open")));
        }
    }
    if let Some(start) = text.find("???") {
        let at = place.start + start;
        let span = if place.start == place.end { Span::new(at, at + 3) } else { place };
        found.push(rules::PLACEHOLDER.at(span, "`???` is left open"));
    }
}

/// The words in a text that promise something without saying what.
pub fn vague_words(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut previous = "";
    for (start, word) in words(text) {
        let known = vague(previous, &word.to_ascii_lowercase(), &text[start..]);
        found.extend(known.filter(|word| !found.contains(word)));
        previous = word;
    }
    found
}

/// TBD, TODO and their like, as they stand in a text.
pub fn open_points(text: &str) -> Vec<&'static str> {
    let mut found: Vec<&str> =
        OPEN.into_iter().filter(|mark| words(text).any(|(_, word)| word == *mark)).collect();
    found.extend(text.contains("???").then_some("???"));
    found
}

/// Whether a scenario describes something that goes wrong.
pub fn is_unhappy(scenario: &Scenario) -> bool {
    let texts = std::iter::once(scenario.name.as_str())
        .chain(scenario.steps.iter().map(|s| s.text.as_str()));
    texts.into_iter().any(|text| {
        words(text).any(|(_, word)| {
            let lower = word.to_ascii_lowercase();
            let http_error = lower.len() == 3
                && (lower.starts_with('4') || lower.starts_with('5'))
                && lower.bytes().all(|b| b.is_ascii_digit());
            http_error
                || UNHAPPY.like(&lower).iter().any(|stem| match stem.len() {
                    0..=3 => lower == *stem,
                    _ => lower.starts_with(stem),
                })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::spec;

    fn codes(requirement_text: &str) -> Vec<(String, String)> {
        let text = format!("## Requirements\n### R1: T\n{requirement_text}\n");
        let spec = spec::parse(&text).value;
        let mut found = Vec::new();
        requirement(&spec.requirements[0], &text, &mut found);
        found.iter().map(|d| (d.rule.code.to_owned(), d.span.of(&text).to_owned())).collect()
    }

    fn code_list(text: &str) -> Vec<String> {
        codes(text).into_iter().map(|(code, _)| code).collect()
    }

    #[test]
    fn vague_words_are_reported() {
        let found = codes("The page MUST load fast, if possible, and answer 200.");
        assert_eq!(found, [("Q001".into(), "fast".into()), ("Q001".into(), "if possible".into())]);
        assert!(
            codes("It MUST fast-forward `fast` streams within 3 s, as fast as the disk.")
                .is_empty()
        );
        let behind = codes("The `x` page MUST load fast and answer 200.");
        assert_eq!(behind, [("Q001".into(), "fast".into())]);
    }

    #[test]
    fn obligation_outcome_and_placeholders() {
        assert_eq!(code_list("Users are happy."), ["Q002", "Q003"]);
        assert!(code_list("The system MUST return 401.").is_empty());
        assert_eq!(codes("It MUST return TBD."), [("Q005".to_owned(), "TBD".to_owned())]);
        assert_eq!(codes("It MUST return ??? x"), [("Q005".to_owned(), "???".to_owned())]);
    }

    #[test]
    fn words_of_a_text() {
        let cases: [(&str, &[&str], &[&str]); 6] = [
            ("It returns 401.", &[], &[]),
            ("Fast, if possible; fast.", &["fast", "if possible"], &[]),
            ("As fast as the disk, cafe-fast, éfast, fasté.", &[], &[]),
            ("Fast “fast” —fast", &["fast"], &[]),
            ("TBD: XXX, and TBD", &[], &["TBD", "XXX"]),
            ("TODOS or tbd? What???", &[], &["???"]),
        ];
        for (text, vague, open) in cases {
            assert_eq!((vague_words(text).as_slice(), open_points(text).as_slice()), (vague, open));
        }
    }
}
