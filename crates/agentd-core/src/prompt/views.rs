//! What prompts contain of documents: plain fields, and how they read as one text.
//!
//! The texts made here always end up in [`fenced`](super::fenced). Continued lines are
//! set in, so that no entry can imitate the next one.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::MAX_LISTED;
use super::data::{indented, one_line};
use crate::check::FileReport;
use crate::diagnostic::Severity;
use crate::document::issue_fate::{Fate, IssueFate};
use crate::document::review_block::Issue;
use crate::document::spec::{Scenario, Spec};
use crate::document::tasks::{Action, Task};
use crate::ids::{RequirementId, SpecId, TaskId};

pub(super) const SENTENCE: usize = 300;
const PARAGRAPH: usize = 2000;
/// How much a prompt holds of the issues that it asks to fix; its template has the same number.
pub(super) const ISSUES_BYTES: usize = 30_000;

/// Something that a review has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueView {
    /// Its id over the rounds, such as `I1`.
    pub id: Option<String>,
    /// How much it weighs.
    pub severity: Severity,
    /// What it is, in a few words.
    pub title: String,
    /// What is wrong.
    pub description: String,
    /// Where.
    pub location: String,
    /// What to do.
    pub recommendation: String,
    /// What became of it, if that is known.
    pub fate: Option<Fate>,
}

impl From<&IssueFate<'_>> for IssueView {
    fn from(known: &IssueFate<'_>) -> Self {
        Self { fate: Some(known.fate), ..Self::from(known.issue) }
    }
}

impl From<&Issue> for IssueView {
    fn from(issue: &Issue) -> Self {
        Self {
            fate: None,
            id: Some(format!("I{}", issue.number)),
            severity: issue.severity,
            title: issue.title.as_str().to_owned(),
            description: issue.description.as_str().to_owned(),
            location: issue.location.as_str().to_owned(),
            recommendation: issue.recommendation.as_str().to_owned(),
        }
    }
}

/// What a person has said about the plan or the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentView {
    /// Its id, such as `C3`.
    pub id: String,
    /// Who.
    pub author: String,
    /// About what: a document or file, the place in it, and the words there.
    pub place: String,
    /// What.
    pub text: String,
}

/// A task for the implementer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    /// Its id.
    pub id: TaskId,
    /// Its title.
    pub title: String,
    /// What happens to the file.
    pub action: Option<Action>,
    /// The file.
    pub file: String,
    /// What it implements, such as `auth-flow:R1`.
    pub implements: Vec<String>,
    /// Tasks that must be done before.
    pub depends_on: Vec<TaskId>,
    /// Whether it is ticked.
    pub done: bool,
    /// What to do.
    pub description: String,
}

impl From<&Task> for TaskView {
    fn from(task: &Task) -> Self {
        Self {
            id: task.id,
            title: task.title.as_str().to_owned(),
            action: task.action,
            file: task.file.as_ref().map(ToString::to_string).unwrap_or_default(),
            implements: task.spec_refs.iter().map(ToString::to_string).collect(),
            depends_on: task.depends_on.clone(),
            done: task.status == crate::document::tasks::Status::Done,
            description: task.description.as_str().to_owned(),
        }
    }
}

/// A spec, or the part of it that matters to a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecView {
    /// Its id.
    pub id: SpecId,
    /// Its requirements: id, title, text.
    pub requirements: Vec<(RequirementId, String, String)>,
    /// Its scenarios: name and steps.
    pub scenarios: Vec<(String, Vec<String>)>,
    /// Requirements that the change takes out of the main spec.
    pub removes: Vec<RequirementId>,
}

impl SpecView {
    /// The whole of a spec.
    pub fn whole(id: &SpecId, spec: &Spec) -> Self {
        let scenario = |scenario: &Scenario| {
            let steps = scenario.steps.iter();
            let steps = steps.map(|step| format!("{} {}", step.keyword.label(), step.text));
            (scenario.name.as_str().to_owned(), steps.collect())
        };
        let inner = spec.requirements.iter().flat_map(|requirement| &requirement.scenarios);
        Self {
            id: id.clone(),
            requirements: spec
                .requirements
                .iter()
                .map(|r| (r.id, r.title.as_str().to_owned(), r.text.as_str().to_owned()))
                .collect(),
            scenarios: inner.chain(&spec.scenarios).map(scenario).collect(),
            removes: spec.removes.clone(),
        }
    }

    /// The requirements that tasks refer to. The scenarios stay: they belong to no
    /// single requirement.
    pub fn part(id: &SpecId, spec: &Spec, wanted: &BTreeSet<RequirementId>) -> Self {
        let mut view = Self::whole(id, spec);
        view.requirements.retain(|(id, _, _)| wanted.contains(id));
        view.removes.retain(|id| wanted.contains(id));
        view
    }
}

/// How the tests of the project went, as agentd itself has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestEvidence {
    /// The command.
    pub command: String,
    /// Its exit code; none when it was stopped.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub seconds: u64,
    /// What it printed, or the end of that.
    pub output: String,
}

