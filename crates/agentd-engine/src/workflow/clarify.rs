//! Clarifying a change before it is planned: the planner proposes questions, a person
//! answers them, and the answers are written into `clarifications.md` (P2, P4).
//!
//! The questions are kept until the next ones are proposed, so that a person who stops
//! half-way is asked the same again, without another call.

use std::ops::ControlFlow;

use agentd_core::command_line::CommandLine;
use agentd_core::document::answers::AnswersError;
use agentd_core::document::clarifications::Answered;
use agentd_core::document::questions::{self, Questions, QuestionsError};
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, ChangeFile};
use agentd_core::phase::Phase;
use agentd_core::stamp::Stamp;
use agentd_core::state::{State, Track};
use agentd_core::step_name::StepName;
use agentd_core::text::{Line, Prose};
use serde_json::{Map, Value, json};

use super::begin::needs_answers;
use crate::change::documents::{self, DocumentError};
use crate::change::journal;
use crate::explain::{ErrorReport, Explain};
use crate::store::{Change, Holder, LockError, Project, StoreError};
use crate::tools::{self, ActionError, Refusal, Session, Written, input};

/// Why a change could not be clarified.
#[derive(Debug, thiserror::Error)]
pub enum ClarifyError {
    /// A file or the state could not be worked with.
    #[error(transparent)]
    Documents(#[from] DocumentError),
    /// The questions that are kept cannot be used.
    #[error("cannot use {path}: {source}")]
    Questions {
        /// The file.
        path: String,
        /// Why.
        source: QuestionsError,
    },
    /// A change cannot begin without a description.
    #[error("`{0}` is new and needs a description")]
    NoDescription(ChangeId),
    /// The plan is written, so what it was written for stays.
    #[error("`{0}` already has a plan, for another description")]
    Planned(ChangeId),
    /// The change is beyond planning.
    #[error("`{change}` is {phase}, past planning")]
    BeyondPlanning {
        /// The change.
        change: ChangeId,
        /// Where it stands.
        phase: Phase,
    },
    /// The answers in a file cannot be used.
    #[error("cannot use the answers in {file}")]
    Answers {
        /// The change.
        change: ChangeId,
        /// The file.
        file: String,
        /// What is wrong with them.
        source: AnswersError,
    },
    /// The description leaves questions open, and nobody can be asked (C29).
    #[error("`{change}` has no clarifications.md, and there is no terminal to ask on")]
    Missing {
        /// The change.
        change: ChangeId,
        /// The description of a change that has not begun.
        description: Option<String>,
    },
    /// The answers were refused.
    #[error(transparent)]
    Action(#[from] ActionError),
}

impl Explain for ClarifyError {
    fn explain(&self) -> ErrorReport {
        let report = |kind| ErrorReport::of(kind, self);
        match self {
            Self::Documents(error) => error.explain(),
            Self::Action(error) => error.explain(),
            Self::Questions { path, .. } => report(Kind::QuestionsInvalid)
                .run("remove it", CommandLine::new(["rm", path.as_str()])),
            Self::NoDescription(id) => report(Kind::NoDescription).run(
                "describe what you want",
                CommandLine::agentd(["clarify", id.as_str()]).placeholder("\"<what you want>\""),
            ),
            Self::Planned(id) => report(Kind::Refused)
                .run("omit the description", CommandLine::agentd(["clarify", id.as_str()]))
                .hint("or start another change under another ID"),
            Self::BeyondPlanning { .. } => report(Kind::Refused),
            Self::Answers { change, .. } => report(Kind::AnswersInvalid)
                .run(
                    "see the questions",
                    CommandLine::agentd(["clarify", change.as_str(), "--show"]),
                )
                .run("see the accepted formats", CommandLine::agentd(["clarify", "--help"])),
            Self::Missing { change, description } => {
                let mut ask = vec!["clarify", change.as_str()];
                ask.extend(description.as_deref());
                ask.push("--json");
                let answer = ["clarify", change.as_str(), "--answers", "answers.json"];
                let mut plan = vec!["plan", change.as_str()];
                plan.extend(description.as_deref());
                plan.push("--skip-clarify");
                report(Kind::ClarificationsMissing)
                    .cause("the description leaves questions open, and a plan would have to guess")
                    .run("see the questions", CommandLine::agentd(ask))
                    .run("then answer them", CommandLine::agentd(answer))
                    .run("or plan without them", CommandLine::agentd(plan))
            }
        }
    }
}

impl From<StoreError> for ClarifyError {
    fn from(error: StoreError) -> Self {
        Self::Documents(error.into())
    }
}

impl From<LockError> for ClarifyError {
    fn from(error: LockError) -> Self {
        Self::Documents(error.into())
    }
}

/// Begins a change, or takes up one that is there: its directory, and its state with
/// what is asked for. A change keeps its description unless another one is given, and
/// then the questions about the old one are dropped. The same goes for its track.
pub fn begin(
    project: &Project,
    id: &ChangeId,
    description: Option<&str>,
    track: Option<Track>,
    holder: &Holder,
    now: Stamp,
) -> Result<State, ClarifyError> {
    let description = description.map(Prose::new).filter(|text| !text.is_empty());
    // Two commands that begin the same change must not both find it missing.
    let _project = project.project_lock(holder)?;
    let change = match project.change(id) {
        Err(error) if error.is_not_found() && description.is_none() => {
            return Err(ClarifyError::NoDescription(id.clone()));
        }
        result => result.map(Some).or_else(|error| match error {
            error if error.is_not_found() => Ok(None),
            error => Err(error),
        })?,
    };
    let lock = project.write_lock(id, holder)?;
    let change = match change {
        Some(change) => change,
        None => project.create_change(id)?,
    };
    let Some(old) = documents::load_state_if_begun(&change)? else {
        let description = match description {
            Some(description) => description,
            None => proposed(project, &change)?
                .ok_or_else(|| ClarifyError::NoDescription(id.clone()))?,
        };
        let mut state = State::new(id.clone(), description.as_str(), now);
        state.track = track.unwrap_or_default();
        documents::create_state(project, &change, &lock, &state, now)?;
        return Ok(state);
    };
    if !matches!(old.phase, Phase::Proposed | Phase::Rejected) {
        return Err(ClarifyError::BeyondPlanning { change: id.clone(), phase: old.phase });
    }
    let same = description.is_none() || description == old.description;
    // What was reported as a bug stays one.
    let track = track.filter(|_| old.track != Track::Bug).unwrap_or(old.track);
    if same && track == old.track {
        return Ok(old);
    }
    if !same {
        if old.description.is_some() && change.has(&ChangeFile::Proposal)? {
            return Err(ClarifyError::Planned(id.clone()));
        }
        forget_questions(project, id)?;
    }
    drop(lock);
    let update = |state: &mut State| {
        if !same {
            state.description = description;
        }
        state.track = track;
        Ok(state.clone())
    };
    Ok(documents::update_state(project, id, holder, now, update)?)
}

/// Takes up a plan that was written by hand or by an interactive agent: a change without a state gets
/// one, with what its proposal says (W4). Nothing where there is a state, or no proposal that says
/// anything.
pub fn adopt(
    project: &Project,
    id: &ChangeId,
    holder: &Holder,
    now: Stamp,
) -> Result<Option<State>, ClarifyError> {
    let change = project.change(id)?;
    if documents::load_state_if_begun(&change)?.is_some() || proposed(project, &change)?.is_none() {
        return Ok(None);
    }
    begin(project, id, None, None, holder, now).map(Some)
}

/// Says that a change was taken up.
pub fn adopted(id: &ChangeId) -> String {
    format!("adopted `{id}`, which had no STATE.yaml")
}

/// What the proposal of a change without a state says that it is about. A change with a record had a
/// state: somebody has removed it, and with it what counted.
fn proposed(project: &Project, change: &Change) -> Result<Option<Prose>, ClarifyError> {
    let recorded =
        change.has(&ChangeFile::Journal)? || journal::read_copy(project, change.id())?.is_some();
    if recorded {
        return Err(DocumentError::NoState { change: change.id().clone() }.into());
    }
    let documents = change.documents([ChangeFile::Proposal]);
    let summary = documents.proposal.value().summary.clone();
    Ok((!summary.is_empty()).then_some(summary))
}

fn forget_questions(project: &Project, id: &ChangeId) -> Result<(), StoreError> {
    for file in [layout::questions(id), layout::given_answers(id)] {
        match project.dir().without_symlinks().remove_file(&file) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// What somebody has answered who did not get to the end, by the headers of the questions. It is
/// only offered to them again: an agent could have written it.
pub fn given(project: &Project, change: &ChangeId) -> Vec<(String, Vec<String>)> {
    let text = project.dir().without_symlinks().read_to_string(&layout::given_answers(change));
    text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Keeps such answers on this machine.
pub fn keep_given(
    project: &Project,
    change: &ChangeId,
    given: &[(String, Vec<String>)],
) -> Result<(), StoreError> {
    let text = serde_json::to_vec(given).unwrap_or_default();
    let dir = project.dir().without_symlinks();
    dir.create_dir_all(&layout::questions_dir())?;
    dir.write_atomic(&layout::given_answers(change), &text)
}

/// The questions that wait for an answer.
pub fn kept(project: &Project, change: &ChangeId) -> Result<Option<Questions>, ClarifyError> {
    let Some(text) = read_questions(project, change)? else { return Ok(None) };
    questions::parse(&text, change).map(Some).map_err(|source| {
        let path = layout::questions(change).as_str().to_owned();
        ClarifyError::Questions { path, source }
    })
}

/// The same, where a file that cannot be used is as good as none: it is agentd's own and can be
/// made again, and nothing in it was answered.
pub fn kept_or_none(
    project: &Project,
    change: &ChangeId,
) -> Result<Option<Questions>, ClarifyError> {
    match kept(project, change) {
        Err(ClarifyError::Questions { .. }) => Ok(None),
        kept => kept,
    }
}

/// The text of the file in which questions are kept.
pub(crate) fn read_questions(
    project: &Project,
    change: &ChangeId,
) -> Result<Option<String>, StoreError> {
    match project.dir().without_symlinks().read_to_string(&layout::questions(change)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes answers into `clarifications.md`, by the action that agents use as well.
pub fn write(
    project: &Project,
    change: &ChangeId,
    answers: &[Answered],
    holder: &Holder,
    now: Stamp,
) -> Result<Written, ClarifyError> {
    write_if(project, change, answers, holder, now, |_| Ok(()))
}

/// The same, as long as it is these questions that wait, and nobody has answered them.
pub(super) fn write_to_asked(
    project: &Project,
    asked: &Questions,
    answers: &[Answered],
    holder: &Holder,
    now: Stamp,
) -> Result<Written, ClarifyError> {
    let id = &asked.change_id;
    write_if(project, id, answers, holder, now, |change| {
        let state = documents::load_state_if_begun(change)?;
        let waits = needs_answers(change, state.as_ref())?
            && kept_or_none(project, id).is_ok_and(|kept| kept.as_ref() == Some(asked));
        if waits {
            return Ok(());
        }
        let error = DocumentError::NotAskedAnyMore { change: id.clone() };
        Err(Refusal::new(error.to_string()).into())
    })
}

fn write_if(
    project: &Project,
    change: &ChangeId,
    answers: &[Answered],
    holder: &Holder,
    now: Stamp,
    check: impl FnOnce(&Change) -> Result<(), ActionError>,
) -> Result<Written, ClarifyError> {
    let session = Session {
        project,
        actor: Line::new("agentd"),
        holder: holder.clone(),
        now,
        names_change: true,
        step: None,
        receipt: None,
        on_wait: &|_| ControlFlow::Continue(()),
    };
    let mut input = Map::new();
    input.insert("change_id".to_owned(), json!(change));
    input.insert("questions".to_owned(), answers.iter().map(as_input).collect());
    let written = tools::create_clarifications_if(&session, input::read(input)?, check)?;
    documents::update_state(project, change, holder, now, |state| {
        state.last_action = Some(StepName::Clarify.into());
        Ok(())
    })?;
    // They are given now.
    let _ = project.dir().without_symlinks().remove_file(&layout::given_answers(change));
    Ok(written)
}

fn as_input(answered: &Answered) -> Value {
    json!({
        "topic": answered.topic,
        "question": answered.question,
        "answer": answered.answer,
        "rationale": answered.rationale,
    })
}

/// What the planner is asked.
pub fn prompt(change: &ChangeId, description: &str) -> String {
    agentd_core::prompt::Clarify { change, description }.render()
}
