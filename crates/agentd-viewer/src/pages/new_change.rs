//! The form for a new change.

use agentd_core::state::Placement;
use axum::http::StatusCode;
use maud::{Markup, html};

use super::next::{placement_words, untrusted};
use crate::App;
use crate::html::Page;
use crate::problem::Problem;

pub(crate) fn new_change(app: &App) -> Result<Markup, Problem> {
    if !app.acts {
        let why = "This viewer starts no commands. Run `agentd view --act`, or `agentd plan <id> \
                   \"<what you want>\"` in a terminal.";
        return Err(Problem::new(StatusCode::FORBIDDEN, why));
    }
    let has_git = app.project.root().join(".git").exists();
    let body = html! {
        h1 { "New change" }
        (untrusted(app))
        form.panel.new-change method="post" action="/new" data-send data-draft="new" {
            label {
                "What you want"
                textarea #description name="description" rows="5" required maxlength="20000" autofocus
                    placeholder="Let people log in with their GitHub account" {}
            }
            label {
                "Name "
                span.quiet { "(small letters, digits and dashes; the name of its directory)" }
                input #change-id name="id" required maxlength="60" pattern="[a-z][a-z0-9]*(-[a-z0-9]+)*"
                    autocomplete="off" spellcheck="false" placeholder="github-login";
            }
            @if has_git {
                label {
                    "Work "
                    select name="placement" {
                        @for placement in Placement::ALL {
                            option value=(placement.name()) { (placement_words(placement)) }
                        }
                    }
                }
            }
            div.actions {
                button.primary name="then" value="clarify" { "Ask me questions first" }
                button name="then" value="plan" { "Plan without questions" }
            }
            p.quiet {
                "The planner reads the project. With questions, it proposes three to five, which you \
                 answer here before the plan is written."
            }
        }
    };
    let crumbs = [("New change", "/new".to_owned())];
    Ok(Page { app, title: "New change", crumbs: &crumbs, follow: None, body }.render())
}
