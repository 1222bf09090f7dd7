//! Words of natural languages by which documents and descriptions are judged: what obliges, what
//! is vague, what goes wrong, what is risky. All languages are known at the same time, since
//! documents mix them.
//!
//! Each language is a file in `language/`, with the words of each `Topic` under its name,
//! separated by commas. A word counts as a whole, in any case; with a `*` at its end, as the
//! beginning of a word; words with spaces between them as a phrase. Chinese and Japanese are written
//! without spaces, so that their words count wherever they are, except for the longer words that
//! follow with a `!`: `應 !應用` is "should", and not in "application". Under `[headings]` stands what
//! a heading means: `Warum = Why`; under `[keywords]`, what the first word of a step means:
//! `Wenn = WHEN`, as in Cucumber's languages. Another language is another file and a row in `FILES`.

mod tag;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use tag::LanguageTag;

static FILES: [&str; 7] = [
    include_str!("language/english.txt"),
    include_str!("language/traditional_chinese.txt"),
    include_str!("language/simplified_chinese.txt"),
    include_str!("language/japanese.txt"),
    include_str!("language/german.txt"),
    include_str!("language/french.txt"),
    include_str!("language/spanish.txt"),
];

/// What a word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    /// Something has to be.
    Obligation,
    /// Something is promised without saying what.
    Vague,
    /// Something can be seen from outside.
    Observable,
    /// Something goes wrong.
    Unhappy,
    /// A change is about security.
    Security,
    /// A change is about money.
    Money,
    /// A change moves data.
    Migration,
    /// Things happen at the same time.
    Concurrency,
    /// A change breaks something.
    Breaking,
    /// A change is about what is kept.
    Persistence,
    /// A change is about the structure of the code.
    Structure,
    /// A change is about people's data.
    Privacy,
    /// A change is small.
    Small,
}

impl Topic {
    const ALL: [(Self, &'static str); 13] = [
        (Self::Obligation, "obligation"),
        (Self::Vague, "vague"),
        (Self::Observable, "observable"),
        (Self::Unhappy, "unhappy"),
        (Self::Security, "security"),
        (Self::Money, "money"),
        (Self::Migration, "migration"),
        (Self::Concurrency, "concurrency"),
        (Self::Breaking, "breaking"),
        (Self::Persistence, "persistence"),
        (Self::Structure, "structure"),
        (Self::Privacy, "privacy"),
        (Self::Small, "small"),
    ];
}

/// A word of a list.
#[derive(Debug)]
struct Entry {
    word: &'static str,
    /// Its second byte if that is ASCII, which rules out most of the entries at once.
    second: Option<u8>,
    kind: Kind,
}

impl Entry {
    /// Whether a token with this second byte may be the word, or begin it.
    fn has_second(&self, of_token: Option<u8>) -> bool {
        match (self.second, of_token) {
            (None, _) => true,
            // "a few" begins with the whole token "a".
            (Some(second), None) => !IN_WORDS[usize::from(second)],
            (Some(second), Some(of_token)) => second == of_token,
        }
    }
}

#[derive(Debug)]
enum Kind {
    Whole,
    Beginning,
    /// Several words, which go on behind the token; the last one may be the beginning of a word.
    Phrase {
        open: bool,
    },
    /// Anywhere, but not inside of these.
    Unspaced(Vec<&'static str>),
}

/// The words of one topic in all languages, found by their first letter: every word of every
/// requirement is looked up.
#[derive(Debug, Default)]
struct Words {
    ascii: [Vec<Entry>; 26],
    others: HashMap<char, Vec<Entry>>,
}

impl Words {
    fn add(&mut self, text: &'static str) {
        let mut parts = text.split('!').map(str::trim);
        let Some(word) = parts.next() else { return };
        let beginning = word.strip_suffix('*');
        let kind = match beginning {
            _ if word.contains(is_unspaced) => Kind::Unspaced(parts.collect()),
            _ if word.contains([' ', '\'']) => Kind::Phrase { open: beginning.is_some() },
            Some(_) => Kind::Beginning,
            None => Kind::Whole,
        };
        let word = beginning.unwrap_or(word);
        let Some(first) = word.chars().next() else { return };
        let second = word.as_bytes().get(1).copied().filter(u8::is_ascii);
        let entry = Entry { word, second, kind };
        match ascii_index(first) {
            Some(index) => self.ascii[index].push(entry),
            None => self.others.entry(first).or_default().push(entry),
        }
    }

