//! Who works on what, and when: the engine of a fleet, behind one trait.
//!
//! What an engine holds decides nothing about a change. If it and git differ, git wins: every step begins
//! with what the remote has, and a push that is refused ends it. So an engine that forgets or repeats
//! something costs time, and no checkpointed call is paid for again.

pub mod git;
pub mod postgres;
pub mod throttle;

use std::time::Duration;

use agentd_core::carried::WorkerName;
use agentd_core::ids::ChangeId;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::error::Result;
use throttle::Throttle;

/// A change that is given to the fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// What is wanted.
    pub description: String,
    /// Which is first: the lower number.
    #[serde(default)]
    pub priority: i32,
    /// The most that it may cost, in US dollars.
    #[serde(default)]
    pub budget_usd: Option<f64>,
    /// Whether nobody decides about the plan.
    #[serde(default)]
    pub auto: bool,
}

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Submitted {
    /// It is on the list.
    Submitted,
    /// It was there before, and stays as it is.
    AlreadySubmitted,
    /// It is done.
    AlreadyDone,
}

/// A worker, as the others know it.
#[derive(Debug, Clone)]
pub struct Worker {
    /// Its name, which no other process ever has.
    pub name: WorkerName,
    /// How many steps it does at the same time.
    pub slots: usize,
    /// The accounts whose keys it has.
    pub accounts: Vec<Account>,
}

impl Worker {
    /// The account with which this worker calls an agent.
    pub(crate) fn account_for(&self, agent: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.agent() == agent)
    }
}

/// One step of a change that a worker may do now, and nobody else.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The change.
    pub change: ChangeId,
    /// How it was submitted.
    pub submission: Submission,
    /// The agents that may be called for it: that of the account which it counts for; none for what is
    /// not a call.
    pub agents: Vec<String>,
    /// Whether nobody is sure what comes next, so that it is looked at first.
    pub look: bool,
    /// The number of the step in the fleet.
    pub sequence: i64,
    /// The step that it is for, where the engine knows.
    pub step: Option<String>,
    /// The number of the attempt: above one, somebody has died while doing it.
    pub attempt: i64,
    /// Whether who had the change last has died, and nobody has done anything since: what they have
    /// claimed on the remote is taken at once.
    pub orphaned: bool,
    /// Where the list was when it was claimed, where there is such a thing.
    pub token: String,
}

/// What `agentd step --json` says comes next.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct NextStep {
    /// Its name.
    pub step: String,
    /// The agent that is called; none where none is.
    #[serde(default)]
    pub agent: Option<String>,
    /// What it is expected to cost.
    #[serde(default)]
    pub estimate_usd: f64,
}

/// What `agentd step --json` says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct StepReport {
    /// What was done.
    #[serde(default)]
    pub did: Option<String>,
    /// What comes next.
    #[serde(default)]
    pub next: Option<NextStep>,
    /// What a person has to decide.
    #[serde(default)]
    pub why: Option<String>,
    /// Whether nothing is left to do.
    #[serde(default)]
    pub done: bool,
    /// The phase of the change.
    #[serde(default)]
    pub phase: String,
    /// What the change has cost so far.
    #[serde(default)]
    pub cost_usd: f64,
    /// The snapshot of the change on the remote.
    #[serde(default)]
    pub tip: Option<String>,
    /// The branch on the remote that has the result of a change that is done.
    #[serde(default)]
    pub landed: Option<String>,
    /// What else was said, for the log of the worker.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was done, or nothing was to do for this worker.
    Stepped {
        /// What the change says now.
        report: StepReport,
        /// What the change had cost before, if it was looked at.
        cost_before: Option<f64>,
    },
    /// Nothing was called: somebody else has the change.
    Busy(String),
    /// The remote does not answer, before a call or after it.
    Away(String),
    /// This machine cannot do it: its disk is full, it has no such agent, or no login. Another one may.
    Unfit(String),
    /// The vendor has refused the call: too many at once, or a quota is used up.
    Throttled(Throttle),
    /// Somebody else has taken the change over meanwhile.
    Lost,
    /// It has failed, and a person has to look.
    Failed(String),
}

/// What becomes of a claim after its step.
#[derive(Debug)]
pub enum Finished {
    /// Anybody may do the next step.
    Released,
    /// The same worker goes on.
    Kept(Box<Claim>),
    /// The worker had lost it already.
    Lost,
}

/// What a worker learns from its own sign of life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pulse {
    /// The others take it for dead: it ends its agents, and goes on under another name.
    pub dead: bool,
    /// It finishes what it has begun, and ends.
    pub drain: bool,
}

/// How often an engine is asked.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How often a worker shows that it is alive, and does what others have left undone.
    pub beat: Duration,
    /// How long a sign of life may take; what is slower is tried again.
    pub limit: Duration,
    /// How often it is looked for what people have decided.
    pub look: Duration,
    /// How long a worker with nothing to do waits at most until it asks again.
    pub idle: Duration,
}

/// What people tell a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// Begin no further step, of one change or of all.
    Pause(Option<ChangeId>),
    /// Go on, with one change or with all.
    Resume(Option<ChangeId>),
    /// All workers finish what they have begun, and end.
    Drain,
}

/// How much an account may be used, over the whole fleet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// How many calls at the same time.
    pub concurrency: Option<u32>,
    /// How many calls begin per minute.
    pub rpm: Option<u32>,
}

/// What a budget is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetScope {
    /// A change of this repository.
    Change(ChangeId),
    /// This repository, for ever.
    Repository,
    /// A team, over all its accounts.
    Team(String),
    /// Each day, in UTC, over the whole fleet.
    Day,
}

