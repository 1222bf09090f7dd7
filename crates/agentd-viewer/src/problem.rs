//! Pages that say why there is no other page.

use agentd_engine::change::comments::CommentError;
use agentd_engine::change::documents::DocumentError;
use agentd_engine::explain::{ErrorReport, Explain as _};
use agentd_engine::store::StoreError;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};

use super::html::{bare_page, esc};

/// Why a page cannot be shown, or something not be done.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    message: String,
    hints: Vec<String>,
}

impl Problem {
    /// There is no such page.
    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "There is no such page.")
    }

    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hints: Vec::new() }
    }

    /// An error, with its cause and what to do about it.
    fn failed(error: ErrorReport) -> Self {
        let message = match error.cause {
            Some(cause) => format!("{}: {cause}", error.message),
            None => error.message,
        };
        let hints = error.hints.iter().map(ToString::to_string).collect();
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, message, hints }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        if error.is_not_found() || matches!(error, StoreError::NoSuchChange { .. }) {
            return Self::not_found();
        }
        Self::failed(error.explain())
    }
}

impl From<DocumentError> for Problem {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Store(error) => error.into(),
            DocumentError::Lock(_) | DocumentError::Refused(_) => {
                Self { status: StatusCode::CONFLICT, ..Self::failed(error.explain()) }
            }
            DocumentError::State { .. }
            | DocumentError::NoState { .. }
            | DocumentError::Config(_) => Self::failed(error.explain()),
        }
    }
}

impl From<CommentError> for Problem {
    fn from(error: CommentError) -> Self {
        let message = error.to_string();
        match error {
            CommentError::Document(error) => error.into(),
            CommentError::Empty => Self::new(StatusCode::BAD_REQUEST, message),
            CommentError::NoSuchDocument { .. } | CommentError::NoSuchComment { .. } => {
                Self::new(StatusCode::NOT_FOUND, message)
            }
            CommentError::TooMany { .. } => Self::new(StatusCode::CONFLICT, message),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body =
            format!("<h1>{}</h1><p>{}</p>", esc(reason(self.status)), esc(&self.message));
        for hint in &self.hints {
            body.push_str(&format!("<p class=\"hint\">{}</p>", esc(hint)));
        }
        body.push_str("<p><a href=\"/\">All changes</a></p>");
        (self.status, Html(bare_page(reason(self.status), &body))).into_response()
    }
}

/// The page for those who were not let in: nothing of the project is in it.
pub(super) fn refused(status: StatusCode, why: &str) -> impl IntoResponse {
    let body = format!("<h1>{}</h1><p>{}</p>", esc(reason(status)), esc(why));
    (status, Html(bare_page("agentd", &body)))
}

fn reason(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::UNAUTHORIZED => "Not signed in",
        StatusCode::CONFLICT => "That is not possible now",
        StatusCode::INTERNAL_SERVER_ERROR => "That went wrong",
        other => other.canonical_reason().unwrap_or("Refused"),
    }
}
