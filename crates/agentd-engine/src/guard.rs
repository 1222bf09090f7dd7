//! What keeps agents and repositories within their limits.
//!
//! The sandbox decides where a program may write. What it cannot forbid is recorded before a
//! call and restored after it: the files that git runs and agents obey, and STATE.yaml. A
//! repository's settings run nothing until the user has agreed to them.

pub(crate) mod calls;
pub mod git_files;
pub(crate) mod project_files;
pub mod sandbox;
pub(crate) mod state_file;
pub mod trust;
