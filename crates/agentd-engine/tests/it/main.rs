//! Tests of the engine against real processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[cfg(target_os = "linux")]
mod cage;
mod forged;
mod git;
mod git_seen;
mod git_work;
mod guard;
mod kills;
mod ledger;
mod process;
mod runner;
mod steps;
mod support;
