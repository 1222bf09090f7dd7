//! Where code lands, and what reaches git.

use std::fs;

use agentd_core::state::Placement;
use real_agents::{Sandbox, lines_with};
use scripted_models::{Reply, Script};

use super::project::{
    GREET, RIGHT, TESTED, approved, bash, commits_logged, does, greets, look, says, tick, write,
};

/// P6, C36: on a branch of its own, in a worktree beside the project. The documents move there, the
/// MCP server finds them, and the implementer writes nowhere else. Both checkouts know the change.
#[test]
fn an_implementer_writes_only_in_its_work_tree() {
    let outside =
        "echo x > ../../outside.txt; echo x > \"$HOME/outside.txt\"; git add -A && git stash list";
    let script = Script::new()
        .rule(does(
            "implement-logic",
            [look("greet.sh"), write("greet.sh", RIGHT), bash(outside), tick("2.1")],
        ))
        .rule(says("APPROVED", &[]));
    Sandbox::enter(script, |sandbox| {
        let config = format!("{TESTED}[git]\nworkflow = \"worktree\"\ncommit = \"layer\"\n");
        approved(sandbox, &config, &[GREET]);
        let ran = sandbox.run(["impl", "--json"]).exits(0);
        assert_eq!(ran.json()["phase"], "complete", "{ran:#?}");
        let tree = sandbox.base().join("project-agentd").join("add-login");
        assert!(tree.is_dir(), "{}", sandbox.git(&["worktree", "list"]));
        assert_eq!(fs::read_to_string(tree.join("greet.sh")).unwrap(), RIGHT);
        assert_ne!(fs::read_to_string(sandbox.root().join("greet.sh")).unwrap(), RIGHT);
        assert_eq!(sandbox.state().git.unwrap().workflow, Placement::Worktree);
        assert_eq!(lines_with(&sandbox.read("tasks.md"), "status:"), "status: done");
        let calls = sandbox.calls();
        assert!(calls.iter().all(|call| call.cwd == tree.canonicalize().unwrap()), "{calls:#?}");
        assert!(!sandbox.base().join("outside.txt").exists());
        assert!(!sandbox.home().join("outside.txt").exists());
        let log = test_project::git(&tree, &["log", "--format=%an %s", "-2"]);
        assert_eq!(log, "Tester add-login: review the code\nTester add-login: logic layer");
        // The documents are on the branch, with the code.
        let files = test_project::git(&tree, &["show", "--name-only", "--format=", "HEAD~1"]);
        insta::assert_snapshot!(files, @"
        agentd/changes/add-login/STATE.yaml
        agentd/changes/add-login/base/greeting.md
        agentd/changes/add-login/journal.jsonl
        agentd/changes/add-login/proposal.md
        agentd/changes/add-login/specs/greeting.md
        agentd/changes/add-login/tasks.md
        greet.sh
        ");
        assert_eq!(
            sandbox.git(&["log", "--format=%s"]).trim(),
            "Start",
            "the main branch is as it was"
        );
        // The commits of a worktree are found from the main checkout.
        insta::assert_snapshot!(sandbox.run(["trace", "add-login"]), @"
        exit 0
        greeting:R1  By name
          change    add-login adds it (complete)
          task      2.1   done    MODIFY greet.sh
          file                    MODIFY greet.sh
          commit    [COMMIT] 2.1 add-login: logic layer
          scenario  A name
          scenario  No name
          review    APPROVED by codex, round 1, tests passed
        --- stderr
        ");
        let commits = ["add-login: logic layer", "add-login: review the code"];
        assert_eq!(commits_logged(sandbox), commits);

        assert!(tree.join("agentd/changes/add-login/STATE.yaml").is_file());
        assert_eq!(fs::read_dir(sandbox.root().join("agentd/changes")).unwrap().count(), 0);
        let checkouts = [sandbox.root(), tree.clone()];
        for checkout in &checkouts {
            let status = ["-C", checkout.to_str().unwrap(), "status", "--json"];
            let status = sandbox.run(status).exits(0).json();
            assert_eq!(status["phase"], "complete");
            assert_eq!(status["stale"], serde_json::json!([]));
            assert_eq!(status["git"]["work_tree"], tree.to_str().unwrap());
            let proven = ["-C", checkout.to_str().unwrap(), "verify", "add-login", "--json"];
            assert_eq!(sandbox.run(proven).exits(0).json()["valid"], true);
        }
        sandbox.run(["archive", "add-login"]).exits(0);
        let spec = "agentd/specs/greeting.md";
        assert!(tree.join(spec).is_file() && !sandbox.root().join(spec).exists());
        let list = sandbox.run(["-C", tree.to_str().unwrap(), "list", "--archived"]).stdout;
        let name = list.split_whitespace().next().unwrap();
        assert!(tree.join("agentd/archive").join(name).is_dir(), "{list}");
        assert_eq!(sandbox.git(&["status", "--porcelain"]).trim(), "?? agentd/.locks/");
        let proven = sandbox.run(["verify", "add-login", "--json"]).exits(0).json();
        assert_eq!(proven["changes"][0]["phase"], "archived", "{proven:#}");
    });
}

/// P6 and `git.commit = "none"`: a branch, and nothing is committed. A change that was set up
/// in one way stays so, whatever the configuration says later. A diff is bounded.
#[test]
fn a_branch_without_commits_and_a_large_diff() {
    let large = "seq 1 20000 > large.txt; for i in $(seq 300); do echo $i > \"file-$i.txt\"; done";
    let script = Script::new()
        .rule(does(
            "implement-logic",
            [look("greet.sh"), write("greet.sh", RIGHT), bash(large), tick("2.1")],
        ))
        .rule(says("APPROVED", &[]));
    Sandbox::enter(script, |sandbox| {
        approved(sandbox, "[git]\nworkflow = \"branch\"\n", &[GREET]);
        sandbox.run(["implement"]).exits(0);
        let config = "[git]\nworkflow = \"worktree\"\n";
        fs::write(sandbox.root().join("agentd/config.toml"), config).unwrap();
        sandbox.run(["impl"]).exits(0);
        assert_eq!(sandbox.git(&["branch", "--show-current"]).trim(), "agentd/add-login");
        assert_eq!(sandbox.git(&["log", "--format=%s"]).trim(), "Start");
        assert_eq!(sandbox.state().git.unwrap().workflow, Placement::Branch);
        let requests = sandbox.models().requests();
        let review = requests.iter().find(|r| r.prompt.starts_with("agentd review ")).unwrap();
        let prompt = &review.prompt;
        assert!(prompt.len() < 64 << 10, "{}", prompt.len());
        let all = lines_with(prompt, "files that were changed");
        let (count, _) = all.split_once(": ").unwrap();
        assert_eq!(count, "(shortened; the 303 files that were changed");
        // Small files stay whole.
        assert_eq!(lines_with(prompt, "+echo"), "+echo \"Hello, $1!\"");
    });
}

/// Other open changes that touch the same are named before any agent is called, and the prompt
/// of a planner lists them.
#[test]
fn overlaps_are_reported() {
    let script = Script::new()
        .rule(greets(RIGHT))
        .rule(says("APPROVED", &[]))
        .rule(scripted_models::Rule::new().step("proposal-gen").reply(Reply::text("No.")));
    Sandbox::enter(script, |sandbox| {
        approved(sandbox, "[workflow]\nscript_retries = 0\n", &[GREET]);
        let other = sandbox.root().join("agentd/changes/other");
        fs::create_dir_all(other.join("specs")).unwrap();
        for file in ["tasks.md", "specs/greeting.md", "proposal.md"] {
            fs::copy(sandbox.path(file), other.join(file)).unwrap();
        }
        let ran = sandbox.run(["impl", "add-login", "--json"]).exits(0);
        insta::assert_snapshot!(ran.without_usage(), @r#"
        exit 0
        {
          "version": 1,
          "action": "reviewed",
          "change_id": "add-login",
          "phase": "complete",
          "verdict": "APPROVED",
          "iteration": 1,
          "issues": {
            "high": 0,
            "medium": 0,
            "low": 0
          },
          "previous": [],
          "cost_usd": [COST],
          "agents": {
            "implementer": "claude",
            "reviewer": "codex"
          },
          "next": [
            "agentd archive add-login"
          ]
        }
        --- stderr
        note: working in place; use --git branch or --git worktree to isolate it
        warning: greeting:R1 is also touched by `other` (adds)
        warning: greet.sh is also touched by `other` (edits)
        step_started: Layer 1/1: logic, claude
        step_done: Layer 1/1: logic, 1 of 1 tasks ticked
        warning: no tests were run: set implementation.test_command in agentd/config.toml, such as "cargo test"
        step_started: Review, codex
        step_done: Review, APPROVED - Ready for the archive!
        "#);
        let args = ["plan", "third", "Greet louder", "--skip-clarify", "--git", "in-place"];
        sandbox.run(args).exits(1);
        let requests = sandbox.models().requests();
        let asked = requests.iter().find(|r| r.prompt.starts_with("agentd proposal-gen ")).unwrap();
        insta::assert_snapshot!(lines_with(&asked.prompt, "other: "), @"other: greeting:R1, greet.sh");
    });
}
