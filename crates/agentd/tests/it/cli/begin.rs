//! How a change begins without a person: what must be clear, and what is left behind if it is not.

use test_project::{TestProject, mask};

fn project() -> TestProject {
    let roles = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";
    TestProject::new().root_file("agentd/config.toml", roles)
}

fn plan(project: &TestProject, description: &str, more: &[&str]) -> serde_json::Value {
    let command = ["plan", "add-login", description, "--auto", "--git", "in-place", "--json"];
    let run = project.run(command.iter().chain(more));
    let document = run.json();
    assert_eq!(run.code == 0, document["error"].is_null(), "{run:#?}");
    document
}

/// C29
#[test]
fn plan_without_clarifications_is_an_error() {
    let project = project();
    let refused = plan(&project, "Add a login", &[]);
    insta::assert_snapshot!(format!("{:#}", refused["error"]), @r#"
    {
      "kind": "clarifications_missing",
      "message": "`add-login` has no clarifications.md, and there is no terminal to ask on",
      "cause": "the description leaves questions open, and a plan would have to guess",
      "hints": [
        "see the questions: agentd clarify add-login 'Add a login' --json",
        "then answer them: agentd clarify add-login --answers answers.json",
        "or plan without them: agentd plan add-login 'Add a login' --skip-clarify"
      ]
    }
    "#);
    assert!(!project.root().join("agentd/changes/add-login").exists());

    let file = project.root().join("answers.json");
    let answers = ["--answers", "answers.json"];
    assert_eq!(plan(&project, "Add a login", &answers)["error"]["kind"], "answers_unreadable");
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(plan(&project, "Add a login", &answers)["error"]["kind"], "answers_invalid");
    assert!(!project.root().join("agentd/changes/add-login").exists());

    let text = r#"{"answers": [{"topic": "Lock", "question": "When?", "answer": "After 5"}]}"#;
    std::fs::write(&file, text).unwrap();
    assert_eq!(plan(&project, "Add a login", &answers)["phase"], "challenged");
    let written = project.read_root("agentd/changes/add-login/clarifications.md");
    insta::assert_snapshot!(mask(&written, &project.base()), @"
    ---
    change: add-login
    date: [DATE]
    ---

    # Clarifications

    ## Q1: Lock

    - **Question**: When?
    - **Answer**: After 5
    ");
}

#[test]
fn plan_skipping_questions() {
    let project = project();
    assert_eq!(plan(&project, "Add a login", &["--skip-clarify"])["phase"], "challenged");
    assert!(!project.root().join("agentd/changes/add-login/clarifications.md").exists());
}

/// P2
#[test]
fn detailed_description_needs_no_questions() {
    let project = project();
    let detailed =
        "The server must answer `POST /login` with 200 and a cookie for 30 days. ".repeat(6);
    let planned = plan(&project, &detailed, &[]);
    assert!(planned["error"].is_null(), "{planned:#}");
}
