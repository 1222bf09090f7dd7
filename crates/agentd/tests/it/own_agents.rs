//! The agents that agentd plays itself, through the same steps, supervisor and MCP server
//! as all others: the real binary, real projects.

mod builtin;
mod demo;
mod replay;
mod steps;
