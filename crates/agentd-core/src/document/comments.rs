//! `comments.md`: what people have said about the documents and the code of a change.
//!
//! Comments are made in the viewer, on a document or a file of the code, or on a place in it. Open
//! ones on documents are for the planner, and go into the prompt of the next reproposal; those on
//! code are for the implementer, and go into the next fix. A comment on a line keeps the words of
//! that line: they say where it belongs when lines move ([`CommentedText`]).

mod place;

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::Deserialize;

use super::fields::{self, fields};
use super::{frontmatter_place, read_id};
use crate::diagnostic::Parsed;
use crate::frontmatter::{self, scalar};
use crate::ids::{ChangeId, RequirementId, TaskId};
use crate::layout::ChangeFile;
use crate::outline::Outline;
use crate::rel_path::RelPath;
use crate::rules;
use crate::stamp::Stamp;
use crate::text::{Line, Prose};

pub use place::CommentedText;

/// The comments on a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comments {
    /// The change, as the frontmatter says.
    pub change_id: Option<ChangeId>,
    /// The comments, oldest first.
    pub comments: Vec<Comment>,
    /// The highest number of a comment that was removed; 0 if none was.
    pub last_number: u32,
}

impl Comments {
    /// The comments that nobody has resolved, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Comment> {
        self.comments.iter().filter(|comment| comment.resolved.is_none())
    }

    /// The number for the next comment: numbers are never used twice.
    pub fn next_number(&self) -> u32 {
        let known = self.comments.iter().map(|c| c.number).max().unwrap_or(0);
        known.max(self.last_number).saturating_add(1)
    }
}

/// One comment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comment {
    /// Its number: `C1`, `C2`, …
    pub number: u32,
    /// The document, by its path in the change: `specs/auth-flow.md`. A file of the code has
    /// `code/` in front of its path; `code` alone is all of it.
    pub on: Line,
    /// The place in it.
    pub at: Anchor,
    /// The heading above a line, when the comment was made.
    pub under: Line,
    /// The words that it is about, as they were then.
    pub quote: Line,
    /// The comment that it answers.
    pub answers: Option<u32>,
    /// Who made it.
    pub by: Line,
    /// When.
    pub date: Option<Stamp>,
    /// What it says.
    pub text: Prose,
    /// Who resolved it; an open comment has nobody.
    pub resolved: Option<Resolved>,
}

/// What a comment is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Commented {
    /// A document of the change.
    Document(ChangeFile),
    /// A file of the code, by its path in the project.
    File(RelPath),
    /// All of the code.
    Code,
}

/// What is in front of the path of a file of the code. No document of a change is there.
const CODE: &str = "code";

impl Commented {
    /// Whether it is for the implementer, and not for the planner.
    pub fn is_code(&self) -> bool {
        match self {
            // The review of the code is answered where the code is fixed.
            Self::File(_) | Self::Code | Self::Document(ChangeFile::Review) => true,
            Self::Document(_) => false,
        }
    }
}

/// As it is written behind `On`.
impl fmt::Display for Commented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document(file) => write!(f, "{}", file.path()),
            Self::File(path) => write!(f, "{CODE}/{path}"),
            Self::Code => f.write_str(CODE),
        }
    }
}

/// What is no document and no file of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no document of a change and no file of its code")]
pub struct NotCommentable;

impl FromStr for Commented {
    type Err = NotCommentable;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        use ChangeFile::{Clarifications, Proposal, Review, Spec, Tasks};
        if text == CODE {
            return Ok(Self::Code);
        }
        let inside = text.strip_prefix(CODE).and_then(|rest| rest.strip_prefix('/'));
        let path = RelPath::new(inside.unwrap_or(text)).map_err(|_| NotCommentable)?;
        if inside.is_some() {
            return Ok(Self::File(path));
        }
        let document = |file: &ChangeFile| {
            matches!(file, Proposal | Spec(_) | Tasks | Clarifications | Review)
        };
        let file = ChangeFile::from_path(&path).filter(document);
        file.map(Self::Document).ok_or(NotCommentable)
    }
}

