//! Comments that people make on the documents and the code of a change: one set of functions for
//! the viewer that makes them and for the prompts that pass them on.

use agentd_core::command_line::CommandLine;
use agentd_core::document::comments::{
    self, Anchor, Comment, Commented, CommentedText, Comments, Resolved,
};
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::phase::Phase;
use agentd_core::stamp::Stamp;
use agentd_core::state::{LlmCall, State};
use agentd_core::step_name::StepName;
use agentd_core::text::{Line, Prose, excerpt, head};
use jiff::SignedDuration;

use crate::change::documents::{DocumentError, load_state_if_begun};
use crate::change::staleness::code_root;
use crate::explain::{ErrorReport, Explain};
use crate::store::{Change, Holder, LockError, Project, StoreError};

/// How long a comment may be; every one of them goes into a prompt.
pub const MAX_COMMENT_BYTES: usize = 8 << 10;

/// How many comments a change may have.
pub(crate) const MAX_COMMENTS: usize = 1000;

/// How many characters of the words that a comment is about are kept.
const QUOTED: usize = 200;

/// Why a comment was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum CommentError {
    /// The file system or a lock said no.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A comment without a word.
    #[error("the comment is empty")]
    Empty,
    /// What is to be commented on is not there.
    #[error("`{on}` is no document of `{change}`, and no file of its code")]
    NoSuchDocument {
        /// The change.
        change: ChangeId,
        /// What was named.
        on: String,
    },
    /// Somebody else has made it.
    #[error("comment C{number} is by {by}")]
    NotYours {
        /// The number.
        number: u32,
        /// Who has made it.
        by: Line,
    },
    /// There are answers to it.
    #[error("comment C{number} has answers")]
    Answered {
        /// The number.
        number: u32,
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
            Self::NotYours { .. } => report(Kind::Comment).hint("answer it instead"),
            Self::Answered { .. } => report(Kind::Comment).hint("resolve it instead"),
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
    /// What it is on.
    pub on: Commented,
    /// The place in it.
    pub at: Anchor,
    /// The words that it is about, where a person has picked some; otherwise those of the line.
    pub quote: &'a str,
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

/// The comments on the documents of a change that nobody has resolved, oldest first: what a
/// reproposal must address.
pub fn open(change: &Change) -> Result<Vec<Comment>, StoreError> {
    open_where(change, |on| !on.is_some_and(|on| on.is_code()))
}

/// The same on its code: what a fix must address.
pub fn open_on_code(change: &Change) -> Result<Vec<Comment>, StoreError> {
    open_where(change, |on| on.is_some_and(|on| on.is_code()))
}

fn open_where(
    change: &Change,
    wanted: impl Fn(Option<Commented>) -> bool,
) -> Result<Vec<Comment>, StoreError> {
    let mut all = list(change)?.comments;
    all.retain(|comment| comment.resolved.is_none() && wanted(comment.commented()));
    Ok(all)
}

/// The call in which a comment was given to an agent: to the planner, or if it is about code, to the
/// implementer. None if there was no such call since it was made.
pub fn given<'s>(state: &'s State, comment: &Comment) -> Option<&'s LlmCall> {
    let is_code = comment.commented().is_some_and(|on| on.is_code());
    let step = if is_code { StepName::Fix } else { StepName::Reproposal };
    let date = comment.date?.moment();
    state.llm_calls.iter().find(|call| {
        let took = SignedDuration::from_millis(i64::try_from(call.duration_ms).unwrap_or(i64::MAX));
        let began = call.timestamp.and_then(|at| at.moment().checked_sub(took).ok());
        call.step == step && call.failure.is_none() && began.is_some_and(|began| began >= date)
    })
}

/// How many comments people have made on the code since it was last fixed.
pub(crate) fn new_on_code(change: &Change, state: &State) -> Result<usize, StoreError> {
    if !matches!(state.phase, Phase::Implementing | Phase::Complete) {
        return Ok(0);
    }
    Ok(open_on_code(change)?.iter().filter(|comment| given(state, comment).is_none()).count())
}

