//! The effects of agentd.

pub mod actions;
pub mod documents;
pub mod store;
