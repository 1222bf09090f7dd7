//! What the commands of the workflow print at the end.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use agentd_core::agent::{AgentKind, Role};
use agentd_core::diagnostic::Counts;
use agentd_core::document::issue_fate::EarlierIssue;
use agentd_core::document::review::CodeVerdict;
use agentd_core::document::review_block::{Issue, PlanVerdict};
use agentd_core::figures::usd;
use agentd_core::ids::ChangeId;
use agentd_core::next_step::NextStep;
use agentd_core::phase::Phase;
use agentd_engine::workflow::{Action, Report, Verdict};
use serde::{Serialize, Serializer};

use crate::cli::decide::AgentQuestionReport;
use crate::ui::{BAD, BOLD, GOOD, Output, Screen, WARN};

/// What a workflow or a step of it has done.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct WorkflowReport {
    /// What was done last.
    #[serde(serialize_with = "action_name")]
    action: Action,
    /// The change.
    change_id: ChangeId,
    /// Its phase now.
    phase: Phase,
    /// The latest verdict on the plan or on its code.
    #[serde(serialize_with = "verdict_label")]
    verdict: Option<Verdict>,
    /// How many rounds of revision there were.
    iteration: u32,
    /// How many issues of each severity came with that verdict.
    issues: Counts,
    /// What became of the issues of earlier rounds.
    previous: Vec<EarlierIssue>,
    /// What the change has cost so far, in US dollars.
    cost_usd: f64,
    /// The agents that were called, by the role that they played.
    agents: BTreeMap<Role, AgentKind>,
    /// What an agent waits to be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<AgentQuestionReport>,
    /// Commands that continue from here, the best one first.
    next: Vec<NextStep>,
    /// The summary of the verdict and its issues, unless the person has seen them already.
    #[serde(skip)]
    details: Option<(String, Vec<Issue>)>,
    /// What the approval is worth if only rules were applied.
    #[serde(skip)]
    rules_only: Option<&'static str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn action_name<S: Serializer>(action: &Action, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(action.name())
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn verdict_label<S: Serializer>(verdict: &Option<Verdict>, to: S) -> Result<S::Ok, S::Error> {
    verdict.map(Verdict::label).serialize(to)
}

/// Whether the person who watches has seen the issues of the report already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Issues {
    Seen,
    New,
}

impl WorkflowReport {
    pub(super) fn new(
        change: &ChangeId,
        report: &Report,
        agents: BTreeMap<Role, AgentKind>,
        next: Vec<NextStep>,
        issues: Issues,
    ) -> Self {
        let details = || (report.summary.clone(), report.issues.clone());
        Self {
            action: report.action,
            change_id: change.clone(),
            phase: report.phase,
            verdict: report.verdict,
            iteration: report.iteration,
            issues: report.counts(),
            previous: report.previous.clone(),
            cost_usd: report.cost_usd,
            agents,
            question: report.question.as_ref().map(AgentQuestionReport::new),
            next,
            details: (issues == Issues::New).then(details),
            rules_only: report.rules_only(),
        }
    }

    fn rules_only_behind(&self, words: &str) -> String {
        self.rules_only.map(|only| format!("{words}{only}")).unwrap_or_default()
    }

    fn counted_issues(&self) -> String {
        let Counts { high, medium, low } = self.issues;
        format!("{high} HIGH, {medium} MEDIUM, {low} LOW")
    }

    /// The result, in one line.
    fn headline(&self) -> String {
        let Self { change_id: change, phase, .. } = self;
        if let Some(question) = &self.question {
            return format!("{WARN}{change} waits for an answer{WARN:#}: {}", question.line());
        }
        let good = |text: String| format!("{GOOD}✓{GOOD:#} {text}");
        match self.action {
            Action::Proposed => good(format!("{change}: the plan is written")),
            Action::Reproposed => good("Proposal updated based on challenge feedback".to_owned()),
            Action::AcceptedMinor => {
                good(format!("{change}: accepted with minor issues ({})", self.counted_issues()))
            }
            Action::AlreadyChallenged => {
                let only = self.rules_only_behind(": it ");
                good(format!("{change}: planning is complete, the plan is approved{only}"))
            }
            Action::AlreadyComplete => good(format!("{change} is complete already")),
            Action::BeyondPlanning => format!("{change} is {phase}, beyond planning"),
            Action::Implemented => good(format!("{change}: the tasks are done")),
            Action::Fixed => good(format!("{change}: the findings were worked on")),
            Action::Challenged
            | Action::WaitingForDecision
            | Action::StillNeedsRevision
            | Action::Rejected
            | Action::Reviewed
            | Action::StillNeedsFix => match self.verdict {
                Some(verdict) => self.verdict_line(verdict),
                None => format!("{change} is {phase}"),
            },
        }
    }

