//! The tab of reviews: one row per finding over the rounds of plan and code, what was done about it,
//! and what people reply.

use agentd_core::diagnostic::Severity;
use agentd_core::document::comments::{Anchor, Commented};
use agentd_core::document::issue_fate::{Fate, IssueFate};
use agentd_core::document::review::CodeVerdict;
use agentd_core::document::review_block::Issue;
use agentd_core::issue_places::{self, Place};
use agentd_core::layout::ChangeFile;
use agentd_core::stamp::Stamp;
use agentd_core::text::{Line, Prose};
use agentd_engine::agents::redact::Redactor;
use agentd_engine::insight::diff;
use maud::{Markup, html};

use super::answers::Answers;
use super::comments::thread;
use super::frame::{ChangePage, Tab};
use super::next::{choice_name, note_of};
use crate::App;
use crate::findings::{on_code, over_rounds};
use crate::html::{count, query_value, severity, time};
use crate::markdown;
use crate::routes::View;
use crate::subject::Subject;
use crate::task_graph;

/// Whether a finding is about the plan or the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Plan,
    Code,
}

impl About {
    fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Code => "code",
        }
    }

    /// The document with the finding.
    fn document(self) -> ChangeFile {
        match self {
            Self::Plan => ChangeFile::Proposal,
            Self::Code => ChangeFile::Review,
        }
    }
}

/// The place of an issue on the page, which is the same in every round; `document` has the review.
pub(super) fn issue_anchor(document: &ChangeFile, number: u32) -> String {
    let prefix = if *document == ChangeFile::Review { "code-" } else { "" };
    format!("{prefix}I{number}")
}

/// The address of an issue, settled or not.
pub(super) fn issue_address(subject: &Subject, document: &ChangeFile, number: u32) -> String {
    format!("{}/review?show=all#{}", subject.address(), issue_anchor(document, number))
}

/// A finding, and what a round said of it.
struct Row<'s> {
    about: About,
    finding: IssueFate<'s>,
    /// The weight that it had in each round.
    weights: Vec<Option<Severity>>,
    /// Who reported it first, and when.
    by: &'s Line,
    at: Option<Stamp>,
}

impl Row<'_> {
    fn anchor(&self) -> String {
        issue_anchor(&self.about.document(), self.finding.issue.number)
    }

    fn places(&self, subject: &Subject) -> Vec<Place> {
        issue_places::named(self.finding.issue.location.as_str(), subject.documents())
    }
}

/// A round of review, of plan or code.
struct ShownRound<'s> {
    about: About,
    number: u32,
    reviewer: &'s Line,
    at: Option<Stamp>,
    verdict: Option<&'static str>,
    summary: &'s Prose,
    issues: &'s [Issue],
}

fn rounds(subject: &Subject) -> Vec<ShownRound<'_>> {
    let plan = subject.proposal().reviews.iter().map(|review| ShownRound {
        about: About::Plan,
        number: review.iteration,
        reviewer: &review.reviewer,
        at: review.date,
        verdict: Some(review.verdict.label()),
        summary: &review.summary,
        issues: &review.issues,
    });
    let code = subject.code_rounds().reviews.iter().map(|review| ShownRound {
        about: About::Code,
        number: review.iteration,
        reviewer: &review.reviewer,
        at: review.created_at,
        verdict: review.verdict.map(CodeVerdict::label),
        summary: &review.summary,
        issues: &review.issues,
    });
    plan.chain(code).collect()
}

