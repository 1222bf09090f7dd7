//! Contract T7: what a repository's settings would run needs consent.

use std::fs;

use terminal::{DOWN, Terminal};

use crate::cli::stand_in::{self, CHANGE};
use test_project::{TestProject, mask};

const PLAN: [&str; 6] = ["plan", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];
const QUICK: &str = "self_review_iterations = 0\n";

/// A project whose settings name a program of its own, which leaves a mark when it runs.
fn hostile() -> TestProject {
    let project = stand_in::project(QUICK, &[]);
    let config = project.read_root("agentd/config.toml");
    let config = format!("{config}[claude]\ncommand = \"./evil.sh\"\nenv = {{ A = \"b\" }}\n");
    let mark = project.home().join(".claude/ran");
    let project = project
        .root_file("agentd/config.toml", config)
        .root_file("evil.sh", format!("#!/bin/sh\necho ran > '{}'\n", mark.display()));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(project.root().join("evil.sh"), mode).unwrap();
    project
}

/// What the doctor reports under these names.
fn checks(project: &TestProject, names: &[&str]) -> String {
    let text = project.run(["doctor"]).exits(0).transcript();
    let is_named =
        |line: &&str| line.split_whitespace().nth(1).is_some_and(|it| names.contains(&it));
    text.lines().filter(is_named).map(|line| format!("{line}\n")).collect()
}

fn ran(project: &TestProject) -> bool {
    fs::remove_file(project.home().join(".claude/ran")).is_ok()
}

