//! An unknown key of config.toml is never ignored.

use agentd_core::diagnostic::Severity;
use test_project::TestProject;

fn misspelled() -> TestProject {
    TestProject::new()
        .change("add-oauth")
        .root_file("agentd/config.toml", "[workflow]\nplaning_iterations = 3\n")
}

#[test]
fn unknown_key_names_the_nearest() {
    let project = misspelled();
    let run = project.run(["validate"]);
    insta::assert_snapshot!(run, @r"
    exit 1
    --- stderr
    error: cannot use agentd/config.toml: unknown key `planing_iterations` (line 2, column 1)

    hint: did you mean `planning_iterations`?
    ");
    for args in [vec!["validate", "--all"], vec!["validate", "--sarif"], vec!["status"]] {
        assert_eq!(project.run(&args).transcript(), run.transcript(), "{args:?}");
    }
    for args in [vec!["validate", "--json"], vec!["status", "--json"]] {
        let error = project.run(args).exits(1).json_error();
        assert_eq!(error["kind"], "config_invalid");
        assert_eq!(error["hints"][0], "did you mean `planning_iterations`?");
    }
    let json = project.run(["doctor", "--json"]).exits(1).json();
    assert_eq!(json["healthy"], false);
    let config = json["checks"].as_array().unwrap().iter().find(|check| check["name"] == "config");
    insta::assert_snapshot!(format!("{:#}", config.unwrap()), @r#"
    {
      "name": "config",
      "status": "failed",
      "detail": "cannot use agentd/config.toml: unknown key `planing_iterations` (line 2, column 1)",
      "hint": "did you mean `planning_iterations`?"
    }
    "#);
}

#[test]
fn commands_without_settings_still_work() {
    let project = misspelled().challenged(&[Severity::Low]);
    for args in [vec!["list"], vec!["show"], vec!["explain"], vec!["decide", "fix"]] {
        project.run(args).fine();
    }
}

#[test]
fn settings_of_init_are_sound() {
    let project = TestProject::empty();
    project.run(["init", "--agents", "none"]).fine();
    let doctor = project.run(["doctor"]).exits(0).stdout;
    let config = doctor.lines().find(|line| line.split_whitespace().nth(1) == Some("config"));
    assert_eq!(config, Some("✓ config   agentd/config.toml is valid"));
    let text = project.read_root("agentd/config.toml");
    let uncommented = |line: &str| {
        let is_section = line.starts_with("# [") || line.starts_with("# e.g. [");
        let is_key = is_section || (line.starts_with("# ") && line.contains(" = "));
        let example = line.strip_prefix("# e.g. ");
        if is_key { example.unwrap_or(&line[2..]).to_owned() } else { line.to_owned() }
    };
    let text: Vec<String> = text.lines().map(uncommented).collect();
    let project = project.root_file("agentd/config.toml", text.join("\n"));
    project.run(["validate", "--all"]).fine();
}
