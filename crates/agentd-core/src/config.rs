//! `agentd/config.toml`: every key optional, an unknown key an error that
//! names the nearest known one.

mod agents;
mod casting;
mod executable;
mod git;
mod policy;
mod project;
mod replay;
mod roles;
mod sandbox;
mod validation;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

pub use agents::{AgentConfig, Resume};
pub use casting::Casting;
pub use executable::ExecutableSetting;
pub use git::{Git, GitCommit, GitLand};
pub use policy::{IndependentReview, Policy, Sign};
pub use project::Project;
pub use replay::{Replay, Speed};
pub use roles::Roles;
pub use sandbox::{Caches, Sandbox, places};
pub use validation::Validation;

use crate::agent::{AgentKind, AgentName, Complexity, Role};
use crate::check::Weight;
use crate::nearest::nearest;
use crate::provider::prices::Price;
use crate::span::{Span, line_column};
use crate::state::Track;

/// The file that `init` writes: every key with its default, or with an example, commented out.
pub const TEMPLATE: &str = include_str!("../templates/config.toml");

/// How many bytes a context file may be allowed to have.
pub const CONTEXT_BYTES: RangeInclusive<usize> = 8192..=1_048_576;

/// The settings of a project.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What holds for the whole project.
    pub project: Project,
    /// How a change goes from phase to phase.
    pub workflow: Workflow,
    /// Which agent plays which role.
    pub roles: Roles,
    /// Whether `[roles]` is in the file: then somebody has chosen the agents, also where they
    /// are those of the defaults.
    #[serde(skip)]
    pub roles_are_written: bool,
    /// Who takes over a role, in this order, if the agent that plays it has no quota or login (G4).
    #[serde(skip)]
    pub fallbacks: BTreeMap<Role, Vec<AgentKind>>,
    /// Gemini CLI.
    pub gemini: AgentConfig,
    /// Codex CLI.
    pub codex: AgentConfig,
    /// Claude Code.
    pub claude: AgentConfig,
    /// Agents that speak ACP.
    #[serde(deserialize_with = "agents::sections")]
    pub agents: BTreeMap<AgentName, AgentConfig>,
    /// What the agent `replay` plays.
    pub replay: Replay,
    /// Prices by model, over the built-in table.
    pub prices: BTreeMap<String, Price>,
    /// What a change may cost.
    pub budget: Budget,
    /// How work is kept apart in git.
    pub git: Git,
    /// How an implementation is tested.
    pub implementation: Implementation,
    /// What a verdict has to be to count.
    pub policy: Policy,
    /// What agents, tests and hooks may do to the machine.
    pub sandbox: Sandbox,
    /// Extra rules for documents.
    pub validation: Validation,
    /// How much rules weigh, by their codes.
    pub rules: BTreeMap<String, Weight>,
}

/// `[workflow]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workflow {
    /// Whether a person decides at the gates.
    pub human_in_loop: bool,
    /// How much planning a change gets (W7).
    pub ceremony: Ceremony,
    /// One session per document, or one for all.
    pub generation: Generation,
    /// How often a planner reviews each of its documents.
    pub self_review_iterations: u32,
    /// Rounds of revision without a person.
    pub planning_iterations: u32,
    /// Rounds of repairing the format without a person.
    pub format_iterations: u32,
    /// Rounds of fixing an implementation.
    pub implementation_iterations: u32,
    /// How often a call that failed for a passing reason is tried again.
    pub script_retries: u32,
    /// The first pause before such a try; each further one is twice as long.
    pub retry_delay_secs: u64,
    /// Whether a plan with minor issues left is taken without asking (C11).
    pub accept_minor: bool,
    /// Whether a second challenge gets a fresh session.
    pub rechallenge: Rechallenge,
    /// The old name of `policy.independent_review = "require"`.
    pub require_independent_review: Option<bool>,
    /// The most bytes of a context file, GEMINI.md or AGENTS.md.
    pub context_bytes: usize,
}

impl Default for Workflow {
    fn default() -> Self {
        Self {
            human_in_loop: true,
            ceremony: Ceremony::Full,
            generation: Generation::Sequential,
            self_review_iterations: 1,
            planning_iterations: 2,
            format_iterations: 2,
            implementation_iterations: 2,
            script_retries: 2,
            retry_delay_secs: 5,
            accept_minor: false,
            rechallenge: Rechallenge::Fresh,
            require_independent_review: None,
            context_bytes: 12_288,
        }
    }
}

/// How much planning a change gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ceremony {
    /// Questions, a call for every document, and a review of each by its planner.
    Full,
    /// One call for the whole plan.
    Quick,
    /// One call if the change is simple.
    Auto,
}

impl Ceremony {
    /// The track of a change; its complexity is found out only if that matters.
    pub fn track(self, complexity: impl FnOnce() -> Complexity) -> Track {
        match self {
            Self::Quick => Track::Quick,
            Self::Auto if complexity() == Complexity::Low => Track::Quick,
            Self::Full | Self::Auto => Track::Full,
        }
    }
}

/// How documents are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generation {
    /// A fresh session for every document.
    Sequential,
    /// One session for all of them.
    OneShot,
}

/// How a plan is challenged again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rechallenge {
    /// In a fresh session.
    Fresh,
    /// In the session of the first challenge.
    Resume,
}

/// The section of a file that says more than is kept of it.
#[derive(Deserialize)]
struct Sections {
    roles: Option<roles::Chains>,
}

/// A file of which one key matters.
#[derive(Deserialize)]
struct OnlySign {
    #[serde(default)]
    policy: OnlySignPolicy,
}