#[test]
fn without_consent_nothing_runs() {
    let project = hostile();
    insta::assert_snapshot!(project.run(PLAN.iter().chain(&["--json"])), @r#"
    exit 1
    {
      "version": 1,
      "error": {
        "kind": "not_trusted",
        "message": "agentd/config.toml of this project makes agentd run programs, and you have not trusted it",
        "cause": "claude.command = \"./evil.sh\"; claude.env.A = \"b\"",
        "hints": [
          "see what would run, and agree to it: agentd trust",
          "for this one command: --trust; for a CI job: AGENTD_TRUST=all"
        ],
        "settings": [
          {
            "key": "claude.command",
            "value": "\"./evil.sh\"",
            "since_consent": "new"
          },
          {
            "key": "claude.env.A",
            "value": "\"b\"",
            "since_consent": "new"
          }
        ]
      }
    }
    --- stderr
    "#);
    assert!(!project.root().join("agentd/changes").join(CHANGE).exists(), "nothing is begun");
    insta::assert_snapshot!(project.run(PLAN), @r#"
    exit 1
    --- stderr
    error: agentd/config.toml of this project makes agentd run programs, and you have not trusted it
      cause: claude.command = "./evil.sh"; claude.env.A = "b"

    hint: see what would run, and agree to it: agentd trust
    hint: for this one command: --trust; for a CI job: AGENTD_TRUST=all
    "#);
    insta::assert_snapshot!(checks(&project, &["claude", "trust"]), @r#"
    ! trust    not trusted, and not run: claude.command = "./evil.sh"; claude.env.A = "b"
    ! claude   planner, challenger, implementer: `./evil.sh` of agentd/config.toml is not trusted, and not run
    "#);
    for args in [&["trust", "--show"][..], &["list"], &["validate", "--all"], &["init", "--yes"]] {
        project.run(args);
    }
    assert!(!ran(&project));
    assert!(project.run(["trust", "--json"]).exits(1).json_error()["kind"] == "not_trusted");
}

#[test]
fn consent_lasts_until_revoked_or_edited() {
    let project = hostile();
    // The agent then fails, which is another matter.
    let failed = project.run(PLAN.iter().chain(&["--trust"]));
    insta::assert_snapshot!(failed, @"
    exit 1
    --- stderr
    forecast: [FIGURES] (from built-in guesses)
    Working in place, without git: git is not installed.
    complexity: high (security (`login`))
    Proposal: started (claude)
    Proposal: failed, [DURATION], claude failed: the agent exited with code 0 before it had read its prompt
    error: claude failed: the agent exited with code 0 before it had read its prompt
      cause: it closed its input, or ended, without reading what it was given

    hint: start the agent by hand in this project, and check that it works
    ");
    assert!(ran(&project), "for this one command");
    let mut all = project.command(PLAN);
    project.finish(all.env("AGENTD_TRUST", "all")).exits(1);
    assert!(ran(&project), "for a CI job");
    let mut some = project.command(PLAN);
    let refused = project.finish(some.env("AGENTD_TRUST", "1"));
    insta::assert_snapshot!(refused, @r#"
    exit 1
    --- stderr
    error: agentd/config.toml of this project makes agentd run programs, and you have not trusted it
      cause: claude.command = "./evil.sh"; claude.env.A = "b"

    hint: see what would run, and agree to it: agentd trust
    hint: for this one command: --trust; for a CI job: AGENTD_TRUST=all
    "#);
    assert!(!ran(&project));

    insta::assert_snapshot!(project.run(["trust", "--yes", "--json"]), @r#"
    exit 0
    {
      "version": 1,
      "action": "trusted",
      "trusted": true,
      "settings": [
        {
          "key": "claude.command",
          "value": "\"./evil.sh\"",
          "since_consent": "same"
        },
        {
          "key": "claude.env.A",
          "value": "\"b\"",
          "since_consent": "same"
        }
      ]
    }
    --- stderr
    "#);
    project.run(PLAN).exits(1);
    assert!(ran(&project));
    insta::assert_snapshot!(checks(&project, &["claude", "trust"]), @r#"
    ✓ trust    you have agreed to claude.command = "./evil.sh"; claude.env.A = "b"
    ! claude   planner, challenger, implementer: [ROOT]/./evil.sh: `--version` printed nothing
    "#);
    assert!(ran(&project), "the doctor asks it for its version");

    let config = project.read_root("agentd/config.toml").replace("\"b\"", "\"c\"");
    let project = project.root_file("agentd/config.toml", config);
    insta::assert_snapshot!(project.run(PLAN), @r#"
    exit 1
    --- stderr
    error: agentd/config.toml of this project makes agentd run programs, and you have not trusted it
      cause: claude.command = "./evil.sh"; claude.env.A = "c"

    hint: see what would run, and agree to it: agentd trust
    hint: for this one command: --trust; for a CI job: AGENTD_TRUST=all
    "#);
    insta::assert_snapshot!(project.run(["trust", "--show"]), @r#"
    exit 0
      claude.command = "./evil.sh"
    - claude.env.A = "b"
    + claude.env.A = "c"
    not trusted: nothing of it is run
    --- stderr
    "#);
    project.run(["trust", "--yes"]).fine();
    insta::assert_snapshot!(project.run(["trust", "--revoke"]), @r#"
    exit 0
      claude.command = "./evil.sh"
      claude.env.A = "c"
    consent revoked
    --- stderr
    "#);
    insta::assert_snapshot!(project.run(PLAN), @r#"
    exit 1
    --- stderr
    error: agentd/config.toml of this project makes agentd run programs, and you have not trusted it
      cause: claude.command = "./evil.sh"; claude.env.A = "c"

    hint: see what would run, and agree to it: agentd trust
    hint: for this one command: --trust; for a CI job: AGENTD_TRUST=all
    "#);
    assert!(!ran(&project));
    assert!(!project.names().iter().any(|name| name.contains("trust")), "{:?}", project.names());
}

#[test]
fn trust_question_defaults_to_no() {
    let project = hostile();
    let start = || Terminal::start(project.command(PLAN).env("NO_COLOR", "1"));
    let mut terminal = start();
    terminal.wait_for("claude.command = \"./evil.sh\"");
    terminal.wait_for("Do you trust it?");
    terminal.wait_for("> No, run nothing of it");
    terminal.press("\r");
    terminal.wait_for("error: ");
    assert_eq!(terminal.end().0, Some(1));
    assert!(!ran(&project));
    let mut terminal = start();
    terminal.wait_for("> No, run nothing of it");
    terminal.press(DOWN);
    terminal.wait_for("> Yes, until one of these settings changes");
    terminal.press("\r");
    assert_eq!(terminal.end().0, Some(1), "the agent fails");
    assert!(ran(&project));
    insta::assert_snapshot!(project.run(["trust", "--show"]), @r#"
    exit 0
      claude.command = "./evil.sh"
      claude.env.A = "b"
    trusted
    --- stderr
    "#);
}

#[test]
fn plain_names_never_run_project_programs() {
    let project = stand_in::project(QUICK, &[("medium", "No limit")]);
    let bin = project.root().join("node_modules/.bin");
    fs::create_dir_all(&bin).unwrap();
    let mark = project.home().join(".claude/ran");
    for name in ["claude", "git", "node"] {
        let script = format!("#!/bin/sh\necho ran > '{}'\n", mark.display());
        fs::write(bin.join(name), script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(bin.join(name), mode).unwrap();
    }
    let path = |rest: &str| format!("./node_modules/.bin:{}{rest}", bin.display());
    let mut command = project.command(PLAN);
    let with = path(&format!(":{}", project.bin().display()));
    project.finish(command.env("PATH", with)).exits(0);
    assert!(!ran(&project), "the one of the user was run");
    let other = ["plan", "add-other", "Add it", "--skip-clarify", "--git", "in-place"];
    let mut command = project.command(other);
    insta::assert_snapshot!(project.finish(command.env("PATH", path(""))), @"
    exit 1
    --- stderr
    error: claude failed: cannot start `claude`: only the project itself has it, [ROOT]/./node_modules/.bin/claude; set its `command` in agentd/config.toml to that path if it is meant

    hint: install it with `npm install -g @anthropic-ai/claude-code`, or set `command` in [claude]
    hint: or name another agent in [roles]: agentd/config.toml
    hint: for a plan alone, `--agent builtin` drafts and checks it by rules, without a model
    ");
    let mut command = project.command(["doctor", "--json"]);
    let json = project.finish(command.env("PATH", path(""))).exits(0).json();
    let mut found = json["checks"].as_array().unwrap().iter();
    let found = found.find(|check| check["name"] == "claude").unwrap();
    insta::assert_snapshot!(mask(&format!("{found:#}"), &project.base()), @r#"
    {
      "name": "claude",
      "status": "warning",
      "detail": "planner, challenger, implementer: `claude`: only the project itself has it, [ROOT]/./node_modules/.bin/claude; set its `command` in agentd/config.toml to that path if it is meant"
    }
    "#);
    assert!(!ran(&project));
}
