//! The tab of the plan: the list of its documents, and one of them.

use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::{Diagnostic, Severity};
use agentd_core::document::changelog::Touched;
use agentd_core::layout::ChangeFile;
use agentd_core::text::counted;
use maud::{Markup, html};

use super::frame::{ChangePage, Tab};
use crate::App;
use crate::html::{progress, severity, with_code};
use crate::subject::Subject;

/// A page of the plan with the list of documents beside it.
pub(super) fn plan_page(
    app: &App,
    subject: &Subject,
    here: &str,
    title: &str,
    body: &Markup,
) -> Markup {
    let body = html! {
        div.with-list {
            (documents(subject, here))
            div.pane { (body) }
        }
    };
    let crumb = (title != "Proposal").then_some(here);
    ChangePage { tab: Tab::Plan, title, here: crumb, body }.render(app, subject)
}

/// The documents of the plan.
fn documents(subject: &Subject, here: &str) -> Markup {
    let base = subject.address();
    let comments = format!("{base}/comments");
    let current = |address: &str| (address == here).then_some("page");
    html! {
        nav.documents aria-label="Documents" data-live="documents" {
            ul {
                @for (file, name) in subject.titles() {
                    @let address = subject.document_address(&file);
                    li {
                        a href=(address) aria-current=[current(&address)] {
                            span.name { (name) }
                            span.more { (about(subject, &file)) }
                        }
                    }
                }
                @let all = subject.comments.comments.len();
                @if all > 0 {
                    li {
                        a href=(comments) aria-current=[current(&comments)] {
                            span.name { "Comments" }
                            @let open = subject.comments.open().count();
                            span.more { @if open > 0 { span.count.accent { (open) } } @else { (all) } }
                        }
                    }
                }
            }
        }
    }
}

/// What is to be known of a document before it is opened.
fn about(subject: &Subject, file: &ChangeFile) -> Markup {
    let found = subject.diagnostics(file).1;
    let worst = found.iter().map(Diagnostic::severity).min();
    html! {
        @match file {
            ChangeFile::Spec(id) => {
                @if let Ok(deltas) = subject.deltas()
                    && let Some(delta) = deltas.iter().find(|delta| delta.spec == *id) {
                    (delta_counts(&delta.touched))
                }
            }
            ChangeFile::Tasks => { (progress(subject.completed(), subject.tasks().len())) }
            _ => {}
        }
        @if let Some(worst) = worst {
            " " span.count.(worst.label().to_lowercase())
                title={ (counted(found.len(), "finding")) " of validate" } { (found.len()) }
        }
    }
}

/// How many requirements come, change and go: `+2 ~1 −0`.
pub(super) fn delta_counts(touched: &Touched) -> Markup {
    let edited = touched.edited.len() + touched.renamed.len();
    html! {
        span.delta title={
            (touched.added.len()) " requirements added, " (edited) " edited, "
            (touched.removed.len()) " removed"
        } {
            @if touched.created { span.added { "new" } " " }
            @if !touched.added.is_empty() { span.added { "+" (touched.added.len()) } " " }
            @if edited > 0 { span.edited { "~" (edited) } " " }
            @if !touched.removed.is_empty() { span.removed { "−" (touched.removed.len()) } }
        }
    }
}

/// How many findings of `validate` are listed.
const SHOWN: usize = 40;

/// A finding with the document that it is in.
struct Found<'s> {
    severity: Severity,
    code: &'static str,
    message: &'s str,
    advice: String,
    /// The name of the document and the line.
    place: String,
    address: Option<String>,
}

/// The findings of `agentd validate`, the most severe first.
pub(super) fn validation(subject: &Subject) -> Markup {
    let mut all: Vec<Found<'_>> =
        subject.reports.iter().flat_map(|report| found(subject, report)).collect();
    all.sort_by_key(|found| found.severity);
    let high = all.iter().any(|found| found.severity == Severity::High);
    let allowed = check::allowed(&subject.reports);
    let is_checked =
        subject.is_open() && !subject.reports.is_empty() && !subject.is_being_written();
    html! {
        div.validation data-live="validation" {
            @if all.is_empty() && is_checked && allowed == 0 {
                p.good { "✓ The documents are valid." }
            }
            @if !all.is_empty() || allowed > 0 {
                details open[high] {
                    summary {
                        strong { "Validation" } " "
                        span.quiet {
                            (counted(all.len(), "finding"))
                            @if allowed > 0 { ", " (allowed) " allowed by the documents" }
                        }
                    }
                    ul.findings {
                        @for found in all.iter().take(SHOWN) {
                            li {
                                (severity(found.severity)) " "
                                @if let Some(address) = &found.address {
                                    a href=(address) { (found.place) }
                                } @else {
                                    code { (found.place) }
                                }
                                " " (with_code(found.message)) " "
                                span.quiet title={ "agentd explain " (found.code) } {
                                    (found.code) ": " (with_code(&found.advice))
                                }
                            }
                        }
                        @for allowed in subject.reports.iter().flat_map(|report| &report.allowed).take(SHOWN) {
                            li.settled {
                                (allowed.finding.rule.code) " " (with_code(&allowed.finding.message))
                                " " span.quiet { "allowed: " (allowed.reason) }
                            }
                        }
                    }
                    @if all.len() > SHOWN { p.quiet { (all.len() - SHOWN) " more: agentd validate" } }
                }
            }
        }
    }
}

fn found<'s>(subject: &'s Subject, report: &'s FileReport) -> Vec<Found<'s>> {
    let file = report.file.in_change().filter(|file| subject.source(file).is_some());
    let name = report.file.path();
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    let text = file.and_then(|file| subject.documents().get(file).text()).unwrap_or_default();
    report
        .diagnostics
        .iter()
        .map(|diagnostic| {
            let line = agentd_core::span::line_column(text, diagnostic.span.start).0;
            let address =
                file.map(|file| format!("{}?view=source#L{line}", subject.document_address(file)));
            Found {
                severity: diagnostic.severity(),
                code: diagnostic.rule.code,
                message: &diagnostic.message,
                advice: diagnostic.advice().to_string(),
                place: format!("{name}:{line}"),
                address,
            }
        })
        .collect()
}
