//! What a change has cost, and what all changes of a project have cost, archived ones included: by
//! step, model, role, change and month.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use agentd_core::agent::Role;
use agentd_core::config::Budget;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ArchiveName;
use agentd_core::stamp::Stamp;
use agentd_core::state::{LlmCall, Ranges, State};
use agentd_core::step_name::StepName;
use serde::Serialize;

use crate::change::documents::load_state_if_begun;
use crate::change::settling::{UnsettledCall, unsettled};
use crate::store::{Change, Project, StoreError, map_parallel};

/// What calls of agents have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spent {
    /// How many calls there were.
    pub calls: usize,
    /// How many of them failed.
    pub failed: usize,
    /// Tokens that went in, including cached ones.
    pub tokens_in: u64,
    /// Tokens that went in and were cached.
    pub tokens_cached: u64,
    /// Tokens that came out.
    pub tokens_out: u64,
    /// How long the calls took together.
    pub duration_ms: u64,
    /// Their cost, in US dollars.
    pub cost_usd: f64,
}

impl Spent {
    fn of<'c>(calls: impl IntoIterator<Item = &'c LlmCall>) -> Self {
        let mut spent = Self::default();
        for call in calls {
            spent.add(call);
        }
        spent
    }

    fn add(&mut self, call: &LlmCall) {
        self.calls += 1;
        self.failed += usize::from(call.failure.is_some());
        self.tokens_in = self.tokens_in.saturating_add(call.tokens_in);
        self.tokens_cached = self.tokens_cached.saturating_add(call.tokens_cached);
        self.tokens_out = self.tokens_out.saturating_add(call.tokens_out);
        self.duration_ms = self.duration_ms.saturating_add(call.duration_ms);
        // A negative cost lowers no total, as in budgets.
        self.cost_usd += call.cost.max(0.0);
    }
}

/// What all calls of agents for a change have cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostReport {
    /// The change.
    pub change_id: ChangeId,
    /// The cost of all calls, in US dollars.
    pub total_cost_usd: f64,
    /// Tokens that went in, including cached ones.
    pub tokens_in: u64,
    /// Tokens that went in and were cached.
    pub tokens_cached: u64,
    /// Tokens that came out.
    pub tokens_out: u64,
    /// How long all calls took together.
    pub duration_ms: u64,
    /// How many calls there were.
    pub calls: usize,
    /// How many of them failed.
    pub failed: usize,
    /// What the settings allow a change to cost.
    pub budget: Budget,
    /// What the whole change was expected to use when it began; none for changes of earlier versions.
    pub forecast: Option<Ranges>,
    /// The name of its directory in the archive, if it is there.
    pub archived: Option<String>,
    /// The calls by step and model, in the order of their first call.
    pub steps: Vec<StepCost>,
    /// The calls by model, the dearest first.
    pub models: Vec<Share>,
    /// The calls by role, the dearest first.
    pub roles: Vec<Share>,
    /// Calls that were cut short before anyone knew what they cost: they count with an estimate.
    pub unsettled: Vec<UnsettledCall>,
}

/// All calls of one step with one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepCost {
    /// The step.
    pub step: StepName,
    /// The model that answered.
    pub model: String,
    /// What they have used.
    #[serde(flatten)]
    pub spent: Spent,
}

/// All calls that have something in common.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// What they have in common: the name of a model, a role, a kind of step, or a month.
    pub name: String,
    /// What they have used.
    #[serde(flatten)]
    pub spent: Spent,
}

/// What all changes of a project have cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectCost {
    /// The cost of all calls, in US dollars.
    pub total_cost_usd: f64,
    /// The month that this is about; none for all of them.
    pub month: Option<Month>,
    /// What all calls have used.
    #[serde(flatten)]
    pub spent: Spent,
    /// The changes that have cost something, the latest call first.
    pub changes: Vec<ChangeCost>,
    /// The calls by kind of step, the dearest first.
    pub steps: Vec<Share>,
    /// The calls by model, the dearest first.
    pub models: Vec<Share>,
    /// The calls by role, the dearest first.
    pub roles: Vec<Share>,
    /// The calls by month, the latest first.
    pub months: Vec<Share>,
    /// The changes whose state cannot be read, and why.
    pub unreadable: Vec<String>,
}

/// What one change of a project has cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeCost {
    /// The change.
    pub change_id: ChangeId,
    /// The name of its directory in the archive, if it is there.
    pub archived: Option<String>,
    /// When its last call ended.
    pub last_call: Option<Stamp>,
    /// What its calls have used.
    #[serde(flatten)]
    pub spent: Spent,
}

/// A month in UTC, `2026-11`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Month(String);

impl Month {
    /// The month of a moment.
    pub fn of(at: Stamp) -> Self {
        Self(at.date().get(.."2026-11".len()).unwrap_or_default().to_owned())
    }
}

