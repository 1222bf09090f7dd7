//! Whatever a claim covers: one changed byte in it is found.

use std::fs;
use std::path::PathBuf;

use agentd_core::document::review::CodeVerdict;
use agentd_core::hash::Digest;
use agentd_core::journal::{self, Event, Files};
use agentd_core::phase::Transition;
use agentd_core::state::{State, TestRun};
use agentd_core::text::Line;
use agentd_engine::archive::{self, Request};
use agentd_engine::change::documents::update_state;
use agentd_engine::change::tree::tree;
use agentd_engine::git::GitTool;
use agentd_engine::insight::verify::verify;
use agentd_engine::opening;
use agentd_engine::store::UserDirs;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use test_project::{TestProject, now};

const ID: &str = "add-oauth";
const REVIEW: &str = "---\nchange_id: add-oauth\ntype: review\niteration: 1\nreviewer: codex\n\
                      created_at: 2026-11-04T11:00:00Z\nverdict: APPROVED\n---\n\n\
                      # Review: add-oauth\n\n## Summary\n\nFine.\n\n## Issues\n";
const CLARIFICATIONS: &str = "# Clarifications\n\n## Scope\n\n- **Q**: Which?\n- **A**: All.\n";
const DOCUMENTS: [&str; 6] = [
    "STATE.yaml",
    "proposal.md",
    "specs/auth-flow.md",
    "tasks.md",
    "REVIEW.md",
    "clarifications.md",
];
/// Tracked, tracked although git ignores it, and new.
const CODE: [&str; 3] = ["src/auth.rs", "kept.log", "src/new.rs"];

/// A change that was approved, tested and reviewed, with everything recorded.
fn complete() -> TestProject {
    let project = TestProject::new()
        .root_file("src/auth.rs", "fn main() {}\n")
        .root_file(".gitignore", "*.log\n")
        .root_file("kept.log", "tracked all the same\n")
        .change(ID)
        .file("clarifications.md", CLARIFICATIONS)
        .repository();
    project.git(&["add", "-f", "kept.log"]);
    project.commit("start");
    project.write_root("src/new.rs", "fn new() {}\n");
    let project = project.approved();
    project.write("REVIEW.md", REVIEW);
    let files = tree(&GitTool::default(), &project.root()).unwrap();
    let plan =
        project.store().change(&project.id()).unwrap().snapshot().unwrap().documents.digest();
    let change = |change: &dyn Fn(&mut State)| {
        update_state(&project.store(), &project.id(), &project.holder(), now(), |state| {
            change(state);
            Ok(())
        })
        .unwrap();
    };
    let started = Transition::ImplementationStarted { plan: plan.clone() };
    change(&|state| *state = state.apply(&started).unwrap());
    change(&|state| {
        state.test_run = Some(TestRun {
            command: "make test".to_owned(),
            exit_code: Some(0),
            output_tail: "".into(),
            duration_ms: 1,
            at: now(),
            tree: Some(files.clone()),
            tree_after: None,
        });
    });
    change(&|state| {
        let (verdict, reviewer) = (CodeVerdict::Approved, Line::new("codex"));
        *state = state.apply(&Transition::CodeReviewed { verdict, reviewer, at: now() }).unwrap();
        let known = state.code_review.as_mut().unwrap();
        known.review_hash = Some(Digest::of(REVIEW));
        (known.tree, known.plan_hash) = (Some(files.clone()), Some(plan.clone()));
    });
    record_documents(&project);
    project
}

/// Adds the entry that a call leaves: the documents as they are.
fn record_documents(project: &TestProject) {
    let old = project.read("journal.jsonl");
    let (state, text) = (project.state(), project.read("STATE.yaml"));
    let files: Files = DOCUMENTS[1..]
        .iter()
        .map(|name| ((*name).to_owned(), Digest::of(project.read(name))))
        .collect();
    let head = journal::parse(&old).unwrap().head;
    let events = vec![Event::Updated {}];
    let Ok(new) = journal::entries(&head, events, &state, &text, &files, now(), journal::unsigned);
    let all = old + &new[0].line() + "\n";
    project.write("journal.jsonl", &all);
    let copy = project.user().state_path(&project.root()).unwrap();
    fs::write(copy.join(format!("journals/{ID}.jsonl")), all).unwrap();
}

