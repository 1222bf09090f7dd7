//! The one way in which a tool writes a document.

use std::collections::BTreeMap;

use agentd_core::agent::Role;
use agentd_core::check::{Extras, FileReport, of_file};
use agentd_core::diagnostic::{Diagnostic, Rule, Severity};
use agentd_core::documents::{Documents, Source};
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::receipt::ReceiptKey;
use agentd_core::rules;

use super::Session;
use super::input::MAX_DOCUMENT;
use super::outcome::{self, ActionError, Refusal, Written, cut};
use crate::archive;
use crate::change::documents;
use crate::store::{Change, Project, StoreError, WriteLock};

/// A change in hand: its lock is held and its documents are read.
pub(super) struct Open<'s> {
    pub(super) project: &'s Project,
    pub(super) change: Change,
    pub(super) documents: Documents,
    lock: WriteLock,
    extras: Extras,
    receipt: Option<ReceiptKey>,
}

/// What stands in the way of a write.
#[derive(Clone, Copy)]
pub(super) enum Gate {
    /// Any HIGH finding in the file.
    Clean,
    /// A HIGH finding in the file that was not there before.
    NoNew,
    /// Nothing: the text was made by agentd and is checked by who made it.
    Unchecked,
}

/// Findings that only say that another part of the plan is not written yet.
static NOT_YET: [&Rule; 2] = [&rules::FILE_MISSING, &rules::AFFECTED_SPEC_MISSING];

/// Findings behind which others may hide.
static HIDING: [&Rule; 5] = [
    &rules::FRONTMATTER_UNCLOSED,
    &rules::FRONTMATTER_INVALID,
    &rules::TASK_BLOCK,
    &rules::BAD_REQUIREMENT_ID,
    &rules::SPEC_SECTION,
];

impl<'s> Session<'s> {
    /// Waits for the change's turn and reads it.
    pub(super) fn open(&self, id: &ChangeId) -> Result<Open<'s>, ActionError> {
        // Asked before the lock, so that a wrong id leaves no lock file behind.
        self.project.change(id)?;
        self.open_locked(id, |project| project.change(id))
    }

    /// Like [`Session::open`]; a change that is not there is begun.
    pub(super) fn open_or_begin(&self, id: &ChangeId) -> Result<Open<'s>, ActionError> {
        self.open_locked(id, |project| match project.change(id) {
            Err(error) if error.is_not_found() => project.create_change(id),
            result => result,
        })
    }

    /// Like [`Session::open`]; `find` opens or makes the change under its lock.
    fn open_locked(
        &self,
        id: &ChangeId,
        find: impl FnOnce(&Project) -> Result<Change, StoreError>,
    ) -> Result<Open<'s>, ActionError> {
        // A server lives long: an archiving may have been killed since it started.
        archive::recover(self.project, || self.holder.clone())
            .map_err(|error| ActionError::Internal(error.to_string()))?;
        let extras = documents::load_config(self.project)?.extras();
        let lock = self.project.write_lock_or(id, &self.holder, self.on_wait)?;
        let change = find(self.project)?;
        let documents = change.snapshot()?.documents;
        let receipt = self.receipt.clone();
        Ok(Open { project: self.project, change, documents, lock, extras, receipt })
    }
}

