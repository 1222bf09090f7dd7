//! Every tool doing its work, and who has which.

use agentd_core::document::proposal;
use agentd_core::ids::ChangeId;
use serde_json::json;

use test_project::TestProject;

use super::{CHANGE, Servers as _, plan, planned, project};

fn names(project: &TestProject, arguments: &[&str]) -> Vec<String> {
    let mut client = super::Client::start(project.server(arguments));
    let tools = client.result("tools/list", json!({}));
    tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap().to_owned())
        .collect()
}

/// A section of a document, from its heading to the next of the same level.
fn section<'t>(text: &'t str, heading: &str) -> &'t str {
    let start = text.find(heading).unwrap_or_else(|| panic!("no {heading} in {text}"));
    let level = heading.split(' ').next().unwrap();
    let end =
        text[start + 1..].find(&format!("\n{level} ")).map_or(text.len(), |at| start + 1 + at);
    &text[start..end]
}

#[test]
fn every_role_has_its_tools() {
    let project = project();
    let of = |role: &str| names(&project, &["--change", CHANGE, "--role", role]);
    let all = [
        "create_clarifications",
        "create_proposal",
        "create_spec",
        "write_spec",
        "remove_spec",
        "create_tasks",
        "read_file",
        "edit_file",
        "list_directory",
    ];
    assert_eq!(of("planner"), all);
    assert_eq!(of("challenger"), ["read_file", "list_directory", "append_review"]);
    assert_eq!(of("implementer"), ["read_file", "list_directory", "complete_task"]);
    assert_eq!(of("reviewer"), ["read_file", "list_directory", "create_review"]);
    let step = |step| names(&project, &["--change", CHANGE, "--role", "planner", "--step", step]);
    assert_eq!(step("clarify"), ["read_file", "list_directory", "propose_questions"]);
    // Agents that agentd has started can ask a person (G6), and do not write what one has said.
    assert_eq!(step("proposal-gen"), [&all[1..], &["ask_user"]].concat());
    // What counts is only for agents that agentd has started (T1).
    assert_eq!(names(&project, &[]), all);
    assert_eq!(names(&project, &["--change", CHANGE]), all);
    let mut challenger = project.client("challenger");
    let answer = challenger.call("create_proposal", plan::proposal());
    insta::assert_snapshot!(format!("{:#}", answer["error"]), @r#"
    {
      "code": -32602,
      "message": "There is no tool `create_proposal` here; there are read_file, list_directory, append_review."
    }
    "#);
}

#[test]
fn the_planner_writes_a_plan() {
    let project = project();
    let mut planner = project.client("planner");
    let mut client = project.client_with("create_clarifications");
    let written = client.ok("create_clarifications", plan::clarifications());
    assert_eq!(written["path"], "agentd/changes/add-oauth/clarifications.md");
    insta::assert_snapshot!(project.read_masked("clarifications.md"), @"
    ---
    change: add-oauth
    date: [DATE]
    ---

    # Clarifications

    ## Q1: Auth Method

    - **Question**: Which one?
    - **Answer**: OAuth
    - **Rationale**: Known.

    ## Q2: Database

    - **Question**: Which one?
    - **Answer**: PostgreSQL
    ");
    planner.ok("create_proposal", plan::proposal());
    insta::assert_snapshot!(project.read_masked("proposal.md"), @"
    ---
    id: add-oauth
    type: proposal
    version: 1
    created_at: [TIME]
    updated_at: [TIME]
    summary: Add OAuth authentication
    impact:
      scope: minor
      affected_files: 8
      new_files: 3
    affected_specs:
      - id: user-model
        depends: []
      - id: auth-flow
        depends: [user-model]
    checksum: sha256:[DIGEST]
    ---

    # Change: add-oauth

    ## Summary

    Add OAuth authentication

    ## Why

    Enable users to login with Google/GitHub

    ## What Changes

    - Add OAuth provider integration
    - Add OAuth callback endpoints

    ## Impact

    - **Scope**: minor
    - **Affected specs**: `user-model`, `auth-flow`
    - **Affected files**: 8 (3 new)
    - **Affected code**: `src/auth/`, `src/models/`
    - **Breaking changes**: none
    ");
    planner.ok("create_spec", plan::spec("user-model"));
    planner.ok("create_spec", plan::spec("auth-flow"));
    insta::assert_snapshot!(project.read_masked("specs/auth-flow.md"), @"
    ---
    id: auth-flow
    type: spec
    title: OAuth Authentication Flow
    version: 1
    created_at: [TIME]
    updated_at: [TIME]
    ---

    # Specification: OAuth Authentication Flow

    ## Overview

    Defines the OAuth authentication flow.

    ## Requirements

    ### R1: Provider

    **Priority**: high

    The server MUST offer Google.

    ### R2: Failure

    **Priority**: medium

    The server MUST answer 401 on failure.

    ## Acceptance Criteria

    ### Scenario: Login

    - **GIVEN** no session
    - **WHEN** the user clicks login
    - **THEN** a 302 is sent

    ### Scenario: Refused

    - **WHEN** the provider refuses with an error
    - **THEN** a 401 is sent

    ## Flow

    ```mermaid
    flowchart LR
      A --> B
    ```
    ");
    planner.ok("create_tasks", plan::tasks());
    insta::assert_snapshot!(project.read_masked("tasks.md"), @r#"
    ---
    change_id: add-oauth
    type: tasks
    version: 1
    created_at: [TIME]
    updated_at: [TIME]
    summary:
      total: 2
      completed: 0
    ---

    # Tasks: add-oauth

    ## 1. Data Layer

    ### Task 1.1: Create User model

    ```yaml
    id: "1.1"
    action: CREATE
    file: src/models/user.rs
    spec_ref: "user-model:R1"
    depends_on: []
    status: pending
    ```

    Define it.

    ## 2. Logic Layer

    ### Task 2.1: Implement OAuth provider

    ```yaml
    id: "2.1"
    action: MODIFY
    file: src/main.rs
    spec_ref: "auth-flow:R1"
    depends_on: ["1.1"]
    status: pending
    ```

    Do it.
    "#);
    planner.ok("write_spec", plan::whole_spec());
    insta::assert_snapshot!(project.read_masked("specs/whole.md"), @"
    ---
    id: whole
    type: spec
    title: Flow
    version: 1
    created_at: [TIME]
    updated_at: [TIME]
    ---

    # Specification: Flow

    ## Overview

    It flows.

    ## Requirements

    ### R1: One

    It MUST answer 200.

    ## Acceptance Criteria

    ### Scenario: Ok

    - **WHEN** asked
    - **THEN** 200
    ");
    planner.ok("edit_file", plan::edit());
    insta::assert_snapshot!(section(&project.read("proposal.md"), "## Why"), @"
    ## Why

    Let users login with Google/GitHub
    ");
    let text = planner.ok("read_file", plan::read());
    assert_eq!(text, project.read("proposal.md"));
    let listing = planner.ok("list_directory", plan::list());
    assert_eq!(listing["entries"], json!(["agentd/", "src/"]));
}

#[test]
fn other_roles_use_their_tools() {
    let project = planned();
    let mut challenger = project.client("challenger");
    assert_eq!(challenger.ok("append_review", plan::plan_review())["iteration"], 1);
    // The reviewer is the one of config.toml.
    insta::assert_snapshot!(section(&project.read_masked("proposal.md"), "## Review 1"), @"
    ## Review 1

    - **Verdict**: NEEDS_REVISION
    - **Reviewer**: codex
    - **Date**: [TIME]
    - **Plan**: sha256:[DIGEST]
    - **Summary**: Not yet.

    ### I1: No timeout

    - **Severity**: HIGH
    - **Location**: auth-flow:R1
    - **Description**: None is set.
    - **Recommendation**: Set one.

    <!-- /agentd:review [MARK] -->
    ");
    insta::assert_snapshot!(project.read_masked("CHALLENGE.md"), @"
    # Challenge: add-oauth

    <!-- Written by agentd from the latest review in proposal.md. Edit that, not this. -->

    **Verdict**: NEEDS_REVISION

    1 HIGH, 0 MEDIUM, 0 LOW

    ## Review 1

    - **Verdict**: NEEDS_REVISION
    - **Reviewer**: codex
    - **Date**: [TIME]
    - **Plan**: sha256:[DIGEST]
    - **Summary**: Not yet.

    ### I1: No timeout

    - **Severity**: HIGH
    - **Location**: auth-flow:R1
    - **Description**: None is set.
    - **Recommendation**: Set one.
    ");
    project.git(&["init", "-q"]);
    project.git(&["add", "."]);
    project.git(&["commit", "-q", "-m", "base"]);
    let mut implementer = project.client("implementer");
    insta::assert_snapshot!(implementer.refused("complete_task", plan::task()), @"
    Task 1.1 is not done (CREATE src/models/user.rs): `src/models/user.rs` does not exist.
    Do the work first, then call complete_task again.
    ");
    project.write_root("src/models/user.rs", "pub struct User;\n");
    let done = implementer.ok("complete_task", plan::task());
    assert_eq!((&done["completed"], &done["ready"]), (&json!(1), &json!(["2.1"])));
    let second = json!({"change_id": CHANGE, "task_id": "logic.1", "note": "x"});
    insta::assert_snapshot!(implementer.refused("complete_task", second.clone()), @"
    Task 2.1 is not done (MODIFY src/main.rs): the file is as it was at HEAD.
    Change the file as the task says, then call complete_task again.
    ");
    project.write_root("src/main.rs", "fn main() { oauth() }\n");
    implementer.ok("complete_task", second);
    assert_eq!(project.read("tasks.md").matches("status: done").count(), 2);
    let mut reviewer = project.client("reviewer");
    assert_eq!(reviewer.ok("create_review", plan::code_review())["iteration"], 1);
    assert_eq!(reviewer.ok("create_review", plan::code_review())["iteration"], 2);
    insta::assert_snapshot!(project.read_masked("REVIEW.md"), @"
    ---
    change_id: add-oauth
    type: review
    iteration: 2
    reviewer: codex
    created_at: [TIME]
    verdict: NEEDS_FIX
    numbered: 1
    ---

    # Review: add-oauth

    ## Summary

    Not yet.

    ## Issues

    ### I1: No test

    - **Severity**: MEDIUM
    - **Location**: src/main.rs:1
    - **Description**: None is there.
    - **Recommendation**: Add one.
    ");
}

#[test]
fn refusal_says_what_to_correct() {
    let project = planned();
    let before = project.contents();
    let mut planner = project.client("planner");
    let mut tasks = plan::tasks();
    tasks["tasks"][1]["spec_ref"] = json!("auth-flow:R7");
    tasks["tasks"][0]["depends"] = json!(["logic.1"]);
    insta::assert_snapshot!(planner.refused("create_tasks", tasks), @r#"
    tasks.md was not written and nothing has changed: the text would have 2 problems.
    1. T005 at line 16 (`### Task 1.1: Create User model`): Circular dependency detected: data.1 → logic.1 → data.1 (1.1 → 2.1 → 1.1). Fix: Remove one of the dependencies of the chain in tasks.md.
    2. T008 at line 37 (`spec_ref: "auth-flow:R7"`): task 2.1 points to auth-flow:R7, which does not exist. Fix: `auth-flow` has R1, R2.
    Correct the input and call the tool again.
    "#);
    assert_eq!(project.contents(), before);
}

#[test]
fn bound_server_serves_one_change() {
    let project = project();
    let mut other = plan::proposal();
    other["change_id"] = json!("other");
    let refused = project.client("planner").refused("create_proposal", other.clone());
    insta::assert_snapshot!(refused, @r#"
    This server works on the change `add-oauth` and on no other, so not on `other`.
    Call the tool with change_id "add-oauth".
    "#);
    let mut free = project.free_client();
    free.ok("create_proposal", plan::proposal());
    free.ok("create_proposal", other);
    let mut missing = plan::proposal();
    missing["change_id"] = json!("missing");
    insta::assert_snapshot!(free.refused("create_proposal", missing), @"
    there is no change `missing`
    Call the tool with the change_id of an open change.
    ");
    let mut none = plan::proposal();
    none.as_object_mut().unwrap().remove("change_id");
    insta::assert_snapshot!(free.refused("create_proposal", none), @"
    The arguments do not fit the tool. missing field `change_id`
    Correct that field and call the tool again; nothing was written.
    ");
    let text = project.read_root("agentd/changes/other/proposal.md");
    let parsed = proposal::parse(&text).value;
    assert_eq!(parsed.id.as_ref().map(ChangeId::as_str), Some("other"));
}

#[test]
fn documents_are_resources() {
    let project = planned();
    let mut client = project.free_client();
    let list = client.result("resources/list", json!({}));
    let uris: Vec<&str> =
        list["resources"].as_array().unwrap().iter().map(|r| r["uri"].as_str().unwrap()).collect();
    assert_eq!(
        uris,
        [
            "agentd://changes/add-oauth/proposal.md",
            "agentd://changes/add-oauth/specs/auth-flow.md",
            "agentd://changes/add-oauth/specs/user-model.md",
            "agentd://changes/add-oauth/tasks.md",
            "agentd://changes/other/proposal.md",
        ]
    );
    let read = client.result("resources/read", json!({"uri": uris[1]}));
    assert_eq!(read["contents"][0]["text"], project.read("specs/auth-flow.md"));
    assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
    let templates = client.result("resources/templates/list", json!({}));
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 5);
    let mut bound = project.client("planner");
    assert_eq!(bound.result("resources/list", json!({}))["resources"].as_array().unwrap().len(), 4);
    for bad in
        [uris[4], "agentd://changes/add-oauth/../other/proposal.md", "file:///etc/passwd", ""]
    {
        let answer = bound.ask("resources/read", json!({"uri": bad}));
        assert_eq!(answer["error"]["code"], -32002, "{bad}: {answer}");
    }
}

#[test]
fn long_files_say_how_to_continue() {
    let project = project();
    project.write_root("long.txt", "0123456789\n".repeat(40_000));
    let mut client = project.client("reviewer");
    let arguments = json!({"change_id": CHANGE, "path": "long.txt"});
    let answer = client.call("read_file", arguments);
    let content = &answer["result"]["content"];
    assert_eq!(content[0]["text"].as_str().unwrap().len(), 256 * 1024);
    insta::assert_snapshot!(content[1]["text"], @r#""[long.txt continues: 262144 of 440000 bytes were shown. Call read_file again with offset 262144.]""#);
    let rest =
        client.ok("read_file", json!({"change_id": CHANGE, "path": "long.txt", "offset": 262_144}));
    assert_eq!(rest.as_str().unwrap().len(), 440_000 - 262_144);
}

/// A planner that is started for a change begins it with its proposal; a proposal that is
/// refused begins nothing.
#[test]
fn bound_planner_begins_its_change() {
    let project = project();
    let mut client =
        super::Client::start(project.server(&["--change", "fresh", "--role", "planner"]));
    let mut proposal = plan::proposal();
    proposal["change_id"] = json!("fresh");
    let mut circular = proposal.clone();
    circular["impact"]["affected_specs"] = json!([{"id": "a", "depends": ["a"]}]);
    insta::assert_snapshot!(client.refused("create_proposal", circular), @"
    proposal.md was not written and nothing has changed: the text would have 1 problem.
    1. P007 at line 2 (`id: fresh`): circular dependency of specs: a → a. Fix: Remove one of the dependencies in `affected_specs`.
    Correct the input and call the tool again.
    ");
    assert!(!project.root().join("agentd/changes/fresh").exists());
    client.ok("create_proposal", proposal);
    let text = project.read_root("agentd/changes/fresh/proposal.md");
    assert_eq!(text.lines().find(|line| line.starts_with("# ")), Some("# Change: fresh"));
}
