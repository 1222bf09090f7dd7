//! Makes the recording that `agentd demo` plays: the real gemini, codex and claude, with
//! scripted models behind them, take the demo's project through the whole story.
//!
//! ```text
//! cargo build -p agentd
//! cargo test -p real-agents --test it -- --ignored record_the_demo
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use real_agents::Sandbox;
use real_agents::models::{calls, passes};
use scripted_models::{Reply, Rule, Script, Usage};
use serde_json::{Value, json};

use super::project::{bash, does, look, write};

/// `agentd demo` says it so, too.
const CHANGE: &str = "greet-by-name";
const DESCRIPTION: &str = "Greet people by name";

const CONFIG: &str = "[git]\nworkflow = \"branch\"\ncommit = \"layer\"\n[implementation]\ntest_command = \"sh test.sh\"\n";

/// What is wrong with it: it ends with 1 and says nothing.
const HASTY: &str = "#!/bin/sh\n[ -n \"$1\" ] || exit 1\necho \"Hello, $1!\"\n";
const RIGHT: &str = "#!/bin/sh\nif [ -z \"$1\" ]; then\n    echo \"usage: greet NAME\" >&2\n    exit 2\nfi\necho \"Hello, $1!\"\n";

/// What is wrong with it: any failure is good enough for it.
const WEAK_TEST: &str = "if sh bin/greet > /dev/null 2>&1; then exit 1; fi\n";
const STRONG_TEST: &str = "said=$(sh bin/greet 2>&1 > /dev/null)\n[ $? -eq 2 ] || { echo \"it does not end with 2\"; exit 1; }\n[ \"$said\" = \"usage: greet NAME\" ] || { echo \"it said: $said\"; exit 1; }\n";

fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/agentd/assets/demo")
}

fn proposal() -> Value {
    json!({
        "change_id": CHANGE,
        "summary": "Greet people by their name instead of greeting everybody alike.",
        "why": "`bin/greet` says `Hello!` to everybody, and tests/by-name.sh, which asks for a greeting by name, fails.",
        "what_changes": ["`bin/greet NAME` prints `Hello, NAME!`"],
        "impact": {
            "scope": "minor",
            "affected_specs": ["greeting"],
            "affected_files": 1,
            "new_files": 1,
            "affected_code": ["bin/greet", "tests/"],
        },
    })
}

fn by_name() -> Value {
    json!({"id": "R1", "title": "By name", "priority": "high",
        "description": "`bin/greet NAME` MUST print `Hello, NAME!` and end with exit code 0."})
}

fn spec() -> Value {
    json!({
        "change_id": CHANGE,
        "spec_id": "greeting",
        "title": "Greeting",
        "overview": "How `bin/greet` greets people.",
        "requirements": [by_name()],
        "scenarios": [
            {"name": "A name", "when": "`bin/greet Ada` is run", "then": "`Hello, Ada!` is printed and the exit code is 0"},
            {"name": "A name with a space", "when": "`bin/greet \"Ada Lovelace\"` is run", "then": "`Hello, Ada Lovelace!` is printed, no error"},
        ],
    })
}

fn task(
    layer: &str,
    number: u32,
    title: &str,
    file: (&str, &str),
    spec_ref: &str,
    depends: &[&str],
    what: &str,
) -> Value {
    json!({"layer": layer, "number": number, "title": title,
        "file": {"path": file.0, "action": file.1}, "spec_ref": spec_ref,
        "description": what, "depends": depends})
}

fn greet() -> Value {
    task(
        "logic",
        1,
        "Greet by name",
        ("bin/greet", "MODIFY"),
        "greeting:R1",
        &[],
        "Print `Hello, NAME!` with the first argument as the name.",
    )
}

/// The planner's first plan, which forgets who gives no name.
fn first_tasks() -> Value {
    json!({"change_id": CHANGE, "tasks": [greet()]})
}

