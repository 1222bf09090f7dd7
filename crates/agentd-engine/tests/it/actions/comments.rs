//! Comments of people, and the plan that each round of review has seen.

use std::thread;

use agentd_core::document::comments::{self as document, Anchor};
use agentd_core::document::round;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::stamp::Stamp;
use agentd_engine::change::comments::{self, CommentError, Fate, NewComment};
use agentd_engine::store::Holder;

use test_project::TestProject;

use super::{Tools as _, planned, read};

fn id() -> ChangeId {
    ChangeId::new("add-oauth").unwrap()
}

fn now() -> Stamp {
    "2026-02-03T04:05:06Z".parse().unwrap()
}

fn holder() -> Holder {
    Holder::this_process("test", now().moment())
}

fn add(project: &TestProject, file: &ChangeFile, text: &str) -> Result<u32, CommentError> {
    let new = NewComment { on: file, at: Anchor::Line(3), by: "alice", text };
    comments::add(&project.store(), &id(), &new, &holder(), now()).map(|comment| comment.number)
}

#[test]
fn open_comments_are_those_that_nobody_has_resolved() {
    let project = planned();
    assert_eq!(add(&project, &ChangeFile::Tasks, "one").unwrap(), 1);
    assert_eq!(add(&project, &ChangeFile::Proposal, "## two\n<!-- x").unwrap(), 2);
    let change = project.store().change(&id()).unwrap();
    let settle = |number, fate| {
        comments::settle(&project.store(), &id(), number, fate, "bob", &holder(), now())
    };
    let open = || -> Vec<String> {
        comments::open(&change).unwrap().iter().map(|comment| comment.text.to_string()).collect()
    };
    settle(1, Fate::Resolved).unwrap();
    assert_eq!(open(), ["## two\n<!-- x"]);
    settle(1, Fate::Open).unwrap();
    assert_eq!(open(), ["one", "## two\n<!-- x"]);
    assert!(matches!(settle(3, Fate::Open), Err(CommentError::NoSuchComment { number: 3, .. })));
    // A number is not used again, even when the comment is gone.
    let text = project.read("comments.md");
    assert_eq!(document::parse(&text).value.change_id, Some(id()));
}

#[test]
fn a_comment_needs_words_and_a_document() {
    let project = planned();
    assert!(matches!(add(&project, &ChangeFile::Tasks, " \n"), Err(CommentError::Empty)));
    let missing = add(&project, &ChangeFile::Review, "x");
    assert!(matches!(missing, Err(CommentError::NoSuchDocument { .. })), "{missing:?}");
    assert!(!project.root().join("agentd/changes/add-oauth/comments.md").exists());
    add(&project, &ChangeFile::Tasks, &"long ".repeat(10_000)).unwrap();
    assert!(project.read("comments.md").len() < 2 * comments::MAX_COMMENT_BYTES);
}

/// Lesson 9: commands in parallel lose nothing.
#[test]
fn many_comments_at_once_are_all_kept() {
    let project = planned();
    thread::scope(|scope| {
        for n in 0..20 {
            let project = &project;
            scope.spawn(move || add(project, &ChangeFile::Tasks, &format!("c{n}")).unwrap());
        }
    });
    let mut numbers: Vec<u32> = document::parse(&project.read("comments.md"))
        .value
        .comments
        .iter()
        .map(|comment| comment.number)
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
}

#[test]
fn agents_cannot_write_comments_or_rounds() {
    for path in ["comments.md", "rounds/0001.json"] {
        let path = agentd_core::rel_path::RelPath::new(path).unwrap();
        assert!(agentd_core::layout::agent_write_target(&id(), &path).is_err(), "{path}");
    }
}

#[test]
fn every_round_keeps_the_plan_that_it_has_seen() {
    let project = planned();
    let review = || {
        serde_json::json!({
            "change_id": "add-oauth", "verdict": "NEEDS_REVISION", "summary": "s",
            "issues": [{"severity": "low", "title": "t", "description": "d"}],
        })
    };
    let append = || {
        project.with(|session| {
            agentd_engine::tools::append_review(session, read(review()).unwrap()).unwrap();
        });
    };
    let now = || project.store().change(&id()).unwrap().snapshot().unwrap().documents.round();
    let plan = now();
    append();
    project.write("tasks.md", format!("{}\nMore.\n", project.read("tasks.md")));
    append();
    let round =
        |number: u32| round::parse(&project.read(&format!("rounds/{number:04}.json"))).unwrap();
    let (first, second) = (round(1), round(2));
    let files: Vec<&String> = first.files.keys().collect();
    assert_eq!(files, ["proposal.md", "specs/auth-flow.md", "specs/user-model.md", "tasks.md"]);
    assert_eq!(first, plan);
    assert_eq!(second.files["proposal.md"], plan.files["proposal.md"], "without the reviews");
    assert_eq!(second.files["tasks.md"], format!("{}\nMore.\n", plan.files["tasks.md"]));
    assert_eq!(now(), second);
    assert_eq!(round::parse("{"), None);
}
