//! A recorded run of a real CLI is reproduced without it.

use std::fs;

use agentd_core::agent::Role;
use agentd_core::layout::ChangeFile;
use agentd_core::run_format::Record;
use agentd_engine::agents::recording::Recording;
use agentd_engine::agents::reproduce::reproduce;
use agentd_engine::agents::step::{Agents, Artifact};
use real_agents::{CHANGE, Cli, Sandbox, lines_with, work};
use scripted_models::{Reply, Rule, Script};
use serde_json::json;
use test_project::agentd;

use super::{a_proposal, project, run};

real_agents::for_every_cli!(a_recorded_change_is_reproduced_byte_for_byte,);

fn a_recorded_change_is_reproduced_byte_for_byte(cli: Cli) {
    let review = json!({
        "change_id": CHANGE, "verdict": "APPROVED", "summary": "Good.",
        "issues": [{"severity": "low", "title": "A word", "description": "Some \"quotes\" and ümlauts."}],
    });
    let mut script = Script::new()
        .rule(
            Rule::new()
                .step("proposal-gen")
                // Refused first, as a real model would be: a replay is refused again.
                .reply(Reply::call("create_proposal", json!({"change_id": CHANGE})))
                .reply(Reply::call("create_proposal", a_proposal("Add a login.")))
                .reply(Reply::call(
                    "read_file",
                    json!({"change_id": CHANGE, "path": "proposal.md"}),
                ))
                .reply(Reply::text("It is written.")),
        )
        .rule(
            Rule::new()
                .step("challenge")
                .reply(Reply::call("append_review", review))
                .reply(Reply::text("Reviewed.")),
        );
    script.rules.extend(work(cli).rules);
    Sandbox::enter(script, |sandbox| {
        let agents = project(sandbox, cli);
        let name = agents.config.roles.planner;
        let config = sandbox.root().join("agentd/config.toml");
        let text = fs::read_to_string(&config).unwrap();
        let all = format!("implementer = \"{name}\"\nplanner = ");
        fs::write(&config, text.replacen("planner = ", &all, 1)).unwrap();
        let agents = sandbox.agents(&agentd());
        let proposal = Artifact::File(ChangeFile::Proposal);
        run(&agents, Role::Planner, "proposal-gen", None, proposal).unwrap();
        run(&agents, Role::Challenger, "challenge", None, Artifact::PlanReview).unwrap();
        run(&agents, Role::Implementer, "implement-logic", None, Artifact::Nothing).unwrap();

        let source = sandbox.root().join("agentd/changes").join(CHANGE);
        let recording = Recording::open(&source).unwrap();
        let implemented =
            recording.runs().iter().find(|run| run.step() == "implement-logic".into()).unwrap();
        let last = recording.read(implemented).unwrap();
        let edited: Vec<&str> = last
            .records
            .iter()
            .filter_map(|record| match record {
                Record::Files { files, .. } => Some(files),
                _ => None,
            })
            .flatten()
            .map(|edit| edit.path.as_str())
            .collect();
        assert_eq!(
            edited,
            ["copy.txt", "hello.txt"],
            "by a tool and by a command, and nothing else"
        );

        let before = sandbox.models().requests().len();
        let copy = sandbox.base().join("copy");
        fs::create_dir_all(copy.join("agentd/changes")).unwrap();
        let target = agentd_engine::opening::open_within_call(&copy, sandbox.user()).unwrap();
        let target = Agents { project: target, work_tree: copy.clone(), ..agents };
        let done = reproduce(target, &source, &mut |_| {}, &mut |_| {}).unwrap();
        assert_eq!(done.divergences, Vec::<String>::new());
        assert_eq!((done.runs.len(), done.compared), (3, 4));
        assert_eq!(sandbox.models().requests().len(), before, "no model was asked");
        let read = |root: &std::path::Path| fs::read_to_string(root.join("proposal.md")).unwrap();
        let again = read(&copy.join("agentd/changes").join(CHANGE));
        assert_eq!(again, read(&source));
        assert_eq!(lines_with(&again, "**Reviewer**"), format!("- **Reviewer**: {name}"));
        assert_eq!(fs::read_to_string(copy.join("copy.txt")).unwrap(), "hello\n");
    });
}
