//! The prompts of the implementation: building a layer, its review, the repairs.

use minijinja::context;

use super::views::{self, CommentView, IssueView, SpecView, TaskView, TestEvidence};
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
    /// How its code is checked.
    pub lint_command: Option<&'a str>,
    /// How it is built.
    pub build_command: Option<&'a str>,
    /// What the sandbox allows, a sentence a line; empty where there is none.
    pub sandbox: &'a str,
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
            lint_command => self.lint_command.unwrap_or_default(),
            build_command => self.build_command.unwrap_or_default(),
            sandbox => self.sandbox.trim(),
        };
        render(&StepName::Implement(self.layer), self.change, "implement", context)
    }
}

/// Asks the implementer for a test that shows a bug.
#[derive(Debug, Clone)]
pub struct Reproduce<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// What is wrong, as it was reported.
    pub description: &'a str,
    /// The tasks of the testing layer.
    pub tasks: &'a [TaskView],
    /// What the tasks refer to.
    pub specs: &'a [SpecView],
    /// The rules of the project; empty for none.
    pub rules: &'a str,
    /// How the project's tests are run.
    pub test_command: &'a str,
    /// What the sandbox allows, a sentence a line; empty where there is none.
    pub sandbox: &'a str,
    /// Whether it was asked before, and wrote a test that does not fail.
    pub passed: bool,
}

impl Reproduce<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let context = context! {
            description => self.description,
            tasks => views::tasks(self.tasks),
            specs => views::specs(self.specs),
            rules => self.rules.trim(),
            test_command => self.test_command,
            sandbox => self.sandbox.trim(),
            passed => self.passed,
        };
        render(&StepName::Reproduce, self.change, "reproduce", context)
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

/// How the tests failed before a bug was fixed.
#[derive(Debug, Clone, Copy)]
pub struct Reproduced<'a> {
    /// The end of what they printed.
    pub output: &'a str,
    /// Files of the test that were changed since.
    pub changed: &'a [String],
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
    /// How the tests failed before a bug was fixed; none where the change fixes none.
    pub reproduced: Option<Reproduced<'a>>,
    /// What earlier rounds have found and is not settled, with the ids of the findings.
    pub earlier: &'a [IssueView],
    /// What is settled of it, and may be back.
    pub settled: &'a [IssueView],
}

impl Review<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let context = context! {
            specs => views::specs(self.specs),
            tasks => views::tasks(self.tasks),
            diff => self.diff,
            is_fix => self.reproduced.is_some(),
            reproduced => self.reproduced.map(|seen| seen.output).unwrap_or_default(),
            changed_tests => self.reproduced.map(|seen| seen.changed.join("\n")).unwrap_or_default(),
            earlier => views::issues(self.earlier),
            settled => views::titles(self.settled),
            has_tests => self.tests.is_some(),
            ..tests(self.tests)
        };
        render(&StepName::Review, self.change, "review", context)
    }
}

/// Asks the implementer to fix what the reviewer found.
#[derive(Debug, Clone)]
pub struct Fix<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// What the latest review has found.
    pub findings: &'a [IssueView],
    /// What people have said about the code and nobody has answered.
    pub comments: &'a [CommentView],
    /// How the tests went; none where the project has no test command.
    pub tests: Option<&'a TestEvidence>,
    /// What the sandbox allows, a sentence a line; empty where there is none.
    pub sandbox: &'a str,
}

impl Fix<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let (findings, cut) = views::issues_within(self.findings, views::ISSUES_BYTES);
        let context = context! {
            findings,
            cut,
            comments => views::comments(self.comments),
            sandbox => self.sandbox.trim(),
            has_tests => self.tests.is_some(),
            ..tests(self.tests)
        };
        render(&StepName::Fix, self.change, "fix", context)
    }
}

/// How it is said that tests have ended by themselves, before the code; and that they have not.
const ENDED: &str = "exit code ";
const STOPPED: &str = "stopped before they ended";

/// What is said of the tests, whether there are any or not.
fn tests(tests: Option<&TestEvidence>) -> minijinja::Value {
    let passed = tests.is_some_and(|tests| tests.exit_code == Some(0));
    let ended = match tests.and_then(|tests| tests.exit_code) {
        Some(code) => format!("{ENDED}{code}"),
        None => STOPPED.to_owned(),
    };
    context! {
        passed,
        ended => safe(&ended),
        seconds => tests.map_or(0, |tests| tests.seconds),
        command => tests.map(|tests| tests.command.clone()).unwrap_or_default(),
        output => tests.map(|tests| tests.output.clone()).unwrap_or_default(),
    }
}

impl Review<'_> {
    /// The diff in the prompt of a reviewer.
    pub fn diff_in(prompt: &str) -> Option<String> {
        Pieces { lines: prompt.lines() }.find_map(|piece| match piece {
            Piece::Data { label: "diff", text } => Some(text.join("\n")),
            Piece::Data { .. } | Piece::Own(_) => None,
        })
    }

    /// How the tests went, from a prompt that says so: STATE.yaml keeps the latest run only, and
    /// the prompts of all rounds are in the runs. Nothing inside of data is taken for it; the
    /// output of the tests is left out.
    pub fn tests_reported(prompt: &str) -> Option<TestEvidence> {
        let mut pieces = Pieces { lines: prompt.lines() };
        let sentence = pieces.find_map(|piece| match piece {
            Piece::Own(line) => line.strip_prefix("The tests, as agentd itself has run them: "),
            Piece::Data { .. } => None,
        })?;
        let (ended, seconds) = sentence.strip_suffix(" s.")?.split_once(", after ")?;
        let exit_code = match ended.strip_prefix(ENDED) {
            Some(code) => Some(code.parse().ok()?),
            None => (ended == STOPPED).then_some(None)?,
        };
        let command = pieces.find_map(|piece| match piece {
            Piece::Data { label: "test command", text } => Some(text),
            Piece::Data { .. } | Piece::Own(_) => None,
        })?;
        Some(TestEvidence {
            command: command.join("\n"),
            exit_code,
            seconds: seconds.parse().ok()?,
            output: String::new(),
        })
    }
}

/// A prompt, taken apart: what agentd says itself, and data between fences.
struct Pieces<'p> {
    lines: std::str::Lines<'p>,
}

enum Piece<'p> {
    Own(&'p str),
    Data { label: &'p str, text: Vec<&'p str> },
}

impl<'p> Iterator for Pieces<'p> {
    type Item = Piece<'p>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.next()?;
        let Some((fence, label)) = line.split_once("data: ") else { return Some(Piece::Own(line)) };
        if fence.len() < 3 || fence.bytes().any(|byte| byte != b'`') {
            return Some(Piece::Own(line));
        }
        let text = self.lines.by_ref().take_while(|line| *line != fence).collect();
        Some(Piece::Data { label, text })
    }
}
