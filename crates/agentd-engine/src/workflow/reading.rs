//! What a workflow knows of its change: read once, and again only after somebody may have
//! written to it. An agent may have after each of its calls, and so may the tests; agentd
//! itself hands on what it has written.

use std::sync::Arc;

use agentd_core::document::proposal::Proposal;
use agentd_core::documents::{Doc, Documents, Source};
use agentd_core::layout::ChangeFile;
use agentd_core::state::State;

use super::history::{self, History};
use super::{Workflow, WorkflowError};
use crate::change::Snapshot;
use crate::change::documents::{self, DocumentError};
use crate::store::Change;

impl Workflow<'_> {
    /// The change on disk. Opened each time: an agent may have put another directory in its place.
    pub(super) fn change(&self) -> Result<Change, WorkflowError> {
        Ok(self.agents.project.change(&self.change)?)
    }

    /// The change as it was read last, or as it is now if that may be outdated.
    pub(super) fn snapshot(&self) -> Result<Snapshot, WorkflowError> {
        if let Some(kept) = &*self.kept.borrow() {
            return Ok(kept.clone());
        }
        let snapshot = self.change()?.snapshot()?;
        self.keep(snapshot.clone());
        Ok(snapshot)
    }

    /// Hands in a change that was just read.
    pub(super) fn keep(&self, snapshot: Snapshot) {
        self.kept.replace(Some(snapshot));
    }

    /// To be called when somebody may have written to the change.
    pub(super) fn forget(&self) {
        self.kept.replace(None);
    }

    pub(super) fn state(&self) -> Result<State, WorkflowError> {
        Ok(self.snapshot()?.state()?.clone())
    }

    pub(super) fn documents(&self) -> Result<Documents, WorkflowError> {
        Ok(self.snapshot()?.documents)
    }

    /// The documents. That one of them is there and cannot be read is an error.
    pub(super) fn documents_with(&self, file: &ChangeFile) -> Result<Documents, WorkflowError> {
        let documents = self.documents()?;
        if !matches!(documents.get(file), Source::Unreadable(_)) {
            return Ok(documents);
        }
        // Of the error only the words were kept.
        self.forget();
        self.change()?.read(file)?;
        self.documents()
    }

    pub(super) fn has(&self, file: &ChangeFile) -> Result<bool, WorkflowError> {
        match self.documents()?.get(file) {
            Source::Text(_) => Ok(true),
            Source::Missing => Ok(false),
            // A directory of that name is not the document.
            Source::Unreadable(_) => Ok(self.change()?.has(file)?),
        }
    }

    pub(super) fn proposal(&self) -> Result<Arc<Doc<Proposal>>, WorkflowError> {
        let documents = self.documents_with(&ChangeFile::Proposal)?;
        if documents.proposal.text().is_none() {
            let change = self.change.clone();
            return Err(WorkflowError::NoDocument { change, file: "proposal.md" });
        }
        Ok(documents.proposal)
    }

    /// Changes the state, which is read again under the lock for that.
    pub(super) fn update<T>(
        &self,
        update: impl FnOnce(&mut State) -> Result<T, DocumentError>,
    ) -> Result<T, WorkflowError> {
        let (project, holder) = (&self.agents.project, &self.agents.holder);
        let kept = self.kept.borrow().as_ref().map(|kept| kept.documents.clone());
        let (id, now) = (&self.change, (self.now)());
        let (value, state) =
            documents::updated_state(project, id, holder, now, kept.as_ref(), update)?;
        self.keep_state(state);
        Ok(value)
    }

    /// Hands in a state that was just written.
    fn keep_state(&self, state: State) {
        let kept = self.kept.take();
        self.kept.replace(kept.map(|kept| kept.with_state(state)));
    }

    /// The calls so far, with the ledger brought up to date.
    pub(super) fn history(&self) -> Result<History, WorkflowError> {
        let (history, written) = history::reconcile(self.agents, &self.snapshot()?, (self.now)())?;
        if let Some(state) = written {
            self.keep_state(state);
        }
        Ok(history)
    }
}
