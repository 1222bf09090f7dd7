//! What can be learned from the changes of a project, without changing them.

pub mod code_rounds;
pub mod cost;
pub mod diff;
pub mod export;
pub mod forecast;
pub mod kept;
pub mod main_specs;
pub mod overlap;
pub mod search;
pub mod signatures;
pub mod toolchain;
pub mod trace;
pub mod validate;
pub mod verify;
