//! The pure core of agentd: text in, values out.
//!
//! Nothing here touches a file, a process, a clock or the environment.

pub mod diagnostic;
pub mod document;
pub mod frontmatter;
pub mod hash;
pub mod ids;
pub mod outline;
pub mod rules;
pub mod span;
pub mod stamp;
pub mod text;
