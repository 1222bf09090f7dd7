//! From a requirement to its scenarios, tasks, files, commits and tests: one table.

use agentd_core::document::tasks::Status;
use agentd_core::ids::{Layer, SpecRef};
use agentd_core::state::TestRun;
use agentd_core::text::counted;
use agentd_engine::insight::diff::CodeDiff;
use agentd_engine::insight::kept::Kept;
use agentd_engine::insight::overlap::Operation;
use agentd_engine::insight::trace::{self, Scenarios, TaskTrace, Trace};
use maud::{Markup, html};

use super::code::{file_anchor, first_line, line_anchor};
use crate::html::count;
use crate::subject::Subject;
use crate::task_graph;

/// The table; nothing if the change has no requirements.
pub(super) fn trace_table(subject: &Subject, code: Option<&CodeDiff>, kept: &Kept) -> Markup {
    let traces = trace::of_kept(subject.home(), subject.change(), kept);
    let tests = subject.state().and_then(|state| state.test_run.as_ref());
    html! {
        @if !traces.is_empty() {
            h2 #trace { "From requirements to code " (count(traces.len())) }
            div.table tabindex="0" role="region" aria-label="From requirements to code" {
                table.trace {
                    thead {
                        tr {
                            @for name in ["Requirement", "Scenarios", "Tasks", "Files", "Commits", "Tests"] {
                                th scope="col" { (name) }
                            }
                        }
                    }
                    tbody {
                        @for trace in &traces {
                            (row(subject, trace, code, tests.map(TestRun::passed)))
                        }
                    }
                }
            }
        }
    }
}

fn row(subject: &Subject, trace: &Trace, code: Option<&CodeDiff>, tests: Option<bool>) -> Markup {
    let base = subject.address();
    let (spec, id) = trace.requirement.split_once(':').unwrap_or((&*trace.requirement, ""));
    let operation = match trace.how {
        Operation::Adds => ("good", "new"),
        Operation::Edits => ("medium", "edited"),
        Operation::Removes => ("high", "removed"),
        Operation::Renames => ("medium", "renamed"),
        Operation::Touches => ("", "touched"),
    };
    html! {
        tr {
            th scope="row" {
                a href={ (base) "/specs/" (spec) "#" (id) } { (trace.requirement) }
                " " (trace.title) " " span.badge.(operation.0) { (operation.1) }
            }
            td {
                @match scenarios_of(subject, spec, id) {
                    Some(scenarios) if scenarios.of_spec => {
                        span.quiet { (counted(scenarios.names.len(), "scenario")) " of the whole spec" }
                    }
                    Some(scenarios) => {
                        @if scenarios.names.is_empty() { span.badge.medium { "none" } }
                        ul.plain { @for name in &scenarios.names { li { (name) } } }
                    }
                    None => {}
                }
            }
            td {
                @if trace.tasks.is_empty() { span.badge.medium { "no task" } }
                @for task in &trace.tasks { (task_badge(subject, task)) " " }
            }
            td {
                ul.plain {
                    @for task in &trace.tasks {
                        @if let Some(file) = &task.file { li { (file_link(&base, file.as_str(), code)) } }
                    }
                }
            }
            td {
                ul.plain {
                    @for commit in &trace.commits {
                        li { code title={ (commit.author) ", " (commit.date) } { (commit.id.get(..8).unwrap_or(&commit.id)) } " " (commit.subject) }
                    }
                }
            }
            td { (tested(trace, tests)) }
        }
    }
}

/// The scenarios that prove a requirement of the change.
fn scenarios_of(subject: &Subject, spec: &str, id: &str) -> Option<Scenarios> {
    let (_, spec) = subject.specs().find(|(own, _)| own.as_str() == spec)?;
    Some(trace::scenarios(spec, id.parse().ok()?))
}

fn task_badge(subject: &Subject, task: &TaskTrace) -> Markup {
    let done = task.status == Status::Done;
    let (class, mark) = if done { ("good", "✓") } else { ("", "○") };
    html! {
        a.badge.(class) href={ (subject.address()) "/tasks#" (task_graph::anchor(task.id)) }
            title=(task.title) { (mark) " " (task.id) }
    }
}

/// A file, with the first line that differs.
fn file_link(base: &str, path: &str, code: Option<&CodeDiff>) -> Markup {
    let file = code.and_then(|code| code.files.iter().find(|file| file.path == path));
    let line = file.and_then(first_line);
    html! {
        @match (file, line) {
            (Some(_), Some(line)) => { a href={ (base) "/code#" (line_anchor(path, line)) } { code { (path) ":" (line) } } }
            (Some(_), None) => { a href={ (base) "/code#" (file_anchor(path)) } { code { (path) } } }
            (None, _) => { code { (path) } }
        }
    }
}

/// Which tests there are for it, and whether the tests passed.
fn tested(trace: &Trace, passed: Option<bool>) -> Markup {
    let section = Layer::Testing.section();
    let own: Vec<&TaskTrace> =
        trace.tasks.iter().filter(|task| task.id.section == section).collect();
    html! {
        ul.plain {
            @for task in &own {
                @if let Some(file) = &task.file { li { code { (file) } } }
            }
        }
        // The tests of the project say nothing about a requirement that has none of them.
        @match passed {
            _ if own.is_empty() => { span.badge.medium { "no test of its own" } }
            Some(true) => { span.badge.good { "passed" } }
            Some(false) => { span.badge.high { "failed" } }
            None => { span.badge { "not run" } }
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
            Some(id) => { a href={ (address) "#" (id) } { (spec_ref) } }
            None => { a href=(address) { (spec_ref) } }
        }
    }
}
