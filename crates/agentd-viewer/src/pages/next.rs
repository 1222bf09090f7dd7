//! What is next for a change, and how to do it: the bar on each of its pages. What comes next is said
//! by the same function as `agentd status` uses.

use agentd_core::document::comments::Comment;
use agentd_core::document::review_block::ReviewBlock;
use agentd_core::layout::ChangeFile;
use agentd_core::next_step::NextStep;
use agentd_core::phase::Phase;
use agentd_core::standing::Standing;
use agentd_core::state::{Choice, Decision, LlmCall, Placement, State};
use agentd_core::text::counted;
use agentd_engine::archive::Totals;
use agentd_engine::change::comments;
use agentd_engine::change::position::{Position, Running};
use agentd_engine::workflow::background::{
    self, BackgroundCommand, BackgroundFailure, BackgroundOutcome, BackgroundRun,
};
use agentd_engine::workflow::decisions;
use maud::{Markup, html};

use super::questions::{agent_question_form, questions_form};
use super::review::issue_address;
use crate::App;
use crate::html::{command, dollars, elapsed, sentence, severity, time, with_code};
use crate::subject::Subject;

/// The bar. There always is one.
pub(super) fn next_bar(app: &App, subject: &Subject) -> Markup {
    let Some(position) = subject.position() else {
        return html! {
            section.next.bad data-live="next" aria-label="What is next" {
                p { strong.label { "Unreadable" } " Repair STATE.yaml, or restore it from git." }
                div.actions { (command(&format!("agentd verify {}", subject.id()))) }
            }
        };
    };
    let (class, body) = match (&position.running, starting(app, subject)) {
        (Some(running), _) => ("live", running_now(app, subject, running)),
        (None, Some(run)) => (
            "live",
            html! {
                p {
                    strong.label { "Running" } " " code { (run.command.step(subject.id())) }
                    " · " (elapsed(run.started_at))
                }
            },
        ),
        (None, None) => at_rest(app, subject, position),
    };
    html! {
        section.next.(class) data-live="next" aria-label="What is next" { (body) }
    }
}

/// A command that was started from here and has not locked the change yet, or not ended quite yet.
fn starting(app: &App, subject: &Subject) -> Option<BackgroundRun> {
    let run = background::last(&app.project, subject.id()).ok().flatten();
    run.filter(|run| subject.is_open() && run.outcome == BackgroundOutcome::Running)
}

/// What works on it now.
fn running_now(app: &App, subject: &Subject, running: &Running) -> Markup {
    let state = subject.state();
    let budget = app.budget().max_cost_usd;
    html! {
        p {
            strong.label { "Running" } " "
            @match &running.step {
                Some(step) => { (step) }
                None => { (running.command) }
            }
            @if let Some(agent) = running.agent { " with " (agent.name()) }
            " · " (elapsed(running.since))
            @if let Some(state) = state {
                " · " (dollars(state.total_cost))
                @if let Some(budget) = budget { " of " (dollars(budget)) }
            }
        }
        div.actions {
            a.button href={ (subject.address()) "/runs#live" } { "Watch" }
            @if app.acts && background::CAN_STOP {
                form method="post" action={ (subject.address()) "/stop" } data-send {
                    button.danger { "Stop" }
                }
            }
            span.quiet { code { (running.command) } ", process " (running.pid) }
        }
    }
}

fn at_rest(app: &App, subject: &Subject, position: &Position) -> (&'static str, Markup) {
    let state = subject.state();
    let failure = failure(app, subject);
    let asked = state
        .filter(|_| subject.is_open())
        .filter(|state| decisions::open_question(state, subject.documents()).is_ok());
    let review = asked.and_then(|state| subject.documents().counted_review(state));
    let questions = subject.is_open().then(|| questions_form(app, subject)).flatten();
    let asks = questions.is_some();
    let waiting = state.filter(|_| subject.is_open()).and_then(|state| state.open_question());
    let course = &position.course;
    let class = match course.standing {
        _ if failure.is_some() => "bad",
        Standing::Waiting | Standing::Stale => "waits",
        Standing::Running => "live",
        Standing::Ready | Standing::Unfinished => "ready",
        Standing::Done => "done",
    };
    let label = match course.standing {
        _ if failure.is_some() => "Failed",
        Standing::Waiting => "Waits for you",
        Standing::Stale => "Stale",
        Standing::Ready | Standing::Running => "Next",
        Standing::Unfinished => "Unfinished",
        Standing::Done => "Done",
    };
    let body = html! {
        @if let Some(failure) = failure { (failure.shown(app, subject)) } @else {
            p { strong.label { (label) } " " (sentence(course.why)) "." }
        }
        @if let Some(problem) = &position.record { p.alert role="alert" { (with_code(problem)) } }
        @if !position.stale.is_empty() {
            ul.stale {
                @for stale in &position.stale { li { code { (stale.what) } ": " (stale.why) } }
            }
        }
        @if let Some(question) = waiting {
            (agent_question_form(app, subject, question))
        } @else if let (Some(state), Some(review)) = (asked, review) {
            (decision_form(app, subject, state, review))
        } @else if let Some(questions) = questions {
            (questions)
        }
        (steps(app, subject, &course.next, review.is_some(), asks))
        (open_comments(subject))
        (revise_form(subject))
    };
    (class, body)
}

