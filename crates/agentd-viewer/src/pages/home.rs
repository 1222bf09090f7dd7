//! The first page: what needs a person, what runs, and all changes as a list or a board.

use std::sync::Arc;

use agentd_core::ids::SpecId;
use agentd_core::phase::Phase;
use agentd_core::text::counted;
use maud::{Markup, html};

use super::fleet;
use super::list::{Listing, Query, list_query};
use crate::App;
use crate::board::Board;
use crate::conflicts::{Conflict, Shared};
use crate::html::{Page, command, count, dollars, elapsed, progress, sentence, time};
use crate::overview::Overview;
use crate::problem::Problem;

/// How many changes that need somebody are listed on top.
const MOST_NEEDS: usize = 12;

/// How many cards a column of the board has; the list has the others.
const MOST_CARDS: usize = 25;

/// The groups of the list and the columns of the board. New changes have no state yet.
pub(super) const GROUPS: [(&str, &[Option<Phase>]); 5] = [
    ("Planning", &[None, Some(Phase::Proposed)]),
    ("Approved", &[Some(Phase::Challenged)]),
    ("Implementing", &[Some(Phase::Implementing)]),
    ("Complete", &[Some(Phase::Complete), Some(Phase::Archived)]),
    ("Rejected", &[Some(Phase::Rejected)]),
];

pub(crate) fn home(app: &Arc<App>, query: &Query) -> Result<Markup, Problem> {
    let board = Board::load(app)?;
    let conflicts = app.conflicts.of(app, &board.changes);
    let needs: Vec<&Arc<Overview>> =
        board.changes.iter().filter(|known| known.needs_person()).collect();
    let running: Vec<&Arc<Overview>> =
        board.changes.iter().filter(|known| known.glance.running.is_some()).collect();
    let listing = Listing::of(&board.changes, query);
    let body = html! {
        (head(app, &board, needs.len(), running.len()))
        @if board.changes.is_empty() {
            (fleet::everything(app, &board))
            (empty(app))
        } @else {
            (needs_you(app, &needs))
            (running_now(app, &running))
            (fleet::everything(app, &board))
            section.open {
                (filters(&board, query, &conflicts, listing.found.len()))
                div data-live="open" {
                    @if listing.found.is_empty() {
                        p.empty { "Nothing found. " a href="/" { "Show all changes" } }
                    } @else if query.is_board() {
                        (as_board(&listing, &conflicts))
                    } @else {
                        (as_list(&listing, &conflicts, query))
                    }
                }
            }
        }
        (below(&board))
    };
    let follow = Some(format!("/live?after={:016x}", board.mark));
    Ok(Page { app, title: "", crumbs: &[], follow, body }.render())
}

fn head(app: &Arc<App>, board: &Board, needs: usize, running: usize) -> Markup {
    let open: f64 = board.changes.iter().map(|known| known.glance.summary.cost_usd).sum();
    let all = app.spent(board.mark, board.changes.len());
    html! {
        div.title-row data-live="totals" {
            h1 { (app.project_name()) }
            p.facts {
                @if needs > 0 { strong { (needs) " need" @if needs == 1 { "s" } " you" } }
                @if running > 0 { span { (running) " running" } }
                span { (counted(board.changes.len(), "change")) " open" }
                span {
                    a href="/costs" { (dollars(all.as_ref().map_or(open, |all| all.total_cost_usd))) " spent" }
                    @if let Some(month) = all.as_ref().and_then(|all| all.months.first()) {
                        ", " (dollars(month.spent.cost_usd)) " in " (month.name)
                    }
                }
            }
        }
    }
}

fn empty(app: &App) -> Markup {
    html! {
        div.empty data-live="nothing" {
            p { strong { "No changes are open." } }
            p {
                "A change begins with a sentence. Agents write a plan of it, others look for what is \
                 wrong, you decide, and then it is implemented, reviewed and archived."
            }
            @if app.acts {
                p { a.button.primary href="/new" { "New change" } }
            }
            p { "In a terminal: " (command("agentd plan <id> \"<what you want>\"")) }
        }
    }
}

/// What waits for a person, and what failed.
fn needs_you(app: &App, needs: &[&Arc<Overview>]) -> Markup {
    html! {
        section.needs aria-labelledby="needs-title" data-live="needs" {
            @if !needs.is_empty() {
                h2 #needs-title { "Needs you " (count(needs.len())) }
                ul.rows {
                    @for known in needs.iter().take(MOST_NEEDS) { (need(app, known)) }
                }
                @if needs.len() > MOST_NEEDS {
                    p { a href="/?needs=1" { "All " (needs.len()) } }
                }
            }
        }
    }
}

