//! A project of its own for every test, in an environment of its own.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use agentd_core::diagnostic::Severity;
use agentd_core::document::review_block::{self, Issue, PlanVerdict, ReviewBlock};
use agentd_core::ids::ChangeId;
use agentd_core::phase::Transition;
use agentd_core::span::Aside;
use agentd_core::stamp::Stamp;
use agentd_core::text::{Line, Prose};
use agentd_engine::change::documents::update_state;
use agentd_engine::store::Holder;
use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

const STATE: &str = include_str!("fixtures/STATE.yaml");
const PROPOSAL: &str = include_str!("fixtures/proposal.md");
const SPEC: &str = include_str!("fixtures/auth-flow.md");
const TASKS: &str = include_str!("fixtures/tasks.md");

/// A directory with `project/`, `home/` and `bin/`, which is all of PATH.
pub(crate) struct Project {
    temp: TempDir,
    change: String,
}

impl Project {
    /// An empty directory, in which agentd was not set up.
    pub(crate) fn empty() -> Self {
        let temp = scratch::dir();
        for dir in ["project", "home", "bin"] {
            fs::create_dir(temp.path().join(dir)).unwrap();
        }
        Self { temp, change: String::new() }
    }

    /// A project without changes.
    pub(crate) fn new() -> Self {
        let project = Self::empty();
        fs::create_dir_all(project.root().join("agentd/changes")).unwrap();
        project
    }

    /// Adds a sound change; [`Self::file`] and its like are about the last one.
    pub(crate) fn change(mut self, id: &str) -> Self {
        id.clone_into(&mut self.change);
        let texts = [
            ("STATE.yaml", STATE),
            ("proposal.md", PROPOSAL),
            ("specs/auth-flow.md", SPEC),
            ("tasks.md", TASKS),
        ];
        for (name, text) in texts {
            write(&self.change_path(name), text.replace("add-oauth", id));
        }
        self
    }

    /// Adds a change of which nothing but its state is there.
    pub(crate) fn begun(mut self, id: &str) -> Self {
        id.clone_into(&mut self.change);
        write(&self.change_path("STATE.yaml"), STATE.replace("add-oauth", id));
        self
    }

    /// Writes a file of the change.
    pub(crate) fn file(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        write(&self.change_path(name), bytes);
        self
    }

    /// Replaces a piece of text in a file of the change.
    pub(crate) fn edit(self, name: &str, from: &str, to: &str) -> Self {
        let path = self.change_path(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name} has no {from:?}");
        write(&path, text.replace(from, to));
        self
    }

    /// Writes a file below the root of the project.
    pub(crate) fn root_file(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        write(&self.root().join(name), bytes);
        self
    }

    /// Puts a shell script on PATH.
    pub(crate) fn program(self, name: &str, script: &str) -> Self {
        let path = self.bin().join(name);
        write(&path, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.base().join("project")
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.base().join("bin")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.base().join("home")
    }

    fn base(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap()
    }

    fn change_path(&self, name: &str) -> PathBuf {
        self.root().join("agentd/changes").join(&self.change).join(name)
    }

    /// The text of a file of the change.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.change_path(name)).unwrap()
    }

    pub(crate) fn read_root(&self, name: &str) -> String {
        fs::read_to_string(self.root().join(name)).unwrap()
    }

