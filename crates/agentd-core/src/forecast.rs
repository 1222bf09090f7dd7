//! What the rest of a workflow will use: calls, tokens, money and time, as ranges (W8).
//!
//! The typical figures of a step are those of its earlier calls in the project's ledger, nearest in
//! model and complexity first, with a guess that comes with agentd and counts as half a call. How
//! often a step is called comes from the finished changes in the same way. The range is then as wide
//! as such a forecast would have been wrong: each finished change is forecast from the others, and
//! what it really used is compared with that. With few changes, the range stays wide.
//!
//! Figures of a ledger are untrusted text of a repository: they are brought into sane limits first,
//! so that none of them can do more than make a forecast wrong.

mod built_in;
mod expected;
mod past_error;
mod shown;
mod single_call;
mod spread;
mod stage;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

pub use expected::StepKind;
pub use past_error::PastError;
pub use single_call::call_cost;
pub use stage::Stage;

use crate::agent::{AgentKind, Complexity};
use crate::config::Config;
use crate::phase::Phase;
use crate::provider::models;
use crate::provider::prices::{Price, PriceTable};
use crate::state::{LlmCall, Ranges, State, Track};

use built_in::{Figures, figures, usage};
use expected::{ExpectedCalls, ExpectedStep, expected_steps};
use past_error::past_error;
use spread::{Residuals, outward};

/// How many calls of one change are looked at.
const MOST_CALLS: usize = 200;
/// How much of the name of a model is looked at, in characters.
const MOST_OF_MODEL: usize = 100;
/// How much a built-in figure counts, in calls.
const PRIOR_CALLS: f64 = 0.5;
/// How much a built-in number of calls counts, in changes.
const PRIOR_CHANGES: f64 = 2.0;
/// What a call with another model, and one for a change of another complexity, counts.
const OTHER_MODEL: f64 = 0.5;
const OTHER_COMPLEXITY: f64 = 0.5;
/// From so many changes on, numbers of calls beyond those that were seen are not expected.
const ENOUGH_CHANGES: f64 = 8.0;

/// Where the figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// From earlier calls in this project.
    Ledger,
    /// From guesses that come with agentd.
    BuiltIn,
}

/// What is known of the work that is to be forecast.
#[derive(Debug, Clone, Copy)]
pub struct Outlook<'a> {
    /// How hard the change is.
    pub complexity: Complexity,
    /// The settings: how often what is done, by whom, with which models, at which prices.
    pub config: &'a Config,
    /// The way that the change takes.
    pub track: Track,
    /// How far the change is.
    pub stage: Stage,
}

/// A change of the project, as its ledger shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct PastChange {
    complexity: Complexity,
    track: Track,
    finished: bool,
    calls: Vec<PastCall>,
    forecast: Option<Ranges>,
    total_cost: f64,
}

/// A call of a change, brought into sane limits.
#[derive(Debug, Clone, PartialEq)]
struct PastCall {
    kind: StepKind,
    model: String,
    /// Nothing where agentd itself played the agent, or nothing was reported.
    figures: Option<Figures>,
}

impl PastChange {
    /// What the state of a change says.
    pub fn of(state: &State) -> Self {
        let calls = state.llm_calls.iter().take(MOST_CALLS);
        Self {
            // Versions that did not record it had no other.
            complexity: state.complexity.unwrap_or(Complexity::Medium),
            track: state.track,
            finished: match state.phase {
                Phase::Complete => true,
                // A version that did not record it archived complete changes only.
                Phase::Archived => state.archived_from.is_none_or(|from| from == Phase::Complete),
                Phase::Proposed | Phase::Challenged | Phase::Rejected | Phase::Implementing => {
                    false
                }
            },
            calls: calls.filter_map(PastCall::of).collect(),
            forecast: state.forecast,
            total_cost: state.total_cost,
        }
    }

    /// Whether the whole of a workflow can be seen in it.
    fn is_whole(&self) -> bool {
        self.finished && !self.calls.is_empty()
    }
}

