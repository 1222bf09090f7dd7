//! What is taken where the project has no ledger yet.
//!
//! These are guesses, made once and by hand: sizes of prompts and contexts as agentd makes them, a
//! handful of turns for each call, most of the input cached from the second turn on. Nobody has
//! measured them with real models. They only have to be right within a factor of three or so, which
//! is what the range of such a forecast says.

use super::StepKind;
use crate::agent::Complexity;
use crate::outcome::Usage;
use crate::provider::prices::Price;

/// What a call uses.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Figures {
    /// Tokens, in and out.
    pub(super) tokens: f64,
    /// US dollars.
    pub(super) cost: f64,
    /// Seconds.
    pub(super) seconds: f64,
}

impl Figures {
    pub(super) fn times(&self, factor: f64) -> Self {
        Self {
            tokens: self.tokens * factor,
            cost: self.cost * factor,
            seconds: self.seconds * factor,
        }
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        Self {
            tokens: self.tokens + other.tokens,
            cost: self.cost + other.cost,
            seconds: self.seconds + other.seconds,
        }
    }
}

/// How much larger than usual the calls for a change of this complexity are.
pub(super) fn size(complexity: Complexity) -> f64 {
    match complexity {
        Complexity::Low => 0.6,
        Complexity::Medium => 1.0,
        Complexity::High => 1.6,
        Complexity::Critical => 2.2,
    }
}

/// Thousands of tokens in, how many of a hundred of them are cached, thousands of tokens out, and
/// seconds, for a change of medium complexity.
fn row(kind: StepKind) -> (u64, u64, u64, u64) {
    match kind {
        StepKind::Clarify => (40, 50, 2, 40),
        StepKind::ProposalGen => (90, 60, 4, 75),
        StepKind::ProposalReview => (60, 60, 2, 45),
        StepKind::SpecGen => (80, 60, 4, 70),
        StepKind::SpecReview => (60, 60, 2, 45),
        StepKind::TasksGen => (80, 60, 4, 70),
        StepKind::TasksReview => (60, 60, 2, 45),
        StepKind::PlanGen => (250, 70, 12, 200),
        StepKind::PlanReview => (150, 70, 4, 90),
        StepKind::FormatFix => (80, 60, 3, 50),
        StepKind::Challenge => (200, 65, 6, 150),
        StepKind::Reproposal => (150, 65, 6, 110),
        StepKind::Reproduce => (400, 80, 7, 180),
        StepKind::Implement => (900, 85, 15, 360),
        StepKind::Review => (350, 75, 7, 200),
        StepKind::Fix => (500, 80, 9, 220),
    }
}

/// What a call typically uses of a model.
pub(super) fn usage(kind: StepKind, complexity: Complexity) -> Usage {
    let (input, cached, output, _) = row(kind);
    let sized = |thousands: u64| {
        super::spread::whole(super::spread::number(thousands * 1000) * size(complexity))
    };
    Usage {
        input: sized(input),
        cached: sized(input) / 100 * cached,
        output: sized(output),
        ..Usage::default()
    }
}

/// What a call typically uses; it costs nothing where no price is known.
pub(super) fn figures(kind: StepKind, complexity: Complexity, price: Option<&Price>) -> Figures {
    let usage = usage(kind, complexity);
    Figures {
        tokens: super::spread::number(usage.input + usage.output),
        cost: price.map_or(0.0, |price| price.cost(usage)),
        seconds: super::spread::number(row(kind).3) * size(complexity),
    }
}
