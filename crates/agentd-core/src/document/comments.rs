//! `comments.md`: what people have said about the documents of a change.
//!
//! Comments are made in the viewer, on a document or on a place in it. Open ones
//! are for the planner: they go into the prompt of the next reproposal.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::Deserialize;

use super::fields::{self, fields};
use super::{frontmatter_place, read_id};
use crate::diagnostic::Parsed;
use crate::frontmatter::{self, scalar};
use crate::ids::{ChangeId, RequirementId, TaskId};
use crate::outline::Outline;
use crate::rules;
use crate::stamp::Stamp;
use crate::text::{Line, Prose};

/// The comments on a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comments {
    /// The change, as the frontmatter says.
    pub change_id: Option<ChangeId>,
    /// The comments, oldest first.
    pub comments: Vec<Comment>,
}

impl Comments {
    /// The comments that nobody has resolved, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Comment> {
        self.comments.iter().filter(|comment| comment.resolved.is_none())
    }

    /// The number for the next comment: numbers are never used twice.
    pub fn next_number(&self) -> u32 {
        self.comments.iter().map(|c| c.number).max().unwrap_or(0).saturating_add(1)
    }
}

/// One comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Its number: `C1`, `C2`, …
    pub number: u32,
    /// The document, by its path in the change: `specs/auth-flow.md`.
    pub on: Line,
    /// The place in it.
    pub at: Anchor,
    /// Who made it.
    pub by: Line,
    /// When.
    pub date: Option<Stamp>,
    /// What it says.
    pub text: Prose,
    /// Who resolved it; an open comment has nobody.
    pub resolved: Option<Resolved>,
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
}

/// `heading Why`, `R1`, `task 1.1`, `line 12`; nothing for the whole document.
impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document => Ok(()),
            Self::Heading(title) => write!(f, "heading {title}"),
            Self::Requirement(id) => write!(f, "{id}"),
            Self::Task(id) => write!(f, "task {id}"),
            Self::Line(line) => write!(f, "line {line}"),
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
        comments.push(Comment {
            number: number.unwrap_or(next),
            on: line("On"),
            at,
            by: line("By"),
            date: date("Date"),
            text: labelled("Text").map(fields::Field::prose).unwrap_or_default(),
            resolved: resolved
                .then(|| Resolved { by: line("Resolved by"), date: date("Resolved at") }),
        });
    }
    let change_id = read_id(front.change_id.as_ref(), &rules::BAD_ID, top, &mut diagnostics);
    Parsed { value: Comments { change_id, comments }, diagnostics }
}

/// Writes comments as agentd does.
pub fn render(comments: &Comments) -> String {
    let mut out = String::from("---\n");
    if let Some(id) = &comments.change_id {
        let _ = writeln!(out, "change_id: {}", scalar(id.as_str()));
    }
    out.push_str("type: comments\n---\n\n# Comments\n\n");
    for comment in &comments.comments {
        let _ = write!(out, "## C{}\n\n", comment.number);
        fields::push_line(&mut out, "On", &comment.on);
        if comment.at != Anchor::Document {
            fields::push_line(&mut out, "At", &comment.at);
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
        for text in
            ["", "heading Why", "R12", "task 1.10", "line 7", "heading R1", "heading line 7"]
        {
            let Ok(spot) = text.parse::<Anchor>();
            assert_eq!(spot.to_string(), text);
        }
        let Ok(loose) = "What Changes".parse::<Anchor>();
        assert_eq!(loose, Anchor::Heading(Line::new("What Changes")));
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
