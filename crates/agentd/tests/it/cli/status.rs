use agentd_core::diagnostic::Severity;

use test_project::TestProject;

#[test]
fn status_of_a_change() {
    let project = TestProject::new().change("add-oauth");
    let run = project.run(["status"]);
    insta::assert_snapshot!(run, @"
    exit 0
    add-oauth  proposed
    Sign in with OAuth.

    documents 0 HIGH, 0 MEDIUM, 0 LOW findings
    tasks     1 of 2 done
              data 1/1, logic 0/1
    cost      $0 for 0 calls
    last      proposal, [TIME]

    Next: agentd challenge add-oauth
    --- stderr
    ");
    assert_eq!(project.run(["status", "add-oauth"]).fine().stdout, run.stdout);
    insta::assert_snapshot!(project.run(["status", "--json"]), @r#"
    exit 0
    {
      "version": 1,
      "change_id": "add-oauth",
      "archived": null,
      "phase": "proposed",
      "standing": "ready",
      "running": null,
      "carried": null,
      "title": "Sign in with OAuth.",
      "created_at": "[TIME]",
      "updated_at": "[TIME]",
      "last_action": "proposal",
      "iteration": 0,
      "complexity": null,
      "verdict": null,
      "issues": null,
      "previous": [],
      "plan_review": null,
      "code_review": null,
      "tests": null,
      "foreign_reviews": [],
      "plan_changed_since_review": null,
      "stale": [],
      "record": null,
      "validation": {
        "high": 0,
        "medium": 0,
        "low": 0
      },
      "allowed": 0,
      "tasks": {
        "total": 2,
        "completed": 1
      },
      "layers": [
        {
          "layer": "data",
          "total": 1,
          "completed": 1
        },
        {
          "layer": "logic",
          "total": 1,
          "completed": 0
        }
      ],
      "calls": 0,
      "failed": 0,
      "cost_usd": 0.0,
      "tokens_in": 0,
      "tokens_out": 0,
      "forecast": null,
      "budget_usd": null,
      "git": null,
      "next": [
        "agentd challenge add-oauth"
      ]
    }
    --- stderr
    "#);
}

#[test]
fn status_puts_findings_first() {
    let project =
        TestProject::new().change("add-oauth").edit("tasks.md", "src/auth.rs", "/etc/passwd");
    insta::assert_snapshot!(project.run(["status"]), @"
    exit 0
    add-oauth  proposed
    Sign in with OAuth.

    documents 1 HIGH, 0 MEDIUM, 0 LOW findings
    tasks     1 of 2 done
              data 1/1, logic 0/1
    cost      $0 for 0 calls
    last      proposal, [TIME]

    Next: agentd validate add-oauth
      or: agentd plan add-oauth --auto
    --- stderr
    ");
    let json = project.run(["status", "--json"]).fine().json();
    assert_eq!(json["validation"]["high"], 1);
    assert_eq!(
        json["next"],
        serde_json::json!(["agentd validate add-oauth", "agentd plan add-oauth --auto"])
    );
}

#[test]
fn verdict_of_an_earlier_plan_is_marked() {
    let project =
        TestProject::new().change("add-oauth").challenged(&[Severity::High, Severity::Low]);
    insta::assert_snapshot!(project.run(["status"]), @"
    exit 0
    add-oauth  proposed
    Sign in with OAuth.

    plan      NEEDS_REVISION by codex, round 1: 1 HIGH, 0 MEDIUM, 1 LOW, [TIME]
    documents 0 HIGH, 0 MEDIUM, 0 LOW findings
    tasks     1 of 2 done
              data 1/1, logic 0/1
    cost      $0 for 0 calls
    last      proposal, [TIME]

    Next: agentd reproposal add-oauth --fresh
    --- stderr
    ");
    let json = project.run(["status", "--json"]).fine().json();
    assert_eq!(json["verdict"], "NEEDS_REVISION");
    assert_eq!(json["issues"], serde_json::json!({ "high": 1, "medium": 0, "low": 1 }));
    assert_eq!(json["plan_changed_since_review"], false);
    let project = project.edit("proposal.md", "People ask for it.", "People need it.");
    insta::assert_snapshot!(project.run(["status"]), @"
    exit 0
    add-oauth  proposed
    Sign in with OAuth.

    plan      NEEDS_REVISION by codex, round 1: 1 HIGH, 0 MEDIUM, 1 LOW, of an earlier plan, [TIME]
    stale     plan: it was edited since it was reviewed
    documents 0 HIGH, 0 MEDIUM, 0 LOW findings
    tasks     1 of 2 done
              data 1/1, logic 0/1
    cost      $0 for 0 calls
    last      proposal, [TIME]

    Next: agentd challenge add-oauth
    --- stderr
    ");
    let json = project.run(["status", "--json"]).fine().json();
    assert_eq!(json["plan_changed_since_review"], true);
}

#[test]
fn id_is_optional_if_one_change_is_open() {
    let none = TestProject::new();
    let error = none.run(["log", "--json"]).exits(1).json_error();
    assert_eq!(
        (&error["kind"], &error["message"]),
        (&"no_change".into(), &"no change is open".into())
    );
    let two = TestProject::new().change("add-oauth").begun("fix-bug");
    insta::assert_snapshot!(two.run(["log"]).transcript(), @r"
    exit 2
    --- stderr
    error: 2 changes are open: which one?

    hint: name one: add-oauth, fix-bug
    hint: see where each one stands: agentd list
    ");
    for command in ["validate", "show", "log"] {
        assert_eq!(none.run([command]).exits(1).stderr, none.run(["log"]).stderr);
        assert_eq!(two.run([command]).exits(2).stderr, two.run(["log"]).stderr);
        two.run([command, "add-oauth"]).fine();
    }
    assert_eq!(none.run(["decide", "fix"]).exits(1).stderr, none.run(["log"]).stderr);
    assert_eq!(two.run(["decide", "fix"]).exits(2).stderr, two.run(["log"]).stderr);
    let many = (0..30).fold(TestProject::new(), |project, i| project.begun(&format!("c{i}")));
    insta::assert_snapshot!(many.run(["log"]), @"
    exit 2
    --- stderr
    error: 30 changes are open: which one?

    hint: name one: c0, c1, c2, c3, c4, c5, c6, c7, …
    hint: see where each one stands: agentd list
    ");
}

/// Issue 19: without an ID, the project at a glance.
#[test]
fn status_of_the_project() {
    let none = TestProject::new();
    insta::assert_snapshot!(none.run(["status"]), @r#"
    exit 0
    project  0 changes open · 0 archived · 0 main specs

    Next: agentd plan <id> "<what you want>"
    --- stderr
    "#);
    let two = TestProject::new().change("add-oauth").begun("fix-bug");
    insta::assert_snapshot!(two.run(["status"]), @"
    exit 0
    project  2 changes open · 0 archived · 0 main specs

    fix-bug    proposed  open questions  clarify      -  -  [TIME]  -  -
    add-oauth  proposed  not challenged  challenge  1/2  -  [TIME]  -  Sign in with OAuth.

    Next: agentd clarify fix-bug
    --- stderr
    ");
    let one = TestProject::new().change("add-oauth");
    assert_eq!(one.run(["status", "--json"]).fine().json()["change_id"], "add-oauth");
    let all = one.run(["status", "--all", "--json"]).fine().json();
    assert_eq!(
        (&all["open"], &all["next"]),
        (&1.into(), &serde_json::json!(["agentd challenge add-oauth"]))
    );
}

#[test]
fn misspelled_id_names_the_nearest() {
    let project = TestProject::new().change("add-oauth").begun("fix-bug");
    let run = project.run(["status", "add-oatuh"]);
    insta::assert_snapshot!(run, @r"
    exit 1
    --- stderr
    error: there is no change `add-oatuh`

    hint: did you mean `add-oauth`?
    ");
    for args in [
        vec!["validate", "add-oatuh"],
        vec!["show", "add-oatuh"],
        vec!["show", "add-oatuh", "tasks"],
        vec!["decide", "add-oatuh", "fix"],
    ] {
        assert_eq!(project.run(args).transcript(), run.transcript());
    }
    let error = project.run(["status", "Add-OAuth", "--json"]).exits(1).json_error();
    assert_eq!(error["kind"], "no_such_change");
    assert_eq!(error["hints"], serde_json::json!(["did you mean `add-oauth`?"]));
    insta::assert_snapshot!(project.run(["status", "zzz"]), @"
    exit 1
    --- stderr
    error: there is no change `zzz`

    hint: see which changes are open: agentd list
    ");
    insta::assert_snapshot!(project.run(["status", "../../etc"]), @"
    exit 1
    --- stderr
    error: change id `../../etc` has '.' at position 1; ids are lower-case letters, digits and `-`, and start with a letter or digit

    hint: see which changes are open: agentd list
    ");
}

#[test]
fn status_of_archived_change() {
    let project =
        TestProject::new().root_file("agentd/archive/2026-11-04-add-oauth/proposal.md", "");
    insta::assert_snapshot!(project.run(["status", "add-oauth"]), @"
    exit 0
    add-oauth  new

    archive   agentd/archive/[DATE]-add-oauth
    tasks     0 of 0 done
    cost      $0 for 0 calls

    Next: agentd show add-oauth
    --- stderr
    ");
}

#[test]
fn corrupt_state_is_left_alone() {
    let mut errors = String::new();
    for corrupt in [
        &b"phase: ["[..],
        b"",
        b"\xff\xfe\x00",
        b"change_id: other\nphase: proposed\n",
        b"change_id: add-oauth\nphase: invented\n",
        b"change_id: add-oauth\nphase: proposed\nunknown_key: 1\n",
    ] {
        let project = TestProject::new().change("add-oauth").file("STATE.yaml", corrupt);
        let before = project.tree();
        let status = project.run(["status"]).exits(1);
        assert_eq!(status.stdout, "");
        for choice in ["fix", "accept"] {
            let decide = project.run(["decide", choice]);
            assert_eq!(decide.transcript(), status.transcript());
        }
        for args in [["status"].as_slice(), &["decide", "fix"], &["decide", "accept"]] {
            let error = project.run(args.iter().chain(&["--json"])).exits(1).json_error();
            let message = error["message"].as_str().unwrap();
            assert_eq!(status.stderr.lines().next(), Some(format!("error: {message}").as_str()));
        }
        errors.push_str(&status.stderr);
        let mut after = project.tree();
        after.retain(|path, _| !path.components().any(|part| part.as_os_str() == ".locks"));
        assert_eq!(before, after, "{corrupt:?}");
    }
    insta::assert_snapshot!(errors, @"
    error: cannot use the STATE.yaml of `add-oauth`: externally tagged enum expected scalar or mapping (line 1, column 8)

    hint: restore it: git checkout -- agentd/changes/add-oauth/STATE.yaml
    hint: agentd never overwrites a state that it cannot read
    error: cannot use the STATE.yaml of `add-oauth`: it is empty (line 1, column 1)

    hint: restore it: git checkout -- agentd/changes/add-oauth/STATE.yaml
    hint: agentd never overwrites a state that it cannot read
    error: `agentd/changes/add-oauth/STATE.yaml` is not valid UTF-8: bad byte at offset 0
    error: cannot use the STATE.yaml of `add-oauth`: it is the state of `other`, not of `add-oauth`

    hint: restore it: git checkout -- agentd/changes/add-oauth/STATE.yaml
    hint: agentd never overwrites a state that it cannot read
    error: cannot use the STATE.yaml of `add-oauth`: unknown variant `invented`, expected one of proposed, challenged, rejected, implementing, complete, archived (line 2, column 8)

    hint: restore it: git checkout -- agentd/changes/add-oauth/STATE.yaml
    hint: agentd never overwrites a state that it cannot read
    error: cannot use the STATE.yaml of `add-oauth`: unknown field `unknown_key`, expected one of change_id, phase, created_at, updated_at, description, session_id, complexity, track, forecast, last_action, iteration, plan_review, code_review, revision, question, git, test_run, reproduction, archived_from, renamed, decisions, llm_calls, total_cost, total_tokens_in, total_tokens_out (line 3, column 1)

    hint: restore it: git checkout -- agentd/changes/add-oauth/STATE.yaml
    hint: agentd never overwrites a state that it cannot read
    ");
}

/// An interactive client begins a change by writing its documents; that is no fault.
#[test]
fn change_without_state_is_new() {
    let project = TestProject::new().change("add-oauth");
    std::fs::remove_file(project.root().join("agentd/changes/add-oauth/STATE.yaml")).unwrap();
    insta::assert_snapshot!(project.run(["status"]), @"
    exit 0
    add-oauth  new
    Sign in with OAuth.

    documents 0 HIGH, 0 MEDIUM, 0 LOW findings
    tasks     1 of 2 done
              data 1/1, logic 0/1
    cost      $0 for 0 calls

    Next: agentd plan add-oauth
    --- stderr
    ");
    let json = project.run(["status", "--json"]).fine().json();
    assert!(json["phase"].is_null() && json["calls"] == 0, "{json:#}");
    insta::assert_snapshot!(project.run(["list"]), @"
    exit 0
    add-oauth  new  new  plan  1/2  -  -  -  Sign in with OAuth.
    --- stderr
    ");
}
