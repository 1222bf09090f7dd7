//! The store on a real disk: what nothing can escape, tear or lose.

mod contexts;
mod crash;
mod documents;
mod escapes;
mod files;
mod locks;
mod project;

use std::path::Path;
use std::process::{Command, Stdio};

use agentd_core::ids::ChangeId;
use agentd_core::rel_path::RelPath;
use agentd_engine::opening;
use agentd_engine::store::{Holder, Project, StoreError, UserDirs};
use jiff::Timestamp;
use test_project::TestProject;

/// The variable in which a test that starts itself again names the directory of its child.
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

/// A project that has the change `mine`, opened.
fn sandbox() -> (TestProject, Project) {
    let test = TestProject::empty().root_file("agentd/config.toml", "");
    let project = test.store();
    project.create_change(&id("mine")).unwrap();
    (test, project)
}

/// Opens the project that a directory is in, with a home beside the project.
fn open(dir: &Path) -> Result<Project, StoreError> {
    let root = opening::root_of(dir)?;
    opening::open_within_call(&root, UserDirs::below(&root.with_file_name("home")))
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
    Some(open(Path::new(&dir)).unwrap())
}
