use std::process::Stdio;

use agentd_core::diagnostic::Severity::{High, Low, Medium};
use agentd_core::state;
use agentd_engine::change::documents::update_state;

use test_project::TestProject;

/// A plan that needs revision.
fn waiting() -> TestProject {
    TestProject::new().change("add-oauth").challenged(&[High])
}

/// W5: without a decision the question is shown, with what can be answered and how. C34: after three
/// rounds it is another one.
#[test]
fn question_is_shown_with_its_commands() {
    let project = waiting();
    let before = project.contents();
    insta::assert_snapshot!(project.run(["decide", "add-oauth"]), @r#"
    exit 0
    add-oauth: 1 HIGH, 0 MEDIUM, 0 LOW issues
    The plan needs revision. What next?

      Auto-fix and rechallenge (recommended)
        agentd decide add-oauth fix && agentd plan add-oauth

      Review manually
        agentd show add-oauth challenge

      Stop here
        agentd decide add-oauth stop

    To say how it is to be fixed: agentd decide add-oauth fix --note "<what the planner should know>"
    --- stderr
    "#);
    assert_eq!(project.contents(), before, "nothing is written");
    let minor = TestProject::new().change("add-oauth").challenged(&[Low]);
    insta::assert_snapshot!(minor.run(["decide", "--json"]), @r#"
    exit 0
    {
      "version": 1,
      "change_id": "add-oauth",
      "phase": "proposed",
      "verdict": "NEEDS_REVISION",
      "iteration": 0,
      "issues": {
        "high": 0,
        "medium": 0,
        "low": 1
      },
      "question": "The plan needs revision. What next?",
      "choices": [
        {
          "choice": "fix",
          "label": "Auto-fix and rechallenge (recommended)",
          "commands": [
            "agentd decide add-oauth fix",
            "agentd plan add-oauth"
          ]
        },
        {
          "choice": "accept",
          "label": "Accept it with its minor issues",
          "commands": [
            "agentd decide add-oauth accept"
          ]
        },
        {
          "choice": "review",
          "label": "Review manually",
          "commands": [
            "agentd show add-oauth challenge"
          ]
        },
        {
          "choice": "stop",
          "label": "Stop here",
          "commands": [
            "agentd decide add-oauth stop"
          ]
        }
      ]
    }
    --- stderr
    "#);
    for project in [&project, &minor] {
        rounds(project, 3);
    }
    let labels = |project: &TestProject| -> Vec<String> {
        let json = project.run(["decide", "--json"]).fine().json();
        assert_eq!(json["question"], "The plan still needs revision after 3 rounds. What next?");
        let choices = json["choices"].as_array().unwrap().iter();
        choices.map(|choice| choice["label"].as_str().unwrap().to_owned()).collect()
    };
    let [view, next, stop] = ["View the issues", "Continue with another round", "Stop here"];
    assert_eq!(labels(&project), [view, next, stop], "C11");
    assert_eq!(labels(&minor), ["Implement it with its minor issues", view, next, stop]);
}

/// So many rounds of revision have been.
fn rounds(project: &TestProject, rounds: u32) {
    let now = test_project::now();
    update_state(&project.store(), &project.id(), &project.holder(), now, |state| {
        state.iteration = rounds;
        Ok(())
    })
    .unwrap();
}

/// W5
#[test]
fn where_nothing_waits_there_is_nothing_to_decide() {
    use agentd_core::document::review_block::PlanVerdict::{Approved, Rejected};
    let planned = || TestProject::new().change("add-oauth");
    let reviewed = |verdict| {
        let project = planned();
        project.plan_reviewed(verdict, test_project::now());
        project
    };
    let edit = |project: TestProject| project.edit("tasks.md", "src/auth.rs", "src/other.rs");
    let mut said = String::new();
    for project in [
        TestProject::new().begun("add-oauth"),
        planned(),
        edit(waiting()),
        reviewed(Approved),
        edit(reviewed(Approved)),
        reviewed(Rejected),
    ] {
        let before = project.read("STATE.yaml");
        let mut hint = String::new();
        for args in
            [&["decide"][..], &["decide", "fix"], &["decide", "accept"], &["decide", "stop"]]
        {
            let run = project.run(args.iter().copied().chain(["--json"])).exits(1);
            let error = run.json_error();
            assert_eq!(error["kind"], "nothing_to_decide", "{args:?}: {error}");
            hint = format!(
                "{}\n  {}\n",
                error["message"].as_str().unwrap(),
                error["hints"][0].as_str().unwrap()
            );
        }
        said.push_str(&hint);
        assert_eq!(project.read("STATE.yaml"), before);
    }
    insta::assert_snapshot!(said, @"
    `add-oauth` has nothing to decide: it has no plan yet
      continue with: agentd plan add-oauth
    `add-oauth` has nothing to decide: its plan was not challenged yet
      continue with: agentd plan add-oauth
    `add-oauth` has nothing to decide: its plan was edited since it was challenged
      continue with: agentd plan add-oauth
    `add-oauth` has nothing to decide: its plan is approved
      continue with: agentd impl add-oauth
    `add-oauth` has nothing to decide: its plan was edited since it was approved
      continue with: agentd plan add-oauth
    `add-oauth` has nothing to decide: its plan is rejected
      continue with: agentd show add-oauth
    ");
}

/// First use M4: decisions are made by whom git knows, and else by whom the system knows.
#[test]
fn who_decides_is_named_as_in_a_commit() {
    let by = |settings: &[(&str, &str)]| {
        let project = waiting().programs(&["git"]);
        let mut command = project.command(["decide", "stop"]);
        let config = project.base().join("gitconfig");
        let set = |(key, value): &(&str, &str)| format!("[user]\n{key} = {value}\n");
        std::fs::write(&config, settings.iter().map(set).collect::<String>()).unwrap();
        command.env("GIT_CONFIG_GLOBAL", config).env("GIT_CONFIG_NOSYSTEM", "1");
        project.finish(&mut command).fine();
        project.state().decisions.pop().unwrap().by.to_string()
    };
    let [name, email] = [("name", "Ada Lovelace"), ("email", "ada@example.org")];
    assert_eq!(by(&[name, email]), "Ada Lovelace <ada@example.org>");
    assert_eq!(by(&[name]), "Ada Lovelace");
    assert_eq!(by(&[email]), "ada@example.org");
    assert_eq!(by(&[]), "ada", "the name of the login");
    assert_eq!(by(&[("name", "first"), ("name", "last")]), "last");
}

#[test]
fn decision_is_recorded() {
    let project = waiting();
    let run = project.run(["decide", "add-oauth", "stop", "--note", "not this year"]);
    insta::assert_snapshot!(run.transcript(), @"
    exit 0
    add-oauth is proposed; the decision is recorded

    To continue later: agentd reproposal add-oauth --fresh
    --- stderr
    ");
    insta::assert_snapshot!(project.read_masked("STATE.yaml"), @r#"
    # Written by agentd. Change it with agentd's commands, not by hand.
    change_id: add-oauth
    phase: proposed
    created_at: [TIME]
    updated_at: [TIME]
    last_action: decide
    iteration: 0
    plan_review:
      verdict: "NEEDS_REVISION"
      plan_hash: "sha256:[DIGEST]"
      iteration: 0
      reviewer: codex
      at: [TIME]
    decisions:
      - choice: stop
        note: "not this year"
        by: ada
        at: [TIME]
        plan_hash: "sha256:[DIGEST]"
    llm_calls: []
    total_cost: 0.0
    total_tokens_in: 0
    total_tokens_out: 0
    "#);
    insta::assert_snapshot!(project.run(["decide", "fix", "--json"]), @r#"
    exit 0
    {
      "version": 1,
      "action": "decided",
      "change_id": "add-oauth",
      "phase": "proposed",
      "choice": "fix",
      "decisions": 2,
      "next": [
        "agentd reproposal add-oauth --fresh"
      ]
    }
    --- stderr
    "#);
}

#[test]
fn note_is_one_line() {
    let project = waiting();
    let note = "\"quoted\": {yaml}\n---\nphase: archived # \u{1b}[0m";
    project.run(["decide", "fix", "--note", note]).fine();
    let json = project.run(["status", "--json"]).fine().json();
    assert_eq!(json["phase"], "proposed");
    insta::assert_snapshot!(project.read_masked("STATE.yaml"), @r#"
    # Written by agentd. Change it with agentd's commands, not by hand.
    change_id: add-oauth
    phase: proposed
    created_at: [TIME]
    updated_at: [TIME]
    last_action: decide
    iteration: 0
    plan_review:
      verdict: "NEEDS_REVISION"
      plan_hash: "sha256:[DIGEST]"
      iteration: 0
      reviewer: codex
      at: [TIME]
    decisions:
      - choice: fix
        note: "\"quoted\": {yaml} --- phase: archived # [0m"
        by: ada
        at: [TIME]
        plan_hash: "sha256:[DIGEST]"
    llm_calls: []
    total_cost: 0.0
    total_tokens_in: 0
    total_tokens_out: 0
    "#);
}

/// Lesson 9.
#[test]
fn forty_parallel_decisions_are_recorded() {
    let project = waiting();
    let start = |i: usize| {
        let note = format!("n{i}");
        let mut command = project.command(["decide", "add-oauth", "stop", "--note", &note]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<_> = (0..40).map(start).collect();
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let state = state::parse(&project.read("STATE.yaml"), &project.id()).unwrap();
    let mut notes: Vec<&str> = state.decisions.iter().map(|made| made.note.as_str()).collect();
    let mut expected: Vec<String> = (0..40).map(|i| format!("n{i}")).collect();
    notes.sort_unstable();
    expected.sort_unstable();
    assert_eq!(notes, expected);
    let json = project.run(["decide", "stop", "--json"]).fine().json();
    assert_eq!(json["decisions"], 41);
}

#[test]
fn only_minor_issues_are_accepted() {
    for minor in [&[][..], &[Low, Low], &[Medium, Low]] {
        let project = TestProject::new().change("add-oauth").challenged(minor);
        let run = project.run(["decide", "add-oauth", "accept"]).fine();
        assert_eq!(
            run.stdout,
            "add-oauth is challenged; the decision is recorded\n\nNext: agentd impl add-oauth\n"
        );
        assert_eq!(project.run(["status", "--json"]).json()["phase"], "challenged");
    }
    for major in [&[High][..], &[Medium, Medium], &[High, Low]] {
        let project = TestProject::new().change("add-oauth").challenged(major);
        let before = project.read("STATE.yaml");
        let run = project.run(["decide", "add-oauth", "accept"]);
        insta::allow_duplicates! { insta::assert_snapshot!(run, @"
        exit 1
        --- stderr
        error: a change that is proposed cannot be accepted with minor issues: HIGH issues or more than one MEDIUM issue are left

        hint: see what comes next: agentd status add-oauth
        "); }
        assert_eq!(project.read("STATE.yaml"), before, "{major:?}");
        let error = project.run(["decide", "accept", "--json"]).exits(1).json_error();
        assert_eq!(error["kind"], "refused");
    }
}

#[test]
fn only_reviewed_plan_is_accepted() {
    let never = TestProject::new().change("add-oauth");
    insta::assert_snapshot!(never.run(["decide", "accept"]), @"
    exit 1
    --- stderr
    error: `add-oauth` has nothing to decide: its plan was not challenged yet

    hint: continue with: agentd plan add-oauth
    ");
    let edited = TestProject::new().change("add-oauth").challenged(&[Low]).edit(
        "tasks.md",
        "src/auth.rs",
        "src/other.rs",
    );
    let before = edited.read("STATE.yaml");
    insta::assert_snapshot!(edited.run(["decide", "accept"]), @"
    exit 1
    --- stderr
    error: `add-oauth` has nothing to decide: its plan was edited since it was challenged

    hint: continue with: agentd plan add-oauth
    ");
    assert_eq!(edited.read("STATE.yaml"), before);
}

#[test]
fn unknown_choice_is_a_usage_error() {
    let project = TestProject::new().change("add-oauth");
    insta::assert_snapshot!(project.run(["decide", "add-oauth", "approve"]), @"
    exit 2
    --- stderr
    error: invalid value 'approve' for '[CHOICE]'
      [possible values: fix, accept, stop, answer]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(project.run(["decide", "--note", "x"]), @"
    exit 2
    --- stderr
    error: --note belongs to a decision

    hint: name it: agentd decide add-oauth <fix|accept|stop> --note …
    ");
}

/// Attack L3: a full disk looked like a lock of another process.
#[test]
fn unwritable_lock_file_names_its_cause() {
    let project = TestProject::new().change("add-oauth");
    let agentd = project.command(["decide", "add-oauth", "stop", "--json"]);
    let mut limited = std::process::Command::new("/bin/sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""])
        .arg(agentd.get_program())
        .args(agentd.get_args())
        .current_dir(project.root())
        .env_clear()
        .envs(agentd.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null());
    insta::assert_snapshot!(project.finish(&mut limited), @r#"
    exit 1
    {
      "version": 1,
      "error": {
        "kind": "store",
        "message": "cannot lock the files of change `add-oauth`",
        "cause": "cannot write `agentd/.locks/.gitignore`: File too large (os error 27)",
        "hints": [
          "the process may not write files of this size: check `ulimit -f`"
        ]
      }
    }
    --- stderr
    "#);
}
