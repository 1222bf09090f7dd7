//! `STATE.yaml`: where a change stands and what it has cost.
//!
//! The file belongs to agentd: it is written whole, and what is not understood
//! is an error, never overwritten.

mod question;
mod records;
mod transitions;

use std::fmt::{self, Write as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::IntoStaticStr;

use crate::agent::{AgentKind, Complexity};
use crate::description::detailed_enough;
use crate::frontmatter::quoted;
use crate::ids::ChangeId;
use crate::outcome::FailureKind;
use crate::phase::Phase;
use crate::span::{Span, line_column};
use crate::stamp::Stamp;
use crate::step_name::StepName;
use crate::text::Prose;
use crate::yaml::from_yaml;

pub use question::{ASKING, AgentQuestion, Asked, KeptQuestion, MAX_ASKED, MAX_CHOICES};
pub use records::{
    Actor, Choice, CodeReview, Decision, PlanReview, Ranges, Rename, Reproduction, Revision,
    SeenFile, TestRun, Track, is_independent,
};

/// The state of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The change.
    pub change_id: ChangeId,
    /// Where it stands. Changed by [`State::apply`] only.
    pub phase: Phase,
    /// When it was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Stamp>,
    /// When this file was last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Stamp>,
    /// What the person asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Prose>,
    /// The planner's session in which proposal.md was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// How hard the change is; picks the models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<Complexity>,
    /// The way that it takes (W7).
    #[serde(default, skip_serializing_if = "Track::is_full")]
    pub track: Track,
    /// What the whole change was expected to use when its first document was to be written (W8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Ranges>,
    /// What was done last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_action: Option<LastAction>,
    /// How many rounds of revision there were.
    #[serde(default)]
    pub iteration: u32,
    /// The latest verdict on the plan, and on which plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_review: Option<PlanReview>,
    /// The latest verdict on the implementation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_review: Option<CodeReview>,
    /// The revision that is under way, until its plan is implemented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// What an agent asks a person, until it was given the answer (G6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<AgentQuestion>,
    /// Where in git it is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSetup>,
    /// The latest run of the project's tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_run: Option<TestRun>,
    /// The test that shows the bug, once agentd has seen it fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproduction: Option<Reproduction>,
    /// The phase from which it was archived, and to which it would come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_from: Option<Phase>,
    /// What it was called before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renamed: Vec<Rename>,
    /// What people have decided, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Every call of an agent, oldest first.
    #[serde(default)]
    pub llm_calls: Vec<LlmCall>,
    /// The sum of all calls, in US dollars.
    #[serde(default)]
    pub total_cost: f64,
    /// The sum of all calls; includes cached tokens.
    #[serde(default)]
    pub total_tokens_in: u64,
    /// The sum of all calls.
    #[serde(default)]
    pub total_tokens_out: u64,
}

/// What was done last to a change. It is written as the name of the step or of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LastAction {
    /// A step was run; also every name that is not known.
    Step(StepName),
    /// A person decided.
    Decide,
    /// A person went back to planning.
    Revise,
    /// It was archived.
    Archive,
    /// It was given up.
    Drop,
}

impl LastAction {
    fn of(name: &str) -> Self {
        match name {
            "decide" => Self::Decide,
            "revise" => Self::Revise,
            "archive" => Self::Archive,
            "drop" => Self::Drop,
            name => Self::Step(StepName::of(name)),
        }
    }
}

impl fmt::Display for LastAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(step) => step.fmt(f),
            Self::Decide => f.pad("decide"),
            Self::Revise => f.pad("revise"),
            Self::Archive => f.pad("archive"),
            Self::Drop => f.pad("drop"),
        }
    }
}

impl From<StepName> for LastAction {
    fn from(step: StepName) -> Self {
        Self::Step(step)
    }
}

impl From<&str> for LastAction {
    fn from(name: &str) -> Self {
        Self::of(name)
    }
}

impl Serialize for LastAction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LastAction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(&String::deserialize(deserializer)?))
    }
}