impl PastCall {
    fn of(call: &LlmCall) -> Option<Self> {
        let kind = StepKind::of(&call.step)?;
        let own = call.agent.is_some_and(AgentKind::is_own);
        let tokens = spread::number(call.tokens_in.saturating_add(call.tokens_out));
        let sane = |figure: f64, most: f64| {
            if figure.is_finite() { figure.clamp(0.0, most) } else { 0.0 }
        };
        let figures = Figures {
            tokens: sane(tokens, 1e12),
            cost: sane(call.cost, 1e6),
            seconds: sane(spread::number(call.duration_ms) / 1e3, 1e7),
        };
        // What was cut short is an estimate, which must not confirm itself.
        let figures = (!own && !call.unsettled && figures.tokens > 0.0).then_some(figures);
        let model = call.model.chars().take(MOST_OF_MODEL).collect();
        Some(Self { kind, model, figures })
    }
}

/// What the rest of a workflow will use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// Of all steps together. Narrower than the sum of the steps, which are not all at their most.
    #[serde(flatten)]
    pub ranges: Ranges,
    /// Where the figures come from.
    pub basis: Basis,
    /// How many finished changes say how often steps are called, and how wide the range is.
    pub based_on: usize,
    /// How earlier forecasts in this project turned out.
    pub error: PastError,
    /// Step by step.
    pub steps: Vec<StepForecast>,
    /// Models whose price is not known; they count as free.
    pub unpriced: Vec<String>,
}

/// What the calls of one step will use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepForecast {
    /// The step.
    pub step: StepKind,
    /// Who does it.
    pub agent: AgentKind,
    /// The model that is asked for; empty where the agent chooses.
    pub model: String,
    /// What its calls use together.
    #[serde(flatten)]
    pub ranges: Ranges,
    /// Where its figures come from.
    pub basis: Basis,
}

/// Forecasts the rest of a workflow from what the changes of the project have used.
pub fn forecast(outlook: &Outlook<'_>, past: &[PastChange]) -> Forecast {
    let ledger = Ledger::new(outlook.config, past);
    let Outlook { complexity, config, track, stage } = *outlook;
    let steps = expected_steps(complexity, &config.workflow, track, stage);
    let mut total = Total::default();
    let mut forecasts = Vec::new();
    let mut unpriced: Vec<String> = Vec::new();
    for step in &steps {
        let calls = ledger.calls(step, complexity, None);
        if calls.most == 0 {
            // Enough changes have done without it.
            continue;
        }
        let per_call = ledger.per_call(step.kind, complexity, None);
        total.add(calls.typical, &per_call.typical);
        total.least += calls.least;
        let who = ledger.who(step.kind, complexity);
        if per_call.unpriced && !unpriced.contains(&who.model) {
            unpriced.push(who.model.clone());
        }
        forecasts.push(StepForecast {
            step: step.kind,
            agent: who.agent,
            model: who.model,
            ranges: per_call.ranges(calls),
            basis: if per_call.samples > 0 { Basis::Ledger } else { Basis::BuiltIn },
        });
    }
    let residuals = ledger.residuals(stage);
    let known = forecasts.iter().any(|step| step.basis == Basis::Ledger);
    Forecast {
        ranges: total.ranges(&residuals),
        basis: if known || residuals.changes > 0 { Basis::Ledger } else { Basis::BuiltIn },
        based_on: residuals.changes,
        error: past_error(past),
        steps: forecasts,
        unpriced,
    }
}

/// Typical figures, added up.
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    calls: f64,
    figures: Figures,
    /// The fewest calls that can be.
    least: u64,
}

impl Total {
    fn add(&mut self, calls: f64, each: &Figures) {
        self.calls += calls;
        self.figures = self.figures.plus(&each.times(calls));
    }

    fn ranges(&self, residuals: &Residuals) -> Ranges {
        let [least, most] = residuals.calls.around(self.calls);
        let least = spread::whole(least.floor()).max(self.least);
        Ranges {
            calls: [least, spread::whole(most.ceil()).max(least)],
            tokens: outward(residuals.tokens.around(self.figures.tokens)).map(spread::whole),
            cost_usd: outward(residuals.cost.around(self.figures.cost)),
            seconds: outward(residuals.seconds.around(self.figures.seconds)).map(spread::whole),
        }
    }
}

/// Who does a step, and with which model.
#[derive(Debug, Clone)]
struct Who {
    agent: AgentKind,
    model: String,
    price: Option<Price>,
}

/// What a call of a step typically uses.
struct PerCall {
    typical: Figures,
    /// By what it varies, as the logarithm of a factor.
    deviation: f64,
    samples: usize,
    unpriced: bool,
}

