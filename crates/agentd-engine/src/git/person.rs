//! Who the user is, in the words of git.

use std::path::Path;

use agentd_core::text::{Line, head};

use super::GitTool;

/// More than this is no name.
const NAME_BYTES: usize = 200;

/// The user as a commit would name them: `Ada Lovelace <ada@example.org>`, or what git knows of it.
/// Nothing where neither is set, or there is no git. Git is not asked for what it would make up.
pub fn person(tool: &GitTool, dir: &Path) -> Option<String> {
    let call = tool.call(dir, "config").args(["-z", "--get-regexp", r"^user\.(name|email)$"]);
    let output = call.ask().ok().filter(|output| output.code == 0)?;
    let text = output.text();
    // The last one counts: that of the repository, if it has one.
    let value = |key: &str| {
        let mut entries = text.split('\0').filter_map(|entry| entry.split_once('\n'));
        let value = entries.rfind(|(name, _)| *name == key)?.1;
        let value = Line::new(head(value, NAME_BYTES.min(value.len())));
        (!value.is_empty()).then(|| value.to_string())
    };
    match (value("user.name"), value("user.email")) {
        (Some(name), Some(email)) => Some(format!("{name} <{email}>")),
        (name, email) => name.or(email),
    }
}
