//! The pure core of agentd: text in, values out.
//!
//! Nothing here touches a file, a process, a clock or the environment.

pub mod agent;
pub mod event;
pub mod ids;
pub mod outcome;
pub mod provider;
pub mod run_format;
