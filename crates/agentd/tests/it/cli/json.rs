//! `--json` of every command: one document, and nothing else on stdout.

use agentd_core::diagnostic::Severity;

use crate::cli::help::commands;
use test_project::TestProject;

#[test]
fn every_command_prints_one_document() {
    let project = TestProject::new().change("add-oauth").challenged(&[Severity::Low]);
    let runs = [
        vec!["init", "--agents", "all"],
        vec!["list"],
        vec!["list", "--specs"],
        vec!["list", "--archived"],
        vec!["status"],
        vec!["log"],
        vec!["cost"],
        vec!["show"],
        vec!["validate"],
        vec!["validate", "--all"],
        vec!["explain"],
        vec!["explain", "T005"],
        vec!["decide"],
        vec!["decide", "fix"],
        vec!["overlap"],
        vec!["context", "Add login"],
        vec!["context", "Add login", "--files", "3"],
        vec!["overlap", "add-oauth"],
        vec!["trace", "add-oauth"],
        vec!["trace", "auth-flow:R1"],
        vec!["archive", "--dry-run"],
        vec!["archive", "--force", "to see it"],
        vec!["unarchive", "add-oauth"],
        vec!["doctor"],
        vec!["completions", "bash"],
        vec!["uninstall", "--dry-run"],
        vec!["uninstall"],
    ];
    for mut args in runs {
        let name = args.join(" ");
        args.push("--json");
        let before = project.run(&args);
        assert_eq!((before.code, before.stderr.as_str()), (0, ""), "{name}: {before:#?}");
        let document = before.json();
        assert!(document.get("error").is_none(), "{name}: {document:#}");
    }
}

#[test]
fn every_command_has_json_errors() {
    let project = TestProject::empty();
    // Two are another program, which may not be there.
    let own = |command: &String| !["fleet", "worker"].contains(&command.as_str());
    for command in commands(&project).into_iter().filter(own) {
        let error = project.run([&command, "--json", "--no-such-flag"]).exits(2).json_error();
        assert_eq!(error["kind"], "usage");
        assert_eq!(error["message"], "unexpected argument '--no-such-flag' found");
    }
    for args in [vec!["list"], vec!["status"], vec!["show"], vec!["validate"], vec!["uninstall"]] {
        let run = project.run(args.into_iter().chain(["--json"]));
        insta::allow_duplicates! { insta::assert_snapshot!(run, @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "not_initialised",
            "message": "there is no agentd project here",
            "cause": "no agentd project in [ROOT] or any directory above it",
            "hints": [
              "set one up in [ROOT]: agentd init"
            ]
          }
        }
        --- stderr
        "#); }
    }
}

#[test]
fn json_flag_may_come_first() {
    let project = TestProject::new().change("add-oauth");
    project.run(["--json", "list"]).fine().json();
    project.run(["--json", "-C", "agentd", "status"]).fine().json();
}
