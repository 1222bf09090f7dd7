//! The whole story in repositories of others: a real commit is planned, written by the CLI's own
//! edit tools, tested by the project's own tests, reviewed and archived.
//!
//! `AGENTD_MIRRORS` names a directory with bare clones, `<owner>+<name>/repo`. Toolchains and
//! packages of the projects are fetched before the network is left, into `target/real-projects`.
//!
//! ```text
//! AGENTD_MIRRORS=/mirrors cargo nextest run --workspace --run-ignored only -E 'test(real_projects)'
//! ```

#![expect(clippy::print_stdout, reason = "a person starts these tests, and reads along")]

mod edits;
mod places;

use std::process::Command;

use real_agents::models::{approved, calls, challenges, passes};
use real_agents::{CHANGE, Cli, Sandbox};
use scripted_models::{Reply, Script};
use serde_json::{Value, json};
use test_project::git;

use crate::implementation::project::does;
use edits::{Edit, edits};
use places::Place;

/// A commit of a repository of others, and what is needed to do it again.
struct RealCommit {
    /// The bare clone below `AGENTD_MIRRORS`.
    mirror: &'static str,
    commit: &'static str,
    /// What `agentd init` has to detect.
    detected: &'static str,
    /// The tests that the commit is about; all tests of such projects take hours.
    tests: &'static str,
    /// What fetches packages, run once in a clone, with the network.
    fetch: &'static str,
    /// Variables of the user's environment. `$PLACE` is the directory of the project's clone and
    /// packages, `$HOME` the home of this machine's user.
    env: &'static [(&'static str, &'static str)],
    /// Where it is done.
    git: &'static str,
}

#[test]
#[ignore = "needs mirrors of other repositories, and their packages"]
fn ripgrep_on_a_branch() {
    replay(&RealCommit {
        mirror: "BurntSushi+ripgrep",
        commit: "f596a5d8",
        detected: "cargo test",
        tests: "cargo test --offline -p globset -p ignore && \
                cargo test --offline --test integration regression::",
        fetch: "CARGO_HOME=$PLACE/cargo cargo fetch",
        env: &[("CARGO_HOME", "$PLACE/cargo"), ("RUSTUP_HOME", "$HOME/.rustup")],
        git: "branch",
    });
}

#[test]
#[ignore = "needs mirrors of other repositories, and their packages"]
fn django_in_a_worktree() {
    replay(&RealCommit {
        mirror: "django+django",
        commit: "f72bbd4480",
        detected: "tox",
        tests: "cd tests && PYTHONPATH=.. python runtests.py --parallel 1 user_commands \
                admin_scripts.tests.CommandTypes staticfiles_tests.test_management",
        fetch: "python3 -m venv $PLACE/venv && $PLACE/venv/bin/pip install -q asgiref sqlparse",
        env: &[("PATH", "$PLACE/venv/bin:$PATH"), ("VIRTUAL_ENV", "$PLACE/venv")],
        git: "worktree",
    });
}

#[test]
#[ignore = "needs mirrors of other repositories, and their packages"]
fn excalidraw_in_place() {
    replay(&RealCommit {
        mirror: "excalidraw+excalidraw",
        commit: "0457ac9063",
        detected: "yarn",
        tests: "node_modules/.bin/vitest run packages/excalidraw/tests/data/restore.test.ts",
        fetch: "npm install --silent --prefix $PLACE/yarn yarn@1.22.22 && \
                $PLACE/yarn/node_modules/.bin/yarn install --silent --frozen-lockfile \
                --ignore-scripts --registry https://registry.npmjs.org",
        env: &[("PATH", "$PLACE/yarn/node_modules/.bin:$PATH")],
        git: "in-place",
    });
}

