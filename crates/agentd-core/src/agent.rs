//! Who does the work: the agents, the roles they play and how hard the work is. Roles and
//! complexities are small closed sets, so that a typo in a config file cannot become a permission.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::excerpt;

/// A name that is not in one of the closed sets of this module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not {what}; it is one of {known}")]
pub struct UnknownName {
    /// What was wanted.
    pub what: &'static str,
    /// What was given.
    pub found: String,
    /// What would have been accepted.
    pub known: &'static str,
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident, $what:literal, $known:literal,
     { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every value, in a fixed order.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// The name as it stands in files and on command lines.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;
            fn from_str(text: &str) -> Result<Self, UnknownName> {
                Self::ALL.into_iter().find(|value| value.name() == text).ok_or_else(|| {
                    UnknownName { what: $what, found: text.chars().take(80).collect(), known: $known }
                })
            }
        }
    };
}

/// The longest name of an agent.
const MAX_NAME: usize = 32;

/// The name of an agent that is neither one of the three CLIs nor agentd itself: one that the
/// settings or the table of [known agents](crate::known_agent) describe. Always safe in a path, in a message and
/// as a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName {
    /// ASCII, with zeros behind it: a name is as easy to pass around as a variant of an enum.
    bytes: [u8; MAX_NAME],
}

impl AgentName {
    /// The name.
    pub fn as_str(&self) -> &str {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(MAX_NAME);
        std::str::from_utf8(&self.bytes[..end]).unwrap_or_default()
    }
}

impl FromStr for AgentName {
    type Err = BadAgentName;

    fn from_str(text: &str) -> Result<Self, BadAgentName> {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let valid = !text.is_empty()
            && text.len() <= MAX_NAME
            && text.bytes().all(inner)
            && !text.starts_with('-');
        if !valid {
            return Err(BadAgentName { found: excerpt(text, 80) });
        }
        let mut bytes = [0; MAX_NAME];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self { bytes })
    }
}

impl fmt::Debug for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A text that cannot be the name of an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}` is not the name of an agent: names are lower-case letters, digits and `-`, \
     at most {MAX_NAME} of them"
)]
pub struct BadAgentName {
    /// What was given.
    pub found: String,
}

/// The agents that agentd can drive. Those that need code of their own have a variant; all others
/// speak a protocol, and are a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentKind {
    /// Gemini CLI.
    Gemini,
    /// Codex CLI.
    Codex,
    /// Claude Code.
    Claude,
    /// agentd itself, by rule: no model, no network.
    Builtin,
    /// agentd itself, doing again what a recorded agent did.
    Replay,
    /// An agent that speaks ACP.
    Named(AgentName),
}

impl AgentKind {
    /// Those with code of their own, in a fixed order.
    pub const BUILT_IN: [Self; 5] =
        [Self::Gemini, Self::Codex, Self::Claude, Self::Builtin, Self::Replay];

    /// Those that are CLIs of others, with code of their own.
    pub const CLIS: [Self; 3] = [Self::Gemini, Self::Codex, Self::Claude];

    /// The name as it is in files and on command lines.
    pub fn name(&self) -> &str {
        match self {
            Self::Gemini => "gemini",
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Builtin => "builtin",
            Self::Replay => "replay",
            Self::Named(name) => name.as_str(),
        }
    }

    /// Whether agentd itself plays this agent, so that there is no program to find.
    pub fn is_own(self) -> bool {
        matches!(self, Self::Builtin | Self::Replay)
    }
}

impl fmt::Display for AgentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for AgentKind {
    type Err = BadAgentName;

    /// Any name of an agent. Whether there is an agent of that name is for the settings to say.
    fn from_str(text: &str) -> Result<Self, BadAgentName> {
        let built_in = Self::BUILT_IN.into_iter().find(|agent| agent.name() == text);
        built_in.map_or_else(|| text.parse().map(Self::Named), Ok)
    }
}

impl Serialize for AgentKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for AgentKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// How agentd talks to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One process for each call: the prompt on standard input, events on standard output.
    #[default]
    Cli,
    /// The Agent Client Protocol: a dialogue of JSON-RPC messages.
    Acp,
}

named!(
    /// What an agent is asked to be. The role decides what it may touch.
    Role, "a role", "planner, challenger, implementer, reviewer",
    {
        /// Writes the plan, through MCP tools only.
        Planner = "planner",
        /// Judges the plan.
        Challenger = "challenger",
        /// Changes the code.
        Implementer = "implementer",
        /// Judges the code.
        Reviewer = "reviewer",
    }
);

impl Role {
    /// Whether the role may edit files and run commands in the working tree.
    /// Every other role reads the project and writes through MCP only.
    pub fn edits_the_work_tree(self) -> bool {
        self == Self::Implementer
    }
}

named!(
    /// How hard a change is; picks the models.
    Complexity, "a complexity", "low, medium, high, critical",
    {
        /// A few lines.
        Low = "low",
        /// A feature.
        Medium = "medium",
        /// Many parts.
        High = "high",
        /// Code that everything else depends on.
        Critical = "critical",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_others_are_refused() {
        for role in Role::ALL {
            assert_eq!(role.name().parse::<Role>().unwrap(), role);
        }
        for agent in AgentKind::BUILT_IN {
            assert_eq!(agent.name().parse::<AgentKind>().unwrap(), agent);
            assert!(agent.is_own() != AgentKind::CLIS.contains(&agent));
        }
        let error = "Planner".parse::<Role>().unwrap_err().to_string();
        insta::assert_snapshot!(error, @"`Planner` is not a role; it is one of planner, challenger, implementer, reviewer");
    }

    #[test]
    fn other_agents_are_their_names() {
        let longest = "a".repeat(MAX_NAME);
        for name in ["opencode", "mistral-vibe", "7", "q-", &longest] {
            let agent: AgentKind = name.parse().unwrap();
            assert!(
                matches!(agent, AgentKind::Named(_)) && agent.name() == name && !agent.is_own()
            );
            let json = serde_json::to_string(&agent).unwrap();
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<AgentKind>(&json).unwrap(), agent);
        }
        let too_long = "a".repeat(MAX_NAME + 1);
        for name in ["", "-x", "Gemini", "a b", "../x", "a_b", "é", "a\0", &too_long] {
            assert!(name.parse::<AgentKind>().is_err(), "{name:?}");
        }
        let error = "Gem\u{1b}ini".parse::<AgentKind>().unwrap_err().to_string();
        insta::assert_snapshot!(error, @r"`Gem\u{1b}ini` is not the name of an agent: names are lower-case letters, digits and `-`, at most 32 of them");
    }
}