impl Open<'_> {
    pub(super) fn id(&self) -> &ChangeId {
        self.change.id()
    }

    /// The text of a document; none where there is no such file. One that
    /// cannot be read is left alone: a person may want it back.
    pub(super) fn text(&self, file: &ChangeFile) -> Result<Option<&str>, ActionError> {
        match self.documents.get(file) {
            Source::Text(text) => Ok(Some(text)),
            Source::Missing => Ok(None),
            Source::Unreadable(why) => Err(Refusal::new(why.clone())
                .hint("Nothing was written. A person has to look at that file.")
                .into()),
        }
    }

    /// Checks a text as it would be on disk, writes it, and reads it back.
    pub(super) fn put(
        &mut self,
        file: &ChangeFile,
        text: &str,
        gate: Gate,
    ) -> Result<Written, ActionError> {
        let warnings = self.approve(file, text, gate)?;
        self.write(file, text, warnings)
    }

    /// Refuses a text that must not be written, or says what could be better.
    pub(super) fn approve(
        &mut self,
        file: &ChangeFile,
        text: &str,
        gate: Gate,
    ) -> Result<Vec<String>, ActionError> {
        if text.len() > MAX_DOCUMENT {
            let (path, len) = (file.path(), text.len());
            return Err(Refusal::new(format!(
                "{path} would be {len} bytes long; at most {MAX_DOCUMENT} are allowed."
            ))
            .hint("Nothing was written. Say it in fewer words.")
            .into());
        }
        match gate {
            Gate::Unchecked => Ok(Vec::new()),
            Gate::Clean | Gate::NoNew => self.check(file, text, gate),
        }
    }

    /// Writes an approved text and reads it back.
    pub(super) fn write(
        &self,
        file: &ChangeFile,
        text: &str,
        warnings: Vec<String>,
    ) -> Result<Written, ActionError> {
        self.change.write(&self.lock, file, text.as_bytes())?;
        self.read_back(file, text, warnings)
    }

    /// Writes a file that agentd renders itself, without checking.
    pub(super) fn put_unchecked(&self, file: &ChangeFile, text: &str) -> Result<(), ActionError> {
        Ok(self.change.write(&self.lock, file, text.as_bytes())?)
    }

    /// Leaves the proof of a review, if agentd started the tools for one.
    pub(super) fn put_receipt(&self, role: Role, review: &Digest) -> Result<(), ActionError> {
        let Some(key) = &self.receipt else { return Ok(()) };
        self.put_unchecked(&ChangeFile::Receipt, &key.receipt(self.id(), role, review).render())
    }

    /// What is wrong with the documents as they are.
    pub(super) fn findings(&self) -> Vec<FileReport> {
        self.reports(&self.documents)
    }

    /// Takes a document that was removed out of what is known, and says what is wrong with the
    /// others now and was not before.
    pub(super) fn warnings_without(
        &mut self,
        file: &ChangeFile,
        before: &[FileReport],
    ) -> Vec<String> {
        self.documents = self.documents.with(file, Source::Missing);
        cut(fresh_elsewhere(&self.findings(), before, file))
    }

    /// Removes a file: one that was written for another that could not be, or a spec.
    pub(super) fn take_back(&self, file: &ChangeFile) -> Result<(), ActionError> {
        Ok(self.change.remove(&self.lock, file)?)
    }

    /// The answer for a document that is already as it should be.
    pub(super) fn unchanged(&self, file: &ChangeFile, text: &str) -> Result<Written, ActionError> {
        let after = self.reports(&self.documents);
        let found = of_file(&after, file);
        let warnings = found.iter().filter(|d| !is_not_yet(d)).map(|d| d.in_words(text));
        self.read_back(file, text, cut(warnings.collect()))
    }

    fn read_back(
        &self,
        file: &ChangeFile,
        text: &str,
        warnings: Vec<String>,
    ) -> Result<Written, ActionError> {
        let on_disk = self.change.read(file)?;
        if on_disk != text {
            let path = file.path();
            return Err(ActionError::Internal(format!(
                "{path} was written, but something else is on disk now: is another program writing it?"
            )));
        }
        Ok(Written {
            path: file.path_in_project(self.id()),
            sha256: outcome::sha256(on_disk.as_bytes()),
            warnings,
            iteration: None,
        })
    }

    fn reports(&self, documents: &Documents) -> Vec<FileReport> {
        let main = documents::main_specs_for(self.project, documents);
        documents.findings(&main, &self.extras)
    }

    /// Refuses, or says what could be better.
    fn check(
        &mut self,
        file: &ChangeFile,
        text: &str,
        gate: Gate,
    ) -> Result<Vec<String>, ActionError> {
        let name = file.path();
        let documents = self.documents.with(file, Source::Text(text.to_owned()));
        let after = self.reports(&documents);
        let found = of_file(&after, file);
        // How it was before matters only to an edit, and where other files are at fault.
        let elsewhere = |report: &FileReport| report.file.in_change() != Some(file);
        let compares = matches!(gate, Gate::NoNew) || after.iter().any(elsewhere);
        let before = if compares { self.reports(&self.documents) } else { Vec::new() };
        let old = of_file(&before, file);
        let mut blocking: Vec<&Diagnostic> =
            found.iter().filter(|d| d.severity() == Severity::High && !is_not_yet(d)).collect();
        if matches!(gate, Gate::NoNew) {
            let hidden = |found: &[Diagnostic]| found.iter().filter(|d| hides(d)).count();
            blocking = if hidden(found) < hidden(old) { Vec::new() } else { new(blocking, old) };
        }
        if !blocking.is_empty() {
            let how_many = match blocking.len() {
                1 => "1 problem".to_owned(),
                n => format!("{n} problems"),
            };
            return Err(Refusal::new(format!(
                "{name} was not written and nothing has changed: the text would have {how_many}."
            ))
            .findings(outcome::findings(blocking, text))
            .hint("Correct the input and call the tool again.")
            .into());
        }
        let own = found.iter().filter(|d| !is_not_yet(d));
        let mut warnings: Vec<String> = own.map(|d| d.in_words(text)).collect();
        warnings.extend(fresh_elsewhere(&after, &before, file));
        self.documents = documents;
        Ok(cut(warnings))
    }
}

/// What is wrong with other files of the change than this one, and was not before.
fn fresh_elsewhere(after: &[FileReport], before: &[FileReport], file: &ChangeFile) -> Vec<String> {
    let mut warnings = Vec::new();
    for report in after {
        let Some(other) = report.file.in_change().filter(|other| *other != file) else { continue };
        let all = report.diagnostics.iter().filter(|d| !is_not_yet(d)).collect();
        let fresh = new(all, of_file(before, other));
        let findings = fresh.iter().map(|d| d.in_words(&report.text));
        warnings.extend(findings.map(|finding| format!("In {}: {finding}", other.path())));
    }
    warnings
}

fn is_not_yet(diagnostic: &Diagnostic) -> bool {
    NOT_YET.contains(&diagnostic.rule)
}

fn hides(diagnostic: &Diagnostic) -> bool {
    HIDING.contains(&diagnostic.rule)
}

/// The findings that are not among the old ones. Places move, so code and words count.
fn new<'d>(found: Vec<&'d Diagnostic>, old: &[Diagnostic]) -> Vec<&'d Diagnostic> {
    let mut known: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for diagnostic in old {
        *known.entry((diagnostic.rule.code, &diagnostic.message)).or_default() += 1;
    }
    let mut fresh = found;
    fresh.retain(|diagnostic| {
        match known.get_mut(&(diagnostic.rule.code, diagnostic.message.as_str())) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        }
    });
    fresh
}
