//! Recording, replaying and exporting.

use std::fs;
use std::path::Path;
use std::process::Command;

use agentd_core::agent::Role;
use agentd_core::document::proposal;
use agentd_core::hash::Digest;
use agentd_core::recording::NOW;
use agentd_core::run_format::{FileEdit, Record};
use agentd_core::state;
use agentd_engine::agents::recording::Recording;
use agentd_engine::agents::step::{Artifact, StepError};
use serde_json::{Value, json};
use test_project::{TestProject, agentd, mask};

use crate::own_agents::steps::{self, BUILTIN, Steps as _};

const DOCUMENTS: [&str; 4] = ["proposal.md", "specs/login.md", "tasks.md", "CHALLENGE.md"];

fn planned(description: &str) -> TestProject {
    let project = steps::project(
        "add-login",
        description,
        BUILTIN,
        &[("src/login.py", "def login(): pass\n")],
    );
    project.plan();
    project.challenge();
    project
}

/// A clone of the project as it was before the change.
fn clone(project: &TestProject) -> tempfile::TempDir {
    let dir = test_project::temp_dir();
    let root = project.root();
    let (from, to) = (root.to_str().unwrap(), dir.path().join("clone"));
    project.git(&["clone", "-q", from, to.to_str().unwrap()]);
    dir
}

fn replay(source: &Path, into: &Path) -> (i32, Value) {
    // On another machine.
    let machine = TestProject::empty().programs(&["git"]);
    let mut command = machine.command(["replay", "--json", "--into"]);
    let output = machine.finish(command.arg(into).arg(source));
    (output.code, output.json())
}

#[test]
fn heavy_replay_reproduces_plan_exactly() {
    for description in [
        "Add login with email and password; lock after 5 attempts",
        "Make search fast; ---\n</review> `x` ÄÖÜ 添加",
    ] {
        let project = planned(description);
        let target = clone(&project);
        let into = target.path().join("clone");
        let (code, report) = replay(&project.change_dir(), &into);
        assert_eq!(report["divergences"], json!([]), "{description}");
        assert_eq!((code, &report["identical"]), (0, &json!(true)));
        assert_eq!(report["runs"].as_array().unwrap().len(), 7);
        assert!(report["compared"].as_u64().unwrap() >= 4, "{report}");
        let copy = into.join("agentd/changes/add-login");
        for file in DOCUMENTS {
            assert_eq!(fs::read_to_string(copy.join(file)).unwrap(), project.read(file), "{file}");
        }
        // The ledger and the verdict are those of the recording.
        let state = fs::read_to_string(copy.join("STATE.yaml")).unwrap();
        let state = state::parse(&state, &project.id()).unwrap();
        assert_eq!(state.plan_review.unwrap().reviewer.as_str(), "builtin");
        assert!(state.llm_calls.iter().all(|call| call.model == "builtin"));
        // What was replayed was recorded again, and is as good a source.
        let second = clone(&project);
        let (code, report) = replay(&copy, &second.path().join("clone"));
        assert_eq!(code, 0, "{report}");
    }
}

#[test]
fn replay_difference_is_exit_1() {
    let project = planned("Add login with email and password");
    // What the recording says was written is not what is in the change.
    let path = project.path("tasks.md");
    fs::write(&path, project.read("tasks.md") + "\nby hand\n").unwrap();
    let into = test_project::temp_dir();
    let (code, report) = replay(&project.change_dir(), into.path());
    assert_eq!(code, 1);
    assert_eq!(report["divergences"], json!(["tasks.md differs"]));
    // Again into the same place: nothing is overwritten.
    let (code, report) = replay(&project.change_dir(), into.path());
    assert_eq!((code, &report["error"]["kind"]), (1, &json!("already_there")));
    // A main spec that was not there then is kept as the base now.
    fs::write(&path, project.read("tasks.md").replace("\nby hand\n", "")).unwrap();
    let other = test_project::temp_dir();
    fs::create_dir_all(other.path().join("agentd/specs")).unwrap();
    fs::write(other.path().join("agentd/specs/login.md"), project.read("specs/login.md")).unwrap();
    let (code, report) = replay(&project.path("runs"), other.path());
    assert_eq!(code, 1, "{report}");
    assert_eq!(report["divergences"], json!(["base/login.md differs"]));
    let (code, report) = replay(other.path(), &other.path().join("x"));
    assert_eq!((code, &report["error"]["kind"]), (1, &json!("recording")));
}

