//! The real binary, as people, programs and browsers meet it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]
#![allow(clippy::too_many_lines, reason = "snapshots and tables are data")]

mod cli;
mod mcp;
mod own_agents;
mod viewer;