/// Where in git a change is worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitSetup {
    /// The way that was chosen.
    pub workflow: Placement,
    /// The branch; none in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The working tree, from the project; none where that is the project itself. For people:
    /// where it really is, git says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_tree: Option<String>,
    /// The commit from which the work started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_commit: Option<String>,
    /// The branch from which its branch was started, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
}

/// Where the code of a change is written (P6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Placement {
    /// On a branch of its own, in the project's own checkout.
    Branch,
    /// On a branch of its own, in a worktree next to the project.
    Worktree,
    /// In the current checkout, on whatever branch that is.
    InPlace,
}

impl Placement {
    /// All of them, the recommended one first.
    pub const ALL: [Self; 3] = [Self::Branch, Self::Worktree, Self::InPlace];

    /// `branch`, `worktree` or `in-place`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One call of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LlmCall {
    /// The step it was for.
    pub step: StepName,
    /// The agent that was called. Versions before the journal did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentKind>,
    /// The model that answered.
    #[serde(default)]
    pub model: String,
    /// Tokens that went in, cached ones included.
    #[serde(default)]
    pub tokens_in: u64,
    /// Tokens that came out.
    #[serde(default)]
    pub tokens_out: u64,
    /// Tokens that went in and were cached.
    #[serde(default)]
    pub tokens_cached: u64,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: u64,
    /// What it cost, in US dollars.
    #[serde(default)]
    pub cost: f64,
    /// Whether it was cut short before anyone knew what it cost: then the cost is an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsettled: bool,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Stamp>,
    /// The agent's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The number of its run file: what is in `runs/` and not here was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// Why it failed; none if it succeeded, or an earlier version recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
    /// Whether it ended with a question to a person, so that its step is not done (G6).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
}

/// Why a text is not the state of a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The text cannot be read as a state.
    #[error("{message} (line {line}, column {column})")]
    Unreadable {
        /// What is wrong.
        message: String,
        /// In which line.
        line: usize,
        /// In which column.
        column: usize,
        /// Where.
        place: (usize, usize),
    },
    /// The state is that of another change.
    #[error("it is the state of `{found}`, not of `{wanted}`")]
    OtherChange {
        /// The change in the text.
        found: ChangeId,
        /// The change whose state was wanted.
        wanted: ChangeId,
    },
}

impl StateError {
    /// Where in the text the error is.
    pub fn span(&self) -> Span {
        match self {
            Self::Unreadable { place, .. } => Span::new(place.0, place.1),
            Self::OtherChange { .. } => Span::at(0),
        }
    }
}

impl State {
    /// The state of a change that has just begun.
    pub fn new(change_id: ChangeId, description: &str, now: Stamp) -> Self {
        let description = Prose::new(description);
        Self {
            change_id,
            phase: Phase::Proposed,
            created_at: Some(now),
            updated_at: Some(now),
            description: (!description.is_empty()).then_some(description),
            session_id: None,
            complexity: None,
            track: Track::Full,
            forecast: None,
            last_action: None,
            iteration: 0,
            plan_review: None,
            code_review: None,
            revision: None,
            question: None,
            git: None,
            test_run: None,
            reproduction: None,
            archived_from: None,
            renamed: Vec::new(),
            decisions: Vec::new(),
            llm_calls: Vec::new(),
            total_cost: 0.0,
            total_tokens_in: 0,
            total_tokens_out: 0,
        }
    }

    /// The commit from which the work started, where it is known.
    pub fn base_commit(&self) -> Option<&str> {
        self.git.as_ref().and_then(|git| git.base_commit.as_deref())
    }

    /// Whether it was given up, rather than merged.
    pub fn was_dropped(&self) -> bool {
        self.last_action == Some(LastAction::Drop)
    }

    /// Every ID that it has had, the present one first.
    pub fn ids(&self) -> impl Iterator<Item = &ChangeId> {
        std::iter::once(&self.change_id).chain(self.renamed.iter().map(|rename| &rename.from))
    }

    /// Whether what is asked for leaves no question that has to be answered before it is planned.
    pub fn is_clear(&self) -> bool {
        let description = self.description.as_ref();
        // What it left open is asked by its planner, who has begun.
        self.llm_calls.iter().any(|call| call.asked)
            || self.track != Track::Full
            || description.is_some_and(|text| detailed_enough(text.as_str()))
    }

