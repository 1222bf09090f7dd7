//! What the models say: a plan for a login, step by step.

use scripted_models::{Reply, Rule, Script};
use serde_json::{Value, json};

/// The change of whichever prompt is answered.
const THIS: &str = "${change}";

/// A proposal that affects these specs: ids, or objects with `id` and `depends`.
pub fn proposal(specs: &Value) -> Value {
    json!({
        "change_id": THIS,
        "summary": "Add a login with email and password.",
        "why": "People want to come back to their own data.",
        "what_changes": ["Add a login with email and password"],
        "impact": { "scope": "minor", "affected_specs": specs, "affected_files": 3, "new_files": 1 },
    })
}

/// A spec with one requirement.
pub fn spec(id: &str) -> Value {
    json!({
        "change_id": THIS,
        "spec_id": id,
        "title": format!("The part {id}"),
        "overview": "What this part of the login does.",
        "requirements": [
            {"id": "R1", "title": "Answer", "description": "The server MUST answer 200 within 2 s.", "priority": "high"},
        ],
        "scenarios": [
            {"name": "Good", "given": "an account", "when": "the password is right", "then": "200 is answered"},
            {"name": "Bad", "when": "the password is wrong", "then": "401 is answered as an error"},
        ],
    })
}

/// One task for each spec.
pub fn tasks(specs: &[&str]) -> Value {
    let tasks: Vec<Value> = if specs.is_empty() {
        vec![json!({"layer": "logic", "number": 1, "title": "Do it",
            "file": {"path": "src/login.rs", "action": "CREATE"}, "description": "Write it.", "depends": []})]
    } else {
        let task = |(index, id): (usize, &&str)| {
            json!({"layer": "logic", "number": index + 1, "title": format!("Write {id}"),
                "file": {"path": format!("src/{id}.rs"), "action": "CREATE"},
                "spec_ref": format!("{id}:R1"), "description": "Write it.", "depends": []})
        };
        specs.iter().enumerate().map(task).collect()
    };
    json!({ "change_id": THIS, "tasks": tasks })
}

/// A review with issues, each a severity and a title.
pub fn review(verdict: &str, issues: &[(&str, &str)]) -> Value {
    let issues: Vec<Value> = issues
        .iter()
        .map(|(severity, title)| {
            json!({"severity": severity, "title": title, "description": format!("{title} goes wrong."),
                "location": "proposal.md", "recommendation": format!("Fix {title}.")})
        })
        .collect();
    json!({ "change_id": THIS, "verdict": verdict, "summary": "Looked at all of it.", "issues": issues })
}

/// A review that finds nothing.
pub fn approved() -> Value {
    review("APPROVED", &[])
}

/// The arguments of `edit_file`.
pub fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "change_id": THIS, "path": path, "old_string": old, "new_string": new })
}

/// An edit of the proposal that changes what the plan says.
pub fn edit_proposal(old: &str, new: &str) -> Value {
    edit("proposal.md", old, new)
}

/// Claude writes a whole file, which it has to [`look`] at first where it is there.
pub fn write(file: &str, text: &str) -> Reply {
    Reply::call("Write", json!({"file_path": format!("${{cwd}}/{file}"), "content": text}))
}

/// Claude reads a file.
pub fn look(file: &str) -> Reply {
    Reply::call("Read", json!({"file_path": format!("${{cwd}}/{file}")}))
}

/// A prompt of this step is answered by one tool call and a closing word.
pub fn calls(step: &str, tool: &str, arguments: Value) -> Rule {
    calls_and_says(step, tool, arguments, "Done.")
}

/// The same with closing words of one's own.
pub fn calls_and_says(step: &str, tool: &str, arguments: Value, words: &str) -> Rule {
    Rule::new()
        .step(step)
        .reply(Reply::call(tool, arguments).saying("I call the tool."))
        .reply(Reply::text(words))
}

/// A prompt of this step is answered by nothing but words.
pub fn says(step: &str, words: &str) -> Rule {
    Rule::new().step(step).reply(Reply::text(words))
}

/// A self-review that finds nothing.
pub fn passes(step: &str) -> Rule {
    says(step, "Nothing to fix. <review>PASS</review>")
}

/// A planner that writes a plan with these specs and finds nothing in it. What comes before
/// it in a script wins.
pub fn planner(specs: &[&str]) -> Script {
    plan(Script::new(), specs)
}

/// The same behind other rules.
pub fn plan(script: Script, specs: &[&str]) -> Script {
    let affected: Vec<Value> = specs.iter().map(|id| json!(id)).collect();
    let mut script = script
        .rule(calls("proposal-gen", "create_proposal", proposal(&json!(affected))))
        .rule(passes("proposal-review"))
        .rule(calls("tasks-gen", "create_tasks", tasks(specs)))
        .rule(passes("tasks-review"));
    for id in specs {
        script = script
            .rule(calls(&format!("spec-gen-{id}"), "create_spec", spec(id)))
            .rule(passes(&format!("spec-review-{id}")));
    }
    script
}

/// A review that says so of the issues of earlier rounds, each an id and a status.
#[must_use]
pub fn settles(mut review: Value, previous: &[(&str, &str)]) -> Value {
    let said = |(id, status): &(&str, &str)| json!({"id": id, "status": status, "reason": format!("{id} was looked at.")});
    review["previous"] = previous.iter().map(said).collect();
    review
}

/// The challenger's verdicts, one challenge after the other; the last one for all that follow.
pub fn challenges(script: Script, reviews: &[Value]) -> Script {
    in_turn(script, "challenge", "append_review", reviews)
}

/// Reproposals, one after the other, each an edit.
pub fn reproposals(script: Script, edits: &[Value]) -> Script {
    in_turn(script, "reproposal", "edit_file", edits)
}

fn in_turn(mut script: Script, step: &str, tool: &str, arguments: &[Value]) -> Script {
    for (index, arguments_of_call) in arguments.iter().enumerate() {
        let rule = calls(step, tool, arguments_of_call.clone());
        let last = index + 1 == arguments.len();
        script = script.rule(if last { rule } else { rule.prompts(1) });
    }
    script
}
