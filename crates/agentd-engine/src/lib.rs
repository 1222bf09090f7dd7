//! The effects of agentd.

pub mod documents;
pub mod store;
