//! The page that is shown when another one cannot be.

use agentd_engine::change::comments::CommentError;
use agentd_engine::change::documents::DocumentError;
use agentd_engine::explain::{ErrorReport, Explain};
use agentd_engine::store::StoreError;
use agentd_engine::tools::EditError;
use agentd_engine::workflow::background::{StartError, StopError};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::html;

use super::html::{bare_page, visible};

/// What a [`Problem`] says, for the script of a page.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) message: String,
    pub(super) hints: Vec<String>,
}

/// Why a page cannot be shown, or an action failed.
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

    pub(super) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hints: Vec::new() }
    }

    /// What it says.
    pub(super) fn message(self) -> String {
        self.message
    }

    /// Something that cannot be done now, with its cause and what to do about it.
    pub(super) fn refused(error: &dyn Explain) -> Self {
        Self { status: StatusCode::CONFLICT, ..Self::failed(error.explain()) }
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
            DocumentError::Lock(_)
            | DocumentError::Refused(_)
            | DocumentError::NothingToDecide { .. }
            | DocumentError::OtherRound { .. }
            | DocumentError::NotAskedAnyMore { .. }
            | DocumentError::NothingToSettle { .. }
            | DocumentError::NoState { .. }
            | DocumentError::Journal { .. } => {
                Self { status: StatusCode::CONFLICT, ..Self::failed(error.explain()) }
            }
            DocumentError::State { .. } | DocumentError::Config(_) | DocumentError::Signing(_) => {
                Self::failed(error.explain())
            }
        }
    }
}

impl From<CommentError> for Problem {
    fn from(error: CommentError) -> Self {
        let status = match error {
            CommentError::Document(error) => return error.into(),
            CommentError::Empty => StatusCode::BAD_REQUEST,
            CommentError::NoSuchDocument { .. } | CommentError::NoSuchComment { .. } => {
                StatusCode::NOT_FOUND
            }
            CommentError::TooMany { .. }
            | CommentError::NotYours { .. }
            | CommentError::Answered { .. } => StatusCode::CONFLICT,
        };
        Self { status, ..Self::failed(error.explain()) }
    }
}

impl From<EditError> for Problem {
    fn from(error: EditError) -> Self {
        let status = match &error {
            EditError::NoSuchPart { .. } => StatusCode::NOT_FOUND,
            EditError::Stale { .. } | EditError::Action(_) => StatusCode::CONFLICT,
        };
        Self { status, ..Self::failed(error.explain()) }
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        Self::refused(&error)
    }
}

impl From<StopError> for Problem {
    fn from(error: StopError) -> Self {
        Self::refused(&error)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = reason(self.status);
        let body = html! {
            h1 { (title) }
            p { (self.message) }
            @for hint in &self.hints {
                p.hint { (hint) }
            }
            p { a href="/" { "All changes" } }
        };
        let mut response = (self.status, Html(visible(bare_page(title, &body)))).into_response();
        response.extensions_mut().insert(Said { message: self.message, hints: self.hints });
        response
    }
}

/// The page for anyone who was not let in: it shows nothing of the project.
pub(super) fn refused(status: StatusCode, why: &str) -> impl IntoResponse {
    let body = html! {
        h1 { (reason(status)) }
        p { (why) }
    };
    (status, Html(visible(bare_page("agentd", &body))))
}

fn reason(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::UNAUTHORIZED => "Not signed in",
        StatusCode::CONFLICT => "Not possible now",
        StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::INTERNAL_SERVER_ERROR => "Something went wrong",
        other => other.canonical_reason().unwrap_or("Refused"),
    }
}
