//! Who plays which role.

use serde::{Deserialize, Serialize};

use crate::agent::{AgentKind, Role};

/// `[roles]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Roles {
    /// Writes the plan.
    pub planner: AgentKind,
    /// Challenges the plan.
    pub challenger: AgentKind,
    /// Writes the code.
    pub implementer: AgentKind,
    /// Reviews the code.
    pub reviewer: AgentKind,
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
    /// it wrote. One plays everything.
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
            (false, false, false) => return None,
        })
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
        self.planner.vendor() != self.challenger.vendor()
            && self.implementer.vendor() != self.reviewer.vendor()
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
}
