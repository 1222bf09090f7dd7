//! What the real clients do with forms (MCP elicitation): without a person, none of them answers one.

use std::fs;

use agentd_core::state::{Asked, LlmCall};
use agentd_core::text::{Line, Prose};
use agentd_engine::change::documents::update_state;
use agentd_engine::workflow::clarify;
use real_agents::{CHANGE, Cli, McpServer, Profile, Sandbox};
use scripted_models::{Reply, Rule, Script};
use serde_json::{Value, json};
use test_project::{agentd, now};

/// A change whose planner waits for an answer.
fn asked(sandbox: &Sandbox) {
    sandbox.set_up("");
    let (project, holder) = (sandbox.store(), sandbox.holder());
    clarify::begin(&project, &sandbox.id(), Some("Greet"), None, &holder, now()).unwrap();
    let call = json!({"step": "proposal-gen", "run": 1, "session_id": "s"});
    let mut call: LlmCall = serde_json::from_value(call).unwrap();
    let asked = Asked { question: Prose::new("Which?"), choices: vec![Line::new("This one")] };
    update_state(&project, &sandbox.id(), &holder, now(), |state| {
        assert!(state.take_question(&mut call, Some(asked), now()));
        state.llm_calls.push(call);
        Ok(())
    })
    .unwrap();
}

/// What a client and its server have said.
struct Talk {
    /// What the client declares in its handshake.
    elicitation: Value,
    /// How it answers a form.
    answer: Value,
    /// What the server has sent.
    said: Vec<Value>,
}

impl Talk {
    fn requests(&self) -> usize {
        self.said.iter().filter(|message| message["method"] == "elicitation/create").count()
    }
}

/// The client's own server, as `init` registers it, behind a shell that keeps both sides.
fn asks(cli: Cli) -> Talk {
    let call = json!({"change_id": CHANGE});
    let rule = Rule::new().reply(Reply::call("answer_questions", call)).reply(Reply::text("Done."));
    Sandbox::enter(Script::new().rule(rule), |sandbox| {
        asked(sandbox);
        let before = sandbox.read("STATE.yaml");
        let file = |name: &str| sandbox.base().join(name);
        let script = format!(
            "tee '{}' | '{}' -C '{}' mcp | tee '{}'",
            file("heard").display(),
            agentd().display(),
            sandbox.root().display(),
            file("said").display()
        );
        let server = McpServer {
            name: "agentd".to_owned(),
            command: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), script],
        };
        let prompt = "agentd plan add-login\n\nAsk the person.";
        let run = sandbox.call(cli, prompt).mcp(&server).profile(Profile::Writer).run();
        let lines = |name: &str| -> Vec<Value> {
            let text = fs::read_to_string(file(name)).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let heard = lines("heard");
        let hello = heard.iter().find(|message| message["method"] == "initialize");
        let hello = hello.unwrap_or_else(|| panic!("{run:#?}"));
        let answer = heard.iter().find(|message| message["result"]["action"].is_string());
        assert_eq!(sandbox.read("STATE.yaml"), before, "nobody was there to answer");
        Talk {
            elicitation: hello["params"]["capabilities"]["elicitation"].clone(),
            answer: answer.map(|answer| answer["result"].clone()).unwrap_or_default(),
            said: lines("said"),
        }
    })
}

#[test]
fn codex_shows_forms_and_answers_none_without_a_person() {
    let asked = asks(Cli::Codex);
    assert_eq!(asked.elicitation, json!({"form": {}, "url": {}}));
    assert_eq!((asked.requests(), asked.answer), (1, json!({"action": "decline"})));
}

#[test]
fn claude_shows_forms_and_answers_none_without_a_person() {
    let asked = asks(Cli::Claude);
    assert_eq!(asked.elicitation, json!({}));
    assert_eq!((asked.requests(), asked.answer), (1, json!({"action": "cancel"})));
}

#[test]
fn gemini_shows_no_forms_and_is_not_offered_the_tool() {
    let asked = asks(Cli::Gemini);
    assert_eq!((&asked.elicitation, asked.requests()), (&Value::Null, 0));
    let tools = asked.said.iter().find_map(|message| message["result"]["tools"].as_array());
    assert!(tools.unwrap().iter().all(|tool| tool["name"] != "answer_questions"), "{tools:?}");
}