/// Issues without their texts, a line each.
pub(super) fn titles(issues: &[IssueView]) -> String {
    let mut out = String::new();
    for issue in issues {
        let id = one_line(issue.id.as_deref().unwrap_or("-"), 20);
        let fate = issue.fate.map_or("", Fate::name);
        let _ = writeln!(out, "{id} {fate}: {}", one_line(&issue.title, SENTENCE));
    }
    out
}

/// Issues, the most severe first; within a severity they stay in order.
pub(super) fn issues(issues: &[IssueView]) -> String {
    by_severity(issues).enumerate().map(|(index, issue)| whole(index, issue)).collect()
}

/// The same in at most `cap` bytes, and how many of them are not there in full: where there is no
/// room for the texts of an issue, its title still names it.
pub(super) fn issues_within(issues: &[IssueView], cap: usize) -> (String, usize) {
    let sorted: Vec<(usize, &IssueView)> = by_severity(issues).enumerate().collect();
    let mut titles: usize = sorted.iter().map(|(index, issue)| title(*index, issue).len()).sum();
    let (mut out, mut cut) = (String::new(), 0);
    for (index, issue) in sorted {
        let (short, full) = (title(index, issue), whole(index, issue));
        titles -= short.len();
        let fits = out.len() + full.len() + titles <= cap;
        cut += usize::from(!fits || is_cut(issue));
        let text = if fits { full } else { short };
        if out.len() + text.len() <= cap {
            out.push_str(&text);
        }
    }
    (out, cut)
}

fn by_severity(issues: &[IssueView]) -> impl Iterator<Item = &IssueView> {
    let mut sorted: Vec<&IssueView> = issues.iter().collect();
    sorted.sort_by_key(|issue| issue.severity);
    sorted.into_iter()
}

fn title(index: usize, issue: &IssueView) -> String {
    let id = issue.id.clone().unwrap_or_else(|| format!("#{}", index + 1));
    let title = one_line(&issue.title, SENTENCE);
    format!("{} {}: {title}\n", one_line(&id, 20), issue.severity.label())
}

fn whole(index: usize, issue: &IssueView) -> String {
    let mut out = title(index, issue);
    for (label, text) in texts(issue) {
        if !text.trim().is_empty() {
            let _ = writeln!(out, "  {label}: {}", indented(text, PARAGRAPH));
        }
    }
    out
}

/// Whether even the longest form of an issue lacks some of it.
fn is_cut(issue: &IssueView) -> bool {
    issue.title.len() > SENTENCE || texts(issue).iter().any(|(_, text)| text.len() > PARAGRAPH)
}

fn texts(issue: &IssueView) -> [(&'static str, &String); 3] {
    [("where", &issue.location), ("what", &issue.description), ("do", &issue.recommendation)]
}

pub(super) fn comments(comments: &[CommentView]) -> String {
    let mut out = String::new();
    for comment in comments {
        let (place, author) = (one_line(&comment.place, SENTENCE), one_line(&comment.author, 80));
        let text = indented(&comment.text, PARAGRAPH);
        let _ = writeln!(out, "{} {place} ({author}): {text}", one_line(&comment.id, 20));
    }
    out
}

pub(super) fn tasks(tasks: &[TaskView]) -> String {
    let mut out = String::new();
    for task in tasks {
        let done = if task.done { " (done)" } else { "" };
        let _ = writeln!(out, "{}{done} {}", task.id, one_line(&task.title, SENTENCE));
        if !task.file.is_empty() {
            let action = task.action.map_or("file", Action::label);
            let _ = writeln!(out, "  {action} {}", one_line(&task.file, SENTENCE));
        }
        if !task.implements.is_empty() {
            let _ = writeln!(
                out,
                "  implements {}",
                one_line(
                    &task.implements[..task.implements.len().min(MAX_LISTED)].join(", "),
                    SENTENCE
                )
            );
        }
        if !task.depends_on.is_empty() {
            let ids: Vec<String> =
                task.depends_on.iter().take(MAX_LISTED).map(ToString::to_string).collect();
            let _ = writeln!(out, "  after {}", one_line(&ids.join(", "), SENTENCE));
        }
        if !task.description.trim().is_empty() {
            let _ = writeln!(out, "  {}", indented(&task.description, PARAGRAPH));
        }
    }
    out
}

pub(super) fn specs(specs: &[SpecView]) -> String {
    let mut out = String::new();
    for spec in specs {
        for (id, title, text) in &spec.requirements {
            let _ = writeln!(out, "{}:{id} {}", spec.id, one_line(title, SENTENCE));
            let _ = writeln!(out, "  {}", indented(text, PARAGRAPH));
        }
        for id in &spec.removes {
            let _ = writeln!(out, "{}:{id} is taken out", spec.id);
        }
        for (name, steps) in &spec.scenarios {
            let _ = writeln!(out, "{} scenario: {}", spec.id, one_line(name, SENTENCE));
            for step in steps {
                let _ = writeln!(out, "  {}", one_line(step, SENTENCE));
            }
        }
    }
    out
}

pub(super) fn findings(reports: &[FileReport]) -> String {
    let mut out = String::new();
    for report in reports {
        for diagnostic in &report.diagnostics {
            let words = one_line(&diagnostic.in_words(&report.text), PARAGRAPH);
            let _ = writeln!(out, "{}: {words}", one_line(&report.file.path(), SENTENCE));
        }
    }
    out
}
