//! The built-in agent: plans and reviews by rule, and declines to write code.

use std::path::Path;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::check::FileReport;
use agentd_core::diagnostic::Severity;
use agentd_core::document::proposal;
use agentd_core::draft::{self, Brief};
use agentd_core::ids::SpecId;
use agentd_core::layout::ChangeFile;
use agentd_core::outcome::FailureKind;
use serde_json::json;

use super::project::Looked;
use super::{Call, OwnError, Voice, judge};
use crate::mcp_client::McpClient;

/// What the built-in agent says of itself.
const INTRODUCTION: &str = "This is agentd's built-in agent: no model, rules only.";

pub(super) fn run(
    call: &Call,
    prompt: &str,
    cwd: &Path,
    voice: &mut Voice<'_>,
) -> Result<(), OwnError> {
    match call.role {
        Role::Implementer => Err(OwnError::new(
            FailureKind::Refused,
            "the built-in agent does not write code: it has no model",
            "give the role to an agent that does: `implementer = \"claude\"` (or codex, gemini) under \
             [roles] in agentd/config.toml",
        )),
        Role::Challenger => judge::challenge(call, prompt, cwd, voice),
        Role::Reviewer => judge::review(call, cwd, voice),
        Role::Planner => Planner::new(call, prompt, cwd)?.run(voice),
    }
}

/// The built-in agent signs for itself, also where it stands in for another.
pub(super) fn signs() -> [String; 2] {
    ["--agent".to_owned(), AgentKind::Builtin.name().to_owned()]
}

/// One call as a planner.
struct Planner<'a> {
    call: &'a Call,
    prompt: &'a str,
    cwd: &'a Path,
    client: McpClient,
    looked: Looked,
}

/// What was mended of a document.
type Notes = Vec<String>;

impl<'a> Planner<'a> {
    fn new(call: &'a Call, prompt: &'a str, cwd: &'a Path) -> Result<Self, OwnError> {
        let looked = Looked::at(call, cwd)?;
        let client = call.client(cwd, "agentd-builtin", &signs())?;
        Ok(Self { call, prompt, cwd, client, looked })
    }

    fn brief(&self) -> Result<Brief, OwnError> {
        self.looked.brief(self.prompt, self.cwd)
    }

    fn run(mut self, voice: &mut Voice<'_>) -> Result<(), OwnError> {
        let step = self.call.step.as_str();
        if let Some(spec) = step.strip_prefix("spec-gen-") {
            let id = spec_id(spec)?;
            self.spec(&id, voice)?;
            return voice.say(&format!("{INTRODUCTION} specs/{id}.md is drafted."));
        }
        if let Some(spec) = step.strip_prefix("spec-review-") {
            return self.self_review(&format!("specs/{}.md", spec_id(spec)?), voice);
        }
        match step {
            "clarify" => self.clarify(voice),
            "proposal-gen" => {
                self.proposal(voice)?;
                voice.say(&format!("{INTRODUCTION} proposal.md is drafted from the description."))
            }
            "tasks-gen" => {
                self.tasks(voice)?;
                voice.say(&format!("{INTRODUCTION} tasks.md is drafted from the specs."))
            }
            "plan-gen" => {
                self.proposal(voice)?;
                for id in self.announced()? {
                    self.spec(&id, voice)?;
                }
                self.tasks(voice)?;
                voice.say(&format!("{INTRODUCTION} The plan is drafted from the description."))
            }
            "proposal-review" => self.self_review("proposal.md", voice),
            "tasks-review" => self.self_review("tasks.md", voice),
            "plan-review" => self.self_review("", voice),
            "format-fix" => self.mend(voice).map(|_| ()),
            "reproposal" => self.repropose(voice),
            other => Err(OwnError::new(
                FailureKind::Other,
                format!("the built-in agent does not know the step `{other}`"),
                "give the planner's role to another agent in [roles]",
            )),
        }
    }