    /// Every file with its bytes, mode and time, every link with its target, every directory.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, Node> {
        let mut nodes = BTreeMap::new();
        walk(&self.root(), &mut nodes);
        nodes
    }

    /// The names of everything in the project.
    pub(crate) fn names(&self) -> Vec<String> {
        let root = self.root();
        let tree = self.tree();
        let names = tree.keys().map(|path| path.strip_prefix(&root).unwrap());
        names.map(|path| path.display().to_string()).collect()
    }

    /// agentd in the root of the project, with nothing of our own environment.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentd"));
        command
            .args(args)
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", self.bin())
            .env("USER", "ada")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        self.finish(&mut self.command(args))
    }

    pub(crate) fn finish(&self, command: &mut Command) -> Run {
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run {
            code: output.status.code().expect("agentd was not killed"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            root: self.root().display().to_string(),
        }
    }

    /// The plan is challenged, and needs revision for issues of these severities.
    pub(crate) fn challenged(self, severities: &[Severity]) -> Self {
        let issue = |(i, severity): (usize, &Severity)| Issue {
            number: u32::try_from(i + 1).unwrap(),
            severity: *severity,
            title: Line::new("Something"),
            location: Line::default(),
            description: Prose::new("It is not said."),
            recommendation: Prose::new("Say it."),
        };
        let at: Stamp = "2026-11-04T11:00:00Z".parse().unwrap();
        let store = agentd_engine::opening::open_within_call(
            &self.root(),
            agentd_engine::store::UserDirs::from_env(),
        )
        .unwrap();
        let id = ChangeId::new(&self.change).unwrap();
        let plan = store.change(&id).unwrap().snapshot().unwrap().documents.digest();
        let block = ReviewBlock {
            iteration: 1,
            reviewer: Line::new("codex"),
            date: Some(at),
            plan: Some(plan.clone()),
            verdict: PlanVerdict::NeedsRevision,
            summary: Prose::new("Not yet."),
            issues: severities.iter().enumerate().map(issue).collect(),
            place: Aside::default(),
        };
        let text = review_block::append(&self.read("proposal.md"), &block);
        let project = self.file("proposal.md", text);
        let (verdict, reviewer) = (PlanVerdict::NeedsRevision, Line::new("codex"));
        let reviewed = Transition::PlanReviewed { verdict, plan, reviewer, at };
        let holder = Holder::this_process("test", Timestamp::now());
        update_state(&store, &id, &holder, at, |state| {
            *state = state.apply(&reviewed)?;
            Ok(())
        })
        .unwrap();
        project
    }
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Dir,
    Link(PathBuf),
    File { bytes: Vec<u8>, mode: u32, modified: SystemTime },
}

fn walk(dir: &Path, nodes: &mut BTreeMap<PathBuf, Node>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let node = if meta.is_dir() {
            walk(&path, nodes);
            Node::Dir
        } else if meta.is_symlink() {
            Node::Link(fs::read_link(&path).unwrap())
        } else {
            let (bytes, mode) = (fs::read(&path).unwrap(), meta.permissions().mode());
            Node::File { bytes, mode, modified: meta.modified().unwrap() }
        };
        nodes.insert(path, node);
    }
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// How a run of agentd has ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    root: String,
}

impl Run {
    /// Exit code, stdout and stderr, in a form to compare.
    pub(crate) fn transcript(&self) -> String {
        let text = format!("exit {}\n{}--- stderr\n{}", self.code, self.stdout, self.stderr);
        let text = text.replace(&self.root, "[ROOT]");
        text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// It went well and had nothing to say beside its data.
    #[track_caller]
    pub(crate) fn fine(self) -> Self {
        let run = self.exits(0);
        assert_eq!(run.stderr, "");
        run
    }

    #[track_caller]
    pub(crate) fn stdout_has(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "no {text:?} in {self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn stderr_has(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no {text:?} in {self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn stderr_lacks(self, text: &str) -> Self {
        assert!(!self.stderr.contains(text), "{text:?} in {self:#?}");
        self
    }

    /// Nothing but text and, for those who ask for them, colours.
    #[track_caller]
    pub(crate) fn cannot_steer_a_terminal(&self) {
        for text in [&self.stdout, &self.stderr] {
            let mut pieces = text.split("\u{1b}[");
            let first = pieces.next().unwrap_or_default();
            let colour = |c: char| c.is_ascii_digit() || c == ';';
            let behind = pieces.map(|piece| {
                let rest = piece.trim_start_matches(colour).strip_prefix('m');
                rest.unwrap_or_else(|| panic!("not a colour: {piece:?} in {self:#?}"))
            });
            let control = |c: char| c.is_control() && c != '\n' && c != '\t';
            for piece in std::iter::once(first).chain(behind) {
                assert!(!piece.contains(control), "{piece:?} in {self:#?}");
            }
        }
    }

    /// The one document on stdout, in the form that the contract asks for.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let document: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not one JSON document: {error}: {self:#?}"));
        assert_eq!(document["version"], 1, "{self:#?}");
        snake_case_keys(&document);
        document
    }

    /// The error of a run that failed under `--json`: all of it on stdout.
    #[track_caller]
    pub(crate) fn json_error(&self) -> Value {
        let document = self.json();
        assert_eq!(self.stderr, "");
        assert_eq!(document.as_object().unwrap().len(), 2, "{document:#}");
        let error = document["error"].clone();
        assert!(error["kind"].is_string() && error["message"].is_string(), "{document:#}");
        assert!(error["cause"].is_string() || error["cause"].is_null(), "{document:#}");
        assert!(error["hints"].as_array().unwrap().iter().all(Value::is_string), "{document:#}");
        error
    }
}

#[track_caller]
fn snake_case_keys(value: &Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                assert!(key.chars().all(snake), "{key} is not snake_case");
                snake_case_keys(value);
            }
        }
        Value::Array(values) => values.iter().for_each(snake_case_keys),
        _ => {}
    }
}
