//! Which steps are still to come in a workflow, and how often each of them.

use serde::Serialize;
use strum::IntoStaticStr;

use super::Stage;
use crate::agent::{Complexity, Role};
use crate::config::{Generation, Workflow};
use crate::state::Track;
use crate::step_name::StepName;

/// A step, no matter for which spec or layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StepKind {
    /// Questions about the change.
    Clarify,
    /// The proposal.
    ProposalGen,
    /// Its self-review.
    ProposalReview,
    /// A spec.
    SpecGen,
    /// Its self-review.
    SpecReview,
    /// The tasks.
    TasksGen,
    /// Their self-review.
    TasksReview,
    /// All documents at once.
    PlanGen,
    /// Their self-review.
    PlanReview,
    /// What validation found.
    FormatFix,
    /// The review of the plan.
    Challenge,
    /// The revision after it.
    Reproposal,
    /// A test for a bug.
    Reproduce,
    /// A layer of code.
    Implement,
    /// The review of the code.
    Review,
    /// The fix after it.
    Fix,
}

impl StepKind {
    /// What a step is, where it is known.
    pub fn of(step: &StepName) -> Option<Self> {
        Some(match step {
            StepName::Clarify => Self::Clarify,
            StepName::ProposalGen => Self::ProposalGen,
            StepName::ProposalReview => Self::ProposalReview,
            StepName::SpecGen(_) => Self::SpecGen,
            StepName::SpecReview(_) => Self::SpecReview,
            StepName::TasksGen => Self::TasksGen,
            StepName::TasksReview => Self::TasksReview,
            StepName::PlanGen => Self::PlanGen,
            StepName::PlanReview => Self::PlanReview,
            StepName::FormatFix => Self::FormatFix,
            StepName::Challenge => Self::Challenge,
            StepName::Reproposal => Self::Reproposal,
            StepName::Reproduce => Self::Reproduce,
            StepName::Implement(_) => Self::Implement,
            StepName::Review => Self::Review,
            StepName::Fix => Self::Fix,
            StepName::Unknown(_) => return None,
        })
    }

    /// The name of the step, without a spec or a layer.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Who does it.
    pub fn role(self) -> Role {
        match self {
            Self::Clarify
            | Self::ProposalGen
            | Self::ProposalReview
            | Self::SpecGen
            | Self::SpecReview
            | Self::TasksGen
            | Self::TasksReview
            | Self::PlanGen
            | Self::PlanReview
            | Self::FormatFix
            | Self::Reproposal => Role::Planner,
            Self::Challenge => Role::Challenger,
            Self::Reproduce | Self::Implement | Self::Fix => Role::Implementer,
            Self::Review => Role::Reviewer,
        }
    }
}

/// How often a step is called.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ExpectedCalls {
    /// At least.
    pub(super) least: u64,
    /// On average.
    pub(super) typical: f64,
    /// At most, as far as can be expected: calls that fail are made again.
    pub(super) most: u64,
}

impl ExpectedCalls {
    fn new(least: u64, typical: f64, most: u64) -> Self {
        Self { least, typical, most }
    }

    /// The same for each of several.
    fn each(self, several: Self) -> Self {
        Self {
            least: self.least.saturating_mul(several.least),
            typical: self.typical * several.typical,
            most: self.most.saturating_mul(several.most),
        }
    }
}

/// A step that is still to come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ExpectedStep {
    /// The step.
    pub(super) kind: StepKind,
    /// How often, by what is built in.
    pub(super) calls: ExpectedCalls,
    /// Whether all of its calls are still to come, so that finished changes show how many they are.
    pub(super) whole: bool,
}