    fn clarify(&mut self, voice: &mut Voice<'_>) -> Result<(), OwnError> {
        if !self.client.tools()?.iter().any(|tool| tool == "propose_questions") {
            return voice
                .say(&format!("{INTRODUCTION} There is no tool for asking questions here."));
        }
        let description = self.looked.description(self.prompt);
        let questions = draft::questions(&self.call.change, &description);
        voice.must(&mut self.client, "propose_questions", &questions)?;
        voice.say(&format!(
            "{INTRODUCTION} The questions are those that are worth asking before any plan."
        ))
    }

    fn proposal(&mut self, voice: &mut Voice<'_>) -> Result<(), OwnError> {
        let arguments = draft::proposal(&self.brief()?);
        voice.must(&mut self.client, "create_proposal", &arguments).map(|_| ())
    }

    fn spec(&mut self, id: &SpecId, voice: &mut Voice<'_>) -> Result<(), OwnError> {
        let brief = self.brief()?;
        if let Some(arguments) = draft::spec_with_headings(&brief, id) {
            return voice.must(&mut self.client, "write_spec", &arguments).map(|_| ());
        }
        let arguments = draft::spec(&brief, id);
        voice.must(&mut self.client, "create_spec", &arguments).map(|_| ())
    }

    fn tasks(&mut self, voice: &mut Voice<'_>) -> Result<(), OwnError> {
        let arguments = draft::tasks(&self.brief()?, &self.looked.specs()?);
        voice.must(&mut self.client, "create_tasks", &arguments).map(|_| ())
    }

    /// The specs that proposal.md announces.
    fn announced(&mut self) -> Result<Vec<SpecId>, OwnError> {
        // The change may have begun with its proposal.
        self.looked = Looked::at(self.call, self.cwd)?;
        let Some(change) = &self.looked.change else { return Ok(Vec::new()) };
        let text = change.read_if_exists(&ChangeFile::Proposal)?.unwrap_or_default();
        Ok(proposal::parse(&text).value.affected_specs.into_iter().map(|spec| spec.id).collect())
    }

    /// Looks at one document, or at all, as `agentd validate` does, and mends what it can.
    fn self_review(&mut self, file: &str, voice: &mut Voice<'_>) -> Result<(), OwnError> {
        let path = if file.is_empty() { ".".to_owned() } else { file.to_owned() };
        let arguments = json!({ "change_id": self.call.change, "path": path });
        let tool = if file.is_empty() { "list_directory" } else { "read_file" };
        voice.call(&mut self.client, tool, &arguments)?;
        let bad = serious(&self.looked.findings()?, file);
        if bad.is_empty() {
            return voice.say(&format!(
                "{INTRODUCTION} `agentd validate` finds nothing of weight.\n<review>PASS</review>"
            ));
        }
        let notes = self.mend_documents(voice)?;
        let mended = if notes.is_empty() {
            "nothing could be mended by rule".to_owned()
        } else {
            notes.join("; ")
        };
        voice.say(&format!(
            "{INTRODUCTION} Found: {}. Mended: {mended}.\n<review>NEEDS_REVISION</review>",
            bad.join("; ")
        ))
    }

    /// Mends what findings name, as far as that can be done by rule, and tells what is left.
    fn mend(&mut self, voice: &mut Voice<'_>) -> Result<Notes, OwnError> {
        let before = serious(&self.looked.findings()?, "");
        let notes = self.mend_documents(voice)?;
        let left = serious(&self.looked.findings()?, "");
        if notes.is_empty() && !before.is_empty() {
            return Err(cannot(&before));
        }
        let mut text = format!("{INTRODUCTION} Mended: {}.", listed(&notes));
        if !left.is_empty() {
            text.push_str(&format!(" Not mended, since no rule says how: {}.", left.join("; ")));
        }
        voice.say(&text)?;
        Ok(notes)
    }