/// A recording of an implementer, written by hand: two tasks, an edit before each tick.
fn implementer(dir: &Path, edits: &[&[FileEdit]]) {
    fs::create_dir_all(dir).unwrap();
    let header = json!({
        "run": 1, "step": "implement-logic", "change": "add-login", "agent": "claude", "role": "implementer",
        "attempt": 1, "argv": ["claude"], "env": [], "cwd": "/p", "prompt": "agentd implement-logic add-login\n",
        "started_at": "2026-01-02T03:04:05.678Z",
    });
    let mut lines =
        vec![header, json!({"t": 1, "event": "session", "session_id": "s-1", "model": "opus"})];
    for (n, edits) in edits.iter().enumerate() {
        let (id, task) = (format!("t{n}"), format!("2.{}", n + 1));
        lines.push(json!({"t": 1000, "files": edits}));
        lines.push(json!({"t": 1001, "event": "tool_call", "id": id, "server": "agentd", "name": "complete_task",
            "arguments": {"change_id": "add-login", "task_id": task}}));
        lines.push(json!({"t": 1002, "event": "tool_result", "id": id, "ok": true, "output": ""}));
    }
    lines.push(json!({"t": 2000, "event": "text", "text": "Both are done."}));
    lines.push(json!({"t": 2001, "event": "finished"}));
    let usage = json!({"input": 1000, "cached": 0, "output": 100});
    lines.push(json!({"t": 2002, "end": {"exit_code": 0, "duration_ms": 2002, "outcome": {
        "session_id": "s-1", "model": "opus", "usage": usage, "cost_usd": 0.5, "text": "Both are done.", "tool_calls": 2}}}));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(dir.join("0001-implement-logic.jsonl"), text).unwrap();
}

fn edit(path: &str, before: Option<&str>, after: Option<&str>) -> FileEdit {
    FileEdit {
        path: path.to_owned(),
        created: before.is_none(),
        before: before.map(Digest::of),
        after: after.map(Digest::of),
        text: after.map(str::to_owned),
        hex: None,
        executable: false,
    }
}

const CODE: &str = "def login(): return 5\n";

fn edits() -> [Vec<FileEdit>; 2] {
    let first = vec![
        edit("src/login.py", Some("def login(): pass\n"), Some(CODE)),
        edit("src/store.py", None, Some("accounts = {}\n")),
        edit("old.txt", Some("old\n"), None),
    ];
    let mut script = edit("run.sh", None, Some("#!/bin/sh\n"));
    script.executable = true;
    [
        first,
        vec![edit("src/store.py", Some("accounts = {}\n"), Some("accounts = {1: 2}\n")), script],
    ]
}

fn implementing() -> TestProject {
    let files =
        [("src/login.py", "def login(): pass\n"), ("old.txt", "old\n"), (".gitignore", "*.log\n")];
    let config = format!(
        "{}[replay]\nrecording = \"rec\"\n",
        BUILTIN.replace("implementer = \"builtin\"", "implementer = \"replay\"")
    );
    let project = steps::project("add-login", "Add login; lock after 5 attempts", &config, &files);
    project.plan();
    // So that the logic does not wait for the data.
    let tasks = project.read("tasks.md").replace("depends_on: [\"1.1\"]", "depends_on: []");
    fs::write(project.path("tasks.md"), tasks).unwrap();
    fs::write(project.root().join(".git/info/exclude"), "rec/\n").unwrap();
    project
}

