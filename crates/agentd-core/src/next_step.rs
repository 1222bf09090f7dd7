//! Commands that agentd suggests, as values: what comes next, and what a hint says to run.
//!
//! The core decides which command comes next; a front end prints it. A test of the program
//! parses every command here with the real command line, so none can be suggested that does
//! not exist.

use std::fmt;

use serde::{Serialize, Serializer};
use strum::{IntoStaticStr, VariantArray};

use crate::command_line::CommandLine;
use crate::ids::ChangeId;

/// The commands of agentd that are suggested somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Command {
    /// Merges the specs of a finished change.
    Archive,
    /// Has the plan judged.
    Challenge,
    /// Asks what is unclear before planning.
    Clarify,
    /// Answers the question that a plan waits with.
    Decide,
    /// Checks the setup.
    Doctor,
    /// Has the findings of a code review worked on.
    Fix,
    /// Has the plan implemented.
    Impl,
    /// Sets up a project.
    Init,
    /// Lists changes and specs.
    List,
    /// Shows the calls of a change.
    Log,
    /// Writes, judges and revises a plan.
    Plan,
    /// Has the plan revised.
    Reproposal,
    /// Has the implementation judged.
    Review,
    /// Goes back to planning.
    Revise,
    /// Prints a document.
    Show,
    /// Reviews and accepts what the settings of a repository run.
    Trust,
    /// Takes an archived change back.
    Unarchive,
    /// Checks documents.
    Validate,
    /// Compares a change with its record.
    Verify,
}

impl Command {
    /// Every command that is suggested.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// This command for a change.
    pub fn on(self, change: &ChangeId) -> NextStep {
        NextStep::new(self).arg(change.as_str())
    }
}

/// A command to run next, with its arguments. It is displayed, and written to JSON, as a line
/// for the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    command: Command,
    arguments: Vec<String>,
}

impl NextStep {
    /// The command without arguments.
    pub fn new(command: Command) -> Self {
        Self { command, arguments: Vec::new() }
    }

    /// The same with one more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The command, without its arguments.
    pub fn command(&self) -> Command {
        self.command
    }

    /// The line without the program and without the change that it is about, for a list of changes.
    pub fn short(&self, change: &ChangeId) -> String {
        let words: Vec<&str> = self.words().filter(|word| *word != change.as_str()).collect();
        shell_words::join(words)
    }

    /// The words behind the name of the program.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.command.name()).chain(self.arguments.iter().map(String::as_str))
    }
}

impl From<&NextStep> for CommandLine {
    fn from(step: &NextStep) -> Self {
        Self::agentd(step.words())
    }
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        CommandLine::from(self).fmt(f)
    }
}

impl Serialize for NextStep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_line_for_the_shell() {
        let change = ChangeId::new("add-oauth").unwrap();
        assert_eq!(Command::Impl.on(&change).to_string(), "agentd impl add-oauth");
        assert_eq!(NextStep::new(Command::List).to_string(), "agentd list");
        let forced = Command::Archive.on(&change).arg("--force").arg("it's \"done\"; rm x");
        let shown = forced.to_string();
        assert_eq!(
            shell_words::split(&shown).unwrap(),
            ["agentd", "archive", "add-oauth", "--force", "it's \"done\"; rm x"]
        );
        assert_eq!(serde_json::to_value(&forced).unwrap(), shown);
        assert_eq!(Command::Plan.on(&change).arg("--auto").short(&change), "plan --auto");
    }
}
