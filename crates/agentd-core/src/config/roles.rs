//! Who plays which role.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::agent::{AgentKind, Role};
use crate::known_agent::{are_independent, known, vendor};

/// `[roles]`: the first that plays each role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Roles {
    /// Writes the plan.
    #[serde(deserialize_with = "first")]
    pub planner: AgentKind,
    /// Challenges the plan.
    #[serde(deserialize_with = "first")]
    pub challenger: AgentKind,
    /// Writes the code.
    #[serde(deserialize_with = "first")]
    pub implementer: AgentKind,
    /// Reviews the code.
    #[serde(deserialize_with = "first")]
    pub reviewer: AgentKind,
}

fn first<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AgentKind, D::Error> {
    Ok(Chain::deserialize(deserializer)?.first)
}

/// `[roles]`, whole: a role may be given to a list of agents.
#[derive(Deserialize)]
pub(super) struct Chains {
    planner: Option<Chain>,
    challenger: Option<Chain>,
    implementer: Option<Chain>,
    reviewer: Option<Chain>,
}

impl Chains {
    /// Who comes after the first.
    pub(super) fn fallbacks(self) -> BTreeMap<Role, Vec<AgentKind>> {
        let Self { planner, challenger, implementer, reviewer } = self;
        let chains = [planner, challenger, implementer, reviewer];
        let rest = chains.map(|chain| chain.map(|chain| chain.rest).unwrap_or_default());
        let by_role = Role::ALL.into_iter().zip(rest);
        by_role.filter(|(_, rest)| !rest.is_empty()).collect()
    }
}

/// The agents of a role: a name, or a list of names.
struct Chain {
    first: AgentKind,
    rest: Vec<AgentKind>,
}

impl<'de> Deserialize<'de> for Chain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChainVisitor)
    }
}

struct ChainVisitor;

impl<'de> Visitor<'de> for ChainVisitor {
    type Value = Chain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an agent, or a list of names")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Chain, E> {
        Ok(Chain { first: text.parse().map_err(E::custom)?, rest: Vec::new() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Chain, A::Error> {
        let Some(first) = sequence.next_element::<AgentKind>()? else {
            return Err(A::Error::custom("a role needs an agent"));
        };
        let mut rest = Vec::new();
        while let Some(agent) = sequence.next_element::<AgentKind>()? {
            if agent == first || rest.contains(&agent) {
                return Err(A::Error::custom(format!("`{agent}` is in the list twice")));
            }
            rest.push(agent);
        }
        Ok(Chain { first, rest })
    }
}

impl Default for Roles {
    fn default() -> Self {
        Self::of([AgentKind::Gemini, AgentKind::Codex, AgentKind::Claude, AgentKind::Codex])
    }
}

impl Roles {
    /// The roles in their order: planner, challenger, implementer, reviewer.
    const fn of([planner, challenger, implementer, reviewer]: [AgentKind; 4]) -> Self {
        Self { planner, challenger, implementer, reviewer }
    }

    /// The roles for the agents of a machine; none if there are none. Of two, neither judges what
    /// it wrote. One plays everything. Other agents than the three CLIs play only without those.
    pub fn among(agents: &[AgentKind]) -> Option<Self> {
        use AgentKind::{Claude, Codex, Gemini};
        let has = |agent| agents.contains(&agent);
        Some(match (has(Gemini), has(Codex), has(Claude)) {
            (true, true, true) => Self::default(),
            (true, true, false) => Self::of([Gemini, Codex, Gemini, Codex]),
            (true, false, true) => Self::of([Gemini, Claude, Claude, Gemini]),
            (false, true, true) => Self::of([Claude, Codex, Claude, Codex]),
            (true, false, false) => Self::of([Gemini; 4]),
            (false, true, false) => Self::of([Codex; 4]),
            (false, false, true) => Self::of([Claude; 4]),
            (false, false, false) => {
                let others = || agents.iter().copied().filter(|agent| !agent.is_own());
                let implements = |agent: &AgentKind| known(*agent).is_none_or(|it| it.implements);
                let first = others().find(implements).or_else(|| others().next())?;
                let stranger =
                    |agent: &AgentKind| are_independent(vendor(first, ""), vendor(*agent, ""));
                let second = others().find(stranger).or_else(|| others().find(|it| *it != first));
                let second = second.unwrap_or(first);
                Self::of([first, second, first, second])
            }
        })
    }

    /// One agent in every role.
    pub const fn all_by(agent: AgentKind) -> Self {
        Self::of([agent; 4])
    }

    /// The players, in the order of the roles.
    pub fn all(&self) -> [AgentKind; 4] {
        Role::ALL.map(|role| self.agent(role))
    }

    /// Who plays a role.
    pub fn agent(&self, role: Role) -> AgentKind {
        match role {
            Role::Planner => self.planner,
            Role::Challenger => self.challenger,
            Role::Implementer => self.implementer,
            Role::Reviewer => self.reviewer,
        }
    }

    /// The roles that an agent plays.
    pub fn of_agent(&self, agent: AgentKind) -> Vec<Role> {
        Role::ALL.into_iter().filter(|role| self.agent(*role) == agent).collect()
    }

    /// Whether the plan and the code are each judged by another vendor than wrote them.
    pub fn are_independent(&self) -> bool {
        are_independent(vendor(self.planner, ""), vendor(self.challenger, ""))
            && are_independent(vendor(self.implementer, ""), vendor(self.reviewer, ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract R3
    #[test]
    fn every_set_of_agents_has_roles_and_two_are_independent() {
        for bits in 0..8_usize {
            let agents: Vec<AgentKind> = AgentKind::CLIS
                .into_iter()
                .enumerate()
                .filter(|(i, _)| bits & (1 << i) != 0)
                .map(|(_, agent)| agent)
                .collect();
            let Some(roles) = Roles::among(&agents) else {
                assert!(agents.is_empty());
                continue;
            };
            for agent in AgentKind::CLIS {
                let plays = !roles.of_agent(agent).is_empty();
                assert_eq!(plays, agents.contains(&agent), "{agents:?}: {roles:?}");
            }
            assert_eq!(roles.are_independent(), agents.len() > 1, "{agents:?}: {roles:?}");
        }
        assert_eq!(Roles::among(&AgentKind::CLIS), Some(Roles::default()));
        assert_eq!(Roles::among(&[AgentKind::Builtin]), None);
    }

    /// A probe has shown that Qwen Code cannot edit files.
    // contract G7, R3
    #[test]
    fn agents_that_cannot_implement_review() {
        let agent = |name: &str| name.parse::<AgentKind>().unwrap();
        let (qwen, opencode) = (agent("qwen"), agent("opencode"));
        let roles = Roles::among(&[qwen, opencode]).unwrap();
        assert_eq!((roles.implementer, roles.reviewer), (opencode, qwen));
        assert_eq!(Roles::among(&[qwen]).unwrap().implementer, qwen, "there is nobody else");
        // Whose models cline uses is not known.
        let roles = Roles::among(&["mistral-vibe", "cline", "kimi"].map(agent)).unwrap();
        assert_eq!((roles.implementer, roles.reviewer), (agent("mistral-vibe"), agent("kimi")));
    }
}
