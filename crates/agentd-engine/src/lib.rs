//! The effects of agentd.
