use std::fs;

use test_project::TestProject;

#[test]
fn what_is_open_is_listed_in_columns() {
    let wide = "認証".repeat(60);
    let project = TestProject::new().change("add-oauth").begun("b").change("wide-title").edit(
        "proposal.md",
        "Sign in with OAuth.",
        &wide,
    );
    let run = project.run(["list"]).fine();
    insta::assert_snapshot!(run.transcript(), @r"
    exit 0
    add-oauth   proposed         1/2 tasks     $0.00  Sign in with OAuth.
    b           proposed          no tasks     $0.00
    wide-title  proposed         1/2 tasks     $0.00  認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認証認…
    --- stderr
    ");
    let json = project.run(["list", "--json"]).fine().json();
    let changes = json["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 3);
    assert_eq!(changes[0]["change_id"], "add-oauth");
    assert_eq!(changes[0]["phase"], "proposed");
    assert_eq!(changes[0]["tasks"], serde_json::json!({ "total": 2, "completed": 1 }));
    assert_eq!(changes[2]["title"], *wide, "programs get the whole title");
}

#[test]
fn an_empty_project_says_so_beside_the_data() {
    let project = TestProject::new();
    for (args, note) in [
        (vec!["list"], "No change is open."),
        (vec!["list", "--specs"], "There are no main specs yet"),
        (vec!["list", "--archived"], "Nothing is archived yet."),
    ] {
        let run = project.run(args).exits(0).stderr_has(note);
        assert_eq!(run.stdout, "");
    }
    for (flag, key) in [("--json", "changes"), ("--specs", "specs"), ("--archived", "archived")] {
        let json = project.run(["list", "--json", flag][..].iter().take(if flag == "--json" {
            2
        } else {
            3
        }));
        assert_eq!(json.fine().json()[key], serde_json::json!([]));
    }
}

#[test]
fn main_specs_and_the_archive_are_listed_by_name() {
    let project = TestProject::new().root_file("agentd/specs/auth-flow.md", "");
    fs::create_dir_all(project.root().join("agentd/archive/2026-11-04-add-oauth")).unwrap();
    assert_eq!(project.run(["list", "--specs"]).fine().stdout, "auth-flow\n");
    assert_eq!(project.run(["list", "--archived"]).fine().stdout, "2026-11-04-add-oauth\n");
    let json = project.run(["list", "--archived", "--json"]).fine().json();
    assert_eq!(json["archived"], serde_json::json!(["2026-11-04-add-oauth"]));
    project.run(["list", "--specs", "--archived"]).exits(2);
}

#[test]
fn odd_directories_and_broken_states_are_warned_of_and_the_rest_is_listed() {
    let project =
        TestProject::new().change("add-oauth").begun("broken").file("STATE.yaml", "phase: [");
    fs::create_dir(project.root().join("agentd/changes/Odd \u{1b}[2JName")).unwrap();
    fs::create_dir(project.root().join("agentd/changes/no-state")).unwrap();
    let run = project.run(["list"]).exits(0);
    assert_eq!(run.stdout.lines().count(), 3);
    run.cannot_steer_a_terminal();
    let run = run
        .stderr_has("warning: agentd/changes/Odd [2JName is not a change")
        .stderr_has("warning: cannot use the STATE.yaml of `broken`")
        .stderr_lacks("no-state");
    assert!(run.stdout.contains("broken     unreadable"), "{}", run.stdout);
    let json = project.run(["list", "--json"]).exits(0).json();
    assert_eq!(json["changes"][1]["phase"], serde_json::Value::Null);
    assert!(json["changes"][1]["problem"].is_string());
}

#[test]
fn a_project_is_found_from_below_and_with_another_directory() {
    let project = TestProject::new().change("add-oauth").root_file("src/deep/x", "");
    let here = project.run(["list"]).fine().stdout;
    assert_eq!(project.run(["-C", "src/deep", "list"]).fine().stdout, here);
    assert_eq!(project.run(["list", "-C", "src/deep"]).fine().stdout, here);
    let mut elsewhere = project.command(["list", "--directory"]);
    elsewhere.arg(project.root()).current_dir(project.home());
    assert_eq!(project.finish(&mut elsewhere).fine().stdout, here);
}

#[test]
fn outside_of_a_project_the_way_in_is_shown() {
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
