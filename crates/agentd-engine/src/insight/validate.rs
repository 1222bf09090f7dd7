//! What `agentd validate` finds: documents that break a rule, and what they claim without proof.

use std::collections::BTreeSet;

use agentd_core::agent::Role;
use agentd_core::check::{self, Extras, FileReport, MainSpecs};
use agentd_core::diagnostic::Diagnostic;
use agentd_core::document::tasks::{Status, Task};
use agentd_core::hash::Digest;
use agentd_core::journal;
use agentd_core::layout::{self, ChangeFile};
use agentd_core::rules;
use agentd_core::span::Span;
use agentd_core::state::State;
use agentd_core::step_name::StepName;

use crate::agents::receipts;
use crate::change::Snapshot;
use crate::change::documents::load_main_spec;
use crate::store::{Entry, Project, StoreError, map_parallel};
use crate::tools::{self, Refusal};

/// How much was checked and what was found.
#[derive(Debug, Clone, Default)]
pub struct Validated {
    /// How many changes were checked.
    pub changes: usize,
    /// How many main specs were checked.
    pub specs: usize,
    /// The files with findings, in order.
    pub reports: Vec<FileReport>,
}

/// What is wrong with every change and every main spec, on all cores.
pub fn validate_all(project: &Project, extras: &Extras) -> Result<Validated, StoreError> {
    let listed = project.spec_ids()?;
    let spec_ids = listed.ids;
    let change_ids = project.change_ids()?.ids;
    let specs = map_parallel(&spec_ids, |id| {
        let spec = load_main_spec(project, id);
        (check::requirement_ids(spec.value()), check::main_spec(id, &spec, extras))
    });
    let mut main = MainSpecs::new();
    let mut reports = Vec::new();
    for (id, (requirements, report)) in spec_ids.iter().zip(specs) {
        main.insert(id.clone(), requirements);
        reports.extend(report);
    }
    let changes = map_parallel(&change_ids, |id| -> Result<Option<_>, StoreError> {
        let Some(change) = project.change_if_open(id)? else { return Ok(None) };
        let snapshot = change.snapshot()?;
        let mut reports = snapshot.findings_against(&main, extras);
        add_unproven(project, &snapshot, &mut reports);
        Ok(Some(reports))
    });
    let mut validated = Validated { changes: 0, specs: spec_ids.len(), reports: Vec::new() };
    for found in changes {
        if let Some(found) = found? {
            validated.changes += 1;
            validated.reports.extend(found);
        }
    }
    validated.reports.extend(reports);
    // Notes for people, such as README.md and CHANGELOG.md, may stand among the main specs.
    let is_note = |stray: &&Entry| stray.name.starts_with(|c: char| c.is_ascii_uppercase());
    let dir = layout::main_specs_dir();
    let strays = listed.odd.iter().filter(|stray| !is_note(stray));
    let path = |stray: &Entry| format!("{dir}/{}", stray.name);
    validated.reports.extend(strays.map(|stray| check::stray_spec(&stray.name, path(stray))));
    check::cap(&mut validated.reports);
    Ok(validated)
}

/// What is wrong with a change, be it open or archived.
pub fn validate(project: &Project, snapshot: &Snapshot, extras: &Extras) -> Vec<FileReport> {
    let mut reports = snapshot.findings(project, extras);
    add_unproven(project, snapshot, &mut reports);
    snapshot.placed(reports)
}

