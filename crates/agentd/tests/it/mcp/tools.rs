//! Every tool doing its work, and who has which.

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

#[test]
fn every_role_has_its_tools() {
    let project = project();
    let of = |role: &str| names(&project, &["--change", CHANGE, "--role", role]);
    let planner = [
        "create_clarifications",
        "create_proposal",
        "create_spec",
        "write_spec",
        "create_tasks",
        "read_file",
        "edit_file",
        "list_directory",
    ];
    assert_eq!(of("planner"), planner);
    assert_eq!(of("challenger"), ["read_file", "list_directory", "append_review"]);
    assert_eq!(of("implementer"), ["read_file", "list_directory", "complete_task"]);
    assert_eq!(of("reviewer"), ["read_file", "list_directory", "create_review"]);
    let step = |step| names(&project, &["--change", CHANGE, "--role", "planner", "--step", step]);
    assert_eq!(step("clarify"), ["read_file", "list_directory", "propose_questions"]);
    assert_eq!(step("proposal-gen"), planner, "other steps have the tools of the role");
    assert_eq!(names(&project, &[]).len(), 11);
    let mut challenger = project.client("challenger");
    let answer = challenger.call("create_proposal", plan::proposal());
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("append_review"), "{message}");
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn the_planner_writes_a_plan() {
    let project = project();
    let mut planner = project.client("planner");
    let written = planner.ok("create_clarifications", plan::clarifications());
    assert_eq!(written["path"], "agentd/changes/add-oauth/clarifications.md");
    assert!(project.read("clarifications.md").contains("## Q2: Database"));
    planner.ok("create_proposal", plan::proposal());
    let text = project.read("proposal.md");
    for part in [
        "id: add-oauth\ntype: proposal\nversion: 1\n",
        "  affected_files: 8\n  new_files: 3\n",
        "  - id: auth-flow\n    depends: [user-model]\n",
        "# Change: add-oauth\n\n## Summary\n\nAdd OAuth authentication\n",
        "- **Affected specs**: `user-model`, `auth-flow`\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    planner.ok("create_spec", plan::spec("user-model"));
    planner.ok("create_spec", plan::spec("auth-flow"));
    let text = project.read("specs/auth-flow.md");
    for part in [
        "id: auth-flow\ntype: spec\n",
        "### R1: Provider\n\n**Priority**: high\n\nThe server MUST offer Google.\n",
        "- **GIVEN** no session\n- **WHEN** the user clicks login\n- **THEN** a 302 is sent\n",
        "## Flow\n\n```mermaid\nflowchart LR\n  A --> B\n```\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    planner.ok("create_tasks", plan::tasks());
    let text = project.read("tasks.md");
    for part in [
        "change_id: add-oauth\ntype: tasks\n",
        "## 2. Logic Layer\n\n### Task 2.1: Implement OAuth provider\n\n```yaml\nid: \"2.1\"\naction: MODIFY\nfile: src/main.rs\nspec_ref: \"auth-flow:R1\"\ndepends_on: [\"1.1\"]\nstatus: pending\n```\n\nDo it.\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    planner.ok("write_spec", plan::whole_spec());
    assert!(project.read("specs/whole.md").contains("### R1: One"));
    planner.ok("edit_file", plan::edit());
    assert!(project.read("proposal.md").contains("Let users login"));
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
    let text = project.read("proposal.md");
    assert!(text.contains("- **Reviewer**: codex\n"), "as config.toml says: {text}");
    assert!(project.read("CHALLENGE.md").contains("**Verdict**: NEEDS_REVISION"));
    project.git(&["init", "-q"]);
    project.git(&["add", "."]);
    project.git(&["commit", "-q", "-m", "base"]);
    let mut implementer = project.client("implementer");
    let message = implementer.refused("complete_task", plan::task());
    assert!(message.contains("src/models/user.rs"), "{message}");
    project.write_root("src/models/user.rs", "pub struct User;\n");
    let done = implementer.ok("complete_task", plan::task());
    assert_eq!((&done["completed"], &done["ready"]), (&json!(1), &json!(["2.1"])));
    let second = json!({"change_id": CHANGE, "task_id": "logic.1", "note": "x"});
    let message = implementer.refused("complete_task", second.clone());
    assert!(message.contains("as it was at HEAD"), "{message}");
    project.write_root("src/main.rs", "fn main() { oauth() }\n");
    implementer.ok("complete_task", second);
    assert_eq!(project.read("tasks.md").matches("status: done").count(), 2);
    let mut reviewer = project.client("reviewer");
    assert_eq!(reviewer.ok("create_review", plan::code_review())["iteration"], 1);
    assert_eq!(reviewer.ok("create_review", plan::code_review())["iteration"], 2);
    assert!(project.read("REVIEW.md").contains("- **Location**: src/main.rs:1\n"));
}

#[test]
fn refusal_says_what_to_correct() {
    let project = planned();
    let before = project.contents();
    let mut planner = project.client("planner");
    let mut tasks = plan::tasks();
    tasks["tasks"][1]["spec_ref"] = json!("auth-flow:R7");
    tasks["tasks"][0]["depends"] = json!(["logic.1"]);
    let message = planner.refused("create_tasks", tasks);
    for part in
        ["nothing has changed", "2 problems", "T008", "`auth-flow` has R1, R2", "T005", "Fix: "]
    {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert_eq!(project.contents(), before);
}

#[test]
fn bound_server_serves_one_change() {
    let project = project();
    let mut other = plan::proposal();
    other["change_id"] = json!("other");
    let message = project.client("planner").refused("create_proposal", other.clone());
    assert!(message.contains("change_id \"add-oauth\""), "{message}");
    let mut free = project.free_client();
    free.ok("create_proposal", plan::proposal());
    free.ok("create_proposal", other);
    assert!(project.read_root("agentd/changes/other/proposal.md").contains("# Change: other"));
    let mut nobody = plan::proposal();
    nobody["change_id"] = json!("nobody");
    assert!(free.refused("create_proposal", nobody).contains("there is no change `nobody`"));
    let mut none = plan::proposal();
    none.as_object_mut().unwrap().remove("change_id");
    assert!(free.refused("create_proposal", none).contains("change_id"));
    let mut review = plan::plan_review();
    review["change_id"] = json!("other");
    free.ok("append_review", review);
    let text = project.read_root("agentd/changes/other/proposal.md");
    assert!(text.contains("- **Reviewer**: test-client\n"), "{text}");
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
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 4);
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
    assert!(content[1]["text"].as_str().unwrap().contains("offset 262144"), "{}", content[1]);
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
    assert!(client.refused("create_proposal", circular).contains("P007"));
    assert!(!project.root().join("agentd/changes/fresh").exists());
    client.ok("create_proposal", proposal);
    assert!(project.read_root("agentd/changes/fresh/proposal.md").contains("# Change: fresh"));
}
