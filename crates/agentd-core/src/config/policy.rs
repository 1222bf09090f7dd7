//! `[policy]`: what a verdict has to be to count.

use serde::Deserialize;

/// `[policy]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Whether a plan or code may be reviewed by the vendor that wrote it.
    pub independent_review: IndependentReview,
    /// Whether each line of a journal is signed by the person who writes it.
    pub sign: Sign,
}

/// How the lines of a journal are signed. With which key and by which program is not for a
/// repository to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sign {
    /// They are not.
    #[default]
    None,
    /// With the user's SSH key, as git does it.
    Ssh,
}

/// Whether a reviewer has to be from another vendor than the author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndependentReview {
    /// It is warned about.
    #[default]
    Warn,
    /// It is an error, before anyone is called.
    Require,
}
