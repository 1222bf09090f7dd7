//! What can be learned from the changes of a project, without changing them.

pub mod code_rounds;
pub mod cost;
pub mod export;
pub mod forecast;
pub mod overlap;
pub mod signatures;
pub mod toolchain;
pub mod trace;
pub mod validate;
pub mod verify;
