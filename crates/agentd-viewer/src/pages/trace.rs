//! Requirement ↔ task ↔ file: what implements what.

use std::collections::BTreeMap;

use agentd_core::document::spec::{Requirement, Spec};
use agentd_core::document::tasks::Task;
use agentd_core::ids::{SpecId, SpecRef};
use maud::{Markup, html};

use super::{change_page, task_link};
use crate::App;
use crate::subject::Subject;

pub(crate) fn trace(app: &App, subject: &Subject) -> Markup {
    let here = format!("{}/trace", subject.address());
    let mut by_file: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
    for task in subject.tasks() {
        if let Some(file) = &task.file {
            by_file.entry(file.as_str()).or_default().push(task);
        }
    }
    let body = html! {
        h1 { "Traceability" }
        h2 { "From requirements to files" }
        @if subject.specs().all(|(_, spec)| spec.requirements.is_empty()) {
            p.empty { "The change has no requirements yet." }
        } @else {
            (from_requirements(subject))
        }
        @if !by_file.is_empty() {
            h2 { "From files to requirements" }
            (from_files(subject, by_file))
        }
    };
    change_page(app, subject, &here, "Traceability", &body)
}

fn from_requirements(subject: &Subject) -> Markup {
    html! {
        div.table {
            table {
                thead { tr { th { "Requirement" } th { "Scenarios" } th { "Tasks" } th { "Files" } } }
                tbody {
                    @for (id, spec) in subject.specs() {
                        @for requirement in &spec.requirements {
                            (requirement_row(subject, id, spec, requirement))
                        }
                    }
                }
            }
        }
    }
}

fn requirement_row(
    subject: &Subject,
    id: &SpecId,
    spec: &Spec,
    requirement: &Requirement,
) -> Markup {
    let tasks = subject.tasks_for(id, requirement.id);
    let own = requirement.scenarios.len();
    html! {
        tr {
            td {
                a href={ (subject.address()) "/specs/" (id) "#" (requirement.id) } {
                    (id) ":" (requirement.id)
                }
                " " (requirement.title)
            }
            td {
                // Scenarios under no requirement test the spec as a whole.
                @if own > 0 { (own) } @else { (spec.scenarios.len()) " of the spec" }
            }
            td {
                @if tasks.is_empty() { span.badge.medium { "no task" } }
                @for task in &tasks { (task_link(subject, task, "")) " " }
            }
            td {
                @for file in tasks.iter().filter_map(|task| task.file.as_ref()) {
                    code { (file) } " "
                }
            }
        }
    }
}

fn from_files(subject: &Subject, by_file: BTreeMap<&str, Vec<&Task>>) -> Markup {
    html! {
        div.table {
            table {
                thead { tr { th { "File" } th { "Tasks" } th { "Requirements" } } }
                tbody {
                    @for (file, tasks) in by_file {
                        tr {
                            td { code { (file) } }
                            td { @for task in &tasks { (task_link(subject, task, "")) " " } }
                            td {
                                @for spec_ref in tasks.iter().flat_map(|task| &task.spec_refs) {
                                    (requirement_link(subject, spec_ref)) " "
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A link to what a task implements: in the change, or in the main specs.
pub(super) fn requirement_link(subject: &Subject, spec_ref: &SpecRef) -> Markup {
    let changed = subject.specs().any(|(id, _)| *id == spec_ref.spec);
    let base = if changed { subject.address() } else { String::new() };
    let address = format!("{base}/specs/{}", spec_ref.spec);
    html! {
        @match spec_ref.requirement {
            Some(id) if changed => { a href={ (address) "#" (id) } { (spec_ref) } }
            _ => { a href=(address) { (spec_ref) } }
        }
    }
}