#[derive(Default, Deserialize)]
struct OnlySignPolicy {
    #[serde(default)]
    sign: Sign,
}

/// `[budget]`
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// The most that a change may cost.
    pub max_cost_usd: Option<f64>,
    /// The most tokens, in and out, that a change may use.
    pub max_tokens: Option<u64>,
    /// A change that may cost more than this, by its forecast, is begun only if a person agrees (W8).
    pub ask_above_usd: Option<f64>,
}

/// `[implementation]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Implementation {
    /// The command that runs the project's tests.
    pub test_command: Option<String>,
    /// The command that checks its code; implementers are asked to run it.
    pub lint_command: Option<String>,
    /// The command that builds it; implementers are asked to run it.
    pub build_command: Option<String>,
    /// A limit for the tests.
    pub test_timeout_secs: u64,
}

impl Default for Implementation {
    fn default() -> Self {
        Self { test_command: None, lint_command: None, build_command: None, test_timeout_secs: 600 }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (line {line}, column {column})")]
pub struct ConfigError {
    /// What is wrong.
    pub message: String,
    /// In which line.
    pub line: usize,
    /// In which column.
    pub column: usize,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Config {
    /// Reads a configuration.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut config: Self = toml::from_str(text).map_err(|error| wrong(text, &error))?;
        let sections: Sections = toml::from_str(text).map_err(|error| wrong(text, &error))?;
        config.roles_are_written = sections.roles.is_some();
        config.fallbacks = sections.roles.map(roles::Chains::fallbacks).unwrap_or_default();
        config.check(text)?;
        Ok(config)
    }

    /// Whether lines of journals are signed. A mistake elsewhere in the file does not matter: what a
    /// person decides is recorded all the same.
    pub fn parse_sign(text: &str) -> Result<Sign, ConfigError> {
        let only: OnlySign = toml::from_str(text).map_err(|error| wrong(text, &error))?;
        Ok(only.policy.sign)
    }

    /// Whether a review by the vendor that wrote is an error or a warning.
    pub fn independent_review(&self) -> IndependentReview {
        match self.workflow.require_independent_review {
            Some(true) => IndependentReview::Require,
            Some(false) | None => self.policy.independent_review,
        }
    }

    fn check(&self, text: &str) -> Result<(), ConfigError> {
        let fail = |key: &str, message: String| {
            let start = text.find(key).unwrap_or(0);
            Err(at(text, Span::new(start, start + key.len()), message, None))
        };
        if self.workflow.self_review_iterations > 5 {
            return fail(
                "self_review_iterations",
                "self_review_iterations is at most 5".to_owned(),
            );
        }
        if !CONTEXT_BYTES.contains(&self.workflow.context_bytes) {
            let (least, most) = (CONTEXT_BYTES.start(), CONTEXT_BYTES.end());
            return fail("context_bytes", format!("context_bytes is from {least} to {most}"));
        }
        if let Some(pattern) = &self.validation.scenario_pattern
            && let Err(error) = regex_lite::Regex::new(pattern)
        {
            return fail("scenario_pattern", format!("scenario_pattern is not a pattern: {error}"));
        }
        self.check_rules(text)?;
        if let Some(path) = self.sandbox.unusable() {
            let message = format!(
                "writable has `{path}`: each path is absolute or starts with ~/, without `..`"
            );
            return fail("writable", message);
        }
        if let Some(mistake) = self.agent_mistake() {
            let start = text.find(&mistake.at).unwrap_or(0);
            let span = Span::new(start, start + mistake.at.len());
            return Err(at(text, span, mistake.message, mistake.hint));
        }
        let limits = [
            ("max_cost_usd", self.budget.max_cost_usd),
            ("ask_above_usd", self.budget.ask_above_usd),
        ];
        // Compared with something that is no number, everything would be within the limit.
        let unusable = |limit: f64| limit.is_nan() || limit < 0.0;
        if let Some((key, _)) = limits.into_iter().find(|(_, limit)| limit.is_some_and(unusable)) {
            return fail(key, format!("{key} is a positive number"));
        }
        for (model, price) in &self.prices {
            let figures =
                [Some(price.input), price.cached_input, price.cache_write, Some(price.output)];
            if figures.into_iter().flatten().any(|figure| !figure.is_finite() || figure < 0.0) {
                return fail(
                    model,
                    format!("the prices of `{model}` are not all positive numbers"),
                );
            }
        }
        Ok(())
    }
}

fn wrong(text: &str, error: &toml::de::Error) -> ConfigError {
    let span = error.span().map_or(Span::at(0), |range| Span::new(range.start, range.end));
    let (message, hint) = explain(error.message());
    at(text, span, message, hint)
}

fn at(text: &str, span: Span, message: String, hint: Option<String>) -> ConfigError {
    let (line, column) = line_column(text, span.start);
    ConfigError { message, line, column, hint }
}

/// Turns serde's list of expected names into the one that was probably meant.
fn explain(message: &str) -> (String, Option<String>) {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let unknown =
        ["unknown field", "unknown variant"].iter().any(|start| message.starts_with(start));
    let Some((wrong, known)) = names.split_first().filter(|_| unknown) else {
        return (message.lines().next().unwrap_or_default().to_owned(), None);
    };
    let what = if message.starts_with("unknown field") { "key" } else { "value" };
    let hint = match nearest(wrong, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", known.join(", ")),
    };
    (format!("unknown {what} `{wrong}`"), Some(hint))
}

#[cfg(test)]
mod tests;
