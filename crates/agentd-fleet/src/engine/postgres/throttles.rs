//! Accounts that are used less for a while, because their vendor has refused calls. The limit that people
//! have set stays as it is.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::{PgConnection, Row as _};

use super::super::throttle::{self, RECOVERY, Throttle};
use super::{PostgresEngine, failed};
use crate::error::Result;

/// An account that is used less.
pub(super) struct Lowered {
    /// How many calls at once for now.
    pub(super) to: u32,
    /// Until when, before it begins to recover.
    pub(super) until: String,
    /// What the vendor has said.
    pub(super) why: String,
}

impl PostgresEngine {
    /// How many calls at once the accounts may have that are used less, if any of these queues has calls.
    pub(super) async fn throttles(&self, waiting: &[String]) -> Result<BTreeMap<String, u32>> {
        if !waiting.iter().any(|queue| queue.starts_with("agentd:call:")) {
            return Ok(BTreeMap::new());
        }
        Ok(self.lowered().await?.into_iter().map(|(name, lowered)| (name, lowered.to)).collect())
    }

    /// The accounts that are used less.
    pub(super) async fn lowered(&self) -> Result<BTreeMap<String, Lowered>> {
        let read = "SELECT account, lowered_to, extract(epoch FROM now() - until)::float8, \
                      to_char(until AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), why \
                    FROM agentd_fleet.throttle WHERE until > now() - make_interval(secs => $1)";
        let rows = sqlx::query(read).bind(RECOVERY.as_secs_f64());
        let rows = rows.fetch_all(&self.pool).await.map_err(failed)?;
        let lowered = rows.iter().filter_map(|row| {
            let (to, since): (i32, f64) = (row.get(1), row.get(2));
            let since = (since >= 0.0).then(|| Duration::from_secs_f64(since));
            let to = throttle::effective(u32::try_from(to).unwrap_or(0), since)?;
            Some((row.get(0), Lowered { to, until: row.get(3), why: row.get(4) }))
        });
        Ok(lowered.collect())
    }

    /// A call was refused. Calls that began before the account was lowered say nothing new about it.
    /// Returns how long the change rests.
    pub(super) async fn throttle(
        tx: &mut PgConnection,
        (call, attempt): (&str, i64),
        refused: &Throttle,
    ) -> Result<Duration> {
        let read = "SELECT c.account, \
                      (SELECT count(*) FROM agentd_fleet.call r \
                       WHERE r.account = c.account AND r.state = 'running' \
                         AND (r.id, r.attempt) <> (c.id, c.attempt)), \
                      t.times, t.since > c.began, \
                      greatest(extract(epoch FROM t.until - now()), 0)::float8 \
                    FROM agentd_fleet.call c LEFT JOIN agentd_fleet.throttle t \
                      ON t.account = c.account AND t.until > now() - make_interval(secs => $3) \
                    WHERE c.id = $1 AND c.attempt = $2";
        let row = sqlx::query(read).bind(call).bind(attempt).bind(RECOVERY.as_secs_f64());
        let row = row.fetch_one(&mut *tx).await.map_err(failed)?;
        let (account, others): (Option<String>, i64) = (row.get(0), row.get(1));
        let (times, is_known): (Option<i32>, Option<bool>) = (row.get(2), row.get(3));
        let Some(account) = account else { return Ok(Duration::ZERO) };
        if is_known == Some(true) && !refused.exhausted {
            let left: Option<f64> = row.get(4);
            return Ok(Duration::from_secs_f64(left.unwrap_or(0.0)));
        }
        let running = u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1);
        let times = times.and_then(|times| u32::try_from(times).ok()).unwrap_or(0);
        let lowered = throttle::lowered(refused, running, times);
        let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        let set = "INSERT INTO agentd_fleet.throttle AS t \
                     (account, lowered_to, times, since, until, why) \
                   VALUES ($1, $2, $3, now(), now() + make_interval(secs => $4), $5) \
                   ON CONFLICT (account) DO UPDATE SET lowered_to = $2, times = $3, since = now(), \
                     until = excluded.until, why = $5";
        sqlx::query(set)
            .bind(&account)
            .bind(number(lowered.to))
            .bind(number(lowered.times))
            .bind(lowered.rest.as_secs_f64())
            .bind(&refused.why)
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        if lowered.to == 0 {
            Self::hand_over(tx, &account).await?;
        }
        // Another account of the agent may do it at once.
        Ok(if refused.exhausted { Duration::ZERO } else { lowered.rest })
    }

    /// What waits for an account that rests goes to another one of the same agent, if a worker has one.
    async fn hand_over(tx: &mut PgConnection, account: &str) -> Result<()> {
        let other = "UPDATE dbos.workflow_status s SET queue_name = 'agentd:call:' || o.account \
                     FROM (SELECT DISTINCT repository, unnest(accounts) AS account \
                           FROM agentd_fleet.worker WHERE NOT dead) o \
                     WHERE s.status = 'ENQUEUED' AND s.queue_name = 'agentd:call:' || $1 \
                       AND s.queue_partition_key = o.repository AND o.account <> $1 \
                       AND split_part(o.account, ':', 1) = split_part($1, ':', 1) \
                       AND NOT EXISTS (SELECT 1 FROM agentd_fleet.throttle t \
                                       WHERE t.account = o.account AND t.until > now())";
        sqlx::query(other).bind(account).execute(tx).await.map_err(failed)?;
        Ok(())
    }
}
