//! What tools do to a change, on a real directory.
#![expect(clippy::needless_pass_by_value, reason = "json!(…) reads better without borrowing")]

mod anything;
mod by_person;
mod comments;
mod edits;
mod reviews;
mod tasks;
mod writes;

use std::fs;

use agentd_engine::tools::{self, ActionError, Session, Written, input};
use serde_json::{Value, json};
use test_project::{TestProject, stamp};

/// A project with the empty changes `add-oauth` and `other`.
fn project() -> TestProject {
    let project = TestProject::new().about("add-oauth").root_file("agentd/config.toml", "");
    for id in ["add-oauth", "other"] {
        fs::create_dir(project.root().join("agentd/changes").join(id)).unwrap();
    }
    project
}

/// The same with proposal, two specs and tasks, written by the tools themselves.
fn planned() -> TestProject {
    let project = project();
    project.proposal(proposal()).unwrap();
    project.spec(spec("auth-flow")).unwrap();
    project.spec(spec("user-model")).unwrap();
    project.tasks(tasks()).unwrap();
    project
}

/// The tools, as an agent calls them.
trait Tools {
    fn at<T>(&self, now: &str, act: impl FnOnce(&Session<'_>) -> T) -> T;

    fn with<T>(&self, act: impl FnOnce(&Session<'_>) -> T) -> T {
        self.at("2026-02-03T04:05:06Z", act)
    }

    fn proposal(&self, value: Value) -> Result<Written, ActionError> {
        self.with(|session| tools::create_proposal(session, read(value)?))
    }

    fn spec(&self, value: Value) -> Result<Written, ActionError> {
        self.with(|session| tools::create_spec(session, read(value)?))
    }

    fn write_spec(&self, id: &str, content: &str) -> Result<Written, ActionError> {
        let value = json!({"change_id": "add-oauth", "spec_id": id, "content": content});
        self.with(|session| tools::write_spec(session, read(value)?))
    }

    fn remove_spec(&self, id: &str) -> Result<tools::Removed, ActionError> {
        let value = json!({"change_id": "add-oauth", "spec_id": id});
        self.with(|session| tools::remove_spec(session, &read(value)?))
    }

    fn tasks(&self, value: Value) -> Result<Written, ActionError> {
        self.with(|session| tools::create_tasks(session, read(value)?))
    }

    fn edit_file(&self, path: &str, old: &str, new: &str) -> Result<Written, ActionError> {
        let value =
            json!({"change_id": "add-oauth", "path": path, "old_string": old, "new_string": new});
        self.with(|session| tools::edit_file(session, &read(value)?))
    }
}

impl Tools for TestProject {
    fn at<T>(&self, now: &str, act: impl FnOnce(&Session<'_>) -> T) -> T {
        self.as_agent("codex", stamp(now), act)
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ActionError> {
    input::read(value.as_object().unwrap().clone())
}

fn refused<T: std::fmt::Debug>(result: Result<T, ActionError>) -> String {
    match result {
        Err(ActionError::Refused(refusal)) => refusal.to_string(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn proposal() -> Value {
    json!({
        "change_id": "add-oauth",
        "summary": "Add OAuth authentication",
        "why": "Enable users to login with Google/GitHub",
        "what_changes": ["Add OAuth provider integration", "Add OAuth callback endpoints"],
        "impact": {
            "scope": "minor",
            "affected_specs": ["user-model", {"id": "auth-flow", "depends": ["user-model"]}],
            "affected_files": 8,
            "affected_code": ["src/auth/", "src/models/"],
            "breaking_changes": null
        }
    })
}

fn spec(id: &str) -> Value {
    json!({
        "change_id": "add-oauth",
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

fn tasks() -> Value {
    json!({
        "change_id": "add-oauth",
        "tasks": [
            {"layer": "logic", "number": 1, "title": "Implement OAuth provider",
             "file": {"path": "src/auth/oauth.rs", "action": "MODIFY"},
             "spec_ref": "auth-flow:R1", "description": "Do it.", "depends": ["data.1"]},
            {"layer": "data", "number": 1, "title": "Create User model",
             "file": {"path": "src/models/user.rs", "action": "CREATE"},
             "spec_ref": "user-model:R1", "description": "Define it.", "depends": []},
            {"layer": "testing", "number": 1, "title": "Drop the old one",
             "file": {"path": "src/old.rs", "action": "DELETE"},
             "spec_ref": "auth-flow:R2", "description": "Delete it.", "depends": ["1.1"]}
        ]
    })
}
