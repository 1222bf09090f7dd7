//! `agentd impl` and its steps, run as a user runs them: the real claude writes code by its
//! own tools, as do the real codex and gemini in `implementers`, the real codex reviews it, and
//! the tests of the project are really run.
//!
//! They must be installed: `cargo xtask test --only npm`.
#![allow(clippy::unwrap_used, reason = "all of it is tests, also the functions without #[test]")]

mod demo;
mod git;
mod hooks;
mod implementers;
mod kills;
mod layers;
mod project;
mod reviews;
mod story;
mod tests_of_the_project;
