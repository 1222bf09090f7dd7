//! How a worker gets a step: DBOS admits it from its queue, then the budgets are charged for it.

use agentd_core::ids::ChangeId;
use dbos::sysdb::SystemDatabase as _;
use sqlx::{Postgres, Row as _, Transaction};

use super::super::{Claim, Submission, Worker};
use super::steps::step_id;
use super::{PostgresEngine, VERSION, failed};
use crate::account::Account;
use crate::error::Result;

/// What became of a step that DBOS has admitted.
enum Admitted {
    /// It is to be done.
    Claimed(Box<Claim>),
    /// It was done before, or its change is paused, or too expensive.
    Not,
}

impl PostgresEngine {
    pub(super) async fn claim_one(&self, worker: &Worker) -> Result<Option<Claim>> {
        let mut queues = vec![(self.free_queue(), None), (self.archive_queue(), None)];
        let accounts = worker.accounts.iter();
        queues.extend(accounts.map(|account| (Self::account_queue(account), Some(account))));
        let names: Vec<&String> = queues.iter().map(|(name, _)| name).collect();
        // One look, so that a fleet with nothing to do costs next to nothing.
        let waiting = "SELECT DISTINCT queue_name FROM dbos.workflow_status \
                       WHERE status = 'ENQUEUED' AND queue_name = ANY($1) AND queue_partition_key = $2 \
                         AND NOT EXISTS (SELECT 1 FROM agentd_fleet.setting \
                                         WHERE name = $4 AND value = 'true') \
                         AND EXISTS (SELECT 1 FROM agentd_fleet.worker \
                                     WHERE name = $3 AND NOT dead AND NOT drain)";
        let waiting = sqlx::query_scalar(waiting).bind(names).bind(&self.repository.key);
        let waiting: Vec<String> = waiting
            .bind(worker.name.as_str())
            .bind(self.paused())
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        let throttles = self.throttles(&waiting).await?;
        for (name, account) in queues.iter().filter(|(name, _)| waiting.contains(name)) {
            let most = account.and_then(|account| throttles.get(&account.to_string()).copied());
            while let Some(child) = self.admit(name, worker, most).await? {
                if let Admitted::Claimed(claim) = self.admitted(&child, worker, *account).await? {
                    return Ok(Some(*claim));
                }
                self.close_step(&child).await?;
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
        let settings = "SELECT set_config('lock_timeout', '3s', true), \
                        set_config('idle_in_transaction_session_timeout', '5s', true)";
        sqlx::query(settings).execute(&mut *turn).await.map_err(failed)?;
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
        let Some((id, sequence)) = child.rsplit_once('/') else { return Ok(Admitted::Not) };
        let mut tx = self.pool.begin().await.map_err(failed)?;
        let read = "SELECT change, submission, step, estimate_usd, \
                      state = 'ready' AND NOT paused AND sequence::text = $2 AND EXISTS \
                        (SELECT 1 FROM agentd_fleet.worker WHERE name = $3 AND NOT dead), \
                      (SELECT count(*) FROM agentd_fleet.call WHERE id = $4) \
                    FROM agentd_fleet.change WHERE id = $1 FOR UPDATE";
        let row = sqlx::query(read).bind(id).bind(sequence).bind(worker.name.as_str()).bind(child);
        let Some(row) = row.fetch_optional(&mut *tx).await.map_err(failed)? else {
            return Ok(Admitted::Not);
        };
        let (change, submission): (String, String) = (row.get(0), row.get(1));
        let step: Option<String> = row.get(2);
        let (wanted, attempts): (Option<bool>, i64) = (row.get(4), row.get(5));
        let change = ChangeId::new(&change).ok();
        let submission: Option<Submission> = serde_json::from_str(&submission).ok();
        let (Some(true), Some(change), Some(submission), Ok(sequence)) =
            (wanted, change, submission, sequence.parse())
        else {
            return Ok(Admitted::Not);
        };
        let scopes = self.scopes(id, account);
        let estimate = match account {
            Some(_) => {
                let step = step.as_deref().unwrap_or_default();
                Self::expected(&mut tx, step, row.get(3)).await?
            }
            None => 0.0,
        };
        if account.is_some()
            && let Err(refused) = Self::reserve(&mut tx, &scopes, estimate).await?
        {
            tx.rollback().await.map_err(failed)?;
            let why =
                format!("the budget {refused} is used up; the next call needs ${estimate:.4}");
            let over =
                "UPDATE agentd_fleet.change SET state = 'over_budget', why = $2 WHERE id = $1";
            let over = sqlx::query(over).bind(id).bind(why);
            over.execute(&self.pool).await.map_err(failed)?;
            return Ok(Admitted::Not);
        }
        let insert = "INSERT INTO agentd_fleet.call \
                      (id, attempt, change, step, worker, account, estimate_usd, state, scopes) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7, 'running', $8)";
        let attempt = attempts + 1;
        sqlx::query(insert)
            .bind(step_id(id, sequence))
            .bind(attempt)
            .bind(id)
            .bind(step.as_deref().unwrap_or("look"))
            .bind(worker.name.as_str())
            .bind(account.map(ToString::to_string))
            .bind(estimate)
            .bind(scopes)
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        let agents = account.iter().map(|account| account.agent().to_owned()).collect();
        // What somebody has died over may have been done.
        let look = step.is_none() || attempt > 1;
        let token = String::new();
        let claim = Claim { change, submission, agents, look, sequence, attempt, token };
        Ok(Admitted::Claimed(Box::new(claim)))
    }
}
