//! How agents are started: `[gemini]`, `[codex]`, `[claude]` and `[agents.<name>]`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::Config;
use super::sandbox::unusable_place;
use crate::agent::{AgentKind, AgentName, Complexity, Transport};
use crate::known_agent::{self, known};
use crate::nearest::nearest;
use crate::provider::models::{ModelChoice, choose};

/// The settings of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    /// A program name or path; without one, the agent's own name.
    pub command: Option<String>,
    /// Extra arguments, passed as they are.
    pub args: Vec<String>,
    /// How the three CLIs are talked to.
    pub transport: Option<Transport>,
    /// The program that speaks ACP, and its arguments.
    pub acp: Option<Vec<String>>,
    /// Extra environment for this agent only.
    pub env: BTreeMap<String, String>,
    /// Where an agent that agentd does not know keeps its own files.
    pub state: Vec<String>,
    /// A limit for the whole call.
    pub timeout_secs: u64,
    /// A limit for the time without any output.
    pub idle_timeout_secs: u64,
    /// How a session of Gemini is found again.
    pub resume: Option<Resume>,
    /// Models by complexity, over the built-in ones.
    pub models: BTreeMap<Complexity, ModelChoice>,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            transport: None,
            acp: None,
            env: BTreeMap::new(),
            state: Vec::new(),
            timeout_secs: 1800,
            idle_timeout_secs: 300,
            resume: None,
            models: BTreeMap::new(),
        }
    }
}

/// The limits of the agents that agentd plays itself; nothing else of them is configured
/// here. A replay at its true speed may pause as long as the agent did.
static OWN: LazyLock<AgentConfig> = LazyLock::new(|| AgentConfig {
    timeout_secs: 86_400,
    idle_timeout_secs: 86_400,
    ..AgentConfig::default()
});

/// The settings of an agent that has no section.
static UNSET: LazyLock<AgentConfig> = LazyLock::new(AgentConfig::default);

/// How a session of Gemini is found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resume {
    /// By its place in `--list-sessions`.
    #[default]
    Index,
    /// By its id.
    Uuid,
}

