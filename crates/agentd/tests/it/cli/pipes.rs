//! Lesson 15: a program that reads our output may stop reading.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use agentd_core::diagnostic::Severity;
use test_project::TestProject;

#[test]
fn list_into_head_ends_quietly() {
    let project = (0..2000).fold(TestProject::new(), |project, i| project.begun(&format!("c{i}")));
    for extra in [None, Some("--json")] {
        let mut command = project.command(["list"].into_iter().chain(extra));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with(if extra.is_some() { "{" } else { "c0" }), "{line}");
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn closed_pipe_ends_every_command_quietly() {
    let project = TestProject::new().change("add-oauth").challenged(&[Severity::Low]);
    let project = project.root_file("agentd/specs/auth-flow.md", "x\n");
    for args in [
        vec!["list"],
        vec!["list", "--specs"],
        vec!["list", "--json"],
        vec!["status"],
        vec!["log"],
        vec!["cost", "--json"],
        vec!["status", "--json"],
        vec!["show"],
        vec!["show", "--json"],
        vec!["validate"],
        vec!["validate", "--json"],
        vec!["validate", "--sarif"],
        vec!["explain"],
        vec!["explain", "T005"],
        vec!["decide", "fix"],
        vec!["doctor"],
        vec!["completions", "bash"],
        vec!["init", "--agents", "none"],
        vec!["uninstall", "--dry-run"],
        vec!["--help"],
        vec!["list", "--help"],
        vec!["--version"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let run = project.finish(project.command(&args).stdout(writer));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn findings_fail_on_a_closed_pipe() {
    let project =
        TestProject::new().change("add-oauth").edit("tasks.md", "src/auth.rs", "/etc/passwd");
    for args in [vec!["validate"], vec!["validate", "--json"], vec!["validate", "--sarif"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let run = project.finish(project.command(&args).stdout(writer));
        assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{args:?}");
    }
}

/// A disk that is full is not a reader that has seen enough.
#[test]
#[cfg(target_os = "linux")]
fn full_disk_is_an_error() {
    let project = TestProject::new().change("add-oauth");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for args in
        [vec!["list"], vec!["show"], vec!["explain"], vec!["validate"], vec!["list", "--json"]]
    {
        let run = project.finish(project.command(&args).stdout(full()));
        assert_eq!(run.code, 1, "{args:?}");
    }
    let run = project.finish(project.command(["list"]).stdout(full()));
    insta::assert_snapshot!(run, @"
    exit 1
    --- stderr
    error: cannot write the output
      cause: No space left on device (os error 28)
    ");
    project.finish(project.command(["--version"]).stdout(full())).exits(1);
}
