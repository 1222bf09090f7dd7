//! The error with which a command ends, and how the process ends with it.

use std::io;
use std::path::Path;

use agentd_core::error_kind::Kind;
pub(crate) use agentd_engine::explain::ErrorReport as CommandError;

/// A path outside of any project that cannot be used.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(Kind::Store, format!("cannot use {}", path.display()))
        .cause(error.to_string())
}

/// The result of printing, where the outcome of the command stands whether or not anyone has
/// read all of it.
pub(crate) fn printed(result: Result<(), CommandError>) -> Result<(), CommandError> {
    match result {
        Err(error) if error.kind == Kind::OutputClosed => Ok(()),
        result => result,
    }
}
