//! The schemas of the tools, as clients see them.
//!
//! They are written by hand because a model reads every word of them and every
//! session pays for every byte: `tools/list` stays below 8 kB for any role. A
//! test holds them against the types that read the arguments: what a schema
//! forbids is refused, and what it allows is read. To stay small they do not
//! say everything: the server alone knows the caps on sizes, that `null` stands
//! for an optional field that is left out, that severities may be written in
//! capitals, and what makes a good path, a layer in the id of a task, or an id
//! inside `{id, depends}`.

use agentd_core::document::clarifications::MAX_QUESTIONS;
use agentd_core::document::questions::{MAX_OPTIONS, MIN_OPTIONS, MIN_QUESTIONS};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// What an id of a change or of a spec looks like.
const ID: &str = "^[a-z0-9][a-z0-9-]{0,63}$";
/// What the id of a requirement looks like.
const REQUIREMENT: &str = "^R[1-9]\\d*$";
/// What the id of a task looks like.
const TASK: &str = "^[a-z0-9]+\\.[1-9]\\d*$";
/// What a reference from a task to a requirement looks like.
const REFERENCE: &str = "^[a-z0-9-]+:R[1-9]\\d*$";

/// One field of an object.
struct Field(&'static str, Value, Need);

#[derive(PartialEq, Eq)]
enum Need {
    Required,
    Optional,
}

fn required(name: &'static str, schema: Value) -> Field {
    Field(name, schema, Need::Required)
}

fn optional(name: &'static str, schema: Value) -> Field {
    Field(name, schema, Need::Optional)
}

/// Text that must not be blank.
fn text(description: &str) -> Value {
    json!({"type": "string", "description": description, "pattern": "\\S"})
}

/// Text that must not be blank and whose name says enough.
fn named() -> Value {
    json!({"type": "string", "pattern": "\\S"})
}

/// Text that may be blank.
fn free_text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn matching(pattern: &str, description: &str) -> Value {
    json!({"type": "string", "description": description, "pattern": pattern})
}

fn list(description: &str, items: &Value) -> Value {
    json!({"type": "array", "description": description, "items": items})
}

fn full_list(description: &str, items: &Value) -> Value {
    json!({"type": "array", "description": description, "items": items, "minItems": 1})
}

fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

fn count(description: &str, from: u32) -> Value {
    json!({"type": "integer", "description": description, "minimum": from})
}

/// An object with these fields and no others.
fn object(fields: Vec<Field>) -> JsonObject {
    let needed = fields.iter().filter(|field| field.2 == Need::Required);
    let needed: Vec<&str> = needed.map(|field| field.0).collect();
    let mut object = JsonObject::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("required".to_owned(), json!(needed));
    object.insert("additionalProperties".to_owned(), json!(false));
    let fields = fields.into_iter().map(|Field(name, schema, _)| (name.to_owned(), schema));
    object.insert("properties".to_owned(), Value::Object(fields.collect()));
    object
}

fn part(fields: Vec<Field>) -> Value {
    Value::Object(object(fields))
}

/// The field that says which change is meant.
///
/// It stands in every tool, so a long id would cost more than it is worth; the
/// instructions name it as well.
pub(super) fn change(bound: Option<&str>) -> Value {
    const SHORT: usize = 20;
    match bound {
        Some(id) if id.len() <= SHORT => one_of(&[id]),
        Some(_) => free_text("Id of the change"),
        None => matching(ID, "Id of the change"),
    }
}

fn with_change(change: Value, mut fields: Vec<Field>) -> JsonObject {
    fields.insert(0, required("change_id", change));
    object(fields)
}

pub(super) fn create_clarifications(change: Value) -> JsonObject {
    let question = part(vec![
        required("topic", text("E.g. Auth Method")),
        required("question", named()),
        required("answer", text("The user's answer")),
        optional("rationale", free_text("Why this answer")),
    ]);
    let questions =
        json!({"type": "array", "items": question, "minItems": 1, "maxItems": MAX_QUESTIONS});
    with_change(change, vec![required("questions", questions)])
}

pub(super) fn propose_questions(change: Value) -> JsonObject {
    let option = part(vec![
        required("label", text("The answer, in one to five words")),
        required("description", text("What it means, and what it costs")),
    ]);
    let options = json!({
        "type": "array", "description": "Answers that differ; the recommended one first",
        "items": option, "minItems": MIN_OPTIONS, "maxItems": MAX_OPTIONS,
    });
    let question = part(vec![
        required("header", text("What it is about, in one to three words, e.g. Auth method")),
        required("question", text("One question, ending in a question mark")),
        required("options", options),
        optional(
            "multi_select",
            json!({"type": "boolean", "description": "Whether several options may be picked"}),
        ),
    ]);
    let questions = json!({
        "type": "array", "description": "The most important first; headers differ",
        "items": question, "minItems": MIN_QUESTIONS, "maxItems": MAX_QUESTIONS,
    });
    with_change(change, vec![required("questions", questions)])
}

pub(super) fn create_proposal(change: Value) -> JsonObject {
    let id = json!({"type": "string", "pattern": ID});
    let name = json!({"type": "string"});
    let affected = json!({"anyOf": [id, part(vec![
        required("id", name.clone()),
        optional("depends", json!({"type": "array", "items": name})),
    ])]});
    let specs = "Specs to write; {id, depends} if one builds on others";
    let breaking = json!({"type": ["string", "null"], "description": "What breaks, or null"});
    let impact = part(vec![
        required("scope", one_of(&["patch", "minor", "major"])),
        required("affected_specs", list(specs, &affected)),
        optional("affected_files", count("Files that change", 0)),
        optional("new_files", count("New ones of these", 0)),
        optional("affected_code", list("Paths, e.g. src/auth/", &named())),
        optional("breaking_changes", breaking),
    ]);
    with_change(
        change,
        vec![
            required("summary", text("One sentence")),
            required("why", text("The problem; Markdown")),
            required("what_changes", full_list("One concrete change each", &named())),
            required("impact", impact),
        ],
    )
}

pub(super) fn create_spec(change: Value) -> JsonObject {
    let requirement = part(vec![
        required("id", matching(REQUIREMENT, "R1, R2, …; that of the main spec to edit it")),
        required("title", named()),
        required("description", text("What MUST hold, measurably")),
        optional("priority", one_of(&["high", "medium", "low"])),
    ]);
    let scenario = part(vec![
        required("name", text("Unique")),
        optional("given", free_text("State before")),
        required("when", text("What happens")),
        required("then", text("What is observed")),
    ]);
    with_change(
        change,
        vec![
            required("spec_id", matching(ID, "One of affected_specs")),
            required("title", named()),
            required("overview", text("Markdown")),
            required("requirements", list("Added or edited", &requirement)),
            required("scenarios", list("Failures too", &scenario)),
            optional("flow_diagram", free_text("Mermaid")),
        ],
    )
}

pub(super) fn write_spec(change: Value) -> JsonObject {
    let content = "## Overview, ## Requirements (### R1: title), ## Acceptance Criteria (### Scenario: \
                   name, - **WHEN** …, - **THEN** …); frontmatter removes: [R3], renames: {R2: title}";
    with_change(
        change,
        vec![required("spec_id", matching(ID, "The spec")), required("content", text(content))],
    )
}

pub(super) fn create_tasks(change: Value) -> JsonObject {
    let depends = json!({"type": "string", "pattern": TASK});
    let file = part(vec![
        required("path", text("From the project root")),
        required("action", one_of(&["CREATE", "MODIFY", "DELETE"])),
    ]);
    let task = part(vec![
        required("layer", one_of(&["data", "logic", "integration", "testing"])),
        required("number", count("From 1 in each layer", 1)),
        required("title", text("Imperative")),
        required("file", file),
        optional("spec_ref", matching(REFERENCE, "Requirement, e.g. auth-flow:R1")),
        required("description", text("What to do")),
        optional("depends", list("To do before, e.g. data.1", &depends)),
    ]);
    let tasks = full_list("All of them, one file each; every requirement needs one", &task);
    with_change(change, vec![required("tasks", tasks)])
}

pub(super) fn read_file(change: Value) -> JsonObject {
    let path = "From the project root or the change, e.g. tasks.md";
    with_change(
        change,
        vec![required("path", text(path)), optional("offset", count("Byte to start at", 0))],
    )
}

pub(super) fn edit_file(change: Value) -> JsonObject {
    let old = "Text to replace, exact and unique";
    with_change(
        change,
        vec![
            required("path", text("proposal.md, specs/<id>.md, tasks.md, …")),
            required("old_string", json!({"type": "string", "description": old, "minLength": 1})),
            required("new_string", free_text("What to put there")),
        ],
    )
}

pub(super) fn list_directory(change: Value) -> JsonObject {
    with_change(change, vec![required("path", text("As in read_file; . is the project"))])
}

pub(super) fn append_review(change: Value) -> JsonObject {
    let verdict = "APPROVED: ready to implement, no high issue. NEEDS_REVISION: can be mended. \
                   REJECTED: wrong from the ground up";
    let location = "Where, e.g. auth-flow:R1, task 2.1, proposal.md";
    let issue = issue(
        "high stops the plan, medium misleads, low could be better",
        vec![optional("location", free_text(location))],
    );
    review(change, &["APPROVED", "NEEDS_REVISION", "REJECTED"], verdict, &issue)
}

pub(super) fn create_review(change: Value) -> JsonObject {
    let verdict = "APPROVED: done, tests pass, no high issue. NEEDS_FIX: can be mended. \
                   MAJOR_ISSUES: a person has to look";
    let issue = issue(
        "high: wrong or missing, medium: should be mended, low: could be better",
        vec![
            optional("file", text("From the project root")),
            optional("line", count("Line in that file", 1)),
        ],
    );
    review(change, &["APPROVED", "NEEDS_FIX", "MAJOR_ISSUES"], verdict, &issue)
}

fn issue(severities: &str, place: Vec<Field>) -> Value {
    let severity =
        json!({"type": "string", "description": severities, "enum": ["high", "medium", "low"]});
    let title = "A few words; those of an earlier review for the same issue";
    let mut fields = vec![
        required("severity", severity),
        required("title", text(title)),
        required("description", text("What is wrong and why it matters")),
    ];
    fields.extend(place);
    fields.push(optional("recommendation", free_text("What to do about it")));
    part(fields)
}

fn review(change: Value, verdicts: &[&str], meaning: &str, issue: &Value) -> JsonObject {
    let verdict = json!({"type": "string", "description": meaning, "enum": verdicts});
    with_change(
        change,
        vec![
            required("verdict", verdict),
            required("summary", text("Why, in a few sentences")),
            optional("issues", list("Everything found; empty only with APPROVED", issue)),
        ],
    )
}

pub(super) fn complete_task(change: Value) -> JsonObject {
    with_change(
        change,
        vec![
            required("task_id", matching(TASK, "As in tasks.md, e.g. 1.1 or data.1")),
            optional("note", free_text("What was done, in one sentence")),
        ],
    )
}

/// The answer of a tool that writes a document. Six of the planner's tools have
/// it, so it only names what is there: a path, a digest in hex, a list of texts.
pub(super) fn written() -> JsonObject {
    names(&["path", "sha256", "warnings"])
}

/// The answer of a tool that writes a review.
pub(super) fn reviewed() -> JsonObject {
    output(&[
        ("path", one("string")),
        ("sha256", one("string")),
        ("warnings", texts()),
        ("iteration", one("integer")),
    ])
}

/// The answer of `list_directory`.
pub(super) fn listing() -> JsonObject {
    names(&["path", "entries", "truncated"])
}

/// The answer of `complete_task`.
pub(super) fn completed() -> JsonObject {
    output(&[
        ("path", one("string")),
        ("sha256", one("string")),
        ("warnings", texts()),
        ("task_id", one("string")),
        ("completed", one("integer")),
        ("total", one("integer")),
        ("ready", texts()),
    ])
}

/// An answer that always has all of these, whatever they are.
fn names(fields: &[&str]) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("required".to_owned(), json!(fields));
    schema
}

fn one(kind: &str) -> Value {
    json!({"type": kind})
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

/// An answer that always has all of these.
fn output(fields: &[(&str, Value)]) -> JsonObject {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let fields = fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone()));
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(fields.collect()));
    schema.insert("required".to_owned(), json!(names));
    schema
}
