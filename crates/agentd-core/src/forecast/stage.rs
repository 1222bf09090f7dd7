//! How far a change is, as far as that decides what is still to come.

use std::collections::BTreeSet;

use super::StepKind;
use crate::document::review::CodeVerdict;
use crate::document::review_block::PlanVerdict;
use crate::document::tasks::Status;
use crate::documents::Documents;
use crate::layout::ChangeFile;
use crate::phase::Phase;
use crate::state::State;
use crate::step_name::StepName;

/// How far a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its plan is written.
    Planning {
        /// Whether questions may still be asked.
        questions: bool,
        /// Whether there is a proposal.
        proposal: bool,
        /// How many specs are still to be written, where that is known.
        specs_left: Option<u64>,
        /// Whether there are tasks.
        tasks: bool,
    },
    /// Its plan is there, and is judged.
    Judging {
        /// Whether it has to be revised first.
        revise: bool,
    },
    /// Its code is written.
    Building {
        /// How many layers are still to be written, where that is known.
        layers_left: Option<u64>,
    },
    /// Its code is there, and is reviewed.
    Reviewing {
        /// Whether it has to be fixed first.
        fix: bool,
    },
    /// Nothing is left to do for agents.
    Over,
}

impl Stage {
    /// The stage of a change that has not begun.
    pub fn new() -> Self {
        Self::Planning { questions: true, proposal: false, specs_left: None, tasks: false }
    }

    /// How far a change is whose documents and state are these. Without a state, it has not begun or
    /// was begun by hand. `questions` says whether some may still be asked.
    pub fn of(documents: &Documents, state: Option<&State>, questions: bool) -> Self {
        match state.map_or(Phase::Proposed, |state| state.phase) {
            Phase::Complete | Phase::Archived => Self::Over,
            Phase::Rejected => Self::Judging { revise: true },
            Phase::Challenged => Self::Building { layers_left: layers_left(documents) },
            Phase::Implementing => match layers_left(documents) {
                Some(0) => Self::Reviewing { fix: state.is_some_and(is_to_be_fixed) },
                layers_left => Self::Building { layers_left },
            },
            Phase::Proposed => Self::proposed(documents, state, questions),
        }
    }

    fn proposed(documents: &Documents, state: Option<&State>, questions: bool) -> Self {
        if !documents.has(&ChangeFile::Proposal) {
            let questions = questions && !documents.has(&ChangeFile::Clarifications);
            return Self::Planning { questions, proposal: false, specs_left: None, tasks: false };
        }
        let specs = &documents.proposal.value().affected_specs;
        let missing = specs.iter().filter(|s| !documents.has(&ChangeFile::Spec(s.id.clone())));
        let (left, tasks) = (missing.count(), documents.has(&ChangeFile::Tasks));
        if left > 0 || !tasks {
            let specs_left = Some(u64::try_from(left).unwrap_or(u64::MAX));
            return Self::Planning { questions: false, proposal: true, specs_left, tasks };
        }
        let revise = state.is_some_and(|state| {
            let asked = state.revision.as_ref().is_some_and(|revision| !revision.note.is_empty());
            let review = documents.counted_review(state);
            asked || review.is_some_and(|review| review.verdict == PlanVerdict::NeedsRevision)
        });
        Self::Judging { revise }
    }

    /// Whether a step belongs to what is still to come.
    pub(super) fn includes(self, kind: StepKind) -> bool {
        let (first, last) = match self {
            Self::Planning { .. } => (StepKind::Clarify, StepKind::Fix),
            Self::Judging { .. } => (StepKind::Challenge, StepKind::Fix),
            Self::Building { .. } => (StepKind::Implement, StepKind::Fix),
            Self::Reviewing { .. } => (StepKind::Review, StepKind::Fix),
            Self::Over => return false,
        };
        (first..=last).contains(&kind)
    }
}

impl Default for Stage {
    fn default() -> Self {
        Self::new()
    }
}

/// In how many layers tasks are open; nothing where no tasks are known.
fn layers_left(documents: &Documents) -> Option<u64> {
    let tasks = &documents.tasks.value_if_there()?.tasks;
    if tasks.is_empty() {
        return None;
    }
    let open = tasks.iter().filter(|task| task.status == Status::Pending);
    let layers: BTreeSet<_> = open.map(|task| task.layer).collect();
    Some(u64::try_from(layers.len()).unwrap_or(u64::MAX))
}

/// Whether the last thing that was said of the code is that it has to be fixed.
fn is_to_be_fixed(state: &State) -> bool {
    let review = state.code_review.as_ref();
    let wanted = review.is_some_and(|review| review.verdict != CodeVerdict::Approved);
    wanted && state.llm_calls.last().is_some_and(|call| call.step == StepName::Review)
}
