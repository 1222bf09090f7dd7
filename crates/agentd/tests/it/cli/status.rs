use agentd_core::diagnostic::Severity;

use test_project::TestProject;

#[test]
fn where_a_change_stands() {
    let project = TestProject::new().change("add-oauth");
    let run = project.run(["status"]).fine();
    assert!(run.stdout.starts_with("add-oauth  proposed\nSign in with OAuth.\n\n"), "{run:#?}");
    let run = run
        .stdout_has("documents 0 HIGH, 0 MEDIUM, 0 LOW findings\n")
        .stdout_has("tasks     1 of 2 done\n")
        .stdout_has("          data         1/1\n")
        .stdout_has("\nNext: agentd ");
    assert_eq!(project.run(["status", "add-oauth"]).fine().stdout, run.stdout);
    let json = project.run(["status", "--json"]).fine().json();
    assert_eq!(json["change_id"], "add-oauth");
    assert_eq!(json["phase"], "proposed");
    assert_eq!(json["verdict"], serde_json::Value::Null);
    assert_eq!(json["validation"], serde_json::json!({ "high": 0, "medium": 0, "low": 0 }));
    assert_eq!(json["tasks"], serde_json::json!({ "total": 2, "completed": 1 }));
    assert!(json["next"][0].as_str().unwrap().starts_with("agentd "));
}

#[test]
fn findings_come_first() {
    let project =
        TestProject::new().change("add-oauth").edit("tasks.md", "src/auth.rs", "/etc/passwd");
    project.run(["status"]).fine().stdout_has("\nNext: agentd validate add-oauth\n");
    let json = project.run(["status", "--json"]).fine().json();
    assert_eq!(json["validation"]["high"], 1);
    assert_eq!(json["next"], serde_json::json!(["agentd validate add-oauth"]));
}

#[test]
fn a_verdict_is_shown_and_marked_once_the_plan_has_changed() {
    let project =
        TestProject::new().change("add-oauth").challenged(&[Severity::High, Severity::Low]);
    let run = project.run(["status"]).fine();
    let run = run.stdout_has("review    NEEDS_REVISION: 1 HIGH, 0 MEDIUM, 1 LOW\n");
    let json = project.run(["status", "--json"]).fine().json();
    assert_eq!(json["verdict"], "NEEDS_REVISION");
    assert_eq!(json["issues"], serde_json::json!({ "high": 1, "medium": 0, "low": 1 }));
    assert_eq!(json["plan_changed_since_review"], false);
    drop(run);
    let project = project.edit("proposal.md", "People ask for it.", "People need it.");
    project.run(["status"]).fine().stdout_has("1 LOW, of an earlier plan\n");
    let json = project.run(["status", "--json"]).fine().json();
    assert_eq!(json["plan_changed_since_review"], true);
}

#[test]
fn an_id_may_be_left_out_only_where_one_change_is_open() {
    let none = TestProject::new();
    let error = none.run(["status", "--json"]).exits(1).json_error();
    assert_eq!(
        (&error["kind"], &error["message"]),
        (&"no_change".into(), &"no change is open".into())
    );
    let two = TestProject::new().change("add-oauth").begun("fix-bug");
    insta::assert_snapshot!(two.run(["status"]).transcript(), @r"
    exit 2
    --- stderr
    error: 2 changes are open: which one?

    hint: name one: add-oauth, fix-bug
    ");
    for command in ["status", "validate", "show"] {
        assert_eq!(none.run([command]).exits(1).stderr, none.run(["status"]).stderr);
        assert_eq!(two.run([command]).exits(2).stderr, two.run(["status"]).stderr);
        two.run([command, "add-oauth"]).fine();
    }
    none.run(["decide", "fix"]).exits(1).stderr_has("no change is open");
    two.run(["decide", "fix"]).exits(2).stderr_has("which one?");
    let many = (0..30).fold(TestProject::new(), |project, i| project.begun(&format!("c{i}")));
    many.run(["status"]).exits(2).stderr_has("30 changes").stderr_has(", …\n");
}

#[test]
fn a_misspelt_id_names_the_nearest() {
    let project = TestProject::new().change("add-oauth").begun("fix-bug");
    insta::assert_snapshot!(project.run(["status", "add-oatuh"]).transcript(), @r"
    exit 1
    --- stderr
    error: there is no change `add-oatuh`

    hint: did you mean `add-oauth`?
    ");
    for args in [
        vec!["validate", "add-oatuh"],
        vec!["show", "add-oatuh"],
        vec!["show", "add-oatuh", "tasks"],
        vec!["decide", "add-oatuh", "fix"],
    ] {
        project.run(args).exits(1).stderr_has("did you mean `add-oauth`?");
    }
    let error = project.run(["status", "Add-OAuth", "--json"]).exits(1).json_error();
    assert_eq!(error["kind"], "no_such_change");
    assert_eq!(error["hints"], serde_json::json!(["did you mean `add-oauth`?"]));
    project
        .run(["status", "zzz"])
        .exits(1)
        .stderr_has("hint: see which changes are open: agentd list");
    project.run(["status", "../../etc"]).exits(1).stderr_has("ids are lower-case letters");
}

#[test]
fn an_archived_change_is_said_to_be_archived() {
    let project =
        TestProject::new().root_file("agentd/archive/2026-11-04-add-oauth/proposal.md", "");
    project.run(["status", "add-oauth"]).exits(1).stderr_has("agentd/archive/2026-11-04-add-oauth");
}

#[test]
fn a_corrupt_state_is_an_error_and_stays_as_it_is() {
    for corrupt in [
        &b"phase: ["[..],
        b"",
        b"\xff\xfe\x00",
        b"change_id: other\nphase: proposed\n",
        b"change_id: add-oauth\nphase: invented\n",
        b"change_id: add-oauth\nphase: proposed\nunknown_key: 1\n",
    ] {
        let project = TestProject::new().change("add-oauth").file("STATE.yaml", corrupt);
        let before = project.tree();
        for args in [vec!["status"], vec!["decide", "fix"], vec!["decide", "accept"]] {
            let run = project.run(&args).exits(1);
            assert_eq!(run.stdout, "");
            run.stderr_has("error: ").stderr_has("STATE.yaml").stderr_lacks("panicked");
            let mut args = args.clone();
            args.push("--json");
            let error = project.run(&args).exits(1).json_error();
            assert!(error["message"].as_str().unwrap().contains("STATE.yaml"), "{error}");
        }
        let mut after = project.tree();
        after.retain(|path, _| !path.components().any(|part| part.as_os_str() == ".locks"));
        assert_eq!(before, after, "{corrupt:?}");
    }
}

/// An interactive client begins a change by writing its documents; that is no fault.
#[test]
fn a_change_without_a_state_is_new() {
    let project = TestProject::new().change("add-oauth");
    std::fs::remove_file(project.root().join("agentd/changes/add-oauth/STATE.yaml")).unwrap();
    let run = project.run(["status"]).fine();
    assert!(run.stdout.starts_with("add-oauth  new\n"), "{}", run.stdout);
    let json = project.run(["status", "--json"]).fine().json();
    assert!(json["phase"].is_null() && json["calls"] == 0, "{json:#}");
    let run = project.run(["list"]).fine();
    assert!(run.stdout.starts_with("add-oauth  new "), "{}", run.stdout);
    assert_eq!(run.stderr, "");
}
