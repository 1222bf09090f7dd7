//! The effects of agentd.

pub mod actions;
pub mod agent_files;
pub mod agents;
pub mod archive;
pub mod clarify;
pub mod comments;
pub mod context;
pub mod decisions;
pub mod documents;
pub mod export;
pub mod git;
pub mod git_guard;
pub mod mcp_client;
pub mod overlap;
pub mod own_agent;
pub mod process;
pub mod recording;
pub mod redact;
pub mod reproduce;
pub mod run_record;
pub mod runner;
pub mod step;
pub mod store;
pub mod trace;
pub mod work_tree;
pub mod workflow;
