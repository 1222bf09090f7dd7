//! Tasks by rule: every requirement has one, in the layer that its words name.

use serde_json::{Value, json};

use super::{Brief, DRAFTED, key_words, short};
use agentd_core::document::spec::{Requirement, Spec};
use agentd_core::document::tasks::{Action, Task, Tasks};
use agentd_core::ids::{Layer, SpecId, SpecRef};

/// The most tasks on which one task is said to depend.
const MOST_DEPENDS: usize = 50;

/// Words of what is kept.
const DATA: &[&str] = &[
    "account", "attempt", "column", "count", "database", "field", "history", "migrate", "model",
    "persist", "record", "remember", "save", "schema", "session", "store", "table", "token",
];
/// Words of what is met from outside.
const OUTSIDE: &[&str] = &[
    "api",
    "button",
    "cli",
    "command",
    "dashboard",
    "display",
    "download",
    "email",
    "endpoint",
    "export",
    "form",
    "import",
    "link",
    "login",
    "menu",
    "notify",
    "page",
    "print",
    "route",
    "screen",
    "show",
    "sign",
    "upload",
    "webhook",
];

/// A task to be drafted.
struct TaskDraft<'a> {
    layer: Layer,
    title: &'a str,
    path: &'a str,
    spec_ref: &'a str,
    description: &'a str,
    depends: &'a [String],
}

/// Collects tasks and numbers them.
#[derive(Default)]
struct Drafted {
    tasks: Vec<Value>,
    counts: [u32; 4],
    /// Files that some task makes.
    made: Vec<String>,
}

impl Drafted {
    /// Adds a task; its id.
    fn add(&mut self, brief: &Brief, wanted: &TaskDraft<'_>) -> String {
        let section = wanted.layer.section() as usize - 1;
        self.counts[section] += 1;
        let number = self.counts[section];
        let path = wanted.path;
        let exists = brief.survey.has(path) || self.made.iter().any(|made| made == path);
        if !exists {
            self.made.push(path.to_owned());
        }
        // Once is enough; the document has no other place for it.
        let drafted = if self.tasks.is_empty() { DRAFTED } else { "" };
        let description = format!("{}\n\n{drafted}", wanted.description);
        self.tasks.push(json!({
            "layer": wanted.layer.name(),
            "number": number,
            "title": short(wanted.title, 150),
            "file": { "path": path, "action": if exists { "MODIFY" } else { "CREATE" } },
            "spec_ref": wanted.spec_ref,
            "description": description.trim_end(),
            "depends": wanted.depends.iter().take(MOST_DEPENDS).collect::<Vec<_>>(),
        }));
        format!("{}.{number}", wanted.layer.name())
    }
}

/// The arguments of `create_tasks`, for the specs as they are.
pub fn tasks(brief: &Brief, specs: &[(SpecId, Spec)]) -> Value {
    let mut drafted = Drafted::default();
    for (id, spec) in specs {
        let mut done = Vec::new();
        for requirement in &spec.requirements {
            done.push(for_requirement(brief, &mut drafted, id, requirement));
        }
        let Some(first) = spec.requirements.first() else { continue };
        let reference = format!("{id}:{}", first.id);
        let outside = spec.requirements.iter().any(|r| speaks_of(r, OUTSIDE));
        if outside {
            let path = brief
                .survey
                .entry()
                .map_or_else(|| source_path(brief, id, "_entry"), |entry| entry.path.clone());
            let text = format!(
                "Make what the spec `{id}` describes reachable from where people meet the program."
            );
            let title = format!("Make {} reachable", spec_title(id, spec));
            let task = drafted.add(
                brief,
                &TaskDraft {
                    layer: Layer::Integration,
                    title: &title,
                    path: &path,
                    spec_ref: &reference,
                    description: &text,
                    depends: &done,
                },
            );
            done.push(task);
        }
        let names: Vec<String> = spec
            .scenarios
            .iter()
            .take(100)
            .map(|scenario| format!("- {}", scenario.name))
            .collect();
        let text =
            format!("Write a test for every scenario of the spec `{id}`:\n\n{}", names.join("\n"));
        let title = format!("Test the scenarios of {}", spec_title(id, spec));
        drafted.add(
            brief,
            &TaskDraft {
                layer: Layer::Testing,
                title: &title,
                path: &test_path(brief, id),
                spec_ref: &reference,
                description: &text,
                depends: &done,
            },
        );
    }
    json!({ "change_id": brief.change, "tasks": drafted.tasks })
}

fn spec_title(id: &SpecId, spec: &Spec) -> String {
    if spec.title.is_empty() { id.to_string() } else { spec.title.to_string() }
}

