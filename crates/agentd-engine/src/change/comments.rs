//! Comments that people make on the documents of a change: one set of functions for
//! the viewer that makes them and for the prompts that pass them on.

use agentd_core::command_line::CommandLine;
use agentd_core::document::comments::{self, Anchor, Comment, Comments, Resolved};
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::stamp::Stamp;
use agentd_core::text::{Line, Prose, head};

use crate::change::documents::DocumentError;
use crate::explain::{ErrorReport, Explain};
use crate::store::{Change, Holder, LockError, Project, StoreError};

/// How long a comment may be; every one of them goes into a prompt.
pub const MAX_COMMENT_BYTES: usize = 8 << 10;

/// How many comments a change may have.
pub(crate) const MAX_COMMENTS: usize = 1000;

/// Why a comment was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum CommentError {
    /// The file system or a lock said no.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A comment without a word.
    #[error("the comment is empty")]
    Empty,
    /// The document to be commented on is not there.
    #[error("`{on}` is no document of `{change}`")]
    NoSuchDocument {
        /// The change.
        change: ChangeId,
        /// What was named.
        on: String,
    },
    /// There is no comment of this number.
    #[error("`{change}` has no comment C{number}")]
    NoSuchComment {
        /// The change.
        change: ChangeId,
        /// The number.
        number: u32,
    },
    /// There are too many to add one.
    #[error("`{change}` has {MAX_COMMENTS} comments already")]
    TooMany {
        /// The change.
        change: ChangeId,
    },
}

impl Explain for CommentError {
    fn explain(&self) -> ErrorReport {
        let report = |kind| ErrorReport::of(kind, self);
        match self {
            Self::Document(error) => error.explain(),
            Self::Empty => report(Kind::Comment).hint("write what should change, and why"),
            Self::NoSuchDocument { change, .. } => report(Kind::NoSuchDocument)
                .run("see how far it is", CommandLine::agentd(["status", change.as_str()])),
            Self::NoSuchComment { change, .. } => {
                report(Kind::Comment).edit("see which comments there are", comments_file(change))
            }
            Self::TooMany { change } => {
                report(Kind::Comment).edit("remove those that are settled", comments_file(change))
            }
        }
    }
}

fn comments_file(change: &ChangeId) -> String {
    ChangeFile::Comments.path_in_project(change).to_string()
}

impl From<StoreError> for CommentError {
    fn from(error: StoreError) -> Self {
        Self::Document(error.into())
    }
}

impl From<LockError> for CommentError {
    fn from(error: LockError) -> Self {
        Self::Document(error.into())
    }
}

/// What a person wants to say.
#[derive(Debug, Clone)]
pub struct NewComment<'a> {
    /// The document, by its path in the change.
    pub on: &'a ChangeFile,
    /// The place in it.
    pub at: Anchor,
    /// Who says it.
    pub by: &'a str,
    /// What.
    pub text: &'a str,
}

/// All comments on a change.
pub fn list(change: &Change) -> Result<Comments, StoreError> {
    let text = change.read_if_exists(&ChangeFile::Comments)?.unwrap_or_default();
    Ok(comments::parse(&text).value)
}

/// The comments that nobody has resolved, oldest first: what a reproposal must address.
pub fn open(change: &Change) -> Result<Vec<Comment>, StoreError> {
    let mut all = list(change)?.comments;
    all.retain(|comment| comment.resolved.is_none());
    Ok(all)
}

/// Records a comment and returns it with its number.
pub fn add(
    project: &Project,
    id: &ChangeId,
    new: &NewComment<'_>,
    holder: &Holder,
    now: Stamp,
) -> Result<Comment, CommentError> {
    let text = Prose::new(head(new.text, MAX_COMMENT_BYTES));
    if text.is_empty() {
        return Err(CommentError::Empty);
    }
    update(project, id, holder, |change, all| {
        if !change.has(new.on)? {
            let on = new.on.path().to_string();
            return Err(CommentError::NoSuchDocument { change: id.clone(), on });
        }
        if all.comments.len() >= MAX_COMMENTS {
            return Err(CommentError::TooMany { change: id.clone() });
        }
        let comment = Comment {
            number: all.next_number(),
            on: Line::new(new.on.path().as_str()),
            at: new.at.clone(),
            by: Line::new(new.by),
            date: Some(now),
            text,
            resolved: None,
        };
        all.comments.push(comment.clone());
        Ok(comment)
    })
}

/// Whether a comment is to be resolved or open again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is settled.
    Resolved,
    /// It is not settled after all.
    Open,
}

/// Resolves a comment, or opens it again.
pub fn settle(
    project: &Project,
    id: &ChangeId,
    number: u32,
    fate: Fate,
    by: &str,
    holder: &Holder,
    now: Stamp,
) -> Result<Comment, CommentError> {
    update(project, id, holder, |_, all| {
        let found = all.comments.iter_mut().find(|comment| comment.number == number);
        let Some(comment) = found else {
            return Err(CommentError::NoSuchComment { change: id.clone(), number });
        };
        comment.resolved = match fate {
            Fate::Resolved => Some(Resolved { by: Line::new(by), date: Some(now) }),
            Fate::Open => None,
        };
        Ok(comment.clone())
    })
}

/// Reads the comments under the write lock, lets `update` change them, and writes them back.
fn update<T>(
    project: &Project,
    id: &ChangeId,
    holder: &Holder,
    update: impl FnOnce(&Change, &mut Comments) -> Result<T, CommentError>,
) -> Result<T, CommentError> {
    let lock = project.write_lock(id, holder)?;
    let change = project.change(id)?;
    let mut all = list(&change)?;
    let value = update(&change, &mut all)?;
    all.change_id = Some(id.clone());
    change.write(&lock, &ChangeFile::Comments, comments::render(&all).as_bytes())?;
    Ok(value)
}
