//! What an agent may do to a change: one file per tool, and the table of them.
//!
//! The functions take validated input and either do the whole of it or
//! nothing. A write happens under the change's write lock and only if the
//! document, as it would be on disk, has no HIGH finding; afterwards the file
//! is read back. The MCP server is a thin layer of protocol above this, and
//! anything else that lets agents write calls the same functions.

mod append_review;
mod ask_user;
mod by_person;
mod complete_task;
mod create_clarifications;
mod create_proposal;
mod create_review;
mod create_spec;
mod create_tasks;
mod edit_file;
mod evidence;
pub mod input;
mod list_directory;
mod outcome;
mod propose_questions;
mod read_file;
mod remove_spec;
mod review_rules;
mod schema;
mod spec_file;
mod tool;
mod visible_path;
mod write_spec;
mod writing;

use std::ops::ControlFlow;

use agentd_core::agent::Role;
use agentd_core::receipt::ReceiptKey;
use agentd_core::stamp::Stamp;
use agentd_core::step_name::StepName;
use agentd_core::text::Line;

use crate::store::{Holder, Project, Waiting};

pub use append_review::{AppendReview, append_review};
pub use ask_user::{AskUser, ask_user};
pub use by_person::{DocumentEdit, EditError, TypedFinding, check_edit, edit_document, editable};
pub use complete_task::{CompleteTask, Completed, complete_task};
pub(crate) use create_clarifications::create_clarifications_if;
pub use create_clarifications::{CreateClarifications, create_clarifications};
pub use create_proposal::{AffectedSpecInput, CreateProposal, ImpactInput, create_proposal};
pub(crate) use create_review::next_review;
pub use create_review::{CreateReview, create_review};
pub use create_spec::{CreateSpec, create_spec};
pub use create_tasks::{CreateTasks, create_tasks};
pub use edit_file::{EditFile, edit_file};
pub(crate) use evidence::all_contradicted;
pub use evidence::{contradicted, require as evidence};
pub use list_directory::{ListDirectory, Listing, list_directory};
pub use outcome::{ActionError, Refusal, Written};
pub use propose_questions::{ProposeQuestions, propose_questions};
pub use read_file::{READ_CAP, ReadFile, ReadText, read_file};
pub use remove_spec::{RemoveSpec, Removed, remove_spec};
pub use tool::{Answer, Tool, Toolset};
pub use write_spec::{WriteSpec, write_spec};

/// The tools, in the order in which clients see them.
pub(crate) static TOOLS: [&Tool; 14] = [
    &create_clarifications::TOOL,
    &create_proposal::TOOL,
    &create_spec::TOOL,
    &write_spec::TOOL,
    &remove_spec::TOOL,
    &create_tasks::TOOL,
    &read_file::TOOL,
    &edit_file::TOOL,
    &list_directory::TOOL,
    &append_review::TOOL,
    &complete_task::TOOL,
    &create_review::TOOL,
    &propose_questions::TOOL,
    &ask_user::TOOL,
];

/// The names of the tools that an agent has in a step.
pub(crate) fn names_for(role: Role, step: &StepName) -> Vec<String> {
    of(Toolset::new(Some(role), Some(step))).map(|tool| tool.name.to_owned()).collect()
}

/// The tools of a set.
pub fn of(toolset: Toolset) -> impl Iterator<Item = &'static Tool> {
    TOOLS.into_iter().filter(move |tool| tool.is_in(toolset))
}

/// The tool of this name, among those of a set.
pub fn find(toolset: Toolset, name: &str) -> Option<&'static Tool> {
    of(toolset).find(|tool| tool.name == name)
}

/// Who acts, on which project, when, and what happens while they wait.
pub struct Session<'a> {
    /// The project.
    pub project: &'a Project,
    /// Who signs reviews: the agent behind the tools.
    pub actor: Line,
    /// Who signs locks.
    pub holder: Holder,
    /// The time that is written into documents.
    pub now: Stamp,
    /// Whether the process that started the tools named the change: then its id is no
    /// typing error, and a proposal may begin it.
    pub names_change: bool,
    /// The step that the tools were started for, if agentd did.
    pub step: Option<StepName>,
    /// The key with which reviews and questions get their receipts, if agentd started the tools.
    pub receipt: Option<ReceiptKey>,
    /// Hears of a wait for the lock, and may end it.
    pub on_wait: &'a (dyn Fn(&Waiting) -> ControlFlow<()> + 'a),
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("actor", &self.actor).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agentd_core::agent::Role;

    use super::*;

    #[test]
    fn every_tool_has_its_own_name_and_is_offered_to_someone() {
        let names: BTreeSet<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(names.len(), TOOLS.len());
        for tool in TOOLS {
            assert!(
                Toolset::EVERY.iter().any(|set| tool.offered_to.contains(set)),
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn every_toolset_reads_and_only_planners_write_in_many_ways() {
        for set in Toolset::EVERY {
            let names: Vec<&str> = of(*set).map(|tool| tool.name).collect();
            let reads = ["read_file", "list_directory"];
            assert!(reads.iter().all(|name| names.contains(name)), "{set:?}: {names:?}");
            let writes = names.iter().filter(|name| !reads.contains(name)).count();
            let all = match set {
                Toolset::All => 7,
                Toolset::Role(Role::Planner) => 7,
                Toolset::Step(Role::Planner) => 7,
                Toolset::Step(Role::Implementer) => 2,
                Toolset::Role(_) | Toolset::Step(_) | Toolset::Clarify => 1,
            };
            assert_eq!(writes, all, "{set:?}: {names:?}");
        }
    }

    #[test]
    fn a_tool_is_found_only_in_a_set_that_has_it() {
        let (planner, called) = (Toolset::Role(Role::Planner), Toolset::Step(Role::Planner));
        assert!(find(planner, "create_clarifications").is_some());
        assert!(find(called, "create_clarifications").is_none());
        assert!(find(planner, "ask_user").is_none() && find(called, "ask_user").is_some());
        assert!(find(Toolset::Clarify, "propose_questions").is_some());
        assert!(find(Toolset::All, "propose_questions").is_none());
        assert!(find(Toolset::Role(Role::Reviewer), "edit_file").is_none());
    }
}
