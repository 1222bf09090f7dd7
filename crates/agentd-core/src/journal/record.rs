//! What a journal says about a change: the latest verdicts, tests and decisions.

use super::{Event, Journal};
use crate::document::review::CodeVerdict;
use crate::document::review_block::PlanVerdict;
use crate::hash::Digest;
use crate::ids::ChangeId;
use crate::phase::Phase;
use crate::state::{Actor, Choice};
use crate::text::Line;

/// The latest verdict on the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanClaim {
    /// The entry.
    pub seq: u64,
    /// The verdict.
    pub verdict: PlanVerdict,
    /// The plan.
    pub plan: Digest,
    /// The review block.
    pub review: Option<Digest>,
    /// Who gave it.
    pub reviewer: Option<Actor>,
    /// Who wrote the plan.
    pub authors: Vec<Actor>,
    /// Whether they are of different vendors.
    pub independent: Option<bool>,
}

/// The latest run of the tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestClaim {
    /// The entry.
    pub seq: u64,
    /// The command line.
    pub command: String,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The files that were tested, and as the tests left them.
    pub trees: Vec<Digest>,
}

/// The latest verdict on the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeClaim {
    /// The entry.
    pub seq: u64,
    /// The verdict.
    pub verdict: CodeVerdict,
    /// The files.
    pub tree: Option<Digest>,
    /// The plan.
    pub plan: Option<Digest>,
    /// REVIEW.md.
    pub review: Option<Digest>,
    /// Who gave it.
    pub reviewer: Option<Actor>,
    /// Who wrote the code.
    pub authors: Vec<Actor>,
    /// Whether they are of different vendors.
    pub independent: Option<bool>,
}

/// What a journal says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// The latest verdict on the plan.
    pub plan: Option<PlanClaim>,
    /// The latest run of the tests.
    pub tests: Option<TestClaim>,
    /// The latest verdict on the code.
    pub code: Option<CodeClaim>,
    /// What people decided: the entry, what, who and why.
    pub decisions: Vec<(u64, Choice, Line, Line)>,
    /// Where the record begins with a state whose history is not known: the entry and the phase.
    pub adopted: Option<(u64, Phase)>,
    /// What it was called before: the entry that renamed it, the ID, and who renamed it.
    pub renamed: Vec<(u64, ChangeId, Line)>,
    /// How many calls of agents are recorded, and what they cost together.
    pub calls: (u64, f64),
}

impl Record {
    /// Reads it off a journal.
    pub fn of(journal: &Journal) -> Self {
        let mut record = Self::default();
        for entry in &journal.entries {
            record.take(entry.seq, &entry.event);
        }
        record
    }

    fn take(&mut self, seq: u64, event: &Event) {
        match event {
            Event::Begun {} => *self = Self::default(),
            // What was said before is not known, whatever the entries before claim.
            Event::Adopted { phase, .. } => {
                *self = Self {
                    adopted: Some((seq, *phase)),
                    calls: self.calls,
                    decisions: std::mem::take(&mut self.decisions),
                    renamed: std::mem::take(&mut self.renamed),
                    ..Self::default()
                };
            }
            Event::Call { cost, .. } => {
                self.calls = (self.calls.0 + 1, self.calls.1 + cost);
            }
            Event::PlanReviewed {
                verdict, plan, review, reviewer, authors, independent, ..
            } => {
                self.plan = Some(PlanClaim {
                    seq,
                    verdict: *verdict,
                    plan: plan.clone(),
                    review: review.clone(),
                    reviewer: reviewer.clone(),
                    authors: authors.clone(),
                    independent: *independent,
                });
            }
            Event::TestsRun { command, exit_code, tree, tree_after } => {
                self.tests = Some(TestClaim {
                    seq,
                    command: command.clone(),
                    exit_code: *exit_code,
                    trees: [tree, tree_after].into_iter().flatten().cloned().collect(),
                });
            }
            Event::CodeReviewed {
                verdict,
                tree,
                plan,
                review,
                reviewer,
                authors,
                independent,
                ..
            } => {
                self.code = Some(CodeClaim {
                    seq,
                    verdict: *verdict,
                    tree: tree.clone(),
                    plan: plan.clone(),
                    review: review.clone(),
                    reviewer: reviewer.clone(),
                    authors: authors.clone(),
                    independent: *independent,
                });
            }
            Event::Decided { choice, by, note, .. } => {
                self.decisions.push((seq, *choice, by.clone(), note.clone()));
            }
            Event::Renamed { from, by, .. } => {
                self.renamed.push((seq, from.clone(), by.clone()));
            }
            Event::Settled { .. }
            | Event::Placed { .. }
            | Event::Moved { .. }
            | Event::Updated {} => {}
        }
    }
}
