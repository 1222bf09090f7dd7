//! The pure core of agentd: text in, values out.
//!
//! Nothing here touches a file, a process, a clock or the environment.

pub mod ids;
pub mod layout;
pub mod rel_path;
