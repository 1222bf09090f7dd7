//! Every error has an explanation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path);
        }
    }
}

/// The words in quotes behind each `before`.
fn quoted<'t>(text: &'t str, before: &str) -> Vec<&'t str> {
    let pieces = text.split(before).skip(1);
    pieces.filter_map(|piece| piece.trim_start().strip_prefix('"')?.split('"').next()).collect()
}

/// The kinds that the sources make, found by the two ways in which they do.
fn made() -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in ["agentd", "agentd-core", "agentd-engine", "agentd-viewer"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let mut made = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        if file.ends_with("kinds/tests.rs") || file.ends_with("kinds/table.rs") {
            continue;
        }
        let is_command = file.ends_with("error.rs") && file.starts_with(crates.join("agentd"));
        made.extend(quoted(&text, "CommandError::new(").into_iter().map(str::to_owned));
        if is_command {
            made.extend(quoted(&text, "Self::new(").into_iter().map(str::to_owned));
        }
        for body in text.split("pub fn kind(&self) -> &'static str {").skip(1) {
            let body = body.split("\n    }").next().unwrap();
            made.extend(quoted(body, "=>").into_iter().map(str::to_owned));
        }
    }
    made
}

#[test]
fn every_kind_that_is_made_is_explained_and_no_other() {
    let made = made();
    assert!(made.len() > 60, "{made:?}");
    let told: BTreeSet<String> = all().map(|kind| kind.name.to_owned()).collect();
    assert_eq!(made, told);
    assert_eq!(told.len(), all().count(), "a kind is there twice");
}
