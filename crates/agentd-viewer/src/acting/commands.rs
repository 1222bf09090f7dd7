//! Starting and stopping commands. Which can be started is said by the same function as `Next` of
//! `agentd status`; nothing that a page sends becomes part of a command line.

use std::sync::{Arc, PoisonError};

use agentd_core::ids::ChangeId;
use agentd_core::state::Placement;
use agentd_engine::workflow::background::{self, BackgroundCommand};
use agentd_engine::workflow::{begin as beginning, clarify};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Sent, now, shown_to_person, to_change};
use crate::App;
use crate::pages;
use crate::problem::Problem;
use crate::routes::{blocking, open};
use crate::subject::{ChangeRef, Subject};

/// Refuses where the viewer only shows.
fn must_act(app: &App) -> Result<(), Problem> {
    if app.acts {
        return Ok(());
    }
    let why = "This viewer starts and stops no commands. To let it, run `agentd view --act`.";
    Err(Problem::new(StatusCode::FORBIDDEN, why))
}

/// What to start.
#[derive(Debug, Deserialize)]
pub(crate) struct RunForm {
    command: String,
    #[serde(default)]
    placement: String,
}

pub(crate) async fn run(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Sent(form): Sent<RunForm>,
) -> Result<Response, Problem> {
    must_act(&app)?;
    let id = open(&id)?;
    blocking(move || {
        let no_such = || Problem::new(StatusCode::BAD_REQUEST, "There is no such command.");
        let command: BackgroundCommand = form.command.parse().map_err(|_| no_such())?;
        let placement = placement(&form.placement)?;
        let _one_at_a_time = app.starting.lock().unwrap_or_else(PoisonError::into_inner);
        let subject = Subject::load(&app.project, ChangeRef::Open(id.clone()))?;
        if !pages::is_startable(&app, &subject, command) {
            let why = format!("`{}` is not what comes next now.", command.step(&id));
            return Err(Problem::new(StatusCode::CONFLICT, why));
        }
        background::start(&app.project, &id, command, placement, &app.program)?;
        Ok(to_change(&id))
    })
    .await
}

/// Where to work; none if the form says nothing about it.
fn placement(name: &str) -> Result<Option<Placement>, Problem> {
    let known = Placement::ALL.into_iter().find(|placement| placement.name() == name);
    if known.is_none() && !name.is_empty() {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "There is no such place to work."));
    }
    Ok(known)
}

/// Starts what comes next, if that can be started.
pub(super) fn start_next(app: &App, id: &ChangeId) -> Result<(), Problem> {
    let _one_at_a_time = app.starting.lock().unwrap_or_else(PoisonError::into_inner);
    let subject = Subject::load(&app.project, ChangeRef::Open(id.clone()))?;
    let next = subject.position().map_or(&[][..], |position| &position.course.next);
    let command = next.iter().find_map(|step| BackgroundCommand::of(step, id));
    if let Some(command) = command {
        background::start(&app.project, id, command, None, &app.program)?;
    }
    Ok(())
}

pub(crate) async fn stop(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    must_act(&app)?;
    let id = open(&id)?;
    blocking(move || {
        background::stop(&app.project.home_of(&id), &id)?;
        Ok(to_change(&id))
    })
    .await
}

/// A new change as the form sends it.
#[derive(Debug, Deserialize)]
pub(crate) struct NewForm {
    id: String,
    description: String,
    #[serde(default)]
    placement: String,
    /// `clarify`, or `plan` for a plan without questions.
    then: String,
}

pub(crate) async fn begin(
    State(app): State<Arc<App>>,
    Sent(form): Sent<NewForm>,
) -> Result<Response, Problem> {
    must_act(&app)?;
    blocking(move || {
        let bad = |why: String| Problem::new(StatusCode::BAD_REQUEST, why);
        let id = ChangeId::new(form.id.trim()).map_err(|error| bad(error.to_string()))?;
        let placement = placement(&form.placement)?;
        let command = match form.then.as_str() {
            "clarify" => BackgroundCommand::Clarify,
            "plan" => BackgroundCommand::PlanWithoutQuestions,
            _ => return Err(bad("There is no such command.".to_owned())),
        };
        if form.description.trim().is_empty() {
            return Err(bad("Say what you want.".to_owned()));
        }
        if app.project.home_of(&id).change_if_open(&id)?.is_some() {
            let why = format!("There is a change `{id}` already. Take another name.");
            return Err(Problem::new(StatusCode::CONFLICT, why));
        }
        let description = Some(form.description.as_str());
        clarify::begin(&app.project, &id, description, None, &app.holder(), now())
            .map_err(|error| Problem::refused(&error))?;
        background::start(&app.project, &id, command, placement, &app.program)?;
        Ok(to_change(&id))
    })
    .await
}

/// Answers to the questions of the planner: `q0` and `own0` for the first, and so on.
pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Sent(fields): Sent<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    blocking(move || {
        let project = app.home_of(&id);
        let kept =
            clarify::kept_or_none(&project, &id).map_err(|error| Problem::refused(&error))?;
        let questions = kept.ok_or_else(|| {
            Problem::new(StatusCode::CONFLICT, "No questions wait for an answer.")
        })?;
        let seen = fields.iter().find(|(name, _)| name == "seen").map(|(_, value)| value.as_str());
        if shown_to_person(seen.unwrap_or_default())? != pages::questions_seen(&questions) {
            let why = "The questions have changed since you saw them. Reload the page, and answer \
                       those that are there now.";
            return Err(Problem::new(StatusCode::CONFLICT, why));
        }
        let given = |name: String| {
            fields.iter().filter(move |(key, _)| *key == name).map(|(_, value)| value.as_str())
        };
        let mut answers = Map::new();
        for (index, question) in questions.questions.iter().enumerate() {
            let own = given(format!("own{index}")).map(str::trim).find(|own| !own.is_empty());
            let picked = given(format!("q{index}")).filter_map(|at| {
                question.options.get(at.parse::<usize>().ok()?).map(|it| it.label.to_string())
            });
            let picked: Vec<Value> = match own {
                Some(own) if !question.multi_select => vec![own.into()],
                own => picked.map(Value::from).chain(own.map(Value::from)).collect(),
            };
            let value = match <[Value; 1]>::try_from(picked) {
                Ok([one]) => one,
                Err(picked) if picked.is_empty() => {
                    let why = format!("`{}` has no answer yet.", question.header);
                    return Err(Problem::new(StatusCode::BAD_REQUEST, why));
                }
                Err(picked) => Value::Array(picked),
            };
            answers.insert(question.header.to_string(), value);
        }
        let text = Value::Object(answers).to_string();
        let answers = beginning::parse_answers(&project, &id, "the form", &text)
            .map_err(|error| Problem::refused(&error))?;
        clarify::write(&project, &id, &answers, &app.holder(), now())
            .map_err(|error| Problem::refused(&error))?;
        let plan = fields.iter().any(|(name, value)| name == "then" && value == "plan");
        if plan && app.acts {
            let wanted = fields.iter().find(|(name, _)| name == "placement");
            let wanted = placement(wanted.map_or("", |(_, value)| value))?;
            background::start(&app.project, &id, BackgroundCommand::Plan, wanted, &app.program)?;
        }
        Ok(to_change(&id))
    })
    .await
}
