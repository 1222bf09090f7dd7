//! The effects of agentd.

pub mod agents;
pub mod decisions;
pub mod documents;
pub mod store;
