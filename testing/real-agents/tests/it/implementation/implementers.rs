//! The same story with the other agents as implementers: each writes by its own tools, in its
//! own confinement, and is resumed in its own way.

use std::fs;

use real_agents::{Cli, Sandbox, lines_with};
use scripted_models::{Reply, Script};
use serde_json::json;

use super::project::{GREET, RIGHT, TESTED, WRONG, approved, does, logged, says, tick};

/// Replaces the whole of greet.sh, by a tool for files.
fn greets(cli: Cli, old: &str, new: &str) -> Reply {
    match cli {
        Cli::Gemini => {
            Reply::call("write_file", json!({"file_path": "${cwd}/greet.sh", "content": new}))
        }
        Cli::Codex => {
            let lines = |mark: &str, text: &str| -> String {
                text.lines().map(|line| format!("{mark}{line}\n")).collect()
            };
            let (old, new) = (lines("-", old), lines("+", new));
            let patch = format!(
                "*** Begin Patch\n*** Update File: greet.sh\n@@\n{old}{new}*** End Patch\n"
            );
            Reply::call("apply_patch", json!(patch))
        }
        Cli::Claude => {
            Reply::call("Write", json!({"file_path": "${cwd}/greet.sh", "content": new}))
        }
    }
}

fn runs(cli: Cli, command: &str) -> Reply {
    match cli {
        Cli::Gemini => Reply::call("run_shell_command", json!({"command": command})),
        Cli::Codex => Reply::call("exec_command", json!({"cmd": command})),
        Cli::Claude => Reply::call("Bash", json!({"command": command})),
    }
}

/// WF4 with another implementer: red, a finding, a fix in the same session, green, approved;
/// nothing is written outside of the working tree.
fn plays_the_story(cli: Cli, reviewer: &str, workflow: &str) {
    let name = cli.program();
    let outside = "echo x > ../outside.txt; echo x > \"$HOME/outside.txt\"; \
        sh test.sh > log.txt 2>&1 || cat log.txt";
    let old = "#!/bin/sh\necho hi\n";
    let script = Script::new()
        .rule(does("implement-logic", [greets(cli, old, WRONG), runs(cli, outside), tick("2.1")]))
        .rule(says("NEEDS_FIX", &[("high", "Wrong greeting")]).prompts(1))
        .rule(does("fix", [greets(cli, WRONG, RIGHT), runs(cli, "sh test.sh && echo green")]))
        .rule(says("APPROVED", &[]));
    Sandbox::enter(script, |sandbox| {
        let config = format!(
            "[roles]\nimplementer = \"{name}\"\nreviewer = \"{reviewer}\"\n[workflow]\nscript_retries = 0\n\
             {TESTED}[git]\nworkflow = \"{workflow}\"\ncommit = \"layer\"\n"
        );
        approved(sandbox, &config, &[GREET]);
        let ran = sandbox.run(["impl"]).exits(0);
        assert_eq!(ran.stdout.lines().next(), Some("✓ APPROVED - add-login is complete"));
        let tests = logged(sandbox, "tests");
        let results: Vec<&str> = tests.iter().filter_map(|text| text.split(' ').next()).collect();
        assert_eq!(results, ["failed", "passed"]);
        assert_eq!(sandbox.steps(), ["implement-logic", "review", "fix", "review"]);
        assert_eq!(sandbox.models().surprises(), Vec::<String>::new());
        sandbox.tool_result("green");

        let tree = match workflow {
            "worktree" => sandbox.base().join("project-agentd").join("add-login"),
            _ => sandbox.root(),
        };
        assert_eq!(fs::read_to_string(tree.join("greet.sh")).unwrap(), RIGHT);
        assert_eq!(fs::read_to_string(tree.join("log.txt")).unwrap(), "no greeting\n");
        for place in [sandbox.root(), tree.clone()] {
            assert!(!place.parent().unwrap().join("outside.txt").exists());
        }
        assert!(!sandbox.home().join("outside.txt").exists());
        assert_eq!(test_project::git(&tree, &["status", "--porcelain", "greet.sh"]), "");
        let log = test_project::git(&tree, &["log", "--reverse", "--format=%s"]);
        let mut subjects = vec![
            "Start",
            "add-login: logic layer",
            "add-login: review the code",
            "add-login: fix the findings of review 1",
            "add-login: review the code",
        ];
        // In place, the branch is not that of the change, and has no documents.
        subjects.retain(|subject| workflow != "in-place" || !subject.contains("review the code"));
        assert_eq!(log.lines().collect::<Vec<_>>(), subjects);

        // The fix continued in the session of the layer, and all of it is in the ledger.
        let state = sandbox.state();
        let session = |n: usize| state.llm_calls[n].session_id.clone();
        assert!(session(0).is_some() && session(0) == session(2), "{:#?}", state.llm_calls);
        assert!(state.llm_calls.iter().all(|call| call.tokens_in > 0 && call.tokens_out > 0));
        assert_eq!(state.test_run.unwrap().exit_code, Some(0));
        assert_eq!(lines_with(&sandbox.read("tasks.md"), "status:"), "status: done");
        // What it has changed on the disk is in the run.
        let run = fs::read_to_string(sandbox.path("runs/0001-implement-logic.jsonl")).unwrap();
        assert_ne!(lines_with(&run, "\"files\":[{\"path\":\"greet.sh\""), "", "{run}");
        assert!(!sandbox.root().join(".gemini").exists() && !tree.join(".gemini").exists());
    });
}

