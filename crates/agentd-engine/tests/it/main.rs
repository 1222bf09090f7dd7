//! Tests of the engine on real directories, with real processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod actions;
mod archive;
mod background;
#[cfg(target_os = "linux")]
mod cage;
mod carrier;
mod causes;
mod diffs;
mod forged;
mod git;
mod git_seen;
mod git_work;
mod guard;
mod kills;
mod ledger;
mod process;
mod runner;
mod stale;
mod steps;
mod store;
mod support;
mod talk;
mod verify;
