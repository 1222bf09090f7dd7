//! What the models say about `add-oauth`, the change of all pages.

use real_agents::models::{
    approved, calls, challenges, edit, look, plan, proposal, reproposals, review, write,
};
use scripted_models::{Reply, Rule, Script};
use serde_json::{Value, json};

const THIS: &str = "${change}";

/// Where the first review finds an issue.
#[derive(Clone, Copy, Default)]
pub(crate) struct FirstIssues {
    /// The first challenge asks for a revision.
    pub(crate) plan: bool,
    /// The first review of the code asks for a fix.
    pub(crate) code: bool,
}

/// A planner, an implementer and reviewers who do their work.
pub(crate) fn script(issues: FirstIssues) -> Script {
    let mut script = Script::new()
        .rule(calls("clarify", "propose_questions", questions()))
        .rule(
            Rule::new()
                .step("plan-gen")
                .reply(Reply::call("create_proposal", proposal(&json!([]))))
                .reply(Reply::call("create_tasks", real_agents::models::tasks(&[])))
                .reply(Reply::text("Planned.")),
        )
        .rule(calls("tasks-gen", "create_tasks", tasks()))
        .rule(implements("implement-data", "src/user.rs", "1.1"))
        .rule(implements("implement-logic", "src/auth-flow.rs", "2.1"))
        .rule(fixes("src/auth-flow.rs"));
    if issues.code {
        script = script.rule(calls("review", "create_review", needs_fix()).prompts(1));
    }
    script = script.rule(calls("review", "create_review", code_review("APPROVED", &json!([]))));
    let found = review("NEEDS_REVISION", &[("medium", "Nothing is said of people without email")]);
    let verdicts = if issues.plan { vec![found, approved()] } else { vec![approved()] };
    let fix = edit("proposal.md", "to their own data.", "to their data, also without email.");
    plan(reproposals(challenges(script, &verdicts), &[fix]), &["auth-flow"])
}

fn tasks() -> Value {
    let task = |layer: &str, title: &str, path: &str, depends: &[&str]| {
        json!({"layer": layer, "number": 1, "title": title, "file": {"path": path, "action": "CREATE"},
            "spec_ref": "auth-flow:R1", "description": "As R1 asks for.", "depends": depends})
    };
    json!({"change_id": THIS, "tasks": [
        task("data", "Add the user", "src/user.rs", &[]),
        task("logic", "Answer the login", "src/auth-flow.rs", &["1.1"]),
    ]})
}

fn questions() -> Value {
    let question = |header: &str, labels: [&str; 2]| {
        let option = |label: &str| json!({"label": label, "description": format!("{label}.")});
        json!({"header": header, "question": format!("Which {}?", header.to_lowercase()),
            "options": labels.map(option)})
    };
    json!({"change_id": THIS, "questions": [
        question("Provider", ["GitHub only", "Any OAuth provider"]),
        question("Accounts", ["Link by email", "Always a new account"]),
        question("Session", ["A cookie", "A token"]),
    ]})
}

fn implements(step: &str, file: &str, task: &str) -> Rule {
    let tick = json!({"change_id": THIS, "task_id": task, "note": "sh test.sh passes"});
    Rule::new()
        .step(step)
        .reply(write(file, "pub fn answer() -> u16 {\n    200\n}\n"))
        .reply(Reply::call("complete_task", tick))
        .reply(Reply::text("Done."))
}

fn fixes(file: &str) -> Rule {
    Rule::new()
        .step("fix")
        .reply(look(file))
        .reply(write(file, "pub fn answer() -> u16 {\n    401\n}\n"))
        .reply(Reply::text("Done."))
}

fn code_review(verdict: &str, issues: &Value) -> Value {
    json!({"change_id": THIS, "verdict": verdict, "summary": "Compared with R1.", "issues": issues})
}

fn needs_fix() -> Value {
    let issue = json!({"severity": "high", "title": "A wrong password is let in",
        "description": "401 is asked for.", "file": "src/auth-flow.rs", "line": 2,
        "recommendation": "Answer 401."});
    code_review("NEEDS_FIX", &json!([issue]))
}
