//! Arguments that break the schema or the rules of a document. All are
//! refused, and nothing is written.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{CHANGE, Client, Servers as _, plan, planned};

type Attempt = (&'static str, Value);

/// A right call with another value at one place; `null` takes the place away.
fn with(tool: &'static str, good: Value, place: &str, value: Value) -> Attempt {
    let mut arguments = good;
    let (parent, name) = place.rsplit_once('/').unwrap();
    let parent =
        if parent.is_empty() { &mut arguments } else { arguments.pointer_mut(parent).unwrap() };
    match parent {
        Value::Object(map) if value.is_null() => {
            map.remove(name).unwrap();
        }
        Value::Object(map) => {
            map.insert(name.to_owned(), value);
        }
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        _ => panic!("{place}"),
    }
    (tool, arguments)
}

fn attempts() -> Vec<Attempt> {
    let mut all = Vec::new();
    let clarifications =
        |place: &str, value| with("create_clarifications", plan::clarifications(), place, value);
    let proposal = |place: &str, value| with("create_proposal", plan::proposal(), place, value);
    let spec = |place: &str, value| with("create_spec", plan::spec("auth-flow"), place, value);
    let tasks = |place: &str, value| with("create_tasks", plan::tasks(), place, value);
    let review = |place: &str, value| with("append_review", plan::plan_review(), place, value);
    let code = |place: &str, value| with("create_review", plan::code_review(), place, value);
    let task = |place: &str, value| with("complete_task", plan::task(), place, value);
    let question = json!({"topic": "T", "question": "Q", "answer": "A"});
    all.extend([
        clarifications("/questions", json!([])),
        clarifications(
            "/questions",
            json!([question, question, question, question, question, question]),
        ),
        clarifications("/questions", json!("none")),
        clarifications("/questions/0/topic", json!("")),
        clarifications("/questions/0/answer", json!(" \n ")),
        clarifications("/questions/0/question", json!(null)),
        clarifications("/questions/0/answer", json!(["OAuth"])),
        clarifications("/questions/0/options", json!(["a"])),
    ]);
    for (place, value) in [
        ("/summary", json!("")),
        ("/summary", json!("   ")),
        ("/summary", json!(null)),
        ("/summary", json!(7)),
        ("/why", json!("")),
        ("/what_changes", json!([])),
        ("/what_changes", json!("Add OAuth")),
        ("/what_changes/0", json!("")),
        ("/what_changes/0", json!({"a": 1})),
        ("/impact", json!(null)),
        ("/impact", json!("minor")),
        ("/impact/scope", json!("huge")),
        ("/impact/scope", json!("Minor")),
        ("/impact/scope", json!(null)),
        ("/impact/affected_specs", json!(null)),
        ("/impact/affected_specs", json!("auth-flow")),
        ("/impact/affected_specs/0", json!("Auth Flow")),
        ("/impact/affected_specs/0", json!({"id": "A"})),
        ("/impact/affected_specs/0", json!({"depends": []})),
        ("/impact/affected_specs/0", json!({"id": "user-model", "depends": ["auth-flow"]})),
        ("/impact/affected_specs/0", json!({"id": "user-model", "depends": ["nowhere"]})),
        ("/impact/affected_specs/0", json!({"id": "user-model", "after": []})),
        ("/impact/affected_files", json!(-1)),
        ("/impact/affected_files", json!("eight")),
        ("/impact/affected_files", json!(1.5)),
        ("/impact/affected_files", json!(10_000_000_000_u64)),
        ("/impact/priority", json!("high")),
        ("/title", json!("x")),
        ("/version", json!(9)),
        ("/change_id", json!("")),
        ("/change_id", json!(1)),
        ("/change_id", json!(null)),
        ("/change_id", json!("ADD-OAUTH")),
    ] {
        all.push(proposal(place, value));
    }
    for (place, value) in [
        ("/spec_id", json!("")),
        ("/spec_id", json!("Auth")),
        ("/spec_id", json!(null)),
        ("/title", json!("")),
        ("/overview", json!("\t")),
        ("/requirements", json!(null)),
        ("/requirements", json!([])),
        ("/requirements/0/id", json!("1")),
        ("/requirements/0/id", json!("r1")),
        ("/requirements/0/id", json!("R0")),
        ("/requirements/0/id", json!("r1")),
        ("/requirements/0/id", json!("REQ-1")),
        ("/requirements/0/id", json!("R1.1")),
        ("/requirements/0/id", json!(1)),
        ("/requirements/1/id", json!("R1")),
        ("/requirements/0/description", json!("")),
        ("/requirements/0/title", json!(null)),
        ("/requirements/0/priority", json!("urgent")),
        ("/requirements/0/priority", json!("HIGH")),
        ("/requirements/0/scenarios", json!([])),
        ("/scenarios", json!([])),
        ("/scenarios", json!(null)),
        ("/scenarios/0/when", json!("")),
        ("/scenarios/0/then", json!(null)),
        ("/scenarios/0/then", json!(["a"])),
        ("/scenarios/0/name", json!("")),
        ("/scenarios/0/and", json!("x")),
        ("/flow_diagram", json!(7)),
        ("/flow_diagram", json!("```mermaid\na\n```\ntext\n```\nb\n```")),
        ("/content", json!("x")),
    ] {
        all.push(spec(place, value));
    }
    for content in [
        "",
        "  ",
        "# Only a title",
        "---\nid: auth-flow\n",
        "---\nx: [\n---\n# T\n",
        &plan::MARKDOWN.replace("### R1: One", "### One"),
        &plan::MARKDOWN.replace("- **WHEN** asked\n", ""),
    ] {
        all.push(with("write_spec", plan::whole_spec(), "/content", json!(content)));
    }
    for (place, value) in [
        ("/tasks", json!([])),
        ("/tasks", json!({})),
        ("/tasks/0", json!("task")),
        ("/tasks/0/layer", json!("banana")),
        ("/tasks/0/layer", json!("Data")),
        ("/tasks/0/layer", json!("")),
        ("/tasks/0/layer", json!(null)),
        ("/tasks/0/number", json!(0)),
        ("/tasks/0/number", json!(-1)),
        ("/tasks/0/number", json!("1")),
        ("/tasks/0/number", json!(1.1)),
        ("/tasks/0/number", json!(1000)),
        ("/tasks/0/title", json!("")),
        ("/tasks/0/file", json!("src/a.rs")),
        ("/tasks/0/file", json!(null)),
        ("/tasks/0/file/action", json!("create")),
        ("/tasks/0/file/action", json!("RENAME")),
        ("/tasks/0/file/action", json!(null)),
        ("/tasks/0/file/path", json!("")),
        ("/tasks/0/file/mode", json!("755")),
        ("/tasks/0/spec_ref", json!("nowhere:R1")),
        ("/tasks/0/spec_ref", json!("user-model:R99")),
        ("/tasks/0/spec_ref", json!("user-model:1")),
        ("/tasks/0/spec_ref", json!("user-model")),
        ("/tasks/0/spec_ref", json!("user-model#R1")),
        ("/tasks/0/spec_ref", json!("User Model:R1")),
        ("/tasks/0/spec_ref", json!("")),
        ("/tasks/0/description", json!("")),
        ("/tasks/0/depends", json!(["data.1"])),
        ("/tasks/0/depends", json!(["logic.1"])),
        ("/tasks/0/depends", json!(["data.9"])),
        ("/tasks/0/depends", json!(["first"])),
        ("/tasks/0/depends", json!([1.1])),
        ("/tasks/0/depends", json!("data.1")),
        ("/tasks/0/status", json!("done")),
        ("/tasks/1/layer", json!("data")),
    ] {
        all.push(tasks(place, value));
    }
    for (place, value) in [
        ("/verdict", json!("approved")),
        ("/verdict", json!("NOT APPROVED")),
        ("/verdict", json!("NEEDS_FIX")),
        ("/verdict", json!("")),
        ("/verdict", json!(null)),
        ("/verdict", json!("APPROVED")),
        ("/summary", json!("")),
        ("/issues", json!([])),
        ("/issues", json!("none")),
        ("/issues/0/severity", json!("critical")),
        ("/issues/0/severity", json!("")),
        ("/issues/0/severity", json!(null)),
        ("/issues/0/severity", json!(1)),
        ("/issues/0/title", json!("")),
        ("/issues/0/description", json!(null)),
        ("/issues/0/file", json!("src/a.rs")),
        ("/reviewer", json!("me")),
        ("/iteration", json!(3)),
    ] {
        all.push(review(place, value));
    }
    for (place, value) in [
        ("/verdict", json!("NEEDS_REVISION")),
        ("/verdict", json!("Approved")),
        ("/verdict", json!(["APPROVED"])),
        ("/issues", json!([])),
        ("/issues/0/line", json!(0)),
        ("/issues/0/line", json!("12")),
        ("/issues/0/line", json!(1.5)),
        ("/issues/0/file", json!(null)),
        ("/issues/0/location", json!("x")),
        ("/issues/0/severity", json!("blocker")),
    ] {
        all.push(code(place, value));
    }
    for value in [
        json!(""),
        json!("1"),
        json!("1.0"),
        json!("01.1"),
        json!("banana.1"),
        json!(1.1),
        json!("1.1.1"),
        json!("9.9"),
        json!(null),
    ] {
        all.push(task("/task_id", value));
    }
    all.push(task("/force", json!(true)));
    for (tool, place, value) in [
        ("read_file", "/path", json!(null)),
        ("read_file", "/path", json!(7)),
        ("read_file", "/offset", json!(-1)),
        ("read_file", "/offset", json!("0")),
        ("read_file", "/offset", json!(99_999_999)),
        ("read_file", "/limit", json!(10)),
        ("list_directory", "/recursive", json!(true)),
        ("list_directory", "/path", json!(["."])),
    ] {
        let good = if tool == "read_file" { plan::read() } else { plan::list() };
        let mut arguments = good;
        if value.is_null() {
            arguments.as_object_mut().unwrap().remove(&place[1..]);
        } else {
            arguments[&place[1..]] = value;
        }
        all.push((tool, arguments));
    }
    for (place, value) in [
        ("/old_string", json!("")),
        ("/old_string", json!(null)),
        ("/new_string", json!(null)),
        ("/old_string", json!("not there")),
        ("/old_string", json!("OAuth")),
        ("/new_string", json!("Enable users to")),
        ("/replace_all", json!(true)),
        ("/new_string", json!(1)),
    ] {
        all.push(with("edit_file", plan::edit(), place, value));
    }
    all
}

/// Texts and lists that are far too long.
fn huge() -> Vec<Attempt> {
    let huge = json!("x".repeat(10 * 1024 * 1024));
    let text = json!("x".repeat(2 * 1024 * 1024));
    let name = json!("x".repeat(201));
    let many = |item: Value, n: usize| Value::Array(vec![item; n]);
    vec![
        with("create_proposal", plan::proposal(), "/why", huge.clone()),
        with("write_spec", plan::whole_spec(), "/content", huge.clone()),
        with("edit_file", plan::edit(), "/old_string", huge),
        with("create_proposal", plan::proposal(), "/change_id", text.clone()),
        with("create_proposal", plan::proposal(), "/what_changes", many(json!("x"), 101)),
        with("create_proposal", plan::proposal(), "/impact/affected_specs", many(json!("a"), 51)),
        with("create_spec", plan::spec("auth-flow"), "/title", name.clone()),
        with("create_spec", plan::spec("auth-flow"), "/requirements/0/description", text.clone()),
        with(
            "create_spec",
            plan::spec("auth-flow"),
            "/scenarios",
            many(plan::spec("a")["scenarios"][0].clone(), 401),
        ),
        with("write_spec", plan::whole_spec(), "/content", text.clone()),
        with(
            "write_spec",
            plan::whole_spec(),
            "/content",
            json!(format!("{}\n{}", plan::MARKDOWN, "é".repeat(1024 * 600))),
        ),
        with("create_tasks", plan::tasks(), "/tasks", many(plan::tasks()["tasks"][0].clone(), 501)),
        with("create_tasks", plan::tasks(), "/tasks/0/file/path", text.clone()),
        with("create_tasks", plan::tasks(), "/tasks/0/title", name.clone()),
        with("append_review", plan::plan_review(), "/summary", text.clone()),
        with("append_review", plan::plan_review(), "/issues/0/title", name),
        with(
            "append_review",
            plan::plan_review(),
            "/issues",
            many(plan::plan_review()["issues"][0].clone(), 201),
        ),
        with("edit_file", plan::edit(), "/new_string", text.clone()),
        with("edit_file", plan::edit(), "/new_string", json!("é".repeat(1024 * 600))),
        with("create_clarifications", plan::clarifications(), "/questions/0/answer", text.clone()),
        with("read_file", plan::read(), "/path", text.clone()),
        with("complete_task", plan::task(), "/note", text),
    ]
}

fn all_refused(attempts: Vec<Attempt>) {
    let project = planned();
    let before = project.contents();
    let mut clients = BTreeMap::new();
    for (tool, arguments) in attempts {
        let client = clients.entry(tool).or_insert_with(|| project.client_with(tool));
        let message = client.refused(tool, arguments.clone());
        let shown: String = arguments.to_string().chars().take(300).collect();
        assert!(message.len() > 20 && message.len() < 4000, "{tool} {shown}: {message}");
        assert!(project.contents() == before, "{tool} {shown} has written something");
    }
}

#[test]
fn schema_violations_write_nothing() {
    let attempts = attempts();
    assert!(attempts.len() >= 150, "{}", attempts.len());
    all_refused(attempts);
}

#[test]
fn too_large_input_is_not_written() {
    all_refused(huge());
}

#[test]
fn errors_name_field_and_allowed_values() {
    let project = planned();
    let mut client = Client::start(project.server(&["--change", CHANGE]));
    let (_, arguments) = with("create_tasks", plan::tasks(), "/tasks/1/layer", json!("banana"));
    insta::assert_snapshot!(client.refused("create_tasks", arguments), @"
    The arguments do not fit the tool. `tasks[1].layer`: unknown variant `banana`, expected one of `data`, `logic`, `integration`, `testing`
    Correct that field and call the tool again; nothing was written.
    ");
    let (_, arguments) =
        with("append_review", plan::plan_review(), "/issues/0/severity", json!("bad"));
    insta::assert_snapshot!(project.client("challenger").refused("append_review", arguments), @"
    The arguments do not fit the tool. `issues[0].severity`: `bad` is not a severity; it is high, medium or low
    Correct that field and call the tool again; nothing was written.
    ");
    let (_, arguments) =
        with("create_proposal", plan::proposal(), "/impact/affected_specs/1", json!({"id": "X y"}));
    insta::assert_snapshot!(client.refused("create_proposal", arguments), @"
    The arguments do not fit the tool. `impact.affected_specs[1].id`: spec id `X y` has 'X' at position 1; ids are lower-case letters, digits and `-`, and start with a letter or digit
    Correct that field and call the tool again; nothing was written.
    ");
}