    fn like(&self, first: char) -> &[Entry] {
        let found = match ascii_index(first) {
            Some(index) => Some(&self.ascii[index]),
            None => self.others.get(&first),
        };
        found.map_or(&[], Vec::as_slice)
    }
}

fn ascii_index(c: char) -> Option<usize> {
    c.is_ascii_lowercase().then(|| usize::from(c as u8 - b'a'))
}

struct Tables {
    /// By topic, in the order of their variants.
    topics: [Words; Topic::ALL.len()],
    /// The topics of the words that start with two letters, in lower case.
    beginnings: [[Topics; SECONDS]; 26],
    /// English headings by those of other languages, in lower case.
    headings: HashMap<String, &'static str>,
    /// The words of other languages that begin steps, by their first letter, the longest first.
    keywords: HashMap<char, Vec<Keyword>>,
}

/// A word that begins a step of a scenario.
struct Keyword {
    /// In lower case.
    word: String,
    kind: Kind,
    /// The English one.
    means: &'static str,
}

impl Keyword {
    fn new(item: &'static str) -> Option<Self> {
        let (own, means) = item.split_once(" = ")?;
        let mut parts = own.split('!').map(str::trim);
        let word = parts.next()?;
        let open = word.ends_with('*');
        let kind = if word.contains(is_unspaced) {
            Kind::Unspaced(parts.collect())
        } else {
            Kind::Phrase { open }
        };
        Some(Self { word: folded(word.trim_end_matches('*')), kind, means })
    }

    /// How many bytes of a text it takes, if the text starts with it.
    fn len_in(&self, text: &str) -> Option<usize> {
        match &self.kind {
            Kind::Unspaced(longer) if longer.iter().any(|longer| text.starts_with(longer)) => None,
            Kind::Unspaced(_) => phrase_len(text, &self.word, true),
            Kind::Phrase { open } => phrase_len(text, &self.word, *open),
            Kind::Whole | Kind::Beginning => None,
        }
    }
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut tables = Tables {
        topics: Default::default(),
        beginnings: [[Topics(0); SECONDS]; 26],
        headings: HashMap::new(),
        keywords: HashMap::new(),
    };
    for file in FILES {
        let mut section = "";
        for line in file.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
                continue;
            }
            for item in line.split(',').map(str::trim).filter(|item| !item.is_empty()) {
                match Topic::ALL.into_iter().find(|(_, name)| *name == section) {
                    Some((topic, _)) => tables.topics[topic as usize].add(item),
                    None if section == "keywords" => {
                        let Some(keyword) = Keyword::new(item) else { continue };
                        let Some(first) = keyword.word.chars().next() else { continue };
                        tables.keywords.entry(first).or_default().push(keyword);
                    }
                    None => tables
                        .headings
                        .extend(item.split_once(" = ").map(|(own, name)| (folded(own), name))),
                }
            }
        }
    }
    for keywords in tables.keywords.values_mut() {
        keywords.sort_by_key(|keyword| std::cmp::Reverse(keyword.word.len()));
    }
    for (topic, _) in Topic::ALL {
        let first_letters = tables.beginnings.iter_mut().zip(&tables.topics[topic as usize].ascii);
        for (seconds, entries) in first_letters {
            for entry in entries {
                let bit = 1 << topic as u16;
                match entry.second {
                    None => seconds.iter_mut().for_each(|topics| topics.0 |= bit),
                    Some(second) => {
                        seconds[column(Some(second))].0 |= bit;
                        seconds[ANY_SECOND].0 |= bit;
                        if !IN_WORDS[usize::from(second)] {
                            seconds[NO_SECOND].0 |= bit;
                        }
                    }
                }
            }
        }
    }
    tables
});

/// Some of the topics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Topics(u16);

impl Topics {
    pub(crate) fn has(self, topic: Topic) -> bool {
        self.0 & (1 << topic as u16) != 0
    }
}

/// What the second byte of a token may be: a letter, another byte of ASCII, none, or anything else.
const SECONDS: usize = 29;
const NO_LETTER: usize = 26;
const NO_SECOND: usize = 27;
const ANY_SECOND: usize = 28;

