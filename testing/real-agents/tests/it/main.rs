//! Tests with the real gemini, codex and claude, behind scripted models.
//!
//! They must be installed: `cargo xtask test --only npm`.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![expect(clippy::too_many_lines, reason = "snapshots are data")]

mod acp;
mod clis;
mod docs;
mod first_use;
mod fleet;
mod implementation;
mod ledgers;
mod plan;
mod real_projects;
mod runner;
mod steps;