fn second_tasks() -> Value {
    let refuse = task(
        "logic",
        2,
        "Refuse without a name",
        ("bin/greet", "MODIFY"),
        "greeting:R2",
        &["2.1"],
        "Without a name print the usage on stderr and end with exit code 2.",
    );
    let test = task(
        "testing",
        1,
        "Test the refusal",
        ("tests/no-name.sh", "CREATE"),
        "greeting:R2",
        &["2.2"],
        "Test the exit code, and what is printed on stderr.",
    );
    json!({"change_id": CHANGE, "tasks": [greet(), refuse, test]})
}

const SECOND_REQUIREMENT: &str = "### R2: Without a name\n\n**Priority**: high\n\nWithout a name `bin/greet` MUST print `usage: greet NAME` on stderr and end with exit code 2.\n\n";
const SECOND_SCENARIO: &str = "### Scenario: No name\n\n- **WHEN** `bin/greet` is run without a name\n- **THEN** `usage: greet NAME` is printed on stderr as an error, and the exit code is 2\n\n";

fn plan_review(verdict: &str, issues: &Value) -> Value {
    let summary = if verdict == "APPROVED" {
        "What happens without a name is settled now, and a task tests it."
    } else {
        "The greeting is clear; what happens without a name is not said anywhere."
    };
    json!({"change_id": CHANGE, "verdict": verdict, "summary": summary, "issues": issues})
}

fn code_review(verdict: &str, summary: &str, issues: &Value) -> Value {
    json!({"change_id": CHANGE, "verdict": verdict, "summary": summary, "issues": issues})
}

/// The review of a second round, which says that the issue of the first is fixed.
fn settled(mut review: Value, reason: &str) -> Value {
    review["previous"] = json!([{"id": "I1", "status": "fixed", "reason": reason}]);
    review
}

fn edit_file(path: &str, old: &str, new: &str) -> Reply {
    Reply::call(
        "edit_file",
        json!({"change_id": CHANGE, "path": path, "old_string": old, "new_string": new}),
    )
}

fn tick(task: &str, note: &str) -> Reply {
    Reply::call("complete_task", json!({"change_id": CHANGE, "task_id": task, "note": note}))
}

fn script() -> Script {
    let unclear = json!([{"severity": "high", "title": "Nothing is said of a missing name",
        "description": "`bin/greet` without a name would print `Hello, !`. No requirement, scenario or task is about it.",
        "location": "greeting:R1",
        "recommendation": "Add a requirement: usage on stderr and exit code 2, with a scenario and a test."}]);
    let careless = json!([{"severity": "high", "title": "Exit code 1 and no usage without a name",
        "description": "R2 asks for `usage: greet NAME` on stderr and exit code 2; bin/greet ends silently with 1, and tests/no-name.sh takes any failure for right.",
        "file": "bin/greet", "line": 2,
        "recommendation": "Print the usage, end with 2, and let the test look at both."}]);
    let mut script = Script::new().usage(Usage {
        input: 9_000,
        cached: 6_000,
        cache_written: 0,
        output: 600,
        reasoning: 0,
    });
    for rule in [
        calls("proposal-gen", "create_proposal", proposal()),
        passes("proposal-review"),
        calls("spec-gen-greeting", "create_spec", spec()),
        passes("spec-review-greeting"),
        calls("tasks-gen", "create_tasks", first_tasks()),
        passes("tasks-review"),
        calls("challenge", "append_review", plan_review("NEEDS_REVISION", &unclear)).prompts(1),
        calls(
            "challenge",
            "append_review",
            settled(plan_review("APPROVED", &json!([])), "greeting:R2 and task 4.1 are about it."),
        ),
        Rule::new()
            .step("reproposal")
            .reply(edit_file(
                "specs/greeting.md",
                "## Acceptance Criteria",
                &format!("{SECOND_REQUIREMENT}## Acceptance Criteria"),
            ))
            .reply(edit_file(
                "specs/greeting.md",
                "### Scenario: A name with a space",
                &format!("{SECOND_SCENARIO}### Scenario: A name with a space"),
            ))
            .reply(Reply::call("create_tasks", second_tasks()))
            .reply(Reply::text("I1: greeting:R2 with a scenario, and the tasks 2.2 and 4.1.")),
        does(
            "implement-logic",
            [
                look("bin/greet"),
                write("bin/greet", HASTY),
                bash("sh test.sh"),
                tick("2.1", "tests/by-name.sh passes"),
                tick("2.2", "bin/greet fails without a name"),
            ],
        ),
        does(
            "implement-testing",
            [
                write("tests/no-name.sh", WEAK_TEST),
                bash("sh test.sh"),
                tick("4.1", "sh test.sh passes"),
            ],
        ),
        calls(
            "review",
            "create_review",
            code_review(
                "NEEDS_FIX",
                "The greeting is right; the refusal is not what R2 asks for.",
                &careless,
            ),
        )
        .prompts(1),
        calls(
            "review",
            "create_review",
            settled(
                code_review(
                    "APPROVED",
                    "Both requirements hold, and the tests would notice if they did not.",
                    &json!([]),
                ),
                "The usage is printed, and the test looks at both.",
            ),
        ),
        does(
            "fix",
            [
                look("tests/no-name.sh"),
                write("tests/no-name.sh", STRONG_TEST),
                look("bin/greet"),
                write("bin/greet", RIGHT),
                bash("sh test.sh"),
            ],
        ),
    ] {
        script = script.rule(rule);
    }
    script
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::write(to, fs::read(from).unwrap()).unwrap();
        }
    }
}

