//! A key of config.toml that nobody knows is never ignored.

use test_project::TestProject;

fn misspelt() -> TestProject {
    TestProject::new()
        .change("add-oauth")
        .root_file("agentd/config.toml", "[workflow]\nplaning_iterations = 3\n")
}

#[test]
fn every_command_that_reads_the_settings_names_the_nearest_key() {
    let project = misspelt();
    insta::assert_snapshot!(project.run(["validate"]).transcript(), @r"
    exit 1
    --- stderr
    error: cannot use agentd/config.toml: unknown key `planing_iterations` (line 2, column 1)

    hint: did you mean `planning_iterations`?
    ");
    for args in [vec!["validate", "--all"], vec!["validate", "--sarif"], vec!["status"]] {
        let run = project.run(&args).exits(1);
        assert_eq!(run.stdout, "");
        run.stderr_has("did you mean `planning_iterations`?");
    }
    for args in [vec!["validate", "--json"], vec!["status", "--json"]] {
        let error = project.run(args).exits(1).json_error();
        assert_eq!(error["kind"], "config_invalid");
        assert_eq!(error["hints"][0], "did you mean `planning_iterations`?");
    }
    let run = project.run(["doctor"]).exits(1);
    run.stdout_has("✗ config").stdout_has("hint: did you mean `planning_iterations`?");
    let json = project.run(["doctor", "--json"]).exits(1).json();
    assert_eq!(json["healthy"], false);
}

#[test]
fn commands_that_need_no_settings_work_all_the_same() {
    let project = misspelt();
    for args in [vec!["list"], vec!["show"], vec!["explain"], vec!["decide", "fix"]] {
        project.run(args).fine();
    }
}

#[test]
fn the_settings_that_init_writes_are_sound() {
    let project = TestProject::empty();
    project.run(["init", "--agents", "none"]).fine();
    project.run(["doctor"]).exits(0).stdout_has("✓ config   agentd/config.toml is sound");
    let text = project.read_root("agentd/config.toml");
    let uncommented = |line: &str| {
        let is_key = line.starts_with("# [") || (line.starts_with("# ") && line.contains(" = "));
        if is_key { line[2..].to_owned() } else { line.to_owned() }
    };
    let text: Vec<String> = text.lines().map(uncommented).collect();
    let project = project.root_file("agentd/config.toml", text.join("\n"));
    project.run(["validate", "--all"]).fine();
}
