//! Archived changes where an ID is taken: each command shows them, or says that they are archived and
//! what can be done about it.

use test_project::TestProject;

/// The reference of all commands.
const REFERENCE: &str = include_str!("../../../../../docs/cli.md");
const MAIN: &str = include_str!("../../../../../testing/project/fixtures/auth-flow.md");
const APPROVED: &str = "phase: complete\ncode_review:\n  verdict: APPROVED\n  iteration: 1\n  reviewer: codex\n  at: 2026-11-04T12:00:00Z\n  run: 1";
const ID: &str = "add-oauth";

/// What a command does with an archived change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Shows it, with this in what it prints.
    Shows(&'static str),
    /// Says that it is archived, and by which command one continues.
    Refuses,
    /// Does something else, which a test of its own looks at.
    Other,
}
use Does::{Other, Refuses, Shows};

/// Each command that takes the ID of a change, as it is called.
const COMMANDS: &[(&[&str], Does)] = &[
    // It is archived already, which is a success.
    (&["archive", ID], Shows("add-oauth is archived already")),
    (&["bug", ID], Refuses),
    (&["challenge", ID], Refuses),
    (&["clarify", ID], Refuses),
    (&["cost", ID], Shows(ID)),
    (&["decide", ID], Refuses),
    (&["decide", ID, "accept"], Refuses),
    (&["diff", ID], Shows("auth-flow  edits R1")),
    (&["drop", ID, "--yes"], Refuses),
    (&["export", ID, "--output", "../add-oauth.tar"], Shows(ID)),
    (&["fix", ID], Refuses),
    // It is given back once its result was merged by hand; `landing` tests that.
    (&["give", ID], Other),
    (&["impl", ID], Refuses),
    (&["implement", ID], Refuses),
    (&["log", ID], Shows("archived")),
    (&["overlap", ID], Refuses),
    (&["plan", ID], Refuses),
    // It has a description, and begins another change of that ID, as `plan` does.
    (&["proposal", ID], Other),
    (&["rename", ID, "add-login"], Refuses),
    (&["reproposal", ID], Refuses),
    (&["review", ID], Refuses),
    (&["revise", ID], Refuses),
    (&["show", ID], Shows(ID)),
    (&["status", ID], Shows(ID)),
    // Nothing is left to do.
    (&["step", ID], Shows("nothing is left to do")),
    // Only with a remote.
    (&["take", ID], Other),
    (&["trace", ID], Shows(ID)),
    // Takes it back.
    (&["unarchive", ID], Other),
    (&["validate", ID], Shows("add-oauth (archived): 0 HIGH")),
    (&["verify", ID], Shows(ID)),
    // Serves until it is stopped.
    (&["view", ID], Other),
    // Plays its calls again, in another directory.
    (&["replay", ID], Other),
];

/// A change that agentd has archived, which edited one requirement and removed another.
fn archived() -> TestProject {
    let edited = MAIN.replace("within 200 ms", "within 100 ms");
    let project = TestProject::new()
        .root_file("agentd/specs/auth-flow.md", MAIN)
        .change(ID)
        .edit("STATE.yaml", "phase: proposed", APPROVED)
        .file("runs/0001-review.jsonl", "")
        .file("base/auth-flow.md", MAIN)
        .file("specs/auth-flow.md", edited)
        .repository();
    project.run(["archive", ID]).exits(0);
    project
}

#[test]
fn each_command_shows_an_archived_change_or_says_that_it_is_one() {
    let project = archived();
    let usages = REFERENCE.lines().filter_map(|line| line.strip_prefix("Usage: agentd "));
    let takes_id = |usage: &&str| usage.contains("[ID]") || usage.contains("<ID>");
    let commands = usages.filter(takes_id).filter_map(|usage| usage.split(' ').next());
    let commands: Vec<&str> = commands.collect();
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        let is_listed = COMMANDS.iter().any(|(args, _)| args[0] == command);
        assert!(is_listed, "`agentd {command}` is not in the table");
    }
    for (args, does) in COMMANDS {
        let before = project.contents();
        let run = match does {
            Other => continue,
            Shows(_) | Refuses => project.run(*args),
        };
        assert!(project.contents() == before, "{args:?} writes");
        let all = format!("{}{}", run.stdout, run.stderr);
        if let Shows(what) = does {
            assert!(all.contains(what) && !run.stderr.contains("error"), "{args:?}: {all}");
            continue;
        }
        assert_ne!(run.code, 0, "{args:?}: {all}");
        assert!(run.stderr.contains("`add-oauth` is archived"), "{args:?}: {all}");
        assert!(!run.stderr.contains("start it"), "{args:?}: {all}");
        for next in ["agentd status add-oauth", "agentd unarchive add-oauth"] {
            assert!(run.stderr.contains(next), "{args:?}: {all}");
        }
    }
}

/// Issue 19, part 6: the findings are where the change is now, and what it has removed was there.
#[test]
fn validate_looks_at_an_archived_change_where_it_is() {
    let removing = "---\nid: auth-flow\ntype: spec\ntitle: Auth\nversion: 2\nremoves: [R1]\n---\n\n# Specification: Auth\n\n## Overview\n\nLess.\n\n## Requirements\n\n## Acceptance Criteria\n";
    let project = archived();
    let name = project.run(["list", "--archived"]).fine().stdout;
    let name = name.split_whitespace().next().unwrap().to_owned();
    let dir = format!("agentd/archive/{name}");
    let open = project.names().into_iter().filter(|name| name.contains("changes/add-oauth"));
    assert_eq!(open.collect::<Vec<_>>(), Vec::<String>::new());
    let fine = project.run(["validate", ID]).exits(0).stdout;
    assert!(fine.contains("add-oauth (archived): 0 HIGH"), "{fine}");

    // R1 was in the main spec when the change began.
    project.write_root(&format!("{dir}/specs/auth-flow.md"), removing);
    project.write_root("agentd/specs/auth-flow.md", MAIN.replace("### R1", "### R9"));
    let is_removal = |it: &&serde_json::Value| it["code"] == "S012";
    let found = |which: &str| {
        let found = project.run(["validate", which, "--json"]).json();
        let all = found["diagnostics"].as_array().unwrap().clone();
        let is_placed = |it: &serde_json::Value| it["file"].as_str().unwrap().starts_with(&dir);
        assert!(all.iter().all(is_placed), "{found:#}");
        all.iter().filter(is_removal).count()
    };
    for which in [ID, &*name] {
        assert_eq!(found(which), 0);
    }
    std::fs::remove_file(project.root().join(&dir).join("base/auth-flow.md")).unwrap();
    assert_eq!(found(ID), 1);
    let found = project.run(["validate", ID]).exits(1).stdout;
    assert!(found.contains("agentd/specs/auth-flow.md has no such requirement"), "{found}");
    assert!(found.contains("\nNext: agentd validate --all\n"), "{found}");
    assert!(!found.contains("Next: edit"), "{found}");
}