/// Why the last thing that was done has failed.
enum Failure<'s> {
    /// What was started from here.
    Command(BackgroundCommand, BackgroundFailure),
    /// The last call of an agent.
    Call(&'s LlmCall),
}

fn failure<'s>(app: &App, subject: &'s Subject) -> Option<Failure<'s>> {
    let state = subject.state();
    let run = background::last(&app.project, subject.id()).ok().flatten();
    let run = run.filter(|_| subject.is_open());
    if let Some(run) = run
        && let BackgroundOutcome::Failed(failure) = run.outcome
    {
        // Somebody has gone on with it since.
        let updated = state.and_then(|state| state.updated_at);
        let is_old =
            updated.zip(run.ended_at).is_some_and(|(updated, ended)| updated.moment() > ended);
        if !is_old && failure.kind != "interrupted" {
            return Some(Failure::Command(run.command, failure));
        }
    }
    let last = state.and_then(|state| state.llm_calls.last());
    last.filter(|call| call.failure.is_some() && subject.is_open()).map(Failure::Call)
}

impl Failure<'_> {
    fn shown(&self, app: &App, subject: &Subject) -> Markup {
        match self {
            Self::Command(command, failure) => html! {
                p {
                    strong.label { "Failed" } " " code { (command.step(subject.id())) } ": "
                    (with_code(&failure.message))
                }
                @if let Some(cause) = &failure.cause { pre.cause { (cause) } }
                @for hint in &failure.hints { p.hint { (hint) } }
                @if app.acts && failure.kind == "above_ask_limit" {
                    (run_form(subject, BackgroundCommand::PlanAtThisCost, "primary", &html! {}))
                }
            },
            Self::Call(call) => {
                let words = call.failure.map_or("failed", |failure| failure.words());
                html! {
                    p {
                        strong.label { "Failed" } " " (call.step)
                        @if let Some(agent) = call.agent { " with " (agent.name()) }
                        ": " (words) ". "
                        @if let Some(name) = transcript(subject, call) {
                            a href={ (subject.address()) "/runs/" (name) } { "What it said" }
                        }
                    }
                }
            }
        }
    }
}

/// The record of a call.
fn transcript(subject: &Subject, call: &LlmCall) -> Option<String> {
    let runs = subject.runs().ok()?;
    let found = runs.iter().find(|run| Some(run.number()) == call.run)?;
    Some(found.to_string())
}

/// Whether a command can be started now: it is one of those that come next, nothing runs, and no
/// decision of a person comes first.
pub(crate) fn is_startable(app: &App, subject: &Subject, command: BackgroundCommand) -> bool {
    let Some(position) = subject.position().filter(|_| subject.is_open()) else { return false };
    if position.running.is_some() {
        return false;
    }
    let asked = failure(app, subject).is_some_and(|failure| match failure {
        Failure::Command(_, failure) => failure.kind == "above_ask_limit",
        Failure::Call(_) => false,
    });
    if asked && command == BackgroundCommand::PlanAtThisCost {
        return true;
    }
    let is_next = |step: &NextStep| BackgroundCommand::of(step, subject.id()) == Some(command);
    position.course.next.iter().any(is_next) && !waits_for_decision(subject)
}

/// Whether a decision has to be made first. Once changes were requested, the plan can be revised.
fn waits_for_decision(subject: &Subject) -> bool {
    let Some(state) = subject.state() else { return false };
    if decisions::open_question(state, subject.documents()).is_err() {
        return false;
    }
    let review = subject.documents().counted_review(state);
    let made = review.and_then(|review| decided_since(state, review));
    made.is_none_or(|made| made.choice != Choice::Fix)
}

