//! The tables beside those of DBOS: what a change waits for, who is alive, and what was spent.

use std::time::Duration;

use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::error::Result;

use super::failed;

/// Anyone who sets up the tables holds this lock.
const SETTING_UP: i64 = 0x6167_656e_7464;
/// The version of the tables and functions. They only ever get more, so that workers of the version before
/// go on.
const VERSION: &str = "3";
const TABLES: &str = include_str!("tables.sql");
const FUNCTIONS: &str = include_str!("functions.sql");

/// Creates what is missing, of DBOS and of ours. Several may begin at the same time: one of them does it.
pub(super) async fn set_up(url: &str) -> Result<()> {
    use dbos::sysdb::SystemDatabase as _;
    use dbos::sysdb::postgres::{Config, PostgresSystemDatabase};
    let mut own = PgConnection::connect(url).await.map_err(failed)?;
    // Nobody waits inside of a statement: DBOS builds indexes concurrently, which waits for all others.
    let lock = "SELECT pg_try_advisory_lock($1)";
    loop {
        if is_set_up(&mut own).await? {
            return own.close().await.map_err(failed);
        }
        let locked = sqlx::query_scalar(lock).bind(SETTING_UP).fetch_one(&mut own).await;
        if locked.map_err(failed)? {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    if !is_set_up(&mut own).await? {
        let config = Config { max_connections: 2, use_listen_notify: false, ..Config::new(url) };
        PostgresSystemDatabase::connect(&config).await.map_err(failed)?.close().await;
        own.execute(TABLES).await.map_err(failed)?;
        own.execute(FUNCTIONS).await.map_err(failed)?;
        let version = "INSERT INTO agentd_fleet.setting VALUES ('version', $1) \
                       ON CONFLICT (name) DO UPDATE SET value = $1";
        sqlx::query(version).bind(VERSION).execute(&mut own).await.map_err(failed)?;
    }
    own.close().await.map_err(failed)
}

async fn is_set_up(own: &mut PgConnection) -> Result<bool> {
    let there = "SELECT to_regclass('agentd_fleet.setting') IS NOT NULL \
                 AND to_regclass('dbos.workflow_status') IS NOT NULL";
    if !sqlx::query_scalar::<_, bool>(there).fetch_one(&mut *own).await.map_err(failed)? {
        return Ok(false);
    }
    let done = "SELECT EXISTS (SELECT 1 FROM agentd_fleet.setting \
                WHERE name = 'version' AND value::int >= $1::int)";
    let done = sqlx::query_scalar(done).bind(VERSION).fetch_one(own).await;
    done.map_err(failed)
}
