//! The real gemini, codex and claude in a fleet of two workers, of which one dies with all its files.
//! What is paid is counted at the models.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use agentd_core::state::{self, State};
use real_agents::models::{
    approved, calls, challenges, edit_proposal, look, plan, reproposals, review, settles, write,
};
use real_agents::{CHANGE, Sandbox};
use scripted_models::{Rule, Script};
use serde_json::Value;
use test_project::git;

use crate::implementation::project::{does, tick, verdict_of};

/// The server of the fleet's own tests.
#[path = "../../../../crates/agentd-fleet/tests/it/server.rs"]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
mod server;

const CONFIG: &str = "[workflow]\nself_review_iterations = 0\nretry_delay_secs = 0\n\
                      [git]\ncommit = \"layer\"\nland = \"base\"\n\
                      [implementation]\ntest_command = \"sh test.sh\"\n";
const TESTS: &str = "grep -q right src/greeting.rs\n";

/// The program of the fleet, beside the `agentd` that is tested.
fn program() -> PathBuf {
    let program = test_project::agentd().with_file_name("agentd-fleet");
    assert!(program.is_file(), "build it first: cargo build -p agentd-fleet");
    program
}

/// A machine: a home, a checkout and a worker.
struct Machine {
    dir: PathBuf,
    log: PathBuf,
    child: Child,
}

