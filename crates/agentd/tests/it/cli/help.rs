use test_project::TestProject;

/// The commands that `--help` lists, but for `help` itself.
pub(crate) fn commands(project: &TestProject) -> Vec<String> {
    let help = project.run(["--help"]).fine().stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(names.iter().any(|name| name == "validate"), "{help}");
    names
}

#[test]
fn every_command_has_help_with_examples_of_itself() {
    let project = TestProject::empty();
    for command in commands(&project) {
        let long = project.run([&command, "--help"]).fine().stdout;
        let (_, examples) = long.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{long}"));
        assert!(examples.contains(&format!("agentd {command}")), "{examples}");
        for option in ["--json", "--directory <DIR>"] {
            assert!(long.contains(option), "{command} lacks {option}");
        }
        assert_eq!(project.run(["help", &command]).fine().stdout, long);
        project.run([&command, "-h"]).fine().stdout_has("Examples:");
    }
}

#[test]
fn the_version_is_one_line() {
    let version = format!("agentd {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        assert_eq!(TestProject::empty().run([flag]).fine().stdout, version);
    }
}

#[test]
fn without_a_command_the_help_is_shown_and_that_is_wrong_usage() {
    let run = TestProject::empty().run::<&str>([]).exits(2);
    assert_eq!(run.stdout, "");
    run.stderr_has("Usage: agentd").stderr_has("Examples:");
}

#[test]
fn a_misspelt_command_names_the_right_one() {
    let project = TestProject::empty();
    let run = project.run(["stauts"]).exits(2).stderr_has("'status'");
    assert_eq!(run.stdout, "");
    let error = project.run(["stauts", "--json"]).exits(2).json_error();
    assert_eq!(error["kind"], "usage");
    assert_eq!(error["message"], "unrecognized subcommand 'stauts'");
    assert!(error["hints"][0].as_str().unwrap().contains("'status'"), "{error}");
}

#[test]
fn under_json_the_whole_message_of_a_usage_error_is_there() {
    let project = TestProject::new();
    let error = project.run(["decide", "--json"]).exits(2).json_error();
    assert_eq!(error["message"], "the following required arguments were not provided: <CHOICE>");
    let error = project.run(["validate", "--json", "--sarif"]).exits(2).json_error();
    assert_eq!(error["message"], "the argument '--json' cannot be used with '--sarif'");
}
