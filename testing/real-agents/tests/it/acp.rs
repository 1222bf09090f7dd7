//! Agents over ACP, run as a user runs them: the real gemini, codex-acp, claude-agent-acp,
//! opencode and qwen, in every role.

mod bar;
mod fallback;
mod implementers;
mod kills;
mod probe;
mod roles;
mod sessions;
mod story;

/// The settings that make an agent of the tests speak ACP. opencode needs none.
pub(crate) fn settings(agent: &str) -> &'static str {
    match agent {
        "gemini" => "[gemini]\ntransport = \"acp\"\n",
        "codex" => "[codex]\ntransport = \"acp\"\n",
        "claude" => "[claude]\ntransport = \"acp\"\n",
        "qwen" => {
            "[agents.qwen]\nacp = [\"qwen\", \"--acp\", \"--auth-type\", \"anthropic\"]\n\
             env = { ANTHROPIC_MODEL = \"claude-sonnet-4-5\" }\n"
        }
        _ => "",
    }
}

/// The settings of several agents, each once.
pub(crate) fn all_settings(agents: &[&str]) -> String {
    let mut agents = agents.to_vec();
    agents.sort_unstable();
    agents.dedup();
    agents.into_iter().map(settings).collect()
}

/// What the models were asked for that nobody expected. The adapter of codex wants a title for its
/// sessions, which nobody reads.
pub(crate) fn surprises(sandbox: &real_agents::Sandbox) -> Vec<String> {
    let all = sandbox.models().surprises().into_iter();
    all.filter(|surprise| !surprise.contains("generate a very short title")).collect()
}
