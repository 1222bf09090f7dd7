//! What the agents of a plan with three specs are given to read, from a real run of `agentd plan`.
//!
//! The agents are replayed from a recording that is written here: each reads its context by agentd's
//! own tool and then does its step. Their new run files say what they have read.

use std::fs;
use std::path::Path;

use serde_json::Value;
use serde_json::json;

use super::Bench;
use crate::Result;
use crate::process;
use crate::sample_project;

/// The change, and the wish for it: about what the specs say, as in a plan of a model.
const CHANGE: &str = "add-stores";
const WISH: &str = "Store invoices, webhooks and sessions, each with rules for what is refused";
const SPECS: usize = 3;

/// The steps of the plan in their order, each with the bytes of its context.
pub(super) fn read_by_agents(bench: &Bench, project: &Path) -> Result<Vec<(String, usize)>> {
    let recording = bench.scratch.join("plan-recording");
    fs::create_dir_all(&recording)?;
    let steps = steps();
    for (number, step) in (1..).zip(&steps) {
        let name = format!("{number:04}-{}.jsonl", step.name);
        fs::write(recording.join(name), step.recorded(number))?;
    }
    fs::create_dir_all(project.join("agentd"))?;
    let recording = recording.to_str().ok_or("a path of the workspace that is not text")?;
    let config = format!(
        "[roles]\nplanner = \"replay\"\nchallenger = \"replay\"\n\n[replay]\nrecording = {recording:?}\n"
    );
    fs::write(project.join("agentd/config.toml"), config)?;
    let arguments = ["plan", CHANGE, WISH, "--auto", "--skip-clarify", "--git", "in-place"];
    process::capture(&mut bench.agentd(project, &arguments))?;
    let runs = project.join("agentd/changes").join(CHANGE).join("runs");
    let mut read = Vec::new();
    for (number, step) in (1..).zip(steps) {
        let run = runs.join(format!("{number:04}-{}.jsonl", step.name));
        let text = fs::read_to_string(&run)?;
        let context = context(&text)
            .ok_or_else(|| format!("{} does not say which context was read", run.display()))?;
        read.push((step.name, context.len()));
    }
    Ok(read)
}

/// What the agent of a run was answered when it read its context.
fn context(run: &str) -> Option<String> {
    let records = run.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut answers = records.filter(|record| record["event"] == "tool_result");
    let first = answers.next()?;
    let text = first["output"].as_str().filter(|_| first["ok"] == true)?;
    text.starts_with("# Context").then(|| text.to_owned())
}

/// A step, and what its agent does after it has read its context.
struct Step {
    name: String,
    call: Option<(&'static str, Value)>,
}

impl Step {
    fn recorded(&self, number: usize) -> String {
        let (agent, role, context) = if self.name == "challenge" {
            ("codex", "challenger", "AGENTS.md")
        } else {
            ("gemini", "planner", "GEMINI.md")
        };
        let session = format!("session-{number}");
        let said = if self.name.contains("-review") { "<review>PASS</review>" } else { "Done." };
        let mut lines = vec![
            json!({
                "run": 1, "step": self.name, "change": CHANGE, "agent": agent, "role": role, "attempt": 1,
                "argv": [agent], "env": [], "cwd": "/", "prompt": "", "started_at": "2026-01-02T03:04:05Z",
            }),
            json!({ "t": 0, "event": "session", "session_id": session, "model": "none" }),
        ];
        let reads = ("read_file", json!({ "path": context }));
        for (id, (tool, arguments)) in
            [Some(&reads), self.call.as_ref()].into_iter().flatten().enumerate()
        {
            let mut arguments = arguments.clone();
            arguments["change_id"] = json!(CHANGE);
            lines.push(json!({
                "t": 0, "event": "tool_call", "id": id.to_string(), "server": "agentd", "name": tool,
                "arguments": arguments,
            }));
        }
        lines.push(json!({ "t": 0, "event": "text", "text": said }));
        lines.push(json!({ "t": 0, "event": "finished" }));
        let outcome = json!({ "session_id": session, "model": "none", "text": said });
        lines.push(
            json!({ "t": 0, "end": { "exit_code": 0, "duration_ms": 0, "outcome": outcome } }),
        );
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// A document and its review each, and the challenge.
fn steps() -> Vec<Step> {
    let specs: Vec<(String, String)> = (0..SPECS).map(sample_project::spec).collect();
    let ids: Vec<&String> = specs.iter().map(|(id, _)| id).collect();
    let proposal = json!({
        "summary": WISH,
        "why": "Shops ask for records that stay, and for a reason when something is refused.",
        "what_changes": specs.iter().map(|(id, _)| format!("Add {id}")).collect::<Vec<_>>(),
        "impact": {
            "scope": "minor", "affected_specs": ids, "affected_files": SPECS, "new_files": SPECS,
            "affected_code": [],
        },
    });
    let tasks: Vec<Value> = (1..)
        .zip(&ids)
        .map(|(number, id)| {
            json!({
                "layer": "logic", "number": number, "title": format!("Build {id}"),
                "file": { "path": format!("src/{id}.py"), "action": "CREATE" },
                "spec_ref": format!("{id}:R1"), "description": "As the spec says.", "depends": [],
            })
        })
        .collect();
    let verdict =
        json!({ "verdict": "APPROVED", "summary": "Fine.", "previous": [], "issues": [] });
    let mut steps = Vec::new();
    let mut document = |name: &str, of: &str, tool, arguments| {
        let name = |what: &str| format!("{name}-{what}{of}");
        steps.push(Step { name: name("gen"), call: Some((tool, arguments)) });
        steps.push(Step { name: name("review"), call: None });
    };
    document("proposal", "", "create_proposal", proposal);
    for (id, text) in &specs {
        let arguments = json!({ "spec_id": id, "content": text });
        document("spec", &format!("-{id}"), "write_spec", arguments);
    }
    document("tasks", "", "create_tasks", json!({ "tasks": tasks }));
    steps.push(Step { name: "challenge".to_owned(), call: Some(("append_review", verdict)) });
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_of_a_plan_has_a_step_and_a_context_is_known_by_its_heading() {
        let steps = steps();
        assert_eq!(steps.len(), 11, "ten of the planner, one of the challenger");
        assert_eq!(steps[2].name, "spec-gen-invoice-store-0001");
        for line in steps[2].recorded(3).lines() {
            serde_json::from_str::<Value>(line).unwrap();
        }
        let run = |output: &str| json!({ "event": "tool_result", "ok": true, "output": output });
        assert_eq!(context(&run("# Context: a\n").to_string()), Some("# Context: a\n".to_owned()));
        assert_eq!(context(&run("other").to_string()), None);
        assert_eq!(context(""), None);
    }
}