impl PerCall {
    /// What so many calls use.
    fn ranges(&self, calls: ExpectedCalls) -> Ranges {
        // Four of five calls are within this.
        let factor = (1.28 * self.deviation).exp();
        let range = |typical: f64| {
            let least = spread::number(calls.least) * typical / factor;
            outward([least, spread::number(calls.most) * typical * factor])
        };
        Ranges {
            calls: [calls.least, calls.most],
            tokens: range(self.typical.tokens).map(spread::whole),
            cost_usd: range(self.typical.cost),
            seconds: range(self.typical.seconds).map(spread::whole),
        }
    }
}

/// What the calls of a step in one change used, as calls for another change would have.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    change: usize,
    tokens: spread::LogMean,
    cost: spread::LogMean,
    seconds: spread::LogMean,
    samples: usize,
}

/// The same of all changes.
type AllUsed = Rc<[Used]>;

/// The calls of a project, by step.
struct Ledger<'a> {
    config: &'a Config,
    prices: PriceTable,
    past: &'a [PastChange],
    /// How often each step was called, by change.
    counts: Vec<BTreeMap<StepKind, u64>>,
    /// What was compared already: each finished change is forecast from all others.
    used: RefCell<BTreeMap<(StepKind, Complexity), AllUsed>>,
}

impl<'a> Ledger<'a> {
    fn new(config: &'a Config, past: &'a [PastChange]) -> Self {
        let count = |change: &PastChange| {
            let mut counts = BTreeMap::new();
            for call in &change.calls {
                *counts.entry(call.kind).or_default() += 1;
            }
            counts
        };
        let counts = past.iter().map(count).collect();
        let prices = PriceTable::default().with(config.prices.clone());
        Self { config, prices, past, counts, used: RefCell::default() }
    }

    /// Who does a step of a change of this complexity.
    fn who(&self, kind: StepKind, complexity: Complexity) -> Who {
        let agent = self.config.roles.agent(kind.role());
        let configured = self.config.agent(agent).models.get(&complexity);
        let model = models::choose(agent, complexity, configured).model.unwrap_or_default();
        let price = self.prices.price(models::full_name(agent, &model));
        Who { agent, model, price }
    }

    /// What a call of a step typically uses, with all changes but one.
    fn per_call(&self, kind: StepKind, complexity: Complexity, without: Option<usize>) -> PerCall {
        let who = self.who(kind, complexity);
        if who.agent.is_own() {
            let typical = Figures { tokens: 0.0, cost: 0.0, seconds: 1.0 };
            return PerCall { typical, deviation: 0.5, samples: 0, unpriced: false };
        }
        let used = self.used(kind, complexity, &who);
        let mut guess = figures(kind, complexity, who.price.as_ref());
        if who.price.is_none() {
            guess.cost = guess.tokens * self.cost_per_token(&who.model);
        }
        let mut tokens = spread::LogMean::new(guess.tokens, PRIOR_CALLS);
        let mut cost = spread::LogMean::new(guess.cost, PRIOR_CALLS);
        let mut seconds = spread::LogMean::new(guess.seconds, PRIOR_CALLS);
        let mut samples = 0;
        for used in used.iter().filter(|used| Some(used.change) != without) {
            tokens.merge(&used.tokens);
            cost.merge(&used.cost);
            seconds.merge(&used.seconds);
            samples += used.samples;
        }
        let unpriced = cost.is_empty();
        let typical = Figures { tokens: tokens.mean(), cost: cost.mean(), seconds: seconds.mean() };
        PerCall { typical, deviation: tokens.deviation(), samples, unpriced }
    }

    /// What the calls of a step used in each change, nearest in model and complexity first.
    fn used(&self, kind: StepKind, complexity: Complexity, who: &Who) -> AllUsed {
        if let Some(known) = self.used.borrow().get(&(kind, complexity)) {
            return Rc::clone(known);
        }
        let in_change = |(number, change): (usize, &PastChange)| {
            let mut all = Used { change: number, ..Used::default() };
            for call in change.calls.iter().filter(|call| call.kind == kind) {
                let Some(used) = call.figures else { continue };
                let same_model = models::answers_to(&who.model, &call.model);
                let mut weight = if same_model { 1.0 } else { OTHER_MODEL };
                if change.complexity != complexity {
                    weight *= OTHER_COMPLEXITY;
                }
                let from = (call, change.complexity);
                let used = self.comparable(&used, kind, from, (who, complexity));
                all.samples += 1;
                all.tokens.add(used.tokens, weight);
                all.cost.add(used.cost, weight);
                all.seconds.add(used.seconds, weight);
            }
            all
        };
        let used: AllUsed = self.past.iter().enumerate().map(in_change).collect();
        self.used.borrow_mut().insert((kind, complexity), Rc::clone(&used));
        used
    }

