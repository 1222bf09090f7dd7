//! The built-in agent as planner: drafts and fixes documents by rule.

use std::path::Path;

use agentd_core::check::FileReport;
use agentd_core::diagnostic::{Diagnostic, Severity};
use agentd_core::document::spec::Spec;
use agentd_core::documents::Documents;
use agentd_core::ids::SpecId;
use agentd_core::layout::ChangeFile;
use agentd_core::outcome::FailureKind;
use agentd_core::rules;
use agentd_core::step_name::StepName;
use serde_json::json;

use crate::draft::{self, Brief};
use crate::error::AgentError;
use crate::project;
use crate::session::Session;
use crate::source_files;

/// How the built-in agent introduces itself.
const INTRODUCTION: &str = "This is agentd's built-in agent: no model, rules only.";

/// Does a planner's step.
pub(crate) fn plan(
    session: Session<'_, '_>,
    prompt: &str,
    cwd: &Path,
    step: &StepName,
) -> Result<(), AgentError> {
    Planner { session, prompt, cwd, survey: None }.run(step)
}

/// One call as a planner.
struct Planner<'a, 's, 'w> {
    session: Session<'s, 'w>,
    prompt: &'a str,
    cwd: &'a Path,
    /// Looked at once: the code does not change during the call.
    survey: Option<draft::Survey>,
}

/// What was fixed in the documents.
type Notes = Vec<String>;

