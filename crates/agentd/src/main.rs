//! agentd.
fn main() {}
