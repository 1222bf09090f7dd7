//! G6 with a real CLI: the implementer asks, the change waits, and its session goes on with the answer.

use real_agents::{Cli, Sandbox};
use scripted_models::{Reply, Script};
use serde_json::json;

use super::project::{GREET, RIGHT, TESTED, approved, does, look, says, tick, write};

const QUESTION: &str = "Shall it greet with a comma?";
const ANSWER: &str = "Yes, as in PLUGH letters";

// contract G6
#[test]
fn claude_asks_and_goes_on_with_the_answer_in_its_session() {
    let ask = json!({"change_id": "${change}", "question": QUESTION, "choices": ["Yes", "No"]});
    let script = Script::new()
        .rule(does("implement-logic", [Reply::call("ask_user", ask)]).prompts(1))
        .rule(does("implement-logic", [look("greet.sh"), write("greet.sh", RIGHT), tick("2.1")]))
        .rule(says("APPROVED", &[]));
    Sandbox::enter(script, |sandbox| {
        let config = format!(
            "[roles]\nimplementer = \"claude\"\nreviewer = \"codex\"\n[workflow]\nscript_retries = 0\n{TESTED}"
        );
        approved(sandbox, &config, &[GREET]);
        let asked = sandbox.run(["impl", "--json"]).exits(0).json();
        assert_eq!(asked["question"]["question"], QUESTION, "{asked:#}");
        assert_eq!(asked["next"], json!(["agentd decide add-login"]));
        sandbox.tool_result("End your turn now");
        let requests = sandbox.models().requests().len();
        sandbox.run(["impl"]).exits(0);
        assert_eq!(sandbox.models().requests().len(), requests, "waiting costs nothing");

        sandbox.run(["decide", "add-login", "answer", "--note", ANSWER]).exits(0);
        let ran = sandbox.run(["impl"]).exits(0);
        assert_eq!(ran.stdout.lines().next(), Some("✓ APPROVED - add-login is complete"));
        assert_eq!(sandbox.steps(), ["implement-logic", "implement-logic", "review"]);
        let prompt = sandbox.prompt("implement-logic");
        assert!(prompt.contains(ANSWER) && !prompt.contains("greet.sh MUST"), "{prompt}");
        let session = sandbox.history("implement-logic");
        assert!(session.contains(ANSWER) && session.contains("greet.sh MUST"), "{session}");
        let calls = sandbox.calls();
        let claude: Vec<_> =
            calls.iter().filter(|call| call.program == Cli::Claude.program()).collect();
        let state = sandbox.state();
        let first = state.llm_calls[0].session_id.as_deref().unwrap();
        assert_eq!(claude[1].after("--resume"), Some(first));
        assert_eq!(state.question, None);
        assert_eq!(sandbox.models().surprises(), Vec::<String>::new());
    });
}
