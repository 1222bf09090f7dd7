//! What a state says was observed: verdicts, test runs, decisions, and who they came from.

use serde::{Deserialize, Serialize};

use crate::agent::AgentKind;
use crate::document::review::CodeVerdict;
use crate::document::review_block::{PlanVerdict, ReviewBlock};
use crate::hash::Digest;
use crate::ids::ChangeId;
use crate::known_agent::{are_independent, vendor};
use crate::stamp::Stamp;
use crate::text::{Line, Prose};

/// An agent as it ran.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    /// Which agent.
    pub agent: AgentKind,
    /// The model that answered, where it is known.
    #[serde(default, skip_serializing_if = "Line::is_empty")]
    pub model: Line,
    /// Whose models it uses.
    pub vendor: Line,
}

impl Actor {
    /// An agent and the model that answered.
    pub fn new(agent: AgentKind, model: &str) -> Self {
        Self { agent, model: Line::new(model), vendor: Line::new(vendor(agent, model)) }
    }
}

/// Whether a reviewer is from another vendor than everyone who wrote what it reviews.
pub fn is_independent(authors: &[Actor], reviewer: &Actor) -> bool {
    let vendor = reviewer.vendor.as_str();
    authors.iter().all(|author| are_independent(author.vendor.as_str(), vendor))
}

/// A verdict on a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanReview {
    /// What was said.
    pub verdict: PlanVerdict,
    /// The digest of the plan of which it was said.
    pub plan_hash: Digest,
    /// The round.
    pub iteration: u32,
    /// Who said it.
    pub reviewer: Line,
    /// When.
    pub at: Stamp,
    /// The run in which it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// The digest of the review block in proposal.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_hash: Option<Digest>,
    /// The digest of the record of the plan in `rounds/`, which others can write to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_hash: Option<Digest>,
    /// The agents that wrote the plan; none where people did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<Actor>,
    /// The agent that challenged it. Versions before the journal did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenger: Option<Actor>,
    /// Whether the challenger is from another vendor than the authors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub independent: Option<bool>,
    /// Written by versions before the journal, from the configuration.
    #[serde(default, skip_serializing_if = "Line::is_empty")]
    pub planner_vendor: Line,
    /// Written by versions before the journal, from the configuration.
    #[serde(default, skip_serializing_if = "Line::is_empty")]
    pub challenger_vendor: Line,
}

impl PlanReview {
    /// A verdict of which nothing else is known.
    pub fn new(
        verdict: PlanVerdict,
        plan_hash: Digest,
        iteration: u32,
        reviewer: Line,
        at: Stamp,
    ) -> Self {
        Self {
            verdict,
            plan_hash,
            iteration,
            reviewer,
            at,
            run: None,
            review_hash: None,
            round_hash: None,
            authors: Vec::new(),
            challenger: None,
            independent: None,
            planner_vendor: Line::default(),
            challenger_vendor: Line::default(),
        }
    }

    /// Whether this is the review that the verdict was read from.
    pub fn is_of(&self, review: &ReviewBlock) -> bool {
        match &self.review_hash {
            Some(hash) => review.hash() == *hash,
            // Versions before the journal kept only this.
            None => {
                review.plan.as_ref() == Some(&self.plan_hash)
                    && review.date == Some(self.at)
                    && review.verdict == self.verdict
            }
        }
    }
}

/// A verdict on an implementation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeReview {
    /// What was said.
    pub verdict: CodeVerdict,
    /// The round.
    pub iteration: u32,
    /// Who said it.
    pub reviewer: Line,
    /// When.
    pub at: Stamp,
    /// The run in which it was said: what was fixed since has a higher number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// The digest of REVIEW.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_hash: Option<Digest>,
    /// The plan that the code was reviewed against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_hash: Option<Digest>,
    /// The files that were reviewed (T3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Digest>,
    /// The agents that wrote the code; none where people did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<Actor>,
    /// The agent that reviewed it. Versions before the journal did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewed_by: Option<Actor>,
    /// Whether the reviewer is from another vendor than the authors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub independent: Option<bool>,
}

