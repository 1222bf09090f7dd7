//! Agents over ACP as implementers and reviewers: each writes by its own tools, in agentd's cage.

use std::fs;

use real_agents::{Sandbox, lines_with};
use scripted_models::{Reply, Script};
use serde_json::json;

use super::{all_settings, surprises};
use crate::implementation::project::{GREET, RIGHT, TESTED, WRONG, approved, does, says, tick};

/// Replaces the whole of greet.sh, by a tool for files.
fn greets(agent: &str, old: &str, new: &str) -> Vec<Reply> {
    let path = "${cwd}/greet.sh";
    match agent {
        "codex" => {
            let lines = |mark: &str, text: &str| -> String {
                text.lines().map(|line| format!("{mark}{line}\n")).collect()
            };
            let (old, new) = (lines("-", old), lines("+", new));
            let patch = format!(
                "*** Begin Patch\n*** Update File: greet.sh\n@@\n{old}{new}*** End Patch\n"
            );
            vec![Reply::call("apply_patch", json!(patch))]
        }
        "opencode" => vec![
            Reply::call("read", json!({"filePath": path})),
            Reply::call("write", json!({"filePath": path, "content": new})),
        ],
        _ => vec![
            Reply::call("Read", json!({"file_path": path})),
            Reply::call("Write", json!({"file_path": path, "content": new})),
        ],
    }
}

fn runs(agent: &str, command: &str) -> Reply {
    match agent {
        "codex" => Reply::call("exec_command", json!({"cmd": command})),
        "opencode" => Reply::call("bash", json!({"command": command, "description": "Test"})),
        _ => Reply::call("Bash", json!({"command": command})),
    }
}

/// What an implementer does in the layer and in the fix: red at first, then green. It also tries to write
/// outside of the working tree.
pub(super) fn red_then_green(agent: &str) -> [Vec<Reply>; 2] {
    let outside = "echo x > ../outside.txt; echo x > \"$HOME/outside.txt\"; \
        sh test.sh > log.txt 2>&1 || cat log.txt";
    let mut first = greets(agent, "#!/bin/sh\necho hi\n", WRONG);
    first.extend([runs(agent, outside), tick("2.1")]);
    let mut second = greets(agent, WRONG, RIGHT);
    second.push(runs(agent, "sh test.sh && echo green"));
    [first, second]
}

/// WF4 over ACP: red, a finding, a fix in the same session, green, approved, archived; nothing is
/// written outside of the working tree.
// contract G1, G2
fn implements(agent: &str, reviewer: &str) {
    let [first, second] = red_then_green(agent);
    let script = Script::new()
        .rule(does("implement-logic", first))
        .rule(says("NEEDS_FIX", &[("high", "Wrong greeting")]).prompts(1))
        .rule(does("fix", second))
        .rule(says("APPROVED", &[]));
    Sandbox::enter_acp(script, |sandbox| {
        let config = format!(
            "[roles]\nimplementer = \"{agent}\"\nreviewer = \"{reviewer}\"\n\
             [workflow]\nscript_retries = 0\n{TESTED}[git]\nworkflow = \"in-place\"\n{}",
            all_settings(&[agent, reviewer])
        );
        approved(sandbox, &config, &[GREET]);
        let ran = sandbox.run(["impl"]);
        let ran = ran.exits(0);
        assert_eq!(ran.stdout.lines().next(), Some("✓ APPROVED - add-login is complete"));
        assert_eq!(surprises(sandbox), Vec::<String>::new());
        assert_eq!(sandbox.steps(), ["implement-logic", "review", "fix", "review"]);
        sandbox.tool_result("green");
        let root = sandbox.root();
        assert_eq!(fs::read_to_string(root.join("greet.sh")).unwrap(), RIGHT);
        assert_eq!(fs::read_to_string(root.join("log.txt")).unwrap(), "no greeting\n");
        assert!(!root.parent().unwrap().join("outside.txt").exists());
        assert!(!sandbox.home().join("outside.txt").exists());

        // The fix continued in the session of the layer, and its prompt follows the earlier one.
        let state = sandbox.state();
        let session = |n: usize| state.llm_calls[n].session_id.clone();
        assert!(session(0).is_some() && session(0) == session(2), "{:#?}", state.llm_calls);
        let history = sandbox.history("fix");
        assert_ne!(lines_with(&history, "agentd implement-logic"), "", "{history}");
        assert!(state.llm_calls.iter().all(|call| call.tokens_in > 0 && call.tokens_out > 0));
        assert_eq!(lines_with(&sandbox.read("tasks.md"), "status:"), "status: done");
        let run = fs::read_to_string(sandbox.path("runs/0001-implement-logic.jsonl")).unwrap();
        assert_ne!(lines_with(&run, "\"files\":[{\"path\":\"greet.sh\""), "", "{run}");
        sandbox.until_nothing_runs();
        sandbox.run(["archive"]).exits(0);
        assert!(root.join("agentd/specs/greeting.md").exists());
    });
}

#[test]
fn opencode_implements_and_claude_reviews() {
    implements("opencode", "claude");
}

#[test]
fn claude_implements_and_codex_reviews() {
    implements("claude", "codex");
}

#[test]
fn codex_implements_and_gemini_reviews() {
    implements("codex", "gemini");
}
