//! The pure core of agentd: text in, values out.
//!
//! Nothing here touches a file, a process, a clock or the environment.

pub mod agent;
pub mod check;
pub mod command_line;
pub mod complexity;
pub mod config;
pub mod description;
pub mod diagnostic;
pub mod diff;
pub mod document;
pub mod documents;
pub mod error_kind;
pub mod event;
pub mod figures;
pub mod forecast;
pub mod frontmatter;
pub mod graph;
pub mod hash;
pub mod hint;
pub mod ids;
pub mod issue_places;
pub mod journal;
pub mod language;
pub mod layout;
pub mod merge;
pub mod nearest;
pub mod next_step;
pub mod outcome;
pub mod outline;
pub mod phase;
pub mod prompt;
pub mod provider;
pub mod receipt;
pub mod recording;
pub mod rel_path;
pub mod revision;
pub mod rules;
pub mod run_format;
pub mod span;
pub mod stamp;
pub mod standing;
pub mod state;
pub mod step_name;
pub mod text;
pub mod toolchain;
mod yaml;
