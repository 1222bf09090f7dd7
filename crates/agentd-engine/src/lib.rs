//! The effects of agentd: files, locks, processes, git, and the workflow that uses them.
//!
//! The modules in the order in which they build on each other:
//!
//! | group | what is in it |
//! |---|---|
//! | [`explain`] | errors as people and programs see them |
//! | [`store`] | files of a project, confined to it; locks; the user's own directories |
//! | [`process`] | child processes, supervised and caged |
//! | [`git`] | what agentd asks of the `git` program |
//! | [`guard`] | what keeps agents and repositories within their limits |
//! | [`change`] | a change as it is on disk: documents, state, comments |
//! | [`tools`] | what agents may do, one file per MCP tool |
//! | [`carrier`] | how a change travels between machines, and what stops one that has lost it |
//! | [`agents`] | one call of an agent, from the prompt to the record |
//! | [`workflow`] | the steps of a change, and what people decide between them |
//! | [`archive`] | merging a change into the main specs, and the way back |
//! | [`insight`] | what can be learned from changes: overlaps, traces, rounds of review |
//! | [`opening`] | the door: a project is opened, and what a killed agentd left is repaired |

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod agents;
pub mod archive;
pub mod carrier;
pub mod change;
pub mod explain;
pub mod git;
pub mod guard;
pub mod insight;
pub mod opening;
pub mod process;
pub mod store;
pub mod tools;
pub mod workflow;
