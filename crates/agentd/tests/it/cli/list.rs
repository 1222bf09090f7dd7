use std::fs;

use test_project::TestProject;

#[test]
fn list_open_changes() {
    let wide = "認証".repeat(60);
    let project = TestProject::new().change("add-oauth").begun("b").change("wide-title").edit(
        "proposal.md",
        "Sign in with OAuth.",
        &wide,
    );
    let run = project.run(["list"]).fine();
    insta::assert_snapshot!(run.transcript(), @"
    exit 0
    b           proposed  open questions  clarify      -  -  [TIME]  -  -
    add-oauth   proposed  not challenged  challenge  1/2  -  [TIME]  -  Sign in with OAuth.
    wide-title  proposed  not challenged  challenge  1/2  -  [TIME]  -  認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証
    --- stderr
    ");
    let json = project.run(["list", "--json"]).fine().json();
    let changes = json["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 3);
    // What waits for a person first.
    assert_eq!(
        (&changes[0]["change_id"], &changes[0]["standing"]),
        (&"b".into(), &"waiting".into())
    );
    assert_eq!(changes[1]["change_id"], "add-oauth");
    assert_eq!(changes[1]["phase"], "proposed");
    assert_eq!(changes[1]["tasks"], serde_json::json!({ "total": 2, "completed": 1 }));
    assert_eq!(changes[1]["next"], serde_json::json!(["agentd challenge add-oauth"]));
    assert_eq!(changes[2]["title"], *wide, "programs get the whole title");
}

#[test]
fn list_in_empty_project() {
    let project = TestProject::new();
    insta::assert_snapshot!(project.run(["list"]), @r#"
    exit 0
    --- stderr
    No change is open.

    Next: agentd plan <id> "<what you want>"
    "#);
    insta::assert_snapshot!(project.run(["list", "--specs"]), @"
    exit 0
    --- stderr
    There are no main specs yet; archiving a change makes them.
    ");
    insta::assert_snapshot!(project.run(["list", "--archived"]), @"
    exit 0
    --- stderr
    Nothing is archived yet.
    ");
    for (args, key) in [
        (&["list", "--json"][..], "changes"),
        (&["list", "--specs", "--json"], "specs"),
        (&["list", "--archived", "--json"], "archived"),
    ] {
        assert_eq!(project.run(args).fine().json()[key], serde_json::json!([]));
    }
}

#[test]
fn list_specs_and_archived() {
    let project = TestProject::new().root_file("agentd/specs/auth-flow.md", "");
    fs::create_dir_all(project.root().join("agentd/archive/2026-11-04-add-oauth")).unwrap();
    assert_eq!(project.run(["list", "--specs"]).fine().stdout, "auth-flow  0  0  -  -\n");
    let json = project.run(["list", "--archived", "--json"]).fine().json();
    assert_eq!(json["archived"], serde_json::json!(["2026-11-04-add-oauth"]));
    project.run(["list", "--specs", "--archived"]).exits(2);
}

#[test]
fn list_warns_of_broken_changes() {
    let project =
        TestProject::new().change("add-oauth").begun("broken").file("STATE.yaml", "phase: [");
    fs::create_dir(project.root().join("agentd/changes/Odd \u{1b}[2JName")).unwrap();
    fs::create_dir(project.root().join("agentd/changes/no-state")).unwrap();
    let run = project.run(["list"]);
    run.cannot_steer_a_terminal();
    insta::assert_snapshot!(run, @"
    exit 0
    broken     new       unreadable      -            -  -                     -  -  -
    add-oauth  proposed  not challenged  challenge  1/2  -  [TIME]  -  Sign in with OAuth.
    no-state   new       new             validate     -  -                     -  -  -
    --- stderr
    warning: agentd/changes/Odd [2JName is not a change: its name is not an id
    warning: cannot use the STATE.yaml of `broken`: externally tagged enum expected scalar or mapping (line 1, column 8)
    ");
    let json = project.run(["list", "--json"]).exits(0).json();
    // What a person has to look at stands first.
    assert_eq!(json["changes"][0]["phase"], serde_json::Value::Null);
    assert_eq!(json["changes"][0]["standing"], serde_json::Value::Null);
    assert!(json["changes"][0]["problem"].is_string());
}

#[test]
fn project_found_from_subdirectory() {
    let project = TestProject::new().change("add-oauth").root_file("src/deep/x", "");
    let here = project.run(["list"]).fine().stdout;
    assert_eq!(project.run(["-C", "src/deep", "list"]).fine().stdout, here);
    assert_eq!(project.run(["list", "-C", "src/deep"]).fine().stdout, here);
    let mut elsewhere = project.command(["list", "--directory"]);
    elsewhere.arg(project.root()).current_dir(project.home());
    assert_eq!(project.finish(&mut elsewhere).fine().stdout, here);
}

#[test]
fn list_outside_of_a_project() {
    let project = TestProject::empty();
    insta::assert_snapshot!(project.run(["list"]).transcript(), @r"
    exit 1
    --- stderr
    error: there is no agentd project here
      cause: no agentd project in [ROOT] or any directory above it

    hint: set one up in [ROOT]: agentd init
    ");
    insta::assert_snapshot!(project.run(["-C", "/nowhere", "list"]).transcript(), @r"
    exit 1
    --- stderr
    error: cannot open the directory /nowhere
      cause: No such file or directory (os error 2)
    ");
    let error = project.run(["list", "--json"]).exits(1).json_error();
    assert_eq!(error["kind"], "not_initialised");
    assert!(error["cause"].is_string());
}
