//! What has changed in a plan since a round of its review.

use std::collections::BTreeSet;

use agentd_core::diff::{self, LineDiff};
use agentd_core::document::round::Round;
use agentd_core::layout::ChangeFile;
use agentd_core::outline::Outline;
use agentd_core::rel_path::RelPath;

use crate::change::Snapshot;

/// A plan at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanVersion {
    /// As a round of review saw it.
    Round(u32),
    /// As it is now.
    Now,
}

/// What has changed in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanDiff {
    /// What is compared.
    pub from: PlanVersion,
    /// With what.
    pub to: PlanVersion,
    /// The documents that differ: the proposal, specs, tasks.
    pub files: Vec<DocumentDiff>,
}

/// What has changed in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentDiff {
    /// The document.
    pub file: ChangeFile,
    /// Whether it was there before.
    pub was_there: bool,
    /// Whether it is still there.
    pub is_there: bool,
    /// The lines that differ. Where it is compared with now, new lines have the numbers that they
    /// have in the file; otherwise they are counted without the frontmatter.
    pub diff: LineDiff,
    /// What the spec says about the main spec in its frontmatter, before and after, where that
    /// differs: what it removes and renames there.
    pub main_edits: Option<(String, String)>,
}

/// The rounds of review whose plan was kept, oldest first.
pub fn rounds(snapshot: &Snapshot) -> Vec<u32> {
    let numbers = snapshot.documents.reviews().iter().map(|review| review.iteration);
    let numbers: BTreeSet<u32> = numbers.collect();
    numbers.into_iter().filter(|number| snapshot.round(*number).is_some()).collect()
}

/// What has changed in a plan from one version to another; none where one of them was not kept.
pub fn plan(snapshot: &Snapshot, from: PlanVersion, to: PlanVersion) -> Option<PlanDiff> {
    let (old, new) = (version(snapshot, from)?, version(snapshot, to)?);
    let names: BTreeSet<&String> = old.files.keys().chain(new.files.keys()).collect();
    let mut files: Vec<DocumentDiff> =
        names.into_iter().filter_map(|name| document(snapshot, name, &old, &new, to)).collect();
    files.sort_by_key(|document| order(&document.file));
    Some(PlanDiff { from, to, files })
}

fn version(snapshot: &Snapshot, version: PlanVersion) -> Option<Round> {
    match version {
        PlanVersion::Round(number) => snapshot.round(number),
        PlanVersion::Now => Some(snapshot.documents.round()),
    }
}

/// As people read them.
fn order(file: &ChangeFile) -> u8 {
    match file {
        ChangeFile::Proposal => 0,
        ChangeFile::Spec(_) => 1,
        _ => 2,
    }
}

fn document(
    snapshot: &Snapshot,
    name: &String,
    old: &Round,
    new: &Round,
    to: PlanVersion,
) -> Option<DocumentDiff> {
    let file = RelPath::new(name).ok().and_then(|path| ChangeFile::from_path(&path))?;
    let (before, after) = (old.files.get(name), new.files.get(name));
    let text = |text: Option<&String>| text.map_or("", String::as_str).to_owned();
    let mut diff = diff::markdown(&text(before), &text(after));
    if to == PlanVersion::Now {
        let skipped = snapshot.documents.get(&file).text().map_or(0, lines_before_body);
        let lines = diff.hunks.iter_mut().flat_map(|hunk| &mut hunk.lines);
        lines.filter_map(|line| line.new.as_mut()).for_each(|number| *number += skipped);
    }
    let edits = |round: &Round| round.main_edits.get(name).cloned().unwrap_or_default();
    let main_edits = (edits(old), edits(new));
    let main_edits = (main_edits.0 != main_edits.1).then_some(main_edits);
    let same = diff.is_empty() && main_edits.is_none() && before.is_some() == after.is_some();
    let (was_there, is_there) = (before.is_some(), after.is_some());
    (!same).then_some(DocumentDiff { file, was_there, is_there, diff, main_edits })
}

/// How many lines a document has before what a round keeps of it.
fn lines_before_body(text: &str) -> usize {
    let body = Outline::scan(text).body_start;
    let rest = &text[body..];
    let start = body + (rest.len() - rest.trim_start().len());
    text[..start].matches('\n').count()
}
