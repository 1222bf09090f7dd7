//! The effects of agentd.

pub mod agent_files;
pub mod process;
pub mod redact;
pub mod run_record;
pub mod runner;