/// What is wrong with the settings of agents: the text to point at, what to say, and a hint.
pub(super) struct AgentMistake {
    pub(super) at: String,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Config {
    /// The settings of an agent.
    pub fn agent(&self, agent: AgentKind) -> &AgentConfig {
        match agent {
            AgentKind::Gemini => &self.gemini,
            AgentKind::Codex => &self.codex,
            AgentKind::Claude => &self.claude,
            AgentKind::Builtin | AgentKind::Replay => &OWN,
            AgentKind::Named(name) => self.agents.get(&name).unwrap_or(&UNSET),
        }
    }

    /// How agentd talks to an agent.
    pub fn transport(&self, agent: AgentKind) -> Transport {
        match agent {
            AgentKind::Gemini | AgentKind::Codex | AgentKind::Claude => {
                self.agent(agent).transport.unwrap_or_default()
            }
            AgentKind::Builtin | AgentKind::Replay => Transport::Cli,
            AgentKind::Named(_) => Transport::Acp,
        }
    }

    /// The program of an agent and its first arguments, by the settings or else by what is known
    /// about it. Empty for an agent that nobody has described.
    pub fn command(&self, agent: AgentKind) -> Vec<String> {
        let settings = self.agent(agent);
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        if self.transport(agent) == Transport::Cli {
            return vec![settings.command.clone().unwrap_or_else(|| agent.name().to_owned())];
        }
        if let Some(acp) = &settings.acp {
            return acp.clone();
        }
        let known = known(agent).map(|row| row.acp).unwrap_or_default();
        match (known.split_first(), &settings.command) {
            // The CLI itself speaks ACP, so its own program is meant.
            (Some((program, rest)), Some(command)) if *program == agent.name() => {
                let mut all: Vec<String> = words(rest);
                all.insert(0, command.clone());
                all
            }
            _ => words(known),
        }
    }

    /// The model and the effort of an agent for a complexity.
    pub fn model(&self, agent: AgentKind, complexity: Complexity) -> ModelChoice {
        choose(agent, complexity, self.agent(agent).models.get(&complexity))
    }

    /// Every agent that can be given a role, by its name.
    pub fn all_agents(&self) -> Vec<AgentKind> {
        let mut all = AgentKind::BUILT_IN.to_vec();
        let named = known_agent::agents().chain(self.agents.keys().copied().map(AgentKind::Named));
        for agent in named {
            if !all.contains(&agent) {
                all.push(agent);
            }
        }
        all
    }

    /// The sections of agents in the settings, with their names.
    pub(super) fn agent_sections(&self) -> Vec<(String, AgentKind)> {
        let clis = AgentKind::CLIS.into_iter().map(|agent| (agent.name().to_owned(), agent));
        let named = self.agents.keys().copied();
        let named = named.map(|name| (format!("agents.{}", name.as_str()), AgentKind::Named(name)));
        clis.chain(named).collect()
    }

    /// The first mistake in the sections of agents and in `[roles]`.
    pub(super) fn agent_mistake(&self) -> Option<AgentMistake> {
        let sections = self.agent_sections();
        sections
            .iter()
            .find_map(|(section, agent)| self.section_mistake(section, *agent))
            .or_else(|| self.role_mistake())
    }

    fn section_mistake(&self, section: &str, agent: AgentKind) -> Option<AgentMistake> {
        let settings = self.agent(agent);
        let mistake = |at: &str, message: String| {
            Some(AgentMistake { at: at.to_owned(), message, hint: None })
        };
        for choice in settings.models.values() {
            let words = [&choice.model, &choice.effort].into_iter().flatten();
            // Behind `-m`, some CLIs would take it for a flag of its own.
            if let Some(word) = words.into_iter().find(|word| word.starts_with('-')) {
                return mistake(word, format!("[{section}.models]: `{word}` begins with a hyphen"));
            }
        }
        if settings.resume.is_some() && agent != AgentKind::Gemini {
            return mistake(
                "resume",
                format!("`resume` is for [gemini] only, not for [{section}]"),
            );
        }
        if settings.acp.as_ref().is_some_and(|acp| acp.first().is_none_or(String::is_empty)) {
            return mistake("acp", format!("[{section}]: `acp` names a program first"));
        }
        if let Some(path) = unusable_place(&settings.state) {
            let message = format!(
                "[{section}]: state has `{path}`: each path is absolute or starts with ~/, without `..`"
            );
            return mistake("state", message);
        }
        let AgentKind::Named(name) = agent else { return None };
        let only_clis = [
            ("command", settings.command.is_some()),
            ("args", !settings.args.is_empty()),
            ("transport", settings.transport.is_some()),
        ];
        if let Some((key, _)) = only_clis.into_iter().find(|(_, is_set)| *is_set) {
            let message = format!(
                "`{key}` is for [gemini], [codex] and [claude]; [{section}] has `acp` instead"
            );
            return mistake(key, message);
        }
        if self.command(agent).is_empty() {
            let near = nearest(name.as_str(), known_agent::KNOWN.iter().map(|row| row.name));
            return Some(AgentMistake {
                at: section.to_owned(),
                message: format!("[{section}] needs `acp`: the program that speaks ACP"),
                hint: Some(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("e.g. acp = [\"{}\", \"acp\"]", name.as_str()),
                }),
            });
        }
        None
    }

    /// A role that is given to an agent that there is not.
    fn role_mistake(&self) -> Option<AgentMistake> {
        let all = self.all_agents();
        let chains = self.fallbacks.values().flatten().copied();
        let wrong =
            self.roles.all().into_iter().chain(chains).find(|agent| !all.contains(agent))?;
        let hint = match nearest(wrong.name(), all.iter().map(AgentKind::name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "known here: {}; or describe it in [agents.{wrong}]",
                all.iter().map(AgentKind::name).collect::<Vec<_>>().join(", ")
            ),
        };
        let message = format!("unknown agent `{wrong}`");
        Some(AgentMistake { at: format!("\"{wrong}\""), message, hint: Some(hint) })
    }
}

/// `[agents]`: names that are not those of other sections.
pub(super) fn sections<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<AgentName, AgentConfig>, D::Error> {
    use serde::de::Error as _;
    let sections: BTreeMap<AgentKind, AgentConfig> = BTreeMap::deserialize(deserializer)?;
    let named = sections.into_iter().map(|(agent, settings)| match agent {
        AgentKind::Named(name) => Ok((name, settings)),
        AgentKind::Gemini | AgentKind::Codex | AgentKind::Claude => Err(D::Error::custom(format!(
            "the settings of {agent} are in [{agent}], not in [agents.{agent}]"
        ))),
        AgentKind::Builtin | AgentKind::Replay => {
            Err(D::Error::custom(format!("`{agent}` is part of agentd: choose another name")))
        }
    });
    named.collect()
}
