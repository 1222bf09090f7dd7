//! A fleet on Postgres, with DBOS.
//!
//! A change is a workflow of DBOS, `<repository>/<change>`, and each of its steps a child of that on a
//! queue: that of the account which is to pay for the call, that for what costs nothing, or that for the
//! archiving, of which there is one at a time for each repository. DBOS admits a child from its queue
//! within the limits of the queue, over the whole fleet, and gives back those of a worker that is dead.
//!
//! `dbos` is used without its own executor. That polls each queue by itself and has a fixed number of
//! places for each, where a worker has slots for all of them together; and nobody notices that an executor
//! is dead without a product that has no Rust client. So `claims` asks for as many as there are free
//! slots, and `liveness` finds out who is dead.

mod budgets;
mod claims;
mod liveness;
mod overview;
mod schema;
mod steps;
mod throttles;

use std::time::Duration;

use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use dbos::sysdb::SystemDatabase as _;
use dbos::sysdb::postgres::{PostgresSystemDatabase, Settings};
use dbos::sysdb::retry::RetryPolicy;
use dbos::sysdb::types::{
    Change as Set, NewQueue, NewWorkflow, OnExistingQueue, QueueUpdate, RateLimit,
    Submission as Submitting,
};
use sqlx::Executor as _;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use tokio::sync::Mutex;

use super::{
    BudgetScope, Claim, Engine, Finished, Limit, Outcome, Overview, Pace, Pulse, Signal,
    Submission, Submitted, Worker,
};
use crate::account::Account;
use crate::error::{FleetError, Result};
use crate::program;
use crate::repository::Repository;

/// The version of what is in the rows, for DBOS: workers of another one leave them alone.
const VERSION: &str = "agentd-fleet-1";
/// The name under which DBOS knows the workflow of a change.
const CHANGE: &str = "change";
/// The name of a step of it.
const STEP: &str = "step";
/// How many connections a process has.
const CONNECTIONS: u32 = 4;
/// What was used so recently is not asked whether it is there before it is used again.
const FRESH: Duration = Duration::from_secs(1);
/// What every connection begins with. Whoever is frozen in the middle of something is thrown out, and waits
/// for nobody for long. What is written is on disk a moment later: a crash of the server forgets the last
/// fraction of a second, all of it from some point on. What must not be forgotten waits for the disk:
/// `claim_step`, and `keep`.
const SESSION: &str = "SET synchronous_commit = off; SET lock_timeout = '4s'; \
                       SET idle_in_transaction_session_timeout = '3s'; \
                       SET statement_timeout = '20s'";

/// What is known about time.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// A worker that was silent for so long is dead.
    pub dead_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { dead_after: Duration::from_secs(14) }
    }
}

/// The fleet of a repository on a server.
pub struct PostgresEngine {
    pool: PgPool,
    dbos: PostgresSystemDatabase,
    repository: Repository,
    timing: Timing,
    url: String,
    /// The connection for signs of life; none if the last one did not arrive.
    beating: Mutex<Option<PgConnection>>,
}

/// Begins a connection.
async fn prepare(connection: &mut PgConnection) -> std::result::Result<(), sqlx::Error> {
    connection.execute(SESSION).await?;
    Ok(())
}

/// An error of the database.
fn failed(error: impl std::fmt::Display) -> FleetError {
    FleetError::new(Kind::FleetUnreachable, "the server of the fleet does not answer, or refuses")
        .cause(error)
        .hint("check the address, without quotes in AGENTD_FLEET: psql \"$AGENTD_FLEET\" -c 'select 1'")
}

