//! The reviews of the plan: findings over the rounds, and each round.

use std::collections::BTreeSet;

use agentd_core::document::issue_fate::{Fate, IssueFate};
use agentd_core::document::review_block::{Issue, ReviewBlock};
use maud::{Markup, html};

use super::change::verdict_badge;
use super::change_page;
use super::plan_changes::kept;
use crate::App;
use crate::findings::over_rounds;
use crate::html::{severity, time};
use crate::markdown;
use crate::subject::Subject;

pub(crate) fn reviews(app: &App, subject: &Subject) -> Markup {
    let here = format!("{}/reviews", subject.address());
    let rounds = &subject.proposal().reviews;
    let findings = over_rounds(rounds);
    let recorded: BTreeSet<u32> = rounds
        .iter()
        .map(|round| round.iteration)
        .filter(|number| kept(subject, *number).is_some())
        .collect();
    let body = html! {
        h1 { "Reviews of the plan" }
        @if rounds.is_empty() { p.empty { "The plan has not been reviewed yet." } }
        @if !findings.is_empty() { (matrix(rounds, &findings)) }
        @for review in rounds.iter().rev() { (round(subject, review, &recorded)) }
    };
    change_page(app, subject, &here, "Reviews", &body)
}

/// Which round reported which finding, and its status now.
fn matrix(rounds: &[ReviewBlock], findings: &[IssueFate<'_>]) -> Markup {
    html! {
        h2 { "Findings over the rounds" }
        div.table {
            table.matrix {
                thead {
                    tr {
                        th { "Finding" }
                        @for ReviewBlock { iteration, .. } in rounds {
                            th.round {
                                a href={ "#round-" (iteration) } { "Round " (iteration) }
                            }
                        }
                        th { "Now" }
                    }
                }
                tbody {
                    @for finding in findings { (matrix_row(finding)) }
                }
            }
        }
    }
}

fn matrix_row(finding: &IssueFate<'_>) -> Markup {
    let Issue { number, title, severity: weight, .. } = finding.issue;
    let standing = finding.fate.name();
    html! {
        tr id={ "i" (number) } {
            td { (severity(*weight)) " " strong { "I" (number) } " " (title) }
            @for fate in &finding.rounds {
                @let (mark, what) = match fate {
                    None => ("", "not found yet"),
                    Some(Fate::New | Fate::Open) => ("●", "found"),
                    Some(Fate::Regression) => ("●", "found again: a regression"),
                    Some(Fate::Unconfirmed) => ("?", "not mentioned"),
                    Some(Fate::Fixed) => ("✓", "fixed"),
                    Some(Fate::Rejected) => ("×", "rejected"),
                    Some(Fate::Deferred) => ("→", "deferred"),
                };
                td.round.found[mark == "●"] {
                    span aria-hidden="true" { (mark) }
                    span.visually-hidden { (what) }
                }
            }
            td {
                span.badge.{ "fate-" (standing) } { (standing) }
                @if let Some(reason) = finding.reason { " " span.quiet { (reason) } }
            }
        }
    }
}

/// A round; `recorded` are those whose plan was kept.
fn round(subject: &Subject, review: &ReviewBlock, recorded: &BTreeSet<u32>) -> Markup {
    let number = review.iteration;
    html! {
        section.round-block id={ "round-" (number) } {
            h2 { "Round " (number) " " (verdict_badge(review.verdict)) }
            p.facts {
                span { (review.reviewer) }
                @if let Some(date) = review.date { (time(date)) }
                @if recorded.contains(&number) {
                    (link_to_changes(subject, number, recorded.contains(&(number + 1))))
                }
            }
            div.prose { (markdown::fragment(review.summary.as_str())) }
            @for issue in &review.issues { (issue_details(issue)) }
        }
    }
}

/// A link to what changed after a round: until the next one, or until now.
fn link_to_changes(subject: &Subject, number: u32, has_next: bool) -> Markup {
    let address = format!("{}/changes?from={number}", subject.address());
    html! {
        @if has_next {
            a href={ (address) "&to=" (number + 1) } { "What changed before the next round" }
        } @else {
            a href=(address) { "What changed since then" }
        }
    }
}

fn issue_details(issue: &Issue) -> Markup {
    html! {
        details.issue open {
            summary {
                (severity(issue.severity)) " " strong { "I" (issue.number) } " " (issue.title)
            }
            div.prose {
                @if !issue.location.is_empty() { p.quiet { (issue.location) } }
                (markdown::fragment(issue.description.as_str()))
                @if !issue.recommendation.is_empty() {
                    h4 { "Recommendation" }
                    (markdown::fragment(issue.recommendation.as_str()))
                }
            }
        }
    }
}
