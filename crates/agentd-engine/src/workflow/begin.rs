//! How a change begins: somebody is there to plan it, and it is described, clarified, and set up in
//! git.
//!
//! [`prepare`] does what is left to do and returns a [`Question`] where only a person can say
//! how to continue. The front end asks in its own way, puts the answer into the [`Request`], and
//! calls it again. What is done is on disk, and is not done again.

mod adoption;
mod cost;
mod placement;

use std::path::PathBuf;

use agentd_core::agent::AgentKind;
use agentd_core::complexity::{self, ChangeFacts};
use agentd_core::description::detailed_enough;
use agentd_core::document::answers;
use agentd_core::document::clarifications::Answered;
use agentd_core::document::questions::Questions;
use agentd_core::ids::ChangeId;
use agentd_core::known_agent;
use agentd_core::layout::ChangeFile;
use agentd_core::phase::Phase;
use agentd_core::state::{Placement, State, Track};
use agentd_core::step_name::StepName;
use agentd_core::text::{Prose, counted};

use self::adoption::Adopted;
pub use self::cost::{CostConsent, CostQuestion};
pub use self::placement::{
    CodeAt, CodeStep, PlacementOffer, PlacementQuestion, enter_checkout, place_code,
    placement_question,
};
use self::placement::{GitReady, Recheck, set_up_git};
pub(crate) use self::placement::{place, unplaced};
use super::clarify::{self, ClarifyError};
use super::{Call, Workflow, WorkflowError};
use crate::agents::context::Tree;
use crate::agents::installed;
use crate::agents::step::{Agents, Artifact};
use crate::change::{Snapshot, documents};
use crate::git::{self, Git, GitError};
use crate::store::{Change, Project, StoreError};

/// What is asked for.
#[derive(Debug)]
pub struct Request<'r> {
    /// What the change is to do; required for a new one.
    pub description: Option<&'r str>,
    /// How to find out what is meant.
    pub clarify: Clarify,
    /// The way that it takes; none for what the configuration says.
    pub track: Option<Track>,
    /// Where to work on it.
    pub placement: Option<Placement>,
    /// Whether it may cost what the forecast says.
    pub cost: CostConsent,
    /// Whether questions can be answered.
    pub person: Person,
}

/// How to find out what is meant.
#[derive(Debug)]
pub enum Clarify {
    /// Ask what the description leaves open.
    Ask,
    /// Plan without asking.
    Skip,
    /// The answers, as a person gave them in a file.
    File {
        /// The name of the file, for messages.
        name: String,
        /// What it holds.
        text: String,
    },
    /// The answers to a [`Question::Clarify`].
    Answered(Vec<Answered>),
}

/// Whether somebody is there to answer questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Person {
    /// Questions are returned.
    Present,
    /// Defaults are taken, and what has none is an error (C29).
    Absent,
}

/// What [`prepare`] came to.
#[derive(Debug)]
pub enum Prepared {
    /// The change can be planned.
    Ready,
    /// The change has moved into its worktree, the project at this path. Go on there.
    Moved(PathBuf),
    /// A person has to answer first.
    Ask(Question),
}

/// What only a person can say.
#[derive(Debug)]
pub enum Question {
    /// What the description leaves open; answered by [`Clarify::Answered`].
    Clarify(Questions),
    /// Where to work; answered by [`Request::placement`].
    Placement(Git),
    /// Whether it may cost that much; answered by [`Request::cost`].
    Cost(CostQuestion),
}

/// Who plans and judges plans.
#[derive(Debug)]
pub enum Planner {
    /// The agents that are configured.
    Configured,
    /// The built-in agent: a person has agreed to it.
    Builtin,
    /// A person has to say whether the built-in agent may do it, since [no other was
    /// found](NoAgent); the answer is a [`BuiltinAnswer`].
    Ask(NoAgent),
}

/// What a person says to a [`Planner::Ask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinAnswer {
    /// Let the built-in agent draft the plan.
    Accept,
    /// Do without; an agent will be installed first.
    Decline,
}

/// No agent is on this machine, and none was chosen in the settings or on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no agent was found on PATH ({})", known_agent::KNOWN.map(|row| row.program).join(", "))]
pub struct NoAgent;

/// Finds out who plans. Where no agent is on this machine and none was chosen, a person can let
/// the built-in one draft and judge the plan. It never steps in by itself: an approval that
/// nobody has asked it for would pass for the verdict of an agent (T2).
pub fn find_planner(
    agents: &mut Agents,
    answer: Option<BuiltinAnswer>,
    person: Person,
) -> Result<Planner, WorkflowError> {
    if person == Person::Absent
        || !installed::offers_builtin(&agents.config, &agents.path(), agents.project.root())
    {
        return Ok(Planner::Configured);
    }
    match answer {
        None => return Ok(Planner::Ask(NoAgent)),
        Some(BuiltinAnswer::Decline) => return Err(NoAgent.into()),
        Some(BuiltinAnswer::Accept) => {}
    }
    let roles = installed::roles_of(AgentKind::Builtin, agents.config.roles);
    agents.config = agents.config.clone().with_roles(roles);
    Ok(Planner::Builtin)
}

