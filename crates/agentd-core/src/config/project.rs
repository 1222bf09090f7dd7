//! `[project]`: what holds for the whole project.

use serde::Deserialize;

use crate::language::LanguageTag;

/// `[project]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Project {
    /// The language in which agents write documents, reviews and questions.
    pub language: Option<LanguageTag>,
}
