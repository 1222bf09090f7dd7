//! An implementer may not write what git runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use real_agents::Sandbox;
use scripted_models::{Fault, Reply, Rule, Script};

use super::kills::killed;
use super::project::{GREET, RIGHT, TESTED, approved, bash, does, greets, look, says, tick, write};

/// Plants hooks that leave a file if they run. Claude refuses to write to `.git` by its
/// tools and by commands in which it sees it; in a script it does not see it.
const PLANTS: &str = "cd .git/hooks\nprintf '#!/bin/sh\\ntouch \"$HOME/hook-ran\"\\n' > pre-commit\n\
    cp pre-commit post-commit\nchmod +x post-commit\n\
    git config core.fsmonitor .git/hooks/post-commit\necho planted\n";

/// The user's own hook.
const MINE: &str = "#!/bin/sh\necho ran >> .git/mine\n";

fn with_hook<'s>(sandbox: &'s Sandbox, config: &str) -> &'s Sandbox {
    approved(sandbox, config, &[GREET]);
    let hook = sandbox.root().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, MINE).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    sandbox
}

#[track_caller]
fn assert_as_it_was(sandbox: &Sandbox, config: &str) {
    let hooks = sandbox.root().join(".git/hooks");
    assert_eq!(fs::read_to_string(hooks.join("pre-commit")).unwrap(), MINE);
    assert!(!hooks.join("post-commit").exists());
    let now = fs::read_to_string(sandbox.root().join(".git/config")).unwrap();
    // agentd itself has registered its merge driver.
    assert_eq!(now.split("[merge \"agentd\"]").next(), Some(config));
    assert!(now.ends_with("\tdriver = agentd merge-driver %O %A %B %P\n"), "{now}");
}

/// The step fails, the user's hook is restored, and neither agentd's commits nor the user's run
/// anything that the agent wrote. The next run continues.
#[test]
fn a_planted_hook_never_runs_and_the_users_own_survives() {
    let script = Script::new()
        .rule(
            does(
                "implement-logic",
                [
                    look("greet.sh"),
                    write("greet.sh", RIGHT),
                    write(".git/hooks/pre-push", "refused by claude itself"),
                    write("plant.sh", PLANTS),
                    bash("sh plant.sh"),
                    bash("git add -A && git status --short"),
                    tick("2.1"),
                ],
            )
            .prompts(1),
        )
        .rule(greets(RIGHT))
        .rule(says("APPROVED", &[]));
    Sandbox::enter(script, |sandbox| {
        let sandbox = with_hook(sandbox, &format!("{TESTED}[git]\ncommit = \"layer\"\n"));
        let config = fs::read_to_string(sandbox.root().join(".git/config")).unwrap();
        insta::assert_snapshot!(sandbox.run(["impl", "--json"]).without_usage(), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "tampered",
            "message": "claude modified files that others run or obey: .git/config (changed), .git/hooks/pre-commit (changed), .git/hooks/post-commit (new)",
            "cause": "others would run or obey it outside of the agent's sandbox; all of it was restored, and nothing of it was run",
            "hints": [
              "see what it said and did: agentd log add-login --run last",
              "if you want that change, make it yourself, then retry"
            ]
          }
        }
        --- stderr
        note: working in place; use --git branch or --git worktree to isolate it
        step_started: Layer 1/1: logic, claude
        step_failed: Layer 1/1: logic, claude modified files that others run or obey: .git/config (changed), .git/hooks/pre-commit (changed), .git/hooks/post-commit (new)
        "#);
        assert_eq!(sandbox.tool_result("planted"), "planted");
        assert_as_it_was(sandbox, &config);
        assert_eq!(sandbox.state().llm_calls.len(), 1, "it is in the ledger");
        let run = fs::read_dir(sandbox.path("runs")).unwrap().next().unwrap().unwrap().path();
        assert!(fs::read_to_string(run).unwrap().contains("tampered"));
        sandbox.git(&["status"]);

        // The work itself is done and checked off; it is committed with the user's hook.
        insta::assert_snapshot!(sandbox.run(["impl"]).without_usage(), @"
        exit 0
        ✓ APPROVED - add-login is complete
        cost so far: $[COST]

        Next: agentd archive add-login
        --- stderr
        committed [COMMIT] add-login: logic layer
        running the tests: sh test.sh
        the tests passed after [DURATION]
        Review: started (codex)
        Review: done, [DURATION], [USAGE], APPROVED - Ready for the archive!
        ");
        sandbox.git(&["commit", "-q", "--allow-empty", "-m", "By hand"]);
        assert_as_it_was(sandbox, &config);
        assert!(!sandbox.home().join("hook-ran").exists(), "the agent's hook must not run");
        let mine = fs::read_to_string(sandbox.root().join(".git/mine")).unwrap();
        assert_eq!(mine.lines().count(), 2, "once for agentd's commit, once for the user's");
    });
}

/// A kill of agentd does not let a hook through: any next command finds it.
#[test]
fn a_hook_planted_before_a_kill_is_found_by_the_next_command() {
    let script = Script::new().rule(
        Rule::new().step("implement-logic").reply(bash(PLANTS)).reply(Reply::fault(Fault::Hang)),
    );
    Sandbox::enter(script, |sandbox| {
        let sandbox = with_hook(sandbox, "");
        let root = sandbox.root();
        let config = fs::read_to_string(root.join(".git/config")).unwrap();
        killed(sandbox, "planting", || {
            fs::read_to_string(root.join(".git/config")).unwrap().contains("fsmonitor")
        });
        let kept = || {
            let user = sandbox.user();
            let calls = user.state_path(&root).unwrap().join("calls");
            fs::read_dir(calls).unwrap().count()
        };
        assert!(kept() > 0);
        insta::assert_snapshot!(sandbox.run(["list"]).without_usage(), @"
        exit 0
        add-login  implementing  tasks open  impl  0/1  -  [TIME]  -  Add a login with email and password.
        --- stderr
        warning: add-login-implement-logic was interrupted after it changed files that are not its own; restored: .git/config (changed), .git/hooks/pre-commit (changed), .git/hooks/post-commit (new)
        ");
        assert_as_it_was(sandbox, &config);
        assert_eq!(kept(), 0);
        sandbox.run(["list"]).fine();
        sandbox.git(&["commit", "-q", "--allow-empty", "-m", "By hand"]);
        assert!(!sandbox.home().join("hook-ran").exists());
    });
}
