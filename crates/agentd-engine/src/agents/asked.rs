//! What an agent asks a person, between its tool and the end of its call (G6).
//!
//! The tool keeps the question beside those of `clarify`. It counts if the key of the call proves it,
//! and only until the next call: then it is in the state of the change.

use std::io::Read as _;

use agentd_core::agent::Role;
use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::state::{Asked, KeptQuestion};
use agentd_core::text::{Line, Prose};

use super::receipts;
use super::step::Agents;
use crate::store::{Project, StoreError};

/// More than the tool ever writes.
const MAX_BYTES: u64 = 64 << 10;

/// The question that is kept for a change, no matter who has written it.
pub(crate) fn read(project: &Project, change: &ChangeId) -> Option<KeptQuestion> {
    let path = layout::asked_question(change);
    let (file, size) = project.dir().without_symlinks().open_file(&path).ok()?;
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    KeptQuestion::parse(&text).filter(|_| size <= MAX_BYTES)
}

/// The question that the last call of a role has asked, without secrets: it is shown and committed.
pub(crate) fn take(
    agents: &Agents,
    change: &ChangeId,
    role: Role,
) -> Result<Option<Asked>, StoreError> {
    let project = &agents.project;
    let Some(kept) = read(project, change) else { return Ok(None) };
    let key = receipts::key(project, role, change)?;
    let digest = kept.asked.digest();
    let is_proven = key.is_some_and(|key| key.proves(&kept.receipt, change, role, &digest));
    let Asked { question, choices } = kept.asked;
    let redactor = agents.redactor();
    Ok(is_proven.then(|| Asked {
        question: Prose::new(&redactor.redact_text(question.as_str())),
        choices: choices
            .iter()
            .map(|choice| Line::new(&redactor.redact_text(choice.as_str())))
            .collect(),
    }))
}

/// Removes it.
pub(crate) fn clear(project: &Project, change: &ChangeId) -> Result<(), StoreError> {
    let path = layout::asked_question(change);
    match project.dir().without_symlinks().remove_file(&path) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
