//! The whole fleet at a glance.

use dbos::sysdb::SystemDatabase as _;
use dbos::sysdb::types::Applications;
use sqlx::Row as _;

use super::super::{
    Limit, ListedAccount, ListedBudget, ListedChange, ListedWorker, Overview, UnsettledCall,
};
use super::{PostgresEngine, failed};
use crate::error::Result;

impl PostgresEngine {
    pub(super) async fn overview(&self) -> Result<Overview> {
        let paused = "SELECT EXISTS (SELECT 1 FROM agentd_fleet.setting \
                      WHERE name = $1 AND value = 'true')";
        Ok(Overview {
            engine: "postgres",
            repository: self.repository.key.clone(),
            paused: sqlx::query_scalar(paused)
                .bind(self.paused())
                .fetch_one(&self.pool)
                .await
                .map_err(failed)?,
            changes: self.listed_changes().await?,
            workers: self.listed_workers().await?,
            accounts: self.listed_accounts().await?,
            budgets: self.listed_budgets().await?,
            unsettled: self.unsettled().await?,
        })
    }

    async fn listed_changes(&self) -> Result<Vec<ListedChange>> {
        let changes = "SELECT c.change, CASE WHEN r.worker IS NOT NULL THEN 'running' \
                         WHEN c.paused THEN 'paused' ELSE c.state END, \
                         c.step, c.agent, r.worker, c.why, c.priority, c.phase, c.cost_usd \
                       FROM agentd_fleet.change c \
                       LEFT JOIN agentd_fleet.call r ON r.change = c.id AND r.state = 'running' \
                       WHERE c.repository = $1 ORDER BY c.state = 'done', c.priority, c.submitted_at";
        let rows = sqlx::query(changes).bind(&self.repository.key);
        let rows = rows.fetch_all(&self.pool).await.map_err(failed)?;
        let listed = rows.iter().map(|row| ListedChange {
            change: row.get(0),
            state: row.get(1),
            step: row.get(2),
            agent: row.get(3),
            worker: row.get(4),
            why: row.get(5),
            priority: row.get(6),
            phase: row.get(7),
            cost_usd: row.get(8),
        });
        Ok(listed.collect())
    }

    async fn listed_workers(&self) -> Result<Vec<ListedWorker>> {
        let workers = "SELECT w.name, w.slots, w.accounts, w.drain, \
                         extract(epoch FROM now() - w.beat)::float8, \
                         (SELECT count(*) FROM agentd_fleet.call c \
                          WHERE c.worker = w.name AND c.state = 'running'), w.dead \
                       FROM agentd_fleet.worker w WHERE w.repository = $1 AND (NOT w.dead \
                         OR w.lost AND w.beat > now() - interval '1 hour') ORDER BY w.dead, w.name";
        let rows = sqlx::query(workers)
            .bind(&self.repository.key)
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        let listed = rows.iter().map(|row| ListedWorker {
            name: row.get(0),
            slots: row.get(1),
            accounts: row.get(2),
            drains: row.get(3),
            silent_secs: row.get(4),
            running: row.get(5),
            state: self.state_of(row.get(6), row.get(3), row.get(4), row.get(5)),
        });
        Ok(listed.collect())
    }

    fn state_of(&self, dead: bool, drains: bool, silent: f64, running: i64) -> &'static str {
        match (dead, drains) {
            (true, _) => "dead",
            // It shows that it is alive seven times before it is taken for dead.
            _ if silent > self.timing.dead_after.as_secs_f64() * 3.0 / 7.0 => "frozen",
            (false, true) => "drains",
            (false, false) if running > 0 => "works",
            (false, false) => "idle",
        }
    }

    async fn listed_accounts(&self) -> Result<Vec<ListedAccount>> {
        let counts = "SELECT queue_name, count(*) FILTER (WHERE status = 'PENDING'), \
                        count(*) FILTER (WHERE status = 'ENQUEUED') FROM dbos.workflow_status \
                      WHERE queue_name LIKE 'agentd:call:%' AND status IN ('PENDING', 'ENQUEUED') \
                      GROUP BY queue_name";
        let counts = sqlx::query(counts).fetch_all(&self.pool).await.map_err(failed)?;
        let queues = self.dbos.list_queues(&Applications::Any).await.map_err(failed)?;
        let mut lowered = self.lowered().await?;
        let mut listed = Vec::new();
        for queue in queues {
            let Some(account) = queue.name.strip_prefix("agentd:call:") else { continue };
            let count = counts.iter().find(|row| row.get::<String, _>(0) == queue.name);
            let number = |limit: Option<i32>| limit.and_then(|limit| u32::try_from(limit).ok());
            let (lowered_to, lowered_until, why) = match lowered.remove(account) {
                Some(now) => (Some(now.to), Some(now.until), Some(now.why)),
                None => (None, None, None),
            };
            listed.push(ListedAccount {
                lowered_to,
                lowered_until,
                why,
                account: account.to_owned(),
                running: count.map_or(0, |row| row.get(1)),
                queued: count.map_or(0, |row| row.get(2)),
                limit: Limit {
                    concurrency: number(queue.concurrency),
                    rpm: number(queue.rate_limit.map(|rate| rate.limit)),
                },
            });
        }
        Ok(listed)
    }

    async fn listed_budgets(&self) -> Result<Vec<ListedBudget>> {
        let budgets = "SELECT scope, cap_usd, spent_usd, reserved_usd FROM agentd_fleet.budget \
                       WHERE scope NOT LIKE 'change:%' AND scope <> 'day' \
                          OR scope LIKE 'change:%' AND cap_usd IS NOT NULL ORDER BY scope";
        let rows = sqlx::query(budgets).fetch_all(&self.pool).await.map_err(failed)?;
        let listed = rows.iter().map(|row| ListedBudget {
            scope: row.get(0),
            cap_usd: row.get(1),
            spent_usd: row.get(2),
            reserved_usd: row.get(3),
        });
        Ok(listed.collect())
    }

    /// The calls that were cut short.
    async fn unsettled(&self) -> Result<Vec<UnsettledCall>> {
        let calls = "SELECT l.id, l.attempt, c.change, l.step, l.worker, \
                       l.estimate_usd FROM agentd_fleet.call l \
                     JOIN agentd_fleet.change c ON c.id = l.change \
                     WHERE l.state = 'unsettled' AND l.account IS NOT NULL \
                       AND c.repository = $1 ORDER BY l.began";
        let rows = sqlx::query(calls).bind(&self.repository.key);
        let rows = rows.fetch_all(&self.pool).await.map_err(failed)?;
        let listed = rows.iter().map(|row| {
            let (id, attempt, change): (String, i64, String) = (row.get(0), row.get(1), row.get(2));
            let number = id.rsplit('/').next().unwrap_or_default();
            UnsettledCall {
                call: format!("{change}/{number}#{attempt}"),
                change,
                step: row.get(3),
                worker: row.get(4),
                estimate_usd: row.get(5),
            }
        });
        Ok(listed.collect())
    }
}
