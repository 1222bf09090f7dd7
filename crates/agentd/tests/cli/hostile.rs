//! A repository that brings recovery data along: whatever is planted, no command writes, runs or
//! removes anything because of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use agentd_core::hash::{Digest, hex};
use serde_json::{Value, json};

use crate::harness::Project;

/// Something that a repository holds.
enum Plant {
    /// A file with this text.
    File(&'static str, String),
    /// A link, to a place beside the project.
    Link(&'static str, &'static str),
}

use Plant::{File, Link};

/// A picture of the first edition, in which these paths were so.
fn picture(places: &[(&str, Value)], closed: &[&str]) -> String {
    let hexed = |path: &str| hex(path.as_bytes());
    let places: Vec<Value> = places
        .iter()
        .map(|(path, was)| json!({"path": hexed(path), "watch": "all", "was": was}))
        .collect();
    let closed: Vec<String> = closed.iter().map(|path| hexed(path)).collect();
    json!({"places": places, "closed": closed, "needed": [], "work_tree": hexed("."),
        "repository": null, "parts": [], "allowed": []})
    .to_string()
}

fn hook() -> Value {
    json!({"file": {"mode": 0o755, "bytes": hex(b"#!/bin/sh\ntouch sprung\n")}})
}

/// A record that would write to this path.
fn record(path: &str, now: &str) -> String {
    let log =
        json!({"path": "agentd/specs/CHANGELOG.md", "before": null, "after": Digest::of("x")});
    let spec = json!({"path": path, "before": "evil\n", "after": Digest::of(now)});
    json!({"version": 1, "change_id": "add-oauth", "name": "2026-11-04-add-oauth",
        "archived_at": "2026-11-04T10:00:00Z", "specs": [spec], "own": [], "changelog": log,
        "entry": "", "made": ["src", "agentd/changes"]})
    .to_string()
}

fn plants(project: &Project) -> Vec<(&'static str, Vec<Plant>)> {
    let root = project.root().canonicalize().unwrap();
    let absolute = root.join(".git/hooks/pre-commit").to_str().unwrap().to_owned();
    let journal = || {
        let text = "{\"action\":\"archive\",\"change_id\":\"add-oauth\",\"name\":\"2026-11-04-add-oauth\"}";
        File("agentd/.locks/_archive.json", text.to_owned())
    };
    let old = "agentd/.agents/git/x.json";
    let with_journal = |path: &str, now: &str| {
        vec![journal(), File("agentd/changes/add-oauth/archive.json", record(path, now))]
    };
    vec![
        ("relative hook", vec![File(old, picture(&[(".git/hooks/pre-commit", hook())], &[]))]),
        ("absolute hook", vec![File(old, picture(&[(&absolute, hook())], &[]))]),
        ("git config", vec![File(old, picture(&[(".git/config", hook())], &[]))]),
        ("above", vec![File(old, picture(&[("./..", json!("nothing"))], &[]))]),
        ("beside", vec![File(old, picture(&[("../beside/mine", json!("nothing"))], &[]))]),
        ("closed repository", vec![File(old, picture(&[], &[".git"]))]),
        ("closed project", vec![File(old, picture(&[], &["."]))]),
        ("pictures elsewhere", vec![Link("agentd/.agents/git", "beside")]),
        ("agents elsewhere", vec![Link("agentd/.agents", "beside")]),
        ("locks elsewhere", vec![Link("agentd/.locks", "beside")]),
        ("journal of git", with_journal(".git/config", CONFIG)),
        ("journal of sources", with_journal("src/main.rs", "mine\n")),
        ("journal of settings", with_journal(".claude/settings.json", "{}")),
        (
            "record alone",
            vec![File("agentd/changes/add-oauth/archive.json", record("src/main.rs", "mine\n"))],
        ),
        (
            "settings backup",
            vec![File(
                "agentd/.agents/gemini-settings.json.backup",
                "{\"text\":\"evil\",\"made_dir\":true}".to_owned(),
            )],
        ),
        ("settings temporary", vec![Link(".gemini/settings.json.agentd-tmp", "beside/mine")]),
        (
            "new layout",
            vec![
                File(".local/state/agentd/projects/x/archive.json", "{}".to_owned()),
                File(
                    "agentd/calls/x.picture.json",
                    picture(&[(".git/hooks/pre-commit", hook())], &[]),
                ),
            ],
        ),
        ("runs elsewhere", vec![Link("agentd/changes/add-oauth/runs", "beside")]),
    ]
}

const CONFIG: &str = "[core]\n\tbare = false\n";

const COMMANDS: &[&[&str]] = &[
    &["list"],
    &["status"],
    &["show", "add-oauth"],
    &["validate", "--all"],
    &["log", "add-oauth"],
    &["cost"],
    &["overlap"],
    &["trace", "add-oauth"],
    &["doctor"],
    &["decide", "add-oauth", "stop"],
    &["unarchive", "add-oauth"],
    &["archive", "add-oauth"],
];

/// Everything beside and in the project but what agentd may write to: its own directory.
fn outside(base: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    fn walk(dir: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("project/agentd") || path.ends_with("home") {
                continue;
            }
            let metadata = fs::symlink_metadata(&path).unwrap();
            let bytes = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if metadata.is_dir() {
                walk(&path, found);
            }
            found.insert(path, (metadata.permissions().mode(), bytes));
        }
    }
    let mut found = BTreeMap::new();
    walk(base, &mut found);
    found
}

#[test]
fn heavy_nothing_outside_of_agentd_changes_whatever_a_repository_brings_along() {
    let count = plants(&Project::new().change("add-oauth")).len();
    for n in 0..count {
        let project = Project::new()
            .change("add-oauth")
            .root_file(".git/config", CONFIG)
            .root_file(".git/HEAD", "ref: refs/heads/main\n")
            .root_file("src/main.rs", "mine\n")
            .root_file(".claude/settings.json", "{}");
        let root = project.root();
        let base = root.parent().unwrap().to_owned();
        fs::create_dir_all(root.join(".git/objects")).unwrap();
        fs::create_dir_all(root.join(".git/refs")).unwrap();
        fs::create_dir_all(base.join("beside")).unwrap();
        fs::write(base.join("beside/mine"), "mine\n").unwrap();
        let (name, planted) = plants(&project).swap_remove(n);
        for plant in planted {
            let path = root.join(match &plant {
                File(path, _) | Link(path, _) => path,
            });
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match plant {
                File(_, text) => fs::write(&path, text).unwrap(),
                Link(_, target) => symlink(base.join(target), &path).unwrap(),
            }
        }
        let before = outside(&base);
        for command in COMMANDS {
            let _ = project.run(command.iter());
            assert_eq!(outside(&base), before, "{name}: {command:?}");
        }
    }
}
