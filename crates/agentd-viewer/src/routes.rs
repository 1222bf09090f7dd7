//! Which address shows what. Ids in addresses are validated here; otherwise there is no such page.

use std::sync::Arc;

use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{ArchiveName, ChangeFile, RunName};
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::middleware;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use maud::Markup;
use serde::Deserialize;

use super::html::visible;
use super::live::{self, Position};
use super::problem::Problem;
use super::subject::{ChangeRef, Subject};
use super::{App, acting, assets, guard, pages};

type Answer = Result<Response, Problem>;

pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(home))
        .route("/live", get(follow_board))
        .route("/changes/{id}", get(overview))
        .route("/changes/{id}/{page}", get(page))
        .route("/changes/{id}/{kind}/{name}", get(part))
        .route("/changes/{id}/live", get(follow))
        .route("/changes/{id}/comments", get(comments).post(acting::comment))
        .route("/changes/{id}/comments/{number}", post(acting::settle))
        .route("/changes/{id}/decide", post(acting::decide))
        .route("/archive/{id}", get(archived_overview))
        .route("/archive/{id}/{page}", get(archived_page))
        .route("/archive/{id}/{kind}/{name}", get(archived_part))
        .route("/specs/{id}", get(main_spec))
        .route("/diagrams", get(diagrams))
        .route("/assets/{version}/{name}", get(asset))
        .fallback(|| async { Problem::not_found() })
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::guard))
        .with_state(app)
}

/// Runs what reads the disk on a thread where it does not hold up other requests.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Problem::new(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            format!("The page could not be rendered: {error}"),
        )),
    }
}

async fn html(work: impl FnOnce() -> Result<Markup, Problem> + Send + 'static) -> Answer {
    let page = blocking(move || Ok(visible(work()?))).await?;
    Ok(Html(page).into_response())
}

/// An open change, from an address.
pub(super) fn open(id: &str) -> Result<ChangeId, Problem> {
    ChangeId::new(id).map_err(|_| Problem::not_found())
}

fn archived(name: &str) -> Result<ChangeRef, Problem> {
    name.parse::<ArchiveName>().map(ChangeRef::Archived).map_err(|_| Problem::not_found())
}

async fn home(State(app): State<Arc<App>>) -> Answer {
    html(move || pages::home(&app)).await
}

async fn overview(State(app): State<Arc<App>>, Path(id): Path<String>) -> Answer {
    let which = ChangeRef::Open(open(&id)?);
    html(move || pages::overview(&app, &Subject::load(&app.project, which)?)).await
}

async fn archived_overview(State(app): State<Arc<App>>, Path(name): Path<String>) -> Answer {
    let which = archived(&name)?;
    html(move || pages::overview(&app, &Subject::load(&app.project, which)?)).await
}

/// How a page is to be shown.
#[derive(Debug, Default, Deserialize)]
pub(super) struct View {
    /// The form: `source` for the text with its lines.
    #[serde(default, rename = "view")]
    form: String,
    /// The round from which changes are shown.
    pub(super) from: Option<u32>,
    /// The round up to which they are shown; the current plan if there is none.
    pub(super) to: Option<u32>,
}

impl View {
    /// Whether to show the text itself, with its lines.
    pub(super) fn is_source(&self) -> bool {
        self.form == "source"
    }
}

async fn page(
    State(app): State<Arc<App>>,
    Path((id, page)): Path<(String, String)>,
    Query(view): Query<View>,
) -> Answer {
    page_of(app, ChangeRef::Open(open(&id)?), page, view).await
}

async fn archived_page(
    State(app): State<Arc<App>>,
    Path((name, page)): Path<(String, String)>,
    Query(view): Query<View>,
) -> Answer {
    page_of(app, archived(&name)?, page, view).await
}

async fn comments(State(app): State<Arc<App>>, Path(id): Path<String>) -> Answer {
    page_of(app, ChangeRef::Open(open(&id)?), "comments".to_owned(), View::default()).await
}

