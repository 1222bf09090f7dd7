//! Keys for the receipts of reviews, one for each call that may give a verdict (T1).
//!
//! A key stays in the user's state directory for as long as its verdict may still be taken: agentd may
//! be killed after the agent has spoken. It is removed before any other agent is called for the
//! change, since agents can read there.

use std::path::PathBuf;

use agentd_core::agent::Role;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, ChangeFile};
use agentd_core::receipt::{Receipt, ReceiptKey};

use crate::change::documents::DocumentError;
use crate::store::{Change, Holder, Project, StoreError, WriteLock};

/// Whether a role gives verdicts.
pub(crate) fn gives_verdicts(role: Role) -> bool {
    matches!(role, Role::Challenger | Role::Reviewer)
}

/// Makes a key for a call. Those of earlier calls are void.
pub(crate) fn issue(project: &Project, change: &ChangeId) -> Result<PathBuf, StoreError> {
    let mut random = [0; 32];
    let path = layout::receipt_key(change);
    let failed = |error: getrandom::Error| {
        StoreError::from_io("create", path.clone(), std::io::Error::other(error.to_string()))
    };
    getrandom::fill(&mut random).map_err(failed)?;
    let state = project.state_dir()?;
    state.write_atomic(&path, ReceiptKey::new(random).text().as_bytes())?;
    Ok(project.user().state_path(project.root())?.join(path.as_path()))
}

/// Makes the key of the last call void.
pub(crate) fn withdraw(project: &Project, change: &ChangeId) -> Result<(), StoreError> {
    let Some(state) = project.state_dir_if_there()? else { return Ok(()) };
    match state.remove_file(&layout::receipt_key(change)) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Whether the last call for a change wrote this review.
pub(crate) fn proves(
    project: &Project,
    change: &Change,
    role: Role,
    review: &Digest,
) -> Result<bool, StoreError> {
    let id = change.id();
    let Some(state) = project.state_dir_if_there()? else { return Ok(false) };
    let key = match state.read_to_string(&layout::receipt_key(id)) {
        Err(error) if error.is_not_found() => return Ok(false),
        key => ReceiptKey::parse(&key?),
    };
    // A directory or a pipe in its place proves nothing.
    let receipt = change.read(&ChangeFile::Receipt).ok();
    let receipt = receipt.as_deref().and_then(Receipt::parse);
    Ok(key.zip(receipt).is_some_and(|(key, receipt)| key.proves(&receipt, id, role, review)))
}

/// Lets the proof of a verdict that waits to be taken hold for the new ID of its change.
pub(crate) fn rename(
    project: &Project,
    change: &Change,
    lock: &WriteLock,
    from: &ChangeId,
) -> Result<(), StoreError> {
    let state = project.state_dir()?;
    let Ok(text) = state.read_to_string(&layout::receipt_key(from)) else { return Ok(()) };
    let receipt = change.read(&ChangeFile::Receipt).ok();
    let receipt = receipt.as_deref().and_then(Receipt::parse);
    let (Some(key), Some(receipt)) = (ReceiptKey::parse(&text), receipt) else { return Ok(()) };
    let (role, review) = (receipt.role, &receipt.review);
    if key.proves(&receipt, from, role, review) {
        let receipt = key.receipt(change.id(), role, review);
        change.write(lock, &ChangeFile::Receipt, receipt.render().as_bytes())?;
    }
    state.write_atomic(&layout::receipt_key(change.id()), text.as_bytes())
}

/// The verdict of the last call is taken: its key and its receipt prove nothing more.
pub(crate) fn close(
    project: &Project,
    change: &ChangeId,
    holder: &Holder,
) -> Result<(), DocumentError> {
    withdraw(project, change)?;
    let lock = project.write_lock(change, holder)?;
    match project.change(change)?.remove(&lock, &ChangeFile::Receipt) {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(()),
    }
}
