//! The store on a real disk: what nothing can escape, tear or lose.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod contexts;
mod crash;
mod documents;
mod escapes;
mod files;
mod locks;
mod project;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::rel_path::RelPath;
use agentd_engine::store::{Holder, Project};
use jiff::Timestamp;
use tempfile::TempDir;

/// The variable by which a test that starts itself again tells its child where to work.
const CHILD_DIR: &str = "AGENTD_STORE_TEST_DIR";

fn path(text: &str) -> RelPath {
    RelPath::new(text).unwrap()
}

fn id(text: &str) -> ChangeId {
    ChangeId::new(text).unwrap()
}

fn holder(command: &str) -> Holder {
    Holder::this_process(command, Timestamp::now())
}

/// A temporary directory with a project in `project/` that has the change `mine`.
fn sandbox() -> (TempDir, Project) {
    let dir = scratch::dir();
    let root = dir.path().join("project");
    fs::create_dir_all(root.join("agentd")).unwrap();
    fs::write(root.join("agentd/config.toml"), "").unwrap();
    let project =
        agentd_engine::opening::open_within_call(&root, agentd_engine::store::UserDirs::from_env())
            .unwrap();
    project.create_change(&id("mine")).unwrap();
    (dir, project)
}

/// Everything below a directory except the locks: path → what it is and holds.
fn snapshot(dir: &Path) -> BTreeMap<String, String> {
    fn walk(root: &Path, dir: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                if !name.ends_with(layout::locks_dir().as_str()) {
                    walk(root, &path, found);
                }
                found.insert(name, "directory".to_owned());
            } else if kind.is_symlink() {
                found.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
            } else {
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(dir, dir, &mut found);
    found
}

/// Starts one ignored test of this binary in a process of its own.
fn child(test: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test, "--nocapture"]).env(CHILD_DIR, dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// The project that a child works in; none where the test was not started as a child.
fn child_project() -> Option<Project> {
    let dir = std::env::var_os(CHILD_DIR)?;
    Some(
        agentd_engine::opening::open_within_call(
            Path::new(&dir),
            agentd_engine::store::UserDirs::from_env(),
        )
        .unwrap(),
    )
}