/// The tasks of one requirement; the id of the last of them.
fn for_requirement(
    brief: &Brief,
    drafted: &mut Drafted,
    id: &SpecId,
    requirement: &Requirement,
) -> String {
    let reference = format!("{id}:{}", requirement.id);
    let title = requirement.title.as_str();
    let mut depends = Vec::new();
    if speaks_of(requirement, DATA) {
        let path = home(brief, id, requirement, "_data");
        let text = format!("Define what has to be kept for {}: {title}.", requirement.id);
        let kept = format!("Keep what {} needs: {title}", requirement.id);
        depends.push(drafted.add(
            brief,
            &TaskDraft {
                layer: Layer::Data,
                title: &kept,
                path: &path,
                spec_ref: &reference,
                description: &text,
                depends: &[],
            },
        ));
    }
    let path = home(brief, id, requirement, "");
    let mut text = format!("Build {} of the spec `{id}`: {title}.", requirement.id);
    if brief.survey.language().is_none() {
        text.push_str(
            "\n\nThe project has no source file yet that shows its language: name the file in this plan as \
             the language wants it before you start.",
        );
    }
    drafted.add(
        brief,
        &TaskDraft {
            layer: Layer::Logic,
            title,
            path: &path,
            spec_ref: &reference,
            description: &text,
            depends: &depends,
        },
    )
}

fn speaks_of(requirement: &Requirement, words: &[&str]) -> bool {
    let own = key_words(requirement.title.as_str());
    own.iter().any(|word| words.contains(&word.strip_suffix('s').unwrap_or(word)))
}

/// The file in which a requirement is at home: the one that is most about it, or a new one.
fn home(brief: &Brief, id: &SpecId, requirement: &Requirement, suffix: &str) -> String {
    let known = brief.survey.about(&format!("{} {id}", requirement.title)).into_iter().next();
    known.map_or_else(|| source_path(brief, id, suffix), |file| file.path.clone())
}

fn source_path(brief: &Brief, id: &SpecId, suffix: &str) -> String {
    let Some(language) = brief.survey.language() else {
        return format!("src/{id}{}", suffix.replace('_', "-"));
    };
    let name = format!("{}{suffix}", id.as_str().replace('-', "_"));
    let name = if language.underscores { name } else { name.replace('_', "-") };
    let file = format!("{name}.{}", language.endings[0]);
    if language.sources == "." { file } else { format!("{}/{file}", language.sources) }
}

fn test_path(brief: &Brief, id: &SpecId) -> String {
    let Some(language) = brief.survey.language() else { return format!("tests/{id}") };
    let name = id.as_str();
    let name = if language.underscores { name.replace('-', "_") } else { name.to_owned() };
    language.tests.replace("{}", &name)
}

/// The arguments of `create_tasks` with the tasks that are there, and one for every
/// requirement that none of them implements. None: there is nothing to add, or a task
/// is of a form that the tool does not take.
pub(crate) fn tasks_for_uncovered(
    brief: &Brief,
    specs: &[(SpecId, Spec)],
    there: &Tasks,
) -> Option<Value> {
    let mut drafted = Drafted::default();
    for task in &there.tasks {
        drafted.tasks.push(arguments(task)?);
        let section = task.layer?.section() as usize - 1;
        drafted.counts[section] = drafted.counts[section].max(task.id.number);
    }
    let before = drafted.tasks.len();
    let covers = |reference: &SpecRef, id: &SpecId, requirement: &Requirement| {
        reference.spec == *id && reference.requirement.is_none_or(|own| own == requirement.id)
    };
    for (id, spec) in specs {
        for requirement in &spec.requirements {
            let mut references = there.tasks.iter().flat_map(|task| &task.spec_refs);
            if !references.any(|reference| covers(reference, id, requirement)) {
                for_requirement(brief, &mut drafted, id, requirement);
            }
        }
    }
    (drafted.tasks.len() > before)
        .then(|| json!({ "change_id": brief.change, "tasks": drafted.tasks }))
}

fn arguments(task: &Task) -> Option<Value> {
    let [reference] = task.spec_refs.as_slice() else { return None };
    reference.requirement?;
    let depends: Vec<String> = task.depends_on.iter().map(|id| id.layer_form()).collect();
    Some(json!({
        "layer": task.layer?.name(),
        "number": task.id.number,
        "title": task.title,
        "file": { "path": task.file.as_ref()?, "action": task.action.map(Action::label)? },
        "spec_ref": reference.to_string(),
        "description": task.description,
        "depends": depends,
    }))
}
