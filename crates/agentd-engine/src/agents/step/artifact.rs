//! What a step must leave on disk, and whether it did.

use std::collections::BTreeSet;

use agentd_core::agent::AgentKind;
use agentd_core::check;
use agentd_core::diagnostic::{Diagnostic, Severity};
use agentd_core::documents::{Documents, Source};
use agentd_core::event::AgentEvent;
use agentd_core::hash::Digest;
use agentd_core::layout::ChangeFile;
use agentd_core::outcome::AgentOutcome;
use agentd_core::recording::digest_in_answer;
use agentd_core::rules;

use super::{Agents, Step, StepError, cause};
use crate::change::Snapshot;
use crate::store::StoreError;
use crate::workflow::clarify;

/// What a step is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Artifact {
    /// Nothing that can be looked for: the answer itself.
    Nothing,
    /// This file, new or changed, and valid.
    File(ChangeFile),
    /// A further review of the plan in proposal.md.
    PlanReview,
    /// A plan that says something else than before.
    Plan,
    /// Questions for a person, newly proposed.
    Questions,
}

/// How much of an artifact was on disk at a moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OnDisk {
    Nothing,
    File(Option<Digest>),
    Reviews(usize),
    Plan(Digest),
    Questions(Option<Digest>),
}

impl OnDisk {
    pub(super) fn of(
        agents: &Agents,
        snapshot: &Snapshot,
        artifact: &Artifact,
    ) -> Result<Self, StoreError> {
        let documents = &snapshot.documents;
        Ok(match artifact {
            Artifact::Nothing => Self::Nothing,
            Artifact::File(file) => Self::File(match documents.get(file) {
                Source::Text(text) => Some(Digest::of(text)),
                Source::Missing => None,
                // Of the error only the words were kept.
                Source::Unreadable(_) => Some(Digest::of(snapshot.change().read(file)?)),
            }),
            Artifact::PlanReview => Self::Reviews(documents.reviews().len()),
            Artifact::Plan => Self::Plan(documents.digest()),
            Artifact::Questions => {
                let text = clarify::read_questions(&agents.project, snapshot.id())?;
                Self::Questions(text.map(Digest::of))
            }
        })
    }
}

/// The documents that differ between two readings of a change.
pub(super) fn changed(before: &Documents, after: &Documents) -> Vec<ChangeFile> {
    let mut files = after.changed_since(before);
    let others = [ChangeFile::Clarifications, ChangeFile::Review];
    files.extend(others.into_iter().filter(|file| before.get(file) != after.get(file)));
    files
}

/// Remembers what a tool of agentd says it has written.
pub(super) fn note_written(event: &AgentEvent<'_>, written: &mut BTreeSet<String>) {
    if let AgentEvent::ToolResult { ok: true, output, .. } = event {
        written.extend(digest_in_answer(&output.text()).map(str::to_owned));
    }
}

/// What a planner has not written, although it has changed during its step: an agent that was started
/// for the next step may write to the change as well, before its turn. The step writes one document,
/// with agentd's tools, and its agent is known to show what they answer.
pub(super) fn strays(
    step: &Step,
    before: &Documents,
    after: &Documents,
    written: &BTreeSet<String>,
) -> Vec<ChangeFile> {
    let Artifact::File(artifact) = &step.artifact else { return Vec::new() };
    let is_written = |text: &str| {
        let digest = Digest::of(text).to_string();
        written.contains(digest.trim_start_matches("sha256:"))
    };
    let mut changed = changed(before, after);
    changed.retain(|file| {
        file != artifact || after.get(file).text().is_some_and(|text| !is_written(text))
    });
    changed
}

