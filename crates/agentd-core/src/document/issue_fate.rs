//! What became of the issues of a plan over its rounds of review.

use std::collections::BTreeMap;

use serde::Serialize;

use super::review_block::{Issue, ReviewBlock};

/// What became of an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// The latest review is the first to name it.
    New,
    /// An earlier review named it, and the latest does so again.
    Open,
    /// The latest review no longer names it.
    Fixed,
}

/// An issue and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueFate<'r> {
    /// The issue, as it was last described.
    pub issue: &'r Issue,
    /// What became of it.
    pub fate: Fate,
    /// The round that named it first.
    pub since: u32,
}

/// Every issue that a review has ever named, by number, and what became of it.
pub fn fates(reviews: &[ReviewBlock]) -> Vec<IssueFate<'_>> {
    let mut known: BTreeMap<u32, IssueFate<'_>> = BTreeMap::new();
    let Some((latest, earlier)) = reviews.split_last() else { return Vec::new() };
    for review in earlier {
        for issue in &review.issues {
            let since = known.get(&issue.number).map_or(review.iteration, |fate| fate.since);
            known.insert(issue.number, IssueFate { issue, fate: Fate::Fixed, since });
        }
    }
    for issue in &latest.issues {
        let (fate, since) = match known.get(&issue.number) {
            Some(earlier) => (Fate::Open, earlier.since),
            None => (Fate::New, latest.iteration),
        };
        known.insert(issue.number, IssueFate { issue, fate, since });
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
    use crate::span::Aside;
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
            place: Aside::default(),
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
        let told: Vec<(u32, Fate, u32)> =
            fates(&reviews).iter().map(|f| (f.issue.number, f.fate, f.since)).collect();
        let expected =
            [(1, Fate::Fixed, 1), (2, Fate::Fixed, 1), (3, Fate::Open, 2), (4, Fate::New, 3)];
        assert_eq!(told, expected);
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
