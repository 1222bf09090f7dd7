//! What a rule understands of one sentence: what it is about, in which case, and what is asked for. It
//! is for short sentences that mean one thing; of everything else it says that it does not understand.

use std::ops::Range;

use agentd_core::check;
use agentd_core::language::is_unspaced;

use super::figures::names_limit;
use super::words::{
    ASKING, Act, BACK, BACK_UNSPACED, BUT, CASES, DETERMINERS, ENDS_NOUN, ENGLISH, FINITE,
    FINITE_OF_MANY, FORBIDDING, FOREIGN, LEADS, MEANS, OF_CLAUSES, OTHERWISE, RELATIVE,
    UNSPACED_VERBS, WEAK, WISHING, act, bare, may_be_noun,
};

/// A sentence, taken apart. Its parts are slices of it: nothing is reworded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading<'t> {
    /// What it is about, before a colon: the greeting, in `Fix the greeting: print it on stdout`.
    pub(super) topic: Option<&'t str>,
    /// What stands in front of a comma: `When the disk is full`.
    pub(super) lead: Option<&'t str>,
    /// The rest of it, up to a semicolon.
    pub(super) demand: Demand<'t>,
    /// What follows the semicolon, and is said of the same topic.
    rest: Option<&'t str>,
}

impl<'t> Reading<'t> {
    /// The sentences behind the first, on the same topic.
    pub(super) fn more(&self) -> impl Iterator<Item = Reading<'t>> {
        let parts = self.rest.unwrap_or_default().split([';', '；']).map(str::trim);
        parts.filter(|part| !part.is_empty()).map(|part| reading(None, part))
    }
}

/// What a sentence asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand<'t> {
    /// It says itself who must do what: `Search must answer within 200 ms`.
    Duty(&'t str),
    /// It tells somebody to do something: `show an error`.
    Act {
        /// What becomes of the verb.
        act: Act,
        /// Whether it is to be done.
        mood: Mood,
        /// The verb and everything behind it.
        text: &'t str,
    },
    /// No rule understands it.
    Unclear(Unclear),
}

/// Whether something is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    /// `show`.
    Plain,
    /// `always show`.
    Always,
    /// `never show`, `do not show`.
    Never,
}

/// Why a sentence is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unclear {
    /// It says what is wrong, and not what is right.
    Fix,
    /// Its verb has no end that could be seen: `improve`.
    Unsaid,
    /// It says what can be, which may be what is wrong: `Users can log in without a password`.
    Weak,
    /// Anything else.
    Other,
}

/// Takes a sentence apart.
pub(super) fn read(sentence: &str) -> Reading<'_> {
    let (scope, sentence) = without_prefix(sentence.trim());
    let plain = reading(scope, sentence);
    let Some((before, behind)) = split_at_colon(sentence) else { return plain };
    let topic = match act(first_word(before)) {
        Some(Act::Unsaid) => before.split_once(' ').map_or("", |(_, rest)| rest).trim(),
        // `Login page: show an error`, `Search: answer within 200 ms`.
        _ if may_be_topic(before) => before,
        _ => return plain,
    };
    let parts = behind.split_once([';', '；']);
    let (first, rest) = parts.map_or((behind, None), |(first, rest)| (first.trim(), Some(rest)));
    let read = reading(Some(topic).filter(|topic| !topic.is_empty()), first);
    if matches!(read.demand, Demand::Unclear(_)) { plain } else { Reading { rest, ..read } }
}

/// Whether a text speaks of something that was said before it.
pub(super) fn looks_back(text: &str) -> bool {
    text.split_whitespace().any(|word| BACK.contains(&bare(word).as_str()))
        || BACK_UNSPACED.iter().any(|word| text.contains(word))
}

