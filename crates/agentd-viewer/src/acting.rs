//! What a person can do on a page: comment, resolve a comment, decide. Each calls the same
//! engine function as the command line, and shows the page again afterwards.

use std::sync::Arc;

use agentd_core::document::comments::Anchor;
use agentd_core::layout::ChangeFile;
use agentd_core::rel_path::RelPath;
use agentd_core::stamp::Stamp;
use agentd_engine::change::comments::{self, Fate, NewComment};
use agentd_engine::workflow::decisions::{self, PlanChoice};
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use jiff::Timestamp;
use serde::Deserialize;

use super::App;
use super::problem::Problem;
use super::routes::{blocking, open};

fn now() -> Stamp {
    Stamp::new(Timestamp::now())
}

/// The page to show next: one of the change itself, whatever the form says.
fn back(base: &str, requested: &str) -> Response {
    let inside = requested
        .strip_prefix(base)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']));
    let plain = requested.chars().all(|c| c.is_ascii_graphic() && c != '\\');
    let to = if inside && plain { requested } else { base };
    Redirect::to(to).into_response()
}

/// A comment as the form sends it.
#[derive(Debug, Deserialize)]
pub(super) struct CommentForm {
    on: String,
    #[serde(default)]
    at: String,
    text: String,
    #[serde(default)]
    back: String,
}

pub(super) async fn comment(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Form(form): Form<CommentForm>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    let base = format!("/changes/{id}");
    let requested = form.back.clone();
    blocking(move || {
        let file = RelPath::new(&form.on).ok().and_then(|path| ChangeFile::from_path(&path));
        let file = file.filter(is_document).ok_or_else(|| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                "Only the documents of a change can be commented on.",
            )
        })?;
        let Ok(at) = form.at.parse::<Anchor>();
        let new = NewComment { on: &file, at, by: &app.person, text: &form.text };
        Ok(comments::add(&app.home_of(&id), &id, &new, &app.holder(), now())?)
    })
    .await?;
    Ok(back(&base, &requested))
}

/// Whether it is a document that people read and may comment on.
fn is_document(file: &ChangeFile) -> bool {
    use ChangeFile::{Clarifications, Proposal, Review, Spec, Tasks};
    matches!(file, Proposal | Spec(_) | Tasks | Clarifications | Review)
}

/// Whether to resolve a comment or to open it again.
#[derive(Debug, Deserialize)]
pub(super) struct SettleForm {
    fate: FateName,
    #[serde(default)]
    back: String,
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
    Form(form): Form<SettleForm>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    let base = format!("/changes/{id}");
    let requested = form.back.clone();
    blocking(move || {
        let fate = match form.fate {
            FateName::Resolved => Fate::Resolved,
            FateName::Open => Fate::Open,
        };
        let (project, person) = (app.home_of(&id), &app.person);
        Ok(comments::settle(&project, &id, number, fate, person, &app.holder(), now())?)
    })
    .await?;
    Ok(back(&base, &requested))
}

/// A decision as the form sends it.
#[derive(Debug, Deserialize)]
pub(super) struct DecideForm {
    choice: PlanChoice,
    #[serde(default)]
    note: String,
}

pub(super) async fn decide(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Form(form): Form<DecideForm>,
) -> Result<Response, Problem> {
    let id = open(&id)?;
    let base = format!("/changes/{id}");
    blocking(move || {
        let (project, person) = (app.home_of(&id), &app.person);
        Ok(decisions::decide(&project, &id, form.choice, &form.note, person, &app.holder(), now())?)
    })
    .await?;
    Ok(back(&base, &base))
}