impl CodeReview {
    /// A verdict of which nothing else is known.
    pub fn new(verdict: CodeVerdict, iteration: u32, reviewer: Line, at: Stamp) -> Self {
        Self {
            verdict,
            iteration,
            reviewer,
            at,
            run: None,
            review_hash: None,
            plan_hash: None,
            tree: None,
            authors: Vec::new(),
            reviewed_by: None,
            independent: None,
        }
    }
}

/// A run of the project's tests by agentd itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestRun {
    /// The command line.
    pub command: String,
    /// Its exit code; nothing where it was killed or did not start.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The end of what it printed.
    #[serde(default)]
    pub output_tail: Prose,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: u64,
    /// When it ended.
    pub at: Stamp,
    /// The files that were tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Digest>,
    /// The files as the tests left them, where they wrote some that git does not ignore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree_after: Option<Digest>,
}

impl TestRun {
    /// Whether the tests passed.
    pub fn passed(&self) -> bool {
        self.exit_code == Some(0)
    }

    /// Whether it is about these files: those that were tested, or what the tests left.
    pub fn covers(&self, tree: &Digest) -> bool {
        [&self.tree, &self.tree_after].into_iter().flatten().any(|tested| tested == tree)
    }
}

/// The way that a change takes from a sentence to code (W7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Track {
    /// Questions, a call for every document, and a review of each by its planner.
    #[default]
    Full,
    /// One call writes the plan.
    Quick,
    /// The same, for a bug: a test that fails comes before the code.
    Bug,
}

impl Track {
    /// Whether it is the way that most changes take.
    pub fn is_full(&self) -> bool {
        *self == Self::Full
    }
}

/// A test that has failed because of a bug, as agentd has seen it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reproduction {
    /// The run of the tests that failed.
    pub run: TestRun,
    /// The files that were written for it.
    pub files: Vec<SeenFile>,
}

/// A file as agentd has seen it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenFile {
    /// Its path in the project.
    pub path: String,
    /// What was in it.
    pub digest: Digest,
}

/// What a person has decided at a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// What was decided.
    pub choice: Choice,
    /// Why, in the person's words.
    #[serde(default, skip_serializing_if = "Line::is_empty")]
    pub note: Line,
    /// Who.
    pub by: Line,
    /// When.
    pub at: Stamp,
    /// The plan that they had before them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_hash: Option<Digest>,
}

/// Another ID for the change (W3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// The ID that it had.
    pub from: ChangeId,
    /// Who renamed it.
    pub by: Line,
    /// When.
    pub at: Stamp,
}

/// A revision of the plan that is under way (W1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// What is to be different, for the planner; empty once it is done, and where people edit the plan
    /// themselves.
    #[serde(default, skip_serializing_if = "Line::is_empty")]
    pub note: Line,
    /// The last call before it, or the one in which it was done.
    #[serde(default)]
    pub after_run: u32,
    /// The review of the plan for which code was written; none if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built: Option<u32>,
    /// The digest of the record of that plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_hash: Option<Digest>,
}

/// What work uses, each from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranges {
    /// Calls of agents.
    pub calls: [u64; 2],
    /// Tokens, in and out.
    pub tokens: [u64; 2],
    /// US dollars.
    pub cost_usd: [f64; 2],
    /// Seconds in which agents work.
    pub seconds: [u64; 2],
}

/// The ways on from a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// Have the planner fix the issues, then challenge again.
    Fix,
    /// Take the plan with its minor issues.
    Accept,
    /// Leave it here.
    Stop,
    /// Go back to planning.
    Revise,
    /// Give it up.
    Drop,
    /// Archive it although its implementation is not approved.
    Archive,
    /// Archive it although it was edited since its review.
    #[serde(rename = "accept-stale")]
    AcceptStale,
    /// Answer the question of an agent.
    Answer,
}
