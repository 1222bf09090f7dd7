//! Machines as directories: a home, a checkout and a worker, all of which are gone when one is killed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use test_project::git;

/// The recorded calls that a change needs, in their order.
pub(crate) const RUNS: [&str; 11] = [
    "0001-proposal-gen",
    "0003-spec-gen-greeting",
    "0005-tasks-gen",
    "0007-challenge",
    "0008-reproposal",
    "0009-challenge",
    "0010-implement-logic",
    "0011-implement-testing",
    "0012-review",
    "0013-fix",
    "0014-review",
];

/// A remote repository, and what was paid.
pub(crate) struct World {
    temp: TempDir,
    pub(crate) url: Option<String>,
    pub(crate) call_ms: u64,
    pub(crate) patience: u64,
}

pub(crate) struct Machine {
    pub(crate) name: String,
    dir: PathBuf,
    child: Child,
}

/// A payment that an agent has written down.
#[derive(Debug, Clone)]
pub(crate) struct Payment {
    pub(crate) change: String,
    pub(crate) step: String,
}

/// A call in the books of a change.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    step: String,
    cost: f64,
    at: String,
    cut_short: bool,
}

/// The calls in a STATE.yaml.
fn calls(state: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for line in state.lines().map(|line| line.trim_start_matches(['-', ' '])) {
        if let Some(step) = line.strip_prefix("step: ") {
            let (step, at) = (step.trim_matches('"').to_owned(), String::new());
            calls.push(Call { step, cost: 0.0, at, cut_short: false });
        }
        let Some(last) = calls.last_mut() else { continue };
        if let Some(cost) = line.strip_prefix("cost: ") {
            last.cost = cost.parse().unwrap();
        }
        if let Some(at) = line.strip_prefix("timestamp: ") {
            at.clone_into(&mut last.at);
        }
        // Of one without an estimate, only that it has failed is said.
        last.cut_short |= line == "unsettled: true" || line.starts_with("failure: ");
    }
    calls
}

impl World {
    /// With a server at this address, or without one.
    pub(crate) fn new(url: Option<String>) -> Self {
        Self::with(url, "replay", "commit = \"layer\"\n")
    }

