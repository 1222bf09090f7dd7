//! Which address shows what. Ids in addresses are validated here; otherwise there is no such page.

use std::sync::Arc;

use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{ArchiveName, ChangeFile, RunName};
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::middleware;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use maud::Markup;
use serde::{Deserialize, Deserializer};

use super::board::Board;
use super::export::{self, Format};
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
        .route("/attention", get(attention))
        .route("/new", get(new_change).post(acting::commands::begin))
        .route("/search", get(search))
        .route("/costs", get(costs))
        .route("/specs", get(specs))
        .route("/specs/{id}", get(main_spec))
        .route("/changes/{id}", get(first_page))
        .route("/changes/{id}/{page}", get(page))
        .route("/changes/{id}/{kind}/{name}", get(part))
        .route("/changes/{id}/live", get(follow))
        .route("/changes/{id}/comments", get(comments).post(acting::comment))
        .route("/changes/{id}/comments/{number}", post(acting::settle))
        .route("/changes/{id}/comments/{number}/{action}", post(acting::own_comment))
        .route("/changes/{id}/decide", post(acting::decide))
        .route("/changes/{id}/answer", post(acting::answer))
        .route("/changes/{id}/revise", post(acting::revise))
        .route("/changes/{id}/edit", post(acting::edit))
        .route("/changes/{id}/check", post(acting::check))
        .route("/changes/{id}/answers", post(acting::commands::answer))
        .route("/changes/{id}/run", post(acting::commands::run))
        .route("/changes/{id}/stop", post(acting::commands::stop))
        .route("/archive", get(archive))
        .route("/archive/{id}", get(archived_first_page))
        .route("/archive/{id}/{page}", get(archived_page))
        .route("/archive/{id}/{kind}/{name}", get(archived_part))
        .route("/diagrams", get(diagrams))
        .route("/assets/{version}/{name}", get(asset))
        .fallback(|| async { Problem::not_found() })
        .layer(middleware::from_fn(acting::for_scripts))
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

async fn home(State(app): State<Arc<App>>, Query(query): Query<pages::ListQuery>) -> Answer {
    html(move || pages::home(&app, &query)).await
}

/// Words, and where to look for them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Words {
    q: String,
    #[serde(rename = "in")]
    scope: String,
    month: String,
    history: String,
}

async fn search(State(app): State<Arc<App>>, Query(words): Query<Words>) -> Answer {
    html(move || pages::search(&app, &words.q, &words.scope)).await
}

async fn costs(State(app): State<Arc<App>>, Query(words): Query<Words>) -> Answer {
    html(move || pages::costs(&app, &words.month)).await
}

async fn specs(State(app): State<Arc<App>>) -> Answer {
    html(move || pages::specs(&app)).await
}

async fn main_spec(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(words): Query<Words>,
) -> Answer {
    let id = SpecId::new(&id).map_err(|_| Problem::not_found())?;
    html(move || pages::main_spec(&app, &id, &words.history)).await
}

async fn archive(State(app): State<Arc<App>>, Query(words): Query<Words>) -> Answer {
    html(move || pages::archive(&app, &words.q)).await
}

async fn new_change(State(app): State<Arc<App>>) -> Answer {
    html(move || pages::new_change(&app)).await
}

/// What wants the attention of a person.
async fn attention(State(app): State<Arc<App>>) -> Answer {
    let found = blocking(move || Ok(Board::load(&app)?.attention().to_string())).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], found).into_response())
}

async fn first_page(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(view): Query<View>,
) -> Answer {
    page_of(app, ChangeRef::Open(open(&id)?), String::new(), view).await
}

async fn archived_first_page(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Query(view): Query<View>,
) -> Answer {
    page_of(app, archived(&name)?, String::new(), view).await
}

/// How a document is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As it reads.
    Read,
    /// The text with its lines.
    Source,
    /// What has changed since a round.
    Changes,
    /// What it does to the main spec.
    MainSpec,
    /// To be edited.
    Edit,
}

/// What an address says about how a page is to be shown. What it cannot mean is ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct View {
    #[serde(rename = "view")]
    form: String,
    /// The round from which changes are shown.
    #[serde(deserialize_with = "number")]
    pub(super) from: Option<u32>,
    /// The round up to which they are shown; the current plan if there is none.
    #[serde(deserialize_with = "number")]
    pub(super) to: Option<u32>,
    /// The document or file that something is about.
    pub(super) on: String,
    /// The part of it.
    pub(super) at: String,
    /// How files are grouped.
    pub(super) by: String,
    /// Which findings are shown.
    pub(super) show: String,
    /// Whether they are about plan or code.
    pub(super) of: String,
}

/// A number; anything else is none.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    Ok(String::deserialize(from)?.parse().ok())
}

