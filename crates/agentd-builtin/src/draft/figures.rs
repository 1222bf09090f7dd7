//! Limits in a sentence: how much of what, on which side of it, and what the side decides. A limit
//! that is not understood for certain is none: the requirement has its words anyway.

use super::reading::{Demand, Mood, first_word, read, several_acts};
use super::words::{ENDS_NOUN, FINITE, FINITE_OF_MANY, OTHERWISE, bare};

/// An amount that a sentence sets as a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    /// As the description writes it: `10 MB`, `5 attempts`.
    pub(super) amount: String,
    /// What it measures.
    pub(super) measure: Measure,
    /// Which side of it is meant.
    pub(super) comparison: Comparison,
    /// What that side decides.
    pub(super) role: Role,
    /// The number, of a count.
    pub(super) count: Option<u64>,
}

/// What an amount is an amount of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Of things.
    Count,
    /// Of bytes or pixels.
    Size,
    /// Of time.
    Time,
    /// Of a whole.
    Share,
    /// Of things in a time.
    Rate,
}

/// Which side of an amount is meant, and whether the amount itself belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// `up to`, `within`.
    AtMost,
    /// `under`, `below`.
    LessThan,
    /// `at least`.
    AtLeast,
    /// `over`, `above`.
    MoreThan,
    /// Once there are as many: `after 5 attempts`.
    After,
}

/// What a limit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Beyond it, something happens, and does not before: `warn above 90 %`.
    Trigger,
    /// It must be kept: `at most 10 MB`.
    Bound,
}

/// Units, in lower case, and what they measure.
const UNITS: [(Measure, &[&str]); 4] = [
    (
        Measure::Size,
        &[
            "b",
            "byte",
            "bytes",
            "kb",
            "mb",
            "gb",
            "tb",
            "kib",
            "mib",
            "gib",
            "tib",
            "kilobytes",
            "megabyte",
            "megabytes",
            "gigabyte",
            "gigabytes",
            "px",
            "pixel",
            "pixels",
        ],
    ),
    (
        Measure::Time,
        &[
            "ns",
            "µs",
            "us",
            "ms",
            "s",
            "sec",
            "secs",
            "second",
            "seconds",
            "millisecond",
            "milliseconds",
            "min",
            "mins",
            "minute",
            "minutes",
            "h",
            "hr",
            "hrs",
            "hour",
            "hours",
            "d",
            "day",
            "days",
            "week",
            "weeks",
            "month",
            "months",
            "year",
            "years",
        ],
    ),
    (Measure::Share, &["%", "percent"]),
    (Measure::Rate, &["rps", "qps", "hz", "fps"]),
];

/// What is said in front of an amount. A longer phrase comes before one that it ends with.
const BEFORE: [(&str, Comparison); 48] = [
    ("no more than", Comparison::AtMost),
    ("not more than", Comparison::AtMost),
    ("no longer than", Comparison::AtMost),
    ("not longer than", Comparison::AtMost),
    ("no larger than", Comparison::AtMost),
    ("not larger than", Comparison::AtMost),
    ("not exceed", Comparison::AtMost),
    ("never exceed", Comparison::AtMost),
    ("cannot exceed", Comparison::AtMost),
    ("no less than", Comparison::AtLeast),
    ("not less than", Comparison::AtLeast),
    ("no fewer than", Comparison::AtLeast),
    ("not fewer than", Comparison::AtLeast),
    ("at most", Comparison::AtMost),
    ("up to", Comparison::AtMost),
    ("within", Comparison::AtMost),
    ("a maximum of", Comparison::AtMost),
    ("maximum of", Comparison::AtMost),
    ("maximum", Comparison::AtMost),
    ("max", Comparison::AtMost),
    ("a limit of", Comparison::AtMost),
    ("limited to", Comparison::AtMost),
    ("capped at", Comparison::AtMost),
    ("under", Comparison::LessThan),
    ("below", Comparison::LessThan),
    ("less than", Comparison::LessThan),
    ("fewer than", Comparison::LessThan),
    ("shorter than", Comparison::LessThan),
    ("smaller than", Comparison::LessThan),
    ("younger than", Comparison::LessThan),
    ("lower than", Comparison::LessThan),
    ("at least", Comparison::AtLeast),
    ("a minimum of", Comparison::AtLeast),
    ("minimum of", Comparison::AtLeast),
    ("minimum", Comparison::AtLeast),
    ("more than", Comparison::MoreThan),
    ("longer than", Comparison::MoreThan),
    ("larger than", Comparison::MoreThan),
    ("bigger than", Comparison::MoreThan),
    ("greater than", Comparison::MoreThan),
    ("higher than", Comparison::MoreThan),
    ("older than", Comparison::MoreThan),
    ("exceeds", Comparison::MoreThan),
    ("exceeding", Comparison::MoreThan),
    ("over", Comparison::MoreThan),
    ("above", Comparison::MoreThan),
    ("after", Comparison::After),
    ("once there are", Comparison::After),
];