impl FromStr for Month {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let first = text.len() == "2026-11".len();
        let first = first.then(|| format!("{text}-01").parse::<Stamp>().ok()).flatten();
        first.map(Self::of).ok_or_else(|| "expected a month such as 2026-11".to_owned())
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The cost of a change so far.
pub fn report(change: &Change, state: &State, budget: Budget) -> CostReport {
    let spent = Spent::of(&state.llm_calls);
    CostReport {
        change_id: state.change_id.clone(),
        total_cost_usd: state.total_cost,
        tokens_in: state.total_tokens_in,
        tokens_cached: spent.tokens_cached,
        tokens_out: state.total_tokens_out,
        duration_ms: spent.duration_ms,
        calls: spent.calls,
        failed: spent.failed,
        budget,
        forecast: state.forecast,
        archived: change.archived().map(ToString::to_string),
        steps: by_step(&state.llm_calls),
        models: dearest_first(shares(&state.llm_calls, model)),
        roles: dearest_first(shares(&state.llm_calls, role)),
        unsettled: unsettled(&state.llm_calls),
    }
}

/// What all changes of a project have cost, or what they have cost in one month.
pub fn of_project(project: &Project, month: Option<&Month>) -> Result<ProjectCost, StoreError> {
    let mut read = Vec::new();
    let mut unreadable = Vec::new();
    for one in ledgers(project)? {
        match one {
            Ok(Some(ledger)) => read.push(ledger),
            Ok(None) => {}
            Err(problem) => unreadable.push(problem),
        }
    }
    // One that was archived while this looked is in both places.
    let open: BTreeSet<(ChangeId, Option<Stamp>)> =
        read.iter().filter(|ledger| ledger.archived.is_none()).map(Ledger::key).collect();
    read.retain(|ledger| ledger.archived.is_none() || !open.contains(&ledger.key()));
    if let Some(month) = month {
        let is_in = |call: &LlmCall| call.timestamp.is_some_and(|at| Month::of(at) == *month);
        for ledger in &mut read {
            ledger.calls.retain(is_in);
        }
    }
    let calls = || read.iter().flat_map(|ledger| &ledger.calls);
    let spent = Spent::of(calls());
    let mut months = shares(calls(), |call| {
        call.timestamp.map_or_else(|| "unknown".to_owned(), |at| Month::of(at).to_string())
    });
    months.sort_by(|a, b| b.name.cmp(&a.name));
    let mut changes: Vec<ChangeCost> = read
        .iter()
        .filter(|ledger| !ledger.calls.is_empty())
        .map(|ledger| ChangeCost {
            change_id: ledger.change.clone(),
            archived: ledger.archived.as_ref().map(ToString::to_string),
            last_call: ledger.calls.iter().filter_map(|call| call.timestamp).max(),
            spent: Spent::of(&ledger.calls),
        })
        .collect();
    changes.sort_by(|a, b| b.last_call.cmp(&a.last_call).then(a.change_id.cmp(&b.change_id)));
    Ok(ProjectCost {
        total_cost_usd: spent.cost_usd,
        month: month.cloned(),
        spent,
        changes,
        steps: dearest_first(shares(calls(), kind_of_step)),
        models: dearest_first(shares(calls(), model)),
        roles: dearest_first(shares(calls(), role)),
        months,
        unreadable,
    })
}

/// The calls of one change.
struct Ledger {
    change: ChangeId,
    began: Option<Stamp>,
    archived: Option<ArchiveName>,
    calls: Vec<LlmCall>,
}

impl Ledger {
    /// What tells it from other changes of the same ID.
    fn key(&self) -> (ChangeId, Option<Stamp>) {
        (self.change.clone(), self.began)
    }
}

/// The calls of every change that has begun, open or archived, or why they cannot be read.
fn ledgers(project: &Project) -> Result<Vec<Result<Option<Ledger>, String>>, StoreError> {
    // The open ones are looked for first, so that none is missed that is archived meanwhile.
    let mut changes = Vec::new();
    for (id, home) in project.open_everywhere()? {
        changes.extend(home.change_if_open(&id)?);
    }
    for (name, home) in project.archived_everywhere()? {
        match home.archived_change(&name) {
            Err(error) if error.is_not_found() => {}
            change => changes.push(change?),
        }
    }
    Ok(map_parallel(&changes, |change| match load_state_if_begun(change) {
        Ok(state) => Ok(state.map(|state| Ledger {
            change: state.change_id,
            began: state.created_at,
            archived: change.archived().cloned(),
            calls: state.llm_calls,
        })),
        Err(error) => Err(error.to_string()),
    }))
}

fn by_step(calls: &[LlmCall]) -> Vec<StepCost> {
    let mut steps: Vec<StepCost> = Vec::new();
    for call in calls {
        let same = |step: &StepCost| step.step == call.step && step.model == call.model;
        let at = steps.iter().position(same).unwrap_or_else(|| {
            let (step, model) = (call.step.clone(), call.model.clone());
            steps.push(StepCost { step, model, spent: Spent::default() });
            steps.len() - 1
        });
        steps[at].spent.add(call);
    }
    steps
}

/// Calls that have the same name, in the order of the first call.
fn shares<'c>(
    calls: impl IntoIterator<Item = &'c LlmCall>,
    name: impl Fn(&LlmCall) -> String,
) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    for call in calls {
        let name = name(call);
        let at = shares.iter().position(|share| share.name == name).unwrap_or_else(|| {
            shares.push(Share { name, spent: Spent::default() });
            shares.len() - 1
        });
        shares[at].spent.add(call);
    }
    shares
}

fn dearest_first(mut shares: Vec<Share>) -> Vec<Share> {
    shares.sort_by(|a, b| b.spent.cost_usd.total_cmp(&a.spent.cost_usd));
    shares
}

fn model(call: &LlmCall) -> String {
    match (&*call.model, call.agent) {
        ("", Some(agent)) => agent.name().to_owned(),
        ("", None) => "unknown".to_owned(),
        (model, _) => model.to_owned(),
    }
}

fn role(call: &LlmCall) -> String {
    call.step.role().map_or("unknown", Role::name).to_owned()
}

/// The name of a step without its spec or layer: changes have different ones.
fn kind_of_step(call: &LlmCall) -> String {
    call.step.kind().to_owned()
}
