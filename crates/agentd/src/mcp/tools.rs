//! The tools: which role has which, how they are described, what they call.

use std::sync::Arc;

use agentd_core::ids::ChangeId;
use agentd_engine::tools::{
    self, ActionError, Completed, Listing, ReadText, Session, Written, input,
};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool as Description, ToolAnnotations};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Role, Toolset, schemas};

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    CreateClarifications,
    CreateProposal,
    CreateSpec,
    WriteSpec,
    CreateTasks,
    ReadFile,
    EditFile,
    ListDirectory,
    AppendReview,
    CompleteTask,
    CreateReview,
    ProposeQuestions,
}

impl Tool {
    /// What an interactive client is offered. It asks people itself, so there is
    /// nothing to propose.
    const ALL: [Self; 11] = [
        Self::CreateClarifications,
        Self::CreateProposal,
        Self::CreateSpec,
        Self::WriteSpec,
        Self::CreateTasks,
        Self::ReadFile,
        Self::EditFile,
        Self::ListDirectory,
        Self::AppendReview,
        Self::CompleteTask,
        Self::CreateReview,
    ];

    /// The tools of a set.
    pub(super) fn of(toolset: Toolset) -> Vec<Self> {
        let plans = [
            Self::CreateClarifications,
            Self::CreateProposal,
            Self::CreateSpec,
            Self::WriteSpec,
            Self::CreateTasks,
            Self::ReadFile,
            Self::EditFile,
            Self::ListDirectory,
        ];
        let reads_and = |own: Self| vec![Self::ReadFile, Self::ListDirectory, own];
        match toolset {
            Toolset::All => Self::ALL.to_vec(),
            Toolset::Clarify => reads_and(Self::ProposeQuestions),
            Toolset::Role(Role::Planner) => plans.to_vec(),
            Toolset::Role(Role::Challenger) => reads_and(Self::AppendReview),
            Toolset::Role(Role::Implementer) => reads_and(Self::CompleteTask),
            Toolset::Role(Role::Reviewer) => reads_and(Self::CreateReview),
        }
    }

    /// The tool of this name, among those of a set.
    pub(super) fn find(toolset: Toolset, name: &str) -> Option<Self> {
        Self::of(toolset).into_iter().find(|tool| tool.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::CreateClarifications => "create_clarifications",
            Self::CreateProposal => "create_proposal",
            Self::CreateSpec => "create_spec",
            Self::WriteSpec => "write_spec",
            Self::CreateTasks => "create_tasks",
            Self::ReadFile => "read_file",
            Self::EditFile => "edit_file",
            Self::ListDirectory => "list_directory",
            Self::AppendReview => "append_review",
            Self::CompleteTask => "complete_task",
            Self::CreateReview => "create_review",
            Self::ProposeQuestions => "propose_questions",
        }
    }

    fn purpose(self) -> &'static str {
        match self {
            Self::CreateClarifications => "Write clarifications.md.",
            Self::CreateProposal => "Write proposal.md, the first document of a plan.",
            Self::CreateSpec => "Write specs/<spec_id>.md, for each affected spec in order.",
            Self::WriteSpec => "Write specs/<spec_id>.md as Markdown.",
            Self::CreateTasks => "Write tasks.md with all tasks, after the specs.",
            Self::ReadFile => "Read a text file of the project.",
            Self::EditFile => "Replace a piece of text in a document of the change.",
            Self::ListDirectory => "List a directory of the project.",
            Self::AppendReview => "Give the verdict on the plan, once, at the end of your review.",
            Self::CompleteTask => {
                "Mark a task as done. Its file is checked: CREATE must exist, MODIFY must differ from the base commit, DELETE must be gone."
            }
            Self::CreateReview => {
                "Give the verdict on the implementation, once, at the end of your review."
            }
            Self::ProposeQuestions => {
                "Propose all questions for the user at once. They are asked after you have ended."
            }
        }
    }

    /// Whether it only looks.
    pub(super) fn is_read_only(self) -> bool {
        matches!(self, Self::ReadFile | Self::ListDirectory)
    }

    pub(super) fn input(self, bound: Option<&ChangeId>) -> JsonObject {
        let change = schemas::change(bound.map(ChangeId::as_str));
        match self {
            Self::CreateClarifications => schemas::create_clarifications(change),
            Self::CreateProposal => schemas::create_proposal(change),
            Self::CreateSpec => schemas::create_spec(change),
            Self::WriteSpec => schemas::write_spec(change),
            Self::CreateTasks => schemas::create_tasks(change),
            Self::ReadFile => schemas::read_file(change),
            Self::EditFile => schemas::edit_file(change),
            Self::ListDirectory => schemas::list_directory(change),
            Self::AppendReview => schemas::append_review(change),
            Self::CompleteTask => schemas::complete_task(change),
            Self::CreateReview => schemas::create_review(change),
            Self::ProposeQuestions => schemas::propose_questions(change),
        }
    }

    /// None for `read_file`: models read a text better as it is than inside JSON.
    fn output(self) -> Option<JsonObject> {
        match self {
            Self::ReadFile => None,
            Self::ListDirectory => Some(schemas::listing()),
            Self::CompleteTask => Some(schemas::completed()),
            Self::AppendReview | Self::CreateReview => Some(schemas::reviewed()),
            _ => Some(schemas::written()),
        }
    }

    /// The tool as clients see it.
    pub(super) fn describe(self, bound: Option<&ChangeId>) -> Description {
        // What clients decide by. `idempotentHint` is left out: nobody asks for it, and
        // the list has to stay small.
        let annotations = ToolAnnotations::new()
            .read_only(self.is_read_only())
            .destructive(false)
            .open_world(false);
        let mut tool = Description::new(self.name(), self.purpose(), Arc::new(self.input(bound)))
            .with_annotations(annotations);
        if let Some(schema) = self.output() {
            tool = tool.with_raw_output_schema(Arc::new(schema));
        }
        tool
    }

    /// Does what the tool is for.
    pub(super) fn call(
        self,
        session: &Session<'_>,
        bound: Option<&ChangeId>,
        arguments: JsonObject,
    ) -> Result<CallToolResult, ActionError> {
        let read = Arguments { bound, arguments };
        match self {
            Self::CreateClarifications => {
                written(session, &tools::create_clarifications(session, read.of()?)?)
            }
            Self::CreateProposal => written(session, &tools::create_proposal(session, read.of()?)?),
            Self::CreateSpec => written(session, &tools::create_spec(session, read.of()?)?),
            Self::WriteSpec => written(session, &tools::write_spec(session, read.of()?)?),
            Self::CreateTasks => written(session, &tools::create_tasks(session, read.of()?)?),
            Self::EditFile => written(session, &tools::edit_file(session, &read.of()?)?),
            Self::AppendReview => written(session, &tools::append_review(session, read.of()?)?),
            Self::CreateReview => written(session, &tools::create_review(session, read.of()?)?),
            Self::ProposeQuestions => {
                written(session, &tools::propose_questions(session, read.of()?)?)
            }
            Self::ReadFile => Ok(shown(tools::read_file(session, &read.of()?)?)),
            Self::ListDirectory => listed(&tools::list_directory(session, &read.of()?)?),
            Self::CompleteTask => completed(session, &tools::complete_task(session, &read.of()?)?),
        }
    }
}