fn column(second: Option<u8>) -> usize {
    match second {
        Some(letter @ b'a'..=b'z') => usize::from(letter - b'a'),
        Some(byte) if byte.is_ascii() => NO_LETTER,
        Some(_) => ANY_SECOND,
        None => NO_SECOND,
    }
}

/// The topics of which a token may have a word, by its first two bytes: most tokens have none, and
/// need no closer look.
pub(crate) fn topics(token: &str) -> Topics {
    let mut bytes = token.bytes().map(|byte| byte.to_ascii_lowercase());
    let Some(first @ b'a'..=b'z') = bytes.next() else { return Topics(u16::MAX) };
    TABLES.beginnings[usize::from(first - b'a')][column(bytes.next())]
}

/// A word of a topic in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where it starts in the token.
    pub(crate) start: usize,
    /// How many bytes of the text it has.
    pub(crate) len: usize,
    /// The word as it is in the list.
    pub(crate) word: &'static str,
}

/// The first word of a topic in a token of [`tokens`] from a place on; `lower` is the token in lower
/// case. Phrases may go on behind the token, in `rest`, which starts with it.
pub(crate) fn find(topic: Topic, lower: &str, rest: &str, from: usize) -> Option<Found> {
    let words = &TABLES.topics[topic as usize];
    let first = lower.chars().next()?;
    if !is_unspaced(first) {
        let whole = |entry: &&Entry| match entry.kind {
            Kind::Unspaced(_) => false,
            Kind::Phrase { open } => phrase_len(rest, entry.word, open).is_some(),
            Kind::Whole => entry.word == lower,
            Kind::Beginning => lower.starts_with(entry.word),
        };
        let second = lower.as_bytes().get(1).copied();
        let mut like =
            words.like(first).iter().filter(|entry| entry.has_second(second) && from == 0);
        let entry = like.find(whole)?;
        let len = match entry.kind {
            Kind::Beginning => lower.len(),
            _ => entry.word.len(),
        };
        return Some(Found { start: 0, len: len.min(rest.len()), word: entry.word });
    }
    let places = lower.get(from..)?.char_indices().map(|(at, c)| (from + at, c));
    places.into_iter().find_map(|(start, c)| {
        let meant = |entry: &&Entry| {
            let Kind::Unspaced(longer) = &entry.kind else { return false };
            let inside = |longer: &&str| {
                longer.match_indices(entry.word).any(|(offset, _)| {
                    start
                        .checked_sub(offset)
                        .and_then(|at| lower.get(at..))
                        .is_some_and(|text| text.starts_with(*longer))
                })
            };
            lower[start..].starts_with(entry.word) && !longer.iter().any(inside)
        };
        let entry = words.like(c).iter().filter(meant).max_by_key(|entry| entry.word.len())?;
        Some(Found { start, len: entry.word.len(), word: entry.word })
    })
}

/// How many bytes of a text a phrase in lower case takes, if the text starts with it, in any case; if
/// it is `open`, its last word may go on.
fn phrase_len(text: &str, phrase: &str, open: bool) -> Option<usize> {
    // Most texts differ from most phrases within a few plain letters.
    let same = |(one, other): &(u8, u8)| one.to_ascii_lowercase() == *other;
    let after = text.bytes().zip(phrase.bytes()).find(|pair| !same(pair));
    if after.is_some_and(|(one, other)| one.is_ascii() && other.is_ascii()) {
        return None;
    }
    let mut expected = phrase.chars();
    let mut rest = text.chars();
    while !expected.as_str().is_empty() {
        for lower in rest.next()?.to_lowercase() {
            let plain = if lower == '’' { '\'' } else { lower };
            if expected.next() != Some(plain) {
                return None;
            }
        }
    }
    let goes_on = rest.as_str().starts_with(char::is_alphanumeric);
    (open || !goes_on).then(|| text.len() - rest.as_str().len())
}

/// The first word of a topic in a text, as it is in the list.
pub(crate) fn first(topic: Topic, text: &str) -> Option<&'static str> {
    all(topic, text).next().map(|found| found.word)
}

