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
    /// Offers the next step of a change on its queue, if it has one.
    pub(super) async fn offer(&self, id: &str) -> Result<()> {
        let read = "SELECT sequence, priority, agentd_fleet.queue_for(repository, step, agent) \
                    FROM agentd_fleet.change WHERE id = $1 AND state = 'ready' AND NOT paused";
        let row = sqlx::query(read).bind(id).fetch_optional(&self.pool).await.map_err(failed)?;
        let Some(row) = row else { return Ok(()) };
        match row.get::<Option<String>, _>(2) {
            Some(queue) => self.offer_on(id, row.get(0), row.get(1), &queue).await,
            // No worker has such an account yet; the next sweep tries again.
            None => Ok(()),
        }
    }

    /// Offers a step on a queue. Doing so twice is doing it once.
    pub(super) async fn offer_on(
        &self,
        id: &str,
        sequence: i64,
        priority: i32,
        queue: &str,
    ) -> Result<()> {
        let child = step_id(id, sequence);
        let workflow = NewWorkflow {
            name: Some(STEP),
            queue_name: Some(queue),
            queue_partition_key: Some(&self.repository.key),
            priority,
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
        let nothing = StepReport::default();
        let (name, why, before, report) = match outcome {
            Outcome::Stepped { report, cost_before } => {
                ("stepped", report.why.as_deref(), *cost_before, report)
            }
            Outcome::Busy(_) => ("busy", None, None, &nothing),
            Outcome::Away(why) | Outcome::Unfit(why) => ("busy", Some(&**why), None, &nothing),
            Outcome::Throttled(throttle) => ("throttled", Some(&*throttle.why), None, &nothing),
            Outcome::Lost => ("lost", None, None, &nothing),
            Outcome::Failed(why) => ("failed", Some(&**why), None, &nothing),
        };
        let next = report.next.as_ref();
        let waits = name == "stepped" && next.is_none();
        // That an account is used less counts only together with the end of the call that was refused.
        let mut refused = None;
        let mut rest = REST;
        if let Outcome::Throttled(throttle) = outcome {
            let mut tx = self.pool.begin().await.map_err(failed)?;
            rest = Self::throttle(&mut tx, (&child, claim.attempt), throttle).await?;
            refused = Some(tx);
        }
        let finish = "SELECT * FROM agentd_fleet.finish_step($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
                      $11, $12, $13, $14, $15, $16)";
        let finish = sqlx::query(finish)
            .bind(&child)
            .bind(claim.attempt)
            .bind(&id)
            .bind(worker.name.as_str())
            .bind(name)
            // Only of what waits, in some way, or has failed.
            .bind(why.filter(|_| waits || matches!(name, "busy" | "failed" | "throttled")))
            .bind(before)
            .bind(report.cost_usd)
            .bind(report.did.as_deref())
            .bind(next.map(|next| &*next.step))
            .bind(next.and_then(|next| next.agent.as_deref()))
            .bind(next.map_or(0.0, |next| next.estimate_usd))
            .bind(report.done)
            .bind(&report.phase)
            .bind(report.tip.as_deref().filter(|_| waits))
            .bind(rest.as_secs_f64());
        let row = match &mut refused {
            Some(tx) => finish.fetch_one(&mut **tx).await,
            None => finish.fetch_one(&self.pool).await,
        };
        let row = row.map_err(failed)?;
        let Some(state) = row.get::<Option<String>, _>(0) else { return Ok(Finished::Lost) };
        if let Some(tx) = refused {
            tx.commit().await.map_err(failed)?;
        }
        if let Some(queue) = row.get::<Option<String>, _>(3) {
            self.offer_on(&id, row.get(1), row.get(2), &queue).await?;
        }
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