/// Checks that what the step was for is on the disk, new, and valid.
pub(super) fn judge(
    agents: &Agents,
    now: &Snapshot,
    step: &Step,
    agent: AgentKind,
    before: &OnDisk,
    changed: &[ChangeFile],
    outcome: &AgentOutcome,
) -> Result<(), StepError> {
    let after = OnDisk::of(agents, now, &step.artifact)?;
    let missing = |file: &str, exists: bool| {
        let cause = cause::of_missing(outcome, exists, changed);
        Err(StepError::NoArtifact { agent, file: file.to_owned(), exists, cause })
    };
    let file = match (&step.artifact, &after) {
        (Artifact::Nothing, _) => return Ok(()),
        (Artifact::PlanReview, after) if after == before => {
            return missing("a review in proposal.md", false);
        }
        (Artifact::Plan, after) if after == before => return missing("the plan", true),
        (Artifact::Questions, after) if after == before || *after == OnDisk::Questions(None) => {
            return missing("the list of questions", *before != OnDisk::Questions(None));
        }
        (Artifact::PlanReview | Artifact::Plan | Artifact::Questions, _) => return Ok(()),
        (Artifact::File(file), OnDisk::File(None)) => return missing(file.path().as_str(), false),
        (Artifact::File(file), after) if after == before => {
            return missing(file.path().as_str(), true);
        }
        (Artifact::File(file), _) => file,
    };
    let reports = now.findings(&agents.project, &agents.config.extras());
    // A proposal is written before the specs that it announces.
    let later = [rules::AFFECTED_SPEC_MISSING.code, rules::FILE_MISSING.code];
    let findings: Vec<Diagnostic> = check::of_file(&reports, file)
        .iter()
        .filter(|finding| {
            finding.severity() == Severity::High && !later.contains(&finding.rule.code)
        })
        .cloned()
        .collect();
    if findings.is_empty() {
        Ok(())
    } else {
        Err(StepError::InvalidArtifact { agent, file: file.path().to_string(), findings })
    }
}

#[cfg(test)]
mod tests {
    use agentd_core::agent::{AgentKind, Role};
    use agentd_core::ids::ChangeId;
    use agentd_core::step_name::StepName;

    use super::*;

    /// The files that somebody else has written in a step that writes tasks.md.
    fn found(changed: &[(&ChangeFile, &str)], written: &[&str]) -> Vec<ChangeFile> {
        let change = ChangeId::new("add-login").unwrap();
        let texts = [(ChangeFile::Proposal, Source::Text("# A\n".into()))];
        let before = Documents::read(change.clone(), texts);
        let after = changed.iter().fold(before.clone(), |documents, (file, text)| {
            documents.with(file, Source::Text((*text).into()))
        });
        let step = Step {
            change,
            role: Role::Planner,
            agent: AgentKind::Gemini,
            name: StepName::TasksGen,
            prompt: String::new(),
            resume: None,
            artifact: Artifact::File(ChangeFile::Tasks),
            on_success: None,
        };
        let digest =
            |text: &&str| Digest::of(*text).to_string().trim_start_matches("sha256:").to_owned();
        strays(&step, &before, &after, &written.iter().map(digest).collect())
    }

    #[test]
    fn what_no_tool_has_answered_to_have_written_is_somebody_elses() {
        let (tasks, proposal) = (&ChangeFile::Tasks, &ChangeFile::Proposal);
        for (changed, written, strays) in [
            (&[][..], &[][..], &[][..]),
            (&[(tasks, "# T\n")], &["# T\n"], &[]),
            (&[(tasks, "# T\n")], &["# S\n", "# T\n"], &[]),
            (&[(tasks, "# X\n")], &["# T\n"], &[tasks]),
            // Nobody is started beside an author whose output shows nothing.
            (&[(tasks, "# T\n")], &[], &[tasks]),
            (&[(tasks, "# T\n"), (proposal, "# B\n")], &["# T\n"], &[proposal]),
            (&[(proposal, "# B\n")], &["# B\n"], &[proposal]),
        ] {
            let strays: Vec<ChangeFile> = strays.iter().copied().cloned().collect();
            assert_eq!(found(changed, written), strays, "{changed:?} {written:?}");
        }
    }
}