/// The words of a topic in a text, each with its place in the text; of a token in a script with
/// spaces, the first.
pub(crate) fn all(topic: Topic, text: &str) -> impl Iterator<Item = Found> {
    tokens(text).flat_map(move |(start, token)| {
        let mut lower = String::new();
        let possible = topics(token).has(topic);
        if possible {
            lower_into(token, &mut lower);
        }
        let mut from = 0;
        std::iter::from_fn(move || {
            if !possible {
                return None;
            }
            let found = find(topic, &lower, &text[start..], from)?;
            from = found.start + found.len.max(1);
            Some(Found { start: start + found.start, ..found })
        })
    })
}

/// Puts a token into lower case, into a text that is used again and again.
pub(crate) fn lower_into(token: &str, lower: &mut String) {
    lower.clear();
    if token.is_ascii() {
        lower.push_str(token);
        lower.make_ascii_lowercase();
    } else {
        lower.push_str(&token.to_lowercase());
    }
}

/// Which bytes of ASCII belong to words.
static IN_WORDS: [bool; 256] = {
    let mut known = [false; 256];
    let mut b = 0_u8;
    while b.is_ascii() {
        known[b as usize] = b.is_ascii_alphanumeric() || matches!(b, b'-' | b'/' | b'_');
        b += 1;
    }
    known
};

/// The words of a text with their places; hyphens and slashes hold a word together. A run of a
/// script without spaces is one token.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = text.as_bytes();
    // Letters beyond ASCII are distinguished from dashes and quotes; the rest needs no decoding.
    let letter = move |at: usize| match bytes[at] {
        b if IN_WORDS[usize::from(b)] => (1, false),
        b if b.is_ascii() => (0, false),
        _ => text
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .filter(|c| c.is_alphanumeric() || is_unspaced(*c))
            .map_or((0, false), |c| (c.len_utf8(), is_unspaced(c))),
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && letter(at).0 == 0 {
            at += 1;
        }
        let start = at;
        let unspaced = at < bytes.len() && letter(at).1;
        while at < bytes.len() {
            match letter(at) {
                (0, _) => break,
                (_, other) if other != unspaced => break,
                (len, _) => at += len,
            }
        }
        (start < at).then(|| (start, &text[start..at]))
    })
}

/// Whether a character belongs to a script that puts no spaces between words.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// The headings that are read in every language.
const HEADINGS: [&str; 18] = [
    "Summary",
    "Why",
    "What Changes",
    "Impact",
    "Affected Specs",
    "Overview",
    "Requirements",
    "Acceptance Criteria",
    "Flow",
    "Interfaces",
    "Data Model",
    "Scenario",
    "Issues",
    "Earlier issues",
    "Data",
    "Logic",
    "Integration",
    "Testing",
];

/// The longest heading that is looked up, in bytes: none that is known is longer.
const LONGEST_HEADING: usize = 64;

/// The English heading that a heading in another language stands for; nothing for English ones.
pub(crate) fn heading(title: &str) -> Option<&'static str> {
    if title.len() > LONGEST_HEADING || HEADINGS.iter().any(|own| own.eq_ignore_ascii_case(title)) {
        return None;
    }
    TABLES.headings.get(&folded(title)).copied()
}

/// Whether two headings mean the same, each in any language.
pub fn same_heading(one: &str, other: &str) -> bool {
    let english = |title| heading(title).unwrap_or(title);
    english(one.trim()).eq_ignore_ascii_case(english(other.trim()))
}

/// The English keyword for which a text of another language starts, and how many bytes of it are the
/// word: `WHEN` for `Wenn der Platz fehlt`.
pub(crate) fn keyword(text: &str) -> Option<(&'static str, usize)> {
    let first = text.chars().next()?.to_lowercase().next()?;
    let keywords = TABLES.keywords.get(&first)?;
    keywords.iter().find_map(|keyword| Some((keyword.means, keyword.len_in(text)?)))
}