    /// Answers a review: what validation finds is mended by rule. What people and other
    /// agents have found beyond that needs somebody who understands it.
    fn repropose(&mut self, voice: &mut Voice<'_>) -> Result<(), OwnError> {
        let change = self.looked.change.as_ref();
        let text = change
            .map(|change| change.read_if_exists(&ChangeFile::Proposal))
            .transpose()?
            .flatten();
        let reviews = proposal::parse(&text.unwrap_or_default()).value.reviews;
        let issues = reviews.last().map(|review| review.issues.as_slice()).unwrap_or_default();
        let notes = self.mend_documents(voice)?;
        if notes.is_empty() && !issues.is_empty() {
            let titles: Vec<String> = issues.iter().map(|issue| issue.title.to_string()).collect();
            return Err(cannot(&titles));
        }
        let still = serious(&self.looked.findings()?, "");
        voice.say(&format!(
            "{INTRODUCTION} Mended: {}. Of the review's {} issues only those that `agentd validate` knows can be \
             mended without a model; it still finds: {}.",
            listed(&notes),
            issues.len(),
            listed(&still),
        ))
    }

    /// Mends every document; what was done.
    fn mend_documents(&mut self, voice: &mut Voice<'_>) -> Result<Notes, OwnError> {
        let mut notes = Notes::new();
        let Some(documents) = self.looked.documents()? else { return Ok(notes) };
        if documents.proposal.text().is_none() {
            self.proposal(voice)?;
            notes.push("proposal.md was missing and is drafted".to_owned());
        }
        for id in self.announced()? {
            let known = self.looked.specs()?;
            let Some((_, spec)) = known.iter().find(|(known, _)| *known == id) else {
                self.spec(&id, voice)?;
                notes.push(format!("specs/{id}.md was missing and is drafted"));
                continue;
            };
            let (mended, own) = draft::mended_spec(spec);
            if own.is_empty() {
                continue;
            }
            let arguments = draft::spec_arguments(&self.call.change, &id, &mended);
            if voice.call(&mut self.client, "create_spec", &arguments)?.ok {
                notes.extend(own.into_iter().map(|note| format!("{id}: {note}")));
            }
        }
        let specs = self.looked.specs()?;
        let documents = self.looked.documents()?;
        match documents.as_ref().and_then(|documents| documents.tasks.value_if_there()) {
            None => {
                self.tasks(voice)?;
                notes.push("tasks.md was missing and is drafted".to_owned());
            }
            Some(there) => {
                let more = draft::tasks_for_uncovered(&self.brief()?, &specs, there);
                if let Some(arguments) = more
                    && voice.call(&mut self.client, "create_tasks", &arguments)?.ok
                {
                    notes.push("every requirement has a task now".to_owned());
                }
            }
        }
        Ok(notes)
    }
}

fn listed(notes: &[String]) -> String {
    if notes.is_empty() { "nothing".to_owned() } else { notes.join("; ") }
}

fn cannot(what: &[String]) -> OwnError {
    let shown: Vec<&str> = what.iter().take(5).map(String::as_str).collect();
    let more = what.len().saturating_sub(shown.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    OwnError::new(
        FailureKind::Refused,
        format!("the built-in agent cannot mend this without a model: {}{more}", shown.join("; ")),
        "edit the documents yourself and challenge again, or give the planner's role to another agent in [roles]",
    )
}

fn spec_id(text: &str) -> Result<SpecId, OwnError> {
    SpecId::new(text).map_err(|error| {
        OwnError::new(
            FailureKind::Other,
            error.to_string(),
            "the name of the step ends in the id of a spec",
        )
    })
}

/// The findings that stop or mislead, in one file or in all.
fn serious(reports: &[FileReport], file: &str) -> Vec<String> {
    let of_file = reports.iter().filter(|report| report.file.path().ends_with(file));
    let found = of_file.flat_map(|report| &report.diagnostics);
    found
        .filter(|finding| finding.severity() != Severity::Low)
        // A proposal stands before its specs and tasks do.
        .filter(|finding| file.is_empty() || !super::judge::comes_later(finding))
        .map(|finding| format!("{}: {}", finding.rule.code, finding.message))
        .collect()
}