#[test]
fn codex_implements_in_place_and_claude_reviews() {
    plays_the_story(Cli::Codex, "claude", "in-place");
}

#[test]
fn codex_implements_in_a_work_tree() {
    plays_the_story(Cli::Codex, "codex", "worktree");
}

#[test]
fn gemini_implements_on_a_branch_and_codex_reviews() {
    plays_the_story(Cli::Gemini, "codex", "branch");
}

#[test]
fn gemini_implements_in_a_work_tree() {
    plays_the_story(Cli::Gemini, "codex", "worktree");
}

/// Codex does not let its commands write to `.git` at all; what gemini writes there is put
/// back. Either way no hook is left.
#[test]
fn no_implementer_plants_a_hook() {
    for (cli, exit) in [(Cli::Codex, 0), (Cli::Gemini, 1)] {
        let plant = "mkdir -p .git/hooks; echo 'touch \"$HOME/hook-ran\"' > .git/hooks/pre-commit; \
            chmod +x .git/hooks/pre-commit; echo tried";
        let script = Script::new()
            .rule(does(
                "implement-logic",
                [greets(cli, "#!/bin/sh\necho hi\n", RIGHT), runs(cli, plant), tick("2.1")],
            ))
            .rule(says("APPROVED", &[]));
        Sandbox::enter(script, |sandbox| {
            let config = format!(
                "[roles]\nimplementer = \"{}\"\n[workflow]\nscript_retries = 0\n",
                cli.program()
            );
            approved(sandbox, &config, &[GREET]);
            let ran = sandbox.run(["impl", "--json"]).exits(exit);
            if exit == 1 {
                insta::assert_snapshot!(ran.without_usage(), @r#"
                exit 1
                {
                  "version": 1,
                  "error": {
                    "kind": "tampered",
                    "message": "gemini modified files that others run or obey: .git/hooks/pre-commit (new)",
                    "cause": "others would run or obey it outside of the agent's sandbox; all of it was restored, and nothing of it was run",
                    "hints": [
                      "see what it said and did: agentd log add-login --run last",
                      "if you want that change, make it yourself, then retry"
                    ]
                  }
                }
                --- stderr
                note: working in place; use --git branch or --git worktree to isolate it
                step_started: Layer 1/1: logic, gemini
                step_failed: Layer 1/1: logic, gemini modified files that others run or obey: .git/hooks/pre-commit (new)
                "#);
            }
            sandbox.tool_result("tried");
            assert!(!sandbox.root().join(".git/hooks/pre-commit").exists());
            sandbox.git(&["commit", "-q", "--allow-empty", "-m", "By hand"]);
            assert!(!sandbox.home().join("hook-ran").exists());
        });
    }
}