/// The two sides of the first colon that separates.
pub(super) fn split_at_colon(sentence: &str) -> Option<(&str, &str)> {
    let (before, behind) = sentence.split_once(": ").or_else(|| sentence.split_once('：'))?;
    let (before, behind) = (before.trim(), behind.trim());
    (!before.is_empty() && !behind.is_empty()).then_some((before, behind))
}

/// Without `please`, and without the mark of a commit, whose scope is a topic: `feat(auth): add login`.
fn without_prefix(sentence: &str) -> (Option<&str>, &str) {
    let (mut scope, mut rest) = (None, sentence);
    if let Some((mark, behind)) = rest.split_once(": ") {
        let mark = mark.trim_end_matches('!');
        let (kind, named) = mark.split_once('(').unwrap_or((mark, ""));
        if MARKS.contains(&kind) {
            scope = named.strip_suffix(')').filter(|scope| !scope.is_empty());
            rest = behind.trim_start();
        }
    }
    let starts =
        |word: &&&str| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let polite = ["please ", "also ", "and "];
    (scope, polite.iter().find(starts).map_or(rest, |word| rest[word.len()..].trim_start()))
}

const MARKS: [&str; 8] = ["feat", "fix", "docs", "chore", "perf", "style", "ci", "refactor"];

/// A topic is a few words without a verb in front of them; a verb alone may be a noun.
fn may_be_topic(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let first = bare(words[0]);
    words.len() <= 6
        && (act(&first).is_none() || words.len() == 1 && may_be_noun(&first))
        && !LEADS.contains(&first.as_str())
        && !check::obliges(text)
}

fn reading<'t>(topic: Option<&'t str>, sentence: &'t str) -> Reading<'t> {
    let leads = LEADS.contains(&bare(first_word(sentence)).as_str());
    let commas = sentence.match_indices([',', '，']).filter(|_| leads);
    for (at, comma) in commas {
        let lead = &sentence[..at];
        // `When list, show or edit are pressed` has its comma in a list.
        let least = if begins_case(first_word(lead)) { 3 } else { 2 };
        if lead.split_whitespace().count() < least {
            continue;
        }
        let main = sentence[at + comma.len()..].trim_start();
        let main = main.strip_prefix("then ").unwrap_or(main);
        match demand(main, Order::Inverted) {
            Demand::Unclear(Unclear::Other | Unclear::Weak) => {}
            demand => return Reading { topic, lead: Some(lead), demand, rest: None },
        }
    }
    Reading { topic, lead: None, demand: demand(sentence, Order::Usual), rest: None }
}

/// Whether the subject of a main clause comes before its verb. `Wenn …, muss die App …` has it behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Usual,
    Inverted,
}

fn demand(text: &str, order: Order) -> Demand<'_> {
    let (mood, told) = mood(text);
    let asks = ASKING.contains(&bare(first_word(told)).as_str());
    if asks || text.ends_with(['?', '？', '…']) {
        return other();
    }
    if obliges(text, order) {
        return Demand::Duty(text);
    }
    let verb = first_word(told);
    let Some(act) = act(&bare(verb)).filter(|_| is_english(text)) else {
        let wishes = text.split_whitespace().any(|word| WISHING.contains(&bare(word).as_str()));
        return if is_weak(text) && !wishes { Demand::Unclear(Unclear::Weak) } else { other() };
    };
    let rest = told[verb.len()..].trim();
    let says_what_is = act != Act::Unsaid && states(&bare(verb), rest);
    let next = bare(first_word(rest));
    if rest.is_empty() || verb.ends_with(':') || says_what_is {
        return other();
    }
    if is_of_people(&bare(verb), &next) {
        // `Log in JSON` is the program's business.
        let after = rest.split_whitespace().nth(1).map(bare).unwrap_or_default();
        let means = MEANS.contains(&after.as_str()) && mood == Mood::Plain;
        return if means { Demand::Act { act: Act::OfPeople, mood, text: told } } else { other() };
    }
    let several = verb.ends_with(',') || matches!(next.as_str(), "and" | "or" | "");
    match act {
        Act::Unsaid if matches!(bare(verb).as_str(), "fix" | "repair" | "correct") => {
            Demand::Unclear(Unclear::Fix)
        }
        // `Reduce memory to under 300 MB` has an end that can be seen.
        Act::Unsaid if !names_limit(told) => Demand::Unclear(Unclear::Unsaid),
        _ if several && mood == Mood::Plain => Demand::Act { act: Act::Work, mood, text: told },
        _ => Demand::Act { act, mood, text: told },
    }
}

