//! Text to look for in requests.

use std::collections::BTreeMap;

use regex_lite::Regex;
use serde::Deserialize;

/// Text to find: a string as it is, or `{"regex": "…"}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "PatternSource")]
pub enum Pattern {
    /// Found anywhere.
    Text(String),
    /// Searched; its groups can be used in replies.
    Regex(Regex),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PatternSource {
    Text(String),
    Regex(RegexSource),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegexSource {
    regex: String,
}

impl TryFrom<PatternSource> for Pattern {
    type Error = regex_lite::Error;

    fn try_from(source: PatternSource) -> Result<Self, Self::Error> {
        match source {
            PatternSource::Text(text) => Ok(Self::Text(text)),
            PatternSource::Regex(source) => Regex::new(&source.regex).map(Self::Regex),
        }
    }
}

impl Pattern {
    /// Makes a pattern from a regular expression.
    ///
    /// # Panics
    ///
    /// When the expression is not valid: it is part of a test.
    pub fn regex(expression: &str) -> Self {
        match Regex::new(expression) {
            Ok(regex) => Self::Regex(regex),
            Err(error) => panic!("bad regular expression {expression:?}: {error}"),
        }
    }

    /// Looks for the pattern, and adds the named and numbered groups.
    pub(crate) fn find(&self, text: &str, groups: &mut BTreeMap<String, String>) -> bool {
        match self {
            Self::Text(wanted) => text.contains(wanted.as_str()),
            Self::Regex(regex) => {
                let Some(captures) = regex.captures(text) else { return false };
                for (index, name) in regex.capture_names().enumerate().skip(1) {
                    let value = captures.get(index).map_or("", |found| found.as_str());
                    groups.insert(index.to_string(), value.to_owned());
                    if let Some(name) = name {
                        groups.insert(name.to_owned(), value.to_owned());
                    }
                }
                true
            }
        }
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
