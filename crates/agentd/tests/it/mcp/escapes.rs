//! Attempts to leave the change or the project. All are refused, over the real
//! server, and every byte below and beside the project stays as it was.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use test_project::{TestProject, Tree};

use super::{CHANGE, Servers as _, plan, planned};

/// A project with traps in it, inside a directory with something to steal.
struct Trapped {
    project: TestProject,
    outside: tempfile::TempDir,
}

impl Trapped {
    fn new() -> Self {
        let project = planned();
        let outside = test_project::temp_dir();
        fs::write(outside.path().join("secret.md"), "SECRET").unwrap();
        fs::create_dir(outside.path().join("dir")).unwrap();
        project.write_root(".env", "KEY=SECRET");
        project.write_root("server.pem", "SECRET");
        project.write_root(".git/config", "SECRET");
        project.write_root("agentd/changes/other/STATE.yaml", "SECRET");
        project.write_root(
            &format!("agentd/changes/{CHANGE}/STATE.yaml"),
            "change_id: add-oauth\nphase: proposed\n",
        );
        project.write_root(&format!("agentd/changes/{CHANGE}/GEMINI.md"), "generated");
        project.write_root(&format!("agentd/changes/{CHANGE}/base/auth-flow.md"), "base");
        project.write_root("agentd/specs/auth-flow.md", "# Specification: Main\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            let link = |target: &std::path::Path, name: &str| {
                symlink(target, project.root().join(name)).unwrap();
            };
            link(&outside.path().join("secret.md"), "link.md");
            link(outside.path(), "linkdir");
            link("../..".as_ref(), "up");
            link(".env".as_ref(), "notes.txt");
            link(".git".as_ref(), "gitlink");
            link("agentd/changes/other".as_ref(), "otherlink");
            let inside = format!("agentd/changes/{CHANGE}/");
            link(&outside.path().join("secret.md"), &format!("{inside}clarifications.md"));
            link("../STATE.yaml".as_ref(), &format!("{inside}specs/linked.md"));
            link(&outside.path().join("missing.md"), &format!("{inside}specs/dangling.md"));
            link(&outside.path().join("dir"), &format!("{inside}runs"));
        }
        Self { project, outside }
    }

    fn state(&self) -> (Tree, Vec<String>, String) {
        let mut names: Vec<String> = fs::read_dir(self.outside.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let secret = fs::read_to_string(self.outside.path().join("secret.md")).unwrap();
        (self.project.contents(), names, secret)
    }
}

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({"change_id": CHANGE, "path": path}))
}

fn list(path: &str) -> (&'static str, Value) {
    ("list_directory", json!({"change_id": CHANGE, "path": path}))
}

fn edit(path: &str) -> (&'static str, Value) {
    (
        "edit_file",
        json!({"change_id": CHANGE, "path": path, "old_string": "SECRET", "new_string": "X"}),
    )
}

/// A right call with another value at one place.
fn with(tool: &'static str, good: Value, place: &str, value: &str) -> (&'static str, Value) {
    let mut arguments = good;
    *arguments.pointer_mut(place).unwrap() = json!(value);
    (tool, arguments)
}