    /// The verdict, worded as P22 wants it.
    fn verdict_line(&self, verdict: Verdict) -> String {
        let (change, label) = (&self.change_id, verdict.label());
        let issues = self.counted_issues();
        match verdict {
            Verdict::Plan(PlanVerdict::Approved) => {
                let worth = self.rules_only.unwrap_or("Ready for implementation!");
                format!("{GOOD}✓{GOOD:#} {BOLD}{label}{BOLD:#} - {worth}")
            }
            Verdict::Code(CodeVerdict::Approved) => {
                let only = self.rules_only_behind(": it ");
                format!("{GOOD}✓{GOOD:#} {BOLD}{label}{BOLD:#} - {change} is complete{only}")
            }
            Verdict::Plan(PlanVerdict::NeedsRevision) | Verdict::Code(CodeVerdict::NeedsFix) => {
                // Of a plan the revisions are counted, of code the reviews.
                let is_plan = matches!(verdict, Verdict::Plan(_));
                let round = self.iteration.saturating_add(u32::from(is_plan));
                format!("{WARN}{label}{WARN:#} - Found {issues} severity issues (round {round})")
            }
            Verdict::Plan(PlanVerdict::Rejected) => format!(
                "{BAD}{label}{BAD:#} - Fundamental problems\nedit the plan in \
                 agentd/changes/{change}/, then: agentd challenge {change}"
            ),
            Verdict::Code(CodeVerdict::MajorIssues) => format!(
                "{BAD}{label}{BAD:#} - Found {issues} severity issues\nfix them by hand, \
                 then: agentd review {change}"
            ),
        }
    }

    /// Whether the last thing that was done is a judgment.
    fn is_judgment(&self) -> bool {
        matches!(
            self.action,
            Action::Challenged
                | Action::WaitingForDecision
                | Action::StillNeedsRevision
                | Action::Rejected
                | Action::Reviewed
                | Action::StillNeedsFix
        )
    }
}

/// One for the samples of reports.
#[cfg(test)]
pub(in crate::cli) fn earlier_issue() -> EarlierIssue {
    EarlierIssue {
        id: "I1".to_owned(),
        status: agentd_core::document::issue_fate::Fate::Fixed,
        severity: agentd_core::diagnostic::Severity::High,
        title: "No lock".into(),
        reason: "R3 locks now".into(),
    }
}

impl Output for WorkflowReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let approved = [Verdict::Plan(PlanVerdict::Approved), Verdict::Code(CodeVerdict::Approved)];
        let is_approved = self.verdict.is_some_and(|verdict| approved.contains(&verdict));
        if let Some((summary, issues)) = &self.details
            && self.is_judgment()
            && self.question.is_none()
            && !(is_approved && issues.is_empty())
        {
            screen.note(summary);
            screen.show_issues(issues);
        }
        match &self.question {
            Some(_) => screen.paragraph(&self.headline(), anstyle::Style::new())?,
            None => writeln!(screen, "{}", self.headline())?,
        }
        writeln!(screen, "cost so far: {}", usd(self.cost_usd))?;
        screen.next(self.next.first().map(std::slice::from_ref).unwrap_or_default())
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::next_step::Command;
        let change_id = ChangeId::new("add-oauth").unwrap();
        Self {
            action: Action::Challenged,
            next: vec![Command::Reproposal.on(&change_id)],
            change_id,
            phase: Phase::Proposed,
            verdict: Some(Verdict::Plan(PlanVerdict::NeedsRevision)),
            iteration: 0,
            issues: Counts { high: 2, medium: 3, low: 1 },
            previous: vec![earlier_issue()],
            cost_usd: 0.09,
            agents: BTreeMap::from([(Role::Challenger, AgentKind::Codex)]),
            question: Some(AgentQuestionReport::sample()),
            details: None,
            rules_only: None,
        }
    }
}