fn replay(commit: &RealCommit) {
    let place = Place::prepare(commit.mirror, commit.commit, commit.fetch);
    let edits = edits(&place.clone, &place.commit);
    assert!(!edits.is_empty());
    let description = git(&place.clone, &["log", "-1", "--format=%B", &place.commit]);
    Sandbox::enter(script(&edits), |sandbox| {
        println!("network: {:?}", sandbox.isolation());
        let finish = |mut command: Command| {
            for (name, value) in commit.env {
                command.env(name, place.expand(value, &command));
            }
            let output = sandbox.finish(&mut command);
            println!("$ {:?}\n{output}", command.get_args());
            output
        };
        let run = |args: &[&str]| finish(sandbox.command(args));
        place.check_out(sandbox);
        // The tests pass before the commit, and those of the commit fail without its code.
        let run_tests = || {
            let mut shell = sandbox.any_command("sh");
            shell.args(["-c", commit.tests]);
            finish(shell)
        };
        run_tests().exits(0);
        for edit in edits.iter().filter(|edit| !edit.is_source()) {
            sandbox.write_root(&edit.path, edit.new.as_deref().unwrap());
        }
        assert_ne!(run_tests().code, 0, "the tests of the commit pass without it");
        sandbox.git(&["reset", "-q", "--hard"]);
        sandbox.git(&["clean", "-fdq"]);
        for cli in Cli::ALL {
            sandbox.shim(cli.program(), &format!("exec {} \"$@\"", sandbox.path_of(cli)));
        }
        let init = run(&["init", "--json"]).exits(0).json();
        let detected = init["commands"]["test"]["command"].as_str().unwrap_or_default();
        assert!(detected.contains(commit.detected), "{init:#}");
        set_tests(sandbox, commit.tests);
        let start = sandbox.commit("Set up agentd");
        run(&["doctor"]).exits(0);
        let context = run(&["context", &description]).exits(0).stdout;
        for edit in edits.iter().filter(|edit| edit.is_source() && edit.old.is_some()) {
            assert!(names(&context, &edit.path), "{} is not in {context}", edit.path);
        }

        let plan = ["plan", CHANGE, &description, "--auto", "--skip-clarify", "--json"];
        let plan = run(&[&plan[..], &["--git", commit.git]].concat()).exits(0).json();
        assert_eq!(plan["verdict"], "APPROVED", "{plan:#}");
        run(&["validate", CHANGE, "--strict"]).exits(0);
        run(&["status", CHANGE]).exits(0);

        let done = run(&["impl", CHANGE, "--json"]).exits(0).json();
        assert_eq!(done["phase"], "complete", "{done:#}");
        let tests = run(&["status", CHANGE, "--json"]).exits(0).json()["tests"].take();
        assert_eq!(tests["command"], commit.tests, "{tests:#}");
        assert_eq!((&tests["passed"], &tests["exit_code"]), (&json!(true), &json!(0)), "{tests:#}");
        let tree = if commit.git == "worktree" { sandbox.worktree() } else { sandbox.root() };
        // What was written is what the real commit says, and nothing else.
        for edit in &edits {
            let written = std::fs::read_to_string(tree.join(&edit.path)).ok();
            assert!(written == edit.new, "{} is not as committed", edit.path);
        }
        let touched = git(&tree, &["status", "--porcelain", "--no-renames", "-uall"]);
        let foreign = |line: &&str| {
            let path = line.get(3..).unwrap_or_default();
            !path.starts_with("agentd/") && !edits.iter().any(|edit| edit.path == path)
        };
        assert_eq!(touched.lines().filter(foreign).collect::<Vec<_>>(), Vec::<&str>::new());
        // By default agentd commits nothing, so the branch is where it started.
        assert_eq!(git(&tree, &["rev-parse", "HEAD"]), start);

        run(&["trace", "real-change:R1"]).exits(0);
        run(&["verify", CHANGE]).exits(0);
        run(&["archive", CHANGE, "--json"]).exits(0);
        assert!(tree.join("agentd/specs/real-change.md").is_file());
        let all = run(&["-C", tree.to_str().unwrap(), "validate", "--all"]).exits(0);
        assert!(all.stdout.starts_with("0 changes and 1 spec: 0 HIGH"), "{all}");
        assert_eq!(sandbox.models().surprises(), Vec::<String>::new());
    });
}