    /// What a model has cost that has no price: CLIs may report it.
    fn cost_per_token(&self, model: &str) -> f64 {
        let calls = self.past.iter().flat_map(|change| &change.calls);
        let mut mean = spread::LogMean::default();
        for call in calls.filter(|call| models::answers_to(model, &call.model)) {
            if let Some(used) = call.figures {
                mean.add(used.cost / used.tokens, 1.0);
            }
        }
        mean.mean()
    }

    /// What a call would have used for a change of another complexity, with another model.
    fn comparable(
        &self,
        used: &Figures,
        kind: StepKind,
        (call, then): (&PastCall, Complexity),
        (who, now): (&Who, Complexity),
    ) -> Figures {
        let size = built_in::size(now) / built_in::size(then);
        let price = match (&who.price, self.prices.price(&call.model)) {
            _ if models::answers_to(&who.model, &call.model) => 1.0,
            (Some(now), Some(then)) => {
                let usage = usage(kind, Complexity::Medium);
                let ratio = now.cost(usage) / then.cost(usage);
                if ratio.is_finite() { ratio.clamp(0.01, 100.0) } else { 1.0 }
            }
            _ => 1.0,
        };
        Figures {
            tokens: used.tokens * size,
            cost: used.cost * size * price,
            seconds: used.seconds * size,
        }
    }

    /// How often a step is called, with all finished changes but one.
    fn calls(
        &self,
        step: &ExpectedStep,
        complexity: Complexity,
        without: Option<usize>,
    ) -> ExpectedCalls {
        let guess = step.calls;
        if !step.whole || guess.most == 0 {
            return guess;
        }
        let (mut sum, mut weights) = (guess.typical * PRIOR_CHANGES, PRIOR_CHANGES);
        let mut seen: Option<(u64, u64)> = None;
        for (i, change) in self.past.iter().enumerate() {
            if Some(i) == without || !change.is_whole() {
                continue;
            }
            let calls = self.counts[i].get(&step.kind).copied().unwrap_or(0);
            let weight = if change.complexity == complexity { 1.0 } else { OTHER_COMPLEXITY };
            sum += spread::number(calls) * weight;
            weights += weight;
            let (least, most) = seen.unwrap_or((calls, calls));
            seen = Some((least.min(calls), most.max(calls)));
        }
        let (least, most) = match seen {
            Some(seen) if weights - PRIOR_CHANGES >= ENOUGH_CHANGES => seen,
            Some((least, most)) => (least.min(guess.least), most.max(guess.most)),
            None => (guess.least, guess.most),
        };
        ExpectedCalls { least, typical: sum / weights, most }
    }

    /// How wrong forecasts of the finished changes would have been, each from all others: of those
    /// parts of the workflow that are still to come.
    fn residuals(&self, stage: Stage) -> Residuals {
        let mut residuals = Residuals::default();
        for (i, change) in self.past.iter().enumerate().filter(|(_, change)| change.is_whole()) {
            let (complexity, settings) = (change.complexity, &self.config.workflow);
            let steps = expected_steps(complexity, settings, change.track, Stage::new());
            let mut expected = Total::default();
            for step in steps.iter().filter(|step| stage.includes(step.kind)) {
                let calls = self.calls(step, complexity, Some(i));
                let per_call = self.per_call(step.kind, complexity, Some(i));
                expected.add(calls.typical, &per_call.typical);
            }
            let mut used = Total::default();
            for call in change.calls.iter().filter(|call| stage.includes(call.kind)) {
                let who = self.who(call.kind, complexity);
                let figures = call.figures.filter(|_| !who.agent.is_own()).unwrap_or_default();
                let from = (call, complexity);
                used.add(1.0, &self.comparable(&figures, call.kind, from, (&who, complexity)));
            }
            residuals.changes += 1;
            residuals.calls.add(used.calls, expected.calls);
            residuals.tokens.add(used.figures.tokens, expected.figures.tokens);
            residuals.cost.add(used.figures.cost, expected.figures.cost);
            residuals.seconds.add(used.figures.seconds, expected.figures.seconds);
        }
        residuals
    }
}

#[cfg(test)]
mod tests;