fn need(app: &App, known: &Overview) -> Markup {
    let glance = &known.glance;
    let id = known.id();
    let reason = match (&glance.failed, &glance.issues) {
        (Some(call), _) => {
            let why = call.failure.map_or("failed", |failure| failure.words());
            format!("Failed: {}, {why}", call.step)
        }
        (None, Some(issues)) => format!(
            "{}: {} high, {} medium, {} low",
            sentence(glance.why),
            issues.high,
            issues.medium,
            issues.low
        ),
        (None, None) => sentence(glance.why),
    };
    html! {
        li.row.need.failed[glance.failed.is_some()] data-id=(id) {
            a href={ "/changes/" (id) } data-stop { strong { (id) } " " span.title { (known.title) } }
            span.why { (reason) }
            span.when { (updated(known)) }
            @if app.acts {
                a.button.small href={ "/changes/" (id) } {
                    @if glance.waits_for_decision() { "Decide" } @else { "Open" }
                    span.visually-hidden { " " (id) }
                }
            } @else if let Some(next) = glance.next.first() {
                span.next-command { code { (next.short(id)) } }
            }
        }
    }
}

fn running_now(app: &App, running: &[&Arc<Overview>]) -> Markup {
    html! {
        section.running aria-labelledby="running-title" data-live="running" {
            @if !running.is_empty() {
                h2 #running-title { "Running " (count(running.len())) }
                ul.rows {
                    @for known in running {
                        @let id = known.id();
                        @if let Some(work) = &known.glance.running {
                            li.row data-id=(id) {
                                a href={ "/changes/" (id) "/runs#live" } data-stop {
                                    strong { (id) } " " span.title { (known.title) }
                                }
                                span.why {
                                    @match &work.step { Some(step) => { (step) } None => { (work.command) } }
                                    @if let Some(agent) = work.agent { " with " (agent.name()) }
                                    " " (elapsed(work.since))
                                }
                                (progress(known.glance.summary.tasks.completed, known.glance.summary.tasks.total))
                                span { (dollars(known.glance.summary.cost_usd)) }
                                @if app.acts {
                                    form method="post" action={ "/changes/" (id) "/stop" } data-send {
                                        button.small.danger { "Stop" span.visually-hidden { " " (id) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What is listed, and how: all of it in the address.
fn filters(board: &Board, query: &Query, conflicts: &Shared, found: usize) -> Markup {
    let mut specs: Vec<&str> = board
        .changes
        .iter()
        .flat_map(|known| known.glance.specs.iter().map(SpecId::as_str))
        .collect();
    specs.sort_unstable();
    specs.dedup();
    // A list of a thousand names helps nobody; words find them, too.
    specs.truncate(200);
    let shared = board.changes.iter().filter(|known| conflicts.contains_key(known.id())).count();
    let select = |name: &str, label: &str, value: &str, options: &[(&str, &str)]| {
        html! {
            label {
                span.visually-hidden { (label) }
                select name=(name) {
                    @for (option, words) in options {
                        option value=(option) selected[*option == value] { (words) }
                    }
                }
            }
        }
    };
    let phases: Vec<(&str, &str)> = std::iter::once(("", "any phase"))
        .chain(GROUPS.iter().map(|(name, _)| (*name, *name)))
        .collect();
    let verdicts = [
        ("", "any verdict"),
        ("APPROVED", "approved"),
        ("NEEDS_REVISION", "needs revision"),
        ("REJECTED", "rejected"),
        ("NEEDS_FIX", "needs fixing"),
        ("MAJOR_ISSUES", "major issues"),
        ("none", "no verdict"),
    ];
    let sorts = [
        ("", "updated"),
        ("created", "created"),
        ("id", "name"),
        ("cost", "cost"),
        ("progress", "progress"),
    ];
    html! {
        form.filters #list-filter action="/" data-auto role="search" aria-label="Filter changes" {
            h2 { "Open " span data-live="found" { (count(found)) } }
            label {
                span.visually-hidden { "Words in the name or the summary" }
                input #filter type="search" name="q" value=(query.q) placeholder="Filter changes"
                    autocomplete="off" aria-keyshortcuts="/";
            }
            (select("phase", "Phase", &query.phase, &phases))
            (select("verdict", "Verdict", &query.verdict, &verdicts))
            @if specs.len() > 1 {
                label {
                    span.visually-hidden { "Spec" }
                    select name="spec" {
                        option value="" { "any spec" }
                        @for spec in specs { option selected[spec == query.spec] { (spec) } }
                    }
                }
            }
            label { "Sort " (select("sort", "Order", &query.sort, &sorts)) }
            label.check { input type="checkbox" name="needs" value="1" checked[query.needs()]; " needs you" }
            @if query.is_board() { input type="hidden" name="view" value="board"; }
            button.small { "Show" }
            span.switch role="group" aria-label="View" {
                a href={ "/?" (list_query(query, "", None)) } aria-current=[(!query.is_board()).then_some("true")] { "List" }
                a href={ "/?" (list_query(query, "board", None)) } aria-current=[query.is_board().then_some("true")] { "Board" }
            }
            @if shared > 0 {
                span.quiet title="agentd overlap lists them" { "⚠ " (shared) " share requirements or files with others" }
            }
        }
    }
}

fn updated(known: &Overview) -> Markup {
    html! {
        @if let Some(at) = known.glance.summary.updated_at.as_ref().and_then(|at| at.parse().ok()) {
            (time(at))
        }
    }
}

/// A sign that others touch the same, with their names.
fn shares(shared: Option<&Vec<Conflict>>) -> Markup {
    html! {
        @if let Some(shared) = shared {
            @let others = others(shared);
            @let names = names(&others);
            span.warn title={ "shares " (subjects(shared)) " with " (names) } {
                "⚠ " (others.len()) span.visually-hidden { " shared with " (names) }
            }
        }
    }
}

/// What is shared, the first few.
fn subjects(shared: &[Conflict]) -> String {
    let mut what: Vec<&str> = shared.iter().map(|conflict| conflict.what.as_str()).collect();
    what.dedup();
    let more = if what.len() > 3 { " and more" } else { "" };
    what.truncate(3);
    what.join(", ") + more
}

/// The other changes, each once.
fn others(shared: &[Conflict]) -> Vec<&str> {
    let mut others: Vec<&str> = shared.iter().map(|conflict| conflict.with.as_str()).collect();
    others.sort_unstable();
    others.dedup();
    others
}

/// Their names, the first few.
fn names(others: &[&str]) -> String {
    let shown = others.get(..5).unwrap_or(others).join(", ");
    match others.len().saturating_sub(5) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn as_list(listing: &Listing<'_>, conflicts: &Shared, query: &Query) -> Markup {
    html! {
        table.changes {
            thead.visually-hidden {
                tr {
                    @for name in ["Change", "State", "Shared", "Tasks", "Cost", "Updated"] { th scope="col" { (name) } }
                }
            }
            @for (name, changes) in listing.groups() {
                tbody {
                    @if listing.is_grouped {
                        tr.group { th colspan="6" scope="rowgroup" { (name) " " (count(listing.count(name))) } }
                    }
                    @for known in changes {
                        tr data-id=(known.id()) {
                            th scope="row" {
                                a href={ "/changes/" (known.id()) } data-stop {
                                    (known.title) " " code { (known.id()) }
                                }
                            }
                            td { (state(known)) }
                            td { (shares(conflicts.get(known.id()))) }
                            td { (tasks(known)) }
                            td.n { (dollars(known.glance.summary.cost_usd)) }
                            td { (updated(known)) }
                        }
                    }
                }
            }
        }
        (pages(listing, query))
    }
}

/// Where a change stands, in a word or two, and what comes next.
fn state(known: &Overview) -> Markup {
    let glance = &known.glance;
    let class = if glance.running.is_some() {
        "live"
    } else if glance.failed.is_some() {
        "high"
    } else if known.needs_person() {
        "medium"
    } else {
        ""
    };
    let words = match &glance.failed {
        Some(_) if glance.running.is_none() => "failed",
        _ => glance.state,
    };
    html! {
        span.badge.(class) title=(glance.why) { (words) }
        @if glance.open_comments > 0 {
            " " span.count.accent title="open comments" { (glance.open_comments) }
        }
    }
}

fn tasks(known: &Overview) -> Markup {
    let tasks = known.glance.summary.tasks;
    html! { @if tasks.total > 0 { (progress(tasks.completed, tasks.total)) } }
}

/// The way to the rest of a long list.
fn pages(listing: &Listing<'_>, query: &Query) -> Markup {
    html! {
        @if listing.pages > 1 {
            nav.pages aria-label="Pages of the list" {
                @if listing.page > 1 {
                    a href={ "/?" (list_query(query, "", Some(listing.page - 1))) } rel="prev" { "Previous" }
                }
                span { "page " (listing.page) " of " (listing.pages) }
                @if listing.page < listing.pages {
                    a href={ "/?" (list_query(query, "", Some(listing.page + 1))) } rel="next" { "Next" }
                }
            }
        }
    }
}

fn as_board(listing: &Listing<'_>, conflicts: &Shared) -> Markup {
    html! {
        div.board #board {
            @for (name, phases) in GROUPS {
                @let here: Vec<_> =
                    listing.found.iter().filter(|known| phases.contains(&known.glance.summary.phase)).collect();
                @if !here.is_empty() {
                    section.column data-column=(name) aria-label=(name) {
                        h3 { (name) " " (count(here.len())) }
                        ul.cards {
                            @for known in here.iter().take(MOST_CARDS) {
                                (card(known, conflicts.get(known.id())))
                            }
                        }
                        @if here.len() > MOST_CARDS {
                            p { a href={ "/?phase=" (name) } { (here.len() - MOST_CARDS) " more" } }
                        }
                    }
                }
            }
        }
    }
}

fn card(known: &Overview, shared: Option<&Vec<Conflict>>) -> Markup {
    let id = known.id();
    html! {
        li.card data-id=(id) {
            a href={ "/changes/" (id) } data-stop { strong { (known.title) } code { (id) } }
            p.facts {
                (state(known)) (tasks(known))
                span { (dollars(known.glance.summary.cost_usd)) }
                (updated(known)) (shares(shared))
            }
        }
    }
}

/// The way to what is not open.
fn below(board: &Board) -> Markup {
    html! {
        p.below data-live="below" {
            a href="/specs" { "Main specs " (count(board.specs.len())) }
            " " a href="/archive" { "Archive " (count(board.archived.len())) }
            " " a href="/costs" { "Costs" }
        }
    }
}
