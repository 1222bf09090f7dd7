//! Who may ask: every request passes through here before anything of the project is read.
//!
//! Any web page can make a browser send requests to 127.0.0.1. So a request counts only if it
//! was sent to our own name (`Host`, against DNS rebinding), comes from our own page if it says
//! where it comes from (`Origin`), and has the token of this viewer, which only the person who
//! started it has seen. Requests that change something need all three.

use std::io;
use std::sync::Arc;

use agentd_core::hash::hex;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use subtle::ConstantTimeEq as _;

use super::{App, problem};

/// The policy of every page: only our own files, and diagrams as images. No page has inline
/// scripts or styles, so neither is allowed.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src data:; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

/// What lets a person in.
#[derive(Debug, Clone)]
pub(super) struct Token(String);

impl Token {
    /// A token that nobody can guess: 256 random bits.
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(hex(&bytes)))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time, so that nobody can learn the token piece by piece.
    fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// Lets a request through, or answers it without showing anything of the project.
pub(super) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = match admit(&app, &request) {
        Admitted::Yes => next.run(request).await,
        Admitted::Enter(to) => enter(&app, &to),
        Admitted::No(status, why) => {
            let mut response = problem::refused(status, why).into_response();
            // There are few connections, and strangers may not keep one.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            response
        }
    };
    let headers = response.headers_mut();
    let mut default = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    default(header::CONTENT_SECURITY_POLICY, PAGE_POLICY);
    default(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // Not `no-referrer`: with it browsers send `Origin: null` with our own forms.
    default(header::REFERRER_POLICY, "same-origin");
    default(header::CACHE_CONTROL, "no-store");
    default(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    default(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    response
}

enum Admitted {
    Yes,
    /// The token is right: it becomes a cookie, and the address loses it.
    Enter(String),
    No(StatusCode, &'static str),
}

fn admit(app: &App, request: &Request) -> Admitted {
    let headers = request.headers();
    let (method, uri) = (request.method(), request.uri());
    let writes = method == Method::POST;
    if !writes && method != Method::GET && method != Method::HEAD {
        return Admitted::No(StatusCode::METHOD_NOT_ALLOWED, "Only GET and POST are answered.");
    }
    let Some(host) = single(headers, &header::HOST).filter(|host| app.is_our_host(host)) else {
        return Admitted::No(
            StatusCode::MISDIRECTED_REQUEST,
            "This is not the address of the viewer.",
        );
    };
    // An absolute request target must name the same host.
    if uri.authority().is_some_and(|authority| authority.as_str() != host) {
        return Admitted::No(
            StatusCode::MISDIRECTED_REQUEST,
            "This is not the address of the viewer.",
        );
    }
    let foreign = "Requests from other sites are refused.";
    let from_us = match (headers.get(header::ORIGIN), single(headers, &header::ORIGIN)) {
        (None, _) => None,
        (Some(_), Some(origin)) => Some(origin.strip_prefix("http://") == Some(host)),
        (Some(_), None) => Some(false),
    };
    // The program's own files hold nothing of the project, and the diagram frame has no origin
    // (browsers send "null") and so no cookie.
    if !writes && uri.path().starts_with("/assets/") {
        let no_origin = headers.get(header::ORIGIN).is_some_and(|origin| origin == "null");
        if from_us != Some(false) || no_origin {
            return Admitted::Yes;
        }
    }
    if from_us == Some(false) {
        return Admitted::No(StatusCode::FORBIDDEN, foreign);
    }
    if !writes && let Some((given, rest)) = token_in(uri) {
        if app.token.is(&given) {
            return Admitted::Enter(rest);
        }
        return Admitted::No(StatusCode::UNAUTHORIZED, "The token in this address is wrong.");
    }
    if !cookies(headers, &app.cookie_name()).any(|given| app.token.is(given)) {
        return Admitted::No(
            StatusCode::UNAUTHORIZED,
            "Open the address that `agentd view` printed, including the token.",
        );
    }
    if writes && from_us != Some(true) {
        return Admitted::No(StatusCode::FORBIDDEN, foreign);
    }
    Admitted::Yes
}

/// The value of a header; none if there are several, or if it is not text.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The token in the query, and the address without it.
fn token_in(uri: &Uri) -> Option<(String, String)> {
    let query = uri.query()?;
    let token = query.split('&').find_map(|pair| pair.strip_prefix("token="))?;
    let rest: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("token=")).collect();
    let mut to = uri.path().to_owned();
    if !rest.is_empty() {
        to.push('?');
        to.push_str(&rest.join("&"));
    }
    // `//elsewhere` would lead to another host.
    if to.starts_with("//") || to.contains('\\') {
        "/".clone_into(&mut to);
    }
    Some((token.to_owned(), to))
}

fn cookies<'h>(headers: &'h HeaderMap, name: &'h str) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs =
        lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(key, _)| *key == name).map(|(_, value)| value)
}

/// Swaps the token in the address for a cookie that no script can read.
fn enter(app: &App, to: &str) -> Response {
    let cookie =
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", app.cookie_name(), app.token.as_str());
    (StatusCode::SEE_OTHER, [(header::LOCATION, to), (header::SET_COOKIE, &cookie)]).into_response()
}