/// A run without what is not played again, such as the literal output of the CLI, and
/// without the paths of this machine.
fn reduced(run: &str, sandbox: &Sandbox) -> String {
    let root = fs::canonicalize(sandbox.base()).unwrap();
    let clis = fs::canonicalize(sandbox.clis().bin_folder()).unwrap();
    let agentd = test_project::agentd();
    let bin = agentd.parent().unwrap().to_str().unwrap();
    let played = run.lines().filter(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        value.get("raw").is_none() && value.get("stderr").is_none()
    });
    let text: String = played.map(|line| format!("{line}\n")).collect();
    text.replace(sandbox.home().canonicalize().unwrap().to_str().unwrap(), "/demo/user")
        .replace(root.to_str().unwrap(), "/demo")
        .replace(clis.to_str().unwrap(), "/usr/bin")
        .replace(bin, "/usr/bin")
}

/// Not a test: it writes crates/agentd/assets/demo/runs.
#[test]
#[ignore = "records what `agentd demo` plays"]
fn record_the_demo() {
    Sandbox::enter(script(), |sandbox| {
        sandbox.set_up(CONFIG);
        copy(&assets().join("project"), &sandbox.root());
        sandbox.run(["init", "--agents", "none"]).exits(0);
        sandbox.git(&["config", "user.name", "Demo"]);
        sandbox.git(&["config", "user.email", "demo@example.org"]);
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["commit", "-q", "-m", "A greeting"]);
        let plan = ["plan", CHANGE, DESCRIPTION, "--auto", "--skip-clarify", "--git", "branch"];
        let planned = sandbox.run(plan).exits(0);
        let built = sandbox.run(["impl", CHANGE]).exits(0);
        for ran in [&planned, &built] {
            println!("{}{}", ran.stderr, ran.stdout);
        }
        let validated = sandbox.run(["validate", CHANGE, "--strict"]);
        println!("{}{}", validated.stderr, validated.stdout);
        let change = sandbox.root().join("agentd/changes").join(CHANGE);
        let recording = assets().join("runs");
        let _ = fs::remove_dir_all(&recording);
        fs::create_dir_all(&recording).unwrap();
        let mut bytes = 0;
        for entry in fs::read_dir(change.join("runs")).unwrap() {
            let entry = entry.unwrap();
            let run = reduced(&fs::read_to_string(entry.path()).unwrap(), sandbox);
            bytes += run.len();
            fs::write(recording.join(entry.file_name()), run).unwrap();
        }
        println!("{bytes} bytes");
        assert!(bytes < 300_000, "{bytes} bytes are too many for a binary");
        sandbox.run(["archive", CHANGE]).exits(0);
    });
}