fn folded(title: &str) -> String {
    title.trim().to_lowercase().replace('’', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_words_for_every_topic() {
        for file in FILES {
            for (_, name) in Topic::ALL {
                assert!(file.contains(&format!("\n[{name}]\n")), "{name} in {file:.40}");
            }
            for line in file.lines().filter(|line| line.starts_with('[')) {
                let name = line.trim_matches(['[', ']']);
                let other = ["headings", "keywords"].contains(&name);
                assert!(other || Topic::ALL.iter().any(|(_, known)| *known == name), "{name}");
            }
        }
        for (own, heading) in &TABLES.headings {
            assert!(HEADINGS.contains(heading) && own.len() <= LONGEST_HEADING, "{own}");
        }
        // Each language has all of them but those that it writes as English does.
        for file in &FILES[1..] {
            let same = ["Impact", "Interfaces", "Data", "Integration"];
            for name in HEADINGS.iter().filter(|name| !same.contains(name)) {
                let there = |end: &str| file.contains(&format!(" = {name}{end}"));
                assert!(there(",") || there("\n"), "{name} in {file:.40}");
            }
        }
        for file in &FILES[1..] {
            for keyword in ["GIVEN", "WHEN", "THEN", "AND"] {
                assert!(file.contains(&format!(" = {keyword}")), "{keyword} in {file:.40}");
            }
        }
        let words = TABLES
            .topics
            .iter()
            .flat_map(|words| words.ascii.iter().flatten().chain(words.others.values().flatten()));
        for Entry { word, kind, .. } in words {
            assert_eq!(*word, word.to_lowercase());
            if let Kind::Unspaced(longer) = kind {
                assert!(word.chars().all(is_unspaced), "{word}");
                assert!(
                    longer.iter().all(|longer| longer.contains(word) && longer != word),
                    "{word}"
                );
            }
        }
    }

    #[test]
    fn every_word_is_in_the_topics_of_its_first_letters() {
        for (topic, name) in Topic::ALL {
            let words = &TABLES.topics[topic as usize];
            let entries = words.ascii.iter().flatten().chain(words.others.values().flatten());
            for Entry { word, .. } in entries {
                let token = tokens(word).next().map_or("", |(_, token)| token);
                assert!(topics(token).has(topic), "{name}: {word}");
                assert!(topics(&token.to_uppercase()).has(topic), "{name}: {word}");
            }
        }
        assert!(!topics("xq").has(Topic::Vague));
    }

    #[test]
    fn keywords_of_steps_are_whole_words() {
        for (text, expected) in [
            ("Wenn der Platz fehlt", Some(("WHEN", "Wenn"))),
            ("wenn: x", Some(("WHEN", "wenn"))),
            ("Gegeben sei ein Nutzer", Some(("GIVEN", "Gegeben sei"))),
            ("Gegebenheiten", None),
            ("ÉTANT DONNÉ QU’il", Some(("GIVEN", "ÉTANT DONNÉ QU’"))),
            ("Etant donnée", Some(("GIVEN", "Etant donnée"))),
            ("Lorsqu'il", Some(("WHEN", "Lorsqu'"))),
            ("Y otra", Some(("AND", "Y"))),
            ("Ya", None),
            ("當磁碟已滿", Some(("WHEN", "當"))),
            ("當前使用者", None),
            ("那么显示错误", Some(("THEN", "那么"))),
            ("則顯示錯誤", Some(("THEN", "則"))),
            ("则显示错误", Some(("THEN", "则"))),
            ("もし失敗", Some(("WHEN", "もし"))),
            ("もしくは", None),
            ("前提条件", None),
            ("WHEN x", None),
            ("", None),
        ] {
            let found = keyword(text).map(|(means, len)| (means, &text[..len]));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn words_are_found_where_they_are_meant() {
        let check = |topic: Topic, text: &str, expected: Option<&str>| {
            assert_eq!(first(topic, text), expected, "{text}");
        };
        check(Topic::Obligation, "應用程式應回傳", Some("應"));
        check(Topic::Obligation, "應用程式回應", None);
        check(Topic::Obligation, "MUST回傳", Some("must"));
        check(Topic::Obligation, "Muss", Some("muss"));
        check(Topic::Obligation, "Mussorgski", None);
        check(Topic::Obligation, "tiene que ver", Some("tiene que"));
        check(Topic::Obligation, "tiene queso", None);
        check(Topic::Vague, "高效能", Some("高效能"));
        check(Topic::Security, "droits d’accès", Some("droits d'accès"));
        check(Topic::Security, "emigration of authors", None);
        check(Topic::Migration, "emigration", None);
        check(Topic::Vague, "", None);
        let long = "快速".repeat(100_000);
        assert_eq!(
            find(Topic::Vague, &long, &long, 300_000).map(|found| found.start),
            Some(300_000)
        );
    }
}
