//! G6: people are asked through a client that shows forms (MCP elicitation).

use std::fs;

use agentd_core::diagnostic::Severity::{High, Low};
use agentd_core::state::{Asked, LlmCall};
use agentd_core::text::{Line, Prose};
use agentd_engine::change::documents::update_state;
use serde_json::{Value, json};
use test_project::{TestProject, now};

use super::{CHANGE, Client, Servers as _, plan};

const TOOL: &str = "answer_questions";
const QUESTIONS: &str = "agentd/.agents/questions/add-oauth.json";

/// A client of all changes that shows forms.
fn shows_forms(project: &TestProject) -> Client {
    client_with(project, &[], json!({"elicitation": {}}))
}

fn client_with(project: &TestProject, arguments: &[&str], capabilities: Value) -> Client {
    let mut client = Client::spawn(project.server(arguments));
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
        "clientInfo": {"name": "forms\u{1b}[2J", "version": "1"}});
    client.result("initialize", params);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client
}

fn begin(client: &mut Client) -> u64 {
    let call = json!({"name": TOOL, "arguments": {"change_id": CHANGE}});
    client.request("tools/call", call)
}

/// The next form that is shown.
fn form(client: &mut Client) -> Value {
    let request = client.receive();
    assert_eq!(request["method"], "elicitation/create", "{request}");
    assert_eq!(request["params"]["requestedSchema"]["type"], "object", "{request}");
    request
}

fn reply(client: &mut Client, form: &Value, result: Value) {
    client.send(&json!({"jsonrpc": "2.0", "id": form["id"], "result": result}));
}

fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// How a call has ended: whether it is an error, and its text.
fn end(client: &mut Client, id: u64) -> (bool, String) {
    let answer = client.answer(id);
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (result["isError"] == true, text.to_owned())
}

/// Calls the tool, and fills in its forms in this order.
fn answers(client: &mut Client, replies: &[Value]) -> (Vec<Value>, bool, String) {
    let id = begin(client);
    let mut forms = Vec::new();
    for result in replies {
        let shown = form(client);
        reply(client, &shown, result.clone());
        forms.push(shown["params"].clone());
    }
    let (failed, text) = end(client, id);
    (forms, failed, text)
}

/// A plan that needs revision for a LOW issue.
pub(super) fn undecided() -> TestProject {
    TestProject::new().change(CHANGE).challenged(&[Low])
}

/// A change whose planner has asked something.
fn asked(choices: &[&str]) -> TestProject {
    let project = TestProject::new().change(CHANGE);
    ask(&project, "Which providers?\u{1b}[2J\u{202e}", choices);
    project
}

fn ask(project: &TestProject, question: &str, choices: &[&str]) {
    let call = json!({"step": "proposal-gen", "agent": "claude", "run": 1, "session_id": "s"});
    let mut call: LlmCall = serde_json::from_value(call).unwrap();
    let choices = choices.iter().map(|choice| Line::new(choice)).collect();
    let asked = Asked { question: Prose::new(question), choices };
    update_state(&project.store(), &project.id(), &project.holder(), now(), |state| {
        assert!(state.take_question(&mut call, Some(asked), now()));
        state.llm_calls.push(call);
        Ok(())
    })
    .unwrap();
}

/// A change in a repository whose description leaves questions open.
fn unclear(settings: &str) -> TestProject {
    let project = TestProject::new().programs(&["git", "sh"]).repository();
    for (name, value) in [("user.name", "Ada"), ("user.email", "ada@example.org")] {
        project.git(&["config", name, value]);
    }
    let project = project.root_file("agentd/config.toml", settings);
    project.commit("Start");
    let project = project.described(CHANGE, "Sign in", now());
    let mut questions = plan::questions();
    questions["questions"][1]["multi_select"] = json!(true);
    project.clarifying_client().ok("propose_questions", questions);
    project
}