    /// In which an agent plays all roles, and `[git]` says this.
    pub(crate) fn with(url: Option<String>, agent: &str, settings: &str) -> Self {
        let temp = tempfile::Builder::new().prefix("fleet").tempdir_in("/var/tmp").unwrap();
        let world = Self { temp, url, call_ms: 200, patience: 4 };
        let (base, demo) =
            (world.base(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../agentd/assets/demo"));
        fs::create_dir(base.join("pay")).unwrap();
        let project = base.join("project");
        for name in ["README.md", "bin/greet", "test.sh", "tests/by-name.sh", "tests/runs.sh"] {
            test_project::write(
                &project.join(name),
                fs::read(demo.join("project").join(name)).unwrap(),
            );
        }
        for name in RUNS {
            let run = fs::read(demo.join(format!("runs/{name}.jsonl"))).unwrap();
            test_project::write(&project.join(format!("recordings/r/{name}.jsonl")), run);
        }
        let roles = ["planner", "challenger", "implementer", "reviewer"];
        let roles: String = roles.map(|role| format!("{role} = \"{agent}\"\n")).concat();
        let config = format!(
            "[workflow]\nself_review_iterations = 0\nscript_retries = 0\n[roles]\n{roles}[replay]\n\
             recording = \"recordings/r\"\n[git]\n{settings}[implementation]\n\
             test_command = \"sh test.sh\"\n[sandbox]\nenabled = false\n"
        );
        test_project::write(&project.join("agentd/config.toml"), config);
        test_project::write(&project.join("agentd/changes/.gitkeep"), "");
        git(&project, &["init", "-q", "-b", "main"]);
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-q", "-m", "One"]);
        let remote = world.remote();
        git(&base, &["init", "-q", "--bare", "-b", "main", remote.to_str().unwrap()]);
        // Snapshots are forgotten when a change is done; this remembers them.
        test_project::write_script(&remote.join("hooks/post-receive"), "exec cat >> pushes.log");
        git(&project, &["remote", "add", "origin", remote.to_str().unwrap()]);
        git(&project, &["push", "-q", "origin", "main"]);
        test_project::write(
            &base.join("gitconfig"),
            "[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n",
        );
        world
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap()
    }

    pub(crate) fn remote(&self) -> PathBuf {
        self.base().join("remote.git")
    }

    /// A program with nothing of the environment of the test.
    pub(crate) fn command(&self, home: &Path, program: &Path) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:/usr/bin:/bin", self.base().join("bin").display());
        command.env_clear().env("HOME", home).env("PATH", path).env("USER", "ada");
        command.env("GIT_CONFIG_GLOBAL", self.base().join("gitconfig"));
        command.env("AGENTD_REPLAY_PAYMENTS", self.base().join("pay/payments.jsonl"));
        command.env("AGENTD_REPLAY_CALL_MS", self.call_ms.to_string());
        if let Some(url) = &self.url {
            command.env("AGENTD_FLEET", url);
        }
        command.stdin(Stdio::null());
        command
    }

    /// `agentd-fleet` in the project; what it prints.
    pub(crate) fn fleet(&self, args: &[&str]) -> Value {
        let program = &program();
        let mut command = self.command(&self.base().join("home"), program);
        command.current_dir(self.base().join("project")).arg("fleet").args(args).arg("--json");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn submit(&self, id: &str) {
        let done = self.fleet(&["submit", id, "Let greet take a name", "--auto"]);
        assert_eq!(done["action"], "submitted", "{done}");
    }

    /// `agentd` in a clone, as a person runs it.
    pub(crate) fn agentd(&self, dir: &Path, args: &[&str]) -> String {
        let mut command = self.command(&self.base().join("home"), &test_project::agentd());
        let output = command.current_dir(dir).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A new machine, with nothing on it.
    pub(crate) fn machine(&self, name: &str, slots: usize) -> Machine {
        self.machine_for(name, slots, "replay:team1")
    }

    /// A new machine with the keys of these accounts.
    pub(crate) fn machine_for(&self, name: &str, slots: usize, accounts: &str) -> Machine {
        test_project::agentd();
        let dir = self.base().join("machines").join(name);
        fs::create_dir_all(dir.join("home")).unwrap();
        let (remote, checkout) = (self.remote(), dir.join("checkout"));
        git(&dir, &["clone", "-q", remote.to_str().unwrap(), checkout.to_str().unwrap()]);
        let program = &program();
        let mut command = self.command(&dir.join("home"), program);
        command.current_dir(&checkout).args(["worker", "--trust", "--accounts", accounts]);
        command.args(["--slots", &slots.to_string(), "--name", name]);
        command.args(["--patience", &self.patience.to_string()]);
        let log = fs::File::create(self.base().join(format!("{name}.log"))).unwrap();
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Machine::of(name, dir, child)
    }

    pub(crate) fn payments(&self) -> Vec<Payment> {
        let text = fs::read_to_string(self.base().join("pay/payments.jsonl")).unwrap_or_default();
        let values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let text = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
        values
            .filter(|value| value["what"] == "paid")
            .map(|value| Payment { change: text(&value, "change"), step: text(&value, "step") })
            .collect()
    }

    /// How many calls were paid, and how many of them ran at the same time at most.
    pub(crate) fn most_at_once(&self) -> (usize, usize) {
        let text = fs::read_to_string(self.base().join("pay/payments.jsonl")).unwrap_or_default();
        let (mut calls, mut now, mut most) = (0, 0_usize, 0);
        // The lines are in the order in which it happened.
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if line["what"] == "paid" {
                (calls, now) = (calls + 1, now + 1);
                most = most.max(now);
            } else {
                now -= 1;
            }
        }
        (calls, most)
    }

    /// The books of a finished change, on its branch: (step, cost, whether it was cut short).
    pub(crate) fn books(&self, change: &str) -> Vec<(String, f64, bool)> {
        let remote = self.remote();
        let branch = format!("agentd/{change}");
        let files = git(&remote, &["ls-tree", "-r", "--name-only", &branch, "agentd/archive"]);
        let state = files.lines().find(|line| line.ends_with("/STATE.yaml")).unwrap();
        let state = git(&remote, &["show", &format!("{branch}:{state}")]);
        calls(&state).into_iter().map(|call| (call.step, call.cost, call.cut_short)).collect()
    }

    /// Everything that any snapshot of a change has ever had in its books must be in the last ones.
    pub(crate) fn forgets_nothing(&self, change: &str) -> usize {
        let remote = self.remote();
        let pushes = fs::read_to_string(remote.join("pushes.log")).unwrap_or_default();
        let name = format!("refs/agentd/wip/{change}");
        let of = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words[2] == name && !words[1].starts_with("0000")).then(|| words[1].to_owned())
        };
        let branch = format!("agentd/{change}");
        let files = git(&remote, &["ls-tree", "-r", "--name-only", &branch, "agentd/archive"]);
        let file = files.lines().find(|line| line.ends_with("/STATE.yaml")).unwrap();
        let last = calls(&git(&remote, &["show", &format!("{branch}:{file}")]));
        let mut seen = 0;
        for commit in pushes.lines().filter_map(of) {
            let file = format!("{commit}:agentd/changes/{change}/STATE.yaml");
            // The first is pushed before there are any books.
            let mut exists = Command::new("git");
            exists.arg("-C").arg(&remote).args(["cat-file", "-e", &file]).stderr(Stdio::null());
            if !exists.status().unwrap().success() {
                continue;
            }
            for call in calls(&git(&remote, &["show", &file])) {
                seen += 1;
                assert!(
                    last.contains(&call),
                    "{change}: {call:?} was pushed, and is not in {last:#?}"
                );
            }
        }
        seen
    }

