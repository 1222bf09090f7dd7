//! What every page of a change has: its head, what is next, and the tabs.

use agentd_core::document::review::CodeVerdict;
use agentd_core::document::review_block::PlanVerdict;
use agentd_core::phase::Phase;
use agentd_core::state::{Choice, State, TestRun};
use agentd_core::text::counted;
use maud::{Markup, html};

use super::fleet;
use super::next::next_bar;
use crate::App;
use crate::findings;
use crate::html::{Page, count, dollars, progress, time, with_code};
use crate::live::Position;
use crate::subject::Subject;

/// The tabs of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Plan,
    Review,
    Code,
    Runs,
}

/// A page of a change.
pub(super) struct ChangePage<'a> {
    pub(super) tab: Tab,
    /// What the page is about, for the title of the window.
    pub(super) title: &'a str,
    /// Its address, for the way to it; none for the first page.
    pub(super) here: Option<&'a str>,
    pub(super) body: Markup,
}

impl ChangePage<'_> {
    pub(super) fn render(self, app: &App, subject: &Subject) -> Markup {
        self.render_from(app, subject, subject.seen)
    }

    /// The same, of which the runs are shown up to a place.
    pub(super) fn render_from(
        self,
        app: &App,
        subject: &Subject,
        shown: Option<Position>,
    ) -> Markup {
        let base = subject.address();
        let body = html! {
            (head(subject))
            @if let Some(problem) = &subject.problem {
                p.alert role="alert" { (with_code(problem)) }
            }
            (fleet::of_change(app, subject))
            (next_bar(app, subject))
            (tabs(subject, self.tab))
            div.content { (self.body) }
        };
        let title = format!("{} · {}", self.title, subject.id());
        let mut crumbs = Vec::new();
        if subject.is_archived() {
            crumbs.push(("Archive", "/archive".to_owned()));
        }
        crumbs.push((subject.id().as_str(), base.clone()));
        crumbs.extend(self.here.map(|here| (self.title, here.to_owned())));
        let follow = shown
            .filter(|_| subject.is_open())
            .map(|position| format!("{base}/live?after={position}"));
        Page { app, title: &title, crumbs: &crumbs, follow, body }.render()
    }
}

/// The phases in the life of a change, in order.
const LIFE: [Phase; 5] =
    [Phase::Proposed, Phase::Challenged, Phase::Implementing, Phase::Complete, Phase::Archived];

/// A phase as people call it.
pub(super) fn phase_name(phase: Phase) -> &'static str {
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
    let state = subject.state();
    let branch = state.and_then(|state| state.git.as_ref()?.branch.as_deref());
    html! {
        header.change-head data-live="head" {
            div.title-line {
                h1 { (subject.title()) }
                (share(subject))
            }
            p.facts {
                code { (subject.id()) }
                @if let Some(branch) = branch { span { "on " code { (branch) } } }
                (plan_badge(subject))
                (code_badge(subject))
                (progress(subject.completed(), subject.tasks().len()))
                @if let Some(state) = state {
                    span { (dollars(state.total_cost)) }
                    @if let Some(at) = state.updated_at { span { "updated " (time(at)) } }
                }
            }
            (life(subject.phase()))
        }
    }
}

/// The forms in which a change can be given to others.
fn share(subject: &Subject) -> Markup {
    let base = subject.address();
    html! {
        details.menu {
            summary { "Share" }
            ul {
                li { a href={ (base) "/export.html" } download { "One page of HTML" } }
                li { a href={ (base) "/export.md" } { "Markdown for a pull request" } }
            }
        }
    }
}

