//! A change as it is on disk: its documents, its state, and what people wrote about it.

pub mod comments;
pub mod documents;
mod snapshot;
pub mod summary;

pub use snapshot::Snapshot;
