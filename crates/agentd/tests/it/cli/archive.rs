//! `archive`, `unarchive`, `overlap` and `trace`.

use std::fs;

use agentd_core::hash::Digest;
use agentd_engine::store::UserDirs;
use serde_json::json;

use test_project::TestProject;

const MAIN: &str = include_str!("../../../../../testing/project/fixtures/auth-flow.md");

/// How a state records an approval.
const APPROVED: &str = "code_review:\n  verdict: APPROVED\n  iteration: 1\n  reviewer: codex\n  at: 2026-11-04T12:00:00Z\n  run: 1";

/// The main spec as the change edits it.
fn edited() -> String {
    MAIN.replace("within 200 ms", "within 100 ms")
}

/// A spec without its frontmatter, which has a version and times.
fn body(spec: &str) -> &str {
    spec.splitn(3, "---\n").nth(2).unwrap()
}

/// A change that is complete and edits R1 of a main spec; its base is that main spec.
fn project() -> TestProject {
    TestProject::new()
        .root_file("agentd/specs/auth-flow.md", MAIN)
        .change("add-oauth")
        .edit("STATE.yaml", "phase: proposed", &format!("phase: complete\n{APPROVED}"))
        .file("runs/0001-review.jsonl", "")
        .file("base/auth-flow.md", MAIN)
        .file("specs/auth-flow.md", edited())
}

/// The main spec was edited since the change began.
fn contradicted() -> TestProject {
    project().root_file("agentd/specs/auth-flow.md", MAIN.replace("within 200 ms", "within 300 ms"))
}

/// Everything but the locks.
fn files(project: &TestProject) -> Vec<(String, Vec<u8>)> {
    let names = project.names().into_iter().filter(|name| !name.contains(".locks"));
    names
        .map(|name| {
            let bytes = fs::read(project.root().join(&name)).unwrap_or_default();
            (name, bytes)
        })
        .collect()
}

