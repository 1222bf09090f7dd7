//! All changes, as a board by phase.

use std::collections::BTreeSet;
use std::sync::Arc;

use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::ArchiveName;
use agentd_core::phase::Phase;
use agentd_core::text::counted;
use maud::{Markup, html};

use crate::App;
use crate::board::Board;
use crate::conflicts::{Conflict, Shared};
use crate::html::{Page, dollars, progress};
use crate::problem::Problem;
use crate::summaries::ChangeOverview;

/// How many of its overlaps a card shows; `agentd overlap` shows all.
const SHOWN_CONFLICTS: usize = 3;

/// The columns of the board. New changes have no state yet.
const COLUMNS: [(&str, &[Option<Phase>]); 5] = [
    ("Planning", &[None, Some(Phase::Proposed)]),
    ("Approved", &[Some(Phase::Challenged)]),
    ("Implementing", &[Some(Phase::Implementing)]),
    ("Complete", &[Some(Phase::Complete), Some(Phase::Archived)]),
    ("Rejected", &[Some(Phase::Rejected)]),
];

pub(crate) fn home(app: &Arc<App>) -> Result<Markup, Problem> {
    let Board { changes: mut summaries, running, specs, archived, mark } = Board::load(app)?;
    let conflicts = app.conflicts.of(app, &summaries);
    summaries.sort_by(|a, b| b.summary.updated_at.cmp(&a.summary.updated_at));
    let cost: f64 = summaries.iter().map(|known| known.summary.cost_usd).sum();
    let name = app.project_name();
    let body = html! {
        div.title-row {
            h1 { (name) }
            p.quiet data-live="totals" {
                (counted(summaries.len(), "change")) " open · " (dollars(cost)) " spent"
            }
            label.filter hidden[summaries.is_empty()] {
                span.visually-hidden { "Filter changes" }
                input #filter type="search" placeholder="Filter changes ( / )" autocomplete="off";
            }
        }
        div data-live="empty" {
            @if summaries.is_empty() {
                p.empty {
                    "No changes are open. Start one in a terminal:" br;
                    code { "agentd plan <id> \"<what you want>\"" }
                }
            }
        }
        div.board #board data-follow={ "/live?after=" (format!("{mark:016x}")) } {
            @for (name, phases) in COLUMNS {
                (column(name, phases, &summaries, &running, &conflicts))
            }
        }
        div data-live="more" { (specs_and_archive(&specs, &archived)) }
    };
    let title = format!("{name} · agentd");
    Ok(Page { title: &title, crumbs: &[], project: &name, body }.render())
}

fn column(
    name: &str,
    phases: &[Option<Phase>],
    summaries: &[Arc<ChangeOverview>],
    running: &BTreeSet<ChangeId>,
    conflicts: &Shared,
) -> Markup {
    let here: Vec<&Arc<ChangeOverview>> =
        summaries.iter().filter(|known| phases.contains(&known.summary.phase)).collect();
    html! {
        @if !here.is_empty() {
            section.column data-column=(name) {
                h2 { (name) " " span.count { (here.len()) } }
                ul.cards {
                    @for known in here {
                        @let id = &known.summary.change_id;
                        @let shared = conflicts.get(id).map_or(&[][..], Vec::as_slice);
                        (card(known, running.contains(id), shared))
                    }
                }
            }
        }
    }
}

fn card(known: &ChangeOverview, running: bool, shared: &[Conflict]) -> Markup {
    let summary = &known.summary;
    let id = &summary.change_id;
    html! {
        li.card data-id=(id) {
            a href={ "/changes/" (id) } { strong { (known.title) } code { (id) } }
            p.facts {
                (progress(summary.tasks.completed, summary.tasks.total))
                span { (dollars(summary.cost_usd)) }
                @if let Some(action) = &summary.last_action { span { (action) } }
                @if let Some(at) = &summary.updated_at {
                    time datetime=(at) { (at.get(..10).unwrap_or(at)) }
                }
                @if running { span.badge.live { "running" } }
                @if summary.problem.is_some() {
                    span.badge.high { "unreadable" }
                } @else if summary.phase.is_none() {
                    span.badge { "new" }
                }
                @for Conflict { with, what } in shared.iter().take(SHOWN_CONFLICTS) {
                    a.badge.medium href={ "/changes/" (with) } {
                        "shares " (what) " with " (with)
                    }
                }
                @if shared.len() > SHOWN_CONFLICTS {
                    span.badge.medium { "and " (shared.len() - SHOWN_CONFLICTS) " more" }
                }
            }
        }
    }
}

fn specs_and_archive(specs: &[SpecId], archived: &[ArchiveName]) -> Markup {
    let specs = specs.iter().map(|id| (format!("/specs/{id}"), id.to_string())).collect();
    let newest_first = archived.iter().rev();
    let archived =
        newest_first.map(|name| (format!("/archive/{name}"), name.to_string())).collect();
    html! {
        (list("Main specs", specs))
        (list("Archive", archived))
    }
}

/// Links with their names.
fn list(title: &str, items: Vec<(String, String)>) -> Markup {
    html! {
        @if !items.is_empty() {
            section.more {
                h2 { (title) " " span.count { (items.len()) } }
                ul.names {
                    @for (address, name) in items {
                        li { a href=(address) { (name) } }
                    }
                }
            }
        }
    }
}
