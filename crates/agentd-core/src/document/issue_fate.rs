//! What became of the issues that reviews of a plan, or of its code, have found.
//!
//! A reviewer says of each issue of an earlier round what became of it ([`Previous`]). Nothing is
//! concluded from silence: an issue that is not mentioned was perhaps forgotten (T5).

use std::collections::BTreeMap;

use serde::Serialize;
use strum::IntoStaticStr;

use super::previous::{IssueStatus, Previous};
use super::review::Review;
use super::review_block::{Issue, PlanVerdict, ReviewBlock};
use crate::diagnostic::Severity;
use crate::text::Line;

/// What became of an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Fate {
    /// It was fixed once, and is there again.
    Regression,
    /// It was found before, and is still there.
    Open,
    /// The latest round does not mention it.
    Unconfirmed,
    /// The latest round is the first to find it.
    New,
    /// It can wait.
    Deferred,
    /// It was mistaken.
    Rejected,
    /// It is gone.
    Fixed,
}

impl Fate {
    /// The name in documents and `--json`, such as `unconfirmed`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether a reviewer has said that nothing is left to do about it.
    pub fn is_settled(self) -> bool {
        match self {
            Self::Fixed | Self::Rejected | Self::Deferred => true,
            Self::New | Self::Open | Self::Regression | Self::Unconfirmed => false,
        }
    }
}

/// What a round of review says of issues.
#[derive(Debug, Clone, Copy)]
pub struct Round<'r> {
    /// What it found.
    issues: &'r [Issue],
    /// What it says of the issues of earlier rounds.
    previous: &'r [Previous],
}

impl<'r> From<&'r ReviewBlock> for Round<'r> {
    fn from(review: &'r ReviewBlock) -> Self {
        Self { issues: &review.issues, previous: &review.previous }
    }
}

impl<'r> From<&'r Review> for Round<'r> {
    fn from(review: &'r Review) -> Self {
        Self { issues: &review.issues, previous: &review.previous }
    }
}

/// An issue and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueFate<'r> {
    /// The issue, as it was last described.
    pub issue: &'r Issue,
    /// What became of it.
    pub fate: Fate,
    /// Why, in the words of the reviewer who said so last.
    pub reason: Option<&'r Line>,
    /// What was known of it after each round; nothing before it was found.
    pub rounds: Vec<Option<Fate>>,
}

/// Every issue that a review has ever named, by the number that it keeps over the rounds,
/// and what became of it.
pub fn fates<'r, R: Into<Round<'r>>>(rounds: impl IntoIterator<Item = R>) -> Vec<IssueFate<'r>> {
    let mut known: BTreeMap<u32, IssueFate<'r>> = BTreeMap::new();
    for (index, round) in rounds.into_iter().enumerate() {
        let Round { issues, previous } = round.into();
        let mut named: BTreeMap<u32, &Issue> =
            issues.iter().map(|issue| (issue.number, issue)).collect();
        let said: BTreeMap<u32, &Previous> =
            previous.iter().map(|said| (said.number, said)).collect();
        for (number, entry) in &mut known {
            entry.follow(named.remove(number), said.get(number).copied());
        }
        for (number, issue) in named {
            let mut rounds = vec![None; index];
            rounds.push(Some(Fate::New));
            known.insert(number, IssueFate { issue, fate: Fate::New, reason: None, rounds });
        }
    }
    known.into_values().collect()
}

impl<'r> IssueFate<'r> {
    /// Takes what a further round says.
    fn follow(&mut self, named: Option<&'r Issue>, said: Option<&'r Previous>) {
        if let Some(issue) = named {
            self.issue = issue;
        }
        // What is named is there, whatever else is said.
        let status = if named.is_some() { Some(IssueStatus::Open) } else { said.map(|s| s.status) };
        self.fate = match status {
            Some(IssueStatus::Open) if self.rounds.contains(&Some(Fate::Fixed)) => Fate::Regression,
            Some(IssueStatus::Open) => Fate::Open,
            Some(IssueStatus::Fixed) => Fate::Fixed,
            Some(IssueStatus::Rejected) => Fate::Rejected,
            Some(IssueStatus::Deferred) => Fate::Deferred,
            None if self.fate.is_settled() => self.fate,
            None => Fate::Unconfirmed,
        };
        if status.is_some() || !self.fate.is_settled() {
            self.reason = said.map(|said| &said.reason).filter(|reason| !reason.is_empty());
        }
        self.rounds.push(Some(self.fate));
    }
}

