//! What all changes have cost, archived ones included: by month, model, role, step and change.

use agentd_core::figures::{duration, tokens};
use agentd_core::text::counted;
use agentd_engine::insight::cost::{self, ChangeCost, Month, ProjectCost};
use maud::{Markup, html};

use super::runs::{budget, shares};
use crate::App;
use crate::html::{Page, count, dollars, scroll_box, time};
use crate::problem::Problem;

/// How many changes are listed.
const MOST: usize = 200;

pub(crate) fn costs(app: &App, month: &str) -> Result<Markup, Problem> {
    let month: Option<Month> = month.parse().ok();
    let all = cost::of_project(&app.project, None)?;
    let one =
        month.as_ref().map(|month| cost::of_project(&app.project, Some(month))).transpose()?;
    let shown = one.as_ref().unwrap_or(&all);
    let body = html! {
        h1 { "Costs" }
        @if shown.spent.calls == 0 {
            p.empty {
                "No agent has been called yet" @if let Some(month) = &month { " in " (month) } "."
            }
        } @else {
            (totals(shown, month.as_ref()))
        }
        (months(&all, month.as_ref()))
        @if shown.spent.calls > 0 {
            div.shares {
                (shares("By model", &shown.models, shown.total_cost_usd))
                (shares("By role", &shown.roles, shown.total_cost_usd))
                (shares("By step", &shown.steps, shown.total_cost_usd))
            }
        }
        (changes(app, shown))
        @if !shown.unreadable.is_empty() {
            h2 { "Not counted " (count(shown.unreadable.len())) }
            ul.plain { @for problem in &shown.unreadable { li { (problem) } } }
        }
    };
    let crumbs = [("Costs", "/costs".to_owned())];
    Ok(Page { app, title: "Costs", crumbs: &crumbs, follow: None, body }.render())
}

/// What was used in all.
fn totals(shown: &ProjectCost, month: Option<&Month>) -> Markup {
    html! {
        p.facts {
            span { strong { (dollars(shown.total_cost_usd)) } @if let Some(month) = month { " in " (month) } @else { " in all" } }
            span { (tokens(shown.spent.tokens_in)) " tokens in, " (tokens(shown.spent.tokens_cached)) " of them cached" }
            span { (tokens(shown.spent.tokens_out)) " out" }
            span { (counted(shown.spent.calls, "call")) @if shown.spent.failed > 0 { ", " (shown.spent.failed) " failed" } }
            span { (duration(shown.spent.duration_ms)) " of work" }
        }
    }
}

/// The months, each a link.
fn months(all: &ProjectCost, current: Option<&Month>) -> Markup {
    html! {
        @if !all.months.is_empty() {
            div.filters {
                span.switch role="group" aria-label="Month" {
                    a href="/costs" aria-current=[current.is_none().then_some("true")] { "all" }
                    @for month in all.months.iter().take(12) {
                        @let is_it = current.is_some_and(|current| current.to_string() == month.name);
                        a href={ "/costs?month=" (month.name) } aria-current=[is_it.then_some("true")] {
                            (month.name) " " span.quiet { (dollars(month.spent.cost_usd)) }
                        }
                    }
                }
            }
        }
    }
}

fn changes(app: &App, shown: &ProjectCost) -> Markup {
    let most = app.budget().max_cost_usd;
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "Change" }
                    @for name in ["Cost", "Calls", "Tokens"] { th.n scope="col" { (name) } }
                    th scope="col" { "Last call" }
                }
            }
            tbody { @for change in shown.changes.iter().take(MOST) { (row(change, most)) } }
        }
    };
    html! {
        @if !shown.changes.is_empty() {
            h2 { "By change " (count(shown.changes.len())) }
            @if let Some(most) = most {
                p.quiet { "The budget of a change is " (dollars(most)) " ([budget] max_cost_usd)." }
            }
            (scroll_box("table", "Costs by change", &table))
            @if shown.changes.len() > MOST { p.quiet { "and " (shown.changes.len() - MOST) " older ones" } }
        }
    }
}

fn row(change: &ChangeCost, most: Option<f64>) -> Markup {
    let address = match &change.archived {
        Some(name) => format!("/archive/{name}/runs"),
        None => format!("/changes/{}/runs", change.change_id),
    };
    html! {
        tr {
            th scope="row" {
                a href=(address) { (change.change_id) }
                @if change.archived.is_some() { " " span.quiet { "archived" } }
            }
            td.n {
                @match most.filter(|most| *most > 0.0) {
                    Some(most) => { (budget(change.spent.cost_usd, most)) }
                    None => { (dollars(change.spent.cost_usd)) }
                }
            }
            td.n { (change.spent.calls) @if change.spent.failed > 0 { ", " (change.spent.failed) " failed" } }
            td.n { (tokens(change.spent.tokens_in)) " / " (tokens(change.spent.tokens_out)) }
            td { @if let Some(at) = change.last_call { (time(at)) } }
        }
    }
}
