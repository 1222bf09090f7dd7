//! A project in the middle of things: a change after two rounds of review, with comments,
//! runs and costs; others in other phases; an archived one; a main spec.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use agentd_core::document::review_block::PlanVerdict;
use agentd_core::ids::ChangeId;
use agentd_core::phase::Transition;
use agentd_core::stamp::Stamp;
use agentd_core::text::Line;
use agentd_engine::change::documents::update_state;
use agentd_engine::store::Holder;
use agentd_engine::tools::{self, Session, input};
use serde_json::{Value, json};

const FILES: [(&str, &str); 6] = [
    ("STATE.yaml", include_str!("fixtures/STATE.yaml")),
    ("proposal.md", include_str!("fixtures/proposal.md")),
    ("specs/auth-flow.md", include_str!("fixtures/auth-flow.md")),
    ("specs/session-store.md", include_str!("fixtures/session-store.md")),
    ("tasks.md", include_str!("fixtures/tasks.md")),
    ("clarifications.md", include_str!("fixtures/clarifications.md")),
];

pub(crate) struct Project {
    dir: tempfile::TempDir,
}

impl Project {
    /// With everything.
    pub(crate) fn new() -> Self {
        let project = Self { dir: tempfile::tempdir().unwrap() };
        project.root_file("agentd/config.toml", "");
        for (name, text) in FILES {
            project.file(name, text);
        }
        project.file("runs/0001-challenge.jsonl", include_str!("fixtures/run.jsonl"));
        project.review("2026-11-10T09:07:00Z", &first_review());
        let spec = project.read("specs/auth-flow.md");
        let before = "The server MUST match accounts by the provider's `sub` claim and MUST NOT match by e-mail\naddress.";
        assert!(spec.contains(before));
        // The first round saw another text.
        project.file(
            "specs/auth-flow.md",
            &spec.replace("within 10 minutes", "within 10 minutes, once"),
        );
        project.review("2026-11-10T10:18:00Z", &second_review());
        for (id, phase) in [
            ("speed-up-search", "challenged"),
            ("export-reports", "implementing"),
            ("dark-mode", "complete"),
            ("rewrite-in-cobol", "rejected"),
        ] {
            for (name, text) in FILES {
                let text = text
                    .replace("add-oauth", id)
                    .replace("phase: proposed", &format!("phase: {phase}"));
                let summary = format!("{} for everyone", id.replace('-', " "));
                let text = text.replace("Let people sign in with their company account", &summary);
                project.root_file(&format!("agentd/changes/{id}/{name}"), &text);
            }
        }
        project.root_file("agentd/changes/just-an-idea/proposal.md", "# Change: just-an-idea\n");
        for (name, text) in FILES {
            let text = text
                .replace("add-oauth", "add-passwords")
                .replace("phase: proposed", "phase: archived");
            project.root_file(&format!("agentd/archive/2026-10-01-add-passwords/{name}"), &text);
        }
        project
            .root_file("agentd/specs/session-store.md", include_str!("fixtures/session-store.md"));
        project
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join("agentd/changes/add-oauth").join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        self.root_file(&format!("agentd/changes/add-oauth/{name}"), text);
    }

    pub(crate) fn root_file(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// As the challenger's tool does it.
    fn review(&self, now: &str, review: &Value) {
        let project = agentd_engine::opening::open_within_call(
            self.root(),
            agentd_engine::store::UserDirs::from_env(),
        )
        .unwrap();
        let now: Stamp = now.parse().unwrap();
        let session = Session {
            project: &project,
            actor: Line::new("codex gpt-5-codex"),
            holder: Holder::this_process("test", now.moment()),
            now,
            names_change: false,
            on_wait: &|_| ControlFlow::Continue(()),
        };
        let input = input::read(review.as_object().unwrap().clone()).unwrap();
        tools::append_review(&session, input).unwrap();
        // And as the workflow does, once it has read the verdict.
        let id = ChangeId::new("add-oauth").unwrap();
        update_state(&project, &id, &session.holder, now, |state| {
            let (verdict, reviewer) = (PlanVerdict::NeedsRevision, Line::new("codex"));
            let plan = project.change(&id)?.snapshot()?.documents.digest();
            *state = state.apply(&Transition::PlanReviewed { verdict, plan, reviewer, at: now })?;
            Ok(())
        })
        .unwrap();
    }
}

fn issue(severity: &str, title: &str, location: &str) -> Value {
    json!({
        "severity": severity, "title": title, "location": location,
        "description": "A reader cannot tell **what is meant**, and two implementers would build two things.",
        "recommendation": "Say it in one sentence, with a number.",
    })
}

fn first_review() -> Value {
    json!({
        "change_id": "add-oauth", "verdict": "NEEDS_REVISION",
        "summary": "The flow is sound, but accounts can be taken over by e-mail.",
        "issues": [
            issue("high", "Accounts are matched by e-mail", "auth-flow:R2"),
            issue("medium", "No scenario for a provider that hangs", "auth-flow:R3"),
            issue("low", "Audit entries have no retention", "proposal"),
        ],
    })
}

fn second_review() -> Value {
    json!({
        "change_id": "add-oauth", "verdict": "NEEDS_REVISION",
        "summary": "The takeover is closed. One medium issue is left.",
        "issues": [
            issue("medium", "No scenario for a provider that hangs", "auth-flow:R3"),
            issue("low", "The callback's name differs between spec and tasks", "tasks 3.1"),
        ],
    })
}
