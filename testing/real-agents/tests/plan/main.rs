//! `agentd plan` and its steps, run as a user runs them, with the real gemini and codex
//! behind shims that note how they are called.
//!
//! They must be installed: `cargo xtask test --only npm`.
#![allow(clippy::unwrap_used, reason = "all of it is tests, also the functions without #[test]")]

mod bar;
mod generation;
mod interrupts;
mod sessions;
mod verdicts;

use real_agents::models;
