//! A project in the middle of things: a change after two rounds of review, with comments,
//! runs and costs; others in other phases; an archived one; a main spec.

use agentd_core::document::review_block::PlanVerdict;
use agentd_engine::tools::{self, input};
use serde_json::{Value, json};
use test_project::{TestProject, stamp};

const FILES: [(&str, &str); 6] = [
    ("STATE.yaml", include_str!("fixtures/STATE.yaml")),
    ("proposal.md", include_str!("fixtures/proposal.md")),
    ("specs/auth-flow.md", include_str!("fixtures/auth-flow.md")),
    ("specs/session-store.md", include_str!("fixtures/session-store.md")),
    ("tasks.md", include_str!("fixtures/tasks.md")),
    ("clarifications.md", include_str!("fixtures/clarifications.md")),
];

/// A project with everything.
pub(crate) fn project() -> TestProject {
    let project = TestProject::new().about("add-oauth");
    project.write_root("agentd/config.toml", "");
    for (name, text) in FILES {
        project.write(name, text);
    }
    project.write("runs/0001-challenge.jsonl", include_str!("fixtures/run.jsonl"));
    review(&project, "2026-11-10T09:07:00Z", &first_review());
    let spec = project.read("specs/auth-flow.md");
    // The first round saw another text.
    let edited = spec.replace("within 10 minutes", "within 10 minutes, once");
    assert_ne!(edited, spec);
    project.write("specs/auth-flow.md", edited);
    review(&project, "2026-11-10T10:18:00Z", &second_review());
    for (id, phase) in [
        ("speed-up-search", "challenged"),
        ("export-reports", "implementing"),
        ("dark-mode", "complete"),
        ("rewrite-in-cobol", "rejected"),
    ] {
        for (name, text) in FILES {
            let text = text
                .replace("add-oauth", id)
                .replace("phase: proposed", &format!("phase: {phase}"));
            let summary = format!("{} for everyone", id.replace('-', " "));
            let text = text.replace("Let people sign in with their company account", &summary);
            project.write_root(&format!("agentd/changes/{id}/{name}"), &text);
        }
    }
    project.write_root("agentd/changes/just-an-idea/proposal.md", "# Change: just-an-idea\n");
    for (name, text) in FILES {
        let text = text
            .replace("add-oauth", "add-passwords")
            .replace("phase: proposed", "phase: archived");
        project.write_root(&format!("agentd/archive/2026-10-01-add-passwords/{name}"), &text);
    }
    project.write_root("agentd/specs/session-store.md", include_str!("fixtures/session-store.md"));
    project
}

/// As the challenger's tool does it, and then the workflow, once it has read the verdict.
fn review(project: &TestProject, now: &str, review: &Value) {
    let input = input::read(review.as_object().unwrap().clone()).unwrap();
    project
        .as_agent("codex gpt-5-codex", stamp(now), |session| tools::append_review(session, input))
        .unwrap();
    project.plan_reviewed(PlanVerdict::NeedsRevision, stamp(now));
}

/// A third round, with one minor issue that the others did not have.
pub(crate) fn another_round(project: &TestProject) {
    let third = json!({
        "change_id": "add-oauth", "verdict": "NEEDS_REVISION", "summary": "Almost.",
        "previous": [{"id": "I2", "status": "fixed"}, {"id": "I4", "status": "fixed"}],
        "issues": [issue("low", "The words for errors differ", "auth-flow:R3")],
    });
    review(project, "2026-11-10T11:00:00Z", &third);
}

fn issue(severity: &str, title: &str, location: &str) -> Value {
    json!({
        "severity": severity, "title": title, "location": location,
        "description": "A reader cannot tell **what is meant**, and two implementers would build two things.",
        "recommendation": "Say it in one sentence, with a number.",
    })
}

fn first_review() -> Value {
    json!({
        "change_id": "add-oauth", "verdict": "NEEDS_REVISION",
        "summary": "The flow is sound, but accounts can be taken over by e-mail.",
        "issues": [
            issue("high", "Accounts are matched by e-mail", "auth-flow:R2"),
            issue("medium", "No scenario for a provider that hangs", "auth-flow:R3"),
            issue("low", "Audit entries have no retention", "proposal"),
        ],
    })
}

fn second_review() -> Value {
    json!({
        "change_id": "add-oauth", "verdict": "NEEDS_REVISION",
        "summary": "The takeover is closed. One medium issue is left.",
        "previous": [
            {"id": "I1", "status": "fixed", "reason": "Accounts are matched by the provider's id."},
            {"id": "I3", "status": "fixed"},
        ],
        "issues": [
            issue("medium", "No scenario for a provider that hangs", "auth-flow:R3"),
            issue("low", "The callback's name differs between spec and tasks", "tasks 3.1"),
        ],
    })
}