/// A call that was cut short, and may have been paid for.
#[derive(Debug, Clone, Serialize)]
pub struct UnsettledCall {
    /// Its name in the fleet.
    pub call: String,
    /// The change.
    pub change: String,
    /// What it was.
    pub step: String,
    /// Who made it.
    pub worker: String,
    /// What counts as spent for it.
    pub estimate_usd: f64,
}

/// A change, as the fleet sees it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListedChange {
    /// Its ID.
    pub change: String,
    /// `ready`, `running`, `waiting`, `failed`, `over_budget`, `paused`, `taken` or `done`.
    pub state: String,
    /// What is done, or comes next.
    pub step: Option<String>,
    /// The agent for that.
    pub agent: Option<String>,
    /// Who does it.
    pub worker: Option<String>,
    /// What a person has to know.
    pub why: Option<String>,
    /// Which is first.
    pub priority: i32,
    /// The phase of the change.
    pub phase: Option<String>,
    /// What it has cost.
    pub cost_usd: f64,
}

/// A worker in the list.
#[derive(Debug, Clone, Serialize)]
pub struct ListedWorker {
    /// Its name.
    pub name: String,
    /// How many steps it does at the same time; 0 if the engine does not know.
    pub slots: i32,
    /// How many it does now.
    pub running: i64,
    /// Its accounts.
    pub accounts: Vec<String>,
    /// Seconds since its last sign of life.
    pub silent_secs: f64,
    /// Whether it ends when its steps have.
    pub drains: bool,
    /// `works`, `idle`, `drains`, `frozen` if it is silent for longer than it should, or `dead` if it was
    /// taken for dead within the last hour.
    pub state: &'static str,
}

/// An account in the list.
#[derive(Debug, Clone, Serialize)]
pub struct ListedAccount {
    /// Its name.
    pub account: String,
    /// How many calls are running.
    pub running: i64,
    /// How many wait.
    pub queued: i64,
    /// Its limits.
    #[serde(flatten)]
    pub limit: Limit,
    /// How many calls at the same time for now, because the vendor has refused some; 0 where it rests.
    pub lowered_to: Option<u32>,
    /// Until when, in UTC; after that it recovers step by step.
    pub lowered_until: Option<String>,
    /// What the vendor has said.
    pub why: Option<String>,
}

/// A budget in the list.
#[derive(Debug, Clone, Serialize)]
pub struct ListedBudget {
    /// What it is for.
    pub scope: String,
    /// The most that may be spent.
    pub cap_usd: Option<f64>,
    /// What was spent.
    pub spent_usd: f64,
    /// What is reserved for calls that are running, or were cut short.
    pub reserved_usd: f64,
}

/// The whole fleet at a glance.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Overview {
    /// `git` or `postgres`.
    pub engine: &'static str,
    /// The repository.
    pub repository: String,
    /// Whether no further step begins.
    pub paused: bool,
    /// The changes.
    pub changes: Vec<ListedChange>,
    /// The workers, as far as the engine knows them.
    pub workers: Vec<ListedWorker>,
    /// The accounts.
    pub accounts: Vec<ListedAccount>,
    /// The budgets.
    pub budgets: Vec<ListedBudget>,
    /// The calls that were cut short.
    pub unsettled: Vec<UnsettledCall>,
}

/// Who works on what, and when.
#[expect(async_fn_in_trait, reason = "one thread runs all of it, so nothing has to be Send")]
pub trait Engine {
    /// How often it is asked.
    fn pace(&self) -> Pace;

    /// Puts a change on the list. The same change again is the same change.
    async fn submit(&self, change: &ChangeId, what: &Submission) -> Result<Submitted>;

    /// Makes a worker known.
    async fn register(&self, worker: &Worker) -> Result<()>;

    /// A step that this worker may do now, if there is one: within the limits of its accounts and all
    /// budgets, which are charged for it.
    async fn claim(&self, worker: &Worker) -> Result<Option<Claim>>;

    /// A step that somebody has died over, for a worker whose slots are all in use. The dead have left as
    /// many slots as they had, so the fleet does no more at the same time than before.
    async fn claim_orphan(&self, worker: &Worker) -> Result<Option<Claim>>;

    /// Shows that a worker is alive, and does nothing that may take longer.
    async fn heartbeat(&self, worker: &Worker) -> Result<Pulse>;

    /// Does what others have left undone, above all those who are dead. The worker has these steps.
    async fn sweep(&self, worker: &Worker, running: &[Claim]) -> Result<()>;

    /// Finds out what people have decided.
    async fn look(&self) -> Result<()>;

    /// Says what came of a step, and settles what it has cost.
    async fn finish(&self, worker: &Worker, claim: Claim, outcome: &Outcome) -> Result<Finished>;

    /// The worker ends, and has nothing left to do.
    async fn leave(&self, worker: &Worker) -> Result<()>;

    /// Tells the fleet something.
    async fn signal(&self, signal: &Signal) -> Result<()>;

    /// Limits an account.
    async fn limit(&self, account: &Account, limit: Limit) -> Result<()>;

    /// Sets the most that may be spent.
    async fn budget(&self, scope: &BudgetScope, cap_usd: f64) -> Result<()>;

    /// The price of a call that was cut short, as the vendor says.
    async fn settle(&self, call: &str, cost_usd: f64) -> Result<()>;

    /// The whole fleet.
    async fn list(&self) -> Result<Overview>;
}