/// Where the journal and its copy are compared, and where there is no copy.
#[derive(Debug, Clone, Copy)]
enum Machine {
    Own,
    Other,
}

/// Whether every claim holds.
fn holds(project: &TestProject, machine: Machine, archived: bool) -> Result<(), String> {
    let user = match machine {
        Machine::Own => project.user(),
        Machine::Other => UserDirs::below(&project.base().join("elsewhere")),
    };
    let holder = || project.holder();
    let store = opening::open_root(&project.root(), user, &holder).unwrap().project;
    let change = if archived {
        let name = store.archived().unwrap().ids.remove(0);
        store.archived_change(&name)
    } else {
        store.change(&project.id())
    };
    let verified = verify(&store, &change.unwrap(), None).map_err(|e| e.to_string())?;
    if verified.valid { Ok(()) } else { Err(format!("{:?}", verified.claims)) }
}

/// Changes one byte of one file, many times, and checks each time that this is found.
fn every_change_is_found(project: &TestProject, files: &[PathBuf], archived: bool) {
    let machines = [Machine::Own, Machine::Other];
    for machine in machines {
        holds(project, machine, archived).unwrap();
    }
    let check = |file: &PathBuf, place: usize, flip: u8, machine: Machine| {
        let right = fs::read(file).unwrap();
        let mut bytes = right.clone();
        bytes[place] ^= flip;
        fs::write(file, bytes).unwrap();
        let found = holds(project, machine, archived);
        fs::write(file, &right).unwrap();
        prop_assert!(found.is_err(), "{}, byte {place} ^ {flip}", file.display());
        Ok(())
    };
    // The ends, where a parser may not look.
    for file in files {
        let last = fs::metadata(file).unwrap().len() - 1;
        for machine in machines {
            for place in [0, usize::try_from(last).unwrap()] {
                check(file, place, 1, machine).unwrap();
            }
        }
    }
    let place = (0..files.len(), any::<prop::sample::Index>(), 1u8..=255, 0..machines.len());
    let mut runner = TestRunner::new(Config { cases: 96, ..Config::default() });
    runner
        .run(&place, |(file, place, flip, machine)| {
            let file = &files[file];
            let length = usize::try_from(fs::metadata(file).unwrap().len()).unwrap();
            check(file, place.index(length), flip, machines[machine])
        })
        .unwrap();
    for machine in machines {
        holds(project, machine, archived).unwrap();
    }
}

// contract T6
#[test]
fn one_changed_byte_in_what_a_claim_covers_is_found() {
    let project = complete();
    let own = DOCUMENTS.iter().chain(&["journal.jsonl"]).map(|name| project.path(name));
    let files: Vec<PathBuf> =
        own.chain(CODE.iter().map(|name| project.root().join(name))).collect();
    every_change_is_found(&project, &files, false);
}

// contract T6
#[test]
fn one_changed_byte_in_an_archived_change_is_found() {
    let project = complete();
    let (change, holder, by, now) = (&project.id(), &project.holder(), "ada", now());
    let (force, accept_stale, resume) = (None, None, false);
    archive::archive(
        &project.store(),
        &Request { change, force, accept_stale, drop: None, resume, by, holder, now },
    )
    .unwrap();
    let archive = project.root().join("agentd/archive");
    let dir = fs::read_dir(archive).unwrap().next().unwrap().unwrap().path();
    let names = DOCUMENTS.iter().chain(&["journal.jsonl"]);
    let files: Vec<PathBuf> = names.map(|name| dir.join(name)).collect();
    every_change_is_found(&project, &files, true);
}
