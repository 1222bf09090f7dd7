//! A project on a machine of its own, for every test.
//!
//! [`TestProject`] is a temporary directory with `project/`, `home/` and `bin/`. Nothing of the
//! machine that runs the tests reaches the program under test: its home is `home/`, its PATH is
//! `bin/`, and git reads only the settings beside them.
//!
//! - Program level: [`TestProject::run`] starts the real `agentd`. Its [`Output`] prints as a
//!   transcript, with paths, times and digests replaced, ready for an inline snapshot.
//! - Engine level: [`TestProject::store`] opens the same project in the process of the test, and
//!   [`TestProject::agents`] has what a step needs.
//! - Real agents: the `Sandbox` of `testing/real-agents` is a project with the real CLIs on its
//!   PATH, scripted models, and no network.
//!
//! ```no_run
//! use test_project::TestProject;
//!
//! let project = TestProject::new().change("add-oauth");
//! let output = project.run(["status", "add-oauth"]);
//! assert_eq!(output.code, 0);
//! ```
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::return_self_not_must_use,
    reason = "this is part of tests: what goes wrong here fails the test that called it"
)]

mod change;
mod engine;
mod git;
mod output;
mod tree;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub use engine::{now, run_step, stamp};
pub use git::git;
pub use output::{Output, mask};
pub use tree::{Node, Tree, contents, tree, without_times};

/// What all tests that run at the same time may write; containers have as little as 64 MB.
const ROOM: u64 = 512 * 1024 * 1024;

/// A temporary directory, in memory where there is room for it.
///
/// agentd flushes what it writes to the disk. Waiting for that is most of the time of a test
/// that writes much, and proves nothing: only a power cut would show the difference.
pub fn temp_dir() -> TempDir {
    let memory = Path::new("/dev/shm");
    let has_room = rustix::fs::statvfs(memory).is_ok_and(|fs| fs.f_bavail * fs.f_frsize >= ROOM);
    if has_room { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// The agentd that was built beside this test.
pub fn agentd() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let agentd = test.parent().and_then(Path::parent).unwrap().join("agentd");
    assert!(agentd.exists(), "{} is missing: cargo build -p agentd", agentd.display());
    agentd
}

/// Writes a file, and the directories above it.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Writes a shell script that can be run.
pub fn write_script(path: &Path, script: &str) {
    write(path, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A directory with `project/`, `home/` and `bin/`, which is all of PATH.
///
/// Methods with `root` in their names take paths below the root of the project; the others take
/// the names of files of the change that was added last.
pub struct TestProject {
    temp: TempDir,
    change: String,
    environment: Option<Vec<(OsString, OsString)>>,
}

impl TestProject {
    /// An empty directory, in which agentd was not set up.
    pub fn empty() -> Self {
        Self::in_dir(temp_dir())
    }

    /// The same in a temporary directory of the caller's choice.
    pub fn in_dir(temp: TempDir) -> Self {
        for dir in ["project", "home", "bin"] {
            fs::create_dir(temp.path().join(dir)).unwrap();
        }
        Self { temp, change: String::new(), environment: None }
    }

    /// A project without changes.
    #[allow(clippy::new_without_default, reason = "a directory on disk is no default")]
    pub fn new() -> Self {
        let project = Self::empty();
        fs::create_dir_all(project.root().join("agentd/changes")).unwrap();
        project
    }

    /// Writes a file of the change.
    pub fn file(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.write(name, bytes);
        self
    }

    /// Replaces a piece of text in a file of the change.
    pub fn edit(self, name: &str, from: &str, to: &str) -> Self {
        self.replace(name, from, to);
        self
    }

    /// Writes a file below the root of the project.
    pub fn root_file(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.write_root(name, bytes);
        self
    }

    /// Puts a shell script on PATH.
    pub fn program(self, name: &str, script: &str) -> Self {
        write_script(&self.bin().join(name), script);
        self
    }

    /// Puts programs of this machine on PATH.
    pub fn programs(self, names: &[&str]) -> Self {
        let path = std::env::var_os("PATH").unwrap();
        for name in names {
            let found = std::env::split_paths(&path).map(|dir| dir.join(name));
            let found = found.into_iter().find(|path| path.is_file());
            symlink(found.expect("it is installed"), self.bin().join(name)).unwrap();
        }
        self
    }

    /// Gives every program in the project these variables, and no others.
    pub fn with_environment(mut self, variables: Vec<(OsString, OsString)>) -> Self {
        self.environment = Some(variables);
        self
    }

    /// The directory that everything else is in.
    pub fn base(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap()
    }

    /// The root of the project.
    pub fn root(&self) -> PathBuf {
        self.base().join("project")
    }

    /// The only directory on PATH.
    pub fn bin(&self) -> PathBuf {
        self.base().join("bin")
    }

    /// The home directory of the user.
    pub fn home(&self) -> PathBuf {
        self.base().join("home")
    }

    /// The directory of the change.
    pub fn change_dir(&self) -> PathBuf {
        let below = |root: PathBuf| root.join("agentd/changes").join(&self.change);
        let moved = below(self.worktree());
        if moved.is_dir() { moved } else { below(self.root()) }
    }

    /// Where agentd puts the worktree of the change.
    pub fn worktree(&self) -> PathBuf {
        let root = self.root();
        let mut name = root.file_name().unwrap().to_owned();
        name.push("-agentd");
        root.with_file_name(name).join(&self.change)
    }

    /// A file of the change.
    pub fn path(&self, name: &str) -> PathBuf {
        self.change_dir().join(name)
    }

    /// Writes a file of the change.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        write(&self.path(name), bytes);
    }

    /// Writes a file below the root of the project.
    pub fn write_root(&self, name: &str, bytes: impl AsRef<[u8]>) {
        write(&self.root().join(name), bytes);
    }

    /// Replaces a piece of text in a file of the change.
    #[track_caller]
    pub fn replace(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} has no {from:?}: {text}");
        self.write(name, text.replace(from, to));
    }

    /// The text of a file of the change.
    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The text of a file of the change, masked for a snapshot.
    #[track_caller]
    pub fn read_masked(&self, name: &str) -> String {
        mask(&self.read(name), &self.base())
    }

    /// The text of a file below the root of the project.
    #[track_caller]
    pub fn read_root(&self, name: &str) -> String {
        fs::read_to_string(self.root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Whether there is something below the root of the project.
    pub fn has_root(&self, name: &str) -> bool {
        self.root().join(name).exists()
    }

    /// Everything in the project with its bytes, mode and time.
    pub fn tree(&self) -> Tree {
        tree(&self.root())
    }

    /// Everything in the project but times and locks, which change by themselves.
    pub fn contents(&self) -> Tree {
        contents(&self.root())
    }

    /// The names of everything in the project.
    pub fn names(&self) -> Vec<String> {
        self.tree().keys().map(|path| path.display().to_string()).collect()
    }

    /// agentd in the root of the project, with nothing of the environment of the test.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.any_command(agentd());
        command.args(args);
        command
    }

    /// Any program in the root of the project, with nothing of the environment of the test.
    pub fn any_command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.root()).env_clear().stdin(Stdio::null());
        match &self.environment {
            Some(variables) => {
                command.envs(variables.iter().map(|(name, value)| (name, value)));
            }
            None => {
                command.env("HOME", self.home()).env("PATH", self.bin()).env("USER", "ada");
            }
        }
        command
    }

    /// Runs agentd to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        self.finish(&mut self.command(args))
    }

    /// Runs a command to its end.
    pub fn finish(&self, command: &mut Command) -> Output {
        Output::new(command.output().unwrap(), &self.base())
    }
}
