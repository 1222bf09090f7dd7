//! What a conformance probe finds out about an agent, and which roles it can play by that (G3).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::agent::{AgentKind, Role};
use crate::config::Budget;

/// Something that a probe tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckName {
    /// It starts, opens a session and finishes a turn.
    Answers,
    /// It calls agentd's tools.
    SeesTools,
    /// What agentd's tools were asked to write is there, with the receipt of the call.
    WritesThroughTools,
    /// Nothing is written where its role may not write.
    ForbiddenWriteRefused,
    /// It reports how many tokens a turn has used.
    UsageReported,
    /// Another process of it continues an earlier session.
    SessionResumed,
    /// As an implementer, it writes to the working tree.
    EditsFiles,
    /// It ends a turn when it is told to.
    EndsWhenTold,
    /// Nothing of it is left once it has ended.
    LeavesNoProcess,
}

impl CheckName {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 9] = [
        Self::Answers,
        Self::SeesTools,
        Self::WritesThroughTools,
        Self::ForbiddenWriteRefused,
        Self::UsageReported,
        Self::SessionResumed,
        Self::EditsFiles,
        Self::EndsWhenTold,
        Self::LeavesNoProcess,
    ];

    /// The name in `--json`; stable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::SeesTools => "sees_tools",
            Self::WritesThroughTools => "writes_through_tools",
            Self::ForbiddenWriteRefused => "forbidden_write_refused",
            Self::UsageReported => "usage_reported",
            Self::SessionResumed => "session_resumed",
            Self::EditsFiles => "edits_files",
            Self::EndsWhenTold => "ends_when_told",
            Self::LeavesNoProcess => "leaves_no_process",
        }
    }

    /// What an agent does that passes it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::SeesTools => "calls agentd's tools",
            Self::WritesThroughTools => "writes through them",
            Self::ForbiddenWriteRefused => "writes nowhere else",
            Self::UsageReported => "reports its usage",
            Self::SessionResumed => "resumes a session",
            Self::EditsFiles => "edits the working tree",
            Self::EndsWhenTold => "ends when told to",
            Self::LeavesNoProcess => "leaves no process",
        }
    }
}

impl fmt::Display for CheckName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What came of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeCheck {
    /// Which.
    pub name: CheckName,
    /// Whether the agent passed it.
    pub ok: bool,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// What was seen, where that says more.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// What a probe has found out about an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The agent.
    pub agent: AgentKind,
    /// Its version, in its own words.
    pub agent_version: String,
    /// The checks, in their order.
    pub checks: Vec<ProbeCheck>,
    /// The roles that it can play by that.
    pub roles: Vec<Role>,
}

impl ProbeReport {
    /// A report of these checks.
    pub fn new(agent: AgentKind, agent_version: String, checks: Vec<ProbeCheck>) -> Self {
        let mut report = Self { agent, agent_version, checks, roles: Vec::new() };
        report.roles =
            Role::ALL.into_iter().filter(|role| report.missing(*role).is_empty()).collect();
        report
    }

    /// Whether a check was passed. One that was not made was not.
    pub fn passed(&self, name: CheckName) -> bool {
        self.checks.iter().any(|check| check.name == name && check.ok)
    }

    /// What a role needs that the agent has failed.
    pub fn missing(&self, role: Role) -> Vec<CheckName> {
        needs(role).iter().copied().filter(|name| !self.passed(*name)).collect()
    }

    /// Why the agent cannot play a role in a project with this budget; none if it can. The roles are
    /// found out again from the checks: what a role needs may change from version to version.
    pub fn objection(&self, role: Role, budget: &Budget) -> Option<String> {
        let mut missing = self.missing(role);
        let is_limited = budget.max_cost_usd.is_some() || budget.max_tokens.is_some();
        if is_limited && !self.passed(CheckName::UsageReported) {
            missing.push(CheckName::UsageReported);
        }
        let words: Vec<&str> = missing.into_iter().map(CheckName::words).collect();
        (!words.is_empty()).then(|| format!("a probe has not shown that it {}", words.join(", ")))
    }
}

/// What an agent must be able to do in a role. That a turn ends and that nothing is left of it are
/// not among it: agentd enforces both.
fn needs(role: Role) -> &'static [CheckName] {
    use CheckName::{
        Answers, EditsFiles, ForbiddenWriteRefused, SeesTools, SessionResumed, WritesThroughTools,
    };
    match role {
        // A revision continues in the session of the plan.
        Role::Planner => {
            &[Answers, SeesTools, WritesThroughTools, ForbiddenWriteRefused, SessionResumed]
        }
        Role::Challenger | Role::Reviewer => {
            &[Answers, SeesTools, WritesThroughTools, ForbiddenWriteRefused]
        }
        // A fix continues in the session of the code.
        Role::Implementer => &[
            Answers,
            SeesTools,
            WritesThroughTools,
            ForbiddenWriteRefused,
            SessionResumed,
            EditsFiles,
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(failed: &[CheckName]) -> ProbeReport {
        let checks = CheckName::ALL.into_iter().map(|name| ProbeCheck {
            name,
            ok: !failed.contains(&name),
            ms: 1,
            detail: String::new(),
        });
        ProbeReport::new(AgentKind::Gemini, "1".into(), checks.collect())
    }

    // contract G3
    #[test]
    fn a_role_is_refused_for_what_it_needs() {
        use CheckName::{
            EditsFiles, EndsWhenTold, ForbiddenWriteRefused, LeavesNoProcess, SeesTools,
            SessionResumed, UsageReported,
        };
        let judges = vec![Role::Challenger, Role::Reviewer];
        let check = |failed: &[CheckName], roles: &[Role]| {
            assert_eq!(report(failed).roles, roles, "{failed:?}");
        };
        check(&[], &Role::ALL);
        check(&[UsageReported, EndsWhenTold, LeavesNoProcess], &Role::ALL);
        check(&[SeesTools], &[]);
        check(&[ForbiddenWriteRefused], &[]);
        check(&[SessionResumed], &judges);
        check(&[EditsFiles], &[Role::Planner, Role::Challenger, Role::Reviewer]);
    }

    #[test]
    fn usage_is_needed_where_a_budget_is_set() {
        let silent = report(&[CheckName::UsageReported]);
        assert_eq!(silent.objection(Role::Planner, &Budget::default()), None);
        let limited = Budget { max_tokens: Some(1), ..Budget::default() };
        assert_eq!(
            silent.objection(Role::Planner, &limited).as_deref(),
            Some("a probe has not shown that it reports its usage")
        );
        assert_eq!(report(&[]).objection(Role::Planner, &limited), None);
        let blind = report(&[CheckName::SeesTools, CheckName::WritesThroughTools]);
        assert_eq!(
            blind.objection(Role::Reviewer, &Budget::default()).as_deref(),
            Some("a probe has not shown that it calls agentd's tools, writes through them")
        );
    }
}
