//! The findings of reviews, of the plan and of the code, in the order in which people want to see them.

use agentd_core::document::issue_fate::{IssueFate, Round, fates};
use agentd_core::document::review_block::ReviewBlock;

use super::subject::Subject;

/// All findings on the plan: those that are not settled first, by severity.
pub(super) fn over_rounds(rounds: &[ReviewBlock]) -> Vec<IssueFate<'_>> {
    sorted(rounds)
}

/// All findings on the code, in the same order.
pub(super) fn on_code(subject: &Subject) -> Vec<IssueFate<'_>> {
    sorted(&subject.code_rounds().reviews)
}

fn sorted<'r, R: 'r>(rounds: &'r [R]) -> Vec<IssueFate<'r>>
where
    &'r R: Into<Round<'r>>,
{
    let mut findings = fates(rounds);
    findings.sort_by_key(|finding| {
        (finding.fate.is_settled(), finding.issue.severity, finding.issue.number)
    });
    findings
}

/// How many findings are open and settled, of plan and code together.
pub(super) fn totals(subject: &Subject) -> (usize, usize) {
    let plan = over_rounds(&subject.proposal().reviews);
    let code = on_code(subject);
    let all = plan.len() + code.len();
    let settled = plan.iter().chain(&code).filter(|finding| finding.fate.is_settled()).count();
    (all - settled, settled)
}

#[cfg(test)]
mod tests {
    use agentd_core::diagnostic::Severity;
    use agentd_core::document::issue_fate::Fate;
    use agentd_core::document::previous::{IssueStatus, Previous};
    use agentd_core::document::review_block::{Issue, PlanVerdict};
    use agentd_core::span::Uncompared;
    use agentd_core::text::{Line, Prose};

    use super::*;

    fn round(iteration: u32, numbers: &[u32], fixed: &[u32]) -> ReviewBlock {
        let status = IssueStatus::Fixed;
        let said = |number: &u32| Previous { number: *number, status, reason: Line::default() };
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
            previous: fixed.iter().map(said).collect(),
            issues: numbers.iter().map(issue).collect(),
            place: Uncompared::default(),
        }
    }

    #[test]
    fn a_finding_is_followed_by_its_number() {
        let rounds = [round(1, &[1, 2, 4], &[]), round(2, &[2], &[1]), round(3, &[2, 3], &[])];
        let fates: Vec<(u32, Fate)> =
            over_rounds(&rounds).iter().map(|f| (f.issue.number, f.fate)).collect();
        assert_eq!(
            fates,
            [(2, Fate::Open), (3, Fate::New), (4, Fate::Unconfirmed), (1, Fate::Fixed)]
        );
    }
}
