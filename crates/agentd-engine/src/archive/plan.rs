//! What archiving will do, worked out before anything is written.

use std::collections::BTreeMap;

use agentd_core::diagnostic::Severity;
use agentd_core::document::review::CodeVerdict;
use agentd_core::document::{proposal, spec};
use agentd_core::documents::{Documents, Source};
use agentd_core::hash::Digest;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::merge::{self, Conflict, ConflictKind, Sides};
use agentd_core::phase::{Phase, Refused, Transition};
use agentd_core::state::LastAction;
use agentd_core::state::{Choice, Decision, State};
use agentd_core::step_name::StepName;
use agentd_core::text::Line;
use serde::{Deserialize, Serialize};

use super::error::ArchiveError;
use super::{Renumbering, Request, SpecChange, SpecConflict};
use crate::change::documents::DocumentError;
use crate::change::journal;
use crate::change::staleness::{self, Stale};
use crate::store::{Change, Project, StoreError, WriteLock, map_parallel};

/// What archiving will do.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) specs: Vec<SpecChange>,
    pub(super) conflicts: Vec<SpecConflict>,
    pub(super) renumbered: Vec<Renumbering>,
    /// Specs of the change that its proposal does not list, and that are not merged.
    pub(super) unlisted: Vec<SpecId>,
    /// Documents of the change that get other numbers: before and after.
    pub(super) own: Vec<(ChangeFile, String, String)>,
}

struct Texts {
    spec: SpecId,
    base: Option<String>,
    main: Option<String>,
    change: String,
}

impl Texts {
    fn sides(&self) -> Sides<'_> {
        let (base, main) = (self.base.as_deref(), self.main.as_deref());
        Sides { base, main, change: &self.change }
    }
}

/// The state before, and what is wrong with it.
pub(super) struct StateBefore {
    /// The state and its text; none where the change was never begun.
    known: Option<(State, String)>,
    state: State,
    documents: Documents,
    /// Whether the journal shows how it came to be.
    recorded: bool,
    stale: Vec<Stale>,
}

impl StateBefore {
    /// Reads it: one that was never begun may be archived by force only.
    pub(super) fn read(
        project: &Project,
        change: &Change,
        request: &Request<'_>,
    ) -> Result<Self, ArchiveError> {
        let snapshot = change.snapshot()?;
        let documents = snapshot.documents.clone();
        let Some(state) = snapshot.state_if_begun()? else {
            if request.force.is_none() && request.drop.is_none() {
                return Err(DocumentError::NoState { change: change.id().clone() }.into());
            }
            let state = State::new(change.id().clone(), "", request.now);
            let (known, stale) = (None, Vec::new());
            return Ok(Self { known, state, documents, recorded: false, stale });
        };
        let text = documents.state.source().text().unwrap_or_default().to_owned();
        let recorded = journal::check(project, change, state, &text)?.is_some();
        let approved =
            state.phase == Phase::Complete && request.force.is_none() && request.drop.is_none();
        let stale = if approved { staleness::stale(project, &snapshot)? } else { Vec::new() };
        let (state, known) = (state.clone(), Some((state.clone(), text)));
        Ok(Self { known, state, documents, recorded, stale })
    }

    /// The state after; what a person decided about it is recorded, where it was needed.
    pub(super) fn state_after(
        &self,
        change: &Change,
        request: &Request<'_>,
    ) -> Result<State, ArchiveError> {
        let state = &self.state;
        let forced = request.force.is_some() || request.drop.is_some();
        let mut after = state.apply(&Transition::Archived { forced })?;
        let is_approved = state.phase == Phase::Complete && self.is_approved(change);
        if !is_approved && !forced {
            let reason = "no run of a reviewer is known that has approved its code";
            let refused = state.refuse("be archived", Some(reason));
            return Err(Refused { allowed: Vec::new(), ..refused }.into());
        }
        if !self.stale.is_empty() && request.accept_stale.is_none() {
            let (change, stale) = (change.id().clone(), self.stale.clone());
            return Err(ArchiveError::Stale { change, stale });
        }
        let forced = request.force.filter(|_| !is_approved).map(|why| (Choice::Archive, why));
        let accepted = request.accept_stale.filter(|_| !self.stale.is_empty());
        let accepted = accepted.map(|why| (Choice::AcceptStale, why));
        let dropped = request.drop.map(|why| (Choice::Drop, why));
        for (choice, why) in forced.into_iter().chain(accepted).chain(dropped) {
            after.decisions.push(Decision {
                choice,
                note: Line::new(why),
                by: Line::new(request.by),
                at: request.now,
                plan_hash: Some(self.documents.digest()),
            });
        }
        let dropped = request.drop.is_some();
        after.last_action = Some(if dropped { LastAction::Drop } else { LastAction::Archive });
        after.updated_at = Some(request.now);
        Ok(after)
    }

