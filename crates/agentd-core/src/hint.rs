//! What a person can do about an error, as data: the terminal and `--json` render it the same way,
//! and tests can run what it proposes.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::command_line::CommandLine;
use crate::ids::ChangeId;

/// Something to do about an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// A command to run.
    Run {
        /// What it is good for, as an imperative.
        purpose: String,
        /// The command.
        command: CommandLine,
    },
    /// A file to edit.
    Edit {
        /// What to do there, as an imperative.
        purpose: String,
        /// The file.
        path: String,
    },
    /// A setting to change in `agentd/config.toml`.
    Set {
        /// What it is good for, as an imperative.
        purpose: String,
        /// The table.
        table: &'static str,
        /// The key in that table.
        key: &'static str,
        /// The value, as TOML.
        value: &'static str,
    },
    /// Anything else.
    Text(String),
}

impl Hint {
    /// A command to run.
    pub fn run(purpose: impl Into<String>, command: impl Into<CommandLine>) -> Self {
        Self::Run { purpose: purpose.into(), command: command.into() }
    }

    /// A file to edit.
    pub fn edit(purpose: impl Into<String>, path: impl Into<String>) -> Self {
        Self::Edit { purpose: purpose.into(), path: path.into() }
    }

    /// Fills in the ID of the change where it was not known.
    #[must_use]
    pub fn for_change(self, change: &ChangeId) -> Self {
        match self {
            Self::Run { purpose, command } => {
                Self::Run { purpose, command: command.for_change(change) }
            }
            other => other,
        }
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run { purpose, command } => write!(f, "{purpose}: {command}"),
            Self::Edit { purpose, path } => write!(f, "{purpose}: {path}"),
            Self::Set { purpose, table, key, value } => {
                write!(f, "{purpose}: set `[{table}] {key} = {value}` in agentd/config.toml")
            }
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for Hint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
