//! The mode, the model and the effort of a session, chosen among what the agent offers.

use serde_json::{Value, json};

use super::message::Opened;
use crate::agent::Role;
use crate::provider::AgentRequest;
use crate::provider::models::answers_to;

/// A request that changes an option of a session.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    pub(super) method: &'static str,
    /// Without the session, which every request names.
    pub(super) params: Value,
    /// The model that is used from then on.
    pub(super) model: Option<String>,
}

/// What is to be changed in a session before it is prompted, and what cannot be.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) changes: Vec<Change>,
    pub(super) warnings: Vec<String>,
}

/// Modes in which an agent asks before it acts, or cannot act, best first. Modes that only plan
/// are not among them: some hide the tools of MCP servers.
fn wanted_modes(role: Role) -> [&'static str; 4] {
    if role.edits_the_work_tree() {
        ["workspace-write", "default", "ask", "build"]
    } else {
        ["read-only", "default", "ask", "build"]
    }
}

/// The model of a session as it was opened.
pub(super) fn model(opened: &Opened) -> Option<String> {
    let option = opened.config_options.iter().find(|option| is_of(option, "model"));
    let by_option = option.and_then(|option| option.current_value.as_str()).map(str::to_owned);
    let by_list = opened.models.as_ref().map(|models| models.current_model_id.clone());
    let model = by_option.or(by_list).map(|model| plain_model(&model).to_owned());
    model.filter(|model| !model.is_empty() && model != "default")
}

/// The name of a model without what an agent puts around it: `$runtime|anthropic|x(anthropic)`,
/// `x[medium]`.
fn plain_model(model: &str) -> &str {
    let model = model.rsplit('|').next().unwrap_or(model);
    let end = model.find('(').unwrap_or(model.len());
    match model[..end].split_once('[') {
        // Claude has a model of that name.
        Some((_, "1m]")) | None => &model[..end],
        Some((name, _)) => name,
    }
}

/// What is to be changed so that a session is as the request wants it.
pub(super) fn plan(opened: &Opened, request: &AgentRequest) -> Plan {
    let mut plan = Plan::default();
    plan_mode(opened, request.role, &mut plan);
    if let Some(model) = &request.model {
        plan_model(opened, model, request.effort.as_deref(), &mut plan);
    }
    if let Some(effort) = &request.effort {
        plan_effort(opened, effort, &mut plan);
    }
    plan
}

fn is_of(option: &super::message::ConfigOption, category: &str) -> bool {
    option.category.as_deref() == Some(category)
}

fn plan_mode(opened: &Opened, role: Role, plan: &mut Plan) {
    let wanted = wanted_modes(role);
    let best = |offered: &[&str]| wanted.into_iter().find(|mode| offered.contains(mode));
    if let Some(modes) = &opened.modes {
        let offered: Vec<&str> = modes.available_modes.iter().map(|mode| &*mode.id).collect();
        if let Some(mode) = best(&offered).filter(|mode| *mode != modes.current_mode_id) {
            let params = json!({ "modeId": mode });
            plan.changes.push(Change { method: "session/set_mode", params, model: None });
        }
        return;
    }
    let option = opened.config_options.iter().find(|option| is_of(option, "mode"));
    if let Some(option) = option
        && let Some(mode) = best(&option.values()).filter(|mode| option.current_value != **mode)
    {
        plan.changes.push(set_option(&option.id, mode, None));
    }
}

fn plan_model(opened: &Opened, wanted: &str, effort: Option<&str>, plan: &mut Plan) {
    let option = opened.config_options.iter().find(|option| is_of(option, "model"));
    let (offered, current): (Vec<&str>, &str) = match (option, &opened.models) {
        (Some(option), _) => (option.values(), option.current_value.as_str().unwrap_or_default()),
        (None, Some(models)) => (
            models.available_models.iter().map(|model| &*model.model_id).collect(),
            &models.current_model_id,
        ),
        // The agent was told on its command line, or chooses by itself.
        (None, None) => return,
    };
    if current == wanted || plain_model(current) == wanted {
        return;
    }
    // Some agents list a model once for each effort.
    let with_effort = effort.map(|effort| format!("{wanted}[{effort}]"));
    let same = |offer: &&&str| ***offer == *wanted || Some(**offer) == with_effort.as_deref();
    let alike = |offer: &&&str| answers_to(wanted, plain_model(offer));
    let found = offered.iter().find(same).or_else(|| offered.iter().find(alike));
    let Some(found) = found else {
        plan.warnings.push(format!(
            "the agent does not offer the model {wanted}; it uses {}",
            if current.is_empty() { "one of its own choice" } else { current }
        ));
        return;
    };
    let model = Some(plain_model(found).to_owned());
    plan.changes.push(match option {
        Some(option) => set_option(&option.id, found, model),
        None => Change { method: "session/set_model", params: json!({ "modelId": found }), model },
    });
}

