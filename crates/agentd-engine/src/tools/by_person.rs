//! A document, or a part of it, as a person edits it in place: checked and written as by a tool.
//!
//! The person has seen a text, and says by its digest which: if somebody else has written to that
//! part meanwhile, nothing is written.

use std::ops::ControlFlow;

use agentd_core::check::of_file;
use agentd_core::diagnostic::Severity;
use agentd_core::document::comments::Anchor;
use agentd_core::document::part::part;
use agentd_core::documents::Source;
use agentd_core::error_kind::Kind;
use agentd_core::frontmatter::newline_of;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{ChangeFile, Writer};
use agentd_core::rel_path::RelPath;
use agentd_core::span::{LineIndex, Span};
use agentd_core::stamp::Stamp;
use agentd_core::text::Line;

use super::Session;
use super::edit_file::{blocks, touched};
use super::input::MAX_DOCUMENT;
use super::outcome::{ActionError, Refusal, Written};
use super::writing::Gate;
use crate::change::Snapshot;
use crate::change::documents::{self, load_config};
use crate::explain::{ErrorReport, Explain};
use crate::store::{Holder, Project};

/// What a person has written.
#[derive(Debug, Clone)]
pub struct DocumentEdit<'e> {
    /// The document.
    pub file: &'e ChangeFile,
    /// The part of it that was edited.
    pub at: &'e Anchor,
    /// The part as they have seen it.
    pub seen: &'e Digest,
    /// The part as it is to be.
    pub text: &'e str,
}

/// Why an edit was not taken.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// Somebody has written to it since the person has seen it.
    #[error("{path} was changed since you began to edit it")]
    Stale {
        /// The document.
        path: RelPath,
    },
    /// The document or the part is not there.
    #[error("{path} has no such part")]
    NoSuchPart {
        /// The document.
        path: RelPath,
    },
    /// The text would not be valid, or cannot be written.
    #[error(transparent)]
    Action(#[from] ActionError),
}

impl Explain for EditError {
    fn explain(&self) -> ErrorReport {
        match self {
            Self::Stale { .. } => ErrorReport::of(Kind::Refused, self)
                .hint("nothing was written; compare your text with the one that is there now"),
            Self::NoSuchPart { .. } => ErrorReport::of(Kind::NoSuchDocument, self),
            Self::Action(error) => error.explain(),
        }
    }
}

/// Something wrong in a text that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedFinding {
    /// How much it weighs.
    pub severity: Severity,
    /// The rule.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub advice: String,
    /// The line of the part that was edited, from 1; none if it is elsewhere in the document.
    pub line: Option<usize>,
}

/// What is wrong with a document if a part of it reads like this. Nothing is written.
pub fn check_edit(
    project: &Project,
    snapshot: &Snapshot,
    file: &ChangeFile,
    at: &Anchor,
    text: &str,
) -> Result<Vec<TypedFinding>, EditError> {
    let place = || file.path_in_project(snapshot.id());
    if file.writer() != Writer::Agents {
        return Err(EditError::NoSuchPart { path: place() });
    }
    let old = snapshot.documents.get(file).text();
    let old = old.ok_or_else(|| EditError::NoSuchPart { path: place() })?;
    let span = part(old, file, at).ok_or_else(|| EditError::NoSuchPart { path: place() })?;
    if text.len() > MAX_DOCUMENT {
        return Err(EditError::Action(too_long(&place(), text.len()).into()));
    }
    let new = replaced(old, span, text);
    let documents = snapshot.documents.with(file, Source::Text(new.clone()));
    let main = documents::main_specs_for(project, &documents);
    let extras = load_config(project).map(|config| config.extras()).unwrap_or_default();
    let reports = documents.findings(&main, &extras);
    let index = LineIndex::new(&new);
    let first = index.line_column(span.start).0;
    let edited = Span::new(span.start, new.len() - (old.len() - span.end));
    let mut findings: Vec<TypedFinding> = of_file(&reports, file)
        .iter()
        .map(|found| TypedFinding {
            severity: found.severity(),
            code: found.rule.code,
            message: found.message.clone(),
            advice: found.advice().to_string(),
            line: edited
                .range()
                .contains(&found.span.start)
                .then(|| index.line_column(found.span.start).0 + 1 - first),
        })
        .collect();
    findings.sort_by_key(|found| (found.line.is_none(), found.severity, found.line));
    Ok(findings)
}

/// Writes what a person has edited, if that part is still as they have seen it and the document has
/// no new HIGH finding.
pub fn edit_document(
    project: &Project,
    id: &ChangeId,
    edit: &DocumentEdit<'_>,
    by: &str,
    holder: &Holder,
    now: Stamp,
) -> Result<Written, EditError> {
    let path = || edit.file.path_in_project(id);
    if edit.file.writer() != Writer::Agents {
        return Err(EditError::NoSuchPart { path: path() });
    }
    let session = Session {
        project,
        actor: Line::new(by),
        holder: holder.clone(),
        now,
        names_change: true,
        step: None,
        receipt: None,
        on_wait: &|_| ControlFlow::Continue(()),
    };
    let mut open = session.open(id)?;
    let Some(old) = open.text(edit.file)?.map(str::to_owned) else {
        return Err(EditError::NoSuchPart { path: path() });
    };
    let span = part(&old, edit.file, edit.at);
    let span = span.ok_or_else(|| EditError::NoSuchPart { path: path() })?;
    if seen(span.of(&old)) != *edit.seen {
        return Err(EditError::Stale { path: path() });
    }
    if edit.text.len() > MAX_DOCUMENT {
        return Err(EditError::Action(too_long(&path(), edit.text.len()).into()));
    }
    let text = replaced(&old, span, edit.text);
    if text == old {
        return Ok(open.unchanged(edit.file, &old)?);
    }
    if *edit.file == ChangeFile::Proposal && blocks(&text) != blocks(&old) {
        let refusal = Refusal::new("This edit would add or change a review in proposal.md.");
        return Err(EditError::Action(refusal.into()));
    }
    let text = touched(edit.file, &text, now);
    Ok(open.put(edit.file, &text, Gate::NoNew)?)
}

/// The digest by which a part is known: how its lines end does not count, since browsers change that.
pub(crate) fn seen(part: &str) -> Digest {
    Digest::of(part.replace("\r\n", "\n").trim_end())
}

/// A part of a document as it is shown to a person who edits it, and its digest; none if there is no
/// such part.
pub fn editable(text: &str, file: &ChangeFile, at: &Anchor) -> Option<(String, Digest)> {
    if file.writer() != Writer::Agents {
        return None;
    }
    let part = part(text, file, at)?.of(text);
    Some((format!("{}\n", part.replace("\r\n", "\n").trim_end()), seen(part)))
}

/// The text with another part, whose lines end like the others. What is between the part and the
/// next heading stays.
fn replaced(old: &str, span: Span, text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let text = text.trim_end().replace('\n', newline_of(old));
    let part = span.of(old);
    let end = &part[part.trim_end().len()..];
    format!("{}{text}{end}{}", &old[..span.start], &old[span.end..])
}

fn too_long(path: &RelPath, length: usize) -> Refusal {
    Refusal::new(format!(
        "{path} would be {length} bytes long; at most {MAX_DOCUMENT} are allowed."
    ))
}
