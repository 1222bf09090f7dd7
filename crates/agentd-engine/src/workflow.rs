//! The workflows.

pub mod report;
