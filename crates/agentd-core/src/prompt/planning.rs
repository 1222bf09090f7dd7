//! The prompts of the plan: questions, documents, their reviews and repairs.

use std::fmt::Write as _;

use minijinja::context;

use super::data::one_line;
use super::views::{self, CommentView, IssueView, SENTENCE};
use super::{FENCE_OVERHEAD, KeepEnd, PROMPT_BYTES, fenced, listed, render, safe};
use crate::check::FileReport;
use crate::ids::{ChangeId, SpecId};
use crate::layout;
use crate::state::Track;
use crate::step_name::StepName;

/// Asks the planner for questions.
#[derive(Debug, Clone)]
pub struct Clarify<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// What the person has asked for.
    pub description: &'a str,
}

impl Clarify<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let context = context! { description => self.description };
        render(&StepName::Clarify, self.change, "clarify", context)
    }
}

/// A spec that the project has already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecTitle {
    /// Its id.
    pub id: SpecId,
    /// Its title.
    pub title: String,
}

fn titles(specs: &[SpecTitle]) -> String {
    let line = |spec: &SpecTitle| format!("{}: {}\n", spec.id, one_line(&spec.title, SENTENCE));
    specs.iter().map(line).collect()
}

/// Asks the planner to begin a plan.
#[derive(Debug, Clone)]
pub struct NewPlan<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// What the person has asked for.
    pub description: &'a str,
    /// Whether there is a `clarifications.md`.
    pub clarified: bool,
    /// The specs that the project has already.
    pub main_specs: &'a [SpecTitle],
    /// Other open changes and what they touch, a line each.
    pub overlaps: &'a [String],
    /// The way that the change takes.
    pub track: Track,
}

impl NewPlan<'_> {
    /// The prompt that asks for `proposal.md`.
    pub fn render_proposal(&self) -> String {
        self.render(&StepName::ProposalGen, "proposal-gen")
    }

    /// The prompt that asks for the whole plan in one session.
    pub fn render_plan(&self) -> String {
        self.render(&StepName::PlanGen, "plan-gen")
    }

    fn render(&self, step: &StepName, template: &str) -> String {
        let context = context! {
            description => self.description,
            clarified => self.clarified,
            main_specs => titles(self.main_specs),
            overlaps => self.overlaps.join("\n"),
            small => self.track != Track::Full,
            bug => self.track == Track::Bug,
            main_specs_dir => safe(&layout::main_specs_dir()),
        };
        render(step, self.change, template, context)
    }
}

/// What a self-review looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewed<'a> {
    /// `proposal.md`.
    Proposal,
    /// A spec, beside those that were written before it.
    Spec {
        /// The spec.
        id: &'a SpecId,
        /// The specs that were written before.
        earlier: &'a [SpecId],
    },
    /// `tasks.md`, beside the specs.
    Tasks {
        /// The specs of the change.
        specs: &'a [SpecId],
    },
    /// All of them (one-shot).
    Plan {
        /// The specs of the change.
        specs: &'a [SpecId],
    },
}

/// Asks the planner to look at its own document with fresh eyes.
#[derive(Debug, Clone)]
pub struct SelfReview<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// What is looked at.
    pub reviewed: Reviewed<'a>,
    /// What the person has asked for.
    pub description: &'a str,
    /// Whether there is a `clarifications.md`.
    pub clarified: bool,
}

impl SelfReview<'_> {
    /// The step that this review is.
    pub fn step(&self) -> StepName {
        match self.reviewed {
            Reviewed::Proposal => StepName::ProposalReview,
            Reviewed::Spec { id, .. } => StepName::SpecReview(id.clone()),
            Reviewed::Tasks { .. } => StepName::TasksReview,
            Reviewed::Plan { .. } => StepName::PlanReview,
        }
    }

    /// The prompt.
    pub fn render(&self) -> String {
        let (kind, file, specs): (&str, String, &[SpecId]) = match &self.reviewed {
            Reviewed::Proposal => ("proposal", "proposal.md".to_owned(), &[]),
            Reviewed::Spec { id, earlier } => ("spec", format!("specs/{id}.md"), earlier),
            Reviewed::Tasks { specs } => ("tasks", "tasks.md".to_owned(), specs),
            Reviewed::Plan { specs } => ("plan", "the plan".to_owned(), specs),
        };
        let (specs, more_specs) = listed(specs);
        let context = context! {
            kind,
            file => safe(&file),
            specs,
            more_specs,
            description => self.description,
            clarified => self.clarified,
        };
        render(&self.step(), self.change, "self-review", context)
    }
}

/// Asks the planner for one spec.
#[derive(Debug, Clone)]
pub struct SpecGen<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// The spec.
    pub spec: &'a SpecId,
    /// Its place among the specs of the change, from 1.
    pub number: usize,
    /// How many specs the change has.
    pub total: usize,
    /// The specs that were written before this one.
    pub earlier: &'a [SpecId],
    /// Whether there is a `clarifications.md`.
    pub clarified: bool,
    /// Whether the project has this spec already, so that the change edits it.
    pub edits_main_spec: bool,
}