impl View {
    pub(super) fn form(&self) -> Form {
        match self.form.as_str() {
            "source" => Form::Source,
            "changes" => Form::Changes,
            "main" => Form::MainSpec,
            "edit" => Form::Edit,
            _ => Form::Read,
        }
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

async fn comments(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(view): Query<View>,
) -> Answer {
    page_of(app, ChangeRef::Open(open(&id)?), "comments".to_owned(), view).await
}

async fn page_of(app: Arc<App>, which: ChangeRef, page: String, view: View) -> Answer {
    let answer = page_where_it_is(&app, which.clone(), page, view).await;
    or_archived(&app, &which, answer).await
}

async fn page_where_it_is(app: &Arc<App>, which: ChangeRef, page: String, view: View) -> Answer {
    let app = Arc::clone(app);
    let format = match page.as_str() {
        "export.html" => Some(Format::Html),
        "export.md" => Some(Format::Markdown),
        _ => None,
    };
    if let Some(format) = format {
        return exported(app, which, format).await;
    }
    html(move || {
        let subject = Subject::load(&app.project, which)?;
        let document = |file| pages::document(&app, &subject, &file, &view);
        match page.as_str() {
            "" if !subject.documents().has(&ChangeFile::Proposal) => {
                Ok(pages::no_proposal(&app, &subject))
            }
            "" | "proposal" => document(ChangeFile::Proposal),
            "clarifications" => document(ChangeFile::Clarifications),
            "tasks" if view.form() == Form::Read => pages::tasks(&app, &subject, &view),
            "tasks" => document(ChangeFile::Tasks),
            "review" => Ok(pages::review(&app, &subject, &view)),
            "code" => Ok(pages::code(&app, &subject, &view)),
            "runs" => pages::runs(&app, &subject),
            "comments" => Ok(pages::comments_page(&app, &subject, &view)),
            "archive" => pages::archive_preview(&app, &subject),
            _ => Err(Problem::not_found()),
        }
    })
    .await
}

/// An answer; or the way to where the change is by now, if it was archived before or while its
/// page was made.
async fn or_archived(app: &Arc<App>, which: &ChangeRef, answer: Answer) -> Answer {
    match answer {
        Err(problem) if problem.is_not_found() => match archived_since(app, which).await? {
            Some(name) => Ok(Redirect::to(&format!("/archive/{name}")).into_response()),
            None => Err(problem),
        },
        answer => answer,
    }
}

/// Where a change is now that is not open anymore: its address leads there.
async fn archived_since(app: &Arc<App>, which: &ChangeRef) -> Result<Option<ArchiveName>, Problem> {
    let ChangeRef::Open(id) = which else { return Ok(None) };
    let (app, id) = (Arc::clone(app), id.clone());
    blocking(move || {
        if app.project.home_of(&id).change_if_open(&id)?.is_some() {
            return Ok(None);
        }
        let archived = app.project.archived_everywhere()?.into_iter().rev();
        Ok(archived.map(|(name, _)| name).find(|name| name.change == id))
    })
    .await
}

/// A change as one file, to be kept by the browser.
async fn exported(app: Arc<App>, which: ChangeRef, format: Format) -> Answer {
    let (name, text) = blocking(move || {
        let subject = Subject::load(&app.project, which)?.for_others();
        let name = format!("{}.{}", subject.id(), format.extension());
        Ok((name, export::text(&subject, format)))
    })
    .await?;
    let how = match format {
        Format::Html => format!("attachment; filename=\"{name}\""),
        Format::Markdown => format!("inline; filename=\"{name}\""),
    };
    let headers = [
        (header::CONTENT_TYPE, format.media_type().to_owned()),
        (header::CONTENT_DISPOSITION, how),
    ];
    Ok((headers, text).into_response())
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
    let (here, change) = (Arc::clone(&app), which.clone());
    let answer = html(move || match kind.as_str() {
        "specs" => {
            let spec = SpecId::new(&name).map_err(|_| Problem::not_found())?;
            let subject = Subject::load(&here.project, change)?;
            pages::document(&here, &subject, &ChangeFile::Spec(spec), &view)
        }
        "runs" => {
            let run: RunName = name.parse().map_err(|_| Problem::not_found())?;
            pages::run(&here, &Subject::load(&here.project, change)?, &run)
        }
        _ => Err(Problem::not_found()),
    })
    .await;
    or_archived(&app, &which, answer).await
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
    let (projects, change) = blocking(move || {
        let home = app.project.home_of(&id);
        let change = home.change_if_open(&id)?;
        Ok(([app.project.clone(), home], change))
    })
    .await?;
    Ok(match change {
        Some(change) => live::change(projects, change, position, redactor).into_response(),
        // It was still there when the page was made.
        None => live::gone().into_response(),
    })
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
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let ours = format!("127.0.0.1:{}", app.port);
    assets::diagram_frame(&format!("http://{}", host.unwrap_or(&ours)))
}

async fn asset(Path((_, name)): Path<(String, String)>) -> Answer {
    assets::serve(&name)
}
