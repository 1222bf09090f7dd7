//! Who works in a checkout: changes share its branch and its files.
//!
//! A run holds the branch of its checkout together with others, so that nobody switches to another
//! one under it, and who writes or judges code holds the code alone. A checkout can have several
//! projects, so the locks go by its top, and they are in the user's state directory, where no agent
//! can break them.

use std::cell::RefCell;
use std::path::Path;

use agentd_core::ids::ChangeId;

use super::confined::ProjectDir;
use super::lock::{self, Holder, Lock, LockError, LockName, LockState};
use super::project::{Project, RunLock};

/// What a run holds of a checkout.
#[derive(Debug)]
pub(super) struct Checkout {
    locks: ProjectDir,
    branch: Lock,
    code: RefCell<Option<Lock>>,
    holder: Holder,
}

impl Checkout {
    fn enter(project: &Project, top: &Path, holder: &Holder) -> Result<Self, LockError> {
        // Without a state directory, projects in the same checkout do not know of each other.
        let locks = project.user().state_of(top).unwrap_or_else(|_| project.dir().clone());
        let branch = lock::lock_shared(&locks, &LockName::Branch)?;
        Ok(Self { locks, branch, code: RefCell::new(None), holder: holder.clone() })
    }

    /// Does something while nobody else works in the checkout.
    fn alone<T>(
        &self,
        project: &Project,
        but: Option<&ChangeId>,
        work: impl FnOnce() -> T,
    ) -> Result<T, LockError> {
        if !self.branch.try_alone()? {
            let holder = project.running(but);
            return Err(LockError::Held { name: LockName::Branch, holder });
        }
        let result = work();
        self.branch.share_again()?;
        Ok(result)
    }
}

impl RunLock {
    /// Whether a checkout was entered.
    pub(crate) fn has_entered(&self) -> bool {
        self.checkout.borrow().is_some()
    }

    /// Keeps others from switching the branch of the checkout with this top until the run ends.
    pub(crate) fn enter(
        &self,
        project: &Project,
        top: &Path,
        holder: &Holder,
    ) -> Result<(), LockError> {
        let mut checkout = self.checkout.borrow_mut();
        if checkout.is_none() {
            *checkout = Some(Checkout::enter(project, top, holder)?);
        }
        Ok(())
    }

    /// Does something to the branch of the checkout that was entered: nobody else runs in it
    /// meanwhile.
    pub(crate) fn alone<T>(
        &self,
        project: &Project,
        work: impl FnOnce() -> T,
    ) -> Result<T, LockError> {
        match &*self.checkout.borrow() {
            Some(checkout) => checkout.alone(project, Some(&self.change), work),
            None => Ok(work()),
        }
    }

    /// Holds the code of the checkout that was entered, alone, until the run ends.
    pub(crate) fn hold_code(&self) -> Result<(), LockError> {
        if let Some(Checkout { locks, code, holder, .. }) = &*self.checkout.borrow() {
            let mut code = code.borrow_mut();
            if code.is_none() {
                *code = Some(lock::try_lock(locks, &LockName::Code, holder)?);
            }
        }
        Ok(())
    }
}

impl Project {
    /// Does something to the branch of a checkout in which nobody runs anything.
    pub(crate) fn alone_in<T>(
        &self,
        top: &Path,
        holder: &Holder,
        work: impl FnOnce() -> T,
    ) -> Result<T, LockError> {
        Checkout::enter(self, top, holder)?.alone(self, None, work)
    }

    /// Who runs a change of this project, besides the given one.
    fn running(&self, but: Option<&ChangeId>) -> Option<Holder> {
        let changes = self.change_ids().ok()?.ids;
        changes.into_iter().filter(|id| Some(id) != but).find_map(|id| {
            match lock::lock_state(self.dir(), &LockName::Run(id)) {
                Ok(LockState::Held(holder)) => holder,
                Ok(LockState::Free) | Err(_) => None,
            }
        })
    }
}