/// Verbs that hold something inside of a limit.
const KEEPING: [&str; 26] = [
    "be", "is", "are", "have", "has", "contain", "contains", "take", "takes", "last", "need",
    "use", "uses", "limit", "cap", "keep", "hold", "restrict", "reduce", "stay", "remain",
    "answer", "respond", "finish", "complete", "weigh",
];

/// Verbs that say what happens to what is on one side of a limit.
const REACTING: [&str; 24] = [
    "reject", "refuse", "block", "deny", "warn", "alert", "notify", "hide", "delete", "remove",
    "drop", "skip", "ignore", "lock", "throttle", "fail", "stop", "log", "mark", "archive",
    "exclude", "cancel", "expire", "truncate",
];

/// Verbs of what a program can do. If it can do it for more, it can also do it for less.
const CAPABLE: [&str; 12] = [
    "support", "supports", "handle", "serve", "process", "scale", "store", "accept", "allow",
    "manage", "able", "fit",
];

fn at_least_so_much(comparison: Comparison) -> bool {
    matches!(comparison, Comparison::AtLeast | Comparison::MoreThan)
}

/// A limit in a sentence, before its role is known.
struct Candidate {
    /// The word at which the phrase before the amount begins.
    start: usize,
    phrase: &'static str,
    amount: String,
    measure: Measure,
    comparison: Comparison,
    count: Option<u64>,
    number_alone: bool,
}

/// Whether a sentence names a limit, whatever it is for.
pub(super) fn names_limit(sentence: &str) -> bool {
    !candidates(&sentence.split_whitespace().collect::<Vec<_>>()).is_empty()
}

/// The limit of a sentence, if it has one and no other, and it is clear what it is for. A number that
/// is a name, such as a status code or a port, is none.
pub(super) fn limit(sentence: &str) -> Option<Limit> {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let mut candidates = candidates(&words);
    let found = candidates.pop()?;
    if !candidates.is_empty() {
        return None;
    }
    let role = role(sentence, &words, &found)?;
    let Candidate { amount, measure, comparison, count, .. } = found;
    Some(Limit { amount, measure, comparison, role, count })
}

fn candidates(words: &[&str]) -> Vec<Candidate> {
    (0..words.len()).filter_map(|at| candidate(words, at)).collect()
}

