//! What an agent may do to a change: one function per tool.
//!
//! The functions take validated input and either do the whole of it or
//! nothing. A write happens under the change's write lock and only if the
//! document, as it would be on disk, has no HIGH finding; afterwards the file
//! is read back. The MCP server is a thin layer of protocol above this, and
//! anything else that lets agents write calls the same functions.

mod clarifications;
mod edit;
mod evidence;
mod files;
pub mod input;
mod outcome;
mod proposal;
mod questions;
mod review;
mod spec;
mod task_done;
mod tasks;
mod writing;

use std::ops::ControlFlow;

use agentd_core::stamp::Stamp;
use agentd_core::text::Line;

use crate::store::{Holder, Project, Waiting};

pub use clarifications::{CreateClarifications, create_clarifications};
pub use edit::{EditFile, edit_file};
pub use evidence::{contradicted, require as evidence};
pub use files::{ListDirectory, Listing, READ_CAP, ReadFile, ReadText, list_directory, read_file};
pub use outcome::{ActionError, Refusal, Written, other_change};
pub use proposal::{AffectedSpecInput, CreateProposal, ImpactInput, create_proposal};
pub use questions::{ProposeQuestions, propose_questions};
pub(crate) use review::next_review;
pub use review::{AppendReview, CreateReview, append_review, create_review};
pub use spec::{CreateSpec, WriteSpec, create_spec, write_spec};
pub use task_done::{CompleteTask, Completed, complete_task};
pub use tasks::{CreateTasks, create_tasks};

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
    /// Whether whoever started the tools named the change: then its id is no typing
    /// error, and a proposal may begin it.
    pub names_change: bool,
    /// Hears of a wait for the lock, and may end it.
    pub on_wait: &'a (dyn Fn(&Waiting) -> ControlFlow<()> + 'a),
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("actor", &self.actor).finish_non_exhaustive()
    }
}
