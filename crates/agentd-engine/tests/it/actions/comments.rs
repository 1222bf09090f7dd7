//! Comments of people, and the plan that each round of review has seen.

use std::thread;

use agentd_core::document::comments::{self as document, Anchor, Commented, CommentedText};
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
    let on = Commented::Document(file.clone());
    let new = NewComment { on, at: Anchor::Line(3), quote: "", by: "alice", text };
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

/// A comment on a line stays with its words, whatever is written above it.
#[test]
fn a_comment_follows_its_words() {
    let project = planned();
    let spec = ChangeFile::Spec("auth-flow".parse().unwrap());
    let text = project.read("specs/auth-flow.md");
    let line = 1 + text.lines().position(|line| line.contains("MUST")).unwrap();
    let words = text.lines().nth(line - 1).unwrap().to_owned();
    let at = Anchor::Line(u32::try_from(line).unwrap());
    let on = Commented::Document(spec.clone());
    let new =
        |quote| NewComment { on: on.clone(), at: at.clone(), quote, by: "alice", text: "Why?" };
    let add =
        |quote| comments::add(&project.store(), &id(), &new(quote), &holder(), now()).unwrap();
    let whole = add("");
    assert_eq!((whole.quote.as_str(), whole.under.as_str()), (words.trim(), "R1: Provider"));
    // Words that were picked on a page are kept; what is not there is not.
    let picked: String = words.split(' ').take(3).collect::<Vec<_>>().join(" ");
    assert_eq!(add(&picked).quote.as_str(), picked);
    assert_eq!(add("not in the text").quote.as_str(), words.trim());
    let where_is = |comment: &document::Comment| {
        CommentedText::new(&project.read("specs/auth-flow.md")).line_of(comment)
    };
    assert_eq!(where_is(&whole), Some(line));
    project.write(
        "specs/auth-flow.md",
        text.replace("## Overview", "## Overview\n\nMore.\n\nYet more.\n"),
    );
    assert_eq!(where_is(&whole), Some(line + 5));
    project.write("specs/auth-flow.md", text.replace(&words, "Gone."));
    assert_eq!(where_is(&whole), None);
    let beyond = NewComment { at: Anchor::Line(9999), ..new("") };
    let beyond = comments::add(&project.store(), &id(), &beyond, &holder(), now());
    assert!(matches!(beyond, Err(CommentError::NoSuchDocument { .. })), "{beyond:?}");
}

#[test]
fn comments_are_answered_edited_and_removed() {
    let project = planned();
    let store = project.store();
    add(&project, &ChangeFile::Tasks, "one").unwrap();
    let settle = |fate| comments::settle(&store, &id(), 1, fate, "bob", &holder(), now()).unwrap();
    settle(Fate::Resolved);
    let answer =
        |number, text| comments::answer(&store, &id(), number, text, "bob", &holder(), now());
    let two = answer(1, "two").unwrap();
    assert_eq!((two.number, two.answers, two.at.clone()), (2, Some(1), Anchor::Line(3)));
    // It is one matter again, and stays one.
    assert_eq!(answer(2, "three").unwrap().answers, Some(1));
    let change = store.change(&id()).unwrap();
    let open = || comments::open(&change).unwrap().len();
    assert_eq!(open(), 3);
    settle(Fate::Resolved);
    assert_eq!(open(), 0);
    settle(Fate::Open);
    assert_eq!(open(), 3);
    assert!(matches!(answer(9, "x"), Err(CommentError::NoSuchComment { .. })));
    assert!(matches!(answer(1, " "), Err(CommentError::Empty)));
    let edit = |number, by| comments::edit(&store, &id(), number, "new", by, &holder());
    assert_eq!(edit(2, "bob").unwrap().text.as_str(), "new");
    assert!(matches!(edit(2, "alice"), Err(CommentError::NotYours { .. })));
    let remove = |number, by| comments::remove(&store, &id(), number, by, &holder());
    assert!(matches!(remove(1, "alice"), Err(CommentError::Answered { number: 1 })));
    assert!(matches!(remove(3, "alice"), Err(CommentError::NotYours { .. })));
    remove(3, "bob").unwrap();
    // The number is not used again.
    assert_eq!(answer(1, "four").unwrap().number, 4);
}

#[test]
fn code_is_commented_on_for_the_implementer() {
    let project = planned();
    let store = project.store();
    project.write_root("src/a.rs", "fn a() {\n    b();\n}\n");
    let add = |on: &str, at: Anchor, quote| {
        let on = on.parse().unwrap();
        let new = NewComment { on, at, quote, by: "alice", text: "No." };
        comments::add(&store, &id(), &new, &holder(), now())
    };
    assert_eq!(add("code/src/a.rs", Anchor::Line(2), "").unwrap().quote.as_str(), "b();");
    assert_eq!(
        add("code/src/a.rs", Anchor::Removed(2), "old();").unwrap().quote.as_str(),
        "old();"
    );
    assert_eq!(add("code/gone.rs", Anchor::Removed(1), "x").unwrap().quote.as_str(), "x");
    add("code", Anchor::Document, "").unwrap();
    project.write_root(".git/config", "[core]\n");
    let none = [
        ("code/none.rs", Anchor::Line(1)),
        ("code/src/a.rs", Anchor::Line(9)),
        // What git keeps for itself would be quoted in a prompt.
        ("code/.git/config", Anchor::Line(1)),
        ("code/.GIT/config", Anchor::Line(1)),
        ("code/sub/.git/config", Anchor::Line(1)),
    ];
    for (on, at) in none {
        let refused = add(on, at, "");
        assert!(matches!(refused, Err(CommentError::NoSuchDocument { .. })), "{refused:?}");
    }
    std::os::unix::fs::symlink("/etc", project.root().join("etc")).unwrap();
    assert!(add("code/etc/passwd", Anchor::Line(1), "").is_err());
    let change = store.change(&id()).unwrap();
    assert_eq!(comments::open(&change).unwrap(), []);
    assert_eq!(comments::open_on_code(&change).unwrap().len(), 4);
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
