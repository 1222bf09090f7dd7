//! R3: what `init` sets up works with the real CLIs: one agent is enough, a package of a monorepo
//! is a project, and Codex finds the MCP server.

use std::fs;
use std::path::Path;
use std::process::Command;

use real_agents::models::{approved, calls, challenges, planner, tasks};
use real_agents::{Cli, Sandbox, for_every_cli};
use scripted_models::{Reply, Rule, Script};
use serde_json::json;
use test_project::Output;

const FILE: &str = "src/login.rs";

/// Creates the file of the one task, by the CLI's own tool.
fn creates(cli: Cli) -> Reply {
    let path = format!("${{cwd}}/{FILE}");
    match cli {
        Cli::Gemini => {
            Reply::call("write_file", json!({"file_path": path, "content": "fn login() {}\n"}))
        }
        Cli::Codex => {
            let patch =
                format!("*** Begin Patch\n*** Add File: {FILE}\n+fn login() {{}}\n*** End Patch\n");
            Reply::call("apply_patch", json!(patch))
        }
        Cli::Claude => {
            Reply::call("Write", json!({"file_path": path, "content": "fn login() {}\n"}))
        }
    }
}

/// A plan that is approved, a file that is written, and a review that finds nothing.
fn story(cli: Cli) -> Script {
    let tick = json!({"change_id": "${change}", "task_id": "2.1", "note": "it is there"});
    let review = json!({"change_id": "${change}", "verdict": "APPROVED", "summary": "Read it.",
        "issues": []});
    let implement = Rule::new()
        .step("implement-logic")
        .reply(creates(cli))
        .reply(Reply::call("complete_task", tick))
        .reply(Reply::text("Done."));
    let script = Script::new()
        .rule(calls("tasks-gen", "create_tasks", tasks(&[])))
        .rule(implement)
        .rule(calls("review", "create_review", review));
    challenges(real_agents::models::plan(script, &[]), &[approved()])
}

/// A machine on which only this CLI is installed.
fn only(sandbox: &Sandbox, cli: Cli) {
    fs::create_dir_all(sandbox.log().parent().unwrap()).unwrap();
    sandbox.real(cli);
}

fn run_in(sandbox: &Sandbox, dir: &Path, args: &[&str]) -> Output {
    let machine = std::env::var_os("PATH").unwrap_or_default();
    let path = [sandbox.bin()].into_iter().chain(std::env::split_paths(&machine));
    let mut command: Command = sandbox.command(args);
    // What `init` wrote must be trusted by that.
    command.env_remove("AGENTD_TRUST").env("PATH", std::env::join_paths(path).unwrap());
    sandbox.finish(command.current_dir(dir))
}

/// Finding B6: quick start with one agent.
fn one_agent_is_enough(cli: Cli) {
    Sandbox::enter(story(cli), |sandbox| {
        only(sandbox, cli);
        let root = sandbox.root();
        sandbox.write_root("Makefile", "test:\n\ttest -f src/login.rs\n");
        let init = run_in(sandbox, &root, &["init", "--json"]).exits(0).json();
        assert_eq!(init["agents"], json!([cli.program()]), "{init:#}");
        assert_eq!(init["commands"]["test"]["command"], "make test", "{init:#}");
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "Start"]);
        let plan = ["plan", "add-login", "Add a login", "--skip-clarify", "--git", "in-place"];
        let plan = run_in(sandbox, &root, &[&plan[..], &["--auto", "--json"]].concat());
        let plan = plan.exits(0).json();
        assert_eq!(plan["verdict"], "APPROVED", "{plan:#}");
        let done = run_in(sandbox, &root, &["impl", "--json"]).exits(0).json();
        assert_eq!(done["phase"], "complete", "{done:#}");
        let called = sandbox.programs_called();
        assert!(!called.is_empty() && called.iter().all(|name| name == cli.program()));
        assert_eq!(sandbox.state().test_run.unwrap().exit_code, Some(0));
        let prompt = sandbox.prompt("implement-logic");
        assert!(prompt.contains("make test"), "{prompt}");
        assert_eq!(sandbox.models().surprises(), Vec::<String>::new());
    });
}

for_every_cli!(one_agent_is_enough);

/// Finding M5: a package of a monorepo, on a branch and in place.
#[test]
fn a_package_of_a_monorepo_is_planned_and_built() {
    for place in ["in-place", "branch", "worktree"] {
        Sandbox::enter(story(Cli::Codex), |sandbox| {
            sandbox.shim("codex", &format!("exec {} \"$@\"", sandbox.path_of(Cli::Codex)));
            sandbox.write_root("README.md", "the whole\n");
            sandbox.write_root("apps/web/package.json", r#"{"scripts": {"test": "true"}}"#);
            sandbox.write_root("apps/web/Makefile", "test:\n\ttest -f src/login.rs\n");
            let web = sandbox.root().join("apps/web");
            let init = run_in(sandbox, &web, &["init", "--json"]).exits(0).json();
            assert!(init["root"].as_str().unwrap().ends_with("/apps/web"), "{init:#}");
            sandbox.git(&["add", "-A"]);
            sandbox.git(&["config", "user.name", "A"]);
            sandbox.git(&["config", "user.email", "a@example.org"]);
            sandbox.git(&["commit", "-qm", "Start"]);
            let plan = ["plan", "add-login", "Add a login", "--skip-clarify", "--git", place];
            let plan =
                run_in(sandbox, &web.join("agentd"), &[&plan[..], &["--auto", "--json"]].concat());
            assert_eq!(plan.exits(0).json()["verdict"], "APPROVED", "{place}");
            let done = run_in(sandbox, &web, &["impl", "add-login", "--json"]);
            assert_eq!(done.exits(0).json()["phase"], "complete", "{place}");
            let tree = match place {
                "worktree" => sandbox.base().join("project-agentd/add-login"),
                _ => sandbox.root(),
            };
            assert!(tree.join("apps/web").join(FILE).is_file(), "{place}");
            assert!(!tree.join(FILE).exists() && !tree.join("agentd").exists(), "{place}");
            let branch = test_project::git(&tree, &["branch", "--show-current"]);
            assert_eq!(branch.trim() == "agentd/add-login", place != "in-place", "{branch}");
        });
    }
}

/// Finding m12: Codex finds the MCP server in a project that the user trusts.
#[test]
fn codex_finds_the_mcp_server() {
    Sandbox::enter(planner(&[]), |sandbox| {
        let root = sandbox.root();
        sandbox
            .write_root(".codex/config.toml", "# mine\n[mcp_servers.other]\ncommand = \"true\"\n");
        run_in(sandbox, &root, &["init", "--agents", "codex"]).exits(0);
        let listed = || {
            let program = sandbox.clis().program(Cli::Codex);
            let mut command = sandbox.any_command(program);
            sandbox.finish(command.args(["mcp", "list", "--json"])).exits(0).stdout
        };
        assert!(!listed().contains("agentd"), "nobody has trusted the project");
        let home = sandbox.home().join(".codex/config.toml");
        let mut settings = fs::read_to_string(&home).unwrap();
        settings += &format!("\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n", root.display());
        fs::write(home, settings).unwrap();
        let listed = listed();
        assert!(listed.contains("\"agentd\"") && listed.contains("\"other\""), "{listed}");
    });
}
