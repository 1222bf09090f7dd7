//! Where agentd keeps what it knows about a project on this machine, below the user's own directory.

use super::RelPath;
use crate::agent::Role;
use crate::ids::ChangeId;

/// Where the copies of journals are, in what agentd keeps about a project on this machine.
pub fn journals_dir() -> RelPath {
    RelPath::from_safe("journals".to_owned())
}

/// The copy of the journal of a change.
pub fn journal_copy(change: &ChangeId) -> RelPath {
    RelPath::from_safe(format!("journals/{change}.jsonl"))
}

/// The directory of keys for the receipts of a role.
pub fn receipt_keys(role: Role) -> RelPath {
    RelPath::from_safe(format!("receipts/{role}"))
}

/// The key for the receipt of the call that is running for a change.
pub fn receipt_key(role: Role, change: &ChangeId) -> RelPath {
    RelPath::from_safe(format!("receipts/{role}/{change}"))
}

/// The keys for receipts that a change may have.
pub fn receipt_keys_of(change: &ChangeId) -> [RelPath; 4] {
    Role::ALL.map(|role| receipt_key(role, change))
}

/// The note of what agentd has created in git for a change.
pub fn created_note(change: &ChangeId) -> RelPath {
    RelPath::from_safe(format!("created/{change}.json"))
}

/// The note of what is uncommitted where a change is worked on, by whose it is.
pub fn uncommitted_note(change: &ChangeId) -> RelPath {
    RelPath::from_safe(format!("uncommitted/{change}.json"))
}

/// The note of which snapshot of a change that is carried between machines is checked out.
pub fn carried_note(change: &ChangeId) -> RelPath {
    RelPath::from_safe(format!("carried/{change}.json"))
}

/// The note of what the remote repository was last known to have of changes that workers carry, in the
/// same place.
pub fn sightings_note() -> RelPath {
    RelPath::from_safe("sightings.json".to_owned())
}

/// Where it is noted what was started for changes in the background, in the same place.
pub fn background_dir() -> RelPath {
    RelPath::from_safe("background".to_owned())
}

/// What is kept about a command that was started in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundFile {
    /// Which it is.
    Note,
    /// What it prints.
    Output,
    /// What it says besides.
    Errors,
}

/// A file about the command that was started last for a change.
pub fn background(change: &ChangeId, file: BackgroundFile) -> RelPath {
    let ending = match file {
        BackgroundFile::Note => "note.json",
        BackgroundFile::Output => "out",
        BackgroundFile::Errors => "err",
    };
    RelPath::from_safe(format!("background/{change}.{ending}"))
}

/// Where the changes are noted that live in a worktree, in the same place.
pub fn moves_dir() -> RelPath {
    RelPath::from_safe("moves".to_owned())
}

/// The note of where a change lives that began here and moved into its worktree.
pub fn move_note(change: &ChangeId) -> RelPath {
    RelPath::from_safe(format!("moves/{change}.json"))
}

/// The note of which checkout the changes in a worktree came from.
pub fn origin_note() -> RelPath {
    RelPath::from_safe("origin.json".to_owned())
}

/// The change of a note with this name.
pub fn change_of_move_note(name: &str) -> Option<ChangeId> {
    ChangeId::new(name.strip_suffix(".json")?).ok()
}

/// Is there while the journal of a change is being written.
pub fn journal_mark(change: &ChangeId) -> RelPath {
    RelPath::from_safe(format!("journals/{change}.writing"))
}

/// The change of a mark with this name.
pub fn change_of_mark(name: &str) -> Option<ChangeId> {
    ChangeId::new(name.strip_suffix(".writing")?).ok()
}
