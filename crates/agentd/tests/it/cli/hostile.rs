//! A repository with everything planted that a program might act on. Whatever it is, no command
//! writes outside of `agentd/`, runs a program of the repository, shows a file from beside it,
//! hangs, or lets it talk to the terminal.

mod plants;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use agentd_core::diagnostic::Severity;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use test_project::{Node, TestProject, Tree, tree, without_times};

use plants::{Plant, SOURCE, Trick};

/// What is beside the project, and must stay private.
const SECRET: &str = "the-secret-of-another-user";

/// How long a command may take, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(15);

/// How far a command may go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It writes to `agentd/` at most, and runs git at most.
    Own,
    /// It may call an agent of the user, unless a person has to agree first.
    Agents,
    /// It writes what agents read, too.
    Init,
}

const COMMANDS: &[(Reach, &[&str])] = &[
    (Reach::Own, &["list"]),
    (Reach::Own, &["list", "--specs"]),
    (Reach::Own, &["list", "--archived"]),
    (Reach::Own, &["status"]),
    (Reach::Own, &["status", "add-oauth"]),
    (Reach::Own, &["show", "add-oauth"]),
    (Reach::Own, &["show", "add-oauth", "state"]),
    (Reach::Own, &["show", "add-oauth", "other"]),
    (Reach::Own, &["show", "auth-flow"]),
    (Reach::Own, &["validate", "--all"]),
    (Reach::Own, &["validate", "add-oauth"]),
    (Reach::Own, &["explain", "T005"]),
    (Reach::Own, &["log", "add-oauth"]),
    (Reach::Own, &["cost", "add-oauth"]),
    (Reach::Own, &["overlap"]),
    (Reach::Own, &["context", "Add a login"]),
    (Reach::Own, &["trace", "add-oauth"]),
    (Reach::Own, &["-C", "agentd", "trace", "add-oauth"]),
    (Reach::Own, &["-C", "agentd/changes/add-oauth", "log", "add-oauth"]),
    (Reach::Own, &["export", "add-oauth", "-o", "-"]),
    (Reach::Own, &["trust", "--show"]),
    (Reach::Own, &["trust"]),
    (Reach::Own, &["trust", "--revoke"]),
    (Reach::Own, &["doctor"]),
    (Reach::Own, &["completions", "bash"]),
    (Reach::Own, &["init", "--dry-run", "--yes"]),
    (Reach::Own, &["uninstall", "--dry-run"]),
    (Reach::Own, &["replay", "add-oauth", "--into", "agentd/replayed"]),
    (Reach::Agents, &["plan", "add-login", "Add a login", "--skip-clarify", "--git", "in-place"]),
    (Reach::Agents, &["bug", "add-bug", "It adds too little", "--git", "in-place"]),
    (Reach::Agents, &["clarify", "add-more", "Add more", "--json"]),
    (Reach::Agents, &["proposal", "add-more", "Add more"]),
    (Reach::Agents, &["challenge", "add-oauth"]),
    (Reach::Agents, &["reproposal", "add-fixes"]),
    (Reach::Agents, &["impl", "add-ready"]),
    (Reach::Agents, &["implement", "add-ready"]),
    (Reach::Agents, &["review", "add-ready"]),
    (Reach::Agents, &["fix", "add-ready"]),
    (Reach::Own, &["decide", "add-fixes", "stop"]),
    (Reach::Own, &["revise", "add-done", "Something else"]),
    (Reach::Own, &["rename", "add-fixes", "add-repairs"]),
    (Reach::Own, &["rename", "add-repairs", "add-fixes"]),
    (Reach::Own, &["rename", "add-oauth", "add-login"]),
    (Reach::Own, &["rename", "add-login", "add-oauth"]),
    (Reach::Own, &["drop", "add-fixes", "--delete", "--yes"]),
    (Reach::Own, &["unarchive", "add-oauth"]),
    (Reach::Own, &["unarchive", "add-other"]),
    (Reach::Own, &["archive", "add-oauth"]),
    (Reach::Own, &["archive", "add-done"]),
    (Reach::Own, &["unarchive", "add-done"]),
    (Reach::Init, &["init", "--yes", "--agents", "all"]),
    (Reach::Init, &["uninstall"]),
];

