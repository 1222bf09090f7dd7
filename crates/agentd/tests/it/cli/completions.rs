//! Completions: the scripts, and what they ask agentd.

use crate::cli::help::commands;
use terminal::Terminal;
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

/// Issue 19, part 7: requirements, those of open changes too; tasks; rules by name; archived changes.
#[test]
fn parts_of_changes_and_specs_are_completed() {
    let project = TestProject::new()
        .change("add-oauth")
        .root_file("agentd/specs/sessions.md", "# Specification: Sessions\n\n## Requirements\n\n### R1: Stay\n\nIt MUST.\n\n### R7: Go\n\nIt MUST.\n")
        .root_file("agentd/archive/2026-11-04-add-login/STATE.yaml", "");
    assert_eq!(next(&project, &["trace", "sess"]), ["sessions"]);
    let whole = next(&project, &["trace", "sessions"]);
    assert_eq!(whole, ["sessions", "sessions:R1", "sessions:R7"]);
    assert_eq!(next(&project, &["trace", "sessions:R7"]), ["sessions:R7"]);
    // A spec that no main spec has yet.
    assert_eq!(next(&project, &["trace", "auth"]), ["auth-flow"]);
    let requirements = next(&project, &["trace", "auth-flow:"]);
    assert!(requirements.iter().any(|id| id == "auth-flow:R1"), "{requirements:?}");
    assert!(next(&project, &["trace", "../x:"]).is_empty());
    // The first task is done. Commas are between several.
    assert_eq!(next(&project, &["impl", "add-oauth", "--tasks", ""]), ["2.1"]);
    assert_eq!(next(&project, &["implement", "--tasks", "1.1,"]), ["1.1,2.1"]);
    assert_eq!(next(&project, &["explain", "vague"]), ["vague-word"]);
    for command in
        ["status", "show", "log", "cost", "diff", "validate", "verify", "export", "trace"]
    {
        assert_eq!(next(&project, &[command, "add-l"]), ["add-login"], "{command}");
    }
    for command in ["impl", "plan", "decide", "drop", "archive"] {
        assert!(next(&project, &[command, "add-l"]).is_empty(), "{command}");
    }
}

/// Agents and roles, those of the settings too.
#[test]
fn agents_and_roles_are_completed() {
    let project = TestProject::new()
        .begun("add-oauth")
        .root_file("agentd/config.toml", "[agents.mine]\nacp = [\"my-agent\"]\n");
    for command in ["plan", "impl", "review"] {
        let agents = next(&project, &[command, "--agent", ""]);
        for agent in ["gemini", "codex", "claude", "builtin", "mine"] {
            assert!(agents.iter().any(|known| known == agent), "{command}: {agents:?}");
        }
        assert!(!agents.iter().any(|known| known == "replay"), "{agents:?}");
    }
    assert_eq!(next(&project, &["doctor", "--probe", "min"]), ["mine"]);
    assert_eq!(next(&project, &["init", "--agents", "al"]), ["all"]);
    assert_eq!(next(&project, &["init", "--agents", "claude,cod"]), ["claude,codex"]);
    assert_eq!(next(&project, &["mcp", "--role", "pl"]), ["planner"]);
    assert_eq!(next(&project, &["mcp", "--change", "add"]), ["add-oauth"]);
    assert_eq!(next(&TestProject::empty(), &["plan", "--agent", "gem"]), ["gemini"]);
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

/// Issue 19: in shells as people use them, with the tab key. bash breaks words at `:` and `=`.
#[test]
fn tabs_complete_in_interactive_shells() {
    // What is typed, and what only a completion adds to it.
    let cases = [
        ("agentd trace ses", "sions"),
        ("agentd trace sessions:R7", "R77"),
        ("agentd trace sessions:", "R77"),
        ("agentd validate add-lo", "add-login"),
        ("agentd plan add-oauth --git=wor", "worktree"),
        ("agentd impl add-oauth --tasks 2", "2.1"),
        ("agentd explain vague-", "vague-word"),
    ];
    let load_zsh = "autoload -U compinit; compinit -u -D; source <(agentd completions zsh)\n";
    let shells: [(&str, &[&str], &str); 3] = [
        ("bash", &["--norc", "--noprofile", "-i"], "source <(agentd completions bash)\n"),
        ("zsh", &["-f", "-i"], load_zsh),
        ("fish", &["--no-config", "-i"], "agentd completions fish | source\n"),
    ];
    let spec = "# Specification: Sessions\n\n## Requirements\n\n### R77: Stay\n\nIt MUST.\n";
    for (shell, args, script) in shells {
        let dirs = ["/usr/bin", "/bin"].map(|dir| std::path::Path::new(dir).join(shell));
        let Some(program) = dirs.into_iter().find(|path| path.exists()) else { continue };
        let project = TestProject::new()
            .change("add-oauth")
            .root_file("agentd/specs/sessions.md", spec)
            .root_file("agentd/archive/2026-11-04-add-login/STATE.yaml", "");
        std::os::unix::fs::symlink(test_project::agentd(), project.bin().join("agentd")).unwrap();
        // fish wants the terminal to be its own.
        let mut command = project.any_command("/usr/bin/setsid");
        let path = format!("{}:/usr/bin:/bin", project.bin().display());
        command.arg("--ctty").arg(program).args(args).env("PS1", "$ ").env("PATH", path);
        let mut terminal = Terminal::start_wide(&mut command, 120);
        terminal.press(script);
        // The answer is not what is typed.
        terminal.press("echo rea''dy\n");
        terminal.wait_for("ready\r\n");
        for (typed, added) in cases {
            terminal.press(typed);
            terminal.press("\t");
            terminal.wait_for(added);
            // Away with the line.
            terminal.press("\u{5}\u{15}");
        }
    }
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