/// Gets a change ready to be planned: begun, clarified, and set up in git.
pub fn prepare(
    workflow: &mut Workflow<'_>,
    request: &mut Request<'_>,
) -> Result<Prepared, WorkflowError> {
    let project = &workflow.agents.project;
    let id = workflow.change.clone();
    let read = || match project.change(&id) {
        Err(StoreError::NoSuchChange { .. }) => Ok(None),
        change => documents::load_state_if_begun(&change?),
    };
    let mut known = read()?;
    if known.is_none()
        && project.change_if_open(&id)?.is_none()
        && let Ok(Some(git)) =
            Git::discover_with(&workflow.agents.git_tool_outside(), project.root())
    {
        if git.is_on_its_branch(&id) {
            return Err(GitError::OnItsBranch { branch: git::branch_of(&id), change: id }.into());
        }
        match adoption::adopt(workflow, &git, request)? {
            None => {}
            Some(Adopted::Moved(root)) => return Ok(Prepared::Moved(root)),
            Some(Adopted::Here) => known = read()?,
        }
    }
    // Read before anything begins, so that a mistake leaves nothing behind.
    let answers = answers(project, &id, &request.clarify)?;
    if known.is_none() {
        let planner = workflow.agents.config.roles.planner;
        installed::must_be_installed(workflow.agents, planner)?;
    }
    let track = track(workflow, known.as_ref(), request);
    if track == Some(Track::Bug) && workflow.agents.config.implementation.test_command.is_none() {
        return Err(WorkflowError::NoTests { change: id });
    }
    if known.is_none() && answers.is_none() && request.person == Person::Absent {
        must_be_clear(project, &id, request, track)?;
    }
    if let Some(question) = cost::expect_cost(workflow, known.as_ref(), request)? {
        return Ok(Prepared::Ask(Question::Cost(question)));
    }
    let project = &workflow.agents.project;
    let state = match known {
        Some(state) if state.phase != Phase::Proposed => state,
        _ => {
            let (holder, now) = (&workflow.agents.holder, (workflow.now)());
            let state = clarify::begin(project, &id, request.description, track, holder, now)?;
            if known.is_none() && request.description.is_none() {
                workflow.note(&clarify::adopted(&id));
            }
            if let Some(answers) = &answers {
                clarify::write(project, &id, answers, holder, now)?;
                request.clarify = Clarify::Ask;
            } else if let Some(questions) = open_questions(workflow, &state, request)? {
                return Ok(Prepared::Ask(Question::Clarify(questions)));
            }
            state
        }
    };
    match set_up_git(workflow, &state, request.placement, Recheck::No, request.person)? {
        GitReady::Ask(repository) => Ok(Prepared::Ask(Question::Placement(repository))),
        GitReady::Moved(root) => Ok(Prepared::Moved(root)),
        GitReady::Here | GitReady::Before => Ok(Prepared::Ready),
    }
}

/// The track that a change is put on: what is asked for, and for a new one what the configuration
/// says. None to leave it as it is.
fn track(workflow: &Workflow<'_>, known: Option<&State>, request: &Request<'_>) -> Option<Track> {
    let agents = workflow.agents;
    let complexity = || {
        let description = request.description.unwrap_or_default();
        let project_files = Tree::scan(agents.project.root()).files();
        complexity::assess(&ChangeFacts { description, project_files }).0
    };
    let configured = || agents.config.workflow.ceremony.track(complexity);
    request.track.or_else(|| known.is_none().then(configured))
}

fn answers(
    project: &Project,
    id: &ChangeId,
    clarify: &Clarify,
) -> Result<Option<Vec<Answered>>, ClarifyError> {
    match clarify {
        Clarify::Ask | Clarify::Skip => Ok(None),
        Clarify::Answered(answers) => Ok(Some(answers.clone())),
        Clarify::File { name, text } => parse_answers(project, id, name, text).map(Some),
    }
}

/// Reads answers from a file that a person wrote.
pub fn parse_answers(
    project: &Project,
    id: &ChangeId,
    name: &str,
    text: &str,
) -> Result<Vec<Answered>, ClarifyError> {
    let kept = clarify::kept_or_none(project, id)?;
    answers::parse(text, kept.as_ref()).map_err(|source| ClarifyError::Answers {
        change: id.clone(),
        file: name.to_owned(),
        source,
    })
}

