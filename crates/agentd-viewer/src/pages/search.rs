//! Words in all documents, findings and transcripts.

use agentd_core::ids::ChangeId;
use agentd_core::layout::{ArchiveName, ChangeFile};
use agentd_core::text::counted;
use agentd_engine::insight::search::{self, Found, Hit, HitPart, HitPlace, Scope};
use maud::{Markup, html};

use super::review::issue_anchor;
use crate::App;
use crate::html::{Page, query_value};
use crate::problem::Problem;

pub(crate) fn search(app: &App, query: &str, scope: &str) -> Result<Markup, Problem> {
    let in_runs = scope == "runs";
    let scope = if in_runs { Scope::Runs } else { Scope::Documents };
    let found = search::search(&app.project, query, scope, &app.redactor)?;
    let address = |name: &str| format!("/search?q={}&in={name}", query_value(query));
    let body = html! {
        h1 { "Search" }
        form.filters action="/search" role="search" aria-label="Words" {
            label {
                span.visually-hidden { "Words" }
                input #filter type="search" name="q" value=(query) autofocus[query.is_empty()]
                    placeholder="Words in documents, findings, transcripts" autocomplete="off";
            }
            button.small { "Search" }
            span.switch role="group" aria-label="Where" {
                a href=(address("documents")) aria-current=[(!in_runs).then_some("true")] { "Documents and findings" }
                a href=(address("runs")) aria-current=[in_runs.then_some("true")] { "Transcripts" }
            }
        }
        @if !query.trim().is_empty() { (results(&found, query)) }
    };
    let crumbs = [("Search", "/search".to_owned())];
    Ok(Page { app, title: "Search", crumbs: &crumbs, follow: None, body }.render())
}

fn results(found: &Found, query: &str) -> Markup {
    html! {
        @if found.hits.is_empty() {
            p.empty role="status" { "Nothing found." }
        } @else {
            p.quiet role="status" {
                (counted(found.hits.len(), "place"))
                @if found.is_cut { "; there may be more" }
            }
        }
        ol.hits {
            @for of_one in found.hits.chunk_by(|one, next| source(one) == source(next)) {
                li {
                    @if let Some(first) = of_one.first() { strong { (source(first)) } }
                    @for hit in of_one {
                        @let (address, place) = target(hit);
                        p {
                            a href=(address) data-stop { (place) }
                            " " (marked(&hit.text, query))
                        }
                    }
                }
            }
        }
    }
}

/// What a place is in.
fn source(hit: &Hit) -> String {
    match &hit.place {
        HitPlace::MainSpec(id) => format!("main spec {id}"),
        HitPlace::Document { change, file, .. } => format!("{change} · {}", file.path()),
        HitPlace::Run { change, run, .. } => {
            format!("{change} · run {} {}", run.number(), run.step())
        }
    }
}

/// Where a place is shown, and what it is called there.
fn target(hit: &Hit) -> (String, String) {
    match &hit.place {
        HitPlace::MainSpec(id) => (format!("/specs/{id}"), format!("line {}", hit.line)),
        HitPlace::Document { change, archived, file, part } => {
            let base = base(change, archived.as_ref());
            let address = match file {
                _ if *part == HitPart::Review => format!("{base}/review?show=all"),
                _ if let HitPart::Issue(number) = part => {
                    format!("{base}/review?show=all#{}", issue_anchor(file, *number))
                }
                ChangeFile::Comments => format!("{base}/comments"),
                ChangeFile::Spec(id) => format!("{base}/specs/{id}?view=source#L{}", hit.line),
                ChangeFile::Tasks => format!("{base}/tasks?view=source#L{}", hit.line),
                ChangeFile::Clarifications => {
                    format!("{base}/clarifications?view=source#L{}", hit.line)
                }
                _ => format!("{base}/proposal?view=source#L{}", hit.line),
            };
            let kind = match part {
                HitPart::Text => format!("line {}", hit.line),
                HitPart::Review => "review".to_owned(),
                HitPart::Issue(number) => format!("finding I{number}"),
            };
            (address, kind)
        }
        HitPlace::Run { change, archived, run } => {
            let base = base(change, archived.as_ref());
            (format!("{base}/runs/{run}"), "transcript".to_owned())
        }
    }
}

fn base(change: &ChangeId, archived: Option<&ArchiveName>) -> String {
    match archived {
        Some(name) => format!("/archive/{name}"),
        None => format!("/changes/{change}"),
    }
}

/// A text with the words marked.
fn marked(text: &str, query: &str) -> Markup {
    let lower = text.to_ascii_lowercase();
    let mut marks: Vec<(usize, usize)> = Vec::new();
    for word in query.split_whitespace() {
        let word = word.to_ascii_lowercase();
        marks.extend(lower.match_indices(&word).map(|(at, found)| (at, at + found.len())));
    }
    marks.sort_unstable_by_key(|(from, to)| (*from, std::cmp::Reverse(*to)));
    let mut at = 0;
    html! {
        @for (from, to) in marks {
            @if from >= at && let (Some(before), Some(word)) = (text.get(at..from), text.get(from..to)) {
                (before) mark { (word) }
                ({ at = to; html! {} })
            }
        }
        (text.get(at..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_marked() {
        let shown = marked("A Session <b> ends", "session end s").into_string();
        assert_eq!(shown, "A <mark>Session</mark> &lt;b&gt; <mark>end</mark><mark>s</mark>");
    }
}
