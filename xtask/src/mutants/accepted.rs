//! `testing/mutants.toml`: mutants that no test has to catch, each with a reason.

use std::fs;
use std::path::Path;

use toml::Table;
use toml::Value;

use crate::Result;

/// A mutant that may survive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    /// The module of `cargo xtask mutants`.
    pub(super) module: String,
    /// Its file, from the top of the repository.
    pub(super) file: String,
    /// What cargo-mutants calls it, without line and column.
    pub(super) mutant: String,
    /// How many of that name may survive in the file.
    pub(super) count: usize,
}

pub(super) fn read(path: &Path) -> Result<Vec<Accepted>> {
    let text = fs::read_to_string(path)?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn parse(text: &str) -> Result<Vec<Accepted>> {
    let table: Table = text.parse()?;
    let entries = match table.get("accepted") {
        None => return Ok(Vec::new()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err("`accepted` is not a list of tables".into()),
    };
    entries.iter().map(entry).collect()
}

fn entry(value: &Value) -> Result<Accepted> {
    let field = |name: &str| -> Result<String> {
        let text = value.get(name).and_then(Value::as_str).unwrap_or_default();
        if text.trim().is_empty() {
            return Err(format!("an entry has no `{name}`: {value:?}").into());
        }
        Ok(text.to_owned())
    };
    // Only people read the reason, but without one nobody can judge the entry.
    field("reason")?;
    let count = match value.get("count") {
        None => 1,
        Some(count) => usize::try_from(count.as_integer().unwrap_or_default())?,
    };
    Ok(Accepted { module: field("module")?, file: field("file")?, mutant: field("mutant")?, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "[[accepted]]\nmodule = \"m\"\nfile = \"f\"\nmutant = \"x\"\n";

    #[test]
    fn an_entry_needs_a_reason() {
        assert!(parse(ENTRY).is_err());
        assert!(parse(&format!("{ENTRY}reason = \" \"\n")).is_err());
        let accepted = parse(&format!("{ENTRY}reason = \"why\"\n")).unwrap();
        let expected =
            Accepted { module: "m".into(), file: "f".into(), mutant: "x".into(), count: 1 };
        assert_eq!(accepted, [expected]);
    }

    #[test]
    fn a_file_without_entries_accepts_nothing() {
        assert_eq!(parse("# none\n").unwrap(), []);
        assert!(parse("accepted = 1\n").is_err());
    }
}
