//! The prompts of the implementation: building a layer, its review, the repairs.

use minijinja::context;

use super::views::{self, IssueView, SpecView, TaskView, TestEvidence};
use super::{render, safe};
use crate::ids::{ChangeId, Layer};
use crate::step_name::StepName;

/// Asks the implementer for one layer.
#[derive(Debug, Clone)]
pub struct Implement<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// The layer.
    pub layer: Layer,
    /// The tasks of the layer that are not done.
    pub tasks: &'a [TaskView],
    /// What the tasks refer to.
    pub specs: &'a [SpecView],
    /// The rules of the project, from `agentd/project.md` or the like; empty for none.
    pub rules: &'a str,
    /// How the project's tests are run.
    pub test_command: Option<&'a str>,
}

impl Implement<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let context = context! {
            layer => safe(&self.layer),
            tasks => views::tasks(self.tasks),
            specs => views::specs(self.specs),
            rules => self.rules.trim(),
            test_command => self.test_command.unwrap_or_default(),
        };
        render(&StepName::Implement(self.layer), self.change, "implement", context)
    }
}

/// Asks the implementer once more for what is left of a layer.
#[derive(Debug, Clone)]
pub struct ImplementAgain<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// The layer.
    pub layer: Layer,
    /// The tasks that are still not ticked.
    pub tasks: &'a [TaskView],
}

impl ImplementAgain<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let context = context! {
            layer => safe(&self.layer),
            count => self.tasks.len(),
            tasks => views::tasks(self.tasks),
        };
        render(&StepName::Implement(self.layer), self.change, "implement-again", context)
    }
}

/// Asks the reviewer what is wrong with the implementation.
#[derive(Debug, Clone)]
pub struct Review<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// What had to be built.
    pub specs: &'a [SpecView],
    /// The tasks, with their ticks.
    pub tasks: &'a [TaskView],
    /// What has changed in the code.
    pub diff: &'a str,
    /// How the tests went; none where the project has no test command.
    pub tests: Option<&'a TestEvidence>,
    /// What earlier rounds have found, with the ids of the findings.
    pub earlier: &'a [IssueView],
}

impl Review<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let context = context! {
            specs => views::specs(self.specs),
            tasks => views::tasks(self.tasks),
            diff => self.diff,
            earlier => views::issues(self.earlier),
            has_tests => self.tests.is_some(),
            ..tests(self.tests)
        };
        render(&StepName::Review, self.change, "review", context)
    }
}

/// Asks the implementer to mend what the reviewer has found.
#[derive(Debug, Clone)]
pub struct Fix<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// What the latest review has found.
    pub findings: &'a [IssueView],
    /// How the tests went; none where the project has no test command.
    pub tests: Option<&'a TestEvidence>,
}

impl Fix<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let context = context! {
            findings => views::issues(self.findings),
            has_tests => self.tests.is_some(),
            ..tests(self.tests)
        };
        render(&StepName::Fix, self.change, "fix", context)
    }
}

/// What is said of the tests, whether there are any or not.
fn tests(tests: Option<&TestEvidence>) -> minijinja::Value {
    let passed = tests.is_some_and(|tests| tests.exit_code == Some(0));
    let ended = match tests.and_then(|tests| tests.exit_code) {
        Some(code) => format!("exit code {code}"),
        None => "stopped before they ended".to_owned(),
    };
    context! {
        passed,
        ended => safe(&ended),
        seconds => tests.map_or(0, |tests| tests.seconds),
        command => tests.map(|tests| tests.command.clone()).unwrap_or_default(),
        output => tests.map(|tests| tests.output.clone()).unwrap_or_default(),
    }
}
