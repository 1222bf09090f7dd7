//! The agents that agentd plays itself, through the same steps, supervisor and MCP server
//! as all others: the real binary, real projects.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod builtin;
mod demo;
mod replay;
mod steps;
