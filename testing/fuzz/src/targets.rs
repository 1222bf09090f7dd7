//! The list of parsers.
//!
//! A new parser is one line here, and some valid inputs in `corpus/<name>/`. A
//! target should also assert what the parser promises, where that is cheap:
//! spans inside of the text, `parse(render(x)) == x`.

use std::str::FromStr;

use agentd_core::ids;

use crate::Target;

/// Everything that reads text from outside.
pub const TARGETS: &[Target] = &[Target { name: "ids", run: |bytes| with_text(bytes, ids) }];

/// Hands bytes to a parser of text. Those that are no UTF-8 are read as agentd
/// reads a file: with replacement characters.
fn with_text(bytes: &[u8], parse: impl FnOnce(&str)) {
    parse(&String::from_utf8_lossy(bytes));
}

fn ids(text: &str) {
    if let Ok(id) = ids::ChangeId::new(text) {
        assert_eq!(id.as_str(), text);
        assert!(!text.contains(['/', '\\', '.', '\0']), "an id is a single path component");
    }
    if let Ok(id) = ids::RequirementId::from_str(text) {
        assert_eq!(ids::RequirementId::from_str(&id.to_string()), Ok(id));
    }
}