fn attempts(outside: &str) -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    let long_name = format!("specs/{}.md", "a".repeat(300));
    let long_path = "a/".repeat(4000);
    let absolute = format!("{outside}/secret.md");
    let traps = [
        "..",
        "../",
        "../secret.md",
        "../../etc/passwd",
        "specs/../../other/proposal.md",
        "agentd/changes/add-oauth/../other/proposal.md",
        "./../x",
        "a/../../b",
        "/etc/passwd",
        "/",
        "//etc/passwd",
        absolute.as_str(),
        "C:\\Windows\\win.ini",
        "C:/Windows/win.ini",
        "\\\\host\\share",
        "..\\..\\secret.md",
        "specs\\..\\..\\x",
        "proposal.md\0",
        "\0",
        "proposal.md\0.txt",
        "CON",
        "con.md",
        "specs/NUL.md",
        "COM1",
        "aux.txt",
        "specs/lpt9.md",
        "proposal.md.",
        "proposal.md ",
        "a:b",
        "proposal.md::$DATA",
        "file:///etc/passwd",
        "~/../x",
        "\u{202e}\n../x",
        "",
        long_name.as_str(),
        long_path.as_str(),
    ];
    for trap in traps {
        all.extend([read(trap), list(trap), edit(trap)]);
    }
    let not_shown = [
        ".git/config",
        ".GIT/config",
        "agentd/.locks/add-oauth.write",
        ".env",
        "server.pem",
        "agentd/changes/other/proposal.md",
        "agentd/changes/other/STATE.yaml",
        "agentd/changes/OTHER/STATE.yaml",
        "src",
        "nothing/here.md",
    ];
    all.extend(not_shown.map(read));
    all.extend(
        [".git", "agentd/.locks", "agentd/changes/other", "proposal.md", "nothing"].map(list),
    );
    let not_writable = [
        "STATE.yaml",
        "state.yaml",
        "agentd/changes/add-oauth/STATE.yaml",
        "agentd/config.toml",
        "config.toml",
        "CHALLENGE.md",
        "REVIEW.md",
        "GEMINI.md",
        "AGENTS.md",
        "base/auth-flow.md",
        "runs/0001-x.jsonl",
        "agentd/changes/other/proposal.md",
        "agentd/specs/auth-flow.md",
        "agentd/project.md",
        "src/main.rs",
        "Proposal.md",
        "PROPOSAL.MD",
        "specs",
        "specs/",
        ".",
        "specs/a/b.md",
        "specs/A.md",
        "specs/.md",
        "agentd/archive/2026-01-01-x/tasks.md",
        ".env",
        ".git/config",
        "agentd",
        "specs/con.md",
        "Specs/auth-flow.md",
    ];
    all.extend(not_writable.map(edit));
    #[cfg(unix)]
    {
        let links = [
            "link.md",
            "linkdir/secret.md",
            "up/etc/passwd",
            "notes.txt",
            "gitlink/config",
            "otherlink/proposal.md",
            "clarifications.md",
            "specs/linked.md",
            "specs/dangling.md",
            "runs/x",
        ];
        all.extend(links.map(read));
        all.extend(links.map(edit));
        all.extend(["linkdir", "up", "gitlink", "otherlink", "runs", "linkdir/dir"].map(list));
        all.push(("create_clarifications", plan::clarifications()));
        all.extend(["linked", "dangling"].map(|id| ("create_spec", plan::spec(id))));
        all.extend(
            ["linked", "dangling"].map(|id| with("write_spec", plan::whole_spec(), "/spec_id", id)),
        );
    }
    for id in [
        "..",
        "../other",
        "/etc/x",
        "a/b",
        "a\\b",
        "A",
        "a b",
        "a.md",
        "con",
        "nul",
        "",
        "-a",
        "a\0",
        "é",
        &"a".repeat(65),
    ] {
        all.push(with("create_spec", plan::spec("x"), "/spec_id", id));
        all.push(with("write_spec", plan::whole_spec(), "/spec_id", id));
        all.push(with("create_proposal", plan::proposal(), "/impact/affected_specs/0", id));
        for (tool, good) in [
            ("create_clarifications", plan::clarifications()),
            ("read_file", plan::read()),
            ("create_tasks", plan::tasks()),
        ] {
            all.push(with(tool, good, "/change_id", id));
        }
    }
    for path in [
        "../x",
        "/etc/passwd",
        "a/../../b",
        "agentd/config.toml",
        "agentd/changes/other/STATE.yaml",
        ".git/hooks/pre-commit",
        ".GIT/config",
        "con",
        "a\0b",
        "a\\b",
        "",
        ".",
        "C:/x",
    ] {
        all.push(with("create_tasks", plan::tasks(), "/tasks/0/file/path", path));
    }
    for path in ["../x", "/etc/passwd", "a\0b", "a\\b", "con", ""] {
        all.push(with("create_review", plan::code_review(), "/issues/0/file", path));
    }
    for (tool, good) in [
        ("read_file", plan::read()),
        ("edit_file", plan::edit()),
        ("create_proposal", plan::proposal()),
        ("append_review", plan::plan_review()),
        ("complete_task", plan::task()),
    ] {
        all.push(with(tool, good, "/change_id", "other"));
    }
    all
}

