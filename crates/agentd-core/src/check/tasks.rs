//! Rules for `tasks.md`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Context, MainSpecs, has, looked_up, quality};
use crate::diagnostic::{Diagnostic, Rule};
use crate::document::fields::value_in;
use crate::document::tasks::{Task, Tasks};
use crate::documents::Documents;
use crate::graph;
use crate::ids::{Layer, RequirementId, SpecId, SpecRef, TaskId};
use crate::rel_path::RelPath;
use crate::rules;
use crate::span::Span;

impl Documents {
    /// Why the tasks are not those of the specs that the plan has now, a sentence each.
    pub fn outdated_tasks(&self, main: &MainSpecs) -> Vec<String> {
        let tasks = &self.tasks.value().tasks;
        let in_main = |spec_ref: &SpecRef| {
            let known = main.get(&spec_ref.spec);
            known.is_some_and(|ids| spec_ref.requirement.is_none_or(|id| ids.contains(&id)))
        };
        let mut reasons = Vec::new();
        for task in tasks {
            let gone = |r: &&SpecRef| !self.lists(&r.spec) && !in_main(r);
            for spec_ref in task.spec_refs.iter().filter(gone) {
                let id = task.id;
                reasons.push(format!(
                    "task {id} implements {spec_ref}, which is not part of the plan"
                ));
            }
        }
        let named: BTreeSet<&SpecId> =
            tasks.iter().flat_map(|task| &task.spec_refs).map(|r| &r.spec).collect();
        for (id, spec) in self.planned_specs() {
            if !named.contains(id) && !spec.requirements.is_empty() {
                reasons.push(format!("no task implements {id}"));
            }
        }
        reasons
    }
}

/// The labels of what a task says.
const FILE: [&str; 2] = ["file", "path"];
const SPEC_REF: [&str; 4] = ["spec_ref", "spec", "spec ref", "spec reference"];
const DEPENDS_ON: [&str; 3] = ["depends_on", "depends", "depends on"];

pub(super) fn check(tasks: &Tasks, text: &str, context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if !tasks.has_frontmatter.0 && !has(found, &rules::FRONTMATTER_UNCLOSED) {
        found.push(
            rules::FRONTMATTER_MISSING.at(tasks.frontmatter.0, "tasks.md has no frontmatter"),
        );
    }
    if let Some(id) = tasks.change_id.as_ref().filter(|id| *id != context.id) {
        let message =
            format!("these are the tasks of `{id}`, in the directory of `{}`", context.id);
        found.push(rules::ID_MISMATCH.at(tasks.frontmatter.0, message));
    }
    if tasks.tasks.is_empty() && !has(found, &rules::BAD_TASK_ID) {
        found.push(rules::NO_TASKS.at(tasks.title.0, "there is no task"));
    }
    let mut by_id: BTreeMap<TaskId, &Task> = BTreeMap::new();
    for task in &tasks.tasks {
        if let std::collections::btree_map::Entry::Vacant(e) = by_id.entry(task.id) {
            e.insert(task);
        } else {
            let message = format!("task {} is there twice", task.id);
            found.push(rules::DUPLICATE_TASK.at(task.place.0, message));
        }
    }
    let places = |rule: &Rule| -> Vec<usize> {
        let mut places: Vec<usize> =
            found.iter().filter(|d| d.rule == rule).map(|d| d.span.start).collect();
        places.sort_unstable();
        places
    };
    let (bad_actions, bad_blocks) = (places(&rules::BAD_ACTION), places(&rules::TASK_BLOCK));
    for (i, task) in tasks.tasks.iter().enumerate() {
        let end = tasks.tasks.get(i + 1).map_or(text.len(), |next| next.place.0.start);
        let part = Span::new(task.place.0.start, end);
        let reported = |places: &[usize]| {
            let behind = places.partition_point(|at| *at < part.start);
            places.get(behind).is_some_and(|at| *at < part.end)
        };
        // What is missing may be in the block that cannot be read.
        let is_readable = !reported(&bad_blocks);
        check_task(task, &by_id, context, Place { text, part, is_readable }, found);
        // Its own action may be there and bad, which is reported already.
        if task.action.is_none() && is_readable && !reported(&bad_actions) {
            let message = format!("task {} has no action", task.id);
            found.push(rules::BAD_ACTION.at(task.place.0, message));
        }
    }
    if let Some(cycle) = graph::task_cycle(&tasks.tasks) {
        let place =
            cycle.first().and_then(|id| by_id.get(id)).map_or(Span::at(0), |task| task.place.0);
        let numbers = graph::chain(cycle.iter().map(ToString::to_string));
        let message =
            format!("Circular dependency detected: {} ({numbers})", graph::task_chain(&cycle));
        found.push(rules::TASK_CYCLE.at(place, message));
    }
    if bad_blocks.is_empty() {
        check_coverage(tasks, context, found);
    }
}

