//! The tables beside those of DBOS: what a change waits for, who is alive, and what was spent.

use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::error::Result;

use super::failed;

/// Anyone who sets up the tables holds this lock.
const SETTING_UP: i64 = 0x6167_656e_7464;

const TABLES: &str = "
CREATE SCHEMA IF NOT EXISTS agentd_fleet;
CREATE TABLE IF NOT EXISTS agentd_fleet.change (
    id text PRIMARY KEY,
    repository text NOT NULL,
    change text NOT NULL,
    submission text NOT NULL,
    priority int NOT NULL,
    state text NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    sequence bigint NOT NULL DEFAULT 0,
    step text,
    agent text,
    estimate_usd float8 NOT NULL DEFAULT 0,
    why text,
    phase text,
    cost_usd float8 NOT NULL DEFAULT 0,
    tip text,
    submitted_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS change_state ON agentd_fleet.change (repository, state);
CREATE TABLE IF NOT EXISTS agentd_fleet.worker (
    name text PRIMARY KEY,
    repository text NOT NULL,
    accounts text[] NOT NULL,
    slots int NOT NULL,
    beat timestamptz NOT NULL DEFAULT now(),
    began timestamptz NOT NULL DEFAULT now(),
    dead boolean NOT NULL DEFAULT false,
    drain boolean NOT NULL DEFAULT false
);
ALTER TABLE agentd_fleet.worker ADD COLUMN IF NOT EXISTS lost boolean NOT NULL DEFAULT false;
CREATE TABLE IF NOT EXISTS agentd_fleet.call (
    id text NOT NULL,
    attempt bigint NOT NULL,
    change text NOT NULL,
    step text NOT NULL,
    worker text NOT NULL,
    account text,
    estimate_usd float8 NOT NULL,
    cost_usd float8,
    state text NOT NULL,
    scopes text[] NOT NULL,
    began timestamptz NOT NULL DEFAULT now(),
    ended timestamptz,
    PRIMARY KEY (id, attempt)
);
CREATE INDEX IF NOT EXISTS call_change ON agentd_fleet.call (change, state);
CREATE INDEX IF NOT EXISTS call_worker ON agentd_fleet.call (worker) WHERE state = 'running';
CREATE TABLE IF NOT EXISTS agentd_fleet.budget (
    scope text PRIMARY KEY,
    cap_usd float8,
    spent_usd float8 NOT NULL DEFAULT 0,
    reserved_usd float8 NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS agentd_fleet.throttle (
    account text PRIMARY KEY,
    lowered_to int NOT NULL,
    times int NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    until timestamptz NOT NULL,
    why text NOT NULL
);
CREATE TABLE IF NOT EXISTS agentd_fleet.setting (
    name text PRIMARY KEY,
    value text NOT NULL
);
";

/// Creates what is missing, of DBOS and of ours. Several may begin at the same time: one of them does it.
pub(super) async fn set_up(url: &str) -> Result<()> {
    use dbos::sysdb::SystemDatabase as _;
    use dbos::sysdb::postgres::{Config, PostgresSystemDatabase};
    let mut own = PgConnection::connect(url).await.map_err(failed)?;
    let there = "SELECT to_regclass('agentd_fleet.throttle') IS NOT NULL \
                 AND to_regclass('dbos.workflow_status') IS NOT NULL";
    if sqlx::query_scalar::<_, bool>(there).fetch_one(&mut own).await.map_err(failed)? {
        let done = "SELECT count(*) FROM agentd_fleet.setting WHERE name = 'version'";
        let done: i64 = sqlx::query_scalar(done).fetch_one(&mut own).await.map_err(failed)?;
        if done > 0 {
            return Ok(());
        }
    }
    let lock = sqlx::query("SELECT pg_advisory_lock($1)").bind(SETTING_UP);
    lock.execute(&mut own).await.map_err(failed)?;
    let config = Config { max_connections: 2, use_listen_notify: false, ..Config::new(url) };
    PostgresSystemDatabase::connect(&config).await.map_err(failed)?.close().await;
    own.execute(TABLES).await.map_err(failed)?;
    let version = "INSERT INTO agentd_fleet.setting VALUES ('version', '1') ON CONFLICT DO NOTHING";
    own.execute(version).await.map_err(failed)?;
    own.close().await.map_err(failed)
}
