use std::process::Stdio;

use agentd_core::diagnostic::Severity::{High, Low, Medium};
use agentd_core::state;

use test_project::TestProject;

#[test]
fn decision_is_recorded() {
    let project = TestProject::new().change("add-oauth");
    let run = project.run(["decide", "add-oauth", "stop", "--note", "not this year"]);
    insta::assert_snapshot!(run.transcript(), @r"
    exit 0
    add-oauth is proposed; the decision is recorded
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
      "decisions": 2
    }
    --- stderr
    "#);
}

#[test]
fn note_is_one_line() {
    let project = TestProject::new().change("add-oauth");
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
    let project = TestProject::new().change("add-oauth");
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
        assert_eq!(run.stdout, "add-oauth is challenged; the decision is recorded\n");
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
    error: a change that is proposed cannot be accepted with minor issues: nobody has challenged the plan yet

    hint: see what comes next: agentd status add-oauth
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
    error: a change that is proposed cannot be accepted with minor issues: the plan has changed since it was challenged

    hint: see what comes next: agentd status add-oauth
    ");
    assert_eq!(edited.read("STATE.yaml"), before);
}

#[test]
fn unknown_choice_is_a_usage_error() {
    let project = TestProject::new().change("add-oauth");
    insta::assert_snapshot!(project.run(["decide", "add-oauth", "approve"]), @"
    exit 2
    --- stderr
    error: invalid value 'approve' for '<CHOICE>'
      [possible values: fix, accept, stop]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(project.run(["decide", "add-oauth"]), @"
    exit 2
    --- stderr
    error: invalid value 'add-oauth' for '<CHOICE>'
      [possible values: fix, accept, stop]

    For more information, try '--help'.
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
