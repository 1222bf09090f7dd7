//! The files that are built into the program: style sheet, scripts, Mermaid.

use std::sync::OnceLock;

use agentd_core::hash::Digest;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse as _, Response};
use maud::{DOCTYPE, html};

use super::problem::Problem;

/// A file and the address under which it is served.
pub(super) struct Asset {
    name: &'static str,
    media_type: &'static str,
    /// Whether the bytes are compressed; the browser unpacks them.
    gzip: bool,
    bytes: &'static [u8],
    address: OnceLock<String>,
}

impl Asset {
    /// Its text, for a page that has to hold it.
    pub(super) fn text(&self) -> &'static str {
        std::str::from_utf8(self.bytes).unwrap_or_default()
    }

    /// The address changes with the content, so browsers may keep the file forever.
    pub(super) fn address(&self) -> &str {
        self.address
            .get_or_init(|| format!("/assets/{}/{}", Digest::of(self.bytes).short(), self.name))
    }
}

macro_rules! asset {
    ($name:literal, $file:literal, $media:literal, gzip: $gzip:literal) => {
        Asset {
            name: $name,
            media_type: $media,
            gzip: $gzip,
            bytes: include_bytes!(concat!("../assets/", $file)),
            address: OnceLock::new(),
        }
    };
}

pub(super) static CSS: Asset =
    asset!("viewer.css", "viewer.css", "text/css; charset=utf-8", gzip: false);
pub(super) static JS: Asset =
    asset!("viewer.js", "viewer.js", "text/javascript; charset=utf-8", gzip: false);
pub(super) static THEME_JS: Asset =
    asset!("theme.js", "theme.js", "text/javascript; charset=utf-8", gzip: false);
static DIAGRAM_JS: Asset =
    asset!("diagram.js", "diagram.js", "text/javascript; charset=utf-8", gzip: false);
static MERMAID: Asset =
    asset!("mermaid.js", "mermaid.min.js.gz", "text/javascript; charset=utf-8", gzip: true);

static ALL: [&Asset; 5] = [&CSS, &JS, &THEME_JS, &DIAGRAM_JS, &MERMAID];

/// Answers a request for a file.
pub(super) fn serve(name: &str) -> Result<Response, Problem> {
    let asset = ALL.iter().find(|asset| asset.name == name).ok_or_else(Problem::not_found)?;
    let mut response = (
        [
            (header::CONTENT_TYPE, asset.media_type),
            (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
            // The diagram frame has no origin of its own and must be able to load this.
            (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
        ],
        asset.bytes,
    )
        .into_response();
    if asset.gzip {
        let gzip = axum::http::HeaderValue::from_static("gzip");
        response.headers_mut().insert(header::CONTENT_ENCODING, gzip);
    }
    Ok(response)
}

/// The frame in which Mermaid draws.
///
/// Mermaid writes its own inline styles, which no page of ours allows, and it works on text
/// by agents. So it runs in a frame without an origin: no cookie, no access to the page, no
/// requests except for its own two files. The drawing comes out as text, and the page shows
/// it as an image, in which nothing runs.
pub(super) fn diagram_frame(origin: &str) -> Response {
    let (mermaid, script) = (MERMAID.address(), DIAGRAM_JS.address());
    let policy = format!(
        "default-src 'none'; script-src {origin}{mermaid} {origin}{script}; \
         style-src 'unsafe-inline'; frame-ancestors {origin}; base-uri 'none'; \
         form-action 'none'; sandbox allow-scripts"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "Diagrams" }
                script src=(mermaid) {}
                script src=(script) {}
            }
            body {}
        }
    };
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy),
    ];
    (headers, page.into_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bar of issue 21: at most 1.3 MB as stored in the binary.
    #[test]
    fn the_embedded_files_are_small() {
        let size: usize = ALL.iter().map(|asset| asset.bytes.len()).sum();
        assert!(size < 1_300_000, "{size}");
    }

    #[test]
    fn mermaid_is_the_file_that_was_recorded() {
        let recorded = include_str!("../assets/THIRD_PARTY.md");
        let digest = Digest::of(MERMAID.bytes).to_string();
        assert!(recorded.contains(&digest), "{digest}");
    }
}