async fn page_of(app: Arc<App>, which: ChangeRef, page: String, view: View) -> Answer {
    html(move || {
        let load = || Subject::load(&app.project, which);
        match page.as_str() {
            "proposal" => pages::document(&app, &load()?, &ChangeFile::Proposal, &view),
            "clarifications" => pages::document(&app, &load()?, &ChangeFile::Clarifications, &view),
            "code-review" => pages::document(&app, &load()?, &ChangeFile::Review, &view),
            "tasks" if view.is_source() => {
                pages::document(&app, &load()?, &ChangeFile::Tasks, &view)
            }
            "tasks" => pages::tasks(&app, &load()?),
            "reviews" => Ok(pages::reviews(&app, &load()?)),
            "changes" => pages::plan_changes(&app, &load()?, &view),
            "trace" => Ok(pages::trace(&app, &load()?)),
            "runs" => pages::runs(&app, &load()?),
            "comments" => Ok(pages::comments_page(&app, &load()?)),
            _ => Err(Problem::not_found()),
        }
    })
    .await
}

async fn part(
    State(app): State<Arc<App>>,
    Path((id, kind, name)): Path<(String, String, String)>,
    Query(view): Query<View>,
) -> Answer {
    part_of(app, ChangeRef::Open(open(&id)?), kind, name, view).await
}

async fn archived_part(
    State(app): State<Arc<App>>,
    Path((id, kind, name)): Path<(String, String, String)>,
    Query(view): Query<View>,
) -> Answer {
    part_of(app, archived(&id)?, kind, name, view).await
}

async fn part_of(
    app: Arc<App>,
    which: ChangeRef,
    kind: String,
    name: String,
    view: View,
) -> Answer {
    html(move || match kind.as_str() {
        "specs" => {
            let spec = SpecId::new(&name).map_err(|_| Problem::not_found())?;
            let subject = Subject::load(&app.project, which)?;
            pages::document(&app, &subject, &ChangeFile::Spec(spec), &view)
        }
        "runs" => {
            let run: RunName = name.parse().map_err(|_| Problem::not_found())?;
            pages::run(&app, &Subject::load(&app.project, which)?, &run)
        }
        _ => Err(Problem::not_found()),
    })
    .await
}

async fn main_spec(State(app): State<Arc<App>>, Path(id): Path<String>) -> Answer {
    let id = SpecId::new(&id).map_err(|_| Problem::not_found())?;
    html(move || pages::main_spec(&app, &id)).await
}

#[derive(Debug, Deserialize)]
struct After {
    #[serde(default)]
    after: String,
}

async fn follow(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(after): Query<After>,
    headers: HeaderMap,
) -> Answer {
    let id = open(&id)?;
    let position = Position::parse(last_event(&headers).unwrap_or(&after.after));
    let redactor = app.redactor.clone();
    let change = blocking(move || Ok(app.project.home_of(&id).change(&id)?)).await?;
    Ok(live::change(change, position, redactor).into_response())
}

async fn follow_board(
    State(app): State<Arc<App>>,
    Query(after): Query<After>,
    headers: HeaderMap,
) -> Response {
    let last = last_event(&headers).unwrap_or(&after.after);
    live::board(app, u64::from_str_radix(last, 16).ok()).into_response()
}

/// A browser that reconnects says where it was.
fn last_event(headers: &HeaderMap) -> Option<&str> {
    headers.get("last-event-id").and_then(|value| value.to_str().ok())
}

async fn diagrams(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    // The guard checked that this is one of our own names.
    let host = headers.get(axum::http::header::HOST).and_then(|host| host.to_str().ok());
    let ours = format!("127.0.0.1:{}", app.port);
    assets::diagram_frame(&format!("http://{}", host.unwrap_or(&ours)))
}

async fn asset(Path((_, name)): Path<(String, String)>) -> Answer {
    assets::serve(&name)
}
