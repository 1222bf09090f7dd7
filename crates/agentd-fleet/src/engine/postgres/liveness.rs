//! Who is alive, and what becomes of the steps of those who are not.

use std::time::{Duration, Instant};

use agentd_core::ids::ChangeId;
use dbos::sysdb::{INTERNAL_QUEUE, SystemDatabase as _};
use sqlx::Row as _;

use super::super::{Claim, Pulse, Worker};
use super::steps::step_id;
use super::{PostgresEngine, VERSION, failed};
use crate::error::Result;

/// How often it is looked for what people have decided.
const LOOK: Duration = Duration::from_secs(4);

/// Since when this process has been able to talk to the server.
#[derive(Debug, Default)]
pub(super) struct Connected {
    since: Option<Instant>,
    looked: Option<Instant>,
}

impl Connected {
    /// For how long.
    pub(super) fn since(&mut self, now: Instant) -> Duration {
        now - *self.since.get_or_insert(now)
    }

    /// Whether it is time to look at git again.
    pub(super) fn is_time_to_look(&mut self) -> bool {
        let due = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK);
        if due {
            self.looked = Some(Instant::now());
        }
        due
    }
}

impl PostgresEngine {
    /// Shows that a worker is alive.
    pub(super) async fn beat(&self, worker: &Worker, running: &[Claim]) -> Result<Pulse> {
        let beat = "UPDATE agentd_fleet.worker SET beat = now() WHERE name = $1 AND NOT dead \
                    RETURNING drain";
        let beat = sqlx::query(beat).bind(worker.name.as_str());
        let Some(row) = beat.fetch_optional(&self.pool).await.map_err(failed)? else {
            return Ok(Pulse { dead: true, drain: false });
        };
        let running: Vec<String> = running
            .iter()
            .map(|claim| step_id(&self.name_of(&claim.change), claim.sequence))
            .collect();
        // A step that was admitted while the server went away, without a word about it.
        let unknown = "UPDATE dbos.workflow_status SET status = 'ENQUEUED', executor_id = NULL \
                       WHERE status = 'PENDING' AND name = 'step' AND executor_id = $1 \
                         AND NOT workflow_uuid = ANY($2) \
                         AND started_at_epoch_ms < extract(epoch FROM now()) * 1000 - 10000";
        let unknown = sqlx::query(unknown).bind(worker.name.as_str()).bind(&running);
        let given_back = unknown.execute(&self.pool).await.map_err(failed)?.rows_affected();
        if given_back > 0 {
            let call = "UPDATE agentd_fleet.call SET state = 'unsettled', ended = now() \
                        WHERE worker = $1 AND state = 'running' AND NOT id = ANY($2) \
                          AND began < now() - interval '10 seconds'";
            let call = sqlx::query(call).bind(worker.name.as_str()).bind(&running);
            call.execute(&self.pool).await.map_err(failed)?;
        }
        Ok(Pulse { dead: false, drain: row.get(0) })
    }

    /// Declares dead who was silent for too long, unless that may be the fault of the server or of this
    /// process's own connection, and does what others have left undone.
    pub(super) async fn sweep(&self, connected: Duration) -> Result<()> {
        if connected >= self.timing.grace() {
            let dead = "UPDATE agentd_fleet.worker SET dead = true, lost = true WHERE NOT dead \
                        AND beat < now() - make_interval(secs => $1) \
                        AND pg_postmaster_start_time() < now() - make_interval(secs => $2)";
            let dead = sqlx::query(dead).bind(self.timing.dead_after.as_secs_f64());
            let dead = dead.bind(self.timing.grace().as_secs_f64());
            dead.execute(&self.pool).await.map_err(failed)?;
        }
        self.bury().await?;
        self.dbos.transition_delayed_workflows().await.map_err(failed)?;
        let idle = "SELECT c.id FROM agentd_fleet.change c \
                    WHERE c.repository = $1 AND c.state = 'ready' AND NOT c.paused AND NOT EXISTS \
                      (SELECT 1 FROM dbos.workflow_status s \
                       WHERE s.workflow_uuid = c.id || '/' || c.sequence)";
        let idle = sqlx::query_scalar(idle).bind(&self.repository.key);
        let idle: Vec<String> = idle.fetch_all(&self.pool).await.map_err(failed)?;
        for id in idle {
            self.offer(&id).await?;
        }
        Ok(())
    }

    /// Gives back the steps of the dead. What they cost is not known yet.
    pub(super) async fn bury(&self) -> Result<()> {
        let dead = "SELECT DISTINCT s.executor_id FROM dbos.workflow_status s \
                    JOIN agentd_fleet.worker w ON w.name = s.executor_id \
                    WHERE w.dead AND s.status = 'PENDING' AND s.name = 'step'";
        let dead: Vec<String> =
            sqlx::query_scalar(dead).fetch_all(&self.pool).await.map_err(failed)?;
        let calls = "UPDATE agentd_fleet.call c SET state = 'unsettled', ended = now() \
                     FROM agentd_fleet.worker w \
                     WHERE c.worker = w.name AND w.dead AND c.state = 'running'";
        sqlx::query(calls).execute(&self.pool).await.map_err(failed)?;
        if dead.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = dead.iter().map(String::as_str).collect();
        let back = self.dbos.reenqueue_for_recovery(&names, VERSION, INTERNAL_QUEUE).await;
        back.map_err(failed)?;
        Ok(())
    }

    /// A change that waits for a person goes on when they have given it back: its ref has moved.
    pub(super) async fn look_at_waiting(&self) -> Result<()> {
        let waiting = "SELECT change, tip FROM agentd_fleet.change \
                       WHERE repository = $1 AND state = 'waiting' AND NOT paused";
        let waiting = sqlx::query(waiting).bind(&self.repository.key);
        let waiting = waiting.fetch_all(&self.pool).await.map_err(failed)?;
        if waiting.is_empty() {
            return Ok(());
        }
        let tips = super::tips(&self.repository).await?;
        for row in waiting {
            let (change, tip): (String, Option<String>) = (row.get(0), row.get(1));
            if tips.get(&change) == tip.as_ref() {
                continue;
            }
            let Ok(change) = ChangeId::new(&change) else { continue };
            self.resume(&change).await?;
        }
        Ok(())
    }
}
