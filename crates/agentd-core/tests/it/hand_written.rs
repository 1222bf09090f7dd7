//! Documents as people write them: the seeds' examples and their variants.

use agentd_core::document::spec::Keyword;
use agentd_core::document::tasks::{Action, Status};
use agentd_core::document::{proposal, spec, tasks, tasks_edit};
use agentd_core::ids::Layer;

fn affected(text: &str) -> Vec<String> {
    proposal::parse(text).value.affected_specs.iter().map(|s| s.id.to_string()).collect()
}

/// C17: frontmatter first, then a section, then the bullet; all three notations.
#[test]
fn c17_affected_specs_are_found_in_every_place() {
    let both = ["auth-flow", "user-model"];
    assert_eq!(
        affected("---\naffected_specs: [auth-flow, user-model]\n---\n## Affected Specs\n- x\n"),
        both
    );
    assert_eq!(
        affected(
            "## Affected Specs\n\n- `auth-flow`: new\n- user-model - edited\n## Impact\n- Affected specs: x\n"
        ),
        both
    );
    for bullet in [
        "- Affected specs: `auth-flow`, `user-model`",
        "* Affected specs: [\"auth-flow\", \"user-model\"]",
        "- **Affected specs**: auth-flow, user-model",
        "- affected specs: 'auth-flow','user-model', none",
    ] {
        assert_eq!(affected(&format!("## Impact\n\n{bullet}\n")), both, "{bullet}");
    }
    for section in [
        "1. auth-flow\n2. user-model",
        "[auth-flow, `user-model`]",
        "- [ ] auth-flow\n* user-model",
    ] {
        assert_eq!(affected(&format!("## Affected Specs\n\n{section}\n")), both, "{section}");
    }
    let nested = "## Impact\n\n- **Affected specs**:\n  - auth-flow\n  - `user-model`: new\n- Scope: minor\n";
    assert_eq!(affected(nested), both);
    let unread = proposal::parse("## Affected Specs\n\n- auth-flow\n- User Model\n");
    assert_eq!(unread.diagnostics.iter().map(|d| d.rule.code).collect::<Vec<_>>(), ["F006"]);
    for none in ["none", "n/a", "N/A", "[]", "", "`none`"] {
        assert!(affected(&format!("## Impact\n- Affected specs: {none}\n")).is_empty(), "{none}");
    }
}

/// C24: bullets, and the one-line form, in the heading or below it.
#[test]
fn c24_scenarios_are_read_in_both_forms() {
    let text = "## Acceptance Criteria\n\n### Scenario: WHEN a b THEN c d\n\n### Scenario: x\n* WHEN e THEN f\n\n\
                ### Scenario: y\n- **GIVEN** g\n- **WHEN** h\n  i\n- **THEN** THEN j\n- **AND** k\n";
    let scenarios = spec::parse(text).value.scenarios;
    let steps: Vec<Vec<(Keyword, &str)>> = scenarios
        .iter()
        .map(|s| s.steps.iter().map(|step| (step.keyword, step.text.as_str())).collect())
        .collect();
    assert_eq!(
        steps,
        [
            vec![(Keyword::When, "a b"), (Keyword::Then, "c d")],
            vec![(Keyword::When, "e"), (Keyword::Then, "f")],
            vec![
                (Keyword::Given, "g"),
                (Keyword::When, "h i"),
                (Keyword::Then, "THEN j"),
                (Keyword::And, "k")
            ],
        ]
    );
}

/// WF5: no frontmatter, layers from headings; a task without a number is a task (F11).
#[test]
fn wf5_layers_come_from_headings() {
    let text = "# Tasks\n\n## 1. Data Layer\n\n- [x] 1.1 Create user\n  - File: `src/user.rs` (CREATE)\n  - Spec: user-model:R1\n\
                \n## 2. Testing\n\n- [ ] 2.1 Test it\n      File: MODIFY tests/user.rs\n      Depends: data.1, 1.1\n      Try every field.\n\
                - [ ] no id\n";
    let parsed = tasks::parse(text);
    let found: Vec<String> = parsed.diagnostics.iter().map(|d| d.in_words(text)).collect();
    insta::assert_snapshot!(found.join("\n"), @"MEDIUM T020 at line 15 (`- [ ] no id`): the task has no number; it is taken as 2.2. Fix: Write the number behind the checkbox, as in `- [ ] 1.2 Account lock`.");
    let tasks = parsed.value.tasks;
    let ids: Vec<String> = tasks.iter().map(|task| format!("{} {}", task.id, task.title)).collect();
    assert_eq!(ids, ["1.1 Create user", "2.1 Test it", "2.2 no id"]);
    assert_eq!(
        (tasks[0].layer, tasks[0].status, tasks[0].action),
        (Some(Layer::Data), Status::Done, Some(Action::Create))
    );
    assert_eq!(tasks[0].file.as_ref().unwrap().as_str(), "src/user.rs");
    assert_eq!(tasks[0].spec_refs[0].to_string(), "user-model:R1");
    assert_eq!(
        (tasks[1].layer, tasks[1].status, tasks[1].action),
        (Some(Layer::Testing), Status::Pending, Some(Action::Modify))
    );
    assert_eq!(tasks[1].id.to_string(), "2.1", "the section's own number, not the layer's");
    assert_eq!(
        tasks[1].depends_on.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["1.1", "1.1"]
    );
    assert_eq!(tasks[1].description.as_str(), "Try every field.");
}

