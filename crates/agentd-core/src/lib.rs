//! The pure core of agentd: text in, values out.
//!
//! Nothing here touches a file, a process, a clock or the environment.

pub mod check;
pub mod config;
pub mod diagnostic;
pub mod document;
pub mod frontmatter;
pub mod graph;
pub mod hash;
pub mod ids;
pub mod layout;
pub mod outline;
pub mod phase;
pub mod rel_path;
pub mod rules;
pub mod span;
pub mod stamp;
pub mod state;
pub mod text;
mod yaml;
