//! Contract T7: what a repository's settings would run needs consent.

use std::fs;

use terminal::{DOWN, Terminal};

use crate::cli::stand_in::{self, CHANGE};
use test_project::TestProject;

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

fn ran(project: &TestProject) -> bool {
    fs::remove_file(project.home().join(".claude/ran")).is_ok()
}

#[test]
fn without_consent_nothing_of_the_settings_is_run_and_all_of_it_is_named() {
    let project = hostile();
    let error = project.run(PLAN.iter().chain(&["--json"])).exits(1).json_error();
    assert_eq!(error["kind"], "not_trusted");
    let settings = &error["settings"];
    assert_eq!(settings[0]["key"], "claude.command");
    assert_eq!(settings[0]["value"], "\"./evil.sh\"");
    assert_eq!(settings[1]["key"], "claude.env.A");
    assert!(!project.root().join("agentd/changes").join(CHANGE).exists(), "nothing is begun");
    project
        .run(PLAN)
        .exits(1)
        .stderr_has("claude.command = \"./evil.sh\"")
        .stderr_has("agentd trust");
    let doctor = project.run(["doctor"]).exits(0);
    doctor.stdout_has("`./evil.sh` of agentd/config.toml is not trusted, and not run");
    for args in [&["trust", "--show"][..], &["list"], &["validate", "--all"], &["init", "--yes"]] {
        project.run(args);
    }
    assert!(!ran(&project));
    assert!(project.run(["trust", "--json"]).exits(1).json_error()["kind"] == "not_trusted");
}

#[test]
fn consent_is_given_kept_taken_back_and_lost_by_an_edit() {
    let project = hostile();
    // The agent then fails, which is another matter.
    project.run(PLAN.iter().chain(&["--trust"])).exits(1).stderr_lacks("not trusted");
    assert!(ran(&project), "for this one command");
    let mut all = project.command(PLAN);
    project.finish(all.env("AGENTD_TRUST", "all")).exits(1);
    assert!(ran(&project), "for a CI job");
    let mut some = project.command(PLAN);
    project.finish(some.env("AGENTD_TRUST", "1")).exits(1).stderr_has("not trusted");
    assert!(!ran(&project));

    let granted = project.run(["trust", "--yes", "--json"]).fine().json();
    assert_eq!((&granted["action"], &granted["trusted"]), (&"trusted".into(), &true.into()));
    project.run(PLAN).exits(1);
    assert!(ran(&project));
    project.run(["doctor"]).exits(0).stdout_has("you have agreed to claude.command");
    assert!(ran(&project), "the doctor asks it for its version");

    let config = project.read_root("agentd/config.toml").replace("\"b\"", "\"c\"");
    let project = project.root_file("agentd/config.toml", config);
    project.run(PLAN).exits(1).stderr_has("not trusted");
    project
        .run(["trust", "--show"])
        .fine()
        .stdout_has("- claude.env.A = \"b\"")
        .stdout_has("+ claude.env.A = \"c\"");
    project.run(["trust", "--yes"]).fine();
    project.run(["trust", "--revoke"]).fine().stdout_has("revoked");
    project.run(PLAN).exits(1).stderr_has("not trusted");
    assert!(!ran(&project));
    assert!(!project.names().iter().any(|name| name.contains("trust")), "{:?}", project.names());
}

#[test]
fn on_a_terminal_the_question_shows_what_would_run_and_enter_agrees_to_nothing() {
    let project = hostile();
    let start = || Terminal::start(project.command(PLAN).env("NO_COLOR", "1"));
    let mut terminal = start();
    terminal.wait_for("claude.command = \"./evil.sh\"");
    terminal.wait_for("Do you trust it?");
    terminal.wait_for("> No, run nothing of it");
    terminal.press("\r");
    terminal.wait_for("you have not trusted it");
    assert_eq!(terminal.end().0, Some(1));
    assert!(!ran(&project));
    let mut terminal = start();
    terminal.wait_for("> No, run nothing of it");
    terminal.press(DOWN);
    terminal.wait_for("> Yes, until one of these settings changes");
    terminal.press("\r");
    assert_eq!(terminal.end().0, Some(1), "the agent fails");
    assert!(ran(&project));
    project.run(["trust", "--show"]).fine().stdout_has("trusted");
}

#[test]
fn plain_names_need_no_consent_but_never_mean_a_program_of_the_project() {
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
    let run = project.finish(command.env("PATH", path(""))).exits(1);
    run.stderr_has("only the project itself has it");
    let mut command = project.command(["doctor"]);
    project.finish(command.env("PATH", path(""))).exits(0).stdout_has("only the project itself");
    assert!(!ran(&project));
}