fn candidate(words: &[&str], at: usize) -> Option<Candidate> {
    let word = words[at].trim_start_matches('(');
    let bare_number = word.trim_end_matches(PUNCTUATION);
    let digits = bare_number.bytes().take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b','));
    let (number, attached) = bare_number.split_at(digits.count());
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let whole = grouped(number);
    let number_ends = word.len() > bare_number.len();
    let (before, start) = said_before(&words[..at]);
    let mut next = at + 1;
    let mut number_text = bare_number.to_owned();
    // `5 or more attempts`
    let early = (!number_ends && attached.is_empty()).then(|| said_behind(words, next)).flatten();
    if early.is_some() {
        next += 2;
        number.clone_into(&mut number_text);
    }
    let (noun, measure, end) = if attached.is_empty() && !number_ends {
        noun(words, next)?
    } else if attached.is_empty() {
        (String::new(), Measure::Count, next)
    } else {
        (String::new(), measured(attached)?, next)
    };
    let late = if early.is_none() { said_behind(words, end) } else { None };
    let (comparison, phrase) = match (before, early.or(late)) {
        (Some((phrase, comparison)), None) => (comparison, phrase),
        (None, Some(comparison)) => (comparison, ""),
        _ => return None,
    };
    if measure == Measure::Count && whole.is_none() {
        return None;
    }
    let count = whole.filter(|_| measure == Measure::Count);
    let number_alone = noun.is_empty() && attached.is_empty();
    let amount = if noun.is_empty() { number_text } else { format!("{number_text} {noun}") };
    Some(Candidate { start, phrase, amount, measure, comparison, count, number_alone })
}

const PUNCTUATION: [char; 6] = [',', '.', ';', ':', '(', ')'];

/// A whole number, also `10,000`. `5.5` and `1.000`, which means two things, are none.
fn grouped(number: &str) -> Option<u64> {
    let mut groups = number.split(',');
    let first = groups.next()?;
    if number.contains(',') && !(1..=3).contains(&first.len())
        || groups.any(|group| group.len() != 3)
    {
        return None;
    }
    number.replace(',', "").parse().ok()
}