    /// What each step costs, by the books of changes that were done.
    pub(crate) fn prices(&self, changes: &[String]) -> BTreeMap<String, f64> {
        let calls = changes.iter().flat_map(|change| self.books(change));
        calls.filter(|call| !call.2).map(|(step, cost, _)| (step, cost)).collect()
    }

    pub(crate) fn is_done(&self, change: &str) -> bool {
        let refs = ["for-each-ref", "--format=%(refname)", "refs/agentd", "refs/heads/agentd"];
        let refs = git(&self.remote(), &refs);
        let has = |name: &str| refs.lines().any(|line| line == name);
        has(&format!("refs/heads/agentd/{change}")) && !has(&format!("refs/agentd/wip/{change}"))
    }

    pub(crate) fn log(&self, name: &str) -> String {
        fs::read_to_string(self.base().join(format!("{name}.log"))).unwrap_or_default()
    }
}

impl Machine {
    pub(crate) fn of(name: &str, dir: PathBuf, child: Child) -> Self {
        Self { name: name.to_owned(), dir, child }
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The most memory that the worker ever had, in MB.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn megabytes(&self) -> f64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) as f64 / 1024.0
    }

    /// The power goes, and the disk is never seen again.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        remove(&self.dir);
    }

    /// Stops everything on it for a while, as when a lid is closed.
    pub(crate) fn freeze(&self, time: Duration) {
        let all = family(self.child.id());
        let signal = |signal| {
            for pid in &all {
                let pid = Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
                let _ = kill_process(pid, signal);
            }
        };
        signal(Signal::STOP);
        sleep(time);
        signal(Signal::CONT);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn remove(dir: &Path) {
    let start = Instant::now();
    // Processes that are ending may still write.
    while fs::remove_dir_all(dir).is_err() && dir.exists() {
        assert!(start.elapsed() < Duration::from_secs(10), "{} stays", dir.display());
        sleep(Duration::from_millis(50));
    }
}

/// The program under test, beside the `agentd` that was built with it.
pub(crate) fn program() -> PathBuf {
    test_project::agentd().with_file_name("agentd-fleet")
}

/// A process and all below it.
fn family(root: u32) -> Vec<u32> {
    let mut parents: BTreeMap<u32, u32> = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        if let Some(parent) = fields.split_whitespace().nth(1).and_then(|field| field.parse().ok())
        {
            parents.insert(pid, parent);
        }
    }
    let mut all = vec![root];
    let mut next = 0;
    while next < all.len() {
        let parent = all[next];
        all.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    all
}