impl PostgresEngine {
    /// Connects to a server, and creates the tables that are missing there.
    pub async fn connect(url: &str, repository: Repository, timing: Timing) -> Result<Self> {
        schema::set_up(url).await?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .min_connections(0)
            .acquire_timeout(Duration::from_secs(4))
            .test_before_acquire(false)
            .before_acquire(|connection, state| {
                Box::pin(async move {
                    use sqlx::Connection as _;
                    if state.idle_for > FRESH {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .after_connect(|connection, _| Box::pin(prepare(connection)))
            .connect(url)
            .await
            .map_err(failed)?;
        let settings = Settings {
            // The caller tries again, and goes on with other things meanwhile.
            retry: RetryPolicy {
                initial_backoff: Duration::from_millis(20),
                max_backoff: Duration::from_millis(200),
                retry_connection_errors: false,
            },
            ..Settings::default()
        };
        let dbos = PostgresSystemDatabase::from_pool(pool.clone(), &settings);
        let (url, beating) = (url.to_owned(), Mutex::default());
        Ok(Self { pool, dbos, repository, timing, url, beating })
    }

    /// Returns when everything that was written so far is on disk, no matter who has written it.
    async fn keep(&self) -> Result<()> {
        // The log has one order: what is before this is there if this is.
        let keep = "WITH wait AS (SELECT set_config('synchronous_commit', 'on', true)) \
                    INSERT INTO agentd_fleet.setting SELECT 'kept', now()::text FROM wait \
                    ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        sqlx::query(keep).execute(&self.pool).await.map_err(failed)?;
        Ok(())
    }

    fn name_of(&self, change: &ChangeId) -> String {
        self.repository.name_of(change)
    }

    /// The queue of what costs nothing.
    fn free_queue(&self) -> String {
        format!("agentd:free:{}", self.repository.key)
    }

    /// The setting that says whether no further step of the repository begins.
    fn paused(&self) -> String {
        format!("paused:{}", self.repository.key)
    }

    fn archive_queue(&self) -> String {
        format!("agentd:archive:{}", self.repository.key)
    }

    fn account_queue(account: &Account) -> String {
        format!("agentd:call:{account}")
    }

    /// Puts a queue where it is missing.
    async fn ensure_queue(&self, name: &str, concurrency: Option<i32>) -> Result<()> {
        let queue = NewQueue { concurrency, priority_enabled: true, ..NewQueue::new(name) };
        self.dbos.upsert_queue(&queue, OnExistingQueue::Leave).await.map_err(failed)?;
        Ok(())
    }

    async fn set(&self, name: &str, value: &str) -> Result<()> {
        let set = "INSERT INTO agentd_fleet.setting VALUES ($1, $2) \
                   ON CONFLICT (name) DO UPDATE SET value = $2";
        sqlx::query(set).bind(name).bind(value).execute(&self.pool).await.map_err(failed)?;
        Ok(())
    }
}

impl Engine for PostgresEngine {
    fn pace(&self) -> Pace {
        Pace {
            beat: self.timing.dead_after / 7,
            limit: liveness::beat_limit(self.timing.dead_after),
            look: Duration::from_secs(4),
            idle: Duration::from_millis(500),
        }
    }

    async fn submit(&self, change: &ChangeId, what: &Submission) -> Result<Submitted> {
        let id = self.name_of(change);
        let input = serde_json::to_string(what).unwrap_or_default();
        self.ensure_queue(&self.free_queue(), None).await?;
        self.ensure_queue(&self.archive_queue(), Some(1)).await?;
        let workflow = NewWorkflow {
            name: Some(CHANGE),
            input: Some(&input),
            serialization: Some("json"),
            executor_id: Some("fleet"),
            application_version: Some(VERSION),
            ..NewWorkflow::new(&id)
        };
        self.dbos.init_workflow(&workflow, None, Submitting::Fresh, None).await.map_err(failed)?;
        if let Some(cap) = what.budget_usd {
            self.set_cap(&format!("change:{id}"), cap).await?;
        }
        let insert = "INSERT INTO agentd_fleet.change \
                      (id, repository, change, submission, priority, state) \
                      VALUES ($1, $2, $3, $4, $5, 'ready') ON CONFLICT (id) DO NOTHING";
        let insert = sqlx::query(insert).bind(&id).bind(&self.repository.key);
        let insert = insert.bind(change.as_str()).bind(&input).bind(what.priority);
        let is_new = insert.execute(&self.pool).await.map_err(failed)?.rows_affected() == 1;
        self.offer(&id).await?;
        self.keep().await?;
        if is_new {
            return Ok(Submitted::Submitted);
        }
        let state = sqlx::query_scalar("SELECT state FROM agentd_fleet.change WHERE id = $1");
        let state: String = state.bind(&id).fetch_one(&self.pool).await.map_err(failed)?;
        Ok(if state == "done" { Submitted::AlreadyDone } else { Submitted::AlreadySubmitted })
    }

    async fn register(&self, worker: &Worker) -> Result<()> {
        self.ensure_queue(&self.free_queue(), None).await?;
        self.ensure_queue(&self.archive_queue(), Some(1)).await?;
        for account in &worker.accounts {
            self.ensure_queue(&Self::account_queue(account), None).await?;
        }
        let accounts: Vec<String> = worker.accounts.iter().map(ToString::to_string).collect();
        let insert = "INSERT INTO agentd_fleet.worker (name, repository, accounts, slots, alive_at) \
                      SELECT $1, $2, $3, $4, seconds FROM agentd_fleet.clock \
                      ON CONFLICT (name) DO NOTHING";
        let insert = sqlx::query(insert).bind(worker.name.as_str()).bind(&self.repository.key);
        let slots = i32::try_from(worker.slots).unwrap_or(i32::MAX);
        insert.bind(accounts).bind(slots).execute(&self.pool).await.map_err(failed)?;
        // A worker that nobody knows is a dead one.
        self.keep().await
    }

    async fn claim(&self, worker: &Worker) -> Result<Option<Claim>> {
        self.claim_one(worker, i32::MAX).await
    }

    async fn claim_orphan(&self, worker: &Worker) -> Result<Option<Claim>> {
        self.claim_one(worker, claims::ORPHANED).await
    }

    async fn heartbeat(&self, worker: &Worker) -> Result<Pulse> {
        self.beat(worker).await
    }

    async fn sweep(&self, worker: &Worker, running: &[Claim]) -> Result<()> {
        self.sweep_steps(worker, running).await
    }

    async fn look(&self) -> Result<()> {
        self.look_at_waiting().await
    }

    async fn finish(&self, worker: &Worker, claim: Claim, outcome: &Outcome) -> Result<Finished> {
        self.finish_step(worker, &claim, outcome).await
    }

    async fn leave(&self, worker: &Worker) -> Result<()> {
        // What it has not finished goes back at once.
        let dead = sqlx::query("UPDATE agentd_fleet.worker SET dead = true WHERE name = $1");
        dead.bind(worker.name.as_str()).execute(&self.pool).await.map_err(failed)?;
        self.bury().await
    }

    async fn signal(&self, signal: &Signal) -> Result<()> {
        match signal {
            Signal::Pause(None) => self.set(&self.paused(), "true").await,
            Signal::Resume(None) => self.set(&self.paused(), "false").await,
            Signal::Drain => {
                let drain = "UPDATE agentd_fleet.worker SET drain = true \
                             WHERE NOT dead AND repository = $1";
                let drain = sqlx::query(drain).bind(&self.repository.key);
                drain.execute(&self.pool).await.map_err(failed)?;
                Ok(())
            }
            Signal::Pause(Some(change)) => self.pause(change).await,
            Signal::Resume(Some(change)) => self.resume(change).await,
        }?;
        self.keep().await
    }

    async fn limit(&self, account: &Account, limit: Limit) -> Result<()> {
        let name = Self::account_queue(account);
        self.ensure_queue(&name, None).await?;
        let number = |limit: u32| i32::try_from(limit).unwrap_or(i32::MAX);
        let rate = |rpm: u32| RateLimit { limit: number(rpm), period: Duration::from_mins(1) };
        let update = QueueUpdate {
            concurrency: Set::Set(limit.concurrency.map(number)),
            rate_limit: Set::Set(limit.rpm.map(rate)),
            ..QueueUpdate::default()
        };
        self.dbos.update_queue(&name, &update, &|_, _| Ok(())).await.map_err(failed)?;
        self.keep().await
    }

    async fn budget(&self, scope: &BudgetScope, cap_usd: f64) -> Result<()> {
        let scope = match scope {
            BudgetScope::Change(change) => format!("change:{}", self.name_of(change)),
            BudgetScope::Repository => format!("repository:{}", self.repository.key),
            BudgetScope::Team(team) => format!("team:{team}"),
            BudgetScope::Day => "day".to_owned(),
        };
        self.set_cap(&scope, cap_usd).await?;
        self.try_again_over_budget().await?;
        self.keep().await
    }

    async fn settle(&self, call: &str, cost_usd: f64) -> Result<()> {
        self.settle_call(call, cost_usd).await?;
        self.keep().await
    }

    async fn list(&self) -> Result<Overview> {
        self.overview().await
    }
}

/// Where the branches of changes are on the remote that workers carry.
async fn tips(repository: &Repository) -> Result<std::collections::HashMap<String, String>> {
    use std::ffi::OsStr;
    let words =
        ["ls-remote", "--quiet", "--", &repository.url, "refs/agentd/wip/*"].map(OsStr::new);
    let output = program::git(&repository.root, &words, b"").await?;
    if !output.ok {
        return Err(FleetError::new(
            Kind::RemoteUnreachable,
            "the remote repository does not answer",
        )
        .cause(output.stderr));
    }
    let line = |line: &str| {
        let (commit, name) = line.split_once('\t')?;
        Some((name.strip_prefix("refs/agentd/wip/")?.to_owned(), commit.to_owned()))
    };
    Ok(output.stdout.lines().filter_map(line).collect())
}