fn rows<'s>(subject: &'s Subject, rounds: &[ShownRound<'s>]) -> Vec<Row<'s>> {
    let plan = over_rounds(&subject.proposal().reviews).into_iter().map(|it| (About::Plan, it));
    let code = on_code(subject).into_iter().map(|it| (About::Code, it));
    let row = |(about, finding): (About, IssueFate<'s>)| {
        let number = finding.issue.number;
        let own = rounds.iter().filter(|round| round.about == about);
        let found = |round: &ShownRound<'s>| round.issues.iter().find(|it| it.number == number);
        let weights = own.clone().map(|round| found(round).map(|it| it.severity)).collect();
        let first = own.clone().find(|round| found(round).is_some())?;
        Some(Row { about, finding, weights, by: first.reviewer, at: first.at })
    };
    let mut rows: Vec<Row<'s>> = plan.chain(code).filter_map(row).collect();
    rows.sort_by_key(|row| (row.finding.fate.is_settled(), row.finding.issue.severity));
    rows
}

pub(crate) fn review(app: &App, subject: &Subject, view: &View) -> Markup {
    let rounds = rounds(subject);
    let rows = rows(subject, &rounds);
    let here = format!("{}/review", subject.address());
    let open = rows.iter().filter(|row| !row.finding.fate.is_settled()).count();
    let show = match view.show.as_str() {
        "open" | "settled" | "all" => view.show.as_str(),
        _ if open > 0 => "open",
        _ => "all",
    };
    let is_about = |about: About| !matches!(&*view.of, "plan" | "code") || about.name() == view.of;
    let wanted = |row: &&Row<'_>| {
        let settled = row.finding.fate.is_settled();
        let state = match show {
            "open" => !settled,
            "settled" => settled,
            _ => true,
        };
        let on = view.on.is_empty()
            || row.places(subject).iter().any(|place| place.file().path().as_str() == view.on);
        state && is_about(row.about) && on
    };
    let shown: Vec<&Row<'_>> = rows.iter().filter(wanted).collect();
    let mut answers = Answers::new(subject, &app.redactor);
    let body = html! {
        div data-live="review" {
            @if rounds.is_empty() {
                p.empty { "Nothing has been reviewed yet." }
            } @else {
                (filters(subject, &here, show, view, &rows))
                @if shown.is_empty() {
                    p.empty { "No findings here. " a href={ (here) "?show=all" } { "Show all" } }
                }
                div.rows {
                    @for row in shown { (finding(subject, row, &mut answers)) }
                }
                h2 { "Rounds" }
                @for (index, round) in rounds.iter().rev().filter(|round| is_about(round.about)).enumerate() {
                    (round_block(subject, round, index == 0))
                }
            }
            (decisions(subject))
        }
        (super::comments::template(subject))
    };
    ChangePage { tab: Tab::Review, title: "Review", here: Some(&here), body }.render(app, subject)
}

/// All findings, rounds and decisions, without anything to press.
pub(super) fn static_review(subject: &Subject) -> Markup {
    let rounds = rounds(subject);
    // Secrets are taken out of the whole page.
    let redactor = Redactor::new(&[]);
    let mut answers = Answers::new(subject, &redactor);
    html! {
        @if rounds.is_empty() { p.empty { "Nothing has been reviewed yet." } }
        div.rows { @for row in rows(subject, &rounds) { (finding(subject, &row, &mut answers)) } }
        @for round in &rounds { (round_block(subject, round, true)) }
        (decisions(subject))
    }
}

