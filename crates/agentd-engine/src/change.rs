//! A change as it is on disk: its documents, its state, and what people wrote about it.

pub mod comments;
pub mod documents;
pub mod glance;
pub mod journal;
pub mod position;
pub mod settling;
pub mod signing;
mod snapshot;
pub mod staleness;
pub mod summary;
pub mod tree;
pub(crate) mod uncommitted;

pub use snapshot::Snapshot;