/// The tool is there for clients that a person has started and that show forms, and for nobody else.
// contract G6
#[test]
fn only_a_persons_client_that_shows_forms_has_the_tool() {
    let project = undecided();
    let forms = || json!({"elicitation": {"form": {}, "url": {}}});
    let role = |role: &'static str| vec!["--change", CHANGE, "--role", role];
    let step = [&role("planner")[..], &["--step", "reproposal"]].concat();
    for (arguments, capabilities, offered) in [
        (vec![], forms(), true),
        (vec!["--change", CHANGE], forms(), true),
        (vec![], json!({"elicitation": {}}), true),
        (vec![], json!({}), false),
        (vec![], json!({"elicitation": {"url": {}}}), false),
        (role("planner"), forms(), false),
        (role("challenger"), forms(), false),
        (role("implementer"), forms(), false),
        (role("reviewer"), forms(), false),
        (step, forms(), false),
    ] {
        let mut client = client_with(&project, &arguments, capabilities.clone());
        let tools = client.result("tools/list", json!({}))["tools"].clone();
        let listed = tools.as_array().unwrap().iter().any(|tool| tool["name"] == TOOL);
        assert_eq!(listed, offered, "{arguments:?} {capabilities}");
        if !offered {
            // Nothing is sent to the client: the answer is all that comes.
            let call = json!({"name": TOOL, "arguments": {"change_id": CHANGE}});
            let answer = client.ask("tools/call", call);
            assert_eq!(answer["error"]["code"], -32602, "{arguments:?}: {answer}");
            let (rest, _) = client.finish();
            assert_eq!(rest, Vec::<String>::new(), "{arguments:?}");
        }
    }
    let mut bound = client_with(&project, &["--change", CHANGE], forms());
    let other = json!({"name": TOOL, "arguments": {"change_id": "other"}});
    assert_eq!(bound.ask("tools/call", other)["result"]["isError"], true);
}

