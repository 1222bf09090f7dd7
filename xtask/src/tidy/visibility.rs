//! A library crate makes public only what another crate uses.
//!
//! The compiler cannot see it: a `pub` item is used as far as rustc knows. Read from the source
//! text: a public function, constant or module has to be named by another crate, a test, an
//! example or a fuzz target. A public type may also be part of another public item, which the
//! compiler demands (`private_interfaces`).

use std::collections::BTreeSet;
use std::fs;

use super::{is_test, without_tests};
use crate::Result;
use crate::workspace::Workspace;

/// A Rust file of the workspace.
struct Source {
    path: String,
    text: String,
}

/// Adds a problem for each public item of a library that nothing outside of it uses.
pub(super) fn check(
    workspace: &Workspace,
    files: &[String],
    problems: &mut Vec<String>,
) -> Result<()> {
    let mut sources = Vec::new();
    for path in files.iter().filter(|file| file.strip_suffix(".rs").is_some()) {
        let text = fs::read_to_string(workspace.root.join(path))
            .map_err(|error| format!("cannot read {path}: {error}"))?;
        sources.push(Source { path: path.clone(), text });
    }
    problems.extend(unused(&sources));
    Ok(())
}

fn unused(sources: &[Source]) -> Vec<String> {
    let is_library = |source: &&Source| {
        source.path.starts_with("crates/") && source.path.ends_with("/src/lib.rs")
    };
    let mut problems = Vec::new();
    for library in sources.iter().filter(is_library) {
        let directory = library.path.trim_end_matches("lib.rs");
        let (inside, outside): (Vec<_>, Vec<_>) =
            sources.iter().partition(|source| source.path.starts_with(directory));
        let outside: BTreeSet<&str> = outside.iter().flat_map(|s| words(&s.text)).collect();
        let inside: Vec<(&str, &str)> = inside
            .into_iter()
            .filter(|source| !is_test(&source.path))
            .map(|source| (source.path.as_str(), without_tests(&source.text)))
            .collect();
        let in_interface: BTreeSet<&str> =
            inside.iter().flat_map(|(_, text)| interface_words(text)).collect();
        for (path, text) in &inside {
            for (number, line) in text.lines().enumerate() {
                let Some((kind, name)) = public_item(line) else { continue };
                let is_type = matches!(kind, "struct" | "enum" | "trait" | "type" | "union");
                let used = outside.contains(name) || is_type && in_interface.contains(name);
                if !used {
                    let number = number + 1;
                    problems.push(format!(
                        "{path}:{number}: no other crate uses `{name}`: make it pub(crate)"
                    ));
                }
            }
        }
    }
    problems
}

/// `("fn", "open")` for a line that declares a public item.
fn public_item(line: &str) -> Option<(&str, &str)> {
    let mut rest = line.trim_start().strip_prefix("pub ")?;
    for modifier in ["async ", "unsafe "] {
        rest = rest.strip_prefix(modifier).unwrap_or(rest);
    }
    let rest = rest.strip_prefix("const fn ").map_or(rest, |_| &rest["const ".len()..]);
    let (kind, rest) = rest.split_once(' ')?;
    let kinds = ["fn", "struct", "enum", "trait", "type", "union", "const", "static", "mod"];
    let name = words(rest).next()?;
    kinds.contains(&kind).then_some((kind, name))
}

/// The words of what a public item shows: the signature of a function, the type of a field or
/// of an alias, the variants of an enum, the items that a trait is implemented with.
fn interface_words(text: &str) -> impl Iterator<Item = &str> {
    let mut shown = Vec::new();
    // Up to the line with this indentation and this end, everything is shown.
    let mut until: Option<(usize, &[&str])> = None;
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        let indent = line.len() - line.trim_start().len();
        let declared = public_item(code).map(|(_, name)| name);
        let starts = code.trim_start().starts_with("pub ") && !code.contains("pub use ");
        let associated = code.trim_start().starts_with("type ");
        if until.is_none() && (starts || associated || code.trim_start().starts_with("impl ")) {
            let is_enum = code.trim_start().starts_with("pub enum ");
            until = Some((indent, if is_enum { &["}"] } else { &["{", ";", ",", "}"] }));
        }
        if let Some((level, ends)) = until {
            // An item does not make itself public.
            shown.extend(words(code).filter(|word| Some(*word) != declared));
            let ended = ends.iter().any(|end| code.trim_end().ends_with(end)) && indent == level;
            if ended {
                until = None;
            }
        }
    }
    shown.into_iter()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unused_in(library: &str, elsewhere: &str) -> Vec<String> {
        let source =
            |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        unused(&[
            source("crates/store/src/lib.rs", library),
            source("crates/store/tests/it/main.rs", elsewhere),
        ])
    }

    #[test]
    fn what_only_its_own_crate_uses_is_reported() {
        let library = "pub fn open() {}\n\npub const fn close() {}\nfn f() { open(); close() }\n";
        assert_eq!(unused_in(library, "use store::{close, open};"), Vec::<String>::new());
        assert_eq!(
            unused_in(library, "use store::open;"),
            ["crates/store/src/lib.rs:3: no other crate uses `close`: make it pub(crate)"]
        );
    }

    #[test]
    fn a_type_may_be_part_of_another_public_item() {
        for shown in [
            "pub fn open(\n    place: Place,\n) {}",
            "pub struct Open {\n    pub place: Place,\n}",
            "pub enum Open {\n    At(Place),\n}",
            "pub type Open = Vec<Place>;",
            "impl FromStr for Open {\n    type Err = Place;\n}",
        ] {
            let library = format!("pub struct Place;\n{shown}\n");
            assert_eq!(unused_in(&library, "Open open"), Vec::<String>::new(), "{shown}");
        }
        assert_eq!(unused_in("pub struct Place;\nfn open(_: Place) {}\n", "open").len(), 1);
    }
}