    /// Adds a call to the ledger and to the totals. A cost that is no number,
    /// which YAML could not hold, counts as none.
    pub fn record_call(&mut self, mut call: LlmCall) {
        call.cost = if call.cost.is_finite() { to_nanodollars(call.cost) } else { 0.0 };
        self.llm_calls.push(call);
        self.add_up();
    }

    /// Records what a call has cost that was cut short. Says whether there was such a call.
    pub fn settle(&mut self, run: u32, cost: f64) -> bool {
        let mut calls = self.llm_calls.iter_mut();
        let Some(call) = calls.find(|call| call.run == Some(run) && call.unsettled) else {
            return false;
        };
        call.cost = to_nanodollars(cost);
        call.unsettled = false;
        self.add_up();
        true
    }

    fn add_up(&mut self) {
        // What an agent reports is not trusted to be small.
        let sum = |tokens: fn(&LlmCall) -> u64| {
            self.llm_calls.iter().map(tokens).fold(0, u64::saturating_add)
        };
        (self.total_tokens_in, self.total_tokens_out) =
            (sum(|c| c.tokens_in), sum(|c| c.tokens_out));
        let cost = self.llm_calls.iter().map(|c| c.cost).sum::<f64>().min(f64::MAX);
        self.total_cost = to_nanodollars(cost);
    }
}

/// Without what sums of fractions leave behind, such as 0.30000000000000004.
fn to_nanodollars(cost: f64) -> f64 {
    let rounded = (cost * 1e9).round() / 1e9;
    if rounded.is_finite() { rounded } else { cost }
}

/// Reads the state of a change.
pub fn parse(text: &str, change: &ChangeId) -> Result<State, StateError> {
    let yaml = text.strip_prefix('\u{feff}').unwrap_or(text);
    let state: State = from_yaml(yaml).map_err(|(message, span)| {
        let (line, column) = line_column(yaml, span.start);
        let span = span.shifted(text.len() - yaml.len());
        let message = if yaml.trim().is_empty() { "it is empty".to_owned() } else { message };
        StateError::Unreadable { message, line, column, place: (span.start, span.end) }
    })?;
    if state.change_id != *change {
        return Err(StateError::OtherChange { found: state.change_id, wanted: change.clone() });
    }
    Ok(state)
}

/// Writes a state as agentd does: block style, texts quoted.
pub fn render(state: &State) -> String {
    let mut out =
        String::from("# Written by agentd. Change it with agentd's commands, not by hand.\n");
    let value = serde_json::to_value(state).unwrap_or_default();
    push_value(&mut out, &value, 0);
    out
}

/// Block-style YAML. Everything that could be taken for something else is quoted.
fn push_value(out: &mut String, value: &serde_json::Value, indent: usize) {
    use serde_json::Value;
    let pad = " ".repeat(indent);
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let _ = write!(out, "{pad}{key}:");
                push_nested(out, value, indent);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                push_value(&mut inner, item, indent + 2);
                let _ = write!(out, "{pad}- {}", inner.trim_start_matches(' '));
            }
        }
        _ => {
            let _ = writeln!(out, "{pad}{}", scalar_of(value));
        }
    }
}

fn push_nested(out: &mut String, value: &serde_json::Value, indent: usize) {
    use serde_json::Value;
    match value {
        Value::Array(items) if items.is_empty() => out.push_str(" []\n"),
        Value::Array(_) | Value::Object(_) => {
            out.push('\n');
            push_value(out, value, indent + 2);
        }
        _ => {
            let _ = writeln!(out, " {}", scalar_of(value));
        }
    }
}

fn scalar_of(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) if text.parse::<Stamp>().is_ok() && text.ends_with('Z') => {
            text.clone()
        }
        serde_json::Value::String(text) => {
            let plain = !text.contains(' ') && crate::frontmatter::scalar(text) == *text;
            if plain { text.clone() } else { quoted(text) }
        }
        other => other.to_string(),
    }
}
