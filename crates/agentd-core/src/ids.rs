//! Validated names. A value of one of these types is a name that is safe
//! to put into a path, a YAML value or a command line: the constructors are the
//! only way in, and they are strict.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::IntoStaticStr;

use crate::rel_path::is_reserved_name;

use crate::text::excerpt;

/// The longest id of a change or a spec.
pub(crate) const MAX_ID_LEN: usize = 64;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("{what} id is empty")]
    Empty {
        /// What kind of id was wanted.
        what: &'static str,
    },
    /// The text is longer than `MAX_ID_LEN`.
    #[error("{what} id is {len} characters long; at most {MAX_ID_LEN} are allowed")]
    TooLong {
        /// What kind of id was wanted.
        what: &'static str,
        /// How long the text was.
        len: usize,
    },
    /// A character is not allowed where it stands.
    #[error(
        "{what} id `{shown}` has {found:?} at position {at}; \
         ids are lower-case letters, digits and `-`, and start with a letter or digit"
    )]
    BadCharacter {
        /// What kind of id was wanted.
        what: &'static str,
        /// The text, cut and with control characters escaped.
        shown: String,
        /// The first offending character.
        found: char,
        /// Its place, counted in characters from 1.
        at: usize,
    },
    /// The text is the name of a device on Windows, so no file can be called so there.
    #[error("{what} id `{name}` is the name of a device on Windows; choose another")]
    Reserved {
        /// What kind of id was wanted.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The text is not a requirement or task id at all.
    #[error("`{shown}` is not a {what} id; {expected}")]
    Malformed {
        /// What kind of id was wanted.
        what: &'static str,
        /// The text, cut and with control characters escaped.
        shown: String,
        /// What the form is.
        expected: &'static str,
    },
}

fn shown(text: &str) -> String {
    excerpt(text, 80)
}

fn check_slug(what: &'static str, text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { what });
    }
    let allowed =
        |i: usize, c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || (i > 0 && c == '-');
    if let Some((i, found)) = text.chars().enumerate().find(|&(i, c)| !allowed(i, c)) {
        return Err(IdError::BadCharacter { what, shown: shown(text), found, at: i + 1 });
    }
    if text.len() > MAX_ID_LEN {
        return Err(IdError::TooLong { what, len: text.len() });
    }
    if is_reserved_name(text) {
        return Err(IdError::Reserved { what, name: text.to_owned() });
    }
    Ok(())
}

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// Takes the text if it is a valid id.
            pub fn new(text: &str) -> Result<Self, IdError> {
                let check: fn(&str) -> Result<(), IdError> = $check;
                check(text)?;
                Ok(Self(text.into()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).map_err(D::Error::custom)
            }
        }
    };
}

string_id!(
    /// The id of a change: `[a-z0-9]`, then up to 63 of `[a-z0-9-]`.
    ChangeId,
    |text| check_slug("change", text)
);

string_id!(
    /// The id of a spec: `[a-z0-9]`, then up to 63 of `[a-z0-9-]`.
    SpecId,
    |text| check_slug("spec", text)
);

/// Words that say nothing about what a change is.
const FILLERS: [&str; 34] = [
    "a", "an", "the", "to", "of", "for", "with", "and", "or", "by", "from", "into", "is", "are",
    "be", "it", "its", "this", "that", "let", "people", "users", "user", "want", "we", "i", "they",
    "should", "must", "can", "please", "so", "as", "my",
];

/// How long an id that is made from a sentence may be, and of how many words.
const MADE_LEN: usize = 40;
const MADE_WORDS: usize = 4;

impl ChangeId {
    /// An id made from what a change is to do: its first words that say something. None where there
    /// are no words in letters that an id may have.
    pub fn from_sentence(text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        let words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '\'');
        let words = words.map(|word| word.replace('\'', "")).filter(|word| !word.is_empty());
        let telling = words.filter(|word| !FILLERS.contains(&&**word));
        let mut made = String::new();
        for word in telling.take(MADE_WORDS) {
            if !made.is_empty() && made.len() + 1 + word.len() > MADE_LEN {
                break;
            }
            if !made.is_empty() {
                made.push('-');
            }
            made.push_str(crate::text::head(&word, MADE_LEN));
        }
        Self::new(&made).ok()
    }

    /// The id with `-N` behind it, cut so that it stays an id. Used when an id is taken.
    #[must_use]
    pub fn with_suffix(&self, n: u32) -> Self {
        let suffix = format!("-{n}");
        let keep = self.0.len().min(MAX_ID_LEN - suffix.len());
        Self(format!("{}{suffix}", &self.0[..keep]).into())
    }
}

