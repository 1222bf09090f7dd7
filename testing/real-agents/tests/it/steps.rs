//! Whole steps with the real CLIs and agentd's own MCP server: the agent is called,
//! writes through the tools, is judged by what is on the disk, and its usage is in
//! the ledger.

mod hostile;
mod replay;
mod workflows;

use std::fs;

use agentd_core::agent::Role;
use agentd_core::document::review_block::PlanVerdict;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::state::{self, State};
use agentd_engine::agents::step::{self, Agents, Artifact, Step, StepError, StepReport};
use real_agents::{CHANGE, Cli, DUMMY_KEY, Sandbox};
use scripted_models::{Reply, Rule, Script};
use serde_json::{Value, json};
use test_project::{agentd, now};

real_agents::for_every_cli!(
    a_planner_writes_a_proposal_and_is_resumed_with_its_history,
    a_refusal_reaches_the_model_which_corrects_itself,
    success_without_an_artifact_is_a_failure,
    a_challenger_appends_a_review,
);

/// A project with one change, in which the CLI plays every role.
fn project(sandbox: &Sandbox, cli: Cli) -> Agents {
    let (name, program) = (cli.program(), sandbox.clis().program(cli));
    let config = format!(
        "[workflow]\nscript_retries = 0\n[roles]\nplanner = \"{name}\"\nchallenger = \"{name}\"\n[{name}]\ncommand = \"{}\"\n",
        program.display()
    );
    sandbox.write_root("agentd/config.toml", config);
    let first = state::render(&State::new(sandbox.id(), "Add a login", now()));
    sandbox.write("STATE.yaml", first);
    sandbox.agents(&agentd())
}

fn run(
    agents: &Agents,
    role: Role,
    name: &str,
    resume: Option<String>,
    artifact: Artifact,
) -> Result<StepReport, StepError> {
    let step = Step {
        change: ChangeId::new(CHANGE).unwrap(),
        role,
        agent: agents.config.roles.agent(role),
        name: name.into(),
        prompt: format!("agentd {name} {CHANGE}\n\nDo what this step is for.\n"),
        resume,
        artifact,
        on_success: None,
    };
    step::run(agents, &step, &now, &mut |_| {})
}

fn a_proposal(summary: &str) -> Value {
    json!({
        "change_id": CHANGE,
        "summary": summary,
        "why": "People want to come back to their own data.",
        "what_changes": ["Add a login with email and password"],
        "impact": { "scope": "minor", "affected_specs": ["auth-flow"], "affected_files": 3 },
    })
}

fn a_planner_writes_a_proposal_and_is_resumed_with_its_history(cli: Cli) {
    let script = Script::new()
        .rule(
            Rule::new()
                .step("proposal-gen")
                .reply(
                    Reply::call("create_proposal", a_proposal("Add a login."))
                        .saying("I write the proposal."),
                )
                .reply(Reply::text("It is written.")),
        )
        .rule(
            Rule::new()
                .step("reproposal")
                .reply(Reply::call("create_proposal", a_proposal("Add a login that locks.")))
                .reply(Reply::text("It is fixed.")),
        );
    Sandbox::enter(script, |sandbox| {
        let agents = project(sandbox, cli);
        let artifact = || Artifact::File(ChangeFile::Proposal);
        let first = run(&agents, Role::Planner, "proposal-gen", None, artifact()).unwrap();
        let written = sandbox.proposal();
        assert_eq!(written.summary.as_str(), "Add a login.");
        assert!(first.run_file.is_file());
        let record = fs::read_to_string(&first.run_file).unwrap();
        assert!(!record.contains(DUMMY_KEY), "a key is in the record");

        let id = first.outcome.session_id.clone().unwrap();
        let asked = sandbox.models().requests().len();
        run(&agents, Role::Planner, "reproposal", Some(id.clone()), artifact()).unwrap();
        let written = sandbox.proposal();
        assert_eq!((written.summary.as_str(), written.version), ("Add a login that locks.", 2));
        let requests = sandbox.models().requests();
        let remembers = |request: &scripted_models::ModelRequest| {
            request.messages.iter().any(|message| message.text.contains("agentd proposal-gen"))
        };
        assert!(requests[asked..].iter().any(remembers), "the history is gone");

        let state = sandbox.state();
        let steps: Vec<String> = state.llm_calls.iter().map(|call| call.step.to_string()).collect();
        assert_eq!(steps, ["proposal-gen", "reproposal"]);
        for call in &state.llm_calls {
            assert!(call.tokens_in > 0 && call.tokens_out > 0, "{call:?}");
            assert_eq!(call.session_id.as_deref(), Some(&*id));
        }
        // Each call is counted by itself, even if the CLI reports totals of a thread.
        assert_eq!(state.llm_calls[0].tokens_out, state.llm_calls[1].tokens_out);
        assert_eq!(
            state.total_tokens_in,
            state.llm_calls.iter().map(|call| call.tokens_in).sum::<u64>()
        );
        assert!(!sandbox.root().join(".gemini/settings.json").exists(), "it was put back");
        assert!(!sandbox.root().join(".mcp.json").exists());
    });
}

