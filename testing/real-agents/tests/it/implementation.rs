//! `agentd impl` and its steps, run as a user runs them: the real claude writes code by its
//! own tools, as do the real codex and gemini in `implementers`, the real codex reviews it, and
//! the tests of the project are really run.

mod asking;
mod demo;
mod git;
mod hooks;
mod implementers;
mod kills;
mod layers;
pub(crate) mod project;
mod project_tests;
mod reviews;
mod revisions;
mod sizes;
mod story;
