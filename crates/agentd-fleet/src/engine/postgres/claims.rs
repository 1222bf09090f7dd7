//! How a worker gets a step: DBOS admits it from its queue, then the budgets are charged for it.

use agentd_core::ids::ChangeId;
use dbos::sysdb::SystemDatabase as _;
use sqlx::{Postgres, Row as _, Transaction};

use super::super::{Claim, Submission, Worker};
use super::{PostgresEngine, VERSION, failed};
use crate::account::Account;
use crate::error::Result;

/// The priority of what somebody has died over: before everything else.
pub(super) const ORPHANED: i32 = i32::MIN;

/// What became of a step that DBOS has admitted.
enum Admitted {
    /// It is to be done.
    Claimed(Box<Claim>),
    /// It was done before, or its change is paused, or too expensive.
    Unwanted,
    /// Somebody else has it meanwhile.
    Gone,
}

impl PostgresEngine {
    /// A step whose priority is at most this number.
    pub(super) async fn claim_one(&self, worker: &Worker, most: i32) -> Result<Option<Claim>> {
        let mut queues = vec![(self.free_queue(), None), (self.archive_queue(), None)];
        let accounts = worker.accounts.iter();
        queues.extend(accounts.map(|account| (Self::account_queue(account), Some(account))));
        let names: Vec<&String> = queues.iter().map(|(name, _)| name).collect();
        // One look, so that a fleet with nothing to do costs next to nothing. What somebody has died over
        // comes first, then what comes first in its queue.
        let waiting = "SELECT queue_name FROM dbos.workflow_status \
                       WHERE status = 'ENQUEUED' AND queue_name = ANY($1) AND queue_partition_key = $2 \
                         AND NOT EXISTS (SELECT 1 FROM agentd_fleet.setting \
                                         WHERE name = $4 AND value = 'true') \
                         AND EXISTS (SELECT 1 FROM agentd_fleet.worker \
                                     WHERE name = $3 AND NOT dead AND NOT drain) \
                       GROUP BY queue_name HAVING min(priority) <= $5 ORDER BY min(priority), min(created_at)";
        let waiting = sqlx::query_scalar(waiting).bind(names).bind(&self.repository.key);
        let waiting: Vec<String> = waiting
            .bind(worker.name.as_str())
            .bind(self.paused())
            .bind(most)
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        let throttles = self.throttles(&waiting).await?;
        for name in &waiting {
            let Some((_, account)) = queues.iter().find(|(queue, _)| queue == name) else {
                continue;
            };
            let most = account.and_then(|account| throttles.get(&account.to_string()).copied());
            while let Some(child) = self.admit(name, worker, most).await? {
                match self.admitted(&child, worker, *account).await? {
                    Admitted::Claimed(claim) => return Ok(Some(*claim)),
                    Admitted::Unwanted => self.close_step(&child).await?,
                    Admitted::Gone => {}
                }
            }
        }
        Ok(None)
    }

    /// The first step of a queue that its limits admit.
    ///
    /// DBOS counts what is running, and takes the first row without waiting for others who do the same. Two
    /// who see a different first row would both take theirs for the last free place, so one at a time
    /// looks at a queue. A worker that is frozen meanwhile is thrown out by the server.
    async fn admit(
        &self,
        queue: &str,
        worker: &Worker,
        most: Option<u32>,
    ) -> Result<Option<String>> {
        if most == Some(0) {
            return Ok(None);
        }
        let Some(mut record) = self.dbos.get_queue(queue).await.map_err(failed)? else {
            return Ok(None);
        };
        // One place, whatever else this worker does: it has asked because it has a free slot.
        record.worker_concurrency = Some(1);
        if let Some(most) = most.and_then(|most| i32::try_from(most).ok()) {
            record.concurrency = Some(record.concurrency.map_or(most, |limit| limit.min(most)));
        }
        let shared = record.concurrency.is_some() || record.rate_limit.is_some();
        let turn = if shared { Some(self.turn(queue).await?) } else { None };
        let partition = Some(&*self.repository.key);
        let name = worker.name.as_str();
        let admitted =
            self.dbos.start_queued_workflows(&record, name, VERSION, partition, 0, 0).await;
        if let Some(turn) = turn {
            turn.commit().await.map_err(failed)?;
        }
        Ok(admitted.map_err(failed)?.into_iter().next())
    }

    /// Waits for a turn at a queue, which lasts until the result is committed or dropped.
    async fn turn(&self, queue: &str) -> Result<Transaction<'_, Postgres>> {
        let mut turn = self.pool.begin().await.map_err(failed)?;
        let lock = sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))");
        lock.bind(queue).execute(&mut *turn).await.map_err(failed)?;
        Ok(turn)
    }

    /// Checks that a step is still wanted, and reserves what it is expected to cost.
    async fn admitted(
        &self,
        child: &str,
        worker: &Worker,
        account: Option<&Account>,
    ) -> Result<Admitted> {
        let Some((id, number)) = child.rsplit_once('/') else { return Ok(Admitted::Unwanted) };
        let Ok(sequence) = number.parse::<i64>() else { return Ok(Admitted::Unwanted) };
        let claim = "SELECT * FROM agentd_fleet.claim_step($1, $2, $3, $4, $5, $6)";
        let claim = sqlx::query(claim).bind(child).bind(id).bind(sequence);
        let claim = claim.bind(worker.name.as_str()).bind(account.map(ToString::to_string));
        let claim = claim.bind(account.map(Account::team));
        let row = claim.fetch_one(&self.pool).await.map_err(failed)?;
        match row.get(0) {
            "claimed" => {}
            "gone" => return Ok(Admitted::Gone),
            _ => return Ok(Admitted::Unwanted),
        }
        let (change, submission): (String, String) = (row.get(1), row.get(2));
        let change = ChangeId::new(&change).map_err(failed)?;
        let submission: Submission = serde_json::from_str(&submission).map_err(failed)?;
        let step: Option<String> = row.get(3);
        let (attempt, orphaned): (i64, bool) = (row.get(4), row.get(5));
        Ok(Admitted::Claimed(Box::new(Claim {
            change,
            submission,
            agents: account.iter().map(|account| account.agent().to_owned()).collect(),
            // What somebody has died over may have been done.
            look: step.is_none() || attempt > 1,
            step: Some(step.unwrap_or_else(|| "look".to_owned())),
            sequence,
            attempt,
            orphaned,
            token: String::new(),
        })))
    }
}