fn other() -> Demand<'static> {
    Demand::Unclear(Unclear::Other)
}

fn mood(text: &str) -> (Mood, &str) {
    let behind = |words: &str| {
        let rest = text.get(words.len()..)?;
        text[..words.len()].eq_ignore_ascii_case(words).then(|| rest.trim_start())
    };
    let negative = ["do not ", "don't ", "don’t ", "never "];
    if let Some(rest) = negative.into_iter().find_map(behind) {
        return (Mood::Never, rest);
    }
    behind("always ").map_or((Mood::Plain, text), |rest| (Mood::Always, rest))
}

/// Whether the main clause of a sentence obliges.
fn obliges(text: &str, order: Order) -> bool {
    let words = || text.split_whitespace().map(bare);
    if words().any(|word| BUT.contains(&word.as_str())) || text.contains(['但', '却', '卻']) {
        return false;
    }
    let forbids = words().any(|word| FORBIDDING.contains(&word.as_str()));
    let strong = |word: &Range<usize>| {
        text.get(word.clone()).is_some_and(|word| {
            let word = word.to_lowercase();
            let permits = matches!(word.as_str(), "may" | "darf" | "dürfen");
            !WEAK.contains(&word.as_str()) || permits && forbids
        })
    };
    let mut obligations = check::obligations(text).filter(strong);
    if text.contains(|c| matches!(c, '\u{3040}'..='\u{30ff}')) {
        // The verb comes last in Japanese: what obliges before it obliges something else.
        return obligations
            .any(|word| text.get(word.end..).is_some_and(|behind| behind.chars().count() <= 4));
    }
    let Some(word) = obligations.next() else { return false };
    let Some(subject) = text.get(..word.start) else { return false };
    if text.starts_with(is_unspaced) {
        return !UNSPACED_VERBS.iter().any(|verb| text.starts_with(verb));
    }
    if subject.is_empty() { order == Order::Inverted } else { is_subject(subject.trim_end()) }
}

/// Whether a sentence says what can, may or will be.
fn is_weak(text: &str) -> bool {
    let can = |word: &str| matches!(bare(word).as_str(), "can" | "cannot" | "can't");
    let weak = |word: Range<usize>| {
        text.get(word).is_some_and(|word| WEAK.contains(&word.to_lowercase().as_str()))
    };
    check::obligations(text).any(weak) || text.split_whitespace().any(can)
}

/// Whether a sentence that begins with a verb says what is the case: `Search results are lost`.
fn states(verb: &str, rest: &str) -> bool {
    let noun = may_be_noun(verb);
    let words: Vec<String> = rest.split_whitespace().map(bare).collect();
    let goes_on =
        |at: usize| words.get(at + 1).is_some_and(|next| !ENDS_NOUN.contains(&next.as_str()));
    for (at, word) in words.iter().map(String::as_str).enumerate() {
        let first = at == 0;
        if RELATIVE.contains(&word) || CASES.contains(&word) {
            return false;
        }
        // `Import failed on Windows`, and not `Retry failed requests`.
        let adjective = matches!(word, "failed" | "crashed" | "lost") && goes_on(at);
        if FINITE.contains(&word) && !adjective || first && ASKING.contains(&word) {
            return !OF_CLAUSES.contains(&verb);
        }
        // `List updates the wrong row`, and not `Limit uploads to 10 MB`.
        let stem = word.strip_suffix("es").filter(|stem| may_be_noun(stem));
        let third =
            first && goes_on(at) && stem.or(word.strip_suffix('s')).is_some_and(may_be_noun);
        if noun && (third || FINITE_OF_MANY.contains(&word)) {
            return true;
        }
        // Behind these, a verb that is no noun has its object.
        if !noun && (DETERMINERS.contains(&word) || word == "to") {
            return false;
        }
    }
    false
}