/// The part of the text that is about a task.
#[derive(Clone, Copy)]
struct Place<'t> {
    text: &'t str,
    part: Span,
    /// Whether everything that the task says could be read.
    is_readable: bool,
}

fn check_task(
    task: &Task,
    by_id: &BTreeMap<TaskId, &Task>,
    context: &Context<'_>,
    Place { text, part, is_readable }: Place<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let place = task.place.0;
    let mut look = looked_up(place);
    let mut value = |labels: &[&str], value: &str| look(&|| value_in(text, part, labels, value));
    let id = task.id;
    match &task.file {
        None if !is_readable => {}
        None => found.push(rules::TASK_WITHOUT_FILE.at(place, format!("task {id} names no file"))),
        Some(file) => match RelPath::new(file.as_str()) {
            Err(error) => {
                let place = value(&FILE, file.as_str());
                found.push(rules::BAD_PATH.at(place, format!("task {id}: {error}")));
            }
            Ok(path) if path.is_root() => {
                let place = value(&FILE, file.as_str());
                found.push(rules::BAD_PATH.at(place, format!("task {id}: `.` is not a file")));
            }
            Ok(path) => {
                // Compared without case: `.GIT/config` is git's own file on a Mac.
                let first = path.components().next().unwrap_or_default().to_ascii_lowercase();
                if first == "agentd" || first == ".git" {
                    let message = format!("task {id} touches `{file}`");
                    found.push(rules::PROTECTED_PATH.at(value(&FILE, file.as_str()), message));
                }
            }
        },
    }
    if task.layer.is_none() {
        found.push(rules::TASK_LAYER.at(place, format!("task {id} stands in no layer")));
    }
    if task.title.is_empty() || task.description.is_empty() {
        let what = if task.title.is_empty() { "title" } else { "description" };
        found.push(rules::TASK_EMPTY.at(place, format!("task {id} has no {what}")));
    }
    quality::placeholders(task.description.as_str(), place, found);
    for on in &task.depends_on {
        match by_id.get(on) {
            None => {
                let message = format!("task {id} depends on {on}, which does not exist");
                let place = value(&DEPENDS_ON, &on.to_string());
                found.push(rules::TASK_DEPENDS_NOWHERE.at(place, message));
            }
            Some(other) if section(other.layer) > section(task.layer) && task.layer.is_some() => {
                let message = format!("task {id} depends on {on} of a later layer");
                let place = value(&DEPENDS_ON, &on.to_string());
                found.push(rules::TASK_LAYER.at(place, message));
            }
            Some(_) => {}
        }
    }
    if task.spec_refs.is_empty() && !context.own.is_empty() && is_readable {
        found.push(
            rules::TASK_WITHOUT_SPEC.at(place, format!("task {id} implements no requirement")),
        );
    }
    for spec_ref in &task.spec_refs {
        if !context.has(&spec_ref.spec, spec_ref.requirement) {
            let why = if context.specs.contains_key(&spec_ref.spec)
                && !context.own.contains_key(&spec_ref.spec)
            {
                "which proposal.md does not list"
            } else {
                "which does not exist"
            };
            let message = format!("task {id} points to {spec_ref}, {why}");
            let known = known_requirements(context, &spec_ref.spec);
            let place = value(&SPEC_REF, &spec_ref.to_string());
            let mut diagnostic = rules::SPEC_REF_NOWHERE.at(place, message);
            if !known.is_empty() {
                diagnostic = diagnostic.with_fix(format!("`{}` has {known}.", spec_ref.spec));
            }
            found.push(diagnostic);
        }
    }
}

fn section(layer: Option<Layer>) -> u32 {
    layer.map_or(0, Layer::section)
}

fn known_requirements(context: &Context<'_>, spec: &SpecId) -> String {
    let first = |known: &super::MainSpecs| -> Vec<RequirementId> {
        known.get(spec).iter().flat_map(|ids| ids.iter().take(30).copied()).collect()
    };
    let mut ids = BTreeSet::from_iter(first(context.main));
    ids.extend(first(&context.own));
    let names: Vec<String> = ids.iter().take(30).map(ToString::to_string).collect();
    names.join(", ")
}

/// Requirements that no task implements. Reported at the top of tasks.md, where the task is missing.
fn check_coverage(tasks: &Tasks, context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if tasks.tasks.is_empty() {
        return;
    }
    let covered: BTreeSet<(&SpecId, Option<RequirementId>)> = tasks
        .tasks
        .iter()
        .flat_map(|task| &task.spec_refs)
        .map(|r| (&r.spec, r.requirement))
        .collect();
    let planned = context.specs.iter().filter(|(id, _)| context.own.contains_key(**id));
    for (id, spec) in planned {
        if covered.contains(&(id, None)) {
            continue;
        }
        for requirement in &spec.requirements {
            if !covered.contains(&(id, Some(requirement.id))) {
                let message =
                    format!("no task implements {id}:{} ({})", requirement.id, requirement.title);
                found.push(rules::REQUIREMENT_UNCOVERED.at(tasks.title.0, message));
            }
        }
    }
}
