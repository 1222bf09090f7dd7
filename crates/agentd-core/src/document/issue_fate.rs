//! What became of the issues of a plan over its rounds of review.

use std::collections::BTreeMap;

use serde::Serialize;
use strum::IntoStaticStr;

use super::review_block::{Issue, ReviewBlock};

/// What became of an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Fate {
    /// The latest review is the first to name it.
    New,
    /// An earlier review named it, and the latest does so again.
    Open,
    /// The latest review no longer names it.
    Fixed,
}

impl Fate {
    /// `new`, `open` or `fixed`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An issue and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueFate<'r> {
    /// The issue, as it was last described.
    pub issue: &'r Issue,
    /// What became of it.
    pub fate: Fate,
    /// For each round whether it named the issue.
    pub named: Vec<bool>,
}

/// Every issue that a review has ever named, by the number that it keeps over the rounds,
/// and what became of it.
pub fn fates(reviews: &[ReviewBlock]) -> Vec<IssueFate<'_>> {
    let mut known: BTreeMap<u32, IssueFate<'_>> = BTreeMap::new();
    for (round, review) in reviews.iter().enumerate() {
        for issue in &review.issues {
            let named = vec![false; reviews.len()];
            let new = IssueFate { issue, fate: Fate::Fixed, named };
            let entry = known.entry(issue.number).or_insert(new);
            entry.issue = issue;
            entry.named[round] = true;
            if round + 1 == reviews.len() {
                let before = entry.named[..round].contains(&true);
                entry.fate = if before { Fate::Open } else { Fate::New };
            }
        }
    }
    known.into_values().collect()
}

/// Whether the latest round has brought the plan forward: an issue of the round before
/// it is gone, or weighs less. A first round always has.
pub fn made_progress(reviews: &[ReviewBlock]) -> bool {
    let [.., before, latest] = reviews else { return true };
    before.issues.iter().any(|old| {
        let now = latest.issues.iter().find(|issue| issue.number == old.number);
        // HIGH is the smallest.
        now.is_none_or(|now| now.severity > old.severity)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Severity;
    use crate::document::review_block::PlanVerdict;
    use crate::span::Uncompared;
    use crate::text::Line;

    fn review(iteration: u32, issues: &[(u32, Severity)]) -> ReviewBlock {
        let issue = |(number, severity): &(u32, Severity)| Issue {
            number: *number,
            severity: *severity,
            title: Line::new(&format!("issue {number}")),
            location: Line::default(),
            description: "x".into(),
            recommendation: "y".into(),
        };
        ReviewBlock {
            iteration,
            reviewer: Line::new("codex"),
            date: None,
            plan: None,
            verdict: PlanVerdict::NeedsRevision,
            summary: "s".into(),
            issues: issues.iter().map(issue).collect(),
            place: Uncompared::default(),
        }
    }

    #[test]
    fn issues_are_new_open_or_fixed() {
        use Severity::{High, Low};
        let reviews = [
            review(1, &[(1, High), (2, Low)]),
            review(2, &[(2, Low), (3, High)]),
            review(3, &[(3, High), (4, Low)]),
        ];
        let actual: Vec<(u32, Fate, Vec<bool>)> =
            fates(&reviews).iter().map(|f| (f.issue.number, f.fate, f.named.clone())).collect();
        let expected = [
            (1, Fate::Fixed, vec![true, false, false]),
            (2, Fate::Fixed, vec![true, true, false]),
            (3, Fate::Open, vec![false, true, true]),
            (4, Fate::New, vec![false, false, true]),
        ];
        assert_eq!(actual, expected);
        assert!(fates(&[]).is_empty());
    }

    #[test]
    fn progress_is_an_issue_gone_or_lighter() {
        use Severity::{High, Low, Medium};
        let first = || review(1, &[(1, High), (2, Low)]);
        assert!(made_progress(&[first()]));
        assert!(made_progress(&[first(), review(2, &[(1, High)])]));
        assert!(made_progress(&[first(), review(2, &[(1, Medium), (2, Low)])]));
        assert!(!made_progress(&[first(), review(2, &[(1, High), (2, Low), (3, High)])]));
        assert!(!made_progress(&[first(), first()]));
    }
}
