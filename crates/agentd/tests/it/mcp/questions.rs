//! Questions that a planner proposes before it plans.

use serde_json::{Value, json};

use test_project::TestProject;

use super::{CHANGE, Servers as _, plan, project};

const KEPT: &str = "agentd/.agents/questions/add-oauth.json";

fn kept(project: &TestProject) -> Value {
    serde_json::from_str(&project.read_root(KEPT)).unwrap()
}

/// P2
#[test]
fn questions_replace_earlier_ones() {
    let project = project();
    let mut client = project.clarifying_client();
    let written = client.ok("propose_questions", plan::questions());
    assert_eq!(written["path"], KEPT);
    let first = kept(&project);
    assert_eq!(first["change_id"], CHANGE);
    assert_eq!(first["questions"], plan::questions()["questions"]);
    let mut next = plan::questions();
    next["questions"][0]["header"] = json!("Another");
    next["questions"][1].as_object_mut().unwrap().remove("multi_select");
    client.ok("propose_questions", next);
    assert_eq!(kept(&project)["questions"][0]["header"], "Another");
    assert_eq!(kept(&project)["questions"][1]["multi_select"], false);
}

/// P2: never more than five, each with options of which the first is recommended.
#[test]
fn invalid_questions_are_refused() {
    let project = project();
    let mut client = project.clarifying_client();
    client.ok("propose_questions", plan::questions());
    let before = project.contents();
    let one = plan::questions()["questions"][0].clone();
    let many = |n: usize| {
        let named = |i| {
            let mut question = one.clone();
            question["header"] = json!(format!("Question {i}"));
            question
        };
        (0..n).map(named).collect::<Vec<_>>()
    };
    let option = one["options"][0].clone();
    let cases = [
        ("/questions", json!(many(2))),
        ("/questions", json!(many(6))),
        ("/questions/0/options", json!([option])),
        ("/questions/0/options", json!(vec![option.clone(); 5])),
        ("/questions/0/options/1", option.clone()),
        ("/questions/1/header", json!("METHOD")),
        ("/questions/0/options/0/label", json!(" ")),
        ("/questions/0/question", json!("x".repeat(2001))),
        ("/questions/0/multi_select", json!("yes")),
        ("/change_id", json!("other")),
    ];
    let mut messages = String::new();
    for (place, value) in cases {
        let mut arguments = plan::questions();
        *arguments.pointer_mut(place).unwrap() = value;
        let message = client.refused("propose_questions", arguments);
        messages.push_str(&format!("{place}: {message}\n"));
        assert!(project.contents() == before, "{place}");
    }
    insta::assert_snapshot!(messages, @r#"
    /questions: The arguments do not fit the tool. `questions`: the list has 2 items; the minimum is 3
    Correct that field and call the tool again; nothing was written.
    /questions: The arguments do not fit the tool. `questions`: the list is too long; at most 5 items are allowed
    Correct that field and call the tool again; nothing was written.
    /questions/0/options: The arguments do not fit the tool. `questions[0].options`: the list has 1 item; the minimum is 2
    Correct that field and call the tool again; nothing was written.
    /questions/0/options: The arguments do not fit the tool. `questions[0].options`: the list is too long; at most 4 items are allowed
    Correct that field and call the tool again; nothing was written.
    /questions/0/options/1: These questions cannot be asked: two options of `Method` are called `OAuth`.
    Nothing was kept. Correct that and call the tool again.
    /questions/1/header: These questions cannot be asked: two questions have the header `METHOD`.
    Nothing was kept. Correct that and call the tool again.
    /questions/0/options/0/label: The arguments do not fit the tool. `questions[0].options[0].label`: the text is empty
    Correct that field and call the tool again; nothing was written.
    /questions/0/question: The arguments do not fit the tool. `questions[0].question`: the text is 2001 characters long; at most 2000 are allowed
    Correct that field and call the tool again; nothing was written.
    /questions/0/multi_select: The arguments do not fit the tool. `questions[0].multi_select`: invalid type: string "yes", expected a boolean
    Correct that field and call the tool again; nothing was written.
    /change_id: This server works on the change `add-oauth` and on no other, so not on `other`.
    Call the tool with change_id "add-oauth".
    "#);
    client.ok("propose_questions", json!({"change_id": CHANGE, "questions": many(5)}));
}

#[test]
fn linked_questions_file_is_not_followed() {
    let project = project();
    std::fs::create_dir(project.root().join("elsewhere")).unwrap();
    std::fs::create_dir_all(project.root().join("agentd/.agents")).unwrap();
    let link = project.root().join("agentd/.agents/questions");
    std::os::unix::fs::symlink("../../elsewhere", link).unwrap();
    let before = project.contents();
    project.clarifying_client().refused("propose_questions", plan::questions());
    assert!(project.contents() == before);
}