/// A decision through a client is one like `agentd decide` makes, and says how it was made.
#[test]
fn a_plan_is_decided_about_through_a_client() {
    let project = undecided();
    let mut client = shows_forms(&project);
    let filled = accept(json!({"answer": "Accept it with its minor issues", "own_words": "later"}));
    let (forms, failed, text) = answers(&mut client, &[filled]);
    insta::assert_snapshot!(forms[0]["message"].as_str().unwrap(), @r"
    `add-oauth`: The plan needs revision. What next?

    codex says: Not yet.

    - LOW I1: Something

    - Auto-fix and rechallenge (recommended): The planner revises the plan, then it is reviewed again.
    - Accept it with its minor issues: The plan counts as approved. It is recorded that you accepted it.
    - Stop here: Nothing is lost. `agentd plan` asks again.
    ");
    insta::assert_snapshot!(format!("{:#}", forms[0]["requestedSchema"]), @r#"
    {
      "type": "object",
      "properties": {
        "answer": {
          "type": "string",
          "title": "Answer",
          "enum": [
            "Auto-fix and rechallenge (recommended)",
            "Accept it with its minor issues",
            "Stop here"
          ]
        },
        "own_words": {
          "type": "string",
          "title": "Note",
          "description": "Optional: why, or what the planner should know",
          "maxLength": 2000
        }
      },
      "required": [
        "answer"
      ]
    }
    "#);
    insta::assert_snapshot!(text, @r"
    Decided about the plan: Accept it with its minor issues.
    Nothing else waits for an answer.
    Next: agentd impl add-oauth
    ");
    assert!(!failed);
    let state = project.state();
    assert_eq!(state.phase.name(), "challenged");
    let made = &state.decisions[0];
    assert_eq!(made.note.as_str(), "later");
    assert!(made.by.as_str().ends_with(", through the MCP client forms [2J"), "{}", made.by);
    project.run(["verify", CHANGE]).exits(0);
    let (_, failed, text) = answers(&mut client, &[]);
    assert!(!failed && text.starts_with("`add-oauth` waits for no answer."), "{text}");
    // What is not acceptable is not offered, so it cannot be answered either.
    let high = TestProject::new().change(CHANGE).challenged(&[High]);
    let before = high.contents();
    let filled = accept(json!({"answer": "Accept it with its minor issues"}));
    let (_, failed, text) = answers(&mut shows_forms(&high), &[filled]);
    assert!(failed && text.contains("was not offered"), "{text}");
    assert_eq!(high.contents(), before);
}

/// A decision is asked for once: one to fix is the planner's business, and who stops is not asked again
/// until somebody wants them to be.
// contract G6
#[test]
fn a_plan_is_decided_about_once() {
    for (label, forms_later) in [("Auto-fix and rechallenge (recommended)", 0), ("Stop here", 1)] {
        let project = undecided();
        let mut client = shows_forms(&project);
        let filled = accept(json!({"answer": label, "own_words": "so"}));
        let (_, failed, text) = answers(&mut client, std::slice::from_ref(&filled));
        assert!(!failed && text.contains("Nothing else waits"), "{text}");
        assert_eq!(project.state().decisions.len(), 1, "{label}");
        let (_, failed, text) = answers(&mut client, &vec![filled; forms_later]);
        assert!(!failed, "{label}: {text}");
        assert_eq!(project.state().decisions.len(), 1 + forms_later, "{label}: {text}");
    }
}

/// What an agent asks is shown as text, and the answer is for that question.
#[test]
fn an_agent_is_answered_through_a_client() {
    for (choices, content, answer) in [
        (&["GitHub only", "All"][..], json!({"answer": "All"}), "All"),
        (
            &["GitHub only"],
            json!({"answer": "GitHub only", "own_words": "for now"}),
            "GitHub only. for now",
        ),
        (&[], json!({"own_words": "None\nof them"}), "None\nof them"),
    ] {
        let project = asked(choices);
        let (forms, failed, text) = answers(&mut shows_forms(&project), &[accept(content)]);
        assert!(!failed, "{text}");
        let message = forms[0]["message"].as_str().unwrap();
        assert!(message.contains("claude works on the change `add-oauth` and asks:"), "{message}");
        assert!(message.contains("Which providers?[2J‹U+202E›"), "{message}");
        assert_eq!(project.state().question.unwrap().answer.unwrap().as_str(), answer);
        assert_eq!(project.state().decisions.len(), 1);
    }
}

/// Questions before a plan, one after the other, and then where to work.
#[test]
fn a_change_is_clarified_and_placed_through_a_client() {
    let project = unclear("");
    let mut client = shows_forms(&project);
    let filled = [
        accept(json!({"answer": "Own passwords"})),
        accept(json!({"answer_1": true, "answer_2": true})),
        accept(json!({"own_words": "Neither"})),
        accept(json!({"answer": "On the branch agentd/add-oauth (recommended)"})),
    ];
    let (forms, failed, text) = answers(&mut client, &filled);
    assert!(!failed, "{text}");
    insta::assert_snapshot!(forms[1]["message"].as_str().unwrap(), @r"
    Before `add-oauth` is planned (2 of 3): Storage

    Which one?

    - OAuth (recommended): Others keep the passwords.
    - Own passwords: Nothing depends on others.
    ");
    insta::assert_snapshot!(forms[3]["message"].as_str().unwrap(), @r"
    Where should `add-oauth` be worked on?
    1 uncommitted file will move to the branch

    - On the branch agentd/add-oauth (recommended): This checkout switches to it. Merge it when the change is archived.
    - In a worktree of its own beside the project, on that branch: This checkout stays as it is, so that you can go on working here.
    - In place, on main: No branch is made: the code is written where you are.
    ");
    insta::assert_snapshot!(text, @r"
    Wrote clarifications.md with 3 answers.
    Chose where to work: On the branch agentd/add-oauth (recommended).
    `agentd/add-oauth` starts from `main`.
    1 uncommitted file came along to `agentd/add-oauth`, unchanged.
    Nothing else waits for an answer.
    Next: agentd plan add-oauth
    ");
    let written = agentd_core::document::clarifications::parse(&project.read("clarifications.md"));
    let given: Vec<&str> = written.value.questions.iter().map(|it| it.answer.as_str()).collect();
    assert_eq!(given, ["Own passwords", "OAuth, Own passwords", "Neither"]);
    assert_eq!(project.git(&["branch", "--show-current"]), "agentd/add-oauth");
    assert!(project.state().git.is_some());
    // A place that the settings choose is not asked for, nor one that runs what nobody has agreed to.
    for settings in ["[git]\nworkflow = \"in-place\"\n", "[implementation]\ntest_command = \"x\"\n"]
    {
        let project = unclear(settings);
        let (_, failed, text) = answers(&mut shows_forms(&project), &filled[..3]);
        assert!(!failed && text.contains("Nothing else waits"), "{text}");
        assert_eq!(project.git(&["branch", "--show-current"]), "main");
    }
}

/// Who declines or dismisses a form has changed nothing, wherever they do it.
#[test]
fn a_form_that_is_not_filled_in_changes_nothing() {
    for (action, why) in [("decline", "has declined"), ("cancel", "has dismissed")] {
        let stop = json!({"action": action});
        let unclear = unclear("");
        let first = accept(json!({"answer": "OAuth"}));
        for (project, replies) in [
            (undecided(), vec![stop.clone()]),
            (asked(&["A"]), vec![stop.clone()]),
            (unclear, vec![first, stop]),
        ] {
            let before = project.contents();
            let (_, failed, text) = answers(&mut shows_forms(&project), &replies);
            assert!(!failed && text.contains(why), "{text}");
            assert!(text.contains("Nothing was recorded"), "{text}");
            assert_eq!(project.contents(), before);
        }
    }
}

/// What is no answer is none, and the server goes on.
#[test]
fn malformed_answers_are_refused() {
    let project = undecided();
    let before = project.contents();
    let mut client = shows_forms(&project);
    let offered = "Accept it with its minor issues";
    for result in [
        json!({}),
        json!([]),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": null}),
        json!({"action": "accept", "content": [offered]}),
        json!({"action": "ACCEPT", "content": {"answer": offered}}),
        json!({"content": {"answer": offered}}),
        accept(json!({})),
        accept(json!({"answer": ""})),
        accept(json!({"answer": "accept"})),
        accept(json!({"answer": [offered]})),
        accept(json!({"answer": {"const": offered}})),
        accept(json!({"own_words": "accept it"})),
        accept(json!({"answer": offered, "own_words": 1})),
        accept(json!({"answer": offered, "own_words": "x".repeat(3000)})),
        json!("accept"),
    ] {
        let (_, failed, text) = answers(&mut client, std::slice::from_ref(&result));
        assert!(failed && text.contains("Nothing was recorded."), "{result}: {text}");
        assert_eq!(project.contents(), before, "{result}");
    }
    let id = begin(&mut client);
    let shown = form(&mut client);
    let error = json!({"code": -32601, "message": "not here\u{1b}[2J"});
    client.send(&json!({"jsonrpc": "2.0", "id": shown["id"], "error": error}));
    let (failed, text) = end(&mut client, id);
    assert!(failed && text.contains("the client says: ") && !text.contains('\u{1b}'), "{text}");
    assert_eq!(project.contents(), before);
}

/// What is done while a form is open.
type Meanwhile = fn(&TestProject);

/// A form may be open for hours. What was done meanwhile counts, and the answer does not.
#[test]
fn an_answer_to_what_is_not_asked_any_more_is_refused() {
    let stop = || accept(json!({"answer": "Stop here"}));
    let words = || accept(json!({"own_words": "mine"}));
    let clarified = [json!({"answer": "OAuth"}), json!({"answer_1": true})];
    let clarified = clarified.map(accept).to_vec();
    let cases: [(TestProject, Vec<Value>, Value, Meanwhile); 6] = [
        (undecided(), vec![], stop(), |project| {
            project.run(["decide", CHANGE, "accept"]).exits(0);
        }),
        (undecided(), vec![], stop(), |project| {
            project.replace("proposal.md", "## Why\n", "## Why\n\nAnother reason.\n");
        }),
        (asked(&[]), vec![], words(), |project| {
            project.run(["decide", CHANGE, "answer", "--note", "theirs"]).exits(0);
        }),
        (asked(&["A"]), vec![], words(), |project| {
            project.run(["decide", CHANGE, "answer", "--note", "theirs"]).exits(0);
            update_state(&project.store(), &project.id(), &project.holder(), now(), |state| {
                state.question = None;
                Ok(())
            })
            .unwrap();
            ask(project, "Another one?", &["A"]);
        }),
        (unclear(""), clarified.clone(), words(), |project| {
            let given = json!({"Method": "OAuth", "Storage": "OAuth", "Clients": "theirs"});
            let file = project.home().join("answers.json");
            fs::write(&file, given.to_string()).unwrap();
            let file = file.to_str().unwrap();
            project.run(["clarify", CHANGE, "--answers", file]).exits(0);
        }),
        (unclear(""), clarified, words(), |project| {
            let text = project.read_root(QUESTIONS).replace("Which one?", "Which other one?");
            project.write_root(QUESTIONS, text);
        }),
    ];
    for (at, (project, first, last, meanwhile)) in cases.into_iter().enumerate() {
        let mut client = shows_forms(&project);
        let id = begin(&mut client);
        for result in first {
            let shown = form(&mut client);
            reply(&mut client, &shown, result);
        }
        let shown = form(&mut client);
        meanwhile(&project);
        let before = project.contents();
        reply(&mut client, &shown, last);
        let (failed, text) = end(&mut client, id);
        assert!(failed && text.contains("Nothing was recorded."), "{at}: {text}");
        assert_eq!(project.contents(), before, "{at}: {text}");
    }
}

/// While somebody works on the change, its workflow asks, and nobody else.
#[test]
fn nobody_is_asked_while_a_command_runs() {
    let project = undecided();
    let lock = || project.store().try_run_lock(&project.id(), &project.holder()).unwrap();
    let mut client = shows_forms(&project);
    let held = lock();
    let (_, failed, text) = answers(&mut client, &[]);
    assert!(failed && text.contains("Nothing was recorded."), "{text}");
    drop(held);
    let id = begin(&mut client);
    let shown = form(&mut client);
    let held = lock();
    reply(&mut client, &shown, accept(json!({"answer": "Stop here"})));
    let (failed, text) = end(&mut client, id);
    assert!(failed && text.contains("Nothing was recorded."), "{text}");
    drop(held);
    assert_eq!(project.state().decisions.len(), 0);
}

/// A person takes their time, and the client can do everything else meanwhile; but it asks them one
/// thing at a time. A call that is cancelled takes its form with it.
#[test]
fn others_are_served_while_a_form_is_open() {
    let project = undecided();
    let mut client = shows_forms(&project);
    let id = begin(&mut client);
    let shown = form(&mut client);
    let second = begin(&mut client);
    let (failed, text) = end(&mut client, second);
    assert!(failed && text.contains("being asked already"), "{text}");
    let write = json!({"name": "create_clarifications", "arguments": plan::clarifications()});
    assert_eq!(client.result("tools/call", write)["isError"], false);
    // As large as a message may be: it is worked on alone, so the form must hold no room.
    let huge = json!({"name": "read_file", "arguments": {"path": "x".repeat(15 << 20)}});
    let huge = client.request("tools/call", huge);
    let (failed, _) = end(&mut client, huge);
    assert!(failed);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id}}));
    let cancelled = client.receive();
    assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
    assert_eq!(cancelled["params"]["requestId"], shown["id"]);
    // Too late: nobody waits for it.
    reply(&mut client, &shown, accept(json!({"answer": "Stop here"})));
    client.result("ping", json!({}));
    assert_eq!(project.state().decisions.len(), 0);
    // Hanging up while a form is open ends the server.
    begin(&mut client);
    form(&mut client);
    client.finish();
}