/// The commands that take it on: to start, where that is allowed, and to copy.
fn steps(app: &App, subject: &Subject, next: &[NextStep], decides: bool, asks: bool) -> Markup {
    let id = subject.id();
    let runnable: Vec<BackgroundCommand> =
        next.iter().filter_map(|step| BackgroundCommand::of(step, id)).collect();
    // What was asked is there to be answered.
    let runnable: Vec<BackgroundCommand> = runnable
        .into_iter()
        .filter(|command| !asks || *command != BackgroundCommand::Clarify)
        .collect();
    let archives = runnable.contains(&BackgroundCommand::Archive);
    html! {
        @if archives && let Ok(deltas) = subject.deltas() {
            @let totals = Totals::of_touched(deltas.iter().map(|delta| &delta.touched));
            p {
                "Archiving changes " (counted(totals.specs, "main spec")) ": "
                (counted(totals.added, "requirement")) " added, " (totals.edited) " edited, "
                (totals.removed) " removed. "
                a href={ (subject.address()) "/archive" } { "Preview" }
            }
        }
        @if subject.is_open() { (untrusted(app)) }
        div.actions {
            @if app.acts && subject.is_open() && !waits_for_decision(subject) && app.is_trusted() {
                @for (index, command) in runnable.iter().enumerate() {
                    @let class = if index == 0 && !asks { "primary" } else { "" };
                    @let place = if index == 0 { placement(app, subject, *command) } else { html! {} };
                    (run_form(subject, *command, class, &place))
                }
            }
            @for (index, step) in next.iter().enumerate() {
                span.terminal {
                    @if index == 0 && decides { "then " }
                    @else if index > 0 { "or " }
                    @else if app.acts { "in a terminal " }
                    (command(&step.to_string()))
                }
            }
        }
    }
}

/// What to do first where commands can be started and none of them would run.
pub(super) fn untrusted(app: &App) -> Markup {
    html! {
        @if app.acts && !app.is_trusted() {
            div.alert.mild {
                p { "The settings of this project run programs, and you have not agreed to that yet. Until you do, no command can be started from here. In a terminal, run:" }
                (command("agentd trust"))
            }
        }
    }
}

/// A button that starts a command.
pub(super) fn run_form(
    subject: &Subject,
    command: BackgroundCommand,
    class: &str,
    more: &Markup,
) -> Markup {
    html! {
        form.run method="post" action={ (subject.address()) "/run" } data-send {
            (more)
            button.(class) name="command" value=(command.name()) { (command.label()) }
        }
    }
}