/// The longest prefix of a requirement's id.
const MAX_PREFIX: usize = 16;

/// The id of a requirement inside a spec: `R1`, `R2`, …, or with a prefix of the project's, as in
/// `WF-R1`. Ids with different prefixes are different ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequirementId {
    /// Capitals and digits, filled up with zeros.
    prefix: [u8; MAX_PREFIX],
    number: u32,
}

impl RequirementId {
    /// The requirement with this number and no prefix; requirements count from 1.
    pub fn new(number: u32) -> Option<Self> {
        (number >= 1).then_some(Self { prefix: [0; MAX_PREFIX], number })
    }

    /// The number behind the `R`.
    pub fn number(self) -> u32 {
        self.number
    }

    /// The id with the same prefix and another number.
    pub(crate) fn with_number(self, number: u32) -> Option<Self> {
        (number >= 1).then_some(Self { number, ..self })
    }

    /// The id that a text starts with, and what is behind it.
    pub(crate) fn split(text: &str) -> Option<(Self, &str)> {
        let starts_with_id = |text: &str| -> Option<usize> {
            let digits = text.strip_prefix(['R', 'r'])?;
            let count = digits.bytes().take_while(u8::is_ascii_digit).count();
            (count > 0).then_some(1 + count)
        };
        let prefix = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let behind_prefix = text[prefix..].strip_prefix('-').and_then(starts_with_id);
        let end = match behind_prefix {
            Some(len) if starts_with_id(text) != Some(prefix) => prefix + 1 + len,
            Some(_) | None => starts_with_id(text)?,
        };
        Some((text[..end].parse().ok()?, &text[end..]))
    }
}

impl fmt::Display for RequirementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.prefix.iter().take_while(|byte| **byte != 0) {
            write!(f, "{}", char::from(*byte))?;
        }
        if self.prefix[0] != 0 {
            f.write_str("-")?;
        }
        write!(f, "R{}", self.number)
    }
}

impl FromStr for RequirementId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let (prefix, id) = match text.rsplit_once('-') {
            Some((prefix, id)) => (Some(prefix), id),
            None => (None, text),
        };
        let number = id.strip_prefix(['R', 'r']).and_then(positive_number);
        let mut padded = [0; MAX_PREFIX];
        let prefix_fits = prefix.is_none_or(|prefix| {
            // `R1-R2` is two of them.
            let is_id =
                prefix.strip_prefix(['R', 'r']).is_some_and(|n| positive_number(n).is_some());
            let is_word = prefix.starts_with(|c: char| c.is_ascii_alphabetic())
                && prefix.bytes().all(|b| b.is_ascii_alphanumeric());
            let place = padded.get_mut(..prefix.len()).filter(|_| is_word && !is_id);
            place
                .map(|place| place.copy_from_slice(prefix.to_ascii_uppercase().as_bytes()))
                .is_some()
        });
        let id = number.filter(|_| prefix_fits);
        id.map(|number| Self { prefix: padded, number }).ok_or_else(|| IdError::Malformed {
            what: "requirement",
            shown: shown(text),
            expected: "requirements are numbered R1, R2, …, or WF-R1, WF-R2, …",
        })
    }
}

impl Serialize for RequirementId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RequirementId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The four layers of an implementation, in the order in which they are built.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Layer {
    /// Types, schemas, storage.
    Data,
    /// Rules and behaviour.
    Logic,
    /// What connects the parts: endpoints, commands, wiring.
    Integration,
    /// Tests.
    Testing,
}

impl Layer {
    /// All layers, in building order.
    pub const ALL: [Self; 4] = [Self::Data, Self::Logic, Self::Integration, Self::Testing];

