use std::process::Stdio;

use agentd_core::diagnostic::Severity::{High, Low, Medium};

use test_project::TestProject;

#[test]
fn who_decided_what_and_why_is_recorded() {
    let project = TestProject::new().change("add-oauth");
    let run = project.run(["decide", "add-oauth", "stop", "--note", "not this year"]);
    insta::assert_snapshot!(run.transcript(), @r"
    exit 0
    add-oauth is proposed; the decision is recorded
    --- stderr
    ");
    let state = project.read("STATE.yaml");
    for line in ["choice: stop", "not this year", "by: \"ada\"", "last_action: \"decide\""] {
        let bare = line.replace('"', "");
        assert!(state.contains(line) || state.contains(&bare), "{line} not in {state}");
    }
    let json = project.run(["decide", "fix", "--json"]).fine().json();
    assert_eq!(json["action"], "decided");
    assert_eq!(json["change_id"], "add-oauth");
    assert_eq!(json["choice"], "fix");
    assert_eq!(json["decisions"], 2);
}

#[test]
fn a_note_is_one_line_whatever_is_in_it() {
    let project = TestProject::new().change("add-oauth");
    let note = "\"quoted\": {yaml}\n---\nphase: archived # \u{1b}[0m";
    project.run(["decide", "fix", "--note", note]).fine();
    let json = project.run(["status", "--json"]).fine().json();
    assert_eq!(json["phase"], "proposed");
    assert!(project.read("STATE.yaml").contains("phase: archived #"), "the note is there");
}

/// Lesson 9.
#[test]
fn of_forty_at_once_forty_are_recorded() {
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
    let state = project.read("STATE.yaml");
    assert_eq!(state.matches("choice: ").count(), 40, "{state}");
    let words: Vec<&str> = state.split_whitespace().map(|word| word.trim_matches('"')).collect();
    for i in 0..40 {
        assert!(words.contains(&format!("n{i}").as_str()), "n{i} is lost: {state}");
    }
    let json = project.run(["decide", "stop", "--json"]).fine().json();
    assert_eq!(json["decisions"], 41);
}

#[test]
fn a_plan_is_accepted_with_minor_issues_only() {
    for minor in [&[][..], &[Low, Low], &[Medium, Low]] {
        let project = TestProject::new().change("add-oauth").challenged(minor);
        let run = project.run(["decide", "add-oauth", "accept"]).fine();
        assert_eq!(run.stdout, "add-oauth is challenged; the decision is recorded\n");
        assert_eq!(project.run(["status", "--json"]).json()["phase"], "challenged");
    }
    for major in [&[High][..], &[Medium, Medium], &[High, Low]] {
        let project = TestProject::new().change("add-oauth").challenged(major);
        let before = project.read("STATE.yaml");
        let run = project.run(["decide", "add-oauth", "accept"]).exits(1);
        assert_eq!(run.stdout, "");
        run.stderr_has("HIGH issues or more than one MEDIUM issue are left");
        assert_eq!(project.read("STATE.yaml"), before, "{major:?}");
        let error = project.run(["decide", "accept", "--json"]).exits(1).json_error();
        assert_eq!(error["kind"], "refused");
    }
}

#[test]
fn only_the_plan_that_was_reviewed_is_accepted() {
    let never = TestProject::new().change("add-oauth");
    never.run(["decide", "accept"]).exits(1).stderr_has("nobody has challenged the plan yet");
    let edited = TestProject::new().change("add-oauth").challenged(&[Low]).edit(
        "tasks.md",
        "src/auth.rs",
        "src/other.rs",
    );
    let before = edited.read("STATE.yaml");
    let run = edited.run(["decide", "accept"]).exits(1);
    run.stderr_has("the plan has changed since it was challenged");
    assert_eq!(edited.read("STATE.yaml"), before);
}

#[test]
fn a_choice_that_is_none_is_wrong_usage() {
    let project = TestProject::new().change("add-oauth");
    project.run(["decide", "add-oauth", "approve"]).exits(2).stderr_has("fix, accept, stop");
    project.run(["decide", "add-oauth"]).exits(2).stderr_has("fix, accept, stop");
}

/// Attack L3: a disk that takes nothing looked like somebody else's lock.
#[test]
fn a_lock_file_that_cannot_be_written_is_told_with_its_cause() {
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
    let json = project.finish(&mut limited).exits(1).json();
    let error = &json["error"];
    assert_eq!(error["kind"], "store", "{json}");
    assert!(error["cause"].as_str().unwrap().contains("File too large"), "{json}");
    assert!(error["hints"][0].as_str().unwrap().contains("ulimit"), "{json}");
}
