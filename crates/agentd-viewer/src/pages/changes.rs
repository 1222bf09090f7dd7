//! What has changed in a document: since a round of review, and against the main spec. Lines read as
//! they are rendered, under their headings, with the words marked that differ.

use agentd_core::diff::{DiffLine, Hunk, LineDiff, LineKind};
use agentd_core::layout::ChangeFile;
use agentd_core::merge::Conflict;
use agentd_engine::insight::diff::{self, DocumentDiff, PlanVersion, SpecDelta};
use maud::{Markup, html};

use super::plan::delta_counts;
use crate::markdown::{Mark, diff_line};
use crate::problem::Problem;
use crate::routes::View;
use crate::subject::Subject;

/// What has changed in a document since a round.
pub(super) fn since_round(
    subject: &Subject,
    file: &ChangeFile,
    view: &View,
) -> Result<Markup, Problem> {
    let rounds = diff::rounds(subject.snapshot());
    let from = view.from.or(rounds.last().copied()).ok_or_else(Problem::not_found)?;
    let to = view.to.map_or(PlanVersion::Now, PlanVersion::Round);
    let found = diff::plan(subject.snapshot(), PlanVersion::Round(from), to);
    let found = found.ok_or_else(Problem::not_found)?;
    let document = found.files.iter().find(|document| document.file == *file);
    Ok(html! {
        (choice(file, &subject.document_address(file), &rounds, from, view.to))
        div.document-diff data-live="document" {
            @match document {
                Some(document) => { (one(document)) }
                None => { p.empty { "Nothing has changed in this document." } }
            }
        }
        @let others: Vec<_> = found.files.iter().filter(|other| other.file != *file).collect();
        @if !others.is_empty() {
            p.quiet {
                "Also changed: "
                @for (index, other) in others.iter().enumerate() {
                    @if index > 0 { ", " }
                    a href={ (subject.document_address(&other.file)) (query(from, view.to)) } {
                        (other.file.path())
                    }
                }
            }
        }
    })
}

fn query(from: u32, to: Option<u32>) -> String {
    let to = to.map(|to| format!("&to={to}")).unwrap_or_default();
    format!("?view=changes&from={from}{to}")
}

/// Which rounds are compared.
fn choice(file: &ChangeFile, address: &str, rounds: &[u32], from: u32, to: Option<u32>) -> Markup {
    html! {
        form.choice action=(address) data-auto {
            input type="hidden" name="view" value="changes";
            label {
                "From "
                select name="from" {
                    @for round in rounds {
                        option value=(round) selected[*round == from] { "round " (round) }
                    }
                }
            }
            label {
                " to "
                select name="to" {
                    option value="" selected[to.is_none()] { "now" }
                    @for round in rounds.iter().filter(|round| **round > from) {
                        option value=(round) selected[Some(*round) == to] { "round " (round) }
                    }
                }
            }
            button.small { "Show" span.visually-hidden { " changes of " (file.path()) } }
        }
    }
}

fn one(document: &DocumentDiff) -> Markup {
    html! {
        @match (document.was_there, document.is_there) {
            (false, true) => { p.quiet { "This document is new." } }
            (true, false) => { p.quiet { "This document was removed." } }
            _ => {}
        }
        @if let Some((before, after)) = &document.main_edits {
            p {
                "In its front matter: "
                @if !before.is_empty() { del { (before) } " " }
                @if !after.is_empty() { ins { (after) } }
            }
        }
        (rendered(&document.diff, &format!("Changes in {}", document.file.path())))
    }
}

/// What a spec of the change does to the main spec.
pub(super) fn to_main_spec(subject: &Subject, file: &ChangeFile) -> Result<Markup, Problem> {
    let ChangeFile::Spec(id) = file else { return Err(Problem::not_found()) };
    let deltas = match subject.deltas() {
        Ok(deltas) => deltas,
        Err(why) => {
            return Ok(html! { p.alert { "It cannot be compared with the main spec: " (why) } });
        }
    };
    let found = deltas.iter().find(|delta| delta.spec == *id);
    Ok(html! {
        div.document-diff data-live="document" {
            @match found {
                None => { p.empty { "The main spec stays as it is." } }
                Some(one) => { (delta(one)) }
            }
        }
    })
}

/// What a change does to a main spec.
pub(super) fn delta(delta: &SpecDelta) -> Markup {
    let id = &delta.spec;
    html! {
        p {
            a href={ "/specs/" (id) } { "agentd/specs/" (id) ".md" }
            " " (delta_counts(&delta.touched))
        }
        @for conflict in &delta.conflicts { (conflict_note(conflict)) }
        @for renumbering in &delta.renumbered {
            p.quiet {
                (renumbering.from) " becomes " (renumbering.to)
                ", since another change has taken its number."
            }
        }
        (rendered(&delta.diff, &format!("Changes to the main spec {id}")))
    }
}

fn conflict_note(conflict: &Conflict) -> Markup {
    html! {
        details.alert {
            summary { strong { (conflict.what) } " " (conflict.kind.says()) }
            @for (name, text) in [("Main spec", &conflict.main), ("This change", &conflict.change)] {
                @if let Some(text) = text { h3 { (name) } pre { (text) } }
            }
        }
    }
}

/// A difference of Markdown texts.
pub(super) fn rendered(diff: &LineDiff, label: &str) -> Markup {
    html! {
        p.quiet.stat {
            span.added { "+" (diff.added) } " " span.removed { "−" (diff.removed) } " lines"
        }
        div.diff role="region" aria-label=(label) {
            @for hunk in &diff.hunks { (hunk_lines(hunk)) }
        }
    }
}

fn hunk_lines(hunk: &Hunk) -> Markup {
    html! {
        div.hunk {
            @if !hunk.under.is_empty() { h3.under data-stop tabindex="-1" { (hunk.under) } }
            @for line in &hunk.lines { (row(line)) }
        }
    }
}

/// The mark and the class of a line.
pub(super) fn sign(kind: LineKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        LineKind::Same => ("same", " ", ""),
        LineKind::Removed => ("removed", "−", "removed: "),
        LineKind::Added => ("added", "+", "added: "),
    }
}

fn row(line: &DiffLine) -> Markup {
    let (class, mark, spoken) = sign(line.kind);
    let marks = if line.kind == LineKind::Removed { Mark::Removed } else { Mark::Added };
    let (kind, text) = diff_line(line, marks);
    html! {
        div.diff-line.(class) {
            span.number { @if let Some(old) = line.old { (old) } }
            span.number { @if let Some(new) = line.new { (new) } }
            span.sign aria-hidden="true" { (mark) }
            span.words.(kind) {
                @if !spoken.is_empty() { span.visually-hidden { (spoken) } }
                (text)
            }
        }
    }
}