/// The steps that are still to come, in their order: the one place that knows what a workflow
/// consists of.
pub(super) fn expected_steps(
    complexity: Complexity,
    settings: &Workflow,
    track: Track,
    stage: Stage,
) -> Vec<ExpectedStep> {
    let mut steps = Vec::new();
    let fresh = stage == Stage::new();
    let mut add = |kind, calls: ExpectedCalls, whole| {
        if calls.most > 0 {
            steps.push(ExpectedStep { kind, calls, whole });
        }
    };
    let rounds = |limit: u32| ExpectedCalls::new(0, 0.4_f64.min(limit.into()), limit.into());
    let after = |rounds: ExpectedCalls| {
        ExpectedCalls::new(1, 1.0 + rounds.typical, 1_u64.saturating_add(rounds.most))
    };
    let once = ExpectedCalls::new(1, 1.05, 2);
    let self_review = match settings.self_review_iterations {
        0 => ExpectedCalls::new(0, 0.0, 0),
        most => ExpectedCalls::new(1, 0.8 + 0.2 * f64::from(most), most.into()),
    };
    if let Stage::Planning { questions, proposal, specs_left, tasks } = stage {
        if questions && track == Track::Full {
            add(StepKind::Clarify, ExpectedCalls::new(0, 0.4, 1), fresh);
        }
        let specs = specs_left.map_or_else(|| specs_of(complexity), exactly);
        match (track, settings.generation) {
            (Track::Quick | Track::Bug, _) => {
                if !proposal {
                    add(StepKind::PlanGen, once, true);
                }
            }
            (Track::Full, Generation::OneShot) => {
                if !proposal {
                    add(StepKind::PlanGen, once, true);
                }
                add(StepKind::PlanReview, self_review, true);
            }
            (Track::Full, Generation::Sequential) => {
                if !proposal {
                    add(StepKind::ProposalGen, once, true);
                    add(StepKind::ProposalReview, self_review, true);
                }
                add(StepKind::SpecGen, once.each(specs), specs_left.is_none());
                add(StepKind::SpecReview, self_review.each(specs), specs_left.is_none());
                if !tasks {
                    add(StepKind::TasksGen, once, true);
                    add(StepKind::TasksReview, self_review, true);
                }
            }
        }
        let limit = settings.format_iterations;
        let fixes = ExpectedCalls::new(0, 0.2_f64.min(limit.into()), limit.into());
        add(StepKind::FormatFix, fixes, true);
    }
    if matches!(stage, Stage::Planning { .. } | Stage::Judging { .. }) {
        let revise = stage == Stage::Judging { revise: true };
        let revisions = rounds(settings.planning_iterations);
        let whole = matches!(stage, Stage::Planning { .. });
        add(StepKind::Challenge, after(revisions), whole);
        add(StepKind::Reproposal, if revise { after(revisions) } else { revisions }, whole);
    }
    if !matches!(stage, Stage::Reviewing { .. } | Stage::Over) {
        let left = match stage {
            Stage::Building { layers_left } => layers_left,
            _ => None,
        };
        if track == Track::Bug {
            add(StepKind::Reproduce, ExpectedCalls::new(0, 1.1, 2), true);
        }
        let layers = left.map_or_else(|| layers_of(complexity), exactly);
        add(StepKind::Implement, ExpectedCalls::new(1, 1.1, 2).each(layers), left.is_none());
    }
    if stage != Stage::Over {
        let fix = stage == Stage::Reviewing { fix: true };
        let fixes = rounds(settings.implementation_iterations);
        let whole = !matches!(stage, Stage::Reviewing { .. });
        add(StepKind::Review, after(fixes), whole);
        add(StepKind::Fix, if fix { after(fixes) } else { fixes }, whole);
    }
    steps
}

fn exactly(count: u64) -> ExpectedCalls {
    ExpectedCalls::new(count, super::spread::number(count), count)
}

/// How many specs a change touches.
fn specs_of(complexity: Complexity) -> ExpectedCalls {
    match complexity {
        Complexity::Low => ExpectedCalls::new(0, 1.0, 2),
        Complexity::Medium => ExpectedCalls::new(1, 1.5, 3),
        Complexity::High => ExpectedCalls::new(1, 2.5, 5),
        Complexity::Critical => ExpectedCalls::new(1, 3.5, 7),
    }
}

/// In how many layers it has code.
fn layers_of(complexity: Complexity) -> ExpectedCalls {
    match complexity {
        Complexity::Low => ExpectedCalls::new(1, 1.5, 3),
        Complexity::Medium => ExpectedCalls::new(1, 2.4, 4),
        Complexity::High => ExpectedCalls::new(2, 3.0, 4),
        Complexity::Critical => ExpectedCalls::new(2, 3.4, 4),
    }
}