    /// Whether a reviewer that agentd called approved the code. The journal shows it. Without one,
    /// a phase alone is a word that anybody who can write to the file can write: then the ledger
    /// has to know the run, or there has to be its file.
    fn is_approved(&self, change: &Change) -> bool {
        let state = &self.state;
        let Some(review) = &state.code_review else { return false };
        let step = StepName::Review;
        let is_it = |run: Option<u32>| review.run.is_none() || run == review.run;
        let in_ledger = || state.llm_calls.iter().any(|call| call.step == step && is_it(call.run));
        let on_disk = || {
            let runs = change.runs().map(|runs| runs.ids).unwrap_or_default();
            runs.iter().any(|run| run.step() == step && is_it(Some(run.number())))
        };
        let known = self.recorded && review.tree.is_some();
        review.verdict == CodeVerdict::Approved && (known || in_ledger() || on_disk())
    }

    /// The entry of the journal for it, with the documents as they will be.
    pub(super) fn entry(
        &self,
        project: &Project,
        change: &Change,
        lock: &WriteLock,
        after: &State,
        plan: &Plan,
        request: &Request<'_>,
    ) -> Result<journal::Prepared, ArchiveError> {
        let mut documents = self.documents.clone();
        for (file, _, text) in &plan.own {
            documents = documents.with(file, Source::Text(text.clone()));
        }
        let before = self.known.as_ref().map(|(state, text)| (state, &**text));
        let (files, now) = (journal::files(&documents), request.now);
        let write = journal::Write { project, change, lock, before, after, files, now };
        Ok(write.prepare()?)
    }
}

/// Merges every spec of a change, in memory.
pub(super) fn make(
    project: &Project,
    change: &Change,
    request: &Request<'_>,
) -> Result<Plan, ArchiveError> {
    if request.drop.is_some() {
        return Ok(Plan::default());
    }
    let shown = if request.resume { shown_conflicts(project, change.id())? } else { Vec::new() };
    let mut plan = merge_into(project, change, &shown)?;
    for spec in plan.specs.iter_mut().filter(|spec| !spec.touched.created) {
        spec.after = merge::touch(&spec.after, request.now);
    }
    Ok(plan)
}

/// Merges every spec of a change; the conflicts that were shown end with its text.
pub(super) fn merge_into(
    project: &Project,
    change: &Change,
    shown: &[DecidedConflict],
) -> Result<Plan, ArchiveError> {
    let (ids, unlisted) = specs_to_merge(change)?;
    let read = map_parallel(&ids, |id| read(project, change, id));
    let mut texts: Vec<Texts> = read.into_iter().collect::<Result<_, _>>()?;
    let (renumbered, own) = renumber(change, &mut texts)?;
    let merged = map_parallel(&texts, |texts| {
        merge::spec(&texts.sides(), &|conflict| {
            shown.contains(&DecidedConflict::new(&texts.spec, conflict))
        })
    });
    let mut plan = Plan { specs: Vec::new(), conflicts: Vec::new(), renumbered, unlisted, own };
    for (texts, merged) in texts.into_iter().zip(merged) {
        let spec = &texts.spec;
        let conflicts = merged.conflicts.into_iter();
        plan.conflicts
            .extend(conflicts.map(|conflict| SpecConflict { spec: spec.clone(), conflict }));
        if texts.main.as_deref() == Some(merged.text.as_str()) {
            continue;
        }
        let (touched, after) = (merged.touched, merged.text);
        plan.specs.push(SpecChange { spec: texts.spec, touched, before: texts.main, after });
    }
    Ok(plan)
}

/// The specs that the proposal lists, and those that are there without being listed: dropped
/// from the plan, or never part of it, so that nobody has judged them as such. Where there is no
/// proposal, nothing says that a spec was dropped.
fn specs_to_merge(change: &Change) -> Result<(Vec<SpecId>, Vec<SpecId>), StoreError> {
    let ids = change.spec_ids()?.ids;
    let Some(text) = change.read_if_exists(&ChangeFile::Proposal)? else {
        return Ok((ids, Vec::new()));
    };
    let listed = proposal::parse(&text).value.affected_specs;
    Ok(ids.into_iter().partition(|id| listed.iter().any(|spec| spec.id == *id)))
}

