//! What git runs is not an implementer's to write.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use real_agents::Sandbox;
use scripted_models::{Fault, Reply, Rule, Script};

use super::kills::killed;
use super::project::{GREET, RIGHT, TESTED, approved, bash, does, greets, look, says, tick, write};

/// Plants hooks that leave a file if they run. Claude refuses to write to `.git` by its
/// tools and by commands in which it sees it; in a script it does not see it.
const PLANTS: &str = "cd .git/hooks\nprintf '#!/bin/sh\\ntouch \"$HOME/sprung\"\\n' > pre-commit\n\
    cp pre-commit post-commit\nchmod +x post-commit\n\
    git config core.fsmonitor .git/hooks/post-commit\necho planted\n";

/// The person's own hook.
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
    assert_eq!(fs::read_to_string(sandbox.root().join(".git/config")).unwrap(), config);
}

/// The step ends, the person's hook is back, and
/// neither agentd's commits nor the person's run anything of the agent's. The next time the
/// work goes on.
#[test]
fn a_planted_hook_never_runs_and_the_persons_own_survives() {
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
        let ran = sandbox.run(["impl", "--json"]).exits(1);
        let card = ran.card("tampered", "claude modified files that others run or obey");
        for name in [".git/config (changed)", "pre-commit (changed)", "post-commit (new)"] {
            assert!(card["message"].as_str().unwrap().contains(name), "{card:#}");
        }
        assert!(card["cause"].as_str().unwrap().contains("restored"), "{card:#}");
        let said = sandbox.models().requests();
        let planted = |text: &String| text.contains("planted");
        assert!(said.iter().any(|request| request.tool_results.iter().any(planted)));
        assert_as_it_was(sandbox, &config);
        assert_eq!(sandbox.state().llm_calls.len(), 1, "it is in the ledger");
        let run = fs::read_dir(sandbox.path("runs")).unwrap().next().unwrap().unwrap().path();
        assert!(fs::read_to_string(run).unwrap().contains("tampered"));
        sandbox.git(&["status"]);

        // The work itself is there and ticked; it is committed with the person's hook.
        sandbox.run(["impl"]).exits(0).says("APPROVED");
        sandbox.git(&["commit", "-q", "--allow-empty", "-m", "By hand"]);
        assert_as_it_was(sandbox, &config);
        assert!(!sandbox.home().join("sprung").exists(), "nothing of the agent's was run");
        let mine = fs::read_to_string(sandbox.root().join(".git/mine")).unwrap();
        assert_eq!(mine.lines().count(), 2, "by agentd's commit and by the person's");
    });
}

/// A kill of agentd does not get a hook past it: the next command, whichever it is, looks.
#[test]
fn a_hook_of_a_call_that_was_killed_is_found_by_the_next_command() {
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
        let ran = sandbox.run(["list"]).exits(0);
        ran.says(
            "add-login-implement-logic was interrupted after it changed files that are not its own",
        );
        ran.says(".git/hooks/post-commit (new)");
        assert_as_it_was(sandbox, &config);
        assert_eq!(kept(), 0);
        let quiet = sandbox.run(["list"]).exits(0);
        assert!(!quiet.stderr.contains("was interrupted"), "reported once: {}", quiet.stderr);
        sandbox.git(&["commit", "-q", "--allow-empty", "-m", "By hand"]);
        assert!(!sandbox.home().join("sprung").exists());
    });
}
