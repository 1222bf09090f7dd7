use crate::cli::help::commands;
use test_project::TestProject;

#[test]
fn every_shell_is_told_every_command() {
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
fn an_unknown_shell_is_a_usage_error() {
    let project = TestProject::empty();
    project.run(["completions", "bsh"]).exits(2).stderr_has("bash").stderr_has("bsh");
}
