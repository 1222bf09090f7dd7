//! A fleet with real parts: Postgres, git remotes, `agentd`, and agents that play recordings.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "figures for people")]
#![allow(clippy::too_many_lines, reason = "tables are data")]

mod conformance;
mod kills;
mod landing;
mod limits;
mod machines;
mod server;
mod takeover;
mod thin;
mod workers;