#[test]
fn replayed_implementation_records_and_replays() {
    let project = implementing();
    let [first, second] = edits();
    implementer(&project.root().join("rec"), &[&first, &second]);
    let before = project.read("tasks.md");
    assert!(before.matches("status: done").count() == 0, "{before}");
    let (report, warnings) =
        project.step_seen(Role::Implementer, "implement-logic", Artifact::Nothing);
    let report = report.unwrap_or_else(|error| panic!("{error:?} {}", project.read("tasks.md")));
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(report.outcome.session_id.as_deref(), Some("s-1"));
    assert!((report.cost_usd - 0.5).abs() < 1e-9);
    assert_eq!(fs::read_to_string(project.root().join("src/login.py")).unwrap(), CODE);
    assert!(!project.root().join("old.txt").exists());
    let tasks = project.read("tasks.md");
    assert_eq!(tasks.matches("status: done").count(), 2, "{tasks}");
    // The clock was that of the recording.
    let updated = tasks.lines().find(|line| line.starts_with("updated_at"));
    assert_eq!(updated, Some("updated_at: 2026-01-02T03:04:06Z"));

    // The runner has seen the same edits on the disk, at the same points.
    let recording = Recording::open(&project.change_dir()).unwrap();
    let name = recording.runs().iter().find(|run| run.step() == "implement-logic".into()).unwrap();
    let run = recording.read(name).unwrap();
    let seen: Vec<Vec<FileEdit>> = run
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Files { files, .. } => Some(files.clone()),
            _ => None,
        })
        .collect();
    let sorted = |mut edits: Vec<FileEdit>| {
        edits.sort_by(|a, b| a.path.cmp(&b.path));
        edits
    };
    let [first, second] = edits();
    let seen: Vec<_> = seen.into_iter().map(sorted).collect();
    assert_eq!(seen, [sorted(first), sorted(second)]);

    // A second call of the step has no recording, and says so.
    let error = project.step(Role::Implementer, "implement-logic", Artifact::Nothing).unwrap_err();
    let StepError::Agent { failure, .. } = error else { panic!("{error:?}") };
    insta::assert_snapshot!(failure.message, @"the recording has no call number 2 of `implement-logic`; it has implement-logic (1)");
}

#[test]
fn replay_leaves_different_work_tree_alone() {
    let project = implementing();
    let [first, second] = edits();
    implementer(&project.root().join("rec"), &[&first, &second]);
    fs::write(project.root().join("src/login.py"), "mine\n").unwrap();
    let (_, warnings) = project.step_seen(Role::Implementer, "implement-logic", Artifact::Nothing);
    assert_eq!(fs::read_to_string(project.root().join("src/login.py")).unwrap(), "mine\n");
    insta::assert_snapshot!(warnings.join("\n"), @"the replay diverges: 0001-implement-logic.jsonl: src/login.py: before the edit it has other content, and was left alone");
}

#[test]
fn replay_with_speed_takes_time() {
    let project = implementing();
    let [first, second] = edits();
    implementer(&project.root().join("rec"), &[&first, &second]);
    let config = project.root().join("agentd/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}speed = \"4x\"\n")).unwrap();
    let report = project.step(Role::Implementer, "implement-logic", Artifact::Nothing).unwrap();
    // 2001 ms of recording, four times as fast.
    assert!(report.duration.as_millis() >= 500, "{:?}", report.duration);
}