impl Machine {
    fn start(sandbox: &Sandbox, url: Option<&str>, name: &str, accounts: &str) -> Self {
        let dir = sandbox.base().join(name);
        let (home, checkout) = (dir.join("home"), dir.join("checkout"));
        copy(&sandbox.home(), &home);
        let identity = "[user]\nname = Ada\nemail = ada@example.org\n";
        test_project::write(&home.join(".gitconfig"), identity);
        let remote = sandbox.base().join("remote.git");
        git(&dir, &["clone", "-q", remote.to_str().unwrap(), checkout.to_str().unwrap()]);
        let log = sandbox.base().join(format!("{name}.log"));
        let mut command = command(sandbox, url, &home);
        command.current_dir(&checkout).args(["worker", "--trust", "--patience", "6"]);
        command.args(["--name", name, "--accounts", accounts]);
        let child = command.stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn();
        Self { dir, log, child: child.unwrap() }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The power goes, and the disk is never seen again.
    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let start = Instant::now();
        while fs::remove_dir_all(&self.dir).is_err() && self.dir.exists() {
            assert!(start.elapsed() < Duration::from_secs(20));
            sleep(Duration::from_millis(50));
        }
        self.log()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(sandbox: &Sandbox, url: Option<&str>, home: &Path) -> Command {
    let mut command = sandbox.any_command(program());
    command.env("HOME", home).stdin(Stdio::null());
    if let Some(url) = url {
        command.env("AGENTD_FLEET", url);
    }
    command
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

fn fleet(sandbox: &Sandbox, url: Option<&str>, args: &[&str]) -> Value {
    let mut command = command(sandbox, url, &sandbox.home());
    let output = command.current_dir(sandbox.root()).arg("fleet").args(args).arg("--json");
    let output = output.output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn script() -> Script {
    let script = Script::new()
        .rule(does("implement-logic", [write("src/greeting.rs", "wrong\n"), tick("2.1")]))
        .rule(
            calls("review", "create_review", verdict_of("NEEDS_FIX", &[("high", "Wrong")]))
                .prompts(1),
        )
        .rule(calls(
            "review",
            "create_review",
            settles(verdict_of("APPROVED", &[]), &[("I1", "fixed")]),
        ))
        .rule(fix());
    let script = challenges(
        script,
        &[
            review("NEEDS_REVISION", &[("high", "Too vague")]),
            settles(approved(), &[("I1", "fixed")]),
        ],
    );
    let script = reproposals(script, &[edit_proposal("come back", "come back soon")]);
    plan(script, &["greeting"])
}

fn fix() -> Rule {
    does("fix", [look("src/greeting.rs"), write("src/greeting.rs", "right\n")])
}

/// The books of the change, once it is archived on main.
fn books(sandbox: &Sandbox) -> Option<State> {
    let remote = sandbox.base().join("remote.git");
    let files = git(&remote, &["ls-tree", "-r", "--name-only", "main", "agentd"]);
    let file = files
        .lines()
        .find(|file| file.starts_with("agentd/archive/") && file.ends_with("/STATE.yaml"))?;
    let text = git(&remote, &["show", &format!("main:{file}")]);
    Some(state::parse(&text, &sandbox.id()).unwrap())
}

fn story(url: Option<&str>) {
    Sandbox::enter(script(), |sandbox| {
        sandbox.write_root("agentd/config.toml", CONFIG);
        sandbox.write_root("agentd/changes/.gitkeep", "");
        sandbox.write_root("test.sh", TESTS);
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["commit", "-q", "-m", "Start"]);
        let remote = sandbox.base().join("remote.git");
        let remote = remote.to_str().unwrap();
        sandbox.git(&["init", "-q", "--bare", "-b", "main", remote]);
        sandbox.git(&["remote", "add", "origin", remote]);
        sandbox.git(&["push", "-q", "origin", "HEAD:refs/heads/main"]);
        let submitted = fleet(sandbox, url, &["submit", CHANGE, "Add a login", "--auto"]);
        assert_eq!(submitted["action"], "submitted");
        // One plans and reviews, the other writes code.
        let a = Machine::start(sandbox, url, "a", "gemini:team,codex:team");
        let b = Machine::start(sandbox, url, "b", "claude:team");
        let start = Instant::now();
        let mut machines = vec![a, b];
        let wait = |machines: &[Machine], what: &str, is_so: &dyn Fn() -> bool| {
            while !is_so() {
                let logs = || machines.iter().map(Machine::log).collect::<Vec<_>>().join("---\n");
                assert!(
                    start.elapsed() < Duration::from_mins(8),
                    "{what}: {:#}\n{}",
                    fleet(sandbox, url, &["status"]),
                    logs()
                );
                sleep(Duration::from_millis(200));
            }
        };
        wait(&machines, "the code is not written", &|| {
            let step = fleet(sandbox, url, &["status"])["changes"][0]["step"].take();
            step == "tests" || step == "review"
        });
        // The session of claude was on this machine.
        let log = machines.pop().unwrap().kill();
        assert!(log.contains("implement-logic; next"), "{log}");
        machines.push(Machine::start(sandbox, url, "c", "claude:team"));
        wait(&machines, "not done", &|| books(sandbox).is_some());
        let (a, c) = (machines[0].log(), machines[1].log());

        let state = books(sandbox).unwrap();
        let of_ledger = state.llm_calls.iter().filter(|call| call.failure.is_none());
        let ledger: Vec<String> = of_ledger.map(|call| call.step.to_string()).collect();
        assert_eq!(
            ledger,
            [
                "proposal-gen",
                "spec-gen-greeting",
                "tasks-gen",
                "challenge",
                "reproposal",
                "challenge",
                "implement-logic",
                "review",
                "fix",
                "review"
            ],
            "{a}\n{c}"
        );
        let agents = state.llm_calls.iter().filter_map(|call| call.agent);
        let agents: Vec<String> = agents.map(|agent| agent.name().to_owned()).collect();
        for agent in ["gemini", "codex", "claude"] {
            assert!(agents.iter().any(|called| called == agent), "{agents:?}");
        }
        // What the models were asked is what is in the books: nothing was paid twice.
        let count = |steps: Vec<String>| {
            let mut count: BTreeMap<String, usize> = BTreeMap::new();
            for step in steps {
                *count.entry(step).or_default() += 1;
            }
            count
        };
        let requests = sandbox.models().requests();
        let asked = requests.iter().filter(|request| request.round == 0);
        let asked: Vec<String> = asked
            .filter_map(|request| request.prompt.strip_prefix("agentd "))
            .filter_map(|prompt| Some(prompt.split_whitespace().next()?.to_owned()))
            .collect();
        assert_eq!(count(asked), count(ledger));
        // Every answer of a model has the same price in tokens, no matter who asks.
        let answers = requests.iter().filter(|request| request.prompt.starts_with("agentd "));
        let answers = u64::try_from(answers.count()).unwrap();
        assert_eq!(state.total_tokens_out, answers * 50, "{:#?}", state.llm_calls);
        // The planner goes on in its session; the one of the implementer died with its machine.
        let session = |step: &str| {
            let call = state.llm_calls.iter().rfind(|call| call.step.to_string() == step);
            call.unwrap().session_id.clone().unwrap()
        };
        assert_ne!(session("fix"), session("implement-logic"));
        assert!(c.contains("the session to resume is gone: a fresh one is begun"), "{c}");
        let code = git(Path::new(remote), &["show", "main:src/greeting.rs"]);
        assert_eq!(code.trim(), "right");
    });
}

#[test]
fn heavy_real_clis_in_a_fleet_over_git() {
    story(None);
}

#[test]
fn heavy_real_clis_in_a_fleet_with_postgres() {
    let Some(server) = server::Server::start() else { return };
    story(Some(&server.url()));
}
