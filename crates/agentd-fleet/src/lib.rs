//! Changes of agentd on many machines: a queue, limits, budgets, and the workers that do the steps.
//!
//! The truth about a change is in git, carried by `agentd step --carry`. What is here holds who works on
//! what, and when: [`engine::Engine`], with two implementations, [`engine::git`] with nothing but the
//! remote repository, and [`engine::postgres`] with DBOS. [`worker`] runs the real `agentd` as a child
//! for each step, in a clone for each change.

pub mod account;
pub mod cli;
pub mod engine;
pub mod error;
mod program;
pub mod repository;
mod screen;
pub mod worker;
