//! Arguments of tools that are right.

use serde_json::{Value, json};

use super::CHANGE;

pub(crate) fn clarifications() -> Value {
    json!({"change_id": CHANGE, "questions": [
        {"topic": "Auth Method", "question": "Which one?", "answer": "OAuth", "rationale": "Known."},
        {"topic": "Database", "question": "Which one?", "answer": "PostgreSQL"}
    ]})
}

pub(crate) fn questions() -> Value {
    let options = json!([
        {"label": "OAuth", "description": "Others keep the passwords."},
        {"label": "Own passwords", "description": "Nothing depends on others."}
    ]);
    let question = |header: &str| json!({"header": header, "question": "Which one?", "options": options, "multi_select": false});
    let questions = ["Method", "Storage", "Clients"].map(question);
    json!({"change_id": CHANGE, "questions": questions})
}

pub(crate) fn proposal() -> Value {
    json!({
        "change_id": CHANGE,
        "summary": "Add OAuth authentication",
        "why": "Enable users to login with Google/GitHub",
        "what_changes": ["Add OAuth provider integration", "Add OAuth callback endpoints"],
        "impact": {
            "scope": "minor",
            "affected_specs": ["user-model", {"id": "auth-flow", "depends": ["user-model"]}],
            "affected_files": 8,
            "new_files": 3,
            "affected_code": ["src/auth/", "src/models/"],
            "breaking_changes": null
        }
    })
}

pub(crate) fn spec(id: &str) -> Value {
    json!({
        "change_id": CHANGE,
        "spec_id": id,
        "title": "OAuth Authentication Flow",
        "overview": "Defines the OAuth authentication flow.",
        "requirements": [
            {"id": "R1", "title": "Provider", "description": "The server MUST offer Google.", "priority": "high"},
            {"id": "R2", "title": "Failure", "description": "The server MUST answer 401 on failure."}
        ],
        "scenarios": [
            {"name": "Login", "given": "no session", "when": "the user clicks login", "then": "a 302 is sent"},
            {"name": "Refused", "when": "the provider refuses with an error", "then": "a 401 is sent"}
        ],
        "flow_diagram": "```mermaid\nflowchart LR\n  A --> B\n```"
    })
}

pub(crate) const MARKDOWN: &str = "# Specification: Flow\n\n## Overview\n\nIt flows.\n\n## Requirements\n\n### R1: One\n\nIt MUST answer 200.\n\n## Acceptance Criteria\n\n### Scenario: Ok\n\n- **WHEN** asked\n- **THEN** 200\n";

pub(crate) fn whole_spec() -> Value {
    json!({"change_id": CHANGE, "spec_id": "whole", "content": MARKDOWN})
}

pub(crate) fn tasks() -> Value {
    json!({
        "change_id": CHANGE,
        "tasks": [
            {"layer": "data", "number": 1, "title": "Create User model",
             "file": {"path": "src/models/user.rs", "action": "CREATE"},
             "spec_ref": "user-model:R1", "description": "Define it.", "depends": []},
            {"layer": "logic", "number": 1, "title": "Implement OAuth provider",
             "file": {"path": "src/main.rs", "action": "MODIFY"},
             "spec_ref": "auth-flow:R1", "description": "Do it.", "depends": ["data.1"]}
        ]
    })
}

pub(crate) fn plan_review() -> Value {
    json!({"change_id": CHANGE, "verdict": "NEEDS_REVISION", "summary": "Not yet.", "issues": [
        {"severity": "high", "title": "No timeout", "description": "None is set.",
         "location": "auth-flow:R1", "recommendation": "Set one."}]})
}

pub(crate) fn code_review() -> Value {
    json!({"change_id": CHANGE, "verdict": "NEEDS_FIX", "summary": "Not yet.", "issues": [
        {"severity": "medium", "title": "No test", "description": "None is there.",
         "file": "src/main.rs", "line": 1, "recommendation": "Add one."}]})
}

/// The same review once more, which says so of its issue.
pub(crate) fn of_a_second_round(mut review: Value) -> Value {
    review["previous"] = json!([{"id": "I1", "status": "open", "reason": "It is still there."}]);
    let title = format!("I1: {}", review["issues"][0]["title"].as_str().unwrap());
    review["issues"][0]["title"] = json!(title);
    review
}

pub(crate) fn task() -> Value {
    json!({"change_id": CHANGE, "task_id": "1.1", "note": "Done."})
}

pub(crate) fn read() -> Value {
    json!({"change_id": CHANGE, "path": "proposal.md"})
}

pub(crate) fn list() -> Value {
    json!({"change_id": CHANGE, "path": "."})
}

pub(crate) fn edit() -> Value {
    json!({"change_id": CHANGE, "path": "proposal.md",
        "old_string": "Enable users to", "new_string": "Let users"})
}
