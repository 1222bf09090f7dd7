//! Comments: all of them on one page, those on a place beside it, and the form.

use agentd_core::document::comments::{Comment, Spot};
use agentd_core::layout::ChangeFile;
use agentd_core::rel_path::RelPath;

use super::change_page;
use crate::App;
use crate::html::{esc, time};
use crate::markdown;
use crate::subject::Subject;

pub(crate) fn comments_page(app: &App, subject: &Subject) -> String {
    let here = format!("{}/comments", subject.address());
    let mut out = String::from("<h1>Comments</h1>");
    if subject.is_open() {
        out.push_str("<p class=\"quiet\">Open comments go into the next reproposal. They are kept in <code>comments.md</code>.</p>");
    }
    let all = &subject.comments.comments;
    if all.is_empty() {
        out.push_str("<p class=\"empty\">Nobody has said anything yet. Each heading, requirement and task of a document has a button for it; each line has one in the source view.</p>");
    }
    let (open, resolved): (Vec<&Comment>, Vec<&Comment>) =
        all.iter().partition(|comment| comment.resolved.is_none());
    for (title, comments) in [("Open", open), ("Resolved", resolved)] {
        if comments.is_empty() {
            continue;
        }
        out.push_str(&format!("<h2>{title} <span class=\"count\">{}</span></h2>", comments.len()));
        for comment in comments {
            out.push_str(&card(subject, comment, Place::Listed, &here));
        }
    }
    change_page(app, subject, &here, "Comments", &out)
}

/// Where a comment is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Beside what it is about.
    Beside,
    /// In a list, so that it has to be said what it is about.
    Listed,
}

/// A comment.
pub(super) fn card(subject: &Subject, comment: &Comment, place: Place, here: &str) -> String {
    let number = comment.number;
    let class = if comment.resolved.is_some() { "comment resolved" } else { "comment" };
    let mut out = format!(
        "<article class=\"{class}\" id=\"c{number}\"><header><strong>{}</strong>",
        esc(&comment.by)
    );
    if let Some(at) = comment.date {
        out.push_str(&time(at));
    }
    if place == Place::Listed {
        out.push_str(&format!(" on {}", link(subject, comment)));
    }
    if let Some(resolved) = &comment.resolved {
        out.push_str(&format!(" <span class=\"quiet\">resolved by {}</span>", esc(&resolved.by)));
    }
    out.push_str(&format!(
        "</header><div class=\"prose\">{}</div>",
        markdown::fragment(comment.text.as_str())
    ));
    if subject.is_open() {
        let (fate, label) = if comment.resolved.is_some() {
            ("open", "Open again")
        } else {
            ("resolved", "Resolve")
        };
        out.push_str(&format!(
            "<form method=\"post\" action=\"{}/comments/{number}\"><input type=\"hidden\" name=\"back\" value=\"{}#c{number}\">\
             <button name=\"fate\" value=\"{fate}\" class=\"small\">{label}<span class=\"visually-hidden\"> comment C{number}</span></button></form>",
            subject.address(),
            esc(here)
        ));
    }
    out + "</article>"
}

/// What a comment is about, as a link to it.
fn link(subject: &Subject, comment: &Comment) -> String {
    let file = RelPath::new(comment.on.as_str()).ok().and_then(|path| ChangeFile::from_path(&path));
    let name = match &comment.at {
        Spot::Document => comment.on.to_string(),
        Spot::Heading(title) => format!("{} · {title}", comment.on),
        spot @ (Spot::Requirement(_) | Spot::Task(_) | Spot::Line(_)) => {
            format!("{} · {spot}", comment.on)
        }
    };
    let Some(file) = file.filter(|file| subject.source(file).is_some()) else {
        return format!("<span>{}</span>", esc(&name));
    };
    let address = subject.document_address(&file);
    let address = match comment.at {
        Spot::Line(line) => format!("{address}?view=source#L{line}"),
        _ => format!("{address}#c{}", comment.number),
    };
    format!("<a href=\"{}\">{}</a>", esc(&address), esc(&name))
}

/// A button that opens the form for a comment on a place.
pub(super) fn button(file: &ChangeFile, at: &Spot, name: &str) -> String {
    format!(
        "<button type=\"button\" class=\"add-comment\" data-on=\"{}\" data-at=\"{}\" \
         title=\"Comment on {}\"><svg viewBox=\"0 0 16 16\" aria-hidden=\"true\"><path d=\"M2 3h12v8H7l-3 3v-3H2z\"/></svg>\
         <span class=\"visually-hidden\">Comment on {}</span></button>",
        esc(&file.path()),
        esc(at),
        esc(name),
        esc(name)
    )
}

/// The form, once per page; a button says what the comment is about.
pub(super) fn dialog(subject: &Subject) -> String {
    format!(
        "<dialog id=\"comment-form\" aria-labelledby=\"comment-title\"><form method=\"post\" action=\"{}/comments\">\
         <h2 id=\"comment-title\">Comment</h2><p class=\"quiet\" id=\"comment-about\"></p>\
         <input type=\"hidden\" name=\"on\"><input type=\"hidden\" name=\"at\"><input type=\"hidden\" name=\"back\">\
         <label>What would you like to say? <textarea name=\"text\" rows=\"6\" required maxlength=\"8000\"></textarea></label>\
         <div class=\"buttons\"><button class=\"primary\">Comment</button>\
         <button type=\"button\" class=\"cancel\">Cancel</button></div></form></dialog>",
        subject.address()
    )
}