/// Whether people do it, and not the program: `Log in with Google`.
fn is_of_people(verb: &str, next: &str) -> bool {
    matches!((verb, next), ("log" | "sign", "in" | "on" | "up"))
}

/// Whether the words in front of a modal verb are its subject: a noun with what belongs to it.
fn is_subject(text: &str) -> bool {
    let words: Vec<String> = text.split_whitespace().map(bare).collect();
    let Some(first) = words.first() else { return false };
    if text.contains([',', ':']) || words.iter().any(|word| RELATIVE.contains(&word.as_str())) {
        return false;
    }
    if act(first).is_none() {
        return true;
    }
    // `Search must answer`, `Test results must be kept`, and not `Show users what they must do`.
    let determined = words[1..].iter().any(|word| DETERMINERS.contains(&word.as_str()));
    may_be_noun(first) && !determined && words.len() <= 4
}

/// Whether a text with an English verb in front is English: `Test`, `Export` and `Import` are words of
/// other languages as well.
fn is_english(text: &str) -> bool {
    let count = |words: &[&str]| {
        text.split_whitespace().filter(|word| words.contains(&bare(word).as_str())).count()
    };
    let foreign = count(&FOREIGN);
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let strange = letters.clone().filter(|c| !c.is_ascii()).count();
    (foreign == 0 || foreign < count(&ENGLISH)) && strange * 4 <= letters.count()
}

/// The case in which something must hold, and what must hold then, where a sentence says so: `the
/// disk is full` and `show an error`.
pub(super) fn case<'t>(sentence: &'t str, read: &Reading<'t>) -> Option<(&'t str, &'t str)> {
    let main = match read.demand {
        Demand::Duty(text) => text,
        Demand::Act { text, mood: Mood::Plain, .. } => text,
        Demand::Act { .. } | Demand::Unclear(_) => return None,
    };
    // `Print a when it is done, otherwise print b` has a second case.
    let otherwise =
        sentence.split_whitespace().any(|word| OTHERWISE.contains(&bare(word).as_str()));
    if !is_english(sentence) || read.topic.is_some() || otherwise {
        return None;
    }
    if let Some(lead) = read.lead {
        let (word, case) = lead.split_once(' ')?;
        return begins_case(word).then_some((case.trim(), main));
    }
    let (holds, case) = main.split_once(" when ")?;
    // `Show when it was read` and `Record the date when` say when in another sense.
    let last = bare(holds.rsplit(' ').next().unwrap_or_default());
    let of_time = matches!(
        last.as_str(),
        "time"
            | "date"
            | "day"
            | "moment"
            | "hour"
            | "year"
            | "and"
            | "or"
            | "not"
            | "only"
            | "except"
    );
    let once = !case.contains(" when ")
        && !case.contains([',', ';'])
        && !holds.contains(" if ")
        && !several_acts(main);
    (holds.contains(' ') && !of_time && once).then_some((case, holds))
}

fn begins_case(word: &str) -> bool {
    matches!(bare(word).as_str(), "when" | "whenever" | "if" | "once")
}

/// Whether a text tells several things, so that it is open to which of them the rest of it belongs:
/// `Export all rows, and beep when it is done`.
pub(super) fn several_acts(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).any(|pair| {
        let joint = pair[0].ends_with([',', ';'])
            || matches!(bare(pair[0]).as_str(), "and" | "or" | "then");
        joint && act(&bare(pair[1])).is_some()
    })
}

pub(super) fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}