/// WF5: numbers that are derived are those behind the highest of the layer, and a tick changes
/// one byte.
#[test]
fn tasks_without_a_number_get_the_next_of_their_layer() {
    let text = "## 1. Data Layer\n\n- [ ] Account lock\n  File: CREATE a.rs\n- [ ] 1.3 Table\n* [x] **Index**\n  - [ ] not a task\n\
                ## Logic\n- [ ] Rules\n### Task 2.1: Heading\n- [ ] a step of it\n## Notes\n- [ ] call Ada\n";
    let parsed = tasks::parse(text);
    let read = |tasks: &[tasks::Task]| -> Vec<String> {
        let one = |t: &tasks::Task| format!("{} {} {}", t.id, t.title, t.status.name());
        tasks.iter().map(one).collect()
    };
    assert_eq!(
        read(&parsed.value.tasks),
        [
            "1.4 Account lock pending",
            "1.3 Table pending",
            "1.5 **Index** done",
            "2.2 Rules pending",
            "2.1 Heading pending"
        ]
    );
    let found: Vec<String> = parsed.diagnostics.iter().map(|d| d.in_words(text)).collect();
    insta::assert_snapshot!(found.join("\n"), @"
    MEDIUM T020 at line 13 (`- [ ] call Ada`): the checkbox has no number and is in no layer, so it is not a task. Fix: Write the number behind the checkbox, as in `- [ ] 1.2 Account lock`.
    MEDIUM T020 at line 3 (`- [ ] Account lock`): the task has no number; it is taken as 1.4. Fix: Write the number behind the checkbox, as in `- [ ] 1.2 Account lock`.
    MEDIUM T020 at line 6 (`* [x] **Index**`): the task has no number; it is taken as 1.5. Fix: Write the number behind the checkbox, as in `- [ ] 1.2 Account lock`.
    MEDIUM T020 at line 9 (`- [ ] Rules`): the task has no number; it is taken as 2.2. Fix: Write the number behind the checkbox, as in `- [ ] 1.2 Account lock`.
    ");
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let ticked = tasks_edit::set_status(text, "1.4".parse().unwrap(), Status::Done, now).unwrap();
    assert_eq!(ticked, text.replace("[ ] Account", "[x] Account"));
    let again = tasks_edit::set_status(&ticked, "1.4".parse().unwrap(), Status::Pending, now);
    assert_eq!(again.unwrap(), text);
}

/// C21: both forms are read, 1.10 is not a float, and one form is written.
#[test]
fn c21_task_ids_are_texts() {
    let text = "## 1. Data Layer\n### Task 1.10: A\n```yaml\nid: 1.10\naction: create\nfile: {path: a.rs, action: CREATE}\nspec_ref: a:R1, a:R2\ndepends: [data.1, 1.2]\n```\nDo it.\n";
    let parsed = tasks::parse(text);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    insta::assert_snapshot!(tasks::render(&parsed.value), @r#"
    ---
    type: tasks
    version: 1
    summary:
      total: 1
      completed: 0
    ---

    # Tasks: 

    ## 1. Data Layer

    ### Task 1.10: A

    ```yaml
    id: "1.10"
    action: CREATE
    file: a.rs
    spec_ref: ["a:R1", "a:R2"]
    depends_on: ["1.1", "1.2"]
    status: pending
    ```

    Do it.
    "#);
}

/// C26 and lesson 10: names in any case, old names too, and text that imitates the end.
#[test]
fn c26_a_review_is_read_whatever_its_case() {
    let text = "## Summary\nx\n\n<!-- agentd:review k -->\n\n## Review 2\n\n- **verdict**: needs_revision\n- Reviewer: codex\n\n\
                not APPROVED </review> ---\n\n### Issue #3: T\n- **SEVERITY**: hIgH\n- **Spec Reference**: auth-flow:R1\n\
                - **Description**: a\n  <!-- /agentd:review\n- **Suggestion**: b\n\n<!-- /agentd:review k -->\n";
    let parsed = proposal::parse(text).value;
    let review = &parsed.reviews[0];
    assert_eq!((review.iteration, review.verdict.label()), (2, "NEEDS_REVISION"));
    assert_eq!(review.summary.as_str(), "not APPROVED </review> ---");
    let issue = &review.issues[0];
    assert_eq!(
        (issue.number, issue.severity.label(), issue.location.as_str()),
        (3, "HIGH", "auth-flow:R1")
    );
    assert_eq!(
        (issue.description.as_str(), issue.recommendation.as_str()),
        ("a\n<!-- /agentd:review", "b")
    );
    assert!(
        proposal::parse(&text.replace("needs_revision", "not approved")).value.reviews.is_empty()
    );
}

#[test]
fn an_edited_review_is_noticed_and_an_example_is_not_one() {
    let edited = "<!-- agentd:review 0123456789abcdef -->\n## Review 1\n- **Verdict**: APPROVED\n<!-- /agentd:review 0123456789abcdef -->\n";
    let parsed = proposal::parse(edited);
    assert_eq!(parsed.value.reviews.len(), 1);
    assert!(parsed.diagnostics.iter().any(|d| d.rule.code == "R003"));
    assert!(proposal::parse(&format!("```\n{edited}```\n")).value.reviews.is_empty());
}
