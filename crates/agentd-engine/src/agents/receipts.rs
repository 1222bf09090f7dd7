//! Keys for the receipts of reviews and questions, one for each call (T1).
//!
//! A key stays in the user's state directory for as long as its verdict may still be taken: agentd may
//! be killed after the agent has spoken. It is removed before any other agent is called for the
//! change, since agents can read there. Agents that are kept from one call to the next cannot see the
//! keys of other roles at all.

use std::path::PathBuf;

use agentd_core::agent::Role;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, ChangeFile};
use agentd_core::receipt::{Receipt, ReceiptKey};

use crate::change::documents::DocumentError;
use crate::store::{Change, Holder, Project, StoreError, WriteLock};

/// The roles that give verdicts.
const VERDICTS: [Role; 2] = [Role::Challenger, Role::Reviewer];

/// Whether a role gives verdicts.
pub(crate) fn gives_verdicts(role: Role) -> bool {
    VERDICTS.contains(&role)
}

/// Makes a key for a call about a plan. Those of earlier calls are void. The plan is kept with the key:
/// a verdict counts only for what the agent was given, and not if the plan was edited during the call,
/// be it by the agent itself.
pub(crate) fn issue(
    project: &Project,
    change: &ChangeId,
    role: Role,
    plan: &Digest,
) -> Result<PathBuf, StoreError> {
    let mut random = [0; 32];
    let path = layout::receipt_key(role, change);
    let failed = |error: getrandom::Error| {
        StoreError::from_io("create", path.clone(), std::io::Error::other(error.to_string()))
    };
    getrandom::fill(&mut random).map_err(failed)?;
    let state = project.state_dir()?;
    let text = format!("{}\n{plan}\n", ReceiptKey::new(random).text());
    state.write_atomic(&path, text.as_bytes())?;
    Ok(project.user().state_path(project.root())?.join(path.as_path()))
}

/// Makes the keys of earlier calls void.
pub(crate) fn withdraw(project: &Project, change: &ChangeId) -> Result<(), StoreError> {
    let Some(state) = project.state_dir_if_there()? else { return Ok(()) };
    for role in Role::ALL {
        match state.remove_file(&layout::receipt_key(role, change)) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The directories of keys, by the role that may see them. They are made here: what is not there
/// when a cage is made could not be hidden in it.
pub(crate) fn key_dirs(project: &Project) -> Result<Vec<(Role, PathBuf)>, StoreError> {
    let state = project.state_dir()?;
    let path = project.user().state_path(project.root())?;
    let mut dirs = Vec::new();
    for role in Role::ALL {
        let dir = layout::receipt_keys(role);
        state.create_dir_all(&dir)?;
        dirs.push((role, path.join(dir.as_path())));
    }
    Ok(dirs)
}

/// The key of the last call of a role for a change, if it is not void, as it was written.
fn key_text(
    project: &Project,
    role: Role,
    change: &ChangeId,
) -> Result<Option<String>, StoreError> {
    let Some(state) = project.state_dir_if_there()? else { return Ok(None) };
    match state.read_to_string(&layout::receipt_key(role, change)) {
        Err(error) if error.is_not_found() => Ok(None),
        text => text.map(Some),
    }
}

/// The key of the last call of a role for a change, if it is not void.
pub(super) fn key(
    project: &Project,
    role: Role,
    change: &ChangeId,
) -> Result<Option<ReceiptKey>, StoreError> {
    Ok(key_text(project, role, change)?.as_deref().and_then(ReceiptKey::parse))
}

/// Whether the last call for a change wrote this review, whatever has become of the plan.
pub(super) fn wrote(
    project: &Project,
    change: &Change,
    role: Role,
    review: &Digest,
) -> Result<bool, StoreError> {
    let key = key(project, role, change.id())?;
    // A directory or a pipe in its place proves nothing.
    let receipt = change.read(&ChangeFile::Receipt).ok();
    let receipt = receipt.as_deref().and_then(Receipt::parse);
    let proves =
        |(key, receipt): (ReceiptKey, Receipt)| key.proves(&receipt, change.id(), role, review);
    Ok(key.zip(receipt).is_some_and(proves))
}

/// Whether the last call for a change wrote this review, and the plan has been the same since.
pub(crate) fn proves(
    project: &Project,
    change: &Change,
    role: Role,
    review: &Digest,
    plan: &Digest,
) -> Result<bool, StoreError> {
    let key = key_text(project, role, change.id())?.unwrap_or_default();
    let is_about = key.lines().nth(1).is_some_and(|about| *about == plan.to_string());
    Ok(is_about && wrote(project, change, role, review)?)
}

/// Lets the proof of a verdict that waits to be taken hold for the new ID of its change.
pub(crate) fn rename(
    project: &Project,
    change: &Change,
    lock: &WriteLock,
    from: &ChangeId,
) -> Result<(), StoreError> {
    let state = project.state_dir()?;
    let receipt = change.read(&ChangeFile::Receipt).ok();
    let Some(receipt) = receipt.as_deref().and_then(Receipt::parse) else { return Ok(()) };
    let (role, review) = (receipt.role, &receipt.review);
    let Ok(text) = state.read_to_string(&layout::receipt_key(role, from)) else { return Ok(()) };
    let Some(key) = ReceiptKey::parse(&text) else { return Ok(()) };
    if key.proves(&receipt, from, role, review) {
        let receipt = key.receipt(change.id(), role, review);
        change.write(lock, &ChangeFile::Receipt, receipt.render().as_bytes())?;
    }
    state.write_atomic(&layout::receipt_key(role, change.id()), text.as_bytes())
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