fn a_refusal_reaches_the_model_which_corrects_itself(cli: Cli) {
    let mut wrong = a_proposal("Add a login.");
    // No schema can say this, so that no CLI refuses it before agentd does.
    wrong["impact"]["affected_specs"] = json!([
        { "id": "auth-flow", "depends": ["user-model"] },
        { "id": "user-model", "depends": ["auth-flow"] },
    ]);
    let script = Script::new().rule(
        Rule::new()
            .step("proposal-gen")
            .reply(Reply::call("create_proposal", wrong))
            .reply(Reply::call("create_proposal", a_proposal("Add a login.")))
            .reply(Reply::text("Now it is written.")),
    );
    Sandbox::enter(script, |sandbox| {
        let agents = project(sandbox, cli);
        run(&agents, Role::Planner, "proposal-gen", None, Artifact::File(ChangeFile::Proposal))
            .unwrap();
        let reported = sandbox.models().requests().iter().any(|request| {
            request.tool_results.iter().any(|result| {
                let text = format!("{result:?}");
                text.contains("P007") && text.contains("auth-flow → user-model → auth-flow")
            })
        });
        assert!(reported, "the model did not get the diagnostics");
        assert_eq!(sandbox.proposal().version, 1, "the refused one was not written");
    });
}

fn success_without_an_artifact_is_a_failure(cli: Cli) {
    let script = Script::new().rule(
        Rule::new()
            .step("proposal-gen")
            .reply(Reply::text("proposal.md is written. <review>PASS</review>")),
    );
    Sandbox::enter(script, |sandbox| {
        let agents = project(sandbox, cli);
        let artifact = Artifact::File(ChangeFile::Proposal);
        let error = run(&agents, Role::Planner, "proposal-gen", None, artifact).unwrap_err();
        assert!(matches!(error, StepError::NoArtifact { exists: false, .. }), "{error:?}");
        assert_eq!(sandbox.state().llm_calls.len(), 1, "it has cost something all the same");
    });
}

fn a_challenger_appends_a_review(cli: Cli) {
    let review = json!({
        "change_id": CHANGE,
        "verdict": "NEEDS_REVISION",
        "summary": "Nothing says what happens after many attempts.",
        "issues": [{
            "severity": "high",
            "title": "No lock",
            "description": "A password can be guessed forever.",
            "location": "auth-flow:R1",
            "recommendation": "Lock after 5 attempts.",
        }],
    });
    let script = Script::new()
        .rule(
            Rule::new()
                .step("proposal-gen")
                .reply(Reply::call("create_proposal", a_proposal("Add a login.")))
                .reply(Reply::text("It is written.")),
        )
        .rule(
            Rule::new()
                .step("challenge")
                .reply(Reply::call("append_review", review))
                .reply(Reply::text("Reviewed.")),
        );
    Sandbox::enter(script, |sandbox| {
        let agents = project(sandbox, cli);
        run(&agents, Role::Planner, "proposal-gen", None, Artifact::File(ChangeFile::Proposal))
            .unwrap();
        run(&agents, Role::Challenger, "challenge", None, Artifact::PlanReview).unwrap();
        let reviews = sandbox.proposal().reviews;
        assert_eq!(reviews.len(), 1);
        assert_eq!((reviews[0].verdict, reviews[0].counts().high), (PlanVerdict::NeedsRevision, 1));
        assert!(reviews[0].plan.is_some(), "a verdict is bound to the plan");
        assert_eq!(sandbox.state().llm_calls.len(), 2);
    });
}

/// P2 with the whole of agentd: `clarify` calls the real CLI, whose model proposes
/// questions through agentd's MCP server.
#[test]
fn gemini_proposes_questions_for_the_clarify_command() {
    let option = |label: &str| json!({ "label": label, "description": "It is known." });
    let question = |header: &str| {
        json!({ "header": header, "question": format!("Which {header}?"),
            "options": [option("The first"), option("The second")], "multi_select": false })
    };
    let questions = json!(["Method", "Storage", "Clients"].map(question));
    let script = Script::new().rule(
        Rule::new()
            .step("clarify")
            .reply(Reply::call(
                "propose_questions",
                json!({ "change_id": "add-lock", "questions": questions }),
            ))
            .reply(Reply::text("They are proposed.")),
    );
    Sandbox::enter(script, |sandbox| {
        project(sandbox, Cli::Gemini);
        let proposed =
            sandbox.run(["clarify", "add-lock", "Lock accounts", "--json"]).exits(0).json();
        assert_eq!(proposed["action"], "questions_proposed");
        assert_eq!(proposed["questions"], questions);
        // The planner is offered what the step needs, and nothing that writes a plan.
        let request = sandbox.models().requests().into_iter().next().unwrap();
        let tools = request.tools.iter().map(|tool| tool.name.as_str());
        let ours: Vec<&str> = tools.filter(|name| name.starts_with("mcp_")).collect();
        insta::assert_snapshot!(ours.join("\n"), @"
        mcp_agentd_read_file
        mcp_agentd_list_directory
        mcp_agentd_propose_questions
        ");
        let answers = sandbox.base().join("answers.json");
        let text = json!({ "Method": "The second", "Storage": "Own", "Clients": "the first" });
        fs::write(&answers, text.to_string()).unwrap();
        let args = ["clarify", "add-lock", "--answers", answers.to_str().unwrap(), "--json"];
        sandbox.run(args).exits(0);
        let written = sandbox.read_root("agentd/changes/add-lock/clarifications.md");
        insta::assert_snapshot!(sandbox.mask(written), @"
        ---
        change: add-lock
        date: [DATE]
        ---

        # Clarifications

        ## Q1: Method

        - **Question**: Which Method?
        - **Answer**: The second
        - **Rationale**: It is known.

        ## Q2: Storage

        - **Question**: Which Storage?
        - **Answer**: Own

        ## Q3: Clients

        - **Question**: Which Clients?
        - **Answer**: The first
        - **Rationale**: It is known.
        ");
        assert!(!sandbox.root().join(".gemini/settings.json").exists(), "it was put back");
    });
}