fn read(project: &Project, change: &Change, id: &SpecId) -> Result<Texts, ArchiveError> {
    let file = ChangeFile::Spec(id.clone());
    let text = change.read(&file)?;
    let parsed = spec::parse(&text);
    if let Some(worst) = parsed.diagnostics.iter().find(|d| d.severity() == Severity::High) {
        let file = file.path_in_project(change.id());
        return Err(ArchiveError::Unsound { file, why: worst.message.clone() });
    }
    let main = match project.dir().read_to_string(&layout::main_spec(id)) {
        Err(StoreError::NotFound { .. }) => None,
        text => Some(text?),
    };
    let base = change.read_if_exists(&ChangeFile::Base(id.clone()))?;
    Ok(Texts { spec: id.clone(), base, main, change: text })
}

type ChangeTexts = Vec<(ChangeFile, String, String)>;

/// Gives requirements whose ids are taken the next free ones, and lets every reference
/// in the change follow.
fn renumber(
    change: &Change,
    texts: &mut [Texts],
) -> Result<(Vec<Renumbering>, ChangeTexts), ArchiveError> {
    let all: BTreeMap<SpecId, merge::Renumbered> = texts
        .iter()
        .map(|texts| (texts.spec.clone(), merge::collisions(&texts.sides())))
        .filter(|(_, renumbered)| !renumbered.is_empty())
        .collect();
    let mut own = Vec::new();
    if all.is_empty() {
        return Ok((Vec::new(), own));
    }
    for texts in texts.iter_mut() {
        let mut text = texts.change.clone();
        for (spec, renumbered) in &all {
            text = if *spec == texts.spec {
                merge::renumber_spec(&text, spec, renumbered)
            } else {
                merge::renumber_references(&text, spec, renumbered)
            };
        }
        if text != texts.change {
            let before = std::mem::replace(&mut texts.change, text.clone());
            own.push((ChangeFile::Spec(texts.spec.clone()), before, text));
        }
    }
    if let Some(before) = change.read_if_exists(&ChangeFile::Tasks)? {
        let mut text = before.clone();
        for (spec, renumbered) in &all {
            text = merge::renumber_tasks(&text, spec, renumbered);
        }
        if text != before {
            own.push((ChangeFile::Tasks, before, text));
        }
    }
    let list = all.into_iter().flat_map(|(spec, renumbered)| {
        renumbered.into_iter().map(move |(from, to)| Renumbering { spec: spec.clone(), from, to })
    });
    Ok((list.collect(), own))
}

/// A conflict that somebody was shown: they have decided about this text of the main
/// spec, and about no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DecidedConflict {
    spec: SpecId,
    what: String,
    kind: ConflictKind,
    main: Option<Digest>,
}

impl DecidedConflict {
    fn new(spec: &SpecId, conflict: &Conflict) -> Self {
        Self {
            spec: spec.clone(),
            what: conflict.what.clone(),
            kind: conflict.kind,
            main: conflict.main.as_ref().map(Digest::of),
        }
    }
}

/// Notes which conflicts are shown; those that were decided before stay decided. The note
/// is of this machine only, and no document.
pub(super) fn note_conflicts(
    project: &Project,
    request: &Request<'_>,
    conflicts: &[SpecConflict],
) -> Result<(), ArchiveError> {
    let path = layout::shown_conflicts(request.change);
    let mut shown =
        if request.resume { shown_conflicts(project, request.change)? } else { Vec::new() };
    shown.extend(conflicts.iter().map(|c| DecidedConflict::new(&c.spec, &c.conflict)));
    let bytes = serde_json::to_vec(&shown).unwrap_or_default();
    Ok(project.dir().write_atomic(&path, &bytes)?)
}

fn shown_conflicts(
    project: &Project,
    change: &ChangeId,
) -> Result<Vec<DecidedConflict>, ArchiveError> {
    match project.dir().read(&layout::shown_conflicts(change)) {
        // A note that cannot be read shows nothing, so that everything is shown again.
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(StoreError::NotFound { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn forget_conflicts(project: &Project, change: &ChangeId) {
    // Left behind it would only name texts that are no longer there.
    let _ = project.dir().remove_file(&layout::shown_conflicts(change));
}
