//! Three-way merge of specs: what a change says, laid into the main spec.
//!
//! A spec of a change holds only what it adds or edits; what it does not mention
//! stays. So the merge goes over the pieces of the change (requirements, scenarios,
//! sections) and asks for each what the main spec was when the change began (the
//! base) and what it is now. Pieces that only one side has edited take that side's
//! text; pieces that both have edited differently are a [`Conflict`], which is data
//! with all texts. Everything else of the main spec stays byte for byte.

mod parts;
mod prose;
mod renumber;
mod splice;
mod three_way;
mod versions;

use serde::{Deserialize, Serialize};

use crate::document::changelog::Touched;
use crate::document::spec;
use crate::frontmatter;
use crate::stamp::Stamp;

pub use parts::{Group, Key};
pub use renumber::{Renumbered, collisions, renumber_references, renumber_spec, renumber_tasks};
pub use versions::Versions;

/// The texts that are merged.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'t> {
    /// The main spec when the change began: empty where there was none, nothing where
    /// that is not known.
    pub base: Option<&'t str>,
    /// The main spec now, if there is one.
    pub main: Option<&'t str>,
    /// The spec of the change.
    pub change: &'t str,
}

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merged {
    /// The new text of the main spec. With conflicts, without what is in conflict.
    pub text: String,
    /// What both sides have edited, and differently.
    pub conflicts: Vec<Conflict>,
    /// What the change has done to the main spec.
    pub touched: Touched,
}

/// A piece that both sides have edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Which piece, for people: `R2`, `scenario "wrong password"`.
    pub what: String,
    /// What has happened to it.
    pub kind: ConflictKind,
    /// Its text when the change began.
    pub base: Option<String>,
    /// Its text in the main spec now.
    pub main: Option<String>,
    /// Its text in the change.
    pub change: Option<String>,
}

/// What has happened to a piece on both sides. The aliases are the names in notes of conflicts
/// that earlier versions have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    /// Both have edited it.
    #[serde(alias = "BothEdited")]
    BothEdited,
    /// Both have given it a title.
    #[serde(alias = "BothRenamed")]
    BothRenamed,
    /// Both have added it under the same name.
    #[serde(alias = "BothAdded")]
    BothAdded,
    /// The change edits what the main spec no longer has.
    #[serde(alias = "RemovedInMain")]
    RemovedInMain,
    /// The change removes what was edited in the main spec.
    #[serde(alias = "RemovedInChange")]
    RemovedInChange,
    /// The main spec itself is gone.
    #[serde(alias = "SpecRemoved")]
    SpecRemoved,
    /// They differ, and it is not known what was there when the change began.
    #[serde(alias = "NoBase")]
    NoBase,
    /// The main spec or the change has it more than once.
    #[serde(alias = "Ambiguous")]
    Ambiguous,
    /// In the merged text it would be read as something else.
    #[serde(alias = "Misread")]
    Misread,
}

impl ConflictKind {
    /// The kind in words, to follow the name of the piece.
    pub fn says(self) -> &'static str {
        match self {
            Self::BothEdited => "was edited in the main spec too, and differently",
            Self::BothRenamed => "was renamed in the main spec too, and differently",
            Self::BothAdded => "was added to the main spec too, and differently",
            Self::RemovedInMain => "was removed from the main spec since, and is edited here",
            Self::RemovedInChange => "is removed here, and was edited in the main spec since",
            Self::SpecRemoved => "was removed since, and is edited here",
            Self::NoBase => {
                "differs from the main spec, and it is not known what the change started from"
            }
            Self::Ambiguous => "is there more than once",
            Self::Misread => {
                "would be read differently in the merged text: is a code block never closed?"
            }
        }
    }
}

/// Merges. For each conflict `accept` is asked whether the change's text wins, which
/// is for people to decide; one that is accepted is no conflict.
pub fn spec(sides: &Sides<'_>, accept: &dyn Fn(&Conflict) -> bool) -> Merged {
    let Some(main) = sides.main else { return without_main(sides, accept) };
    three_way::merge(sides.base, main, sides.change, accept)
}

fn without_main(sides: &Sides<'_>, accept: &dyn Fn(&Conflict) -> bool) -> Merged {
    let mut merged = Merged::default();
    if let Some(base) = sides.base.filter(|base| !base.trim().is_empty()) {
        let conflict = Conflict {
            what: "the spec".to_owned(),
            kind: ConflictKind::SpecRemoved,
            base: Some(base.to_owned()),
            main: None,
            change: Some(sides.change.to_owned()),
        };
        if !accept(&conflict) {
            merged.conflicts.push(conflict);
            return merged;
        }
    }
    // What leaves or is renamed in a spec that is not there says nothing.
    let text = frontmatter::without(sides.change, "removes");
    merged.text = frontmatter::without(&text, "renames");
    let parsed = spec::parse(&merged.text).value;
    merged.touched.created = true;
    merged.touched.added = parsed.requirements.iter().map(|r| r.id).collect();
    merged
}

/// The merged text with its version and time brought up to date, where it has them.
pub fn touch(text: &str, now: Stamp) -> String {
    let parsed = spec::parse(text).value;
    let mut out = text.to_owned();
    let mut set = |key: &str, value: &str| {
        if let Ok(patched) = frontmatter::set(&out, key, value) {
            out = patched;
        }
    };
    if parsed.place.has_frontmatter.0 {
        set("version", &parsed.version.saturating_add(1).to_string());
        set("updated_at", &now.to_string());
    }
    out
}
