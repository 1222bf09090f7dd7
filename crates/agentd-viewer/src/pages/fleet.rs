//! Who works on a change elsewhere, as the remote repository had it last. All of it is text that anyone
//! may have pushed.

use agentd_core::carried::CarriedState;
use agentd_engine::carrier::sightings::{Sighting, Sightings};
use maud::{Markup, html};

use crate::App;
use crate::board::Board;
use crate::html::{command, count, dollars, sentence, time};
use crate::subject::Subject;

/// How many changes are listed; the command line has the others.
const MOST: usize = 50;

/// All changes that are carried, those first that somebody has.
pub(super) fn everything(app: &App, board: &Board) -> Markup {
    let seen = app.fleet.seen();
    let Some(seen) = seen.as_deref().filter(|seen| !seen.changes.is_empty()) else {
        return html! { section.running data-live="fleet" {} };
    };
    let mut listed: Vec<&Sighting> = seen.changes.iter().collect();
    listed.sort_by_key(|sighting| order(sighting.carried.state));
    let is_here =
        |sighting: &Sighting| board.changes.iter().any(|known| *known.id() == sighting.change);
    html! {
        section.running aria-labelledby="fleet-title" data-live="fleet" {
            h2 #fleet-title { "Carried by workers " (count(listed.len())) }
            ul.rows {
                @for sighting in listed.iter().take(MOST) {
                    li.row data-fleet=(sighting.change) {
                        @if is_here(sighting) {
                            a href={ "/changes/" (sighting.change) } { strong { (sighting.change) } }
                        } @else {
                            strong { (sighting.change) }
                        }
                        span.why { (words(sighting)) }
                        span { (dollars(sighting.carried.cost_usd)) }
                        @if !is_here(sighting) {
                            span.next-command { (command(&format!("agentd take {}", sighting.change))) }
                        }
                    }
                }
            }
            @if listed.len() > MOST {
                p { (listed.len() - MOST) " more: " (command("agentd fleet status")) }
            }
            (age(seen))
        }
    }
}

/// Who has this change, if it is carried.
pub(super) fn of_change(app: &App, subject: &Subject) -> Markup {
    let carried = if subject.is_open() { app.fleet.of(subject.id()) } else { None };
    html! {
        div data-live="fleet" {
            @if let Some((sighting, seen)) = carried {
                p.alert.quiet data-fleet=(sighting.change) { (words(&sighting)) " " (age(&seen)) }
            }
        }
    }
}

fn order(state: CarriedState) -> u8 {
    match state {
        CarriedState::Held => 0,
        CarriedState::Taken => 1,
        CarriedState::Waiting | CarriedState::Failed => 2,
        CarriedState::Ready => 3,
    }
}

fn words(sighting: &Sighting) -> Markup {
    let carried = &sighting.carried;
    let worker = &carried.worker;
    let why = sentence(carried.why.as_str());
    html! {
        @match carried.state {
            CarriedState::Held => {
                @if let Some(step) = &carried.doing {
                    strong { (step.step) }
                    @if let Some(agent) = &step.agent { " with " (agent) }
                    " on worker " strong { (worker) }
                } @else {
                    "On worker " strong { (worker) }
                }
                @if let Some(since) = carried.since { " since " (time(since)) }
                ", last sign of life " (time(carried.at))
            }
            CarriedState::Taken => {
                "With " strong { (worker) }
                @if let Some(since) = carried.since { " since " (time(since)) }
            }
            CarriedState::Waiting => { "Waits for a person: " (why) }
            CarriedState::Failed => { "Failed on worker " strong { (worker) } ": " (why) }
            CarriedState::Ready => {
                @match &carried.next {
                    Some(step) => { "Next: " (step.step) ", on any worker" }
                    None => { "Next: on any worker" }
                }
            }
        }
    }
}

/// How old all of this is.
fn age(seen: &Sightings) -> Markup {
    html! {
        span.quiet {
            "As `" (seen.remote) "` had it"
            @if let Some(at) = seen.seen { " " (time(at)) }
            "."
        }
    }
}
