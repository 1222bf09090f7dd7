//! `agentd fleet` and `agentd worker` start the program beside them.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::machines::World;

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
