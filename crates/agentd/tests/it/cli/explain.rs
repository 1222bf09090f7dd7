use test_project::TestProject;

#[test]
fn explain_rule_by_code_or_name() {
    let project = TestProject::empty();
    let run = project.run(["explain", "t005"]).fine();
    insta::assert_snapshot!(run.transcript(), @r"
    exit 0
    T005 task-cycle (HIGH)

    Tasks do not depend on each other in a circle.

    Why: There would be no order in which they can be done.
    Fix: Remove one of the dependencies of the chain in tasks.md.
    --- stderr
    ");
    assert_eq!(project.run(["explain", "task-cycle"]).fine().stdout, run.stdout);
    let json = project.run(["explain", "T005", "--json"]).fine().json();
    assert_eq!((&json["code"], &json["severity"]), (&"T005".into(), &"high".into()));
}

#[test]
fn explain_lists_rules_and_errors() {
    let project = TestProject::empty();
    let list = project.run(["explain"]).fine().stdout;
    let json = project.run(["explain", "--json"]).fine().json();
    let rules = json["rules"].as_array().unwrap();
    let errors = json["errors"].as_array().unwrap();
    assert_eq!(list.lines().count(), rules.len() + errors.len());
    let codes = rules.iter().map(|rule| &rule["code"]);
    for name in codes.chain(errors.iter().map(|error| &error["kind"])) {
        let name = name.as_str().unwrap();
        assert!(list.lines().any(|line| line.starts_with(name)), "{name}");
    }
}

#[test]
fn misspelled_code_names_the_nearest() {
    let project = TestProject::empty();
    let run = project.run(["explain", "t05"]).exits(1);
    insta::assert_snapshot!(run.transcript(), @r"
    exit 1
    --- stderr
    error: there is no rule or error `t05`

    hint: did you mean `T005`?
    ");
    let error = project.run(["explain", "t05", "--json"]).exits(1).json_error();
    assert_eq!(error["kind"], "no_such_rule");
}

#[test]
fn explain_error_kind() {
    let project = TestProject::new();
    let error = project.run(["status", "no-such-thing", "--json"]).exits(1).json_error();
    let kind = error["kind"].as_str().unwrap();
    let run = project.run(["explain", kind]).fine();
    insta::assert_snapshot!(run.transcript(), @r"
    exit 0
    no_such_change (error)

    No open change has that ID.

    `agentd list` shows the open changes, `agentd list --archived` the archived ones.
    --- stderr
    ");
    let json = project.run(["explain", kind, "--json"]).fine().json();
    assert_eq!(json["kind"], "no_such_change");
}
