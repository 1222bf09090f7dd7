//! Rules for the words of requirements. They are heuristics: none of them is
//! HIGH, and each names the word that it stumbled over.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;

use crate::diagnostic::Diagnostic;
use crate::document::spec::{Requirement, Scenario};
use crate::language::{self, Found, Topic, tokens};
use crate::outline::Outline;
use crate::rules;
use crate::span::Span;

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
    let mut comments = comments(body).into_iter().peekable();
    for (start, word) in tokens(body) {
        while comments.next_if(|comment| comment.end <= start).is_some() {}
        if comments.peek().is_some_and(|comment| comment.start <= start) {
            continue;
        }
        // Names in backticks are not prose.
        in_code ^= body.as_bytes()[scanned..start].iter().fold(false, |odd, b| odd ^ (*b == b'`'));
        scanned = start;
        if in_code {
            continue;
        }
        observable = observable || word.starts_with(char::is_numeric);
        let topics = language::topics(word);
        let may_oblige = !obliged && topics.has(Topic::Obligation);
        let may_be_observable = !observable && topics.has(Topic::Observable);
        let may_be_vague = topics.has(Topic::Vague);
        if may_oblige || may_be_observable || may_be_vague {
            language::lower_into(word, &mut lower);
        }
        let rest = &body[start..];
        obliged |= may_oblige && language::find(Topic::Obligation, &lower, rest, 0).is_some();
        observable |=
            may_be_observable && language::find(Topic::Observable, &lower, rest, 0).is_some();
        if may_be_vague {
            for vague in vague(previous, &lower, rest) {
                let at = body_start + start + vague.start;
                let message = format!("`{}` can mean anything in {}", vague.word, requirement.id);
                found.push(rules::VAGUE_WORD.at(Span::new(at, at + vague.len), message));
            }
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

/// The comments of a text, which require nothing.
fn comments(text: &str) -> Vec<Span> {
    if memchr::memchr(b'<', text.as_bytes()).is_none() {
        return Vec::new();
    }
    Outline::scan(text).comments
}

/// The vague words and phrases that start in a token.
fn vague(previous: &str, lower: &str, rest: &str) -> impl Iterator<Item = Found> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let found = language::find(Topic::Vague, lower, rest, from)?;
        from = found.start + found.len.max(1);
        // "not easy to guess" and "too fast" are still vague; "as fast as 5 ms" is not.
        let compared = previous.eq_ignore_ascii_case("as") && !found.word.contains(' ');
        (!compared).then_some(found)
    })
}

/// Words that say that something is still to be said.
const OPEN: [&str; 4] = ["TBD", "TODO", "FIXME", "XXX"];

static MARKS: LazyLock<Vec<memmem::Finder<'_>>> = LazyLock::new(|| {
    OPEN.iter().chain(&["???"]).map(|mark| memmem::Finder::new(mark.as_bytes())).collect()
});

/// TBD, TODO and their like.
pub(super) fn placeholders(text: &str, place: Span, found: &mut Vec<Diagnostic>) {
    // Hardly any text has one, and looking for the bytes is quicker than for words.
    if MARKS.iter().all(|mark| mark.find(text.as_bytes()).is_none()) {
        return;
    }
    for (start, word) in tokens(text) {
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
    let mut lower = String::new();
    for (start, word) in tokens(text) {
        language::lower_into(word, &mut lower);
        for known in vague(previous, &lower, &text[start..]) {
            if !found.contains(&known.word) {
                found.push(known.word);
            }
        }
        previous = word;
    }
    found
}

/// Whether a text says that something must or should be, in any language.
pub fn obliges(text: &str) -> bool {
    language::first(Topic::Obligation, text).is_some()
}

/// The words that say that something must or should be, by their places in a text.
pub fn obligations(text: &str) -> impl Iterator<Item = Range<usize>> {
    let found = language::all(Topic::Obligation, text);
    found.map(|found| found.start..found.start + found.len)
}

/// TBD, TODO and their like, as they stand in a text.
pub fn open_points(text: &str) -> Vec<&'static str> {
    let mut found: Vec<&str> =
        OPEN.into_iter().filter(|mark| tokens(text).any(|(_, word)| word == *mark)).collect();
    found.extend(text.contains("???").then_some("???"));
    found
}

/// Whether a scenario describes something that goes wrong.
pub(super) fn is_unhappy(scenario: &Scenario) -> bool {
    let texts = std::iter::once(scenario.name.as_str())
        .chain(scenario.steps.iter().map(|s| s.text.as_str()));
    let mut lower = String::new();
    texts.into_iter().any(|text| {
        tokens(text).any(|(start, word)| {
            let http_error = word.len() == 3
                && word.starts_with(['4', '5'])
                && word.bytes().all(|b| b.is_ascii_digit());
            let mut fails = || {
                language::lower_into(word, &mut lower);
                language::find(Topic::Unhappy, &lower, &text[start..], 0).is_some()
            };
            http_error || (language::topics(word).has(Topic::Unhappy) && fails())
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