/// Not every agent confines the servers that it starts: codex does not.
#[cfg(target_os = "linux")]
#[test]
fn git_of_implementer_server_is_sandboxed() {
    let project = planned();
    project.git(&["init", "-q"]);
    project.git(&["add", "-A"]);
    project.git(&["commit", "-q", "-m", "Start"]);
    let outside = tempfile::tempdir().unwrap();
    let spring = |place: &std::path::Path| format!("touch {}/sprung", place.display());
    let trap = format!(
        "{}; {}; {}; cat",
        spring(outside.path()),
        spring(&project.root()),
        spring(&project.root().join("agentd"))
    );
    project.git(&["config", "filter.trap.clean", &trap]);
    project.write_root(".git/info/attributes", "*.rs filter=trap\n");
    project.write_root("src/models/user.rs", "struct User;\n");
    project.write_root("src/main.rs", "fn main() { oauth() }\n");
    let mut implementer = project.client("implementer");
    implementer.ok("complete_task", plan::task());
    implementer.ok("complete_task", with_task("2.1"));
    assert!(project.root().join("agentd/sprung").exists(), "git has run it");
    assert!(!outside.path().join("sprung").exists() && !project.root().join("sprung").exists());
}

fn with_task(id: &str) -> Value {
    with("complete_task", plan::task(), "/task_id", id).1
}

#[test]
fn no_path_leads_out() {
    let trapped = Trapped::new();
    let before = trapped.state();
    let all = attempts(trapped.outside.path().to_str().unwrap());
    assert!(all.len() >= 200, "{}", all.len());
    // All tools, bound to one change.
    let mut clients = std::collections::BTreeMap::new();
    for (tool, arguments) in all {
        let client = clients.entry(tool).or_insert_with(|| trapped.project.client_with(tool));
        let message = client.refused(tool, arguments.clone());
        assert!(!message.contains("SECRET"), "{tool} {arguments}: {message}");
        assert!(
            !message.contains(trapped.outside.path().to_str().unwrap())
                || arguments.to_string().contains("secret.md"),
            "{tool} {arguments}: {message}"
        );
        assert!(message.len() < 4000 && !message.contains('\0'), "{tool}: {message}");
    }
    assert!(trapped.state() == before, "something has changed");
}

/// The directory of the specs and a link to another directory change places
/// all the time, in one step, while specs are written and read.
#[cfg(target_os = "linux")]
#[test]
fn swapped_in_link_gains_nothing() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let trapped = Trapped::new();
    let specs = trapped.project.root().join("agentd/changes/add-oauth/specs");
    fs::remove_file(specs.join("linked.md")).unwrap();
    fs::remove_file(specs.join("dangling.md")).unwrap();
    let elsewhere = trapped.outside.path().join("dir");
    let link = trapped.outside.path().join("link");
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    fs::write(elsewhere.join("auth-flow.md"), "ELSEWHERE").unwrap();
    let stop = AtomicBool::new(false);
    let (mut accepted, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut pause = 0;
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &specs, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                pause = (pause * 7 + 3) % 11;
                // Mostly too short for a call, now and then long enough even on a loaded machine.
                let long = if pause == 0 { 60_000 } else { 0 };
                std::thread::sleep(std::time::Duration::from_micros(pause * 300 + long));
            }
        });
        let mut client = trapped.project.client("planner");
        for n in 0..2000 {
            if n >= 150 && accepted > 0 && refused > 0 {
                break;
            }
            let mut spec = plan::spec("auth-flow");
            spec["title"] = json!(format!("Title {n}"));
            let answer = client.call("create_spec", spec);
            if answer["result"]["isError"] == false {
                accepted += 1;
            } else {
                refused += 1;
            }
            let read = json!({"change_id": CHANGE, "path": "specs/auth-flow.md"});
            let answer = client.call("read_file", read).to_string();
            assert!(!answer.contains("ELSEWHERE"), "{answer}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(elsewhere.join("auth-flow.md")).unwrap(), "ELSEWHERE");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1, "nothing was made there");
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}
