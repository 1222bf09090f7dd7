//! Who does the work: the agent programs, the roles they play and how hard the
//! work is. Small closed sets, so that a typo in a config file cannot become a
//! permission.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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

named!(
    /// The agent programs that agentd can drive.
    AgentKind, "an agent", "gemini, codex, claude, builtin, replay",
    {
        /// Gemini CLI.
        Gemini = "gemini",
        /// Codex CLI.
        Codex = "codex",
        /// Claude Code.
        Claude = "claude",
        /// agentd itself, by rule: no model, no network.
        Builtin = "builtin",
        /// agentd itself, doing again what a recorded agent did.
        Replay = "replay",
    }
);

impl AgentKind {
    /// Those that are programs of others, to be installed and found on the machine.
    pub const CLIS: [Self; 3] = [Self::Gemini, Self::Codex, Self::Claude];

    /// Whether agentd itself plays this agent, so that there is no program to find.
    pub fn is_own(self) -> bool {
        matches!(self, Self::Builtin | Self::Replay)
    }

    /// Whose models it uses by default. A plan that is challenged by the vendor that
    /// wrote it is challenged by somebody with the same blind spots.
    pub fn vendor(self) -> &'static str {
        match self {
            Self::Gemini => "Google",
            Self::Codex => "OpenAI",
            Self::Claude => "Anthropic",
            Self::Builtin => "agentd",
            Self::Replay => "a recording",
        }
    }
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
        for agent in AgentKind::ALL {
            assert_eq!(agent.name().parse::<AgentKind>().unwrap(), agent);
        }
        let error = "Gemini".parse::<AgentKind>().unwrap_err().to_string();
        insta::assert_snapshot!(error, @"`Gemini` is not an agent; it is one of gemini, codex, claude, builtin, replay");
        assert!(AgentKind::ALL.into_iter().all(|a| a.is_own() != AgentKind::CLIS.contains(&a)));
    }
}
