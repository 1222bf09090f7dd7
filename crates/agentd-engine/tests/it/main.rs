//! Tests of the engine against real processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod forged;
mod git;
mod git_work;
mod guard;
mod kills;
mod process;
mod runner;
mod steps;
mod support;
