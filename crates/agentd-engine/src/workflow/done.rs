//! What a workflow has done, and the verdict that came of it.

use agentd_core::agent::AgentKind;
use agentd_core::diagnostic::Counts;
use agentd_core::document::issue_fate::EarlierIssue;
use agentd_core::document::review::CodeVerdict;
use agentd_core::document::review_block::{Issue, PlanVerdict};
use agentd_core::next_step::NextStep;
use agentd_core::phase::Phase;
use agentd_core::state::AgentQuestion;
use agentd_core::text::Line;
use strum::IntoStaticStr;

use super::{Mode, PLAN_PASSES_RULES};

/// What a workflow or a step of it has done.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was done.
    pub action: Action,
    /// Where the change stands now.
    pub phase: Phase,
    /// The verdict on the plan as it is, or on its code, where there is one.
    pub verdict: Option<Verdict>,
    /// The rounds of revision so far.
    pub iteration: u32,
    /// What the change has cost so far.
    pub cost_usd: f64,
    /// The issues of that verdict.
    pub issues: Vec<Issue>,
    /// The summary of that verdict.
    pub summary: String,
    /// Who gave that verdict.
    pub reviewer: Line,
    /// What became of the issues of earlier rounds.
    pub previous: Vec<EarlierIssue>,
    /// What an agent waits to be answered (G6).
    pub question: Option<AgentQuestion>,
    /// The commands that take the change on from here.
    pub next: Vec<NextStep>,
    /// The same for a person at a terminal, who can be asked.
    pub next_for_people: Vec<NextStep>,
}

impl Report {
    /// How many issues there are of each severity.
    pub fn counts(&self) -> Counts {
        Counts::of(self.issues.iter().map(|issue| issue.severity))
    }

    /// What the approval is worth if only rules were applied.
    pub fn rules_only(&self) -> Option<&'static str> {
        self.verdict.and_then(|verdict| verdict.rules_only(&self.reviewer))
    }

    /// Whether the command that did it has failed (C10). Under `strict`, a verdict that waits
    /// for a person is a failure too.
    pub fn failed(&self, mode: Mode, strict: bool) -> bool {
        let waiting_fails = mode == Mode::Automatic || strict;
        match (self.action, self.verdict) {
            (Action::Rejected | Action::StillNeedsRevision | Action::StillNeedsFix, _) => true,
            (Action::Challenged, Some(Verdict::Plan(PlanVerdict::Rejected))) => true,
            (Action::Challenged, Some(Verdict::Plan(PlanVerdict::NeedsRevision)))
            | (Action::WaitingForDecision, _) => waiting_fails,
            (Action::Reviewed, Some(Verdict::Code(CodeVerdict::MajorIssues))) => true,
            (Action::Reviewed, Some(Verdict::Code(CodeVerdict::NeedsFix))) => waiting_fails,
            _ => false,
        }
    }
}

/// What was said of a plan, or of its implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Of the plan.
    Plan(PlanVerdict),
    /// Of the code.
    Code(CodeVerdict),
}

impl Verdict {
    /// The label in documents and in `--json`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Plan(verdict) => verdict.label(),
            Self::Code(verdict) => verdict.label(),
        }
    }

    /// What the approval of a reviewer is worth that has only applied rules: it must not pass
    /// for a judgment (T2). Nothing for other reviewers and verdicts.
    pub fn rules_only(self, reviewer: &Line) -> Option<&'static str> {
        if reviewer.as_str() != AgentKind::Builtin.name() {
            return None;
        }
        match self {
            Self::Plan(PlanVerdict::Approved) => Some(PLAN_PASSES_RULES),
            Self::Code(CodeVerdict::Approved) => Some("passes the rules; nobody has read the code"),
            Self::Plan(PlanVerdict::NeedsRevision | PlanVerdict::Rejected)
            | Self::Code(CodeVerdict::NeedsFix | CodeVerdict::MajorIssues) => None,
        }
    }
}

/// What a workflow has done last, for `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    /// The documents of the plan were written.
    Proposed,
    /// The plan was challenged.
    Challenged,
    /// The plan was revised after a review.
    Reproposed,
    /// The plan was taken with its minor issues (C11).
    AcceptedMinor,
    /// A person has to decide; nothing was done.
    WaitingForDecision,
    /// The rounds are used up, or bring nothing more; the plan still needs revision.
    StillNeedsRevision,
    /// The plan is approved already.
    AlreadyChallenged,
    /// The plan was rejected, and has not changed since.
    Rejected,
    /// The change is beyond planning.
    BeyondPlanning,
    /// Tasks were done.
    Implemented,
    /// The code was reviewed.
    Reviewed,
    /// What a review found was fixed.
    Fixed,
    /// The rounds are used up, or a person has to look; the code is not approved.
    StillNeedsFix,
    /// The code is approved already.
    AlreadyComplete,
}

impl Action {
    /// The name in `--json`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
