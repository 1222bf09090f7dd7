//! `agentd plan` and its steps, run as a user runs them, with the real gemini and codex
//! behind shims that record how they are called.

mod bar;
mod causes;
mod generation;
mod interrupts;
mod revisions;
mod sessions;
mod verdicts;