/// The arguments of a call, and the change that they must be about.
struct Arguments<'a> {
    bound: Option<&'a ChangeId>,
    arguments: JsonObject,
}

impl Arguments<'_> {
    fn of<T: DeserializeOwned>(self) -> Result<T, ActionError> {
        if let (Some(bound), Some(asked)) = (self.bound, self.arguments.get("change_id"))
            && let Some(Ok(asked)) = asked.as_str().map(ChangeId::new)
            && asked != *bound
        {
            return Err(tools::other_change(bound, &asked).into());
        }
        input::read(self.arguments)
    }
}

/// A result for programs and, in words, for models that get only the text.
fn both(value: &impl Serialize, words: String) -> Result<CallToolResult, ActionError> {
    let value =
        serde_json::to_value(value).map_err(|error| ActionError::Internal(error.to_string()))?;
    Ok(structured(value, words))
}

/// The same for what was written. Both forms tell the time, so that a recording of the
/// call can be played with it: some CLIs show one, some the other.
fn timed(
    session: &Session<'_>,
    value: &impl Serialize,
    words: String,
) -> Result<CallToolResult, ActionError> {
    let mut value =
        serde_json::to_value(value).map_err(|error| ActionError::Internal(error.to_string()))?;
    value["at"] = serde_json::json!(session.now);
    Ok(structured(value, words))
}

fn structured(value: serde_json::Value, words: String) -> CallToolResult {
    let mut result = CallToolResult::structured(value);
    result.content = vec![ContentBlock::text(words)];
    result
}

fn written(session: &Session<'_>, written: &Written) -> Result<CallToolResult, ActionError> {
    let (path, now, sha256) = (&written.path, session.now, &written.sha256);
    let mut words = format!("Wrote {path} at {now} (sha256 {sha256}).");
    if !written.warnings.is_empty() {
        words.push_str("\nIt is accepted, but could be better:");
        for warning in &written.warnings {
            words.push_str("\n- ");
            words.push_str(warning);
        }
    }
    timed(session, written, words)
}

fn completed(session: &Session<'_>, done: &Completed) -> Result<CallToolResult, ActionError> {
    let ready: Vec<String> = done.ready.iter().map(ToString::to_string).collect();
    let ready = if ready.is_empty() { "none".to_owned() } else { ready.join(", ") };
    let words = format!(
        "Task {} is done at {} ({} of {}). Ready now: {ready}.",
        done.task_id, session.now, done.completed, done.total
    );
    timed(session, done, words)
}

fn listed(listing: &Listing) -> Result<CallToolResult, ActionError> {
    let mut words = format!("{}:\n{}", listing.path, listing.entries.join("\n"));
    if listing.truncated {
        words.push_str("\n… and more");
    }
    both(listing, words)
}

fn shown(read: ReadText) -> CallToolResult {
    let note = read.next_offset.map(|next| {
        format!(
            "[{} goes on: {next} of {} bytes were shown. Call read_file again with offset {next}.]",
            read.path, read.size
        )
    });
    let mut content = vec![ContentBlock::text(read.text)];
    content.extend(note.map(ContentBlock::text));
    CallToolResult::success(content)
}
