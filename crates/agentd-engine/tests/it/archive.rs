//! Archiving on a real disk: merges, conflicts, and the way back.

mod archiving;
mod by_id;
mod overlaps;
mod recovery;
mod traces;
mod way_back;

use std::fs;
use std::path::PathBuf;

use agentd_core::ids::ChangeId;
use agentd_core::stamp::Stamp;
use agentd_engine::archive::{self, ArchiveError, Archived, Request};
use agentd_engine::store::Holder;
use jiff::Timestamp;
use test_project::{TestProject, stamp};

pub(crate) fn id(text: &str) -> ChangeId {
    ChangeId::new(text).unwrap()
}

pub(crate) fn holder() -> Holder {
    Holder::this_process("test", Timestamp::now())
}

pub(crate) fn now() -> Stamp {
    stamp("2026-11-15T10:00:00Z")
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

/// What a state says of a review by a known run.
const APPROVED: &str = "code_review:\n  verdict: APPROVED\n  iteration: 1\n  reviewer: codex\n  at: 2026-11-15T09:00:00Z\n  run: 1\nllm_calls:\n  - step: review\n    run: 1\n";

/// Archiving, and what is there to be archived.
pub(crate) trait Archiving {
    fn archive_with(
        &self,
        change: &str,
        force: Option<&str>,
        resume: bool,
    ) -> Result<Archived, ArchiveError>;
    fn unarchive(&self, which: &str) -> Result<archive::Unarchived, ArchiveError>;
    /// The journal of an archiving that is under way.
    fn journal(&self) -> PathBuf;
    fn main(&self, name: &str, text: &str);
    fn main_text(&self, name: &str) -> String;
    fn in_phase(&self, change: &str, phase: &str);
    fn spec_of(&self, change: &str, name: &str, text: &str);
    /// The proposal of a change lists this spec too.
    fn lists(&self, change: &str, name: &str);

    /// A change that may be archived, with one spec; its base is the main spec as it is.
    fn complete(&self, change: &str, name: &str, text: &str) {
        self.in_phase(change, "complete");
        self.spec_of(change, name, text);
    }

    fn archive(&self, change: &str) -> Result<Archived, ArchiveError> {
        self.archive_with(change, None, false)
    }
}

impl Archiving for TestProject {
    fn archive_with(
        &self,
        change: &str,
        force: Option<&str>,
        resume: bool,
    ) -> Result<Archived, ArchiveError> {
        let (change, holder, by, now) = (&id(change), &holder(), "ada", now());
        archive::archive(
            &self.store(),
            &Request { change, force, accept_stale: None, drop: None, resume, by, holder, now },
        )
    }

    fn unarchive(&self, which: &str) -> Result<archive::Unarchived, ArchiveError> {
        archive::unarchive(&self.store(), which, &holder())
    }

    fn journal(&self) -> PathBuf {
        self.user().state_path(&self.root()).unwrap().join("archive.json")
    }

    fn main(&self, name: &str, text: &str) {
        self.write_root(&format!("agentd/specs/{name}.md"), text);
    }

    fn main_text(&self, name: &str) -> String {
        self.read_root(&format!("agentd/specs/{name}.md"))
    }

    fn in_phase(&self, change: &str, phase: &str) {
        let state = format!(
            "change_id: {change}\nphase: {phase}\ndescription: \"About {change}\"\niteration: 1\n{APPROVED}"
        );
        self.write_root(&format!("agentd/changes/{change}/STATE.yaml"), state);
    }

    fn spec_of(&self, change: &str, name: &str, text: &str) {
        self.write_root(&format!("agentd/changes/{change}/specs/{name}.md"), text);
        let main = self.root().join(format!("agentd/specs/{name}.md"));
        let base = fs::read_to_string(main).unwrap_or_default();
        self.write_root(&format!("agentd/changes/{change}/base/{name}.md"), base);
        self.lists(change, name);
    }

    fn lists(&self, change: &str, name: &str) {
        let path = self.root().join(format!("agentd/changes/{change}/proposal.md"));
        let old = fs::read_to_string(&path)
            .unwrap_or_else(|_| format!("# Change: {change}\n\n## Affected Specs\n\n"));
        fs::write(path, format!("{old}- {name}\n")).unwrap();
    }
}
