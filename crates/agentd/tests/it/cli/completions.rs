use crate::cli::help::commands;
use test_project::TestProject;

#[test]
fn completions_have_every_command() {
    let project = TestProject::empty();
    let mut scripts = Vec::new();
    for shell in ["bash", "zsh", "fish"] {
        let run = project.run(["completions", shell]).fine();
        for command in commands(&project) {
            assert!(run.stdout.contains(&command), "{shell} lacks {command}");
        }
        scripts.push(run.stdout);
        let json = project.run(["completions", shell, "--json"]).fine().json();
        assert_eq!(json["shell"], shell);
        assert_eq!(json["script"], *scripts.last().unwrap());
    }
    scripts.dedup();
    assert_eq!(scripts.len(), 3, "each shell has its own");
}

#[test]
fn unknown_shell_is_a_usage_error() {
    let project = TestProject::empty();
    insta::assert_snapshot!(project.run(["completions", "bsh"]), @"
    exit 2
    --- stderr
    error: invalid value 'bsh' for '<SHELL>'
      [possible values: bash, elvish, fish, powershell, zsh]

      tip: a similar value exists: 'bash'

    For more information, try '--help'.
    ");
}