/// The phases, with the current one marked. A rejected plan takes the place of an approved one.
pub(super) fn life(phase: Option<Phase>) -> Markup {
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

/// What was said of the plan, as it counts now.
pub(super) fn plan_badge(subject: &Subject) -> Markup {
    let documents = subject.documents();
    let Some(state) = subject.state() else { return html! { span.badge { "plan: new" } } };
    let Some(known) = &state.plan_review else {
        return html! { span.badge { "plan: not challenged yet" } };
    };
    if known.plan_hash != documents.digest() && !subject.is_archived() {
        return html! { span.badge.medium { "plan: edited since its review" } };
    }
    let round = known.iteration.saturating_add(1);
    let (class, words) = match (state.phase, known.verdict) {
        (_, PlanVerdict::Rejected) => ("high", "plan: rejected".to_owned()),
        (Phase::Proposed, PlanVerdict::NeedsRevision) => {
            ("medium", "plan: needs revision".to_owned())
        }
        (_, PlanVerdict::NeedsRevision) => ("good", format!("plan: {}", accepted(subject, state))),
        (_, PlanVerdict::Approved) => ("good", "plan: approved".to_owned()),
    };
    html! {
        span.badge.(class) title={ "by " (known.reviewer) ", round " (round) } { (words) }
    }
}

/// How a plan with issues was accepted.
fn accepted(subject: &Subject, state: &State) -> String {
    let review = subject.documents().counted_review(state);
    let issues = review.map_or(0, |review| review.issues.len());
    let by = state.decisions.iter().rfind(|made| made.choice == Choice::Accept);
    let by = by.map(|made| format!(" by {}", made.by)).unwrap_or_default();
    match issues {
        0 => format!("accepted{by}"),
        1 => format!("accepted with 1 minor issue{by}"),
        issues => format!("accepted with {issues} minor issues{by}"),
    }
}

/// What was said of the code, as it counts now.
pub(super) fn code_badge(subject: &Subject) -> Markup {
    let Some(state) = subject.state() else { return html! {} };
    let is_stale = subject
        .position()
        .is_some_and(|position| position.stale.iter().any(|stale| stale.what == "code"));
    let tests = state.test_run.as_ref().map(TestRun::passed);
    html! {
        @if let Some(review) = &state.code_review {
            @let (class, words) = match review.verdict {
                _ if is_stale => ("medium", "code: edited since its review"),
                CodeVerdict::Approved => ("good", "code: approved"),
                CodeVerdict::NeedsFix => ("medium", "code: needs fixing"),
                CodeVerdict::MajorIssues => ("high", "code: major issues"),
            };
            span.badge.(class) title={ "by " (review.reviewer) ", round " (review.iteration) } {
                (words)
            }
        }
        @match tests {
            Some(true) => { span.badge.good { "tests passed" } }
            Some(false) => { span.badge.high { "tests failed" } }
            None => {}
        }
    }
}

fn tabs(subject: &Subject, current: Tab) -> Markup {
    let base = subject.address();
    let counts = subject.finding_counts();
    let (open, settled) = findings::totals(subject);
    let calls = subject.state().map_or(0, |state| state.llm_calls.len());
    let calls = calls.max(subject.runs().map_or(0, <[_]>::len));
    let specs = subject.specs().count();
    let tab = |tab: Tab, page: &str, name: &str, more: &Markup| {
        html! {
            a href={ (base) (page) } aria-current=[(tab == current).then_some("page")] {
                span.name { (name) }
                span.more { (more) }
            }
        }
    };
    html! {
        nav.tabs aria-label="Pages of this change" data-live="tabs" {
            (tab(Tab::Plan, "", "Plan", &html! {
                @if specs > 0 { (counted(specs, "spec")) ", " }
                (counted(subject.tasks().len(), "task"))
                @if counts.high + counts.medium > 0 {
                    " " span.count.warn title="findings of validate" { (counts.high + counts.medium) }
                }
            }))
            (tab(Tab::Review, "/review", "Review", &html! {
                @if open + settled == 0 { "–" } @else { (open) " open, " (settled) " settled" }
                @let comments = subject.comments.open().count();
                @if comments > 0 { " " span.count.accent title="open comments" { (comments) } }
            }))
            (tab(Tab::Code, "/code", "Code", &html! {
                @if subject.completed() == 0 { "–" } @else {
                    (subject.completed()) "/" (subject.tasks().len()) " tasks"
                }
            }))
            (tab(Tab::Runs, "/runs", "Runs", &html! {
                @if calls == 0 { "–" } @else { (count(calls)) }
            }))
        }
    }
}
