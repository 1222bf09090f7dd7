//! The steps of a change: offered on a queue, finished, paused.

use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use dbos::sysdb::types::{
    InitWorkflowCaller, NewWorkflow, Outcome as Recorded, Submission, Timestamp,
};
use dbos::sysdb::{Error as DbosError, SystemDatabase as _};
use sqlx::Row as _;
use std::time::Duration;

use super::super::{Claim, Finished, Outcome, StepReport, Worker};
use super::{PostgresEngine, STEP, VERSION, failed};
use crate::error::{FleetError, Result};

/// How long a change rests that somebody else has.
const REST: Duration = Duration::from_secs(5);

/// The name of a step: that of its change, and its number.
pub(super) fn step_id(change: &str, sequence: i64) -> String {
    format!("{change}/{sequence}")
}

impl PostgresEngine {
    /// Offers the next step of a change on its queue. Doing so twice is doing it once.
    pub(super) async fn offer(&self, id: &str) -> Result<()> {
        self.offer_after(id, None).await
    }

    async fn offer_after(&self, id: &str, delay: Option<Duration>) -> Result<()> {
        let read = "SELECT sequence, priority, step, agent FROM agentd_fleet.change \
                    WHERE id = $1 AND state = 'ready' AND NOT paused";
        let row = sqlx::query(read).bind(id).fetch_optional(&self.pool).await.map_err(failed)?;
        let Some(row) = row else { return Ok(()) };
        let (sequence, priority): (i64, i32) = (row.get(0), row.get(1));
        let (step, agent): (Option<String>, Option<String>) = (row.get(2), row.get(3));
        let queue = match (agent, step.as_deref()) {
            (Some(agent), _) => match self.queue_for(&agent).await? {
                Some(queue) => queue,
                // No worker has such an account yet; the next sweep tries again.
                None => return Ok(()),
            },
            (None, Some("archive")) => self.archive_queue(),
            (None, _) => self.free_queue(),
        };
        let child = step_id(id, sequence);
        let workflow = NewWorkflow {
            name: Some(STEP),
            queue_name: Some(&queue),
            queue_partition_key: Some(&self.repository.key),
            priority,
            delay,
            application_version: Some(VERSION),
            ..NewWorkflow::new(&child)
        };
        let caller = InitWorkflowCaller {
            parent_workflow_id: id,
            step_id: i32::try_from(sequence).unwrap_or(i32::MAX),
            step_name: STEP,
            started_at: Timestamp::now(),
        };
        let made = self.dbos.init_workflow(&workflow, None, Submission::Fresh, Some(caller)).await;
        match made {
            // Somebody else has offered it in the same moment.
            Ok(_) | Err(DbosError::ConflictingWorkflow { .. }) => Ok(()),
            Err(error) => {
                let there = self.dbos.get_workflow(&child).await.map_err(failed)?;
                if there.is_some() { Ok(()) } else { Err(failed(error)) }
            }
        }
    }

    /// The queue of the account for an agent: of those that live workers have, the one with the least to
    /// do.
    async fn queue_for(&self, agent: &str) -> Result<Option<String>> {
        let accounts = "SELECT account, (SELECT count(*) FROM dbos.workflow_status s \
                          WHERE s.queue_name = 'agentd:call:' || account \
                          AND s.status IN ('ENQUEUED', 'PENDING')) AS busy \
                        FROM (SELECT DISTINCT unnest(accounts) AS account FROM agentd_fleet.worker \
                              WHERE NOT dead AND repository = $1) a \
                        WHERE split_part(account, ':', 1) = $2 \
                        ORDER BY EXISTS (SELECT 1 FROM agentd_fleet.throttle t \
                                         WHERE t.account = a.account AND t.until > now()), \
                          busy, account LIMIT 1";
        let row = sqlx::query(accounts).bind(&self.repository.key).bind(agent);
        let row = row.fetch_optional(&self.pool).await.map_err(failed)?;
        Ok(row.map(|row| format!("agentd:call:{}", row.get::<String, _>(0))))
    }