/// Whether a context names a file: by its path, or in the line of its directory.
fn names(context: &str, path: &str) -> bool {
    let (dir, name) = path.rsplit_once('/').unwrap_or((".", path));
    let in_dir = format!("{dir}/: ");
    let names = |line: &str| line.split(' ').any(|have| have == name);
    context.lines().any(|line| line == path || line.strip_prefix(&in_dir).is_some_and(names))
}

/// The person narrows the tests to those of the change.
fn set_tests(sandbox: &Sandbox, tests: &str) {
    let config = sandbox.read_root("agentd/config.toml");
    let lines = config.lines().map(|line| {
        let is_tests = line.starts_with("test_command");
        if is_tests { format!("test_command = {}", json!(tests)) } else { line.to_owned() }
    });
    sandbox.write_root("agentd/config.toml", lines.collect::<Vec<_>>().join("\n") + "\n");
}

/// Gemini plans the edits, codex approves the plan, claude makes them, codex approves the code.
fn script(edits: &[Edit]) -> Script {
    let proposal = json!({
        "change_id": "${change}",
        "summary": "Do what the commit of the project does.",
        "why": "Its tests fail without it.",
        "what_changes": ["Change the files of the commit"],
        "impact": {"scope": "minor", "affected_specs": ["real-change"],
            "affected_files": edits.len(), "new_files": 0},
    });
    let spec = json!({
        "change_id": "${change}", "spec_id": "real-change", "title": "The change",
        "overview": "What the commit of the project does.",
        "requirements": [{"id": "R1", "title": "As committed", "priority": "high",
            "description": "The tests of the commit MUST pass within 10 minutes."}],
        "scenarios": [
            {"name": "Tests", "when": "the tests are run", "then": "they exit with 0"},
            {"name": "Without it", "when": "the change is left out", "then": "they fail with an error"},
        ],
    });
    let review = json!({"change_id": "${change}", "verdict": "APPROVED",
        "summary": "Read all of it.", "issues": []});
    let mut script = Script::new()
        .rule(calls("proposal-gen", "create_proposal", proposal))
        .rule(passes("proposal-review"))
        .rule(calls("spec-gen-real-change", "create_spec", spec))
        .rule(passes("spec-review-real-change"))
        .rule(calls("tasks-gen", "create_tasks", tasks(edits)))
        .rule(passes("tasks-review"))
        .rule(calls("review", "create_review", review));
    for (number, layer) in [(2, "logic"), (4, "testing")] {
        let mut replies: Vec<Reply> = Vec::new();
        for (index, edit) in of_layer(edits, layer).enumerate() {
            replies.extend(edit.replies());
            let task = format!("{number}.{}", index + 1);
            let done = json!({"change_id": "${change}", "task_id": task, "note": "as committed"});
            replies.push(Reply::call("complete_task", done));
        }
        script = script.rule(does(&format!("implement-{layer}"), replies));
    }
    challenges(script, &[approved()])
}

fn of_layer<'e>(edits: &'e [Edit], layer: &str) -> impl Iterator<Item = &'e Edit> {
    let source = layer == "logic";
    edits.iter().filter(move |edit| edit.is_source() == source)
}

fn tasks(edits: &[Edit]) -> Value {
    let tasks = ["logic", "testing"].into_iter().flat_map(|layer| {
        of_layer(edits, layer).enumerate().map(move |(index, edit)| {
            json!({"layer": layer, "number": index + 1, "title": format!("Change {}", edit.path),
                "file": {"path": edit.path, "action": edit.action()},
                "spec_ref": "real-change:R1", "description": "As committed.", "depends": []})
        })
    });
    json!({"change_id": "${change}", "tasks": tasks.collect::<Vec<_>>()})
}