/// Where to work, for a change that is nowhere yet.
pub(super) fn placement(app: &App, subject: &Subject, command: BackgroundCommand) -> Markup {
    let is_placed = subject.state().is_some_and(|state| state.git.is_some());
    let has_git = subject.home().root().join(".git").exists();
    let said = background::last(&app.project, subject.id()).ok().flatten();
    let said = said.and_then(|run| run.placement);
    html! {
        @if command.takes_placement() && !is_placed && has_git {
            label {
                "Work "
                select name="placement" {
                    @for placement in Placement::ALL {
                        option value=(placement.name()) selected[said == Some(placement)] {
                            (placement_words(placement))
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn placement_words(placement: Placement) -> &'static str {
    match placement {
        Placement::Branch => "on a branch of its own",
        Placement::Worktree => "in a worktree of its own",
        Placement::InPlace => "in this checkout",
    }
}

/// The decision that a plan waits for.
fn decision_form(app: &App, subject: &Subject, state: &State, review: &ReviewBlock) -> Markup {
    let counts = review.counts();
    let refused = decisions::accepted(state, subject.documents()).err();
    let why_not = refused.map(|refused| refused.reason.unwrap_or("its phase does not allow it"));
    let comments = subject.comments.open().count();
    let decided = decided_since(state, review);
    let form = html! {
        form.decision method="post" action={ (subject.address()) "/decide" } data-send
            data-draft="decision" {
            input type="hidden" name="seen" value=(decisions::seen(subject.documents(), review));
            p {
                "Round " (review.iteration) " of " (review.reviewer) " ended with "
                strong { (review.verdict.label().replace('_', " ")) }
                ": " (counts.high) " high, " (counts.medium) " medium, " (counts.low) " low."
                @if comments > 0 { " " (counted(comments, "comment")) " open." }
            }
            @if why_not.is_none() && !review.issues.is_empty() {
                details {
                    summary { "What you accept" }
                    ul.findings {
                        @for issue in &review.issues {
                            li {
                                (severity(issue.severity)) " "
                                a href=(issue_address(subject, &ChangeFile::Proposal, issue.number)) {
                                    "I" (issue.number) " " (issue.title)
                                }
                            }
                        }
                    }
                }
            }
            label {
                "What the planner should know "
                textarea name="note" rows="2" maxlength="4000"
                    placeholder="Given to the planner with the issues and open comments" {}
            }
            @if app.acts {
                label.check {
                    input type="checkbox" name="run" value="1" checked;
                    " Revise the plan right away when changes are requested"
                }
            }
            div.actions {
                button.primary[decided.is_none()] name="choice" value="fix" { "Request changes" }
                @if why_not.is_none() {
                    button name="choice" value="accept" { (accept_label(review)) }
                }
                button name="choice" value="stop" { "Stop here" }
            }
            @if let Some(why) = why_not {
                p.quiet { "The plan cannot be accepted: " (why) "." }
            }
        }
    };
    html! {
        @if let Some(decision) = decided {
            p.decided {
                "Decided: " strong { (choice_name(decision.choice)) }
                " by " (decision.by) " " (time(decision.at)) (note_of(decision))
            }
            details.other #decide-again { summary { "Decide again" } (form) }
        } @else { (form) }
    }
}

/// The last decision, if it was made after this review.
fn decided_since<'s>(state: &'s State, review: &ReviewBlock) -> Option<&'s Decision> {
    let decision = state.last_decision()?;
    (decision.at.moment() >= review.date?.moment()).then_some(decision)
}

fn accept_label(review: &ReviewBlock) -> String {
    match review.issues.len() {
        0 => "Approve".to_owned(),
        1 => "Accept with 1 minor issue".to_owned(),
        n => format!("Accept with {n} minor issues"),
    }
}

/// What was decided, in words.
pub(super) fn choice_name(choice: Choice) -> &'static str {
    match choice {
        Choice::Fix => "changes requested",
        Choice::Accept => "accepted",
        Choice::Stop => "stopped",
        Choice::Revise => "went back to planning",
        Choice::Drop => "dropped",
        Choice::Archive => "archived by force",
        Choice::AcceptStale => "archived although it was edited",
        Choice::Answer => "answered",
    }
}

/// The reason that was given, if any.
pub(super) fn note_of(decision: &Decision) -> Markup {
    html! { @if !decision.note.is_empty() { ": “" (decision.note) "”" } }
}

/// Comments that nobody will read unless somebody does something.
fn open_comments(subject: &Subject) -> Markup {
    let is_over =
        matches!(subject.phase(), Some(Phase::Challenged | Phase::Implementing | Phase::Complete));
    let is_given = |comment: &Comment| {
        subject.state().is_some_and(|state| comments::given(state, comment).is_some())
    };
    let on_plan = subject.comments.open().filter(|comment| {
        !comment.commented().is_some_and(|on| on.is_code()) && !is_given(comment)
    });
    let count = on_plan.count();
    html! {
        @if subject.is_open() && is_over && count > 0 {
            p.quiet {
                a href={ (subject.address()) "/comments" } {
                    (counted(count, "comment")) " on the plan "
                    @if count == 1 { "is" } @else { "are" } " open"
                }
                ". The planner sees them if the plan is revised."
            }
        }
    }
}

/// The way back to planning.
fn revise_form(subject: &Subject) -> Markup {
    let can = matches!(
        subject.phase(),
        Some(Phase::Challenged | Phase::Rejected | Phase::Implementing | Phase::Complete)
    );
    html! {
        @if subject.is_open() && can {
            details.other {
                summary { "Change the plan" }
                form method="post" action={ (subject.address()) "/revise" } data-send
                    data-draft="revise" {
                    label {
                        "What should be different "
                        textarea name="note" rows="2" maxlength="4000"
                            placeholder="Empty if you edit the documents yourself" {}
                    }
                    p.quiet { "The change goes back to planning. Code, ticks and costs stay." }
                    button { "Go back to planning" }
                }
            }
        }
    }
}