    /// `data`, `logic`, `integration` or `testing`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The number of the section that agentd writes for this layer, from 1.
    pub fn section(self) -> u32 {
        match self {
            Self::Data => 1,
            Self::Logic => 2,
            Self::Integration => 3,
            Self::Testing => 4,
        }
    }

    /// The layer whose canonical section has this number.
    pub fn from_section(section: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|layer| layer.section() == section)
    }

    /// The layer of this name, in any case. `tests` and `test` mean testing.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|layer| layer.name().eq_ignore_ascii_case(name));
        found.or_else(|| {
            ["test", "tests"].iter().any(|t| t.eq_ignore_ascii_case(name)).then_some(Self::Testing)
        })
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The id of a task: the number of its section and its number there.
///
/// `1.1` and `data.1` are both read; `1.1` is written. In a document that
/// agentd wrote, section numbers are those of the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// The number of the section, from 1.
    pub section: u32,
    /// The number of the task in its section, from 1.
    pub number: u32,
}

impl TaskId {
    /// The task with this number in a layer's canonical section.
    pub fn in_layer(layer: Layer, number: u32) -> Self {
        Self { section: layer.section(), number }
    }

    /// The form with a name, `data.1`, where the section is a layer's.
    pub fn layer_form(self) -> String {
        match Layer::from_section(self.section) {
            Some(layer) => format!("{layer}.{}", self.number),
            None => self.to_string(),
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section, self.number)
    }
}

impl FromStr for TaskId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let parsed = text.split_once('.').and_then(|(section, number)| {
            let section = match Layer::from_name(section) {
                Some(layer) => layer.section(),
                None => positive_number(section)?,
            };
            Some(Self { section, number: positive_number(number)? })
        });
        parsed.ok_or_else(|| IdError::Malformed {
            what: "task",
            shown: shown(text),
            expected: "tasks are numbered 1.1, 1.2, 2.1, … or data.1, logic.1, …",
        })
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// What a task implements: a whole spec (`auth-flow`) or one requirement of it (`auth-flow:R1`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecRef {
    /// The spec.
    pub spec: SpecId,
    /// The requirement; without one the whole spec is meant.
    pub requirement: Option<RequirementId>,
}

impl fmt::Display for SpecRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.requirement {
            Some(requirement) => write!(f, "{}:{requirement}", self.spec),
            None => self.spec.fmt(f),
        }
    }
}

impl FromStr for SpecRef {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        match text.split_once([':', '#']) {
            Some((spec, requirement)) => Ok(Self {
                spec: spec.trim().parse()?,
                requirement: Some(requirement.trim().parse()?),
            }),
            None => Ok(Self { spec: text.trim().parse()?, requirement: None }),
        }
    }
}

