//! Prompts and contexts against the tools that there are: what a prompt asks for must
//! exist for its role, and all that the tool requires must be named.

use agentd_core::agent::Role;
use agentd_core::diagnostic::Severity;
use agentd_core::ids::{ChangeId, Layer, SpecId};
use agentd_core::prompt::{
    Challenge, Clarify, Fix, FormatFix, Implement, ImplementAgain, IssueView, NewPlan, Reproposal,
    Review, Reviewed, SelfReview, SpecGen, TasksGen,
};
use agentd_core::state::Track;
use agentd_core::step_name::StepName;
use agentd_engine::agents::context::ContextKind;
use agentd_engine::tools::{self, Toolset};
use serde_json::Value;

/// Every prompt, with the tools that it wants to be called.
fn prompts() -> Vec<(String, &'static [&'static str])> {
    let change = &ChangeId::new("add-oauth").unwrap();
    let spec = &SpecId::new("auth-flow").unwrap();
    let specs = std::slice::from_ref(spec);
    let clarified = false;
    let (description, main_specs, overlaps) = ("Add login", &[], &[]);
    let track = Track::Full;
    let new_plan = NewPlan { change, description, clarified, main_specs, overlaps, track };
    let layer = Layer::Data;
    // What is said of earlier issues is asked for only where there are some.
    let earlier = &[IssueView {
        id: Some("I1".to_owned()),
        severity: Severity::Low,
        title: String::new(),
        description: String::new(),
        location: String::new(),
        recommendation: String::new(),
        fate: None,
    }];
    let mut prompts: Vec<(String, &'static [&'static str])> = vec![
        (Clarify { change, description }.render(), &["propose_questions"]),
        (new_plan.render_proposal(), &["create_proposal"]),
        (new_plan.render_plan(), &["create_proposal", "create_spec", "create_tasks"]),
        (
            SpecGen {
                change,
                spec,
                number: 1,
                total: 1,
                earlier: &[],
                clarified,
                edits_main_spec: true,
            }
            .render(),
            &["create_spec", "write_spec"],
        ),
        (TasksGen { change, specs, clarified, outdated: &[] }.render(), &["create_tasks"]),
        (FormatFix { change, reports: &[] }.render(), &["edit_file", "write_spec"]),
        (
            Challenge { change, specs, clarified, earlier, settled: &[], changed: &[] }.render(),
            &["append_review"],
        ),
        (
            Reproposal { change, issues: &[], comments: &[], note: "" }.render(),
            &["edit_file", "write_spec"],
        ),
        (
            Implement {
                change,
                layer,
                tasks: &[],
                specs: &[],
                rules: "",
                test_command: None,
                lint_command: None,
                build_command: None,
                sandbox: "",
            }
            .render(),
            &["complete_task"],
        ),
        (ImplementAgain { change, layer, tasks: &[] }.render(), &["complete_task"]),
        (
            Review {
                change,
                specs: &[],
                tasks: &[],
                diff: "",
                tests: None,
                reproduced: None,
                earlier,
                settled: &[],
            }
            .render(),
            &["create_review"],
        ),
        (
            Fix { change, findings: &[], comments: &[], tests: None, sandbox: "" }.render(),
            &["complete_task"],
        ),
    ];
    for reviewed in [
        Reviewed::Proposal,
        Reviewed::Spec { id: spec, earlier: &[] },
        Reviewed::Tasks { specs },
        Reviewed::Plan { specs },
    ] {
        let prompt = SelfReview { change, reviewed, description, clarified };
        prompts.push((prompt.render(), &["edit_file"]));
    }
    prompts
}

/// The names of all fields that a schema requires, those of its parts included.
fn required(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            let own = map.get("required").and_then(Value::as_array);
            names.extend(own.into_iter().flatten().filter_map(|n| n.as_str().map(str::to_owned)));
            map.values().for_each(|part| required(part, names));
        }
        Value::Array(parts) => parts.iter().for_each(|part| required(part, names)),
        _ => {}
    }
}

/// Whether a prompt names a field, alone or as `impact.scope`.
fn names(prompt: &str, field: &str) -> bool {
    prompt.contains(&format!("`{field}`"))
        || prompt.contains(&format!(".{field}`"))
        || prompt.contains(&format!("`{field}."))
}

/// The tools that the agent has which is given this prompt.
fn tools_of(prompt: &str) -> Toolset {
    let name = prompt.split_whitespace().nth(1).unwrap();
    let step: StepName = name.parse().unwrap();
    Toolset::new(step.role(), Some(&step))
}

#[test]
fn a_prompt_names_its_tool_and_everything_that_the_tool_requires() {
    for (prompt, wanted) in prompts() {
        let step = prompt.lines().next().unwrap().to_owned();
        for tool in wanted {
            assert!(prompt.contains(&format!("`{tool}`")), "{step}: {tool}");
            let tool = tools::find(tools_of(&prompt), tool);
            let tool = tool.unwrap_or_else(|| panic!("{step} wants a tool that is not there"));
            let mut fields = Vec::new();
            required(&Value::Object(tool.input(None)), &mut fields);
            assert!(fields.len() > 1, "{fields:?}");
            for field in fields {
                assert!(names(&prompt, &field), "{step}: {} needs `{field}`", tool.name);
            }
        }
    }
}

#[test]
fn a_prompt_names_no_tool_that_its_role_does_not_have() {
    for (prompt, _) in prompts() {
        let own = tools_of(&prompt);
        for tool in tools::of(Toolset::All).filter(|tool| !tool.is_in(own)) {
            let step = prompt.lines().next().unwrap();
            assert!(!prompt.contains(tool.name), "{step}: {}", tool.name);
        }
    }
}

#[test]
fn a_context_names_the_tools_of_its_role_and_no_others() {
    for (kind, role) in [
        (ContextKind::Planner, Role::Planner),
        (ContextKind::Challenger, Role::Challenger),
        (ContextKind::Reviewer, Role::Reviewer),
    ] {
        for tool in tools::of(Toolset::All) {
            let named = kind.instructions().contains(&format!("`{}`", tool.name));
            assert_eq!(named, tool.is_in(Toolset::Step(role)), "{role}: {}", tool.name);
        }
    }
}
