//! The questions that wait for a person, as forms: those before a change is planned, and that of an
//! agent at work.

use agentd_core::document::questions::{Question, Questions};
use agentd_core::hash::Digest;
use agentd_core::state::AgentQuestion;
use agentd_engine::workflow::background::BackgroundCommand;
use agentd_engine::workflow::{begin, clarify};
use maud::{Markup, html};

use super::next::placement;
use crate::App;
use crate::markdown;
use crate::subject::Subject;

/// The form; none if nothing is asked.
pub(super) fn questions_form(app: &App, subject: &Subject) -> Option<Markup> {
    let needed = begin::needs_answers(subject.change(), subject.state()).unwrap_or(false);
    let asked = clarify::kept_or_none(subject.home(), subject.id()).ok().flatten();
    asked.filter(|_| needed).map(|questions| form(app, subject, &questions))
}

/// A digest of the questions: answers name them by their places.
pub(crate) fn seen(questions: &Questions) -> Digest {
    Digest::of(serde_json::to_vec(questions).unwrap_or_default())
}

fn form(app: &App, subject: &Subject, questions: &Questions) -> Markup {
    html! {
        form.questions method="post" action={ (subject.address()) "/answers" } data-send {
            input type="hidden" name="seen" value=(seen(questions));
            p { "The planner asks:" }
            @for (index, question) in questions.questions.iter().enumerate() {
                (one(index, question))
            }
            @if app.acts { (placement(app, subject, BackgroundCommand::Plan)) }
            div.actions {
                button.primary name="then" value=(if app.acts { "plan" } else { "" }) {
                    @if app.acts { "Answer and plan" } @else { "Answer" }
                }
            }
        }
    }
}

fn one(index: usize, question: &Question) -> Markup {
    let kind = if question.multi_select { "checkbox" } else { "radio" };
    html! {
        fieldset {
            legend { strong { (question.header) } }
            div.prose { (markdown::fragment(question.question.as_str())) }
            @for (at, option) in question.options.iter().enumerate() {
                label.option {
                    input type=(kind) name={ "q" (index) } value=(at)
                        checked[at == 0 && !question.multi_select];
                    " " strong { (option.label) }
                    @if at == 0 { " " span.quiet { "(recommended)" } }
                    " " span.quiet { (option.description) }
                }
            }
            label.own {
                span.visually-hidden { (question.header) ": " }
                "In your own words "
                input name={ "own" (index) } maxlength="2000" autocomplete="off";
            }
        }
    }
}

/// The question of an agent that waits until it is answered (G6).
pub(super) fn agent_question_form(
    app: &App,
    subject: &Subject,
    question: &AgentQuestion,
) -> Markup {
    html! {
        form.questions method="post" action={ (subject.address()) "/answer" } data-send {
            p { strong { (question.asker()) } " asks, in " code { (question.step) } ":" }
            fieldset {
                legend.visually-hidden { "The question" }
                div.prose { (markdown::fragment(question.asked.question.as_str())) }
                @for (at, choice) in question.asked.choices.iter().enumerate() {
                    label.option {
                        input type="radio" name="choice" value=(at);
                        " " (choice)
                    }
                }
                label.own {
                    "In your own words "
                    textarea name="text" rows="2" maxlength="4000" {}
                }
            }
            @if app.acts {
                label.check {
                    input type="checkbox" name="run" value="1" checked;
                    " Go on right away"
                }
            }
            div.actions { button.primary { "Answer" } }
        }
    }
}
