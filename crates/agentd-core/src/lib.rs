//! The pure core of agentd.