fn plan_effort(opened: &Opened, wanted: &str, plan: &mut Plan) {
    let option = opened.config_options.iter().find(|option| is_of(option, "thought_level"));
    if let Some(option) = option.filter(|option| option.current_value != wanted)
        && option.values().contains(&wanted)
    {
        plan.changes.push(set_option(&option.id, wanted, None));
    }
}

fn set_option(id: &str, value: &str, model: Option<String>) -> Change {
    let params = json!({ "configId": id, "value": value });
    Change { method: "session/set_config_option", params, model }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::tests::request;

    fn planned(opened: &str, role: Role, model: Option<&str>, effort: Option<&str>) -> Vec<String> {
        let opened: Opened = serde_json::from_str(opened).unwrap();
        let mut request = request(role);
        request.model = model.map(str::to_owned);
        request.effort = effort.map(str::to_owned);
        let plan = plan(&opened, &request);
        let changes =
            plan.changes.iter().map(|change| format!("{} {}", change.method, change.params));
        changes.chain(plan.warnings.iter().map(|warning| format!("warning: {warning}"))).collect()
    }

    const CODEX: &str = r#"{"sessionId":"s","modes":{"currentModeId":"agent","availableModes":[
        {"id":"read-only"},{"id":"workspace-write"},{"id":"agent"},{"id":"agent-full-access"}]},
        "configOptions":[{"id":"model","category":"model","type":"select","currentValue":"gpt-6.1-sol",
        "options":[{"value":"gpt-6.1-sol"},{"value":"gpt-6-luna"}]},
        {"id":"reasoning_effort","category":"thought_level","currentValue":"low",
        "options":[{"value":"low"},{"value":"medium"}]}]}"#;

    // contract G2
    #[test]
    fn a_session_is_put_into_a_mode_that_fits_the_role() {
        assert_eq!(
            planned(CODEX, Role::Planner, Some("gpt-6.1-sol"), Some("medium")),
            [
                r#"session/set_mode {"modeId":"read-only"}"#,
                r#"session/set_config_option {"configId":"reasoning_effort","value":"medium"}"#
            ]
        );
        assert_eq!(
            planned(CODEX, Role::Implementer, Some("gpt-6-luna"), None),
            [
                r#"session/set_mode {"modeId":"workspace-write"}"#,
                r#"session/set_config_option {"configId":"model","value":"gpt-6-luna"}"#
            ]
        );
        let yolo = r#"{"modes":{"currentModeId":"yolo","availableModes":[{"id":"default"},{"id":"yolo"},{"id":"plan"}]}}"#;
        assert_eq!(
            planned(yolo, Role::Reviewer, None, None),
            [r#"session/set_mode {"modeId":"default"}"#]
        );
        let opencode = r#"{"configOptions":[{"id":"mode","category":"mode","currentValue":"plan",
            "options":[{"value":"build"},{"value":"plan"}]}]}"#;
        assert_eq!(
            planned(opencode, Role::Planner, None, None),
            [r#"session/set_config_option {"configId":"mode","value":"build"}"#]
        );
        assert!(planned("{}", Role::Planner, Some("x"), Some("high")).is_empty());
    }

    #[test]
    fn models_are_found_by_name_alias_and_effort() {
        let listed = r#"{"models":{"currentModelId":"auto","availableModels":[
            {"modelId":"auto"},{"modelId":"gemini-3.8-flash"},{"modelId":"gemini-3.5-flash-lite"},{"modelId":"gpt-6.1-sol[low]"},{"modelId":"gpt-6.1-sol[high]"}]}}"#;
        assert_eq!(
            planned(listed, Role::Planner, Some("flash"), None),
            [r#"session/set_model {"modelId":"gemini-3.8-flash"}"#]
        );
        assert_eq!(
            planned(listed, Role::Planner, Some("gpt-6.1-sol"), Some("high")),
            [r#"session/set_model {"modelId":"gpt-6.1-sol[high]"}"#]
        );
        assert_eq!(
            planned(listed, Role::Planner, Some("opus"), None),
            ["warning: the agent does not offer the model opus; it uses auto"]
        );
        let current = |json: &str| model(&serde_json::from_str(json).unwrap());
        let qwen =
            r#"{"models":{"currentModelId":"$runtime|anthropic|claude-sonnet-4-5(anthropic)"}}"#;
        assert_eq!(current(qwen).as_deref(), Some("claude-sonnet-4-5"));
        assert_eq!(current(CODEX).as_deref(), Some("gpt-6.1-sol"));
        let claude =
            r#"{"configOptions":[{"id":"model","category":"model","currentValue":"default"}]}"#;
        assert_eq!(current(claude), None);
        let one_million = r#"{"models":{"currentModelId":"opus[1m]"}}"#;
        assert_eq!(current(one_million).as_deref(), Some("opus[1m]"));
    }
}
