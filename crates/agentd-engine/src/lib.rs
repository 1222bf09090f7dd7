//! The effects of agentd.

pub mod actions;
pub mod agent_files;
pub mod agents;
pub mod comments;
pub mod decisions;
pub mod documents;
pub mod process;
pub mod redact;
pub mod run_record;
pub mod runner;
pub mod step;
pub mod store;
