//! Keeps what only agentd writes in STATE.yaml unchanged while others work.
//!
//! An implementer and the tests that it wrote can write to the files of their change: a phase,
//! a verdict or a commit to compare with that they leave there would count. So the state is saved
//! in the user's state directory during the call, and restored after it. Decisions of people are
//! taken from the disk: they may be made during a call.

use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::journal::{Journal, claims as journal_claims, parse as parse_journal};
use agentd_core::layout::ChangeFile;
use agentd_core::rel_path::RelPath;
use agentd_core::state::{self, State};
use serde::{Deserialize, Serialize};

use crate::change::documents::{self, DocumentError};
use crate::change::journal;
use crate::guard::calls::{self, Claim};
use crate::guard::git_files::{TamperedFile, UncheckedCall};
use crate::store::{Change, Holder, Project, WriteLock};

/// A state as it was before a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StateGuard {
    change: ChangeId,
    text: String,
}

/// The name under which the state is saved for a call. No name of a call has an underscore.
pub(crate) fn name(call: &str) -> String {
    format!("_state-{call}")
}

impl StateGuard {
    /// Saves the state.
    pub(crate) fn take(
        project: &Project,
        id: &ChangeId,
        claim: &Claim,
    ) -> Result<Self, DocumentError> {
        let change = project.change(id)?;
        documents::load_state(&change)?;
        let kept = Self { change: id.clone(), text: change.read(&ChangeFile::State)? };
        claim.keep(calls::STATE, &serde_json::to_vec(&kept).unwrap_or_default())?;
        Ok(kept)
    }

    /// Restores what was not written by agentd, before anything else is recorded.
    pub(crate) fn check(
        self,
        project: &Project,
        holder: &Holder,
        claim: &Claim,
    ) -> Result<Option<TamperedFile>, DocumentError> {
        let found = self.put_back(project, holder)?;
        claim.forget(calls::STATE)?;
        Ok(found)
    }

    fn put_back(
        &self,
        project: &Project,
        holder: &Holder,
    ) -> Result<Option<TamperedFile>, DocumentError> {
        let id = &self.change;
        let lock = project.write_lock(id, holder)?;
        let change = project.change(id)?;
        let was = state::parse(&self.text, id)
            .map_err(|source| DocumentError::State { change: id.clone(), source })?;
        // A link or a directory in its place is not a state either.
        let now = change.read(&ChangeFile::State).ok();
        // What agentd itself wrote during the call is in its journal.
        let journal = journal::read_copy(project, id)?.and_then(|text| parse_journal(&text).ok());
        let recorded = journal.as_ref().and_then(Journal::last);
        let by_agentd = |text: &str| {
            text == self.text || recorded.is_some_and(|entry| entry.state == Digest::of(text))
        };
        if now.as_deref().is_some_and(by_agentd) {
            return restore_journal(project, &change, &lock);
        }
        let right = match now.as_deref().map(|text| state::parse(text, id)) {
            Some(Ok(now)) => {
                let right = with_decisions(&was, &now);
                let counts = recorded.is_some_and(|entry| entry.claims == journal_claims(&right));
                if counts { state::render(&right) } else { self.text.clone() }
            }
            Some(Err(_)) | None => self.text.clone(),
        };
        if now.is_none() {
            // One that cannot be removed is reported by the write.
            let _ = change.remove(&lock, &ChangeFile::State);
        }
        change.write(&lock, &ChangeFile::State, right.as_bytes())?;
        // One that still does not match is reported by the next command that relies on it.
        let _ = restore_journal(project, &change, &lock);
        let path = ChangeFile::State.path_in_project(id);
        Ok(Some(TamperedFile::text(&path, &self.text, now.as_deref())))
    }
}

/// Restores the journal; the state is the one that was recorded.
fn restore_journal(
    project: &Project,
    change: &Change,
    lock: &WriteLock,
) -> Result<Option<TamperedFile>, DocumentError> {
    let was = journal::read_copy(project, change.id())?.unwrap_or_default();
    let now = change.read(&ChangeFile::Journal).ok();
    Ok(match journal::restore(project, change, lock)? {
        None => None,
        Some(_) => {
            let path = ChangeFile::Journal.path_in_project(change.id());
            Some(TamperedFile::text(&path, &was, now.as_deref()))
        }
    })
}

/// The state as it was, with the decisions that people have made since.
fn with_decisions(was: &State, now: &State) -> State {
    let mut right = was.clone();
    if now.decisions.starts_with(&was.decisions) {
        right.decisions.clone_from(&now.decisions);
    }
    right.updated_at = now.updated_at;
    right.last_action.clone_from(&now.last_action);
    right
}

/// Restores the state of an abandoned call.
pub(crate) fn recover(project: &Project, claim: &Claim, holder: &Holder) -> Option<UncheckedCall> {
    let checked = || -> Result<Option<TamperedFile>, DocumentError> {
        let Some(bytes) = claim.read(calls::STATE)? else { return Ok(None) };
        let found = match serde_json::from_slice::<StateGuard>(&bytes) {
            Ok(kept) => match kept.put_back(project, holder) {
                // The change was archived or removed since.
                Err(DocumentError::Store(error)) if error.is_not_found() => None,
                found => found?,
            },
            // Nothing else is known of it.
            Err(_) => None,
        };
        claim.forget(calls::STATE)?;
        Ok(found)
    };
    let call = claim.name().trim_start_matches("_state-").to_owned();
    match checked() {
        Ok(found) => found.map(|one| UncheckedCall::Call { call, tampered: vec![one] }),
        Err(error) => {
            let path = RelPath::new(claim.name()).map(|path| path.as_path().to_owned());
            Some(UncheckedCall::Unknown { path: path.unwrap_or_default(), why: error.to_string() })
        }
    }
}