/// What `init` may write, in the project.
const INSTALLED: [&str; 8] =
    ["CLAUDE.md", "AGENTS.md", "GEMINI.md", ".mcp.json", ".gemini", ".claude", ".codex", ".agents"];

/// A script that leaves a mark wherever it can, since a sandbox may keep it from some places.
fn marking(base: &Path, mark: &str) -> String {
    format!(
        "for dir in '{}' . \"$HOME\" \"$HOME\"/.claude \"$HOME\"/.gemini \"$HOME\"/.codex agentd \
         agentd/changes/*; do : 2> /dev/null > \"$dir/{mark}\"; done\n",
        base.display()
    )
}

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/bash\n{text}")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A project of a user with agents on PATH, and what is beside it.
fn project() -> TestProject {
    let approved = "phase: complete\ncode_review:\n  verdict: APPROVED\n  iteration: 1\n  reviewer: codex\n  at: 2026-11-04T12:00:00Z\n  run: 1";
    let config = "[workflow]\nscript_retries = 0\nself_review_iterations = 0\n";
    let project = TestProject::new()
        .root_file("agentd/config.toml", config)
        .root_file("src/main.rs", SOURCE)
        .change("add-fixes")
        .challenged(&[Severity::High])
        .change("add-ready")
        .challenged(&[Severity::Low])
        .change("add-done")
        .edit("STATE.yaml", "phase: proposed", approved)
        .file("runs/0001-review.jsonl", "")
        .change("add-oauth");
    let base = project.base();
    fs::create_dir_all(base.join("beside")).unwrap();
    fs::write(base.join("beside/mine"), SECRET).unwrap();
    for dir in [".claude", ".gemini", ".codex"] {
        fs::create_dir(project.home().join(dir)).unwrap();
    }
    // What is asked of them without a prompt: their version, and who is logged in.
    let version = "case \"$*\" in --version) echo 9.9.9; exit;; 'login status'|'auth status') exit 1;; esac\n";
    for agent in ["gemini", "codex", "claude"] {
        let text = format!("{version}{}exit 1\n", marking(&base, "called"));
        script(&project.bin().join(agent), &text);
    }
    let project = project.programs(&["git"]);
    project.run(["decide", "add-ready", "accept"]).exits(0);
    git(&project, &["init", "-q", "-b", "main", "--template="]);
    fs::create_dir_all(project.root().join(".git/hooks")).unwrap();
    // agentd was used in it before, so its settings are complete.
    git(&project, &["config", "merge.agentd.driver", "agentd merge-driver"]);
    commit(&project);
    project
}

/// git, which runs nothing of what was planted.
fn git(project: &TestProject, args: &[&str]) {
    let quiet = ["-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null"];
    project.git(&[&quiet, args].concat());
}

fn commit(project: &TestProject) {
    git(project, &["add", "-A", "-f"]);
    git(project, &["commit", "-q", "--allow-empty", "-m", "all of it"]);
}

/// Puts the trick into the repository.
fn plant(project: &TestProject, trick: &Trick) {
    let root = project.root();
    script(&root.join("spring.sh"), &marking(&project.base(), "sprung"));
    let spring = root.join("spring.sh").display().to_string();
    let mut tracked = true;
    for plant in &trick.plants {
        let path = root.join(match plant {
            Plant::File(path, _) => path.as_str(),
            Plant::Out(path, _) | Plant::Link(path, _) | Plant::Pipe(path) => path,
            Plant::Huge(path) => path,
        });
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if fs::symlink_metadata(&path).is_ok_and(|there| there.is_dir()) {
            fs::remove_dir_all(&path).unwrap();
        } else {
            let _ = fs::remove_file(&path);
        }
        match plant {
            Plant::File(_, text) => {
                fs::write(&path, text.replace("@SPRING@", &spring)).unwrap();
            }
            Plant::Out(_, target) => symlink(project.base().join(target), &path).unwrap(),
            Plant::Link(_, target) => symlink(target, &path).unwrap(),
            Plant::Pipe(_) => {
                assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
                tracked = false;
            }
            Plant::Huge(_) => {
                fs::File::create(&path).unwrap().set_len(4 << 30).unwrap();
                tracked = false;
            }
        }
    }
    if tracked {
        commit(project);
    }
}

/// Everything there is.
fn all(project: &TestProject) -> Tree {
    without_times(tree(&project.base()))
}

