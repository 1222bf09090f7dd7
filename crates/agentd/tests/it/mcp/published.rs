//! What `tools/list` publishes: how large it is, what it says, and that it holds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{CHANGE, Client, Servers as _, plan, planned, project};

fn list(command: std::process::Command) -> Value {
    Client::start(command).result("tools/list", json!({}))
}

#[test]
fn tool_list_is_small_for_every_role() {
    let project = project();
    for id in [CHANGE.to_owned(), "a".repeat(12), "a".repeat(13), "a".repeat(64)] {
        for role in ["planner", "challenger", "implementer", "reviewer"] {
            let size = list(project.server(&["--change", &id, "--role", role])).to_string().len();
            assert!(size <= 8000, "{role} with an id of {}: {size} bytes", id.len());
        }
        let arguments = ["--change", &id, "--role", "planner", "--step", "clarify"];
        let size = list(project.server(&arguments)).to_string().len();
        assert!(size <= 3000, "clarify with an id of {}: {size} bytes", id.len());
    }
}

#[test]
fn every_tool_has_annotations_and_schema() {
    let project = project();
    let all = list(project.server(&[]));
    let clarify = ["--change", CHANGE, "--role", "planner", "--step", "clarify"];
    let clarify = list(project.server(&clarify));
    for tool in [&all, &clarify].iter().flat_map(|list| list["tools"].as_array().unwrap()) {
        let name = tool["name"].as_str().unwrap();
        let annotations = &tool["annotations"];
        let reads = matches!(name, "read_file" | "list_directory");
        assert_eq!(annotations["readOnlyHint"], reads, "{name}");
        assert_eq!(annotations["destructiveHint"] == false, !reads, "{name}");
        assert_eq!(annotations["openWorldHint"], false, "{name}");
        assert!(tool["description"].as_str().is_some_and(|d| d.len() > 20), "{name}");
        let in_words = matches!(name, "read_file" | "remove_spec");
        assert_eq!(tool["outputSchema"].is_object(), !in_words, "{name}");
        strict(name, &tool["inputSchema"]);
    }
}

/// Objects know all their fields, and every field is described, one of a few
/// words, or called what it is.
fn strict(path: &str, schema: &Value) {
    assert!(schema.get("$ref").is_none() && schema.get("$schema").is_none(), "{path}");
    if schema["type"] == "object" {
        assert_eq!(schema["additionalProperties"], false, "{path}");
        for (name, field) in schema["properties"].as_object().unwrap() {
            let said = field.get("description").is_some()
                || field.get("enum").is_some()
                || matches!(name.as_str(), "title" | "question" | "id" | "spec_id" | "depends")
                || matches!(field["type"].as_str(), Some("object" | "array"));
            assert!(said, "{path}.{name}");
            strict(&format!("{path}.{name}"), field);
        }
    }
    if let Some(items) = schema.get("items") {
        strict(&format!("{path}[]"), items);
    }
}

/// Right arguments of every tool, and the fields whose absence is fine.
fn examples() -> Vec<(&'static str, Value)> {
    vec![
        ("create_clarifications", plan::clarifications()),
        ("create_proposal", plan::proposal()),
        ("create_spec", plan::spec("user-model")),
        ("create_spec", plan::spec("auth-flow")),
        ("write_spec", plan::whole_spec()),
        ("remove_spec", json!({"change_id": CHANGE, "spec_id": "whole"})),
        ("create_tasks", plan::tasks()),
        ("read_file", plan::read()),
        ("list_directory", plan::list()),
        ("append_review", plan::plan_review()),
        ("append_review", plan::of_a_second_round(plan::plan_review())),
        ("create_review", plan::code_review()),
        ("create_review", plan::of_a_second_round(plan::code_review())),
        ("complete_task", plan::task()),
        ("edit_file", plan::edit()),
    ]
}

/// Every way to spoil one place of a value: take it away, or put something else there.
fn spoiled(value: &Value) -> Vec<Value> {
    let wrong = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(""),
        json!("  "),
        json!("Banana!"),
        json!([]),
        json!({}),
        json!([{}]),
        json!([1]),
    ];
    let mut all = Vec::new();
    match value {
        Value::Object(map) => {
            let mut more = map.clone();
            more.insert("surprise".to_owned(), json!(1));
            all.push(Value::Object(more));
            for (key, inner) in map {
                let mut without = map.clone();
                without.remove(key);
                all.push(Value::Object(without));
                for other in wrong.iter().cloned().chain(spoiled(inner)) {
                    let mut changed = map.clone();
                    changed.insert(key.clone(), other);
                    all.push(Value::Object(changed));
                }
            }
        }
        Value::Array(items) => {
            for (i, inner) in items.iter().enumerate() {
                for other in wrong.iter().cloned().chain(spoiled(inner)) {
                    let mut changed = items.clone();
                    changed[i] = other;
                    all.push(Value::Array(changed));
                }
            }
        }
        _ => {}
    }
    all
}