#[test]
fn archive_reports_path_and_totals() {
    let project = project();
    insta::assert_snapshot!(project.run(["archive"]), @"
    exit 0
    add-oauth is archived in agentd/archive/[DATE]-add-oauth
      auth-flow  ~R1
    1 requirement edited, in 1 spec
    --- stderr
    To undo this: agentd unarchive add-oauth
    ");
    assert_eq!(body(&project.read_root("agentd/specs/auth-flow.md")), body(&edited()));
    insta::assert_snapshot!(project.run(["list", "--archived"]), @"
    exit 0
    [DATE]-add-oauth  -  APPROVED  -  Sign in with OAuth.
    --- stderr
    ");
    insta::assert_snapshot!(project.run(["archive", "add-oauth"]), @"
    exit 0
    add-oauth is archived already in agentd/archive/[DATE]-add-oauth
    --- stderr
    ");
}

/// contract, section 4: `--json` of archive
#[test]
fn archive_json() {
    insta::assert_snapshot!(project().run(["archive", "add-oauth", "--json"]), @r#"
    exit 0
    {
      "version": 1,
      "action": "archived",
      "change_id": "add-oauth",
      "phase": "archived",
      "verdict": "APPROVED",
      "iteration": 0,
      "issues": null,
      "cost_usd": 0.0,
      "agents": {},
      "next": [],
      "path": "agentd/archive/[DATE]-add-oauth",
      "specs": [
        {
          "spec": "auth-flow",
          "created": false,
          "added": [],
          "edited": [
            "R1"
          ],
          "removed": [],
          "renamed": [],
          "other": []
        }
      ],
      "renumbered": [],
      "unlisted": [],
      "totals": {
        "specs": 1,
        "added": 0,
        "edited": 1,
        "removed": 0,
        "renamed": 0
      }
    }
    --- stderr
    "#);
}

#[test]
fn archive_dry_run_prints_a_diff() {
    let project = project();
    let before = files(&project);
    let run = project.run(["archive", "--dry-run"]);
    insta::assert_snapshot!(run, @r#"
    exit 0
    --- a/agentd/specs/auth-flow.md
    +++ b/agentd/specs/auth-flow.md
    @@ -2,9 +2,9 @@
     id: auth-flow
     type: spec
     title: "Auth flow"
    -version: 1
    +version: 2
     created_at: [TIME]
    -updated_at: [TIME]
    +updated_at: [TIME]
     ---

     # Specification: Auth flow
    @@ -19,7 +19,7 @@

     **Priority**: high

    -The server MUST answer a sign-in within 200 ms.
    +The server MUST answer a sign-in within 100 ms.

     ## Acceptance Criteria

    --- stderr
    1 requirement edited, in 1 spec
    "#);
    assert_eq!(files(&project), before);
    let project = project.edit("STATE.yaml", "phase: complete", "phase: proposed");
    let unfinished = project.run(["archive", "--dry-run"]).exits(0);
    // The diff names the second in which it was made.
    assert_eq!(project.mask(&unfinished.stdout), project.mask(&run.stdout));
    insta::assert_snapshot!(unfinished.stderr, @"
    1 requirement edited, in 1 spec
    warning: it would not be archived now: a change that is proposed cannot be archived: its implementation is not approved
    ");
}

#[test]
fn conflict_shows_all_texts() {
    let project = contradicted();
    let before = files(&project);
    let run = project.run(["archive"]);
    insta::assert_snapshot!(run, @"
    exit 1
    conflict: auth-flow: R1 was edited in the main spec too, and differently
    <<<<<<< agentd/specs/auth-flow.md
    ### R1: Sign in

    **Priority**: high

    The server MUST answer a sign-in within 300 ms.
    ||||||| when the change began
    ### R1: Sign in

    **Priority**: high

    The server MUST answer a sign-in within 200 ms.
    =======
    ### R1: Sign in

    **Priority**: high

    The server MUST answer a sign-in within 100 ms.
    >>>>>>> agentd/changes/add-oauth/specs/auth-flow.md

    --- stderr
    error: 1 edit of the change and of the main specs contradict each other
      cause: the main specs have changed since the change was started; nothing was archived

    hint: edit agentd/changes/add-oauth/specs/auth-flow.md to say what you want to keep, then: agentd archive add-oauth --continue
    hint: to keep the text of the main spec, remove the piece from the change's spec, then: agentd archive add-oauth
    ");
    let as_json = project.run(["archive", "--json"]);
    insta::assert_snapshot!(as_json, @r####"
    exit 1
    {
      "version": 1,
      "error": {
        "kind": "conflict",
        "message": "1 edit of the change and of the main specs contradict each other",
        "cause": "the main specs have changed since the change was started; nothing was archived",
        "hints": [
          "edit agentd/changes/add-oauth/specs/auth-flow.md to say what you want to keep, then: agentd archive add-oauth --continue",
          "to keep the text of the main spec, remove the piece from the change's spec, then: agentd archive add-oauth"
        ],
        "conflicts": [
          {
            "spec": "auth-flow",
            "what": "R1",
            "kind": "both_edited",
            "base": "### R1: Sign in\n\n**Priority**: high\n\nThe server MUST answer a sign-in within 200 ms.",
            "main": "### R1: Sign in\n\n**Priority**: high\n\nThe server MUST answer a sign-in within 300 ms.",
            "change": "### R1: Sign in\n\n**Priority**: high\n\nThe server MUST answer a sign-in within 100 ms."
          }
        ]
      }
    }
    --- stderr
    "####);
    assert_eq!(project.run(["archive", "--dry-run"]).exits(1).stdout, run.stdout);
    assert_eq!(files(&project), before);
    insta::assert_snapshot!(project.run(["archive", "--continue"]), @"
    exit 0
    add-oauth is archived in agentd/archive/[DATE]-add-oauth
      auth-flow  ~R1
    1 requirement edited, in 1 spec
    --- stderr
    To undo this: agentd unarchive add-oauth
    ");
    assert_eq!(body(&project.read_root("agentd/specs/auth-flow.md")), body(&edited()));
}

#[test]
fn incomplete_change_needs_a_reason() {
    let project = project().edit("STATE.yaml", "phase: complete", "phase: implementing");
    insta::assert_snapshot!(project.run(["archive"]), @"
    exit 1
    --- stderr
    error: a change that is implementing cannot be archived: its implementation is not approved

    hint: see what comes next: agentd status add-oauth
    ");
    project.run(["archive", "--force"]).exits(2);
    insta::assert_snapshot!(project.run(["archive", "--force", " "]), @"
    exit 2
    --- stderr
    error: invalid value ' ' for '--force <REASON>': say why, in a few words

    For more information, try '--help'.
    ");
    project.run(["archive", "--force", "done by hand"]).exits(0);
    insta::assert_snapshot!(project.run(["unarchive", "add-oauth"]), @"
    exit 0
    add-oauth is open again in agentd/changes/add-oauth
    1 main spec restored
    --- stderr
    ");
    assert_eq!(project.run(["status", "--json"]).fine().json()["phase"], "implementing");
}

#[test]
fn unarchive_restores_or_refuses() {
    let project = project();
    let before = files(&project);
    project.run(["archive"]).exits(0);
    insta::assert_snapshot!(project.run(["unarchive", "add-oauth", "--json"]), @r#"
    exit 0
    {
      "version": 1,
      "action": "unarchived",
      "change_id": "add-oauth",
      "phase": "complete",
      "path": "agentd/changes/add-oauth",
      "specs": [
        "agentd/specs/auth-flow.md"
      ]
    }
    --- stderr
    "#);
    assert_eq!(files(&project), before);
    project.run(["archive"]).exits(0);
    let project = project.root_file("agentd/specs/auth-flow.md", "Mine.\n");
    insta::assert_snapshot!(project.run(["unarchive", "add-oauth", "--json"]), @r#"
    exit 1
    {
      "version": 1,
      "error": {
        "kind": "changed_since",
        "message": "`agentd/specs/auth-flow.md` has changed since `add-oauth` was archived",
        "cause": "agentd/specs/auth-flow.md",
        "hints": [
          "find later changes, and unarchive them first: agentd list --archived"
        ]
      }
    }
    --- stderr
    "#);
    insta::assert_snapshot!(project.run(["unarchive", "none", "--json"]), @r#"
    exit 1
    {
      "version": 1,
      "error": {
        "kind": "not_archived",
        "message": "there is no archived change `none`",
        "cause": null,
        "hints": [
          "see which changes are archived: agentd list --archived"
        ]
      }
    }
    --- stderr
    "#);
}

#[test]
fn overlap_lists_changes() {
    let project = TestProject::new().change("add-oauth");
    insta::assert_snapshot!(project.run(["overlap"]), @"
    exit 0
    --- stderr
    No two open changes touch the same requirement, scenario or file.
    ");
    let project = project.change("add-login");
    insta::assert_snapshot!(project.run(["overlap"]), @"
    exit 0
    requirement  auth-flow:R1
                 add-login adds it
                 add-oauth adds it
    scenario     auth-flow: a wrong password
                 add-login touches it
                 add-oauth touches it
    scenario     auth-flow: signing in
                 add-login touches it
                 add-oauth touches it
    file         src/auth.rs
                 add-login edits it
                 add-oauth edits it
    file         src/session.rs
                 add-login adds it
                 add-oauth adds it
    --- stderr
    ");
    let document = project.run(["overlap", "add-login", "--json"]).fine().json();
    insta::assert_snapshot!(format!("{:#}", document["overlaps"][0]), @r#"
    {
      "kind": "requirement",
      "what": "auth-flow:R1",
      "changes": [
        {
          "change_id": "add-login",
          "how": "adds"
        },
        {
          "change_id": "add-oauth",
          "how": "adds"
        }
      ]
    }
    "#);
    project.run(["overlap", "none"]).exits(1);
}

#[test]
fn trace_from_requirement_to_review() {
    let project = project();
    insta::assert_snapshot!(project.run(["trace", "auth-flow:R1"]), @"
    exit 0
    auth-flow:R1  Sign in
      change    add-oauth edits it (complete)
      task      1.1   done    Keep sessions
      file                    CREATE src/session.rs
      task      2.1   pending Sign in
      file                    MODIFY src/auth.rs
      scenario  Signing in
      review    APPROVED by codex, round 1
    --- stderr
    ");
    let document = project.run(["trace", "add-oauth", "--json"]).fine().json();
    assert_eq!(document["traces"][0]["requirement"], "auth-flow:R1");
    insta::assert_snapshot!(project.run(["trace", "auth-flow:R99"]), @"
    exit 1
    --- stderr
    error: no change touches a requirement `auth-flow:R99`

    hint: see which changes are open: agentd list
    hint: see which specs there are: agentd list --specs
    ");
    project.run(["trace", "R1:x"]).exits(2);
}

#[test]
fn finished_archive_is_reported_once() {
    let project = project();
    project.run(["archive"]).exits(0);
    let listed = project.run(["list", "--archived", "--json"]).fine().json();
    let name = listed["archived"][0].as_str().unwrap().to_owned();
    let digest = Digest::of("");
    let journal = json!({
        "action": "archive", "change_id": "add-oauth", "name": name, "record": digest,
    });
    let root = project.root().canonicalize().unwrap();
    let state = UserDirs::below(&project.home()).state_path(&root).unwrap();
    fs::write(state.join("archive.json"), journal.to_string()).unwrap();
    insta::assert_snapshot!(project.run(["list"]), @r#"
    exit 0
    --- stderr
    warning: archiving `add-oauth` was interrupted; it is finished now
    No change is open.
    1 change archived: agentd list --archived

    Next: agentd plan <id> "<what you want>"
    "#);
    insta::assert_snapshot!(project.run(["list"]), @r#"
    exit 0
    --- stderr
    No change is open.
    1 change archived: agentd list --archived

    Next: agentd plan <id> "<what you want>"
    "#);
}

/// A phase is a word that anybody who can write to the file can write.
#[test]
fn complete_without_approving_run() {
    for (from, to) in [
        (APPROVED, "complexity: low"),
        ("verdict: APPROVED", "verdict: NEEDS_FIX"),
        ("run: 1", "run: 2"),
    ] {
        let project = project().edit("STATE.yaml", from, to);
        let before = files(&project);
        let run = project.run(["archive"]);
        insta::allow_duplicates! { insta::assert_snapshot!(run, @r#"
        exit 1
        --- stderr
        error: a change that is complete cannot be archived: no run of a reviewer is known that has approved its code

        hint: archive it anyway, if you have reviewed the code yourself: agentd archive add-oauth --force "<why>"
        "#); }
        assert_eq!(files(&project), before, "{to}");
        project.run(["archive", "--force", "looked at it"]).exits(0);
    }
}

/// Issue 19: what only reads takes archived changes by ID and by the name of their directory.
#[test]
fn archived_changes_can_be_read() {
    let project = project();
    project.run(["archive"]).exits(0);
    let listed = project.run(["list", "--archived", "--json"]).exits(0).json();
    let name = listed["archived"][0].as_str().unwrap().to_owned();
    for which in ["add-oauth", &*name] {
        let json = |args: &[&str]| project.run(args.iter().chain(&["--json"])).exits(0).json();
        let status = json(&["status", which]);
        assert_eq!(status["change_id"], "add-oauth");
        assert_eq!((&status["phase"], &status["standing"]), (&json!("archived"), &json!("done")));
        assert_eq!(status["archived"], json!(name));
        let next = json!(["agentd show add-oauth", "agentd unarchive add-oauth"]);
        assert_eq!(status["next"], next);
        assert_eq!(json(&["log", which])["change_id"], "add-oauth");
        assert_eq!(json(&["cost", which])["archived"], json!(name));
        let shown = json(&["show", which, "tasks"]);
        assert_eq!(shown["file"], json!(format!("agentd/archive/{name}/tasks.md")));
        assert_eq!(json(&["trace", which])["traces"][0]["archived"], json!(name));
        // It was made by hand: nothing is proven, and the change was found.
        let verified = project.run(["verify", which, "--json"]).exits(1).json();
        assert_eq!(verified["changes"][0]["phase"], "archived");
        let tar = project.base().join(format!("{which}.tar"));
        let output = tar.to_str().unwrap();
        assert_eq!(json(&["export", which, "--output", output])["change_id"], "add-oauth");
    }
    // What would change it does not.
    for command in ["plan", "challenge", "impl", "decide", "revise", "drop"] {
        let run = project.run([command, "add-oauth"]);
        assert_ne!(run.code, 0, "{command}");
    }
    let unarchive = "take it back: agentd unarchive add-oauth";
    for command in ["challenge", "impl", "decide", "revise", "drop"] {
        let error = project.run([command, "add-oauth", "--json"]).exits(1).json_error();
        assert_eq!(error["hints"][1], unarchive, "{command}");
    }
}

/// Issue 19, part 6: commands for open changes say where it is, and nothing is asked or begun before.
#[test]
fn archived_change_is_called_archived() {
    let project = project();
    project.run(["archive"]).exits(0);
    for args in [
        &["overlap", "add-oauth"][..],
        &["decide", "add-oauth"],
        &["impl", "add-oauth"],
        &["plan", "add-oauth"],
        &["revise", "add-oauth"],
        &["drop", "add-oauth", "--yes"],
    ] {
        let refused = project.run(args).exits(1);
        assert_eq!(
            refused.stderr.lines().next(),
            Some("error: `add-oauth` is archived"),
            "{args:?}"
        );
        assert!(refused.stderr.contains("hint: take it back: agentd unarchive add-oauth"));
    }
}
