//! Requirement ↔ task ↔ file: what implements what.

use std::collections::BTreeMap;

use agentd_core::document::tasks::{Status, Task};

use super::change_page;
use crate::App;
use crate::html::esc;
use crate::subject::Subject;
use crate::task_graph;

pub(crate) fn trace(app: &App, subject: &Subject) -> String {
    let here = format!("{}/trace", subject.address());
    let mut out = String::from("<h1>Traceability</h1><h2>From requirements to files</h2>");
    let requirements: usize = subject.specs.iter().map(|(_, spec)| spec.requirements.len()).sum();
    if requirements == 0 {
        out.push_str("<p class=\"empty\">The change has no requirements yet.</p>");
    } else {
        from_requirements(&mut out, subject);
    }
    let mut by_file: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
    for task in &subject.tasks.tasks {
        if let Some(file) = &task.file {
            by_file.entry(file.as_str()).or_default().push(task);
        }
    }
    if !by_file.is_empty() {
        out.push_str("<h2>From files to requirements</h2><div class=\"table\"><table><thead><tr><th>File</th><th>Tasks</th><th>Requirements</th></tr></thead><tbody>");
        for (file, tasks) in by_file {
            let requirements = tasks.iter().flat_map(|task| &task.spec_refs).map(|r| {
                let anchor = r.requirement.map(|id| format!("#{id}")).unwrap_or_default();
                format!("<a href=\"{}/specs/{}{anchor}\">{}</a>", subject.address(), r.spec, esc(r))
            });
            let requirements: Vec<String> = requirements.collect();
            let tasks: Vec<String> = tasks.iter().map(|task| link(subject, task)).collect();
            out.push_str(&format!(
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
                esc(file),
                tasks.join(" "),
                requirements.join(" ")
            ));
        }
        out.push_str("</tbody></table></div>");
    }
    change_page(app, subject, &here, "Traceability", &out)
}

fn from_requirements(out: &mut String, subject: &Subject) {
    out.push_str("<div class=\"table\"><table><thead><tr><th>Requirement</th><th>Scenarios</th><th>Tasks</th><th>Files</th></tr></thead><tbody>");
    for (id, spec) in &subject.specs {
        // Scenarios under no requirement prove the spec as a whole.
        let shared = spec.scenarios.len();
        for requirement in &spec.requirements {
            let tasks = subject.tasks_for(id, requirement.id);
            let files: Vec<String> = tasks
                .iter()
                .filter_map(|task| task.file.as_ref())
                .map(|file| format!("<code>{}</code>", esc(file)))
                .collect();
            let linked: Vec<String> = tasks.iter().map(|task| link(subject, task)).collect();
            let linked = if linked.is_empty() {
                "<span class=\"badge medium\">no task</span>".to_owned()
            } else {
                linked.join(" ")
            };
            let own = requirement.scenarios.len();
            let scenarios = if own > 0 { own.to_string() } else { format!("{shared} of the spec") };
            out.push_str(&format!(
                "<tr><td><a href=\"{}/specs/{id}#{}\">{id}:{}</a> {}</td><td>{scenarios}</td><td>{linked}</td><td>{}</td></tr>",
                subject.address(),
                requirement.id,
                requirement.id,
                esc(&requirement.title),
                files.join(" ")
            ));
        }
    }
    out.push_str("</tbody></table></div>");
}

fn link(subject: &Subject, task: &Task) -> String {
    let (class, mark) = if task.status == Status::Done { ("good", "✓") } else { ("", "○") };
    format!(
        "<a class=\"badge {class}\" href=\"{}/tasks#{}\" title=\"{}\">{mark} {}</a>",
        subject.address(),
        task_graph::anchor(task.id),
        esc(&task.title),
        task.id
    )
}