/// Adds what the documents claim and nothing proves. No gate relies on these findings: workflows
/// do not take such reviews and ticks in the first place.
fn add_unproven(project: &Project, snapshot: &Snapshot, reports: &mut Vec<FileReport>) {
    // A state that cannot be read is a finding already.
    let Ok(state) = snapshot.state_if_begun() else { return };
    let mut add = |file: ChangeFile, found: Vec<Diagnostic>| {
        check::add(reports, &snapshot.documents, file, found);
    };
    let known = KnownReviews::of(snapshot, state);
    let plan = snapshot.documents.digest();
    // A reviewer may have spoken just now, in a call that has not ended.
    let is_new = |role: Role, hash: &Digest| {
        receipts::proves(project, snapshot.change(), role, hash, &plan).unwrap_or(false)
    };
    let is_foreign = |role: Role, hash: &Digest| !known.includes(hash) && !is_new(role, hash);
    add(ChangeFile::Proposal, foreign_plan_reviews(snapshot, state, is_foreign));
    add(ChangeFile::Review, foreign_code_review(snapshot, state, is_foreign));
    // The code of an archived change was judged before, and has moved on since.
    if snapshot.change().archived().is_none() {
        add(ChangeFile::Tasks, unproven_ticks(project, snapshot, state));
    }
}

/// The reviews that agentd has taken.
enum KnownReviews {
    /// There is no record, and no agent was called to review: none were taken.
    None,
    /// There is no record, so nobody knows about those before the last one.
    OnlyTheLast,
    /// Those in the record.
    These(BTreeSet<Digest>),
}

impl KnownReviews {
    fn of(snapshot: &Snapshot, state: Option<&State>) -> Self {
        let text = snapshot.change().read_if_exists(&ChangeFile::Journal).ok().flatten();
        let record = text.and_then(|text| journal::parse(&text).ok());
        let Some(record) = record else {
            let was_reviewed = state.is_some_and(|state| {
                let reviews = [StepName::Challenge, StepName::Review];
                state.llm_calls.iter().any(|call| reviews.contains(&call.step))
            });
            return if was_reviewed { Self::OnlyTheLast } else { Self::None };
        };
        Self::These(record.reviews())
    }

    fn includes(&self, hash: &Digest) -> bool {
        match self {
            Self::None => false,
            Self::OnlyTheLast => true,
            Self::These(known) => known.contains(hash),
        }
    }
}

/// Review blocks that no call wrote which agentd had started (T1).
fn foreign_plan_reviews(
    snapshot: &Snapshot,
    state: Option<&State>,
    is_foreign: impl Fn(Role, &Digest) -> bool,
) -> Vec<Diagnostic> {
    let taken = state.and_then(|state| state.plan_review.as_ref());
    let reviews = snapshot.documents.reviews().iter();
    let foreign = reviews.filter(|review| {
        !taken.is_some_and(|taken| taken.is_of(review))
            && is_foreign(Role::Challenger, &review.hash())
    });
    foreign
        .map(|review| {
            let message = format!(
                "review {} ({}) was not written in a call that agentd started",
                review.iteration,
                review.verdict.label()
            );
            rules::FOREIGN_REVIEW.at(review.place.0, message)
        })
        .collect()
}

fn foreign_code_review(
    snapshot: &Snapshot,
    state: Option<&State>,
    is_foreign: impl Fn(Role, &Digest) -> bool,
) -> Vec<Diagnostic> {
    let review = &snapshot.documents.review;
    let Some(text) = review.text() else { return Vec::new() };
    let hash = Digest::of(text);
    let taken = state.and_then(|state| state.code_review.as_ref());
    let is_taken = taken.is_some_and(|taken| taken.review_hash.as_ref() == Some(&hash));
    if is_taken || !is_foreign(Role::Reviewer, &hash) {
        return Vec::new();
    }
    let message = "this review was not written in a call that agentd started";
    vec![rules::FOREIGN_REVIEW.at(Span::at(0), message)]
}

/// Ticks that the files contradict (C38).
fn unproven_ticks(
    project: &Project,
    snapshot: &Snapshot,
    state: Option<&State>,
) -> Vec<Diagnostic> {
    let Some(tasks) = snapshot.documents.tasks.value_if_there() else { return Vec::new() };
    let done: Vec<&Task> = tasks.tasks.iter().filter(|t| t.status == Status::Done).collect();
    let contradicted = tools::all_contradicted(project, snapshot.id(), &done, state);
    let finding =
        |(task, why): (&Task, Refusal)| rules::TICK_WITHOUT_EVIDENCE.at(task.place.0, why.message);
    contradicted.into_iter().map(finding).collect()
}
