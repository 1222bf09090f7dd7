//! The phases of a change, and the one way from one to the next.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::diagnostic::Counts;
use crate::document::review::CodeVerdict;
use crate::document::review_block::PlanVerdict;
use crate::hash::Digest;
use crate::ids::ChangeId;
use crate::next_step::{Command, NextStep};
use crate::stamp::Stamp;
use crate::text::Line;

/// Where a change stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// A plan exists or is being written; it is not approved.
    Proposed,
    /// The plan is approved.
    Challenged,
    /// The plan was rejected; a person has to look at it.
    Rejected,
    /// The code is being written or reviewed.
    Implementing,
    /// The implementation is approved.
    Complete,
    /// The specs are merged and the change is put away.
    Archived,
}

impl Phase {
    /// All phases, in the order of a change's life.
    pub const ALL: [Self; 6] = [
        Self::Proposed,
        Self::Challenged,
        Self::Rejected,
        Self::Implementing,
        Self::Complete,
        Self::Archived,
    ];

    /// `proposed`, `challenged`, …
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Something that happened to a change and may move it to another phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// A challenger has reviewed the plan.
    PlanReviewed {
        /// What it said.
        verdict: PlanVerdict,
        /// The plan that it saw.
        plan: Digest,
        /// Who it was.
        reviewer: Line,
        /// When.
        at: Stamp,
    },
    /// The plan is taken with what is left of its issues (C11).
    MinorIssuesAccepted {
        /// The plan as it is now.
        plan: Digest,
        /// The issues that are left.
        left: Counts,
    },
    /// The implementation starts or continues.
    ImplementationStarted {
        /// The plan as it is now.
        plan: Digest,
    },
    /// A reviewer has reviewed the implementation.
    CodeReviewed {
        /// What it said.
        verdict: CodeVerdict,
        /// Who it was.
        reviewer: Line,
        /// When.
        at: Stamp,
    },
    /// People have commented on approved code: it is to be fixed.
    CodeReopened {
        /// The plan as it is now.
        plan: Digest,
    },
    /// The plan turned out to be wrong: back to planning.
    Reopened,
    /// The specs are merged.
    Archived {
        /// Whether a person asked for it in spite of the phase.
        forced: bool,
    },
    /// The merge is taken back.
    Unarchived,
}

impl Transition {
    /// What happened, as the end of "a change that is proposed cannot …".
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Self::PlanReviewed { .. } => "be challenged",
            Self::MinorIssuesAccepted { .. } => "be accepted with minor issues",
            Self::ImplementationStarted { .. } => "be implemented",
            Self::CodeReviewed { .. } => "have its implementation reviewed",
            Self::CodeReopened { .. } => "have its code fixed",
            Self::Reopened => "go back to planning",
            Self::Archived { .. } => "be archived",
            Self::Unarchived => "be unarchived",
        }
    }
}

/// A transition that is not allowed, and what is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a change that is {phase} cannot {wanted}{}", because(*.reason))]
pub struct Refused {
    /// The change.
    pub change: ChangeId,
    /// Where the change stands.
    pub phase: Phase,
    /// What was wanted.
    pub wanted: &'static str,
    /// Why, where it is not the phase alone.
    pub reason: Option<&'static str>,
    /// The commands that are allowed.
    pub allowed: Vec<NextStep>,
}

/// Why a plan is not implemented: it is not known to be the one that was approved.
pub(crate) const PLAN_UNKNOWN: &str = "it is not known which plan was approved";
/// Or it is known not to be.
pub(crate) const PLAN_EDITED: &str = "the plan has changed since it was approved";

impl Refused {
    /// Whether the plan has to be challenged again first (C39).
    pub fn needs_a_challenge(&self) -> bool {
        matches!(self.reason, Some(PLAN_UNKNOWN | PLAN_EDITED))
    }
}

fn because(reason: Option<&'static str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

/// The commands that move a change on from a phase, the usual one first. `decide` is not among
/// them: it answers a question, and whatever asks it names it.
pub fn allowed(phase: Phase) -> &'static [Command] {
    match phase {
        Phase::Proposed => &[Command::Plan, Command::Challenge, Command::Reproposal],
        Phase::Challenged => &[Command::Impl, Command::Plan, Command::Revise],
        Phase::Rejected => &[Command::Challenge, Command::Revise],
        Phase::Implementing => &[Command::Impl, Command::Review, Command::Fix, Command::Revise],
        Phase::Complete => &[Command::Archive, Command::Revise],
        Phase::Archived => &[Command::Unarchive],
    }
}