    /// Says what came of a step. What is here first decides whether the worker still had it; then the next
    /// step is offered; then DBOS learns that this one has ended. A worker that dies in
    /// between leaves something that the next sweep does.
    pub(super) async fn finish_step(
        &self,
        worker: &Worker,
        claim: &Claim,
        outcome: &Outcome,
    ) -> Result<Finished> {
        let id = self.name_of(&claim.change);
        let child = step_id(&id, claim.sequence);
        let waits = matches!(outcome, Outcome::Stepped { report, .. }
            if report.next.is_none() && !report.done);
        let tip = if waits {
            super::tips(&self.repository).await?.remove(claim.change.as_str())
        } else {
            None
        };
        let mut tx = self.pool.begin().await.map_err(failed)?;
        let call_state = match outcome {
            Outcome::Stepped { .. } => "settled",
            Outcome::Busy(_) | Outcome::Throttled(_) => "void",
            Outcome::Lost | Outcome::Failed(_) => "unsettled",
        };
        let ended = "UPDATE agentd_fleet.call SET state = $4, ended = now() \
                     WHERE id = $1 AND attempt = $2 AND worker = $3 AND state = 'running'";
        let ended = sqlx::query(ended).bind(&child).bind(claim.attempt).bind(worker.name.as_str());
        let ended = ended.bind(call_state).execute(&mut *tx).await.map_err(failed)?;
        if ended.rows_affected() == 0 {
            return Ok(Finished::Lost);
        }
        let report = match outcome {
            Outcome::Stepped { report, .. } => Some(report),
            Outcome::Busy(_) | Outcome::Throttled(_) | Outcome::Lost | Outcome::Failed(_) => None,
        };
        let costs = match outcome {
            Outcome::Stepped { report, cost_before } => Some((*cost_before, report.cost_usd)),
            // Nothing was called. What a refused call has cost is in the books of the change, and counts
            // with its next step.
            Outcome::Busy(_) | Outcome::Throttled(_) => Some((Some(0.0), 0.0)),
            // Nobody knows what it has cost: it stays reserved.
            Outcome::Lost | Outcome::Failed(_) => None,
        };
        if let Outcome::Stepped { report, cost_before: Some(before) } = outcome
            && claim.attempt > 1
        {
            let expected = "SELECT step FROM agentd_fleet.change WHERE id = $1";
            let expected = sqlx::query_scalar(expected).bind(&id).fetch_one(&mut *tx).await;
            let expected: Option<String> = expected.map_err(failed)?;
            let next = report.next.as_ref().map(|next| &next.step);
            // What came next was something else: the one who died had done what was expected.
            if expected.is_some() && report.did.as_ref().or(next) != expected.as_ref() {
                Self::charge_checkpointed(&mut tx, &id, &child, *before).await?;
            }
        }
        if let Some(costs) = costs {
            Self::charge(&mut tx, &id, &child, claim.attempt, costs).await?;
        }
        let (state, why) = match outcome {
            Outcome::Stepped { report: StepReport { done: true, .. }, .. } => ("done", None),
            Outcome::Stepped { report: StepReport { next: None, why, .. }, .. } => {
                ("waiting", why.clone())
            }
            Outcome::Throttled(throttle) => ("ready", Some(throttle.why.clone())),
            Outcome::Stepped { .. } | Outcome::Busy(_) | Outcome::Lost => ("ready", None),
            Outcome::Failed(why) => ("failed", Some(why.clone())),
        };
        let update = "UPDATE agentd_fleet.change SET sequence = sequence + 1, state = $2, why = $3, \
                      tip = $4, step = NULL, agent = NULL, estimate_usd = 0 WHERE id = $1";
        let update = sqlx::query(update).bind(&id).bind(state).bind(why).bind(tip);
        update.execute(&mut *tx).await.map_err(failed)?;
        if let Some(report) = report {
            let next = report.next.as_ref();
            let update = "UPDATE agentd_fleet.change SET step = $2, agent = $3, estimate_usd = $4, \
                          phase = $5, cost_usd = $6 WHERE id = $1";
            sqlx::query(update)
                .bind(&id)
                .bind(next.map(|next| next.step.clone()))
                .bind(next.and_then(|next| next.agent.clone()))
                .bind(next.map_or(0.0, |next| next.estimate_usd))
                .bind(&report.phase)
                .bind(report.cost_usd)
                .execute(&mut *tx)
                .await
                .map_err(failed)?;
        }
        let rest = match outcome {
            Outcome::Busy(_) | Outcome::Lost => Some(REST),
            Outcome::Throttled(throttle) => {
                let rest = Self::throttle(&mut tx, (&child, claim.attempt), throttle).await?;
                // DBOS knows no delay of nothing.
                Some(rest).filter(|rest| !rest.is_zero())
            }
            Outcome::Stepped { .. } | Outcome::Failed(_) => None,
        };
        tx.commit().await.map_err(failed)?;
        self.offer_after(&id, rest).await?;
        self.close_step(&child).await?;
        if state == "done" {
            self.dbos.record_workflow_outcome(&id, Recorded::Output(None)).await.map_err(failed)?;
        }
        Ok(Finished::Released)
    }

    /// DBOS learns that a step has ended.
    pub(super) async fn close_step(&self, child: &str) -> Result<()> {
        let closed = self.dbos.record_workflow_outcome(child, Recorded::Output(None)).await;
        closed.map_err(failed)?;
        Ok(())
    }

    pub(super) async fn pause(&self, change: &ChangeId) -> Result<()> {
        let pause = "UPDATE agentd_fleet.change SET paused = true WHERE id = $1 RETURNING id";
        self.change_one(change, pause).await
    }

    /// Goes on with a change, whatever it waits for. What it waits for is in git: nothing is decided by
    /// this, it is only looked at again.
    pub(super) async fn resume(&self, change: &ChangeId) -> Result<()> {
        let resume = "UPDATE agentd_fleet.change SET paused = false, why = NULL, \
                      step = NULL, agent = NULL, \
                      sequence = CASE WHEN state IN ('waiting', 'failed', 'over_budget') OR paused \
                                 THEN sequence + 1 ELSE sequence END, \
                      state = CASE WHEN state = 'done' THEN state ELSE 'ready' END \
                      WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM agentd_fleet.call \
                          WHERE change = $1 AND state = 'running') RETURNING id";
        let plain = "UPDATE agentd_fleet.change SET paused = false WHERE id = $1 RETURNING id";
        // While a step is running, its end decides what comes next.
        if self.change_one(change, resume).await.is_err() {
            self.change_one(change, plain).await?;
        }
        self.offer(&self.name_of(change)).await
    }

    async fn change_one(&self, change: &ChangeId, statement: &'static str) -> Result<()> {
        let row = sqlx::query(statement).bind(self.name_of(change));
        match row.fetch_optional(&self.pool).await.map_err(failed)? {
            Some(_) => Ok(()),
            None => {
                Err(FleetError::new(Kind::NoSuchChange, format!("`{change}` was not submitted"))
                    .hint("see what was: agentd fleet status"))
            }
        }
    }
}
