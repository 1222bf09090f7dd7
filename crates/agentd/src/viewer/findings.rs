//! What became of the findings of reviews over the rounds.

use agentd_core::document::review_block::{Issue, ReviewBlock};

/// A finding over the rounds.
pub(super) struct Finding<'r> {
    /// As it was last told.
    pub(super) issue: &'r Issue,
    /// For each round whether it was told in it.
    pub(super) told: Vec<bool>,
}

/// Where a finding stands after the last round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The last round told it for the first time.
    New,
    /// The last round told it again.
    Open,
    /// An earlier round told it, the last one did not.
    Gone,
}

impl Standing {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Open => "open",
            Self::Gone => "fixed",
        }
    }
}

impl Finding<'_> {
    pub(super) fn standing(&self) -> Standing {
        let before = self.told.len().saturating_sub(1);
        match (self.told.last(), self.told[..before].contains(&true)) {
            (Some(true), true) => Standing::Open,
            (Some(true), false) => Standing::New,
            _ => Standing::Gone,
        }
    }
}

/// All findings, by their number, which a finding keeps over the rounds.
pub(super) fn over_rounds(rounds: &[ReviewBlock]) -> Vec<Finding<'_>> {
    let mut findings: Vec<Finding<'_>> = Vec::new();
    for (at, round) in rounds.iter().enumerate() {
        for issue in &round.issues {
            let known = findings.iter_mut().find(|finding| finding.issue.number == issue.number);
            match known {
                Some(finding) => {
                    finding.issue = issue;
                    finding.told[at] = true;
                }
                None => {
                    let mut told = vec![false; rounds.len()];
                    told[at] = true;
                    findings.push(Finding { issue, told });
                }
            }
        }
    }
    findings.sort_by_key(|finding| {
        (finding.standing() == Standing::Gone, finding.issue.severity, finding.issue.number)
    });
    findings
}

#[cfg(test)]
mod tests {
    use agentd_core::diagnostic::Severity;
    use agentd_core::document::review_block::PlanVerdict;
    use agentd_core::span::Aside;
    use agentd_core::text::{Line, Prose};

    use super::*;

    fn round(iteration: u32, numbers: &[u32]) -> ReviewBlock {
        let issue = |number: &u32| Issue {
            number: *number,
            severity: Severity::High,
            title: Line::new("x"),
            location: Line::default(),
            description: Prose::default(),
            recommendation: Prose::default(),
        };
        ReviewBlock {
            iteration,
            reviewer: Line::default(),
            date: None,
            plan: None,
            verdict: PlanVerdict::NeedsRevision,
            summary: Prose::default(),
            issues: numbers.iter().map(issue).collect(),
            place: Aside::default(),
        }
    }

    #[test]
    fn a_finding_is_followed_by_its_number() {
        let rounds = [round(1, &[1, 2]), round(2, &[2]), round(3, &[2, 3])];
        let told: Vec<(u32, Standing)> =
            over_rounds(&rounds).iter().map(|f| (f.issue.number, f.standing())).collect();
        assert_eq!(told, [(2, Standing::Open), (3, Standing::New), (1, Standing::Gone)]);
    }
}
