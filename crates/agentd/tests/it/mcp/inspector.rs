//! The official inspector as the client. `cargo xtask test` installs it and
//! names its entry in `AGENTD_INSPECTOR`.

use std::process::Command;

use serde_json::{Value, json};

use test_project::TestProject;

use super::{CHANGE, plan, planned};

fn inspector() -> Option<String> {
    let path = std::env::var("AGENTD_INSPECTOR").ok();
    if path.is_none() {
        eprintln!("skipped: AGENTD_INSPECTOR is not set; `cargo xtask test` sets it");
    }
    path
}

fn run(entry: &str, project: &TestProject, role: &str, method: &[&str]) -> Value {
    let output = Command::new("node")
        .arg(entry)
        .arg("--cli")
        .arg(test_project::agentd())
        .args(["mcp", "--change", CHANGE, "--role", role])
        .args(["-C".as_ref(), project.root().as_os_str()])
        .args(method)
        .current_dir(project.root())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_inspector_lists_and_calls() {
    let Some(entry) = inspector() else { return };
    let project = planned();
    let tools = run(&entry, &project, "planner", &["--method", "tools/list"]);
    assert_eq!(tools["tools"].as_array().unwrap().len(), 9);
    let resources = run(&entry, &project, "planner", &["--method", "resources/list"]);
    assert_eq!(resources["resources"].as_array().unwrap().len(), 4);
    let call = |role: &str, tool: &str, arguments: Value| {
        let mut method = vec![
            "--method".to_owned(),
            "tools/call".to_owned(),
            "--tool-name".to_owned(),
            tool.to_owned(),
        ];
        for (name, value) in arguments.as_object().unwrap() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            method.extend(["--tool-arg".to_owned(), format!("{name}={value}")]);
        }
        let method: Vec<&str> = method.iter().map(String::as_str).collect();
        run(&entry, &project, role, &method)
    };
    let read = call("planner", "read_file", plan::read());
    assert_eq!(read["content"][0]["text"], project.read("proposal.md"));
    let review = call("challenger", "append_review", plan::plan_review());
    assert_eq!(review["structuredContent"]["iteration"], 1, "{review}");
    let content = json!({"change_id": CHANGE, "spec_id": "whole", "content": plan::MARKDOWN});
    let written = call("planner", "write_spec", content);
    assert_eq!(written["structuredContent"]["path"], "agentd/changes/add-oauth/specs/whole.md");
}
