//! Who plays a role when agents drop out, because their quota is used up or nobody is logged in (G4).

use std::collections::BTreeSet;

use super::{Config, IndependentReview};
use crate::agent::{AgentKind, Complexity, Role};
use crate::known_agent::{are_independent, vendor};

/// What decides who plays.
#[derive(Debug, Clone, Copy)]
pub struct Casting<'c> {
    /// The settings.
    pub config: &'c Config,
    /// How hard the change is: it picks the models, and these have vendors.
    pub complexity: Complexity,
    /// The agents that have dropped out.
    pub out: &'c BTreeSet<AgentKind>,
}

impl Casting<'_> {
    /// Who plays a role: the first of its list that has not dropped out. `authors` are the vendors
    /// of those who wrote what a reviewer is to judge. No agent takes over whose review would no
    /// longer be independent, nor one whose work nobody could judge independently (T4); none is left
    /// then.
    pub fn player(&self, role: Role, authors: &[&str]) -> Option<AgentKind> {
        let chain = self.chain(role);
        let first = *chain.first()?;
        let is_out = self.out.contains(&first);
        let mut rest = chain.into_iter().filter(|agent| !self.out.contains(agent));
        match reviewed_by(role) {
            Some(reviewer) => {
                if !is_out {
                    return Some(first);
                }
                let can_be_judged = |author: &AgentKind| {
                    let reviewers = self.chain(reviewer).into_iter();
                    reviewers.filter(|reviewer| !self.out.contains(reviewer)).any(|reviewer| {
                        are_independent(self.vendor(*author), self.vendor(reviewer))
                    })
                };
                let matters = self.independence_matters(role, reviewer);
                rest.find(|author| !matters || can_be_judged(author))
            }
            None => {
                let judges = |agent: &AgentKind| {
                    authors.iter().all(|author| are_independent(author, self.vendor(*agent)))
                };
                let matters = author_of(role).is_some_and(|a| self.independence_matters(a, role));
                let candidates: Vec<AgentKind> = rest.collect();
                let stranger = candidates.iter().copied().find(judges);
                // What the settings say without any list is for the policy to judge.
                let by_settings = candidates.first().copied().filter(|_| !is_out || !matters);
                stranger.or(by_settings)
            }
        }
    }

    /// The agents of a role, in their order.
    fn chain(&self, role: Role) -> Vec<AgentKind> {
        let rest = self.config.fallbacks.get(&role).into_iter().flatten();
        std::iter::once(self.config.roles.agent(role)).chain(rest.copied()).collect()
    }

    /// Whose models an agent will use.
    pub fn vendor(&self, agent: AgentKind) -> &'static str {
        let model = self.config.model(agent, self.complexity).model.unwrap_or_default();
        vendor(agent, &model)
    }

    /// Whether there is independence to lose, or the project insists on it.
    fn independence_matters(&self, author: Role, reviewer: Role) -> bool {
        let roles = &self.config.roles;
        self.config.independent_review() == IndependentReview::Require
            || are_independent(self.vendor(roles.agent(author)), self.vendor(roles.agent(reviewer)))
    }
}

/// Who judges the work of a role.
fn reviewed_by(role: Role) -> Option<Role> {
    match role {
        Role::Planner => Some(Role::Challenger),
        Role::Implementer => Some(Role::Reviewer),
        Role::Challenger | Role::Reviewer => None,
    }
}

/// Whose work a role judges.
fn author_of(role: Role) -> Option<Role> {
    match role {
        Role::Challenger => Some(Role::Planner),
        Role::Reviewer => Some(Role::Implementer),
        Role::Planner | Role::Implementer => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"
[roles]
planner = ["gemini", "codex", "claude"]
challenger = ["codex", "opencode"]
implementer = "claude"
reviewer = ["codex", "claude", "gemini"]
[agents.opencode.models]
medium = "anthropic/claude-sonnet-5-5"
"#;

    fn check(config: &str, role: Role, out: &[&str], authors: &[&str], expected: Option<&str>) {
        let config = Config::parse(config).unwrap();
        let out: BTreeSet<AgentKind> = out.iter().map(|name| name.parse().unwrap()).collect();
        let casting = Casting { config: &config, complexity: Complexity::Medium, out: &out };
        let player = casting.player(role, authors).map(|agent| agent.to_string());
        assert_eq!(player.as_deref(), expected, "{role} without {out:?} after {authors:?}");
    }

    // contract G4, T4
    #[test]
    fn the_next_one_takes_over_unless_that_ends_independence() {
        use Role::{Challenger, Implementer, Planner, Reviewer};
        let check = |role, out: &[&str], authors: &[&str], expected| {
            check(CONFIG, role, out, authors, expected);
        };
        check(Planner, &[], &[], Some("gemini"));
        // codex can be judged by opencode, whose model is one of Anthropic.
        check(Planner, &["gemini"], &[], Some("codex"));
        check(Planner, &["gemini", "codex"], &[], None);
        check(Challenger, &[], &["Google"], Some("codex"));
        check(Challenger, &["codex"], &["Google"], Some("opencode"));
        // The planner fell back to codex: it does not judge itself.
        check(Challenger, &["gemini"], &["Google", "OpenAI"], Some("opencode"));
        check(Challenger, &["codex"], &["Anthropic"], None);
        check(Implementer, &["claude"], &[], None);
        check(Reviewer, &["codex"], &["Anthropic"], Some("gemini"));
        check(Reviewer, &["codex", "gemini"], &["Anthropic"], None);
        check(Reviewer, &["codex"], &["unknown"], None);
    }

    #[test]
    fn without_a_list_nothing_changes() {
        let alone = "[roles]\nplanner = \"codex\"\nchallenger = \"codex\"\n";
        check(alone, Role::Challenger, &[], &["OpenAI"], Some("codex"));
        check(alone, Role::Challenger, &["codex"], &["OpenAI"], None);
        check(alone, Role::Planner, &["codex"], &[], None);
        // There is no independence to lose, unless the project insists on it.
        let two = "[roles]\nplanner = \"claude\"\nchallenger = [\"claude\", \"codex\"]\n";
        check(two, Role::Challenger, &["claude"], &["Anthropic"], Some("codex"));
        let same = "[roles]\nplanner = [\"codex\", \"claude\"]\nchallenger = \"codex\"\n";
        check(same, Role::Planner, &["codex"], &[], Some("claude"));
    }
}
