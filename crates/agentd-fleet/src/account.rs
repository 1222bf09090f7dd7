//! Accounts with vendors: which agent, and whose.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// An account of a team with the vendor of an agent, such as `claude:team1`. It names a key that a worker
/// has; the key itself never leaves the worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    agent: Box<str>,
    team: Box<str>,
}

/// A text that names no account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an account is an agent and a team, such as `claude:team1`: letters, digits and `.-_`")]
pub struct AccountError;

impl Account {
    /// The agent whose vendor it is with.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Whose it is.
    pub fn team(&self) -> &str {
        &self.team
    }
}

impl FromStr for Account {
    type Err = AccountError;

    fn from_str(text: &str) -> Result<Self, AccountError> {
        let plain = |text: &str| {
            let fits = (1..=64).contains(&text.len());
            fits && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c))
        };
        let (agent, team) = text.split_once(':').ok_or(AccountError)?;
        if plain(agent) && plain(team) {
            Ok(Self { agent: agent.into(), team: team.into() })
        } else {
            Err(AccountError)
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.agent, self.team)
    }
}

impl Serialize for Account {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_an_agent_and_a_team() {
        let account: Account = "claude:team1".parse().unwrap();
        assert_eq!((account.agent(), account.team()), ("claude", "team1"));
        assert_eq!(account.to_string(), "claude:team1");
        for wrong in ["", "claude", "claude:", ":team1", "a:b:c", "a b:c", "a:b\n", "ä:b"] {
            assert_eq!(wrong.parse::<Account>(), Err(AccountError), "{wrong}");
        }
    }
}
