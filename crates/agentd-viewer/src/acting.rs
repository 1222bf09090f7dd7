//! What a person can do on a page: comment, decide, go back to planning, edit; and, in `commands`,
//! start and stop commands. Each calls the same engine function as the command line, and shows a
//! page again afterwards.

pub(super) mod commands;

use std::sync::Arc;

use agentd_core::document::comments::{Anchor, Comment, Commented};
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::rel_path::RelPath;
use agentd_core::stamp::Stamp;
use agentd_engine::change::comments::{self, Fate, NewComment};
use agentd_engine::tools::{self, DocumentEdit};
use agentd_engine::workflow::decisions::{self, NewAnswer, NewDecision, PlanChoice};
use axum::extract::{Form, FromRequest, Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::App;
use super::html::visible;
use super::pages;
use super::problem::{Problem, Said};
use super::routes::{blocking, open};
use super::subject::{ChangeRef, Subject};

fn now() -> Stamp {
    Stamp::new(Timestamp::now())
}

/// The script of a page sends forms without leaving the page. It is answered with data: where to go,
/// or what is wrong, so that the page can say it beside the form and nothing typed is lost.
pub(super) async fn for_scripts(request: Request, next: Next) -> Response {
    let wanted = request.method() == Method::POST && wants_data(request.headers());
    let response = next.run(request).await;
    if !wanted {
        return response;
    }
    let json = |status: StatusCode, value: serde_json::Value| {
        (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
    };
    if let Some(Said { message, hints }) = response.extensions().get::<Said>() {
        return json(response.status(), json!({ "error": message, "hints": hints }));
    }
    let to = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
    match to {
        Some(to) => json(StatusCode::OK, json!({ "to": to })),
        None => response,
    }
}

fn wants_data(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).is_some_and(|accept| accept == "application/json")
}

fn to_change(id: &ChangeId) -> Response {
    Redirect::to(&format!("/changes/{id}")).into_response()
}

/// Where a comment is shown.
fn to_comment(id: &ChangeId, comment: &Comment) -> Response {
    let base = format!("/changes/{id}");
    let number = comment.number;
    let page = match comment.commented() {
        Some(Commented::Code | Commented::File(_)) => format!("{base}/code"),
        Some(Commented::Document(_)) if matches!(comment.at, Anchor::Issue(_)) => {
            format!("{base}/review?show=all")
        }
        Some(Commented::Document(ChangeFile::Spec(spec))) => format!("{base}/specs/{spec}"),
        Some(Commented::Document(ChangeFile::Tasks)) => format!("{base}/tasks"),
        Some(Commented::Document(ChangeFile::Clarifications)) => format!("{base}/clarifications"),
        Some(Commented::Document(ChangeFile::Proposal)) => format!("{base}/proposal"),
        Some(Commented::Document(_)) | None => format!("{base}/comments"),
    };
    Redirect::to(&format!("{page}#C{number}")).into_response()
}

/// The digest of what a form was shown with.
fn shown_to_person(seen: &str) -> Result<Digest, Problem> {
    let why = "The form does not say what was shown. Reload the page, and try again.";
    seen.parse().map_err(|_| Problem::new(StatusCode::BAD_REQUEST, why))
}

/// A form as a page sends it. What is not one is refused with a page of ours.
pub(super) struct Sent<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Sent<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let form = Form::<T>::from_request(request, state).await;
        let why = "The form is not one that this page sends. Reload the page, and try again.";
        form.map(|Form(form)| Self(form))
            .map_err(|rejection| Problem::new(rejection.into_response().status(), why))
    }
}

/// A comment as the form sends it.
#[derive(Debug, Deserialize)]
pub(super) struct CommentForm {
    on: String,
    #[serde(default)]
    at: String,
    #[serde(default)]
    quote: String,
    text: String,
}

pub(super) async fn comment(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Sent(form): Sent<CommentForm>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    blocking(move || {
        let on = form.on.parse::<Commented>().map_err(|_| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                "Only the documents and the code of a change can be commented on.",
            )
        })?;
        if let Commented::File(path) = &on {
            let subject = Subject::load(&app.project, ChangeRef::Open(id.clone()))?;
            if !pages::is_in_code(&subject, path) {
                let why = format!("`{path}` is not a file that this change differs in.");
                return Err(Problem::new(StatusCode::NOT_FOUND, why));
            }
        }
        let Ok(at) = form.at.parse::<Anchor>();
        let (by, text, quote) = (&*app.person, &*form.text, &*form.quote);
        let new = NewComment { on, at, quote, by, text };
        let made = comments::add(&app.home_of(&id), &id, &new, &app.holder(), now())?;
        Ok(to_comment(&id, &made))
    })
    .await
}

/// Whether to resolve a comment or to open it again.
#[derive(Debug, Deserialize)]
pub(super) struct SettleForm {
    fate: FateName,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FateName {
    Resolved,
    Open,
}

pub(super) async fn settle(
    State(app): State<Arc<App>>,
    Path((id, number)): Path<(String, u32)>,
    Sent(form): Sent<SettleForm>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    blocking(move || {
        let fate = match form.fate {
            FateName::Resolved => Fate::Resolved,
            FateName::Open => Fate::Open,
        };
        let (project, person) = (app.home_of(&id), &app.person);
        let done = comments::settle(&project, &id, number, fate, person, &app.holder(), now())?;
        Ok(to_comment(&id, &done))
    })
    .await
}

/// New words for a comment, or for an answer to it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WordsForm {
    text: String,
}

