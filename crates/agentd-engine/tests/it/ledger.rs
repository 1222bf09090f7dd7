//! What a call has used is in the ledger, whatever died.

use std::fs;

use agentd_core::agent::Role;
use agentd_core::event::AgentEvent;
use agentd_core::ids::ChangeId;
use agentd_core::outcome::FailureKind;
use agentd_core::run_format::Record;
use agentd_engine::agents::run_record::read_run;
use agentd_engine::agents::runner::RunError;
use agentd_engine::agents::step::{self, Agents, Artifact, Step, StepError};
use rustix::process::{Pid, Signal, kill_process};

use test_project::now;

use crate::steps::{ask, kept, scripted};
use crate::support::marked;

/// Runs a step and kills the supervisor of the agent as soon as the agent has reported its usage.
fn with_its_supervisor_killed(agents: &Agents) -> Result<(), StepError> {
    let mark = agents.environment.iter().find(|(name, _)| name == "IT_MARK").unwrap();
    let mark = mark.1.to_str().unwrap().to_owned();
    let step = Step {
        change: ChangeId::new("add-login").unwrap(),
        role: Role::Planner,
        agent: agents.config.roles.planner,
        name: "proposal-gen".into(),
        prompt: "hello\n".to_owned(),
        resume: None,
        artifact: Artifact::Nothing,
        on_success: None,
    };
    let result = step::run(agents, &step, &now, &mut |event| {
        if !matches!(event, AgentEvent::Usage { .. }) {
            return;
        }
        // Also what it has started: nobody else does it now.
        let all = marked(&mark);
        let (supervisors, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, line)| line.contains("__supervise"));
        assert!(!supervisors.is_empty());
        for (pid, _) in supervisors.into_iter().chain(others) {
            let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    result.map(|_| ())
}

#[test]
fn a_call_with_a_killed_supervisor_counts_for_the_budget() {
    let (project, agents) =
        scripted("cat start say end; exec sleep 86399", "[budget]\nmax_cost_usd = 0.2\n");
    let error = with_its_supervisor_killed(&agents).unwrap_err();
    assert!(matches!(error, StepError::Run(RunError::Process(_))), "{error:?}");
    let state = project.state();
    assert_eq!(state.llm_calls.len(), 1);
    assert!((state.total_cost - 0.25).abs() < 1e-9, "{}", state.total_cost);
    assert_eq!((state.total_tokens_in, state.total_tokens_out), (15, 2));
    let run = project.root().join("agentd/changes/add-login/runs/0001-proposal-gen.jsonl");
    let last = read_run(&run).unwrap().map(Result::unwrap).last();
    let Some(Record::End { end, .. }) = last else { panic!("{last:?}") };
    assert_eq!(end.outcome.failure.unwrap().kind, FailureKind::Other);
    assert_eq!(end.outcome.cost_usd, Some(0.25));
    let error = with_its_supervisor_killed(&agents).unwrap_err();
    assert!(matches!(error, StepError::Budget { .. }), "{error:?}");
}

#[test]
fn a_call_that_cannot_be_prepared_is_recorded() {
    let (project, agents) = scripted("exit 1", "");
    // Where the lock of the call is to be. A file in place of its directory would be replaced.
    agents.project.state_dir().unwrap();
    fs::create_dir_all(kept(&project).join("add-login-proposal-gen.lock")).unwrap();
    let (result, _) = ask(&agents, Role::Planner, "proposal-gen", Artifact::Nothing);
    assert!(matches!(result, Err(StepError::Run(RunError::Files(_)))), "{result:?}");
    assert_eq!(project.state().llm_calls.len(), 1);
    let run = project.root().join("agentd/changes/add-login/runs/0001-proposal-gen.jsonl");
    let last = read_run(&run).unwrap().map(Result::unwrap).last();
    assert!(matches!(last, Some(Record::End { .. })), "{last:?}");
}

/// M6: what a CLI says may not lower what was spent.
#[test]
fn a_negative_cost_is_counted_by_its_tokens() {
    let (project, agents) = scripted("cat start say; sed 's/0.25/-5.0/' end", "");
    let (_, warnings) = ask(&agents, Role::Planner, "proposal-gen", Artifact::Nothing);
    let state = project.state();
    assert!(state.total_cost > 0.0 && state.total_cost < 0.01, "{}", state.total_cost);
    insta::assert_snapshot!(warnings.join("\n"), @"the agent reports a cost of $-5, which is not counted");
}

#[test]
fn a_run_number_is_never_reused() {
    let (project, agents) = scripted("cat start say end", "");
    ask(&agents, Role::Planner, "proposal-gen", Artifact::Nothing).0.unwrap();
    fs::remove_dir_all(project.root().join("agentd/changes/add-login/runs")).unwrap();
    ask(&agents, Role::Planner, "proposal-gen", Artifact::Nothing).0.unwrap();
    let runs: Vec<_> = project.state().llm_calls.iter().filter_map(|call| call.run).collect();
    assert_eq!(runs, [1, 2]);
}
