//! What is kept and put back around calls that may write to the working tree.

use std::path::Path;

use agentd_core::agent::Role;
use agentd_core::ids::ChangeId;
use agentd_core::provider::sessions::ListOutput;

use super::{Agents, StepError, private_dir, run_shell};
use crate::agents::runner::{RunError, planned_files};
use crate::guard::calls::Claim;
use crate::guard::git_files::{GitGuard, Homes, TamperedFile};
use crate::guard::state_file::{self, StateGuard};
use crate::process::Limits;

/// Runs the tests of a change. They run what an implementer wrote, so what it must not change
/// they must not either.
pub fn run_tests(
    agents: &Agents,
    change: &ChangeId,
    command: &str,
    limits: Limits,
) -> Result<ListOutput, StepError> {
    let private_dir = private_dir(agents, &format!("{change}-tests"))?;
    let claim = Claim::of(&private_dir)?;
    let guarded = Guarded::take(agents, change, Role::Implementer, &private_dir)?;
    let planned = planned_files(&agents.project.change(change)?);
    let guard =
        GitGuard::take(&agents.git_tool_outside(), &agents.work_tree, Homes::All, &planned, &claim);
    let guard = guard.map_err(RunError::from)?;
    let output = run_shell(agents, command, limits);
    let mut tampered = guard.check(&claim).map_err(RunError::from)?;
    tampered.extend(guarded.check(agents)?);
    if tampered.is_empty() {
        output
    } else {
        Err(StepError::Tampered { who: "the test command".to_owned(), tampered })
    }
}

/// The state of a change, kept while somebody works who could write to it.
pub(super) struct Guarded(Option<(StateGuard, Claim)>);

impl Guarded {
    pub(super) fn take(
        agents: &Agents,
        change: &ChangeId,
        role: Role,
        private_dir: &Path,
    ) -> Result<Self, StepError> {
        if !role.edits_the_work_tree() {
            return Ok(Self(None));
        }
        let name = private_dir.file_name().unwrap_or_default().to_string_lossy();
        let claim = Claim::of(&private_dir.with_file_name(state_file::name(&name)))?;
        let guard = StateGuard::take(&agents.project, change, &claim)?;
        Ok(Self(Some((guard, claim))))
    }

    pub(super) fn check(self, agents: &Agents) -> Result<Option<TamperedFile>, StepError> {
        let Some((guard, claim)) = self.0 else { return Ok(None) };
        Ok(guard.check(&agents.project, &agents.holder, &claim)?)
    }
}