/// Where a comment belongs now, in words for a prompt: the document or file, the place in it, and
/// the words that it is about.
pub(crate) fn place(project: &Project, change: &Change, comment: &Comment) -> String {
    let on = comment.commented();
    let mut place = match &on {
        Some(Commented::Document(file)) => file.path().to_string(),
        Some(Commented::File(path)) => path.to_string(),
        Some(Commented::Code) => "the code".to_owned(),
        None => comment.on.to_string(),
    };
    let is_line = matches!(comment.at, Anchor::Line(_));
    let line = on.filter(|_| is_line).and_then(|on| text_of(project, change, &on).ok()?);
    match line.and_then(|text| CommentedText::new(&text).line_of(comment)) {
        Some(line) => place.push_str(&format!(" line {line}")),
        None if is_line => place.push_str(", in words that are gone"),
        None if comment.at == Anchor::Document => {}
        None => place.push_str(&format!(" {}", comment.at)),
    }
    if !comment.quote.is_empty() {
        place.push_str(&format!(" ({:?})", comment.quote.as_str()));
    }
    if let Some(number) = comment.answers {
        place.push_str(&format!(", in answer to C{number}"));
    }
    place
}

/// The text of what is commented on; none if it is not there, or is more than one text.
fn text_of(
    project: &Project,
    change: &Change,
    on: &Commented,
) -> Result<Option<String>, DocumentError> {
    let (dir, path) = match on {
        Commented::Document(file) => (change.dir().clone(), file.path()),
        // What git keeps for itself is not code, and must not get into a prompt.
        Commented::File(path) if path.components().any(is_git) => return Ok(None),
        Commented::File(path) => {
            // A working tree that cannot be found has no files.
            let root = match load_state_if_begun(change)? {
                Some(state) => code_root(project, &state).ok(),
                None => Some(project.root().to_owned()),
            };
            let Some(root) = root.and_then(|root| Project::open(&root).ok()) else {
                return Ok(None);
            };
            (root.dir().clone(), path.clone())
        }
        Commented::Code => return Ok(None),
    };
    match dir.read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_git(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Records a comment and returns it with its number.
pub fn add(
    project: &Project,
    id: &ChangeId,
    new: &NewComment<'_>,
    holder: &Holder,
    now: Stamp,
) -> Result<Comment, CommentError> {
    let text = words(new.text)?;
    update(project, id, holder, |change, all| {
        let no_such =
            || CommentError::NoSuchDocument { change: id.clone(), on: new.on.to_string() };
        let found = text_of(project, change, &new.on)?;
        let (under, quote) = match (&new.at, &found) {
            // A file that is gone can still be talked about, and so can all of the code.
            (Anchor::Removed(_), _) | (_, None) if new.on != Commented::Code => {
                if !matches!((&new.on, &new.at), (Commented::File(_), Anchor::Removed(_))) {
                    return Err(no_such());
                }
                (Line::default(), Line::new(new.quote))
            }
            (Anchor::Line(line), Some(text)) => {
                about(text, *line, new.quote).ok_or_else(no_such)?
            }
            _ => (Line::default(), Line::new(new.quote)),
        };
        if all.comments.len() >= MAX_COMMENTS {
            return Err(CommentError::TooMany { change: id.clone() });
        }
        let comment = Comment {
            number: all.next_number(),
            on: Line::new(&new.on.to_string()),
            at: new.at.clone(),
            under,
            quote: Line::new(&excerpt(quote.as_str(), QUOTED)),
            answers: None,
            by: Line::new(new.by),
            date: Some(now),
            text,
            resolved: None,
        };
        all.comments.push(comment.clone());
        Ok(comment)
    })
}

/// The heading above a line, and the words that a comment on it is about: those that were picked, or
/// the whole line. None if there is no such line.
fn about(text: &str, line: u32, picked: &str) -> Option<(Line, Line)> {
    let at = usize::try_from(line).ok()?;
    let whole = text.lines().nth(at.checked_sub(1)?)?;
    let commented = CommentedText::new(text);
    let picked = Line::new(&excerpt(picked, QUOTED));
    let probe = Comment { at: Anchor::Line(line), quote: picked.clone(), ..Comment::default() };
    let is_there = !picked.is_empty() && commented.line_of(&probe).is_some();
    let under = commented.heading(at).cloned().unwrap_or_default();
    Some((under, if is_there { picked } else { Line::new(whole) }))
}

fn words(text: &str) -> Result<Prose, CommentError> {
    let text = Prose::new(head(text, MAX_COMMENT_BYTES));
    if text.is_empty() { Err(CommentError::Empty) } else { Ok(text) }
}

/// Records an answer to a comment. It is about the same place, and the comment is open again.
pub fn answer(
    project: &Project,
    id: &ChangeId,
    number: u32,
    text: &str,
    by: &str,
    holder: &Holder,
    now: Stamp,
) -> Result<Comment, CommentError> {
    let text = words(text)?;
    update(project, id, holder, |_, all| {
        if all.comments.len() >= MAX_COMMENTS {
            return Err(CommentError::TooMany { change: id.clone() });
        }
        let next = all.next_number();
        let first = find(all, id, number)?;
        first.resolved = None;
        let comment = Comment {
            number: next,
            // An answer to an answer is one to what that was about.
            answers: Some(first.answers.unwrap_or(number)),
            by: Line::new(by),
            date: Some(now),
            text,
            ..first.clone()
        };
        all.comments.push(comment.clone());
        Ok(comment)
    })
}

/// Replaces the words of one's own comment.
pub fn edit(
    project: &Project,
    id: &ChangeId,
    number: u32,
    text: &str,
    by: &str,
    holder: &Holder,
) -> Result<Comment, CommentError> {
    let text = words(text)?;
    update(project, id, holder, |_, all| {
        let comment = own(all, id, number, by)?;
        comment.text = text;
        Ok(comment.clone())
    })
}

/// Removes one's own comment, unless it was answered.
pub fn remove(
    project: &Project,
    id: &ChangeId,
    number: u32,
    by: &str,
    holder: &Holder,
) -> Result<(), CommentError> {
    update(project, id, holder, |_, all| {
        own(all, id, number, by)?;
        if all.comments.iter().any(|comment| comment.answers == Some(number)) {
            return Err(CommentError::Answered { number });
        }
        all.last_number = all.last_number.max(number);
        all.comments.retain(|comment| comment.number != number);
        Ok(())
    })
}

fn find<'c>(
    all: &'c mut Comments,
    id: &ChangeId,
    number: u32,
) -> Result<&'c mut Comment, CommentError> {
    let found = all.comments.iter_mut().find(|comment| comment.number == number);
    found.ok_or_else(|| CommentError::NoSuchComment { change: id.clone(), number })
}

fn own<'c>(
    all: &'c mut Comments,
    id: &ChangeId,
    number: u32,
    by: &str,
) -> Result<&'c mut Comment, CommentError> {
    let comment = find(all, id, number)?;
    if comment.by != Line::new(by) {
        return Err(CommentError::NotYours { number, by: comment.by.clone() });
    }
    Ok(comment)
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
        let resolved = match fate {
            Fate::Resolved => Some(Resolved { by: Line::new(by), date: Some(now) }),
            Fate::Open => None,
        };
        // With its answers: they are one matter.
        for answer in all.comments.iter_mut().filter(|it| it.answers == Some(number)) {
            answer.resolved.clone_from(&resolved);
        }
        let comment = find(all, id, number)?;
        comment.resolved = resolved;
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