/// Plain decimal digits, no sign, no leading zero, above zero.
fn positive_number(text: &str) -> Option<u32> {
    let plain = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slugs_are_change_ids() {
        let longest = "a".repeat(64);
        for good in ["a", "0", "add-oauth", "a--b-", longest.as_str()] {
            assert_eq!(ChangeId::new(good).unwrap().as_str(), good);
        }
        let too_long = "a".repeat(65);
        let bad = [
            "",
            "-a",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "A",
            "a_b",
            "a b",
            "a\0",
            "é",
            "a\n",
            " a",
            "a.md",
            "CON",
            "con",
            "nul",
            "com1",
            "~",
            too_long.as_str(),
        ];
        for bad in bad {
            assert!(ChangeId::new(bad).is_err(), "{bad:?}");
            assert!(SpecId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_error_names_the_place() {
        let error = ChangeId::new("add_oauth").unwrap_err().to_string();
        insta::assert_snapshot!(error, @"change id `add_oauth` has '_' at position 4; ids are lower-case letters, digits and `-`, and start with a letter or digit");
    }

    #[test]
    fn suffixes_keep_an_id_valid() {
        let long = ChangeId::new(&"a".repeat(64)).unwrap().with_suffix(12);
        assert_eq!(long.as_str().len(), 64);
        assert!(long.as_str().ends_with("a-12"));
        assert!(ChangeId::new(long.as_str()).is_ok());
    }

    /// Issue 19, m3.
    #[test]
    fn an_id_is_made_from_what_a_sentence_says() {
        for (sentence, id) in [
            ("Let people sign in with GitHub", Some("sign-in-github")),
            ("Print \"receive\", not recieve.", Some("print-receive-not-recieve")),
            ("Don't crash on an empty file", Some("dont-crash-on-empty")),
            ("Add OAuth 新增登入", Some("add-oauth")),
            (
                "Antidisestablishmentarianism incomprehensibilities",
                Some("antidisestablishmentarianism"),
            ),
            ("新增密碼登入", None),
            ("the a of", None),
            ("", None),
        ] {
            assert_eq!(ChangeId::from_sentence(sentence).as_ref().map(ChangeId::as_str), id);
        }
        let long = ChangeId::from_sentence(&"x".repeat(1000)).unwrap();
        assert_eq!(long.as_str().len(), MADE_LEN);
    }

    #[test]
    fn task_ids_are_read_in_both_forms_and_written_in_one() {
        for (text, written) in [("1.1", "1.1"), ("data.1", "1.1"), ("Logic.10", "2.10")] {
            assert_eq!(text.parse::<TaskId>().unwrap().to_string(), written);
        }
        for bad in
            ["1", "1.", ".1", "0.1", "1.0", "01.1", "banana.1", "1.1.1", "-1.1", "1.99999999999"]
        {
            assert!(bad.parse::<TaskId>().is_err(), "{bad}");
        }
        assert_eq!(TaskId { section: 2, number: 3 }.layer_form(), "logic.3");
    }

    // contract R5
    #[test]
    fn requirement_ids_may_have_a_prefix() {
        for (text, written) in
            [("R1", "R1"), ("r12", "R12"), ("WF-R1", "WF-R1"), ("api2-r3", "API2-R3")]
        {
            assert_eq!(text.parse::<RequirementId>().unwrap().to_string(), written);
        }
        for bad in [
            "",
            "R",
            "R0",
            "R01",
            "-R1",
            "WF-",
            "WF-R",
            "WF-R0",
            "WF-1",
            "WF R1",
            "2-R1",
            "W_F-R1",
            "é-R1",
            "A-B-R1",
            "ABCDEFGHIJKLMNOPQ-R1",
            "R1-",
            "R1-R",
            "R1-R2",
            "WF--R1",
        ] {
            assert!(bad.parse::<RequirementId>().is_err(), "{bad}");
        }
        let (plain, own): (RequirementId, RequirementId) =
            ("R1".parse().unwrap(), "WF-R1".parse().unwrap());
        assert_ne!(plain, own);
        assert_eq!(own.with_number(7).unwrap().to_string(), "WF-R7");
        let split = |text| RequirementId::split(text).map(|(id, rest)| (id.to_string(), rest));
        assert_eq!(split("R1: a"), Some(("R1".to_owned(), ": a")));
        assert_eq!(split("R1-a"), Some(("R1".to_owned(), "-a")));
        assert_eq!(split("R1-R2"), Some(("R1".to_owned(), "-R2")));
        assert_eq!(split("WF-R10 a"), Some(("WF-R10".to_owned(), " a")));
        for none in ["Rest", "WF-x", "WF", "", "-R1", "R99999999999: a"] {
            assert_eq!(split(none), None, "{none}");
        }
        assert_eq!("workflows:WF-R1".parse::<SpecRef>().unwrap().to_string(), "workflows:WF-R1");
    }

    #[test]
    fn spec_refs_name_a_spec_and_perhaps_a_requirement() {
        let full: SpecRef = "auth-flow:R1".parse().unwrap();
        assert_eq!(full.to_string(), "auth-flow:R1");
        assert!("auth-flow".parse::<SpecRef>().unwrap().requirement.is_none());
        for bad in ["", ":R1", "auth-flow:", "auth-flow:R0", "auth-flow:X", "../x:R1", "a:R1:R2"] {
            assert!(bad.parse::<SpecRef>().is_err(), "{bad}");
        }
    }
}
