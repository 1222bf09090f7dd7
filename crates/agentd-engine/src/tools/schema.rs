//! What the schemas of the tools are built from, as clients see them.
//!
//! They are written by hand because a model reads every word of them and every
//! session pays for every byte: `tools/list` stays below 8 kB for any role. A
//! test holds them against the types that read the arguments: what a schema
//! forbids is refused, and what it allows is read. To stay small they do not
//! say everything: the server alone knows the caps on sizes, that `null` stands
//! for an optional field that is left out, that severities may be written in
//! capitals, and what makes a good path, a layer in the id of a task, or an id
//! inside `{id, depends}`.

use serde_json::{Map, Value, json};

/// A schema, or the arguments of a call.
pub(super) type JsonObject = Map<String, Value>;

/// What an id of a change or of a spec looks like.
pub(super) const ID: &str = "^[a-z0-9][a-z0-9-]{0,63}$";
/// What the id of a requirement looks like.
pub(super) const REQUIREMENT: &str = "^([A-Z][A-Z0-9]{0,15}-)?R[1-9]\\d*$";
/// What the id of a task looks like.
pub(super) const TASK: &str = "^[a-z0-9]+\\.[1-9]\\d*$";
/// What the id of an issue looks like.
pub(super) const ISSUE: &str = "^I[1-9]\\d*$";
/// What a reference from a task to a requirement looks like.
pub(super) const REFERENCE: &str = "^[a-z0-9-]+:([A-Z][A-Z0-9]{0,15}-)?R[1-9]\\d*$";

/// One field of an object.
pub(super) struct Field(&'static str, Value, Need);

#[derive(PartialEq, Eq)]
enum Need {
    Required,
    Optional,
}

pub(super) fn required(name: &'static str, schema: Value) -> Field {
    Field(name, schema, Need::Required)
}

pub(super) fn optional(name: &'static str, schema: Value) -> Field {
    Field(name, schema, Need::Optional)
}

/// Text that must not be blank.
pub(super) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description, "pattern": "\\S"})
}

/// Text that must not be blank and whose name says enough.
pub(super) fn named() -> Value {
    json!({"type": "string", "pattern": "\\S"})
}

/// Text that may be blank.
pub(super) fn free_text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

pub(super) fn matching(pattern: &str, description: &str) -> Value {
    json!({"type": "string", "description": description, "pattern": pattern})
}

/// The id of a spec, in a field whose name says enough.
pub(super) fn id() -> Value {
    json!({"type": "string", "pattern": ID})
}

pub(super) fn list(description: &str, items: &Value) -> Value {
    json!({"type": "array", "description": description, "items": items})
}

pub(super) fn full_list(description: &str, items: &Value) -> Value {
    json!({"type": "array", "description": description, "items": items, "minItems": 1})
}

pub(super) fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

pub(super) fn count(description: &str, from: u32) -> Value {
    json!({"type": "integer", "description": description, "minimum": from})
}

/// An object with these fields and no others.
pub(super) fn object(fields: Vec<Field>) -> JsonObject {
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

pub(super) fn part(fields: Vec<Field>) -> Value {
    Value::Object(object(fields))
}

/// The field that says which change is meant.
///
/// It stands in every tool, so a long id would cost more than it is worth; the
/// instructions name it as well.
pub(super) fn change(bound: Option<&str>) -> Value {
    const SHORT: usize = 12;
    match bound {
        Some(id) if id.len() <= SHORT => one_of(&[id]),
        Some(_) => free_text("Change"),
        None => matching(ID, "Id of the change"),
    }
}

pub(super) fn with_change(change: Value, mut fields: Vec<Field>) -> JsonObject {
    fields.insert(0, required("change_id", change));
    object(fields)
}

/// The answer of a tool that writes a document: a path, a digest in hex, a list of texts. Six of
/// the planner's tools have it, so it only says that there is one.
pub(super) fn written() -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema
}

/// The answer of a tool that writes a review.
pub(super) fn reviewed() -> JsonObject {
    answer(&[
        ("path", one("string")),
        ("sha256", one("string")),
        ("warnings", texts()),
        ("iteration", one("integer")),
    ])
}

/// An answer that always has all of these, whatever they are.
pub(super) fn names(fields: &[&str]) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("required".to_owned(), json!(fields));
    schema
}

pub(super) fn one(kind: &str) -> Value {
    json!({"type": kind})
}

pub(super) fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

/// An answer that always has all of these.
pub(super) fn answer(fields: &[(&str, Value)]) -> JsonObject {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let fields = fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone()));
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(fields.collect()));
    schema.insert("required".to_owned(), json!(names));
    schema
}
