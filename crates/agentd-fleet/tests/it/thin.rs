//! `agentd fleet` and `agentd worker` start the program beside them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::machines::{World, program};

// contract S4
#[test]
fn agentd_starts_the_program_beside_it_and_none_of_the_project() {
    let world = World::new(None);
    let project = world.base().join("project");
    let bin = world.base().join("bin");
    fs::create_dir(&bin).unwrap();
    let agentd = bin.join("agentd");
    fs::copy(test_project::agentd(), &agentd).unwrap();
    // A repository has a program of that name, and somebody has its directory in their PATH.
    test_project::write_script(&project.join("tools/agentd-fleet"), "echo mine");
    let run = |args: &[&str]| {
        let mut command = Command::new(&agentd);
        command.env_clear().env("HOME", world.base().join("home"));
        command.env("PATH", format!("{}:/usr/bin:/bin", project.join("tools").display()));
        let output = command.current_dir(&project).args(args).output().unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), json)
    };
    for args in [["--json", "fleet", "status"], ["--json", "worker", "--until-done"]] {
        let (code, json) = run(&args);
        assert_eq!((code, &json["error"]["kind"]), (Some(1), &"fleet_missing".into()), "{json}");
    }
    fs::copy(env!("CARGO_BIN_EXE_agentd-fleet"), bin.join("agentd-fleet")).unwrap();
    let (code, json) = run(&["fleet", "status", "--json"]);
    assert_eq!((code, &json["engine"]), (Some(0), &"git".into()), "{json}");
    let (_, before) = run(&["--json", "fleet", "status"]);
    assert_eq!(json, before);
    let (code, json) = run(&["fleet", "limit", "claude:team1", "--rpm", "3", "--json"]);
    assert_eq!((code, &json["error"]["kind"]), (Some(2), &"usage".into()), "{json}");
}

/// A reader that has seen enough closes the pipe.
#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let world = World::new(None);
    let home = world.base().join("home");
    for args in [&["status", "--watch"][..], &["status", "--watch", "--json"]] {
        let mut command = world.command(&home, &program());
        command.current_dir(world.base().join("project")).arg("fleet").args(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if args.contains(&"--json") {
            let json: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(json["version"], 1, "{line}");
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}
