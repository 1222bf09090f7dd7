//! The first page of a change: its status, what is wrong, and what there is to decide.

use agentd_core::check::{self, FileReport};
use agentd_core::document::review_block::PlanVerdict;
use agentd_core::figures::tokens;
use agentd_core::layout::ChangeFile;
use agentd_core::phase::Phase;
use agentd_core::state::State;
use agentd_engine::change::position::{Position, Running};
use maud::{Markup, html};

use super::decision::{choice_name, decision_form, note_of};
use super::{change_page, runs};
use crate::App;
use crate::charts;
use crate::findings::over_rounds;
use crate::html::{dollars, progress, scroll_box, severity, time};
use crate::markdown;
use crate::problem::Problem;
use crate::subject::Subject;

/// How many findings of the reviews are listed here; the page of reviews has them all.
const SHOWN_FINDINGS: usize = 12;

/// How many findings of `validate` are listed per document.
const SHOWN_DIAGNOSTICS: usize = 8;

pub(crate) fn overview(app: &App, subject: &Subject) -> Result<Markup, Problem> {
    let activity = if subject.is_open() { Some(runs::live_panel(app, subject)?) } else { None };
    let body = html! {
        (head(subject))
        @if let Some(problem) = &subject.problem {
            p.alert role="alert" { (problem) }
        }
        div data-live="course" {
            @if let Some(position) = subject.position() { (course(&position)) }
        }
        div data-live="decision" { (decision_form(subject)) }
        @if let Some(lead) = lead(subject) {
            section.prose.lead { (markdown::fragment(lead)) }
        }
        @if let Some(activity) = activity { (activity) }
        div.two data-live="findings" {
            (findings(subject))
            @if subject.is_open() { (diagnostics(subject)) }
        }
        div data-live="timeline" {
            @if let Some(state) = subject.state() {
                (timeline(state))
                (history(state))
            }
        }
    };
    Ok(change_page(app, subject, &subject.address(), &subject.title(), &body))
}

/// What comes next, and what is stale.
fn course(position: &Position) -> Markup {
    let Position { course, stale, record, running } = position;
    html! {
        section.course {
            p {
                strong { (course.standing.name()) } ": " (course.why)
                @if let Some(Running { step: Some(step), agent: Some(agent), .. }) = running {
                    ", at " (step) " with " (agent)
                }
            }
            @if let Some(problem) = record { p.alert role="alert" { (problem) } }
            @if !stale.is_empty() {
                ul { @for stale in stale { li { code { (stale.what) } ": " (stale.why) } } }
            }
            @for (index, next) in course.next.iter().enumerate() {
                p { @if index == 0 { "Next: " } @else { "or: " } code { (next) } }
            }
        }
    }
}

/// What the change is about: the summary of its proposal, or else what was asked for.
fn lead(subject: &Subject) -> Option<&str> {
    if !subject.proposal().summary.is_empty() {
        return Some(subject.proposal().summary.as_str());
    }
    let asked = subject.state().and_then(|state| state.description.as_ref());
    asked.map(agentd_core::text::Prose::as_str)
}

/// The phases in the life of a change, in order.
const LIFE: [Phase; 5] =
    [Phase::Proposed, Phase::Challenged, Phase::Implementing, Phase::Complete, Phase::Archived];

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Proposed => "Planning",
        Phase::Challenged => "Approved",
        Phase::Rejected => "Rejected",
        Phase::Implementing => "Implementing",
        Phase::Complete => "Complete",
        Phase::Archived => "Archived",
    }
}

fn head(subject: &Subject) -> Markup {
    html! {
        header.change-head data-live="head" {
            h1 { (subject.title()) }
            p.facts {
                code { (subject.id()) }
                @if let Some(command) = &subject.running {
                    span.badge.live title=(command) { "running" }
                }
                @if let Some(verdict) = subject.verdict() { (verdict_badge(verdict)) }
                (progress(subject.completed(), subject.tasks().len()))
                @if let Some(state) = subject.state() {
                    @let all_tokens = state.total_tokens_in.saturating_add(state.total_tokens_out);
                    span { (dollars(state.total_cost)) }
                    span { (tokens(all_tokens)) " tokens" }
                    @if let Some(action) = &state.last_action { span { "last: " (action) } }
                    @if let Some(at) = state.updated_at { (time(at)) }
                }
            }
            (life(subject.phase()))
        }
    }
}

/// A verdict on the plan.
pub(super) fn verdict_badge(verdict: PlanVerdict) -> Markup {
    let label = verdict.label();
    let class = label.to_lowercase().replace('_', "-");
    html! { span.badge.(class) { (label.replace('_', " ")) } }
}