impl Comment {
    /// What it is on; none if that is nothing that agentd knows.
    pub fn commented(&self) -> Option<Commented> {
        self.on.as_str().parse().ok()
    }
}

/// How a comment was resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Who did.
    pub by: Line,
    /// When.
    pub date: Option<Stamp>,
}

/// What a comment is about, in its document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Anchor {
    /// The document as a whole.
    #[default]
    Document,
    /// What stands under a heading.
    Heading(Line),
    /// A requirement of a spec.
    Requirement(RequirementId),
    /// A task.
    Task(TaskId),
    /// A line of the text, from 1.
    Line(u32),
    /// A line of the text as it was before the change, from 1.
    Removed(u32),
    /// An issue of a review, by its number over the rounds.
    Issue(u32),
}

/// `heading Why`, `R1`, `task 1.1`, `line 12`, `removed line 12`, `I3`; nothing for the whole
/// document.
impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document => Ok(()),
            Self::Heading(title) => write!(f, "heading {title}"),
            Self::Requirement(id) => write!(f, "{id}"),
            Self::Task(id) => write!(f, "task {id}"),
            Self::Line(line) => write!(f, "line {line}"),
            Self::Removed(line) => write!(f, "removed line {line}"),
            Self::Issue(number) => write!(f, "I{number}"),
        }
    }
}

impl FromStr for Anchor {
    type Err = std::convert::Infallible;