/// Nothing is started that could not continue: without a person, a change that leaves questions
/// open is refused before it exists (C29).
fn must_be_clear(
    project: &Project,
    id: &ChangeId,
    request: &Request<'_>,
    track: Option<Track>,
) -> Result<(), ClarifyError> {
    let description = request.description.unwrap_or_default();
    let change = project.change(id);
    let clarified = change.is_ok_and(|c| c.has(&ChangeFile::Clarifications).unwrap_or_default());
    let quick = track.is_some_and(|track| track != Track::Full);
    let skipped = quick || matches!(request.clarify, Clarify::Skip);
    let clear = clarified || skipped || detailed_enough(description);
    // Without a description the change cannot begin, which has an error of its own.
    if clear || description.trim().is_empty() {
        return Ok(());
    }
    Err(ClarifyError::Missing {
        change: id.clone(),
        description: request.description.map(ToOwned::to_owned),
    })
}

/// The questions that a change which is not planned yet leaves open (P2). The planner is called
/// if none are kept.
fn open_questions(
    workflow: &mut Workflow<'_>,
    state: &State,
    request: &Request<'_>,
) -> Result<Option<Questions>, WorkflowError> {
    if matches!(request.clarify, Clarify::Skip) || !needs_answers(&workflow.change()?, Some(state))?
    {
        return Ok(None);
    }
    if request.person == Person::Absent {
        let change = workflow.change.clone();
        return Err(ClarifyError::Missing { change, description: None }.into());
    }
    propose_questions(workflow, state).map(|asked| Some(asked.questions))
}

/// Whether a change leaves open what is meant, so that its plan waits for answers (P2).
pub fn needs_answers(change: &Change, state: Option<&State>) -> Result<bool, StoreError> {
    let clear = change.has(&ChangeFile::Proposal)?
        || change.has(&ChangeFile::Clarifications)?
        || state.is_some_and(State::is_clear);
    Ok(!clear)
}

/// Questions, and what they cost.
#[derive(Debug)]
pub struct ProposedQuestions {
    /// The questions.
    pub questions: Questions,
    /// The cost of the call; nothing where the questions were kept.
    pub cost_usd: f64,
}

/// The questions that are kept; without any, the planner proposes some.
pub fn propose_questions(
    workflow: &mut Workflow<'_>,
    state: &State,
) -> Result<ProposedQuestions, WorkflowError> {
    let id = workflow.change.clone();
    if let Some(questions) = clarify::kept_or_none(&workflow.agents.project, &id)? {
        return Ok(ProposedQuestions { questions, cost_usd: 0.0 });
    }
    let description = state.description.as_ref().map(ToString::to_string).unwrap_or_default();
    let call = Call {
        step: StepName::Clarify,
        role: agentd_core::agent::Role::Planner,
        label: "Questions".to_owned(),
        prompt: clarify::prompt(&id, &description),
        resume: None,
        artifact: Artifact::Questions,
    };
    // The step has just seen them, so if they are gone, somebody has removed them since.
    let gone = || StoreError::NotFound { path: agentd_core::layout::questions(&id) };
    let (report, questions) = workflow.run_checked(
        call,
        |workflow, _| Ok(clarify::kept(&workflow.agents.project, &id)?.ok_or_else(gone)?),
        |_, questions| counted(questions.questions.len(), "question"),
    )?;
    Ok(ProposedQuestions { questions, cost_usd: report.cost_usd })
}

/// The id, or the first of `-1`, `-2`, … that is free (C18); none if they get too long. A change
/// that has nothing but answers to questions is still to be written, so its id is free; one whose
/// plan was begun for the same description and is not whole is continued (C31).
pub fn free_id(
    project: &Project,
    wanted: &ChangeId,
    description: &str,
) -> Result<Option<ChangeId>, WorkflowError> {
    let mut id = Ok(wanted.clone());
    let mut number = 0_u32;
    while let Ok(candidate) = id {
        if is_free(project, &candidate, description)? {
            return Ok(Some(candidate));
        }
        number = number.saturating_add(1);
        id = ChangeId::new(&format!("{wanted}-{number}"));
    }
    Ok(None)
}

fn is_free(project: &Project, id: &ChangeId, description: &str) -> Result<bool, WorkflowError> {
    let change = match project.home_of(id).change(id) {
        Err(StoreError::NoSuchChange { .. }) => return Ok(true),
        change => change?,
    };
    let begun = documents::load_state_if_begun(&change)?;
    if begun.as_ref().is_some_and(|state| state.phase != Phase::Proposed) {
        return Ok(false);
    }
    let calls = begun.iter().flat_map(|state| &state.llm_calls);
    let called = calls.into_iter().any(|call| call.step != StepName::Clarify);
    let written = change.has(&ChangeFile::Proposal)? || change.has(&ChangeFile::Tasks)?;
    let same = begun.is_some_and(|state| state.description == Some(Prose::new(description)));
    Ok((!called && !written) || (same && !is_whole(&change.snapshot()?)))
}

/// Whether every document of a plan is written. A circle of specs is for `plan` to report.
fn is_whole(change: &Snapshot) -> bool {
    let documents = &change.documents;
    let specs = documents.proposal.value().affected_specs.iter();
    documents.has(&ChangeFile::Proposal)
        && documents.has(&ChangeFile::Tasks)
        && specs.into_iter().all(|spec| documents.has(&ChangeFile::Spec(spec.id.clone())))
}