/// The phases, with the current one marked. A rejected plan takes the place of an approved one.
fn life(phase: Option<Phase>) -> Markup {
    let rejected = phase == Some(Phase::Rejected);
    let current = if rejected { Some(Phase::Challenged) } else { phase };
    let at = current.and_then(|phase| LIFE.iter().position(|step| *step == phase));
    html! {
        ol.life aria-label="Phases" {
            @for (index, step) in LIFE.into_iter().enumerate() {
                @let is_now = at == Some(index);
                @let class = match at {
                    Some(_) if is_now && rejected => "bad now",
                    Some(_) if is_now => "now",
                    Some(at) if index < at => "past",
                    Some(_) | None => "",
                };
                @let name = if is_now && rejected { Phase::Rejected } else { step };
                li.(class) aria-current=[is_now.then_some("step")] { (phase_name(name)) }
            }
        }
    }
}

/// The findings of the reviews, and how many of them are settled.
fn findings(subject: &Subject) -> Markup {
    let all = over_rounds(&subject.proposal().reviews);
    let settled = all.iter().filter(|finding| finding.fate.is_settled()).count();
    let reviews = format!("{}/reviews", subject.address());
    html! {
        @if !all.is_empty() {
            section.panel {
                h2 {
                    "Findings " span.quiet { (all.len() - settled) " open, " (settled) " settled" }
                }
                ul.findings {
                    @for finding in all.iter().take(SHOWN_FINDINGS) {
                        @let standing = finding.fate.name();
                        li.settled[finding.fate.is_settled()] {
                            (severity(finding.issue.severity)) " "
                            a href={ (reviews) "#i" (finding.issue.number) } {
                                (finding.issue.title)
                            }
                            " " span.standing { (standing) }
                        }
                    }
                }
                @if all.len() > SHOWN_FINDINGS {
                    p { a href=(reviews) { "All " (all.len()) " findings" } }
                }
            }
        }
    }
}

/// The findings of `agentd validate`, by document.
fn diagnostics(subject: &Subject) -> Markup {
    let count: usize = subject.reports.iter().map(|report| report.diagnostics.len()).sum();
    let allowed = allowed(subject);
    if count == 0 {
        return html! {
            section.panel {
                h2 { "Validation " }
                p.good { "✓ The documents are valid." }
                (allowed)
            }
        };
    }
    html! {
        section.panel {
            h2 {
                "Validation "
                span.quiet { (agentd_core::text::counted(count, "finding")) }
            }
            ul.findings {
                @for (file, name) in subject.titles() {
                    (document_diagnostics(subject, &file, &name))
                }
                (stray_diagnostics(subject))
            }
            (allowed)
        }
    }
}

/// What the documents say does not matter.
fn allowed(subject: &Subject) -> Markup {
    let all = subject.reports.iter().flat_map(|report| &report.allowed);
    let count = check::allowed(&subject.reports);
    html! {
        @if count > 0 {
            p.quiet { (count) " allowed by the documents:" }
            ul.plain {
                @for allowed in all.take(SHOWN_DIAGNOSTICS) {
                    li { (allowed.finding.rule.code) " " (allowed.finding.message) ": " (allowed.reason) }
                }
            }
        }
    }
}

fn document_diagnostics(subject: &Subject, file: &ChangeFile, name: &str) -> Markup {
    let (text, found) = subject.diagnostics(file);
    let address = subject.document_address(file);
    html! {
        @for diagnostic in found.iter().take(SHOWN_DIAGNOSTICS) {
            @let line = agentd_core::span::line_column(text, diagnostic.span.start).0;
            li {
                (severity(diagnostic.severity())) " "
                a href={ (address) "?view=source#L" (line) } { (name) ":" (line) }
                " " (diagnostic.message)
            }
        }
    }
}

/// Findings about files that have no page, such as a stray one among the specs.
fn stray_diagnostics(subject: &Subject) -> Markup {
    let documents = subject.titles();
    let has_page = |report: &FileReport| {
        report.file.in_change().is_some_and(|file| documents.iter().any(|(known, _)| known == file))
    };
    let stray = subject.reports.iter().filter(|report| !has_page(report));
    html! {
        @for report in stray {
            @for diagnostic in report.diagnostics.iter().take(SHOWN_DIAGNOSTICS) {
                li {
                    (severity(diagnostic.severity())) " "
                    code { (report.file.path().rsplit('/').next().unwrap_or_default()) }
                    " " (diagnostic.message)
                }
            }
        }
    }
}

fn timeline(state: &State) -> Markup {
    html! {
        @if let Some(svg) = charts::timeline(&state.llm_calls) {
            section.panel {
                h2 { "Timeline" }
                (scroll_box("scroll", "Timeline", &svg))
            }
        }
    }
}

/// What people have decided.
fn history(state: &State) -> Markup {
    html! {
        @if !state.decisions.is_empty() {
            section.panel {
                h2 { "Decisions" }
                ul.plain {
                    @for decision in state.decisions.iter().rev() {
                        li {
                            (time(decision.at)) " " (choice_name(decision.choice))
                            " by " (decision.by) (note_of(decision))
                        }
                    }
                }
            }
        }
    }
}
