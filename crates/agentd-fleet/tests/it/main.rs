//! A fleet with real parts: Postgres, git remotes, `agentd`, and agents that play recordings.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod conformance;
mod kills;
mod limits;
mod machines;
mod server;
mod thin;