/// Whether the words of a refusal are about the shape of the arguments.
fn about_shape(answer: &Value) -> bool {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    answer["result"]["isError"] == true && text.starts_with("The arguments do not fit the tool.")
}

#[test]
fn published_schemas_are_enforced() {
    let project = project();
    project.write_root("src/models/user.rs", "x");
    let (mut agreed, mut lenient) = (0, 0);
    for example in examples() {
        let (more, less) = compare(project.client_with(example.0), vec![example]);
        (agreed, lenient) = (agreed + more, lenient + less);
    }
    assert!(agreed > 1500 && lenient * 10 < agreed, "{agreed} agreed, {lenient} did not");
    let questions = vec![("propose_questions", plan::questions())];
    let (agreed, lenient) = compare(project.clarifying_client(), questions);
    assert!(agreed > 400 && lenient * 10 < agreed, "{agreed} agreed, {lenient} did not");
}

/// On how many inputs schema and server agree, and on how many the server is more lenient.
fn compare(mut client: Client, examples: Vec<(&str, Value)>) -> (u32, u32) {
    let tools = client.result("tools/list", json!({}))["tools"].clone();
    let (mut agreed, mut lenient) = (0, 0);
    for (name, good) in examples {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        let validator = jsonschema::validator_for(&tool["inputSchema"]).unwrap();
        assert!(validator.is_valid(&good), "{name}: {good}");
        client.ok(name, good.clone());
        let all = spoiled(&good);
        let answers = at_once(&mut client, name, &all);
        for (arguments, answer) in all.iter().zip(answers) {
            let valid = validator.is_valid(arguments);
            // What fits the schema may still break a rule of the document.
            let refused = answer["result"]["isError"] == true;
            let fits = if valid { !about_shape(&answer) } else { !refused };
            if valid == fits {
                agreed += 1;
                continue;
            }
            // The exceptions that `tools/schema.rs` of the engine names: `null` for an optional field.
            let nothing = without_nulls(arguments);
            assert!(
                fits && validator.is_valid(&nothing) || !fits && is_inexact(arguments),
                "{name}: schema says {valid}, server says {answer} to {arguments}"
            );
            lenient += 1;
        }
    }
    (agreed, lenient)
}

/// The answers to calls of a tool, a few of which are on their way at a time: each by itself
/// would mostly be waiting for two processes to take turns. So few that no pipe is full.
fn at_once(client: &mut Client, name: &str, all: &[Value]) -> Vec<Value> {
    let mut answers = Vec::new();
    for some in all.chunks(8) {
        let call = |arguments: &Value| json!({"name": name, "arguments": arguments});
        let ids: Vec<u64> =
            some.iter().map(|arguments| client.request("tools/call", call(arguments))).collect();
        let mut found: BTreeMap<u64, Value> = BTreeMap::new();
        while found.len() < ids.len() {
            let answer = client.receive();
            if let Some(id) = answer["id"].as_u64() {
                found.insert(id, answer);
            }
        }
        for id in ids {
            let answer = found.remove(&id).unwrap();
            if answer["result"]["isError"] != true {
                client.check_output(name, &answer["result"]);
            }
            answers.push(answer);
        }
    }
    answers
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, v)| !v.is_null());
            Value::Object(kept.map(|(k, v)| (k.clone(), without_nulls(v))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// Where the schema is looser than the server: ids inside `{id, depends}` and
/// paths are checked by the server alone.
fn is_inexact(arguments: &Value) -> bool {
    let specs = arguments["impact"]["affected_specs"].as_array();
    let odd_spec = specs.is_some_and(|specs| {
        specs.iter().any(|spec| {
            let bad =
                |id: &Value| id.as_str().is_some_and(|id| id.trim().is_empty() || id == "Banana!");
            bad(&spec["id"]) || spec["depends"].as_array().is_some_and(|ids| ids.iter().any(bad))
        })
    });
    let blank = |path: &Value| path.as_str().is_some_and(|path| path.trim().is_empty());
    let odd_path = blank(&arguments["path"])
        || arguments["issues"].as_array().is_some_and(|all| all.iter().any(|i| blank(&i["file"])))
        || arguments["tasks"]
            .as_array()
            .is_some_and(|all| all.iter().any(|t| blank(&t["file"]["path"])));
    odd_spec || odd_path
}

#[test]
fn severities_may_be_upper_case() {
    let project = planned();
    let mut review = plan::plan_review();
    review["issues"][0]["severity"] = json!("HIGH");
    project.client("challenger").ok("append_review", review);
}
