//! The effects of agentd.

pub mod store;
