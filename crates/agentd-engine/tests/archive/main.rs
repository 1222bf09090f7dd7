//! Archiving on a real disk: merges, conflicts, and the way back.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod archiving;
mod overlaps;
mod recovery;
mod traces;
mod way_back;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use agentd_core::ids::ChangeId;
use agentd_core::stamp::Stamp;
use agentd_engine::archive::{self, ArchiveError, Archived, Request};
use agentd_engine::store::{Holder, Project, UserDirs};
use jiff::Timestamp;
use tempfile::TempDir;

/// A project in a directory of its own.
pub(crate) struct Fixture {
    dir: TempDir,
    home: TempDir,
    pub(crate) project: Project,
}

pub(crate) fn id(text: &str) -> ChangeId {
    ChangeId::new(text).unwrap()
}

pub(crate) fn holder() -> Holder {
    Holder::this_process("test", Timestamp::now())
}

pub(crate) fn now() -> Stamp {
    "2026-11-15T10:00:00Z".parse().unwrap()
}

/// A spec with these requirements, each a number and a text.
pub(crate) fn spec(requirements: &[(u32, &str)]) -> String {
    let mut out = "---\nid: s\ntype: spec\ntitle: S\nversion: 3\ncreated_at: 2026-01-01T00:00:00Z\n\
                   updated_at: 2026-01-01T00:00:00Z\n---\n\n# Specification: S\n\n## Overview\n\nIt is.\n\n\
                   ## Requirements\n\n"
        .to_owned();
    for (n, text) in requirements {
        out += &format!("### R{n}: Title {n}\n\n{text}\n\n");
    }
    out + "## Acceptance Criteria\n\n### Scenario: s\n\n- **WHEN** a\n- **THEN** b\n"
}

/// The spec of a change.
pub(crate) fn part(front: &str, requirements: &[(u32, &str)]) -> String {
    let mut out =
        format!("---\nid: s\ntype: spec\n{front}---\n\n# Specification: S\n\n## Requirements\n\n");
    for (n, text) in requirements {
        out += &format!("### R{n}: Title {n}\n\n{text}\n\n");
    }
    out
}

/// What a state tells of a review by a known run.
const APPROVED: &str = "code_review:\n  verdict: APPROVED\n  iteration: 1\n  reviewer: codex\n  at: 2026-11-15T09:00:00Z\n  run: 1\nllm_calls:\n  - step: review\n    run: 1\n";

impl Fixture {
    pub(crate) fn new() -> Self {
        let dir = scratch::dir();
        fs::create_dir_all(dir.path().join("agentd/changes")).unwrap();
        let home = scratch::dir();
        let user = UserDirs::below(home.path());
        let project = agentd_engine::opening::open_within_call(dir.path(), user).unwrap();
        Self { dir, home, project }
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    /// The journal of an archiving that is under way.
    pub(crate) fn journal(&self) -> PathBuf {
        let user = UserDirs::below(self.home.path());
        user.state_path(self.project.root()).unwrap().join("archive.json")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root().join(path).exists()
    }

    pub(crate) fn main(&self, name: &str, text: &str) {
        self.write(&format!("agentd/specs/{name}.md"), text);
    }

    pub(crate) fn main_text(&self, name: &str) -> String {
        self.read(&format!("agentd/specs/{name}.md"))
    }

    /// A change that may be archived, with one spec; its base is the main spec as it is.
    pub(crate) fn change(&self, change: &str, name: &str, text: &str) {
        self.change_in(change, "complete");
        self.spec_of(change, name, text);
    }

    pub(crate) fn change_in(&self, change: &str, phase: &str) {
        let state = format!(
            "change_id: {change}\nphase: {phase}\ndescription: \"About {change}\"\niteration: 1\n{APPROVED}"
        );
        self.write(&format!("agentd/changes/{change}/STATE.yaml"), &state);
    }

    pub(crate) fn spec_of(&self, change: &str, name: &str, text: &str) {
        self.write(&format!("agentd/changes/{change}/specs/{name}.md"), text);
        let main = self.root().join(format!("agentd/specs/{name}.md"));
        let base = fs::read_to_string(main).unwrap_or_default();
        self.write(&format!("agentd/changes/{change}/base/{name}.md"), &base);
    }

    pub(crate) fn archive(&self, change: &str) -> Result<Archived, ArchiveError> {
        self.archive_with(change, None, false)
    }

    pub(crate) fn archive_with(
        &self,
        change: &str,
        force: Option<&str>,
        resume: bool,
    ) -> Result<Archived, ArchiveError> {
        let (change, holder, by, now) = (&id(change), &holder(), "ada", now());
        archive::archive(&self.project, &Request { change, force, resume, by, holder, now })
    }

    pub(crate) fn unarchive(&self, which: &str) -> Result<archive::Unarchived, ArchiveError> {
        archive::unarchive(&self.project, which, &holder())
    }

    /// Everything but the locks.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut tree = BTreeMap::new();
        walk(self.root(), &mut tree);
        tree
    }
}

fn walk(dir: &Path, tree: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("agentd/.locks") {
            continue;
        }
        if path.is_dir() {
            walk(&path, tree);
            tree.insert(path, None);
        } else {
            let bytes = fs::read(&path).unwrap();
            tree.insert(path, Some(bytes));
        }
    }
}
