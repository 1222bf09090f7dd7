//! Who is alive, and what becomes of the steps of those who are not.
//!
//! The fleet has a clock of its own, one row, which goes on only while workers show that they are alive. A
//! sign of life moves it by the time since the one before, but by no more than a third of what a worker
//! may be silent for. So time in which the server was away, or in which all workers were frozen with the
//! laptop that they run on, counts against nobody; and a worker that dies in the same moment as the server
//! is dead as soon as any other, without a grace time for all. Whoever decides that somebody is dead has
//! shown itself to be alive in the same statement, so nothing depends on what a process that was frozen
//! meanwhile remembers, or on the clock of any worker.

use std::time::Duration;

use agentd_core::ids::ChangeId;
use dbos::sysdb::{INTERNAL_QUEUE, SystemDatabase as _};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};

use super::super::{Claim, Pulse, Worker};
use super::claims::ORPHANED;
use super::steps::step_id;
use super::{PostgresEngine, VERSION, failed, tips};
use crate::error::Result;

/// What was admitted for a worker so long ago, and it does not know of it, is not done.
const UNKNOWN: &str = "10 seconds";

/// Shows that a worker is alive, and declares dead who was silent for too long.
const BEAT: &str = "\
    WITH clock AS ( \
        UPDATE agentd_fleet.clock SET moved = clock_timestamp(), seconds = seconds + \
            least(greatest(extract(epoch FROM clock_timestamp() - moved)::float8, 0), $2 / 3) \
        RETURNING seconds \
    ), alive AS ( \
        UPDATE agentd_fleet.worker w SET beat = clock_timestamp(), alive_at = clock.seconds \
        FROM clock WHERE w.name = $1 AND NOT w.dead RETURNING w.drain \
    ), dead AS ( \
        UPDATE agentd_fleet.worker w SET dead = true, lost = true \
        FROM clock WHERE w.name <> $1 AND NOT w.dead AND w.alive_at < clock.seconds - $2 \
    ) SELECT drain FROM alive";

impl PostgresEngine {
    /// Shows that a worker is alive, over a connection of its own: a sign of life waits for nothing else,
    /// and if it takes too long, the next one does not use what may be dead.
    pub(super) async fn beat(&self, worker: &Worker) -> Result<Pulse> {
        let mut own = self.beating.lock().await;
        let mut connection = match own.take() {
            Some(connection) => connection,
            None => {
                let mut connection = PgConnection::connect(&self.url).await.map_err(failed)?;
                super::prepare(&mut connection).await.map_err(failed)?;
                connection
            }
        };
        let beat = sqlx::query(BEAT).bind(worker.name.as_str());
        let beat = beat.bind(self.timing.dead_after.as_secs_f64());
        let alive = beat.fetch_optional(&mut connection).await.map_err(failed)?;
        *own = Some(connection);
        Ok(match alive {
            Some(row) => Pulse { dead: false, drain: row.get(0) },
            None => Pulse { dead: true, drain: false },
        })
    }

    /// Does what others have left undone.
    pub(super) async fn sweep_steps(&self, worker: &Worker, running: &[Claim]) -> Result<()> {
        self.bury().await?;
        self.give_back_unknown(worker, running).await?;
        let afford = sqlx::query("SELECT agentd_fleet.afford($1)").bind(&self.repository.key);
        afford.execute(&self.pool).await.map_err(failed)?;
        let idle = "SELECT c.id, c.sequence, c.priority, \
                      agentd_fleet.queue_for(c.repository, c.step, c.agent) \
                    FROM agentd_fleet.change c \
                    WHERE c.repository = $1 AND c.state = 'ready' AND NOT c.paused \
                      AND (c.rests_until IS NULL OR c.rests_until <= now()) AND NOT EXISTS \
                      (SELECT 1 FROM dbos.workflow_status s \
                       WHERE s.workflow_uuid = c.id || '/' || c.sequence)";
        let idle = sqlx::query(idle).bind(&self.repository.key);
        for row in idle.fetch_all(&self.pool).await.map_err(failed)? {
            let (id, queue): (String, Option<String>) = (row.get(0), row.get(3));
            // Without one, no worker has such an account yet.
            let Some(queue) = queue else { continue };
            self.offer_on(&id, row.get(1), row.get(2), &queue).await?;
        }
        Ok(())
    }

    /// Gives back the steps of the dead, which come before all others then.
    pub(super) async fn bury(&self) -> Result<()> {
        let dead = sqlx::query_scalar("SELECT * FROM agentd_fleet.bury()");
        let dead: Vec<String> = dead.fetch_all(&self.pool).await.map_err(failed)?;
        if dead.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = dead.iter().map(String::as_str).collect();
        let back = self.dbos.reenqueue_for_recovery(&names, VERSION, INTERNAL_QUEUE).await;
        let first = "UPDATE dbos.workflow_status SET priority = $2 \
                     WHERE workflow_uuid = ANY($1) AND status = 'ENQUEUED'";
        let first = sqlx::query(first).bind(back.map_err(failed)?).bind(ORPHANED);
        first.execute(&self.pool).await.map_err(failed)?;
        Ok(())
    }

    /// A step that was admitted while the server went away, without a word about it, or that the server has
    /// forgotten the end of.
    async fn give_back_unknown(&self, worker: &Worker, running: &[Claim]) -> Result<()> {
        let running: Vec<String> = running
            .iter()
            .map(|claim| step_id(&self.name_of(&claim.change), claim.sequence))
            .collect();
        let unknown = format!(
            "WITH back AS ( \
                UPDATE dbos.workflow_status SET status = 'ENQUEUED', executor_id = NULL \
                WHERE status = 'PENDING' AND name = 'step' AND executor_id = $1 \
                  AND NOT workflow_uuid = ANY($2) AND started_at_epoch_ms < \
                    extract(epoch FROM now() - interval '{UNKNOWN}') * 1000 \
                RETURNING workflow_uuid \
             ), cut AS ( \
                UPDATE agentd_fleet.call l SET state = 'unsettled', ended = now() FROM back \
                WHERE l.id = back.workflow_uuid AND l.worker = $1 AND l.state = 'running' \
                RETURNING l.id, l.attempt, l.change, l.step \
             ) UPDATE agentd_fleet.change c SET lost_id = cut.id, lost_attempt = cut.attempt, \
                 lost_step = nullif(cut.step, 'look') FROM cut WHERE c.id = cut.change"
        );
        let unknown = sqlx::query(sqlx::AssertSqlSafe(unknown)).bind(worker.name.as_str());
        unknown.bind(&running).execute(&self.pool).await.map_err(failed)?;
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
        let tips = tips(&self.repository).await?;
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

/// How long a sign of life may take until another one is tried.
pub(super) fn beat_limit(dead_after: Duration) -> Duration {
    (dead_after / 4).max(Duration::from_secs(2))
}
