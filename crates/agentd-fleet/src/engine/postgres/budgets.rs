//! What may be spent, by reserving before a call and settling after it.
//!
//! What a call is expected to cost is reserved in the budgets of its change, repository, team and day, in
//! one statement that none of them may refuse (`claim_step` and `finish_step` in functions.sql). What dies with a worker stays reserved until somebody says
//! what it has cost. The books of the change itself are in git.

use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;

use super::steps::step_id;
use super::{PostgresEngine, failed};
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
        let settle = sqlx::query_scalar("SELECT agentd_fleet.settle_call($1, $2, $3)");
        let settle = settle.bind(&id).bind(attempt).bind(cost_usd).fetch_one(&self.pool);
        if settle.await.map_err(failed)? { Ok(()) } else { Err(wrong()) }
    }
}
