//! The effects of agentd.

pub mod actions;
pub mod agent_files;
pub mod agents;
pub mod archive;
pub mod clarify;
pub mod context;
pub mod decisions;
pub mod documents;
pub mod git;
pub mod overlap;
pub mod process;
pub mod redact;
pub mod run_record;
pub mod runner;
pub mod step;
pub mod store;
pub mod trace;
pub mod workflow;
