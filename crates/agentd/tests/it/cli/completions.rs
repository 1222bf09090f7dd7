//! Completions: the scripts, and what they ask agentd.

use crate::cli::help::commands;
use test_project::TestProject;

/// What comes next behind these words, by the protocol of fish: one in a line.
fn next(project: &TestProject, words: &[&str]) -> Vec<String> {
    let mut command = project.command([&["--", "agentd"], words].concat());
    let run = project.finish(command.env("AGENTD_COMPLETE", "fish")).fine();
    run.stdout.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// Issue 19: every command is reachable, in each shell.
#[test]
fn completions_have_every_command() {
    let project = TestProject::empty();
    let mut scripts = Vec::new();
    for shell in ["bash", "zsh", "fish"] {
        let run = project.run(["completions", shell]).fine();
        assert!(run.stdout.contains("AGENTD_COMPLETE"), "{}", run.stdout);
        scripts.push(run.stdout);
        let json = project.run(["completions", shell, "--json"]).fine().json();
        assert_eq!(json["shell"], shell);
        assert_eq!(json["script"], *scripts.last().unwrap());
        // What the script asks for.
        let mut command = project.command(["--", "agentd", ""]);
        command.env("AGENTD_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "1");
        let asked = project.finish(command.env("_CLAP_IFS", "\n")).fine().stdout;
        for command in commands(&project) {
            let has = asked.lines().any(|line| line.split([':', '\t']).next() == Some(&*command));
            assert!(has, "{shell} lacks {command}: {asked}");
        }
    }
    scripts.dedup();
    assert_eq!(scripts.len(), 3, "each shell has its own");
}

/// Issue 19, m16: names of changes, specs, documents and codes.
#[test]
fn names_are_completed() {
    let project = TestProject::new()
        .change("add-oauth")
        .begun("fix-bug")
        .root_file("agentd/specs/auth-flow.md", "")
        .root_file("agentd/archive/2026-11-04-add-login/STATE.yaml", "");
    assert_eq!(next(&project, &["impl", ""])[..2], ["add-oauth", "fix-bug"]);
    assert_eq!(next(&project, &["impl", "fi"]), ["fix-bug"]);
    assert_eq!(next(&project, &["status", "add"]), ["add-oauth", "add-login"]);
    assert_eq!(next(&project, &["unarchive", "add"]), ["add-login"]);
    assert_eq!(next(&project, &["show", "auth"]), ["auth-flow"]);
    let documents = next(&project, &["show", "add-oauth", ""]);
    for document in ["proposal", "tasks", "auth-flow"] {
        assert!(documents.iter().any(|known| known == document), "{documents:?}");
    }
    assert_eq!(next(&project, &["explain", "T00"])[0], "T001");
    assert_eq!(next(&project, &["explain", "lock"]), ["locked"]);
    assert_eq!(next(&project, &["man", "arch"]), ["archive"]);
    // Nothing is repaired or written, also where there is no project.
    let before = project.tree();
    next(&project, &["-C", "src", "impl", ""]);
    assert_eq!(project.tree(), before);
    assert!(next(&TestProject::empty(), &["impl", "a"]).is_empty());
}

/// The script of bash, in bash.
#[test]
fn bash_completes() {
    let project = TestProject::new().change("add-oauth").programs(&["bash"]);
    std::os::unix::fs::symlink(test_project::agentd(), project.bin().join("agentd")).unwrap();
    let script = "source <(agentd completions bash)\n\
                  COMP_WORDS=(agentd impl add); COMP_CWORD=2; COMP_TYPE=9\n\
                  _clap_complete_agentd agentd add impl; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = project.any_command(project.bin().join("bash"));
    let run = project.finish(bash.args(["--norc", "-c", script])).exits(0);
    assert_eq!(run.stdout, "add-oauth\n", "{}", run.stderr);
}

/// The script of zsh, loaded from fpath as the help says: the first time counts as well.
#[test]
fn zsh_completes_from_the_first_time() {
    if !std::path::Path::new("/usr/bin/zsh").exists() {
        return;
    }
    let project = TestProject::new().change("add-oauth").programs(&["zsh", "expr", "mkdir"]);
    std::os::unix::fs::symlink(test_project::agentd(), project.bin().join("agentd")).unwrap();
    let script = "mkdir functions; agentd completions zsh > functions/_agentd\n\
                  _describe() { print -l -- \"${other[@]}\" }; compdef() { }\n\
                  fpath=(functions); autoload -U _agentd\n\
                  words=(agentd impl add); CURRENT=3; _agentd";
    let mut zsh = project.any_command(project.bin().join("zsh"));
    let run = project.finish(zsh.args(["-f", "-c", script])).exits(0);
    assert_eq!(run.stdout, "add-oauth\n", "{}", run.stderr);
}

/// The script of fish, in fish.
#[test]
fn fish_completes() {
    if !std::path::Path::new("/usr/bin/fish").exists() {
        return;
    }
    let project = TestProject::new().change("add-oauth").programs(&["fish"]);
    std::os::unix::fs::symlink(test_project::agentd(), project.bin().join("agentd")).unwrap();
    let script = "agentd completions fish | source; complete -C 'agentd impl add'";
    let mut fish = project.any_command(project.bin().join("fish"));
    let run = project.finish(fish.args(["--no-config", "-c", script])).exits(0);
    assert_eq!(run.stdout, "add-oauth\n", "{}", run.stderr);
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
