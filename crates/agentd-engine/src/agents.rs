//! One call of an agent: which programs are installed, what they are given, how they run, and
//! what is recorded of it.

pub(crate) mod asked;
pub mod context;
pub mod files;
pub mod installed;
pub mod login;
pub mod probe;
pub(crate) mod receipts;
pub mod recording;
pub mod redact;
pub mod reproduce;
pub mod run_record;
pub mod runner;
pub mod step;
pub mod warm;
pub mod work_tree;