impl Planner<'_, '_, '_> {
    fn run(mut self, step: &StepName) -> Result<(), AgentError> {
        match step {
            StepName::Clarify => self.clarify(),
            StepName::ProposalGen => {
                self.proposal()?;
                self.say("proposal.md is drafted from the description.")
            }
            StepName::SpecGen(id) => {
                self.spec(id)?;
                self.say(&format!("specs/{id}.md is drafted."))
            }
            StepName::TasksGen => {
                self.tasks()?;
                self.say("tasks.md is drafted from the specs.")
            }
            StepName::PlanGen => {
                self.proposal()?;
                for id in self.announced()? {
                    self.spec(&id)?;
                }
                self.tasks()?;
                self.say("The plan is drafted from the description.")
            }
            StepName::ProposalReview => self.self_review(Some(&ChangeFile::Proposal)),
            StepName::SpecReview(id) => self.self_review(Some(&ChangeFile::Spec(id.clone()))),
            StepName::TasksReview => self.self_review(Some(&ChangeFile::Tasks)),
            StepName::PlanReview => self.self_review(None),
            StepName::FormatFix => self.format_fix(),
            StepName::Reproposal => self.repropose(),
            StepName::Challenge
            | StepName::Review
            | StepName::Reproduce
            | StepName::Implement(_)
            | StepName::Fix
            | StepName::Unknown(_) => {
                Err(AgentError::other(format!("`{step}` is not a step of the planner")))
            }
        }
    }

    fn say(&mut self, text: &str) -> Result<(), AgentError> {
        self.session.say(&format!("{INTRODUCTION} {text}"))
    }

    fn brief(&mut self) -> Result<Brief, AgentError> {
        let survey = self.survey.get_or_insert_with(|| source_files::survey(self.cwd)).clone();
        let documents = self.session.documents()?;
        Ok(Brief {
            change: self.session.change.clone(),
            description: project::description(&documents, self.prompt)?,
            answers: documents.clarifications.value().questions.clone(),
            survey,
            main_specs: self.session.main_specs()?,
            extras: self.session.extras()?,
        })
    }

    fn clarify(&mut self) -> Result<(), AgentError> {
        if !self.session.has_tool("propose_questions")? {
            return self.say("There is no tool for asking questions here.");
        }
        let description = project::description(&self.session.documents()?, self.prompt)?;
        let questions = draft::questions(&self.session.change, &description);
        self.session.must("propose_questions", &questions)?;
        self.say("The questions are those that are worth asking before any plan.")
    }

    fn proposal(&mut self) -> Result<(), AgentError> {
        let arguments = draft::proposal(&self.brief()?);
        self.session.must("create_proposal", &arguments)
    }

    fn spec(&mut self, id: &SpecId) -> Result<(), AgentError> {
        let brief = self.brief()?;
        if let Some(arguments) = draft::spec_with_headings(&brief, id) {
            return self.session.must("write_spec", &arguments);
        }
        self.session.must("create_spec", &draft::spec(&brief, id))
    }

    fn tasks(&mut self) -> Result<(), AgentError> {
        let specs = specs(&self.session.documents()?);
        let arguments = draft::tasks(&self.brief()?, &specs);
        self.session.must("create_tasks", &arguments)
    }

    /// The specs that proposal.md announces.
    fn announced(&mut self) -> Result<Vec<SpecId>, AgentError> {
        let documents = self.session.documents()?;
        Ok(documents.proposal.value().affected_specs.iter().map(|spec| spec.id.clone()).collect())
    }

    /// Checks one document, or all, as `agentd validate` does, and fixes what it can.
    fn self_review(&mut self, file: Option<&ChangeFile>) -> Result<(), AgentError> {
        let path = file.map_or_else(|| ".".to_owned(), |file| file.path().to_string());
        let tool = if file.is_some() { "read_file" } else { "list_directory" };
        self.session.call(tool, &json!({ "change_id": self.session.change, "path": path }))?;
        let bad = self.serious(file)?;
        if bad.is_empty() {
            return self.say("`agentd validate` finds nothing of weight.\n<review>PASS</review>");
        }
        let notes = self.fix_documents()?;
        let fixed = if notes.is_empty() {
            "nothing could be fixed by rule".to_owned()
        } else {
            notes.join("; ")
        };
        let found = bad.join("; ");
        self.say(&format!("Found: {found}. Fixed: {fixed}.\n<review>NEEDS_REVISION</review>"))
    }

    /// Fixes what findings name, as far as that can be done by rule, and reports what is left.
    fn format_fix(&mut self) -> Result<(), AgentError> {
        let before = self.serious(None)?;
        let notes = self.fix_documents()?;
        let left = self.serious(None)?;
        if notes.is_empty() && !before.is_empty() {
            return Err(cannot_fix(&before));
        }
        let mut text = format!("Fixed: {}.", listed(&notes));
        if !left.is_empty() {
            text.push_str(&format!(" Not fixed, since no rule says how: {}.", left.join("; ")));
        }
        self.say(&text)
    }

    /// Answers a review: what validation finds is fixed by rule. What people and other agents have
    /// found beyond that needs someone who understands it.
    fn repropose(&mut self) -> Result<(), AgentError> {
        let documents = self.session.documents()?;
        let review = documents.reviews().last();
        let issues = review.map(|review| review.issues.as_slice()).unwrap_or_default();
        let notes = self.fix_documents()?;
        if notes.is_empty() && !issues.is_empty() {
            let titles: Vec<String> = issues.iter().map(|issue| issue.title.to_string()).collect();
            return Err(cannot_fix(&titles));
        }
        let still = self.serious(None)?;
        self.say(&format!(
            "Fixed: {}. Of the review's {} issues only those that `agentd validate` knows can be \
             fixed without a model; it still finds: {}.",
            listed(&notes),
            issues.len(),
            listed(&still),
        ))
    }

    /// Fixes every document; what was done.
    fn fix_documents(&mut self) -> Result<Notes, AgentError> {
        let mut notes = Notes::new();
        if !self.session.has_begun()? {
            return Ok(notes);
        }
        if self.session.documents()?.proposal.text().is_none() {
            self.proposal()?;
            notes.push("proposal.md was missing and is drafted".to_owned());
        }
        for id in self.announced()? {
            self.fix_spec(&id, &mut notes)?;
        }
        let documents = self.session.documents()?;
        let Some(there) = documents.tasks.value_if_there() else {
            self.tasks()?;
            notes.push("tasks.md was missing and is drafted".to_owned());
            return Ok(notes);
        };
        let more = draft::tasks_for_uncovered(&self.brief()?, &specs(&documents), there);
        if let Some(arguments) = more
            && self.session.call("create_tasks", &arguments)?.ok
        {
            notes.push("every requirement has a task now".to_owned());
        }
        Ok(notes)
    }

    fn fix_spec(&mut self, id: &SpecId, notes: &mut Notes) -> Result<(), AgentError> {
        let documents = self.session.documents()?;
        let Some(spec) = documents.specs.get(id).and_then(|spec| spec.value_if_there()) else {
            self.spec(id)?;
            notes.push(format!("specs/{id}.md was missing and is drafted"));
            return Ok(());
        };
        let (fixed, own) = draft::fixed_spec(spec);
        if own.is_empty() {
            return Ok(());
        }
        let arguments = draft::spec_arguments(&self.session.change, id, &fixed);
        if self.session.call("create_spec", &arguments)?.ok {
            notes.extend(own.into_iter().map(|note| format!("{id}: {note}")));
        }
        Ok(())
    }

    /// The findings that stop or mislead, in one file or in all.
    fn serious(&mut self, file: Option<&ChangeFile>) -> Result<Vec<String>, AgentError> {
        let reports = self.session.findings()?;
        let of_file = |report: &&FileReport| file.is_none() || report.file.in_change() == file;
        let found = reports.iter().filter(of_file).flat_map(|report| &report.diagnostics);
        Ok(found
            .filter(|finding| finding.severity() != Severity::Low)
            // A proposal is written before its specs and tasks.
            .filter(|finding| file.is_none() || !comes_later(finding))
            .map(|finding| format!("{}: {}", finding.rule.code, finding.message))
            .collect())
    }
}

/// The specs of the change that can be read.
fn specs(documents: &Documents) -> Vec<(SpecId, Spec)> {
    documents.readable_specs().map(|(id, spec)| (id.clone(), spec.clone())).collect()
}

/// Whether a finding is about documents that are written after the one it is in.
fn comes_later(finding: &Diagnostic) -> bool {
    [rules::AFFECTED_SPEC_MISSING.code, rules::FILE_MISSING.code].contains(&finding.rule.code)
}

fn listed(notes: &[String]) -> String {
    if notes.is_empty() { "nothing".to_owned() } else { notes.join("; ") }
}

fn cannot_fix(what: &[String]) -> AgentError {
    let shown: Vec<&str> = what.iter().take(5).map(String::as_str).collect();
    let more = what.len().saturating_sub(shown.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    AgentError::new(
        FailureKind::Refused,
        format!("the built-in agent cannot fix this without a model: {}{more}", shown.join("; ")),
        "edit the documents yourself and challenge again, or give the planner's role to another agent in [roles]",
    )
}