/// Everything but what agentd may write to: its directories in the project and at home.
fn outside(all: Tree) -> Tree {
    let own = ["project/agentd", "home/.local", "home/.cache"];
    all.into_iter().filter(|(path, _)| !own.iter().any(|own| path.starts_with(own))).collect()
}

/// How a command ends, and what it says; one that hangs is killed, and has no code.
fn run(project: &TestProject, args: &[&str]) -> (Option<i32>, Vec<u8>) {
    let mut command = project.command(args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        kill(pid, Signal::SIGKILL).unwrap();
        receiver.recv().unwrap()
    });
    let output = output.unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), printed)
}

/// Requests pages of the viewer.
fn view(project: &TestProject) -> Vec<u8> {
    let mut command = project.command(["view", "--no-open"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let mut printed = line.clone().into_bytes();
    if let Some((host, token)) =
        line.trim().strip_prefix("http://").and_then(|rest| rest.split_once("/?"))
    {
        let get = |page: &str, cookie: &str| {
            let mut stream = TcpStream::connect(host).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let headers = format!("Host: {host}\r\n{cookie}Connection: close\r\n");
            write!(stream, "GET {page} HTTP/1.1\r\n{headers}\r\n").unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            bytes
        };
        // The token is good for a cookie.
        let first = String::from_utf8(get(&format!("/?{token}"), "")).unwrap();
        let set = first.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let cookie = format!("Cookie: {}\r\n", set.split(';').next().unwrap());
        let board = get("/", &cookie);
        // What cannot be read is named on a page that says so.
        let text = String::from_utf8_lossy(&board);
        let answers = text.starts_with("HTTP/1.1 200") || text.contains("Something went wrong");
        assert!(answers, "{text}");
        printed.extend(board);
        printed.extend(get("/changes/add-oauth", &cookie));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    printed
}

/// Calls tools, as an agent does.
fn tools(project: &TestProject) -> Vec<u8> {
    let mut command = project.command(["mcp", "--change", "add-oauth"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "resources/list"}),
    ];
    let spec = json!({"change_id": "add-oauth", "spec_id": "other", "title": "Login",
        "overview": "What the login does.", "requirements": [{"id": "R1", "title": "Answer",
        "priority": "high", "description": "The server MUST answer 200 within 2 s."}],
        "scenarios": [{"name": "Good", "when": "it is right", "then": "200 is answered"}]});
    let calls = [
        ("list_directory", json!({"change_id": "add-oauth", "path": "."})),
        ("read_file", json!({"change_id": "add-oauth", "path": "proposal.md"})),
        ("read_file", json!({"change_id": "add-oauth", "path": "specs/other.md"})),
        ("create_spec", spec),
        (
            "create_clarifications",
            json!({"change_id": "add-oauth", "questions": [
            {"topic": "T", "question": "Q?", "answer": "A", "rationale": "R"}]}),
        ),
    ];
    for (n, (name, arguments)) in calls.iter().enumerate() {
        lines.push(json!({"jsonrpc": "2.0", "id": 10 + n, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}}));
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    // It may have ended by itself, where there is no project to serve.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    [output.stdout, output.stderr].concat()
}

/// Takes away the files of this name, and says where they were.
fn take_marks(project: &TestProject, all: &mut Tree, name: &str) -> Vec<PathBuf> {
    let is_one = |path: &&PathBuf| path.file_name().is_some_and(|there| there == name);
    let marks: Vec<PathBuf> = all.keys().filter(is_one).cloned().collect();
    for mark in &marks {
        fs::remove_file(project.base().join(mark)).unwrap();
        all.remove(mark);
    }
    marks
}

/// Every file that holds the secret but the one it is in.
fn leaks(all: &Tree) -> Vec<&PathBuf> {
    let holds = |seen: &Node| matches!(seen, Node::File { bytes, .. } if contains(bytes, SECRET));
    let there = all.iter().filter(|(path, seen)| holds(seen) && !path.ends_with("beside/mine"));
    there.map(|(path, _)| path).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The names of what is not the same, with how it was and is.
fn differences(before: &Tree, after: &Tree, allowed: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let paths = before.keys().chain(after.keys().filter(|path| !before.contains_key(*path)));
    paths
        .filter(|path| before.get(*path) != after.get(*path) && !allowed(path))
        .map(|path| {
            let known = |seen: &Tree| match seen.get(path) {
                Some(Node::File { bytes, .. }) => String::from_utf8_lossy(bytes).into_owned(),
                other => format!("{other:?}"),
            };
            format!("{}: {} -> {}", path.display(), known(before), known(after))
        })
        .collect()
}

/// All commands on one trick; what went wrong.
fn attack(trick: &Trick, project: &TestProject) -> Vec<String> {
    plant(project, trick);
    let mut wrong = Vec::new();
    let mut before = outside(all(project));
    let mut judge = |args: &[&str], reach: Reach, code: Option<i32>, printed: &[u8]| {
        let mut complain = |what: String| wrong.push(format!("{}: {args:?}: {what}", trick.name));
        let mut all = all(project);
        let called = take_marks(project, &mut all, "called");
        let agents = reach == Reach::Agents && !trick.asks;
        if !called.is_empty() && !agents {
            complain(format!("calls an agent: {called:?}"));
        }
        if !take_marks(project, &mut all, "sprung").is_empty() {
            complain("runs a program of the repository".to_owned());
        }
        if contains(printed, SECRET) {
            complain(format!("shows a file from beside: {}", String::from_utf8_lossy(printed)));
        }
        if printed.contains(&0x1b) || contains(printed, "\u{9b}") {
            complain(format!("talks to the terminal: {}", String::from_utf8_lossy(printed)));
        }
        if code.is_none_or(|code| code == 101) {
            complain(format!("ends with {code:?}: {}", String::from_utf8_lossy(printed)));
        }
        if reach == Reach::Agents && trick.asks && !contains(printed, "not trusted") {
            complain(format!("does not ask: {}", String::from_utf8_lossy(printed)));
        }
        let after = outside(all);
        let allowed = |path: &Path| {
            let installed =
                || INSTALLED.iter().any(|name| path.starts_with(Path::new("project").join(name)));
            reach == Reach::Init && installed()
        };
        for difference in differences(&before, &after, &allowed) {
            complain(difference);
        }
        before = after;
    };
    for (reach, args) in COMMANDS {
        if args == &["decide", "add-fixes", "stop"] {
            judge(&["view"], Reach::Own, Some(0), &view(project));
            judge(&["mcp"], Reach::Own, Some(0), &tools(project));
        }
        let (code, printed) = run(project, args);
        // An archive in the tar format and the completions are data.
        let data = args.contains(&"export") || args.contains(&"completions");
        let printed =
            if data { printed.into_iter().filter(|byte| *byte != 0x1b).collect() } else { printed };
        judge(args, *reach, code, &printed);
    }
    let all = all(project);
    let leaks = leaks(&all);
    if !leaks.is_empty() {
        wrong.push(format!("{}: the secret is in {leaks:?}", trick.name));
    }
    wrong
}

#[test]
fn heavy_hostile_repository_changes_nothing() {
    let count = plants::all(Path::new("/"), "").len();
    assert!(count >= 40);
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut wrong = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= count {
                return wrong;
            }
            let project = project();
            let config = project.read_root(".git/config");
            let trick = plants::all(&project.root(), &config).swap_remove(n);
            wrong.extend(attack(&trick, &project));
        }
    };
    let wrong = std::thread::scope(|scope| {
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        workers.map(|worker| worker.join().unwrap()).concat()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The marks of the other test are seen where something does run, in the sandbox too.
#[test]
fn running_programs_leave_a_mark() {
    let project = project();
    let config = "[workflow]\nscript_retries = 0\n[gemini]\ncommand = \"@SPRING@\"\n\
        [codex]\nenv = { BASH_ENV = \"@SPRING@\" }\n";
    let plants = vec![Plant::File("agentd/config.toml".to_owned(), config.to_owned())];
    plant(&project, &Trick { name: String::new(), plants, asks: true });
    let plan = ["plan", "add-login", "Add it", "--skip-clarify", "--git", "in-place", "--trust"];
    for args in [&plan[..], &["challenge", "add-oauth", "--trust"]] {
        let (_, printed) = run(&project, args);
        let marks = take_marks(&project, &mut all(&project), "sprung");
        assert!(!marks.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&printed));
    }
    assert!(!take_marks(&project, &mut all(&project), "called").is_empty());
}
