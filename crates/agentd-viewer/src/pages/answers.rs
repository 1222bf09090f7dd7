//! What answered a finding: what has changed in the plan, or in the code, since it was last found.

use std::collections::BTreeMap;

use agentd_core::diff::LineDiff;
use agentd_core::document::comments::Anchor;
use agentd_core::document::part::anchor_of;
use agentd_core::issue_places::Place;
use agentd_core::layout::{ChangeFile, RunName};
use agentd_core::run_format::{FileEdit, Record};
use agentd_core::step_name::StepName;
use agentd_engine::agents::redact::Redactor;
use agentd_engine::insight::diff::{self, PlanDiff, PlanVersion};
use maud::{Markup, html};

use super::changes::rendered;
use crate::run_file;
use crate::subject::Subject;
use crate::transcript;

/// Comparisons for the findings of a page, each made once.
pub(super) struct Answers<'s> {
    subject: &'s Subject,
    redactor: &'s Redactor,
    plans: BTreeMap<(u32, Option<u32>), Option<PlanDiff>>,
    fixes: BTreeMap<u32, Vec<FileEdit>>,
}

impl<'s> Answers<'s> {
    pub(super) fn new(subject: &'s Subject, redactor: &'s Redactor) -> Self {
        Self { subject, redactor, plans: BTreeMap::new(), fixes: BTreeMap::new() }
    }

    /// What has changed where a finding on the plan points, since the round in which it was last
    /// found. For a finding that is settled, what else has changed in these documents, if nothing
    /// has there: it may be answered by a new requirement.
    pub(super) fn in_plan(&mut self, found: usize, places: &[Place], is_settled: bool) -> Markup {
        let reviews = &self.subject.proposal().reviews;
        let round = |index: usize| reviews.get(index).map(|review| review.iteration);
        let (Some(from), to) = (round(found), round(found + 1)) else { return html! {} };
        let subject = self.subject;
        let find = || {
            let to = to.map_or(PlanVersion::Now, PlanVersion::Round);
            diff::plan(subject.snapshot(), PlanVersion::Round(from), to)
        };
        let Some(diff) = self.plans.entry((from, to)).or_insert_with(find) else {
            return html! {};
        };
        let at_places = parts(diff, |file, heading| {
            places.iter().any(|place| place.file() == *file && covers(place, heading))
        });
        let in_documents =
            || parts(diff, |file, _| places.iter().any(|place| place.file() == *file));
        let (what, parts) = if at_places.is_empty() && is_settled {
            ("What else changed in this document", in_documents())
        } else {
            ("What changed there", at_places)
        };
        html! {
            @if !parts.is_empty() {
                details.answer open[is_settled] {
                    summary {
                        (what) " since round " (from)
                        @if let Some(to) = to { " until round " (to) }
                    }
                    @for (file, diff) in &parts {
                        p.quiet { code { (file.path()) } }
                        (rendered(diff, &format!("What changed in {}", file.path())))
                    }
                }
            }
        }
    }

    /// What fixes have done to the file that a finding on the code names, since the round in which
    /// it was last found.
    pub(super) fn in_code(&mut self, found: usize, path: &str, is_settled: bool) -> Markup {
        let rounds = &self.subject.code_rounds().runs;
        let Some(from) = rounds.get(found) else { return html! {} };
        let to = rounds.get(found + 1).copied().unwrap_or(u32::MAX);
        let is_fix = |run: &&RunName| {
            run.step() == StepName::Fix && run.number() > *from && run.number() < to
        };
        let runs = self.subject.runs().unwrap_or_default().iter().filter(is_fix);
        let edits: Vec<(&RunName, FileEdit)> =
            runs.filter_map(|run| Some((run, self.fix(run, path)?))).collect();
        html! {
            @for (run, edit) in &edits {
                details.answer open[is_settled] {
                    summary { "What the fix did to " code { (path) } ", run " (run.number()) }
                    @let earlier = run_file::earlier(self.subject, run, self.redactor);
                    (transcript::content(edit, &earlier))
                }
            }
        }
    }

    /// What a call has done to a file in all.
    fn fix(&mut self, run: &RunName, path: &str) -> Option<FileEdit> {
        let read = || {
            let records = self.subject.snapshot().records_with(run, "\"files\"");
            let files = records.unwrap_or_default().into_iter().filter_map(|record| match record {
                Record::Files { files, .. } => Some(files),
                _ => None,
            });
            self.redactor.edits(&files.flatten().collect::<Vec<_>>())
        };
        let edits = self.fixes.entry(run.number()).or_insert_with(read);
        let mut own = edits.iter().filter(|edit| edit.path == path);
        let first = own.next()?;
        let last = own.next_back().unwrap_or(first);
        let (created, before) = (first.created, first.before.clone());
        Some(FileEdit { created, before, ..last.clone() })
    }
}

/// The hunks of a plan that are wanted, by document.
fn parts(
    diff: &PlanDiff,
    wanted: impl Fn(&ChangeFile, &str) -> bool,
) -> Vec<(&ChangeFile, LineDiff)> {
    let part = |document: &'_ diff::DocumentDiff| {
        let mut part = document.diff.clone();
        part.hunks.retain(|hunk| wanted(&document.file, &hunk.under));
        part
    };
    let all = diff.files.iter().map(|document| (&document.file, part(document)));
    all.filter(|(_, part)| !part.hunks.is_empty()).collect()
}

/// Whether a hunk under this heading is at a place.
fn covers(place: &Place, heading: &str) -> bool {
    let mark = anchor_of(heading);
    match place {
        Place::File(_) => true,
        Place::Requirement(_, id) => mark == Anchor::Requirement(*id),
        Place::Task(id) => mark == Anchor::Task(*id),
    }
}