    /// Never fails: what is of no known form is taken for the title of a heading.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = Line::new(text);
        let text = text.as_str();
        let behind = |word: &str| text.strip_prefix(word).map(str::trim);
        Ok(if text.is_empty() {
            Self::Document
        } else if let Some(title) = behind("heading ") {
            Self::Heading(Line::new(title))
        } else if let Some(id) = behind("task ").and_then(|id| id.parse().ok()) {
            Self::Task(id)
        } else if let Some(line) = behind("line ").and_then(|line| line.parse().ok()) {
            Self::Line(line)
        } else if let Some(line) = behind("removed line ").and_then(|line| line.parse().ok()) {
            Self::Removed(line)
        } else if let Some(number) = text.strip_prefix('I').and_then(|n| n.parse().ok()) {
            Self::Issue(number)
        } else if let Ok(id) = text.parse() {
            Self::Requirement(id)
        } else {
            Self::Heading(Line::new(text))
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FrontmatterFields {
    change_id: Option<String>,
    r#type: Option<String>,
    last_number: Option<u32>,
}

/// Reads comments.
pub fn parse(text: &str) -> Parsed<Comments> {
    let outline = Outline::scan(text);
    let mut diagnostics = super::structure_diagnostics(&outline);
    let front: FrontmatterFields = frontmatter::read(text, &outline, &mut diagnostics);
    let top = frontmatter_place(&outline);
    if let Some(kind) = front.r#type.as_deref().filter(|kind| *kind != "comments") {
        diagnostics.push(rules::WRONG_TYPE.at(top, format!("type is `{kind}`, not `comments`")));
    }
    let mut comments: Vec<Comment> = Vec::new();
    for section in outline.sections(text, 2, outline.body(text)) {
        let labels = fields(text, section.body);
        let labelled = |name: &str| labels.iter().find(|f| f.is(&[name]));
        let line = |name: &str| labelled(name).map(fields::Field::line).unwrap_or_default();
        let date = |name: &str| line(name).as_str().parse().ok();
        let number = section.title.trim_start_matches(['C', 'c']).parse().ok();
        let next = u32::try_from(comments.len()).unwrap_or(u32::MAX).saturating_add(1);
        let resolved = line("Status").as_str().eq_ignore_ascii_case("resolved");
        let Ok(at) = line("At").as_str().parse();
        let answers = line("Answers");
        let answers = answers.as_str().trim_start_matches(['C', 'c']).parse().ok();
        comments.push(Comment {
            number: number.unwrap_or(next),
            on: line("On"),
            at,
            under: line("Under"),
            quote: line("Quote"),
            answers,
            by: line("By"),
            date: date("Date"),
            text: labelled("Text").map(fields::Field::prose).unwrap_or_default(),
            resolved: resolved
                .then(|| Resolved { by: line("Resolved by"), date: date("Resolved at") }),
        });
    }
    let change_id = read_id(front.change_id.as_ref(), &rules::BAD_ID, top, &mut diagnostics);
    let last_number = front.last_number.unwrap_or(0);
    Parsed { value: Comments { change_id, comments, last_number }, diagnostics }
}

/// Writes comments as agentd does.
pub fn render(comments: &Comments) -> String {
    let mut out = String::from("---\n");
    if let Some(id) = &comments.change_id {
        let _ = writeln!(out, "change_id: {}", scalar(id.as_str()));
    }
    out.push_str("type: comments\n");
    if comments.last_number > 0 {
        let _ = writeln!(out, "last_number: {}", comments.last_number);
    }
    out.push_str("---\n\n# Comments\n\n");
    for comment in &comments.comments {
        let _ = write!(out, "## C{}\n\n", comment.number);
        fields::push_line(&mut out, "On", &comment.on);
        if comment.at != Anchor::Document {
            fields::push_line(&mut out, "At", &comment.at);
        }
        for (name, value) in [("Under", &comment.under), ("Quote", &comment.quote)] {
            if !value.is_empty() {
                fields::push_line(&mut out, name, value);
            }
        }
        if let Some(number) = comment.answers {
            fields::push_line(&mut out, "Answers", format!("C{number}"));
        }
        fields::push_line(&mut out, "By", &comment.by);
        if let Some(date) = comment.date {
            fields::push_line(&mut out, "Date", date);
        }
        let status = if comment.resolved.is_some() { "resolved" } else { "open" };
        fields::push_line(&mut out, "Status", status);
        if let Some(resolved) = &comment.resolved {
            fields::push_line(&mut out, "Resolved by", &resolved.by);
            if let Some(date) = resolved.date {
                fields::push_line(&mut out, "Resolved at", date);
            }
        }
        fields::push_prose(&mut out, "Text", &comment.text);
        out.push('\n');
    }
    super::end_with_one_newline(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spot_is_written_as_it_is_read() {
        for text in [
            "",
            "heading Why",
            "R12",
            "task 1.10",
            "line 7",
            "removed line 7",
            "I3",
            "heading R1",
            "heading I3",
            "heading line 7",
        ] {
            let Ok(spot) = text.parse::<Anchor>();
            assert_eq!(spot.to_string(), text);
        }
        let Ok(loose) = "What Changes".parse::<Anchor>();
        assert_eq!(loose, Anchor::Heading(Line::new("What Changes")));
    }

    #[test]
    fn what_is_commented_on_is_written_as_it_is_read() {
        for text in ["proposal.md", "specs/a.md", "REVIEW.md", "code/src/a.rs", "code"] {
            assert_eq!(text.parse::<Commented>().unwrap().to_string(), text);
        }
        for text in ["STATE.yaml", "x.md", "code/", "code/../x", "/etc/passwd", "codex", ""] {
            assert_eq!(text.parse::<Commented>(), Err(NotCommentable), "{text}");
        }
        assert!("code/x".parse::<Commented>().unwrap().is_code());
        assert!(!"tasks.md".parse::<Commented>().unwrap().is_code());
    }

    #[test]
    fn comments_typed_by_hand_are_read() {
        let text = "# Notes\n\n## C3\n* **On:** tasks.md\n* **At:** task data.1\n- Text: why\n  so?\n\n## x\n";
        let read = parse(text).value.comments;
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].number, read[1].number), (3, 2));
        assert_eq!(read[0].at, Anchor::Task("1.1".parse().unwrap()));
        assert_eq!(read[0].text, Prose::new("why\nso?"));
        assert!(read[0].resolved.is_none());
    }
}