/// What is listed, as links.
fn filters(subject: &Subject, here: &str, show: &str, view: &View, rows: &[Row<'_>]) -> Markup {
    let address = |show: &str, of: &str, on: &str| {
        let mut query = format!("?show={show}");
        for (name, value) in [("of", of), ("on", on)] {
            if !value.is_empty() {
                query.push_str(&format!("&{name}={}", query_value(value)));
            }
        }
        format!("{here}{query}")
    };
    let settled = rows.iter().filter(|row| row.finding.fate.is_settled()).count();
    let states = [("open", rows.len() - settled), ("settled", settled), ("all", rows.len())];
    let has = |about: About| rows.iter().any(|row| row.about == about);
    let mut documents: Vec<String> = rows
        .iter()
        .flat_map(|row| row.places(subject))
        .map(|place| place.file().path().to_string())
        .collect();
    documents.sort();
    documents.dedup();
    let current = |is: bool| is.then_some("true");
    html! {
        div.filters {
            span.switch role="group" aria-label="State" {
                @for (name, number) in states {
                    a href=(address(name, &view.of, &view.on)) aria-current=[current(show == name)] {
                        (name) " " (count(number))
                    }
                }
            }
            @if has(About::Plan) && has(About::Code) {
                span.switch role="group" aria-label="Of" {
                    @for (name, label) in [("", "plan and code"), ("plan", "plan"), ("code", "code")] {
                        a href=(address(show, name, &view.on)) aria-current=[current(view.of == name)] {
                            (label)
                        }
                    }
                }
            }
            @if documents.len() > 1 {
                form action=(here) data-auto {
                    input type="hidden" name="show" value=(show);
                    input type="hidden" name="of" value=(view.of);
                    label {
                        "In " select name="on" {
                            option value="" { "all documents" }
                            @for document in &documents {
                                option selected[*document == view.on] { (document) }
                            }
                        }
                    }
                    button.small { "Show" }
                }
            }
        }
    }
}

fn finding(subject: &Subject, row: &Row<'_>, answers: &mut Answers<'_>) -> Markup {
    let Issue { number, title, severity: weight, description, recommendation, location } =
        row.finding.issue;
    let fate = row.finding.fate;
    let on = Commented::Document(row.about.document());
    let at = Anchor::Issue(*number);
    let replies: Vec<_> = subject.comments_on(&on).filter(|comment| comment.at == at).collect();
    html! {
        details.row.settled[fate.is_settled()] id=(row.anchor()) data-stop {
            summary {
                (severity(*weight)) " "
                strong { "I" (number) } " " span.title { (title) } " "
                (weights(row))
                span.badge.{ "fate-" (fate.name()) } { (fate.name()) }
                @if row.about == About::Code { " " span.badge { "code" } }
                @if !replies.is_empty() { " " span.count.accent { (replies.len()) } }
            }
            div.row-body {
                p.facts {
                    span { (row.by) @if let Some(at) = row.at { " " (time(at)) } }
                    @if !location.is_empty() { span { "at " (place_links(subject, row)) } }
                }
                div.prose { (markdown::fragment(description.as_str())) }
                @if !recommendation.is_empty() {
                    div.prose.recommendation {
                        p { strong { "Recommendation" } }
                        (markdown::fragment(recommendation.as_str()))
                    }
                }
                @if let Some(reason) = row.finding.reason {
                    p { strong { (capitalized(fate.name())) } ": " (reason) }
                }
                (answer(subject, row, answers))
                @for reply in &replies { (thread(subject, reply, false)) }
                @if subject.is_open() {
                    form.reply method="post" action={ (subject.address()) "/comments" } data-send
                        data-draft={ "issue " (row.anchor()) } {
                        input type="hidden" name="on" value=(on);
                        input type="hidden" name="at" value=(at);
                        label {
                            "Reply "
                            span.quiet {
                                @match row.about {
                                    About::Plan => { "(given to the planner with the finding)" }
                                    About::Code => { "(given to the implementer with the finding)" }
                                }
                            }
                            textarea name="text" rows="2" required maxlength="8000" {}
                        }
                        button.small { "Reply" }
                    }
                }
            }
        }
    }
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default() + chars.as_str()
}

/// How much a finding weighed in each round, and what became of it.
fn weights(row: &Row<'_>) -> Markup {
    html! {
        span.weights {
            @for (index, (fate, weight)) in row.finding.rounds.iter().zip(&row.weights).enumerate() {
                @let (mark, what) = match fate {
                    None => ("·", "not found yet"),
                    Some(Fate::New | Fate::Open) => ("●", "found"),
                    Some(Fate::Regression) => ("●", "found again: a regression"),
                    Some(Fate::Unconfirmed) => ("?", "not mentioned"),
                    Some(Fate::Fixed) => ("✓", "fixed"),
                    Some(Fate::Rejected) => ("×", "rejected"),
                    Some(Fate::Deferred) => ("→", "deferred"),
                };
                @let class = weight.map_or("", |weight| weight.label());
                span.weight.(class.to_lowercase())
                    title={ "round " (index + 1) ": " (what) @if !class.is_empty() { ", " (class) } } {
                    span aria-hidden="true" { (mark) }
                    span.visually-hidden { "round " (index + 1) ": " (what) " " (class) ". " }
                }
            }
        }
    }
}

/// The places that a finding names, as links.
fn place_links(subject: &Subject, row: &Row<'_>) -> Markup {
    let places = row.places(subject);
    let location = &row.finding.issue.location;
    let base = subject.address();
    if row.about == About::Code {
        return html! { a href={ (base) "/code" (code_anchor(location.as_str())) } { (location) } };
    }
    if places.is_empty() {
        return html! { (location) };
    }
    html! {
        @for (index, place) in places.iter().enumerate() {
            @if index > 0 { ", " }
            @let address = subject.document_address(&place.file());
            @match place {
                Place::Requirement(spec, id) => { a href={ (address) "#" (id) } { (spec) ":" (id) } }
                Place::Task(id) => { a href={ (address) "#" (task_graph::anchor(*id)) } { "task " (id) } }
                Place::File(file) => { a href=(address) { (file.path()) } }
            }
        }
    }
}

/// The file that a location such as `src/a.rs:12` names.
fn file_of(location: &str) -> &str {
    location.split([':', ' ', ',']).next().unwrap_or_default()
}

/// The place of a file on the page of code.
fn code_anchor(location: &str) -> String {
    let path = file_of(location);
    if path.is_empty() { String::new() } else { format!("#{}", super::code::file_anchor(path)) }
}

/// What has changed where the finding points, since it was last found.
fn answer(subject: &Subject, row: &Row<'_>, answers: &mut Answers<'_>) -> Markup {
    let is_settled = row.finding.fate.is_settled();
    let Some(found) = row.weights.iter().rposition(Option::is_some) else { return html! {} };
    match row.about {
        About::Plan => answers.in_plan(found, &row.places(subject), is_settled),
        About::Code => {
            answers.in_code(found, file_of(row.finding.issue.location.as_str()), is_settled)
        }
    }
}

fn round_block(subject: &Subject, round: &ShownRound<'_>, is_last: bool) -> Markup {
    let verdict = round.verdict.unwrap_or("no verdict");
    let class = match verdict {
        "APPROVED" => "good",
        "REJECTED" | "MAJOR_ISSUES" => "high",
        _ => "medium",
    };
    let number = round.number;
    html! {
        details.round open[is_last] id={ (round.about.name()) "-round-" (number) } data-stop {
            summary {
                strong { (capitalized(round.about.name())) ", round " (number) } " "
                span.badge.(class) { (verdict.replace('_', " ")) } " "
                span.quiet { (round.reviewer) @if let Some(at) = round.at { " " (time(at)) } }
            }
            div.prose { (markdown::fragment(round.summary.as_str())) }
            @if !round.issues.is_empty() {
                p.quiet {
                    "Found: "
                    @for (index, issue) in round.issues.iter().enumerate() {
                        @if index > 0 { ", " }
                        @let document = round.about.document();
                        a href=(issue_address(subject, &document, issue.number)) { "I" (issue.number) }
                    }
                }
            }
            @if round.about == About::Plan
                && !subject.is_for_others()
                && diff::rounds(subject.snapshot()).contains(&number)
            {
                p {
                    a href={ (subject.address()) "/proposal?view=changes&from=" (number) } {
                        "What changed since then"
                    }
                }
            }
        }
    }
}

/// What people have decided.
fn decisions(subject: &Subject) -> Markup {
    let made = subject.state().map_or(&[][..], |state| &state.decisions);
    html! {
        @if !made.is_empty() {
            h2 { "Decisions" }
            ul.plain {
                @for decision in made.iter().rev() {
                    li {
                        (time(decision.at)) " " strong { (choice_name(decision.choice)) }
                        " by " (decision.by) (note_of(decision))
                    }
                }
            }
        }
    }
}
