//! The documents of a change, one typed model each.
//!
//! Every document can be read (`parse`, which never fails but says what is
//! wrong), written (`render`), and read back: `parse(render(x)) == x`. Changes
//! to a document that exists are made in its text, so that everything around
//! them stays byte for byte.

pub mod answers;
pub mod changelog;
pub mod clarifications;
pub mod comments;
pub(crate) mod fields;
pub mod issue_fate;
pub mod part;
pub mod previous;
pub mod proposal;
pub mod questions;
pub mod rename;
pub mod review;
pub mod review_block;
pub mod rewrite;
pub mod round;
pub mod spec;
mod spec_list;
pub mod tasks;
pub mod tasks_edit;

use std::fmt::Write as _;

use crate::diagnostic::{Diagnostic, Rule};
use crate::language;
use crate::outline::{Outline, Section};
use crate::rules;
use crate::span::Span;
use crate::stamp::Stamp;
use crate::text::{Line, Prose, escape, unescape};

/// The section with an English title, in any case; where there is none, the first whose title says
/// the same in another language.
fn section<'t, 's>(sections: &'s [Section<'t>], name: &str) -> Option<&'s Section<'t>> {
    let english = sections.iter().find(|s| s.title.eq_ignore_ascii_case(name));
    english.or_else(|| sections.iter().find(|s| language::heading(s.title) == Some(name)))
}

/// The English title of each section as [`section`] finds it, or else its own.
pub(crate) fn english_titles<'t>(sections: &[Section<'t>]) -> Vec<&'t str> {
    let english = |own: &Section<'t>| {
        let name = language::heading(own.title)?;
        section(sections, name).is_some_and(|found| found.span == own.span).then_some(name)
    };
    sections.iter().map(|own| english(own).unwrap_or(own.title)).collect()
}

/// A section's text as prose.
fn prose_of(text: &str, span: Span) -> Prose {
    let raw = Prose::new(span.of(text));
    Prose::new(&unescape(raw.as_str()))
}

/// The title of the first heading of level 1, without a `Prefix:` of its own.
fn title(text: &str, outline: &Outline, prefix: &str) -> Option<(Line, Span)> {
    let heading = outline.headings.iter().find(|h| h.level == 1)?;
    let full = heading.title.of(text);
    let own = match full.get(..prefix.len()) {
        Some(start) if start.eq_ignore_ascii_case(prefix) => &full[prefix.len()..],
        _ => full,
    };
    Some((Line::new(own), heading.span))
}

/// Writes a level-2 section.
fn push_section(out: &mut String, heading: &str, body: &str) {
    out.push_str("## ");
    out.push_str(heading);
    out.push_str("\n\n");
    if !body.is_empty() {
        out.push_str(body.trim_end_matches('\n'));
        out.push_str("\n\n");
    }
}

/// Writes prose so that nothing in it is read as structure.
fn push_prose(out: &mut String, prose: &Prose) {
    if !prose.is_empty() {
        out.push_str(&escape(prose.as_str()));
        out.push_str("\n\n");
    }
}

/// Reads an id out of a frontmatter value.
fn read_id<T: std::str::FromStr>(
    value: Option<&String>,
    rule: &'static Rule,
    place: Span,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<T>
where
    T::Err: std::fmt::Display,
{
    match value?.parse() {
        Ok(id) => Some(id),
        Err(error) => {
            diagnostics.push(rule.at(place, error.to_string()));
            None
        }
    }
}

/// The place of the frontmatter, or of the top of the text.
pub(crate) fn frontmatter_place(outline: &Outline) -> Span {
    outline.frontmatter.map_or(Span::at(outline.body_start), |f| f.content)
}

/// What is wrong with the skeleton of any document.
fn structure_diagnostics(outline: &Outline) -> Vec<Diagnostic> {
    let unclosed = outline.fences.iter().filter(|fence| !fence.closed);
    // One unclosed fence is usually the cause of all that follow.
    unclosed
        .take(1)
        .map(|fence| rules::FENCE_UNCLOSED.at(fence.span, "this code block is never closed"))
        .collect()
}

/// Writes the two times of a frontmatter.
fn push_stamps(out: &mut String, created_at: Option<Stamp>, updated_at: Option<Stamp>) {
    for (key, stamp) in [("created_at", created_at), ("updated_at", updated_at)] {
        if let Some(stamp) = stamp {
            let _ = writeln!(out, "{key}: {stamp}");
        }
    }
}

fn end_with_one_newline(mut text: String) -> String {
    text.truncate(text.trim_end_matches('\n').len());
    text.push('\n');
    text
}
