//! What may be spent, by reserving before a call and settling after it.
//!
//! What a call is expected to cost is reserved in the budgets of its change, repository, team and day, in
//! one statement that none of them may refuse. What dies with a worker stays reserved until somebody says
//! what it has cost. The books of the change itself are in git.

use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use sqlx::{PgConnection, Row as _};

use super::steps::step_id;
use super::{PostgresEngine, failed};
use crate::account::Account;
use crate::error::{FleetError, Result};

impl PostgresEngine {
    pub(super) async fn set_cap(&self, scope: &str, cap_usd: f64) -> Result<()> {
        let set = "INSERT INTO agentd_fleet.budget (scope, cap_usd) VALUES ($1, $2) \
                   ON CONFLICT (scope) DO UPDATE SET cap_usd = $2";
        sqlx::query(set).bind(scope).bind(cap_usd).execute(&self.pool).await.map_err(failed)?;
        if scope == "day" {
            let today = "UPDATE agentd_fleet.budget SET cap_usd = $1 WHERE scope LIKE 'day:%'";
            sqlx::query(today).bind(cap_usd).execute(&self.pool).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Changes for which there was no money are tried again.
    pub(super) async fn try_again_over_budget(&self) -> Result<()> {
        let again = "UPDATE agentd_fleet.change SET state = 'ready', why = NULL, sequence = sequence + 1 \
                     WHERE state = 'over_budget' AND repository = $1 RETURNING change";
        let again = sqlx::query_scalar(again).bind(&self.repository.key);
        let changes: Vec<String> = again.fetch_all(&self.pool).await.map_err(failed)?;
        for change in changes.iter().filter_map(|change| ChangeId::new(change).ok()) {
            self.offer(&self.name_of(&change)).await?;
        }
        Ok(())
    }

    /// The budgets that a call counts for.
    pub(super) fn scopes(&self, change: &str, account: Option<&Account>) -> Vec<String> {
        let mut scopes = vec![
            format!("change:{change}"),
            format!("repository:{}", self.repository.key),
            format!("day:{}", jiff::Timestamp::now().to_string().split('T').next().unwrap_or("")),
        ];
        scopes.extend(account.map(|account| format!("team:{}", account.team())));
        scopes
    }

    /// Reserves an amount in all of these budgets, or in none. The name of the one that refuses.
    pub(super) async fn reserve(
        tx: &mut PgConnection,
        scopes: &[String],
        amount: f64,
    ) -> Result<std::result::Result<(), String>> {
        let there = "INSERT INTO agentd_fleet.budget (scope, cap_usd) \
                     SELECT scope, CASE WHEN scope LIKE 'day:%' THEN \
                       (SELECT cap_usd FROM agentd_fleet.budget WHERE scope = 'day') END \
                     FROM unnest($1::text[]) AS scope ON CONFLICT DO NOTHING";
        sqlx::query(there).bind(scopes).execute(&mut *tx).await.map_err(failed)?;
        let reserve = "UPDATE agentd_fleet.budget SET reserved_usd = reserved_usd + $2 \
                       WHERE scope = ANY($1) \
                         AND (cap_usd IS NULL OR spent_usd + reserved_usd + $2 <= cap_usd) \
                       RETURNING scope";
        let reserved: Vec<String> = sqlx::query_scalar(reserve)
            .bind(scopes)
            .bind(amount)
            .fetch_all(&mut *tx)
            .await
            .map_err(failed)?;
        // The caller takes back what the others have given.
        Ok(match scopes.iter().find(|scope| !reserved.contains(scope)) {
            Some(refused) => Err(refused.clone()),
            None => Ok(()),
        })
    }

    /// What is expected of a call of which agentd expects nothing: what such calls have cost so far.
    pub(super) async fn expected(tx: &mut PgConnection, step: &str, estimate: f64) -> Result<f64> {
        if estimate > 0.0 {
            return Ok(estimate);
        }
        let average = "SELECT coalesce(avg(cost_usd), 0) FROM (SELECT cost_usd FROM agentd_fleet.call \
                       WHERE step = $1 AND state = 'settled' ORDER BY ended DESC LIMIT 20) c";
        sqlx::query_scalar(average).bind(step).fetch_one(&mut *tx).await.map_err(failed)
    }

    /// Settles the reservation of a call with what it has cost: what its change has cost before, as far as
    /// somebody has looked, and after it.
    pub(super) async fn charge(
        tx: &mut PgConnection,
        change: &str,
        child: &str,
        attempt: i64,
        (before, after): (Option<f64>, f64),
    ) -> Result<()> {
        let known = "SELECT cost_usd FROM agentd_fleet.change WHERE id = $1 FOR UPDATE";
        let known = sqlx::query_scalar(known).bind(change).fetch_one(&mut *tx);
        let known: f64 = known.await.map_err(failed)?;
        let cost = after - before.unwrap_or(known);
        let settle = "UPDATE agentd_fleet.budget b SET spent_usd = spent_usd + $3, \
                        reserved_usd = greatest(reserved_usd - c.estimate_usd, 0) \
                      FROM agentd_fleet.call c \
                      WHERE c.id = $1 AND c.attempt = $2 AND b.scope = ANY(c.scopes)";
        let settle = sqlx::query(settle).bind(child).bind(attempt).bind(cost);
        settle.execute(&mut *tx).await.map_err(failed)?;
        let end = "UPDATE agentd_fleet.call SET cost_usd = $3 WHERE id = $1 AND attempt = $2";
        let end = sqlx::query(end).bind(child).bind(attempt).bind(cost);
        end.execute(&mut *tx).await.map_err(failed)?;
        Ok(())
    }

    /// A worker has died after its call was checkpointed, and before it could say so: the books of the
    /// change have its price.
    pub(super) async fn charge_checkpointed(
        tx: &mut PgConnection,
        change: &str,
        child: &str,
        before: f64,
    ) -> Result<()> {
        let last = "SELECT l.attempt, c.cost_usd FROM agentd_fleet.call l \
                    JOIN agentd_fleet.change c ON c.id = l.change \
                    WHERE l.change = $1 AND l.id = $2 AND l.state = 'unsettled' \
                    ORDER BY l.attempt DESC LIMIT 1 FOR UPDATE";
        let last = sqlx::query(last).bind(change).bind(child).fetch_optional(&mut *tx).await;
        let Some(last) = last.map_err(failed)? else { return Ok(()) };
        let (attempt, known): (i64, f64) = (last.get(0), last.get(1));
        Self::charge(tx, change, child, attempt, (Some(known), before)).await?;
        let settled =
            "UPDATE agentd_fleet.call SET state = 'settled' WHERE id = $1 AND attempt = $2";
        let settled = sqlx::query(settled).bind(child).bind(attempt);
        settled.execute(&mut *tx).await.map_err(failed)?;
        Ok(())
    }

    /// The price of a call that was cut short, instead of what is reserved for it.
    pub(super) async fn settle_call(&self, call: &str, cost_usd: f64) -> Result<()> {
        let wrong = || {
            FleetError::new(Kind::NothingToSettle, format!("there is no call `{call}` to settle"))
                .hint("see which there are: agentd fleet settle")
        };
        let (short, attempt) = call.rsplit_once('#').ok_or_else(wrong)?;
        let attempt: i64 = attempt.parse().map_err(|_| wrong())?;
        let (change, sequence) = short.rsplit_once('/').ok_or_else(wrong)?;
        let change = ChangeId::new(change).map_err(|_| wrong())?;
        let sequence: i64 = sequence.parse().map_err(|_| wrong())?;
        let id = step_id(&self.name_of(&change), sequence);
        let mut tx = self.pool.begin().await.map_err(failed)?;
        let read = "SELECT estimate_usd, scopes FROM agentd_fleet.call \
                    WHERE id = $1 AND attempt = $2 AND state = 'unsettled' FOR UPDATE";
        let row = sqlx::query(read).bind(&id).bind(attempt).fetch_optional(&mut *tx).await;
        let row = row.map_err(failed)?.ok_or_else(wrong)?;
        let (estimate, scopes): (f64, Vec<String>) = (row.get(0), row.get(1));
        let settle = "UPDATE agentd_fleet.budget SET reserved_usd = greatest(reserved_usd - $2, 0), \
                      spent_usd = spent_usd + $3 WHERE scope = ANY($1)";
        let settle = sqlx::query(settle).bind(&scopes).bind(estimate).bind(cost_usd);
        settle.execute(&mut *tx).await.map_err(failed)?;
        let end = "UPDATE agentd_fleet.call SET state = 'settled', cost_usd = $3 \
                   WHERE id = $1 AND attempt = $2";
        let end = sqlx::query(end).bind(&id).bind(attempt).bind(cost_usd);
        end.execute(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)
    }
}