/// An issue of an earlier round, for `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EarlierIssue {
    /// Its id over the rounds, such as `I1`.
    pub id: String,
    /// What became of it.
    pub status: Fate,
    /// How much it weighs.
    pub severity: Severity,
    /// What it is, in a few words.
    pub title: Line,
    /// Why, in the words of the reviewer who said so; may be empty.
    pub reason: Line,
}

/// What became of the issues of earlier rounds.
pub fn earlier(fates: &[IssueFate<'_>]) -> Vec<EarlierIssue> {
    let earlier = fates.iter().filter(|known| known.fate != Fate::New);
    earlier
        .map(|known| EarlierIssue {
            id: format!("I{}", known.issue.number),
            status: known.fate,
            severity: known.issue.severity,
            title: known.issue.title.clone(),
            reason: known.reason.cloned().unwrap_or_default(),
        })
        .collect()
}

/// The ids of issues by what became of them, such as `fixed: I1, I2; unconfirmed: I3`; empty
/// where no issue is older than the latest round.
pub fn in_words(issues: impl IntoIterator<Item = (u32, Fate)>) -> String {
    let mut by_fate: BTreeMap<Fate, Vec<String>> = BTreeMap::new();
    for (number, fate) in issues {
        by_fate.entry(fate).or_default().push(format!("I{number}"));
    }
    if by_fate.keys().all(|fate| *fate == Fate::New) {
        return String::new();
    }
    let parts = by_fate.iter().map(|(fate, ids)| format!("{}: {}", fate.name(), ids.join(", ")));
    parts.collect::<Vec<_>>().join("; ")
}

/// Whether the latest round has brought the plan forward: an issue of an earlier round is settled,
/// is no longer mentioned, or has less weight. A first round always has.
pub fn made_progress(reviews: &[ReviewBlock]) -> bool {
    // An approval ends a series of rounds; what comes after it is about another plan.
    let last = reviews.len().saturating_sub(1);
    let approved = |review: &ReviewBlock| review.verdict == PlanVerdict::Approved;
    let begin = reviews[..last].iter().rposition(approved).map_or(0, |index| index + 1);
    let reviews = &reviews[begin..];
    let [earlier @ .., _] = reviews else { return true };
    if earlier.is_empty() {
        return true;
    }
    let now: BTreeMap<u32, IssueFate<'_>> =
        fates(reviews).into_iter().map(|known| (known.issue.number, known)).collect();
    fates(earlier).iter().filter(|old| !old.fate.is_settled()).any(|old| {
        // HIGH is the smallest.
        now.get(&old.issue.number).is_some_and(|now| {
            // Not settled, but a reviewer who still saw it would have said so.
            let silent = now.fate == Fate::Unconfirmed && old.fate != Fate::Unconfirmed;
            now.fate.is_settled() || silent || now.issue.severity > old.issue.severity
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Uncompared;
    use IssueStatus as Said;
    use Severity::{High, Low, Medium};

    fn review(issues: &[(u32, Severity)], previous: &[(u32, Said)]) -> ReviewBlock {
        let issue = |(number, severity): &(u32, Severity)| Issue {
            number: *number,
            severity: *severity,
            title: Line::new(&format!("issue {number}")),
            location: Line::default(),
            description: "x".into(),
            recommendation: "y".into(),
        };
        let said = |(number, status): &(u32, Said)| Previous {
            number: *number,
            status: *status,
            reason: Line::new(status.name()),
        };
        ReviewBlock {
            iteration: 1,
            reviewer: Line::new("codex"),
            date: None,
            plan: None,
            verdict: PlanVerdict::NeedsRevision,
            summary: "s".into(),
            previous: previous.iter().map(said).collect(),
            issues: issues.iter().map(issue).collect(),
            place: Uncompared::default(),
        }
    }

    /// The fates after each round, by issue.
    fn check(rounds: &[ReviewBlock], expected: &[(u32, &[&str])]) {
        let actual: Vec<(u32, Vec<&str>)> = fates(rounds)
            .iter()
            .map(|f| (f.issue.number, f.rounds.iter().map(|f| f.map_or("-", Fate::name)).collect()))
            .collect();
        let expected: Vec<(u32, Vec<&str>)> =
            expected.iter().map(|(number, fates)| (*number, fates.to_vec())).collect();
        assert_eq!(actual, expected);
        for known in fates(rounds) {
            assert_eq!(Some(&Some(known.fate)), known.rounds.last());
        }
    }

    /// contract T5
    #[test]
    fn the_fate_of_an_issue_is_what_was_said_of_it() {
        let first = || review(&[(1, High), (2, Low)], &[]);
        check(&[first()], &[(1, &["new"]), (2, &["new"])]);
        // What is not mentioned is not fixed.
        check(
            &[first(), review(&[(3, Low)], &[(1, Said::Fixed)]), review(&[], &[])],
            &[
                (1, &["new", "fixed", "fixed"]),
                (2, &["new", "unconfirmed", "unconfirmed"]),
                (3, &["-", "new", "unconfirmed"]),
            ],
        );
        check(
            &[
                first(),
                review(&[(1, High)], &[(2, Said::Rejected)]),
                review(&[], &[(1, Said::Open), (2, Said::Deferred)]),
                review(&[(2, Low)], &[]),
            ],
            &[
                (1, &["new", "open", "open", "unconfirmed"]),
                (2, &["new", "rejected", "deferred", "open"]),
            ],
        );
        check(&[], &[]);
    }

    /// contract T5
    #[test]
    fn what_was_fixed_and_is_back_is_a_regression() {
        let rounds = [
            review(&[(1, High), (2, Low)], &[]),
            review(&[], &[(1, Said::Fixed), (2, Said::Fixed)]),
            review(&[(1, High)], &[(2, Said::Open)]),
            review(&[(1, High)], &[]),
            review(&[], &[(1, Said::Fixed), (2, Said::Open)]),
        ];
        check(
            &rounds,
            &[
                (1, &["new", "fixed", "regression", "regression", "fixed"]),
                (2, &["new", "fixed", "regression", "unconfirmed", "regression"]),
            ],
        );
        // An issue that is named is there, even if the same review calls it fixed.
        let both = [review(&[(1, High)], &[]), review(&[(1, High)], &[(1, Said::Fixed)])];
        check(&both, &[(1, &["new", "open"])]);
    }

    #[test]
    fn reasons_are_those_of_the_last_word() {
        let rounds = [
            review(&[(1, High), (2, Low)], &[]),
            review(&[], &[(1, Said::Fixed), (2, Said::Open)]),
            review(&[], &[]),
        ];
        let reasons = |rounds: &[ReviewBlock]| -> Vec<String> {
            earlier(&fates(rounds))
                .iter()
                .map(|issue| format!("{} {} {}", issue.id, issue.status.name(), issue.reason))
                .collect()
        };
        assert_eq!(reasons(&rounds[..1]), [""; 0]);
        assert_eq!(reasons(&rounds[..2]), ["I1 fixed fixed", "I2 open open"]);
        assert_eq!(reasons(&rounds), ["I1 fixed fixed", "I2 unconfirmed "]);
    }

    #[test]
    fn words_for_a_round() {
        let words = |rounds: &[ReviewBlock]| {
            in_words(fates(rounds).iter().map(|known| (known.issue.number, known.fate)))
        };
        let rounds = [
            review(&[(1, High), (2, Low), (3, Low)], &[]),
            review(&[(2, Low), (4, Low)], &[(1, Said::Fixed)]),
        ];
        assert_eq!(words(&rounds[..1]), "");
        assert_eq!(words(&rounds), "open: I2; unconfirmed: I3; new: I4; fixed: I1");
    }

    #[test]
    fn progress_is_an_issue_settled_or_lighter() {
        let first = || review(&[(1, High), (2, Low)], &[]);
        assert!(made_progress(&[]));
        assert!(made_progress(&[first()]));
        assert!(made_progress(&[first(), review(&[(1, High)], &[(2, Said::Fixed)])]));
        assert!(made_progress(&[first(), review(&[(1, High)], &[(2, Said::Deferred)])]));
        assert!(made_progress(&[first(), review(&[(1, Medium), (2, Low)], &[])]));
        assert!(!made_progress(&[first(), review(&[(1, High), (2, Low), (3, High)], &[])]));
        assert!(!made_progress(&[first(), first()]));
        // An issue that is not mentioned is worth another round, once.
        let silent = || review(&[(1, High)], &[]);
        assert!(made_progress(&[first(), silent()]));
        assert!(!made_progress(&[first(), silent(), silent()]));
        assert!(made_progress(&[first(), silent(), review(&[(1, High)], &[(2, Said::Fixed)])]));
        let settled = || review(&[(1, High)], &[(2, Said::Fixed)]);
        assert!(!made_progress(&[first(), settled(), review(&[(1, High)], &[(2, Said::Fixed)])]));
    }
}
