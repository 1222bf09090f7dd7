//! What archiving a change does to the main specs, before it is done.

use agentd_engine::workflow::background::BackgroundCommand;
use maud::{Markup, html};

use super::changes::delta;
use super::frame::{ChangePage, Tab};
use super::next::{is_startable, run_form};
use crate::App;
use crate::problem::Problem;
use crate::subject::Subject;

pub(crate) fn archive_preview(app: &App, subject: &Subject) -> Result<Markup, Problem> {
    if !subject.is_open() {
        return Err(Problem::not_found());
    }
    let here = format!("{}/archive", subject.address());
    let body = html! {
        h2.page-title { "What archiving changes" }
        p.quiet {
            "The specs of the change are merged into the main specs, and its directory moves to the \
             archive. " code { "agentd unarchive" } " takes it back."
        }
        @match subject.deltas() {
            Err(why) => { p.alert role="alert" { (why) } }
            Ok([]) => { p.empty { "The main specs stay as they are." } }
            Ok(deltas) => {
                @for one in deltas {
                    h3 { (one.spec) }
                    (delta(one))
                }
            }
        }
        @if app.acts && is_startable(app, subject, BackgroundCommand::Archive) {
            div.actions { (run_form(subject, BackgroundCommand::Archive, "primary", &html! {})) }
        }
    };
    let title = "Archive preview";
    Ok(ChangePage { tab: Tab::Plan, title, here: Some(&here), body }.render(app, subject))
}
