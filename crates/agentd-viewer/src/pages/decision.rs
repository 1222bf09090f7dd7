//! The decision that a plan waits for, as three buttons.

use agentd_core::document::review_block::ReviewBlock;
use agentd_core::state::{Choice, Decision, State};
use agentd_engine::workflow::decisions;
use maud::{Markup, html};

use crate::html::time;
use crate::subject::Subject;

/// The form; nothing if the plan does not wait for a decision.
pub(super) fn decision_form(subject: &Subject) -> Markup {
    let state = subject.state().filter(|_| subject.is_open());
    let asked = |state: &&State| decisions::open_question(state, subject.documents()).is_ok();
    let review = |state| subject.documents().counted_review(state);
    html! {
        @if let Some(state) = state.filter(asked) && let Some(review) = review(state) {
            (form(subject, state, review))
        }
    }
}

fn form(subject: &Subject, state: &State, review: &ReviewBlock) -> Markup {
    let counts = review.counts();
    let refused = decisions::accepted(state, subject.documents()).err();
    let why_not = refused.map(|refused| refused.reason.unwrap_or("its phase does not allow it"));
    html! {
        form.decision method="post" action={ (subject.address()) "/decide" } {
            h2 { "Your decision" }
            p {
                "Round " (review.iteration) " ended with "
                strong { (review.verdict.label().replace('_', " ")) }
                ": " (counts.high) " high, " (counts.medium) " medium, " (counts.low) " low."
            }
            @if let Some(decision) = decided_since(state, review) {
                p.decided {
                    "Decided: " strong { (choice_name(decision.choice)) }
                    " by " (decision.by) " " (time(decision.at)) (note_of(decision))
                }
            }
            label {
                "Reason "
                input name="note" maxlength="400" placeholder="optional, kept with the decision"
                    autocomplete="off";
            }
            div.buttons {
                button.primary name="choice" value="fix" { "Request changes" }
                button name="choice" value="accept" disabled[why_not.is_some()]
                    aria-describedby=[why_not.map(|_| "why-not")] { (accept_label(review)) }
                button name="choice" value="stop" { "Stop here" }
            }
            @if let Some(why) = why_not {
                p.quiet #why-not { "The plan cannot be accepted: " (why) "." }
            }
        }
    }
}

/// The last decision, if it was made after this review.
fn decided_since<'s>(state: &'s State, review: &ReviewBlock) -> Option<&'s Decision> {
    let decision = state.decisions.last()?;
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
    }
}

/// The reason that was given, if any.
pub(super) fn note_of(decision: &Decision) -> Markup {
    html! { @if !decision.note.is_empty() { " “" (decision.note) "”" } }
}