/// The phrase that ends in front of a number, and the word at which it begins.
fn said_before(words: &[&str]) -> (Option<(&'static str, Comparison)>, usize) {
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    for (phrase, comparison) in BEFORE {
        let parts: Vec<&str> = phrase.split(' ').collect();
        if lower.ends_with(&parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>()) {
            return (Some((phrase, comparison)), words.len() - parts.len());
        }
    }
    // `limit uploads to 10 MB`
    let limits = lower.last().is_some_and(|word| word == "to")
        && lower.iter().any(|word| {
            matches!(word.as_str(), "limit" | "limits" | "restrict" | "cap" | "reduce")
        });
    let found = limits.then_some(("to", Comparison::AtMost));
    (found, words.len().saturating_sub(usize::from(limits)))
}

/// `or more` at a word.
fn said_behind(words: &[&str], at: usize) -> Option<Comparison> {
    if words.get(at).map(|word| bare(word)).as_deref() != Some("or") {
        return None;
    }
    match bare(words.get(at + 1)?).as_str() {
        "more" | "longer" | "larger" | "older" | "higher" => Some(Comparison::AtLeast),
        "less" | "fewer" | "shorter" | "smaller" | "lower" => Some(Comparison::AtMost),
        _ => None,
    }
}

/// What is counted or measured from a word on, with `per minute` behind it, and the word behind that.
/// None where it cannot be told where it ends.
fn noun(words: &[&str], from: usize) -> Option<(String, Measure, usize)> {
    let clean = |at: usize| words.get(at).map(|word| word.trim_matches(PUNCTUATION));
    let ends = |at: usize| words[at].ends_with(PUNCTUATION);
    let Some(first) = clean(from) else { return Some((String::new(), Measure::Count, from)) };
    let mut at = from;
    let mut measure = Measure::Count;
    if let Some(found) = measured(first) {
        measure = found;
        at += 1;
    } else {
        while let Some(word) = clean(at).filter(|word| !ENDS_NOUN.contains(&bare(word).as_str())) {
            if matches!(word, "the" | "this" | "all" | "it") || at - from == 3 {
                return None;
            }
            // `fewer than 3 backups exist`
            let is_verb = at > from
                && (FINITE.contains(&bare(word).as_str())
                    || FINITE_OF_MANY.contains(&bare(word).as_str()));
            if is_verb || !word.chars().all(|c| c.is_alphabetic() || c == '-') {
                return None;
            }
            at += 1;
            if ends(at - 1) {
                break;
            }
        }
    }
    let done = at > from && ends(at - 1);
    let each = clean(at).filter(|_| !done).map(str::to_lowercase);
    let period = clean(at + 1);
    match (each.as_deref(), period) {
        (Some("per"), Some(_)) => at += 2,
        (Some("a" | "an" | "each" | "every"), Some(period))
            if measured(period) == Some(Measure::Time) =>
        {
            at += 2;
        }
        // `after 3 tries a message is shown`
        (Some("a" | "an" | "each" | "every"), _) => return None,
        _ => {}
    }
    let text = words[from..at].join(" ");
    Some((text.trim_end_matches(PUNCTUATION).to_owned(), measure, at))
}

fn measured(unit: &str) -> Option<Measure> {
    let unit = unit.to_lowercase();
    if let Some((one, other)) = unit.split_once('/') {
        return (measured(one).is_some() && measured(other) == Some(Measure::Time))
            .then_some(Measure::Rate);
    }
    UNITS.iter().find(|(_, units)| units.contains(&unit.as_str())).map(|(measure, _)| *measure)
}

fn role(sentence: &str, words: &[&str], found: &Candidate) -> Option<Role> {
    let read = read(sentence);
    let before: Vec<String> = words[..found.start].iter().map(|word| bare(word)).collect();
    let has = |known: &[&str]| before.iter().any(|word| known.contains(&word.as_str()));
    let (mood, text) = match read.demand {
        Demand::Act { mood, text, .. } => (mood, text),
        Demand::Duty(text) => (Mood::Plain, text),
        Demand::Unclear(_) => return None,
    };
    // What turns a limit around, or sets when it counts.
    let turned = ["not", "never", "no", "without", "unless", "until", "while", "except"];
    let relative = ["that", "which", "who", "where", "whether", "what", "how"];
    if mood == Mood::Never || read.topic.is_some() || has(&turned) || has(&relative) {
        return None;
    }
    // What holds on the other side is said, too.
    if words.iter().any(|word| OTHERWISE.contains(&bare(word).as_str())) {
        return None;
    }
    let after = found.comparison == Comparison::After;
    if after && found.number_alone {
        return None;
    }
    if read.lead.is_some_and(|lead| found.start < lead.split_whitespace().count()) {
        return Some(Role::Trigger);
    }
    // Of several things that are told, the limit may belong to one.
    if several_acts(text) {
        return None;
    }
    let verb = bare(first_word(text));
    // `Check if more than 5 files are open`
    let asks = matches!(verb.as_str(), "check" | "ask" | "verify" | "test" | "validate" | "detect");
    if after || has(&["when", "whenever", "once"]) || has(&["if"]) && !asks {
        return Some(Role::Trigger);
    }
    if has(&["if"]) || has(&CAPABLE) && at_least_so_much(found.comparison) {
        return None;
    }
    let modal = words.iter().position(|word| {
        matches!(bare(word).as_str(), "must" | "should" | "shall" | "may" | "will")
    });
    if let Some(modal) = modal.filter(|_| matches!(read.demand, Demand::Duty(_))) {
        if found.start < modal {
            return Some(Role::Trigger);
        }
        let behind = words.get(modal + 1).map(|word| bare(word)).unwrap_or_default();
        return bound(found, &before, &behind);
    }
    match read.demand {
        Demand::Act { .. } => bound(found, &before, &verb),
        Demand::Duty(_) | Demand::Unclear(_) => None,
    }
}

/// The role of a limit behind a verb.
fn bound(found: &Candidate, before: &[String], verb: &str) -> Option<Role> {
    let last = before.last().map(String::as_str).unwrap_or_default();
    let reacts = REACTING.contains(&verb);
    // `average over 5 minutes`, `retry over an hour`
    if found.phrase == "over" && found.measure == Measure::Time {
        return None;
    }
    match found.comparison {
        Comparison::AtMost | Comparison::AtLeast => (!reacts).then_some(Role::Bound),
        Comparison::LessThan | Comparison::MoreThan => {
            if KEEPING.contains(&verb) || last == "in" {
                return Some(Role::Bound);
            }
            reacts.then_some(Role::Trigger)
        }
        Comparison::After => Some(Role::Trigger),
    }
}

#[cfg(test)]
mod tests {
    use super::Comparison::{After, AtLeast, AtMost, LessThan, MoreThan};
    use super::Measure::{Count, Rate, Share, Size, Time};
    use super::Role::{Bound, Trigger};
    use super::*;

    // R7: a unit is not a count, and nothing is on the wrong side of its limit
    #[test]
    fn figures_have_units_and_sides() {
        let check = |point: &str, expected: Option<(&str, Measure, Comparison, Role)>| {
            let found = limit(point);
            let found =
                found.as_ref().map(|f| (f.amount.as_str(), f.measure, f.comparison, f.role));
            assert_eq!(found, expected, "{point}");
        };
        for (point, amount, measure, comparison, role) in [
            ("lock after 5 attempts", "5 attempts", Count, After, Trigger),
            ("lock after 5 failed attempts", "5 failed attempts", Count, After, Trigger),
            (
                "After 5 failed attempts, lock the account",
                "5 failed attempts",
                Count,
                After,
                Trigger,
            ),
            ("limit uploads to 10 MB", "10 MB", Size, AtMost, Bound),
            ("limit uploads to 10 MB/s", "10 MB/s", Rate, AtMost, Bound),
            ("accept files up to 10MB", "10MB", Size, AtMost, Bound),
            ("answer within 200 ms", "200 ms", Time, AtMost, Bound),
            ("Search must answer within 200 ms", "200 ms", Time, AtMost, Bound),
            ("answer within 2.5 s", "2.5 s", Time, AtMost, Bound),
            ("answer in under 2 s", "2 s", Time, LessThan, Bound),
            ("warn above 90 %", "90 %", Share, MoreThan, Trigger),
            ("warn above 90%.", "90%", Share, MoreThan, Trigger),
            ("reject files over 10 MB", "10 MB", Size, MoreThan, Trigger),
            ("Files larger than 10 MB must be rejected", "10 MB", Size, MoreThan, Trigger),
            ("keep memory below 300 MB", "300 MB", Size, LessThan, Bound),
            ("Memory must stay below 300 MB", "300 MB", Size, LessThan, Bound),
            ("A page must not exceed 1 MB", "1 MB", Size, AtMost, Bound),
            ("retry at most 3 times", "3 times", Count, AtMost, Bound),
            ("show no more than 20 items per page", "20 items per page", Count, AtMost, Bound),
            ("allow 100 requests a minute or less", "100 requests a minute", Count, AtMost, Bound),
            ("require 5 or more tags", "5 tags", Count, AtLeast, Bound),
            ("expire sessions after 30 minutes", "30 minutes", Time, After, Trigger),
            ("keep at least 12 characters", "12 characters", Count, AtLeast, Bound),
            ("Passwords must have at least 12 characters", "12 characters", Count, AtLeast, Bound),
            ("warn when there are more than 10,000 rows", "10,000 rows", Count, MoreThan, Trigger),
            ("If a call takes more than 2 seconds, log it", "2 seconds", Time, MoreThan, Trigger),
            ("delete files older than 30 days", "30 days", Time, MoreThan, Trigger),
        ] {
            check(point, Some((amount, measure, comparison, role)));
        }
        for none in [
            "exit with code 0",
            "return 401",
            "listen on port 8080",
            "show 20 items per page",
            "support HTTP/2",
            "use sha256",
            "after v2 is out",
            "after 5.5.1",
            "stop after 2026",
            "limit retries to 5.5 tries",
            "average the load over 5 minutes",
            "do not accept files over 10 MB",
            "keep at least 8 and at most 64 characters",
            "retry up to 3 times within 10 seconds",
            "after 3 tries show the captcha",
            "reject passwords with at most 3 letters",
            "support more than 100 users",
            "The server must be able to handle at least 100 users",
            "return 401, and lock the account after 5 tries",
            "set a cookie that must expire after 1 hour",
            "check if more than 5 files are open",
            "notify the owner if fewer than 3 backups exist",
            "limit uploads to 10 MB except for admins",
            "",
        ] {
            check(none, None);
        }
    }
}