/// Answers a comment, edits it or removes it.
pub(super) async fn own_comment(
    State(app): State<Arc<App>>,
    Path((id, number, action)): Path<(String, u32, String)>,
    Sent(form): Sent<WordsForm>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    blocking(move || {
        let (project, by, holder) = (app.home_of(&id), &*app.person, app.holder());
        match action.as_str() {
            "answer" => {
                let made = comments::answer(&project, &id, number, &form.text, by, &holder, now())?;
                Ok(to_comment(&id, &made))
            }
            "edit" => {
                let made = comments::edit(&project, &id, number, &form.text, by, &holder)?;
                Ok(to_comment(&id, &made))
            }
            "remove" => {
                comments::remove(&project, &id, number, by, &holder)?;
                Ok(Redirect::to(&format!("/changes/{id}/comments")).into_response())
            }
            _ => Err(Problem::not_found()),
        }
    })
    .await
}

/// A decision as the form sends it.
#[derive(Debug, Deserialize)]
pub(super) struct DecideForm {
    choice: PlanChoice,
    /// The round that was shown.
    #[serde(default)]
    seen: String,
    #[serde(default)]
    note: String,
    /// Whether to go on right away; only where commands can be started.
    #[serde(default)]
    run: String,
}

pub(super) async fn decide(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Sent(form): Sent<DecideForm>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    blocking(move || {
        let (project, by) = (app.home_of(&id), &*app.person);
        let seen = shown_to_person(&form.seen)?;
        let decision = NewDecision { choice: form.choice, note: &form.note, by, seen: Some(&seen) };
        decisions::decide(&project, &id, &decision, &app.holder(), now())?;
        if form.choice == PlanChoice::Fix && form.run == "1" && app.acts {
            commands::start_next(&app, &id)?;
        }
        Ok(to_change(&id))
    })
    .await
}

/// An answer to the question of an agent, as the form sends it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnswerForm {
    /// Which of the answers that the agent suggests.
    choice: Option<usize>,
    text: String,
    /// Whether to go on right away; only where commands can be started.
    run: String,
}

pub(super) async fn answer(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Form(form): Form<AnswerForm>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    blocking(move || {
        let (project, person) = (app.home_of(&id), &app.person);
        let snapshot = project.change(&id)?.snapshot()?;
        let asked = snapshot.state()?.open_question().map(|question| &question.asked);
        let picked = asked.zip(form.choice).and_then(|(asked, at)| asked.choices.get(at));
        let words = [picked.map(ToString::to_string), Some(form.text.trim().to_owned())];
        let words: Vec<String> =
            words.into_iter().flatten().filter(|text| !text.is_empty()).collect();
        let text = words.join(". ");
        let answer = NewAnswer { text: &text, by: person, seen: None };
        decisions::answer(&project, &id, &answer, &app.holder(), now())?;
        if form.run == "1" && app.acts {
            commands::start_next(&app, &id)?;
        }
        Ok(to_change(&id))
    })
    .await
}

/// What is to be different.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReviseForm {
    note: String,
}

pub(super) async fn revise(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Sent(form): Sent<ReviseForm>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    blocking(move || {
        let (project, holder) = (app.home_of(&id), app.holder());
        // Nobody may be implementing what is about to change.
        let _run = project.try_run_lock(&id, &holder).map_err(|error| Problem::refused(&error))?;
        decisions::revise(&project, &id, &form.note, &app.person, &holder, now())?;
        Ok(to_change(&id))
    })
    .await
}

/// A text as the editor sends it.
#[derive(Debug, Deserialize)]
pub(super) struct EditForm {
    on: String,
    #[serde(default)]
    at: String,
    #[serde(default)]
    seen: String,
    text: String,
}

impl EditForm {
    /// The document and its part.
    fn place(&self) -> Result<(ChangeFile, Anchor), Problem> {
        let file = RelPath::new(&self.on).ok().and_then(|path| ChangeFile::from_path(&path));
        let Ok(at) = self.at.parse::<Anchor>();
        file.map(|file| (file, at)).ok_or_else(Problem::not_found)
    }
}

pub(super) async fn edit(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Sent(form): Sent<EditForm>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    blocking(move || {
        let (file, at) = form.place()?;
        let seen = shown_to_person(&form.seen)?;
        let edit = DocumentEdit { file: &file, at: &at, seen: &seen, text: &form.text };
        let project = app.home_of(&id);
        tools::edit_document(&project, &id, &edit, &app.person, &app.holder(), now())?;
        let subject = Subject::load(&app.project, ChangeRef::Open(id))?;
        Ok(Redirect::to(&subject.document_address(&file)).into_response())
    })
    .await
}

/// What is wrong with a text that is being typed. Nothing is written.
pub(super) async fn check(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Sent(form): Sent<EditForm>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    let found = blocking(move || {
        let (file, at) = form.place()?;
        let project = app.project.home_of(&id);
        let snapshot = project.change(&id)?.snapshot()?;
        let found = tools::check_edit(&project, &snapshot, &file, &at, &form.text)?;
        Ok(visible(pages::edit_findings(&found)))
    })
    .await?;
    Ok(Html(found).into_response())
}
