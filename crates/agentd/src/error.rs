//! The error with which a command ends, and how the process ends with it.

use agentd_core::error_kind::Kind;
pub(crate) use agentd_engine::explain::ErrorReport as CommandError;

/// The result of printing, where the outcome of the command stands whether or not anyone has
/// read all of it.
pub(crate) fn printed(result: Result<(), CommandError>) -> Result<(), CommandError> {
    match result {
        Err(error) if error.kind == Kind::OutputClosed => Ok(()),
        result => result,
    }
}