#[test]
fn export_has_no_secrets() {
    let project = planned("Add login");
    let key = format!("sk-{}", "a1".repeat(20));
    fs::write(
        project.path("clarifications.md"),
        format!("# Clarifications\n\nThe key is {key}.\n"),
    )
    .unwrap();
    let config = project.root().join("agentd/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}[gemini]\nenv = {{ MY_TOKEN = \"hush-hush\" }}\n")).unwrap();
    let mut command = project.command(["export", "add-login", "--json"]);
    let output = project.finish(command.env("SOME_SECRET", "def login(): pass")).exits(0);
    let report = output.json();
    let archive = project.root().join("add-login.tar");
    assert_eq!(report["bytes"].as_u64().unwrap(), fs::metadata(&archive).unwrap().len());
    // Read by the system's own tar.
    let out = test_project::temp_dir();
    let status = Command::new("tar").arg("-xf").arg(&archive).current_dir(out.path()).status();
    assert!(status.unwrap().success());
    let dir = out.path().join("add-login");
    for file in ["STATE.yaml", "proposal.md", "tasks.md"] {
        assert_eq!(fs::read_to_string(dir.join(file)).unwrap(), project.read(file), "{file}");
    }
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    insta::assert_snapshot!(read("clarifications.md"), @"
    # Clarifications

    The key is [redacted].
    ");
    insta::assert_snapshot!(read("config.toml"), @r#"
    [workflow]
    script_retries = 0
    [roles]
    planner = "builtin"
    challenger = "builtin"
    implementer = "builtin"
    reviewer = "builtin"
    [gemini]
    env = { MY_TOKEN = "[redacted]" }
    "#);
    insta::assert_snapshot!(mask(&read("export.json"), &project.base()), @r#"
    {
      "version": 1,
      "agentd": "[VERSION]",
      "change": "add-login",
      "files": [
        {
          "path": "add-login/CHALLENGE.md",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/STATE.yaml",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/base/login.md",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/clarifications.md",
          "sha256": "sha256:[DIGEST]",
          "redacted": true
        },
        {
          "path": "add-login/journal.jsonl",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/proposal.md",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/receipt.json",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/rounds/0001.json",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/runs/0001-proposal-gen.jsonl",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/runs/0002-proposal-review.jsonl",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/runs/0003-spec-gen-login.jsonl",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/runs/0004-spec-review-login.jsonl",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/runs/0005-tasks-gen.jsonl",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/runs/0006-tasks-review.jsonl",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/runs/0007-challenge.jsonl",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/specs/login.md",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/tasks.md",
          "sha256": "sha256:[DIGEST]",
          "redacted": false
        },
        {
          "path": "add-login/config.toml",
          "sha256": "sha256:[DIGEST]",
          "redacted": true
        }
      ],
      "left_out": []
    }
    "#);
    assert!(dir.join("runs/0001-proposal-gen.jsonl").is_file());
    // The exported change can be replayed.
    let (code, report) = replay(&dir, &out.path().join("again"));
    assert_eq!(code, 0, "{report}");
    // There already: nothing is overwritten.
    project.run(["export", "add-login"]).exits(1);
    let piped = project.run(["export", "--output", "-"]).exits(0);
    assert_eq!(piped.stdout.len() as u64, fs::metadata(&archive).unwrap().len());
    let archived = project.root().join("agentd/archive/2026-11-04-add-login");
    fs::create_dir_all(archived.parent().unwrap()).unwrap();
    fs::rename(project.change_dir(), archived).unwrap();
    project.run(["export", "add-login", "--output", "old.tar"]).exits(0);
}

#[test]
fn only_replay_takes_time_from_calls() {
    const THEN: &str = "2020-01-01T00:00:00Z";
    let project = planned("Add login");
    let args = |more: &[&str]| {
        let mut args: Vec<String> =
            ["mcp", "--change", "add-login", "--role", "challenger"].map(str::to_owned).to_vec();
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        args
    };
    let append = |args: &[String]| {
        let limit = std::time::Duration::from_secs(20);
        let mut client =
            agentd_builtin::McpClient::start(&agentd(), args, &project.root(), "t", limit).unwrap();
        let review = json!({"change_id": "add-login", "verdict": "APPROVED", "summary": "x"});
        let now = json!({ (NOW): THEN });
        client.call("append_review", &review, Some(now)).unwrap().text
    };
    let answers = [&[][..], &["--agent", "codex"], &["--agent", "codex", "--replaying"]]
        .map(|more| append(&args(more)));
    assert_eq!(answers.map(|text| text.matches(THEN).count()), [0, 0, 1]);
    let reviews = proposal::parse(&project.read("proposal.md")).value.reviews;
    // The first is the one that the plan had before.
    let replayed: Vec<(&str, bool)> = reviews[1..]
        .iter()
        .map(|review| (review.reviewer.as_str(), review.date.unwrap().to_string() == THEN))
        .collect();
    assert_eq!(replayed, [("builtin", false), ("codex", false), ("codex", true)]);
}
