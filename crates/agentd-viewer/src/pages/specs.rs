//! The main specs, what became of their requirements, and the archive.

use agentd_core::document::comments::Anchor;
use agentd_core::document::part::anchor_of;
use agentd_core::ids::{RequirementId, SpecId, SpecRef};
use agentd_core::outline::Outline;
use agentd_core::span::Span;
use agentd_engine::change::documents;
use agentd_engine::change::glance;
use agentd_engine::insight::overlap::Operation;
use agentd_engine::insight::trace::{self, Trace};
use maud::{Markup, html};

use super::document::{contents, readable};
use crate::App;
use crate::html::{Page, count, dollars};
use crate::markdown::{self, headline};
use crate::problem::Problem;

pub(crate) fn specs(app: &App) -> Result<Markup, Problem> {
    let ids = app.project.spec_ids()?.ids;
    let body = html! {
        h1 { "Main specs " (count(ids.len())) }
        @if ids.is_empty() {
            p.empty { "There are no main specs yet. They come from changes that are archived." }
        }
        ul.names { @for id in &ids { li { a href={ "/specs/" (id) } data-stop { (id) } } } }
    };
    let crumbs = [("Specs", "/specs".to_owned())];
    Ok(Page { app, title: "Specs", crumbs: &crumbs, follow: None, body }.render())
}

/// A main spec. With a requirement: what changes have done to it.
pub(crate) fn main_spec(app: &App, id: &SpecId, history: &str) -> Result<Markup, Problem> {
    let spec = documents::load_main_spec(&app.project, id);
    let text = readable(spec.source())?;
    let blocks = markdown::blocks(text, &[Span::new(Outline::scan(text).body_start, text.len())]);
    let wanted: Option<RequirementId> = history.parse().ok();
    let traces = match wanted {
        Some(requirement) => {
            let wanted = SpecRef { spec: id.clone(), requirement: Some(requirement) };
            trace::of_requirement(&app.project, &wanted)?
        }
        None => Vec::new(),
    };
    let body = html! {
        div.tools { code { "agentd/specs/" (id) ".md" } }
        div.reading {
            div.document {
                @for block in &blocks {
                    @if let Some(heading) = &block.heading {
                        div.block.heading.prose id=(heading.anchor) data-stop {
                            @if let Anchor::Requirement(requirement) = anchor_of(&heading.title) {
                                span.anchor id=(requirement) {}
                                (block.html)
                                a.history href={ "/specs/" (id) "?history=" (requirement) "#" (requirement) } {
                                    "History" span.visually-hidden { " of " (requirement) }
                                }
                            } @else {
                                (block.html)
                            }
                        }
                        @if let (Anchor::Requirement(requirement), true) = (anchor_of(&heading.title), wanted.is_some())
                            && Some(requirement) == wanted {
                            div.margin { (requirement_history(&traces)) }
                        }
                    } @else {
                        div.block.prose { (block.html) }
                    }
                }
            }
            (contents(&blocks))
        }
    };
    let crumbs = [("Specs", "/specs".to_owned()), (id.as_str(), format!("/specs/{id}"))];
    Ok(Page { app, title: id.as_str(), crumbs: &crumbs, follow: None, body }.render())
}

/// What changes have done to a requirement, the latest first.
fn requirement_history(traces: &[Trace]) -> Markup {
    html! {
        section.panel {
            h4 { "History" }
            @if traces.is_empty() { p.quiet { "No change that is here has touched it." } }
            ul.plain {
                @for trace in traces.iter().rev() {
                    @let address = match &trace.archived {
                        Some(name) => format!("/archive/{name}"),
                        None => format!("/changes/{}", trace.change_id),
                    };
                    @let what = match trace.how {
                        Operation::Adds => "added by",
                        Operation::Edits => "edited by",
                        Operation::Removes => "removed by",
                        Operation::Renames => "renamed by",
                        Operation::Touches => "touched by",
                    };
                    li {
                        (what) " " a href=(address) { (trace.change_id) }
                        @if trace.archived.is_none() { " " span.badge { "open" } }
                        @for commit in &trace.commits {
                            " " code title=(commit.subject) { (commit.id.get(..8).unwrap_or(&commit.id)) }
                        }
                    }
                }
            }
        }
    }
}

/// How many archived changes a page lists.
const PER_PAGE: usize = 200;

pub(crate) fn archive(app: &App, query: &str) -> Result<Markup, Problem> {
    let words: Vec<String> = query.to_lowercase().split_whitespace().map(str::to_owned).collect();
    let mut all = glance::archived(&app.project)?;
    all.reverse();
    let total = all.len();
    all.retain(|glance| {
        let text = format!("{} {}", glance.summary.change_id, glance.summary.title).to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    });
    let mut month = String::new();
    let body = html! {
        h1 { "Archive " (count(total)) }
        @if total > 0 {
            form.filters action="/archive" role="search" aria-label="Filter the archive" data-auto {
                label {
                    span.visually-hidden { "Filter the archive" }
                    input #filter type="search" name="q" value=(query) placeholder="Filter the archive" autocomplete="off";
                }
                button.small { "Show" }
            }
        }
        div data-live="open" {
            @if all.is_empty() { p.empty { @if total == 0 { "Nothing is archived yet." } @else { "Nothing found." } } }
            table.changes {
                @for glance in all.iter().take(PER_PAGE) {
                    @let name = glance.archived.as_deref().unwrap_or_default();
                    @let own = name.get(..7).unwrap_or_default();
                    tbody {
                        @if own != month {
                            tr.group { th colspan="3" scope="rowgroup" { (own) } }
                        }
                        tr {
                            th scope="row" {
                                a href={ "/archive/" (name) } data-stop {
                                    @let title = headline(&glance.summary.title);
                                    @if title.is_empty() { (glance.summary.change_id) } @else { (title) }
                                    " " code { (glance.summary.change_id) }
                                }
                            }
                            td { @if glance.state == "dropped" { span.badge { "dropped" } } (name.get(..10).unwrap_or_default()) }
                            td.n { (dollars(glance.summary.cost_usd)) }
                        }
                        ({ own.clone_into(&mut month); html! {} })
                    }
                }
            }
            @if all.len() > PER_PAGE { p.quiet { (all.len() - PER_PAGE) " older ones; use the filter to find them." } }
        }
    };
    let crumbs = [("Archive", "/archive".to_owned())];
    Ok(Page { app, title: "Archive", crumbs: &crumbs, follow: None, body }.render())
}