impl SpecGen<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let (earlier, more_specs) = listed(self.earlier);
        let context = context! {
            spec_id => safe(self.spec),
            number => self.number,
            total => self.total,
            earlier,
            more_specs,
            clarified => self.clarified,
            edits_main_spec => self.edits_main_spec,
            main_spec => safe(&layout::main_spec(self.spec)),
        };
        render(&StepName::SpecGen(self.spec.clone()), self.change, "spec-gen", context)
    }
}

/// Asks the planner for `tasks.md`.
#[derive(Debug, Clone)]
pub struct TasksGen<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// The specs of the change.
    pub specs: &'a [SpecId],
    /// Whether there is a `clarifications.md`.
    pub clarified: bool,
    /// Why the tasks that are there have to be written again, a sentence each.
    pub outdated: &'a [String],
}

impl TasksGen<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let (specs, more_specs) = listed(self.specs);
        let outdated = self.outdated.join("\n");
        let context = context! { specs, more_specs, clarified => self.clarified, outdated };
        render(&StepName::TasksGen, self.change, "tasks-gen", context)
    }
}

/// Asks the planner to fix what validation found.
#[derive(Debug, Clone)]
pub struct FormatFix<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// What was found, by file.
    pub reports: &'a [FileReport],
}

impl FormatFix<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let context = context! { findings => views::findings(self.reports) };
        render(&StepName::FormatFix, self.change, "format-fix", context)
    }
}

/// Asks the challenger what is wrong with the plan.
#[derive(Debug, Clone)]
pub struct Challenge<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// The specs of the change.
    pub specs: &'a [SpecId],
    /// Whether there is a `clarifications.md`.
    pub clarified: bool,
    /// What earlier rounds have found and is not settled, with the ids of the issues.
    pub earlier: &'a [IssueView],
    /// What is settled of it, and may be back.
    pub settled: &'a [IssueView],
    /// What has changed since a verdict that stands for the rest, a line each (W2).
    pub changed: &'a [String],
}

impl Challenge<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let (specs, more_specs) = listed(self.specs);
        let context = context! {
            specs,
            more_specs,
            clarified => self.clarified,
            earlier => views::issues(self.earlier),
            settled => views::titles(self.settled),
            changed => self.changed.join("\n"),
        };
        render(&StepName::Challenge, self.change, "challenge", context)
    }
}

/// Asks the planner to fix what the challenger found.
#[derive(Debug, Clone)]
pub struct Reproposal<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// The issues of the latest review.
    pub issues: &'a [IssueView],
    /// What people have said about the plan and nobody has answered.
    pub comments: &'a [CommentView],
    /// What the person has said who asked for this revision.
    pub note: &'a str,
}

impl Reproposal<'_> {
    /// The prompt.
    pub fn render(&self) -> String {
        let (issues, cut) = views::issues_within(self.issues, views::ISSUES_BYTES);
        let context = context! {
            issues,
            cut,
            comments => views::comments(self.comments),
            note => self.note,
        };
        render(&StepName::Reproposal, self.change, "reproposal", context)
    }
}

/// How much of the description a new session is given beside the plan that came of it.
const DESCRIPTION: usize = 4000;
/// Less than this of a document is not worth a fence.
const LEAST: usize = 200;
/// Room for the line that says how many documents there was no room for.
const LAST_LINE: usize = 40;

/// Asks for the same in a new session, which has not seen the plan: the one in which it was
/// written is gone (C31).
#[derive(Debug, Clone)]
pub struct FreshReproposal<'a> {
    /// What is asked for.
    pub reproposal: Reproposal<'a>,
    /// What the person has asked for.
    pub description: &'a str,
    /// Whether there is a `clarifications.md`.
    pub clarified: bool,
    /// The documents of the plan: the path of each, and what it says.
    pub documents: &'a [(String, &'a str)],
}

impl FreshReproposal<'_> {
    /// The prompt: that of the reproposal, and the plan behind it, as much as there is room for.
    pub fn render(&self) -> String {
        let dir = layout::change_dir(self.reproposal.change);
        let mut text = self.reproposal.render();
        text.push_str(
            "\nYou have not seen this plan before: the session in which it was written is gone. \
             What was asked for:\n",
        );
        text.push_str(&fenced("description", self.description, DESCRIPTION, KeepEnd::Head));
        let _ = write!(
            text,
            "\n\nRead with `read_file`:\n- {dir}/GEMINI.md, the context of this project\n"
        );
        if self.clarified {
            let _ = writeln!(text, "- {dir}/clarifications.md, what the person has answered");
        }
        text.push_str(
            "- what is cut or missing below\n\nThe documents, as they were when this was asked:\n",
        );
        let mut left = PROMPT_BYTES.saturating_sub(text.len() + LAST_LINE);
        for (index, (path, document)) in self.documents.iter().enumerate() {
            // A fair share of what is left: a short document leaves more for the others.
            let share = left / (self.documents.len() - index);
            let Some(cap) = share.checked_sub(FENCE_OVERHEAD + 2).filter(|cap| *cap >= LEAST)
            else {
                let _ = writeln!(text, "(and {} more)", self.documents.len() - index);
                break;
            };
            let before = text.len();
            text.push_str(&fenced(path, document, cap, KeepEnd::Head));
            text.push_str("\n\n");
            left = left.saturating_sub(text.len() - before);
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}
