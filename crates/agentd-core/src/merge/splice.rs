//! Changes to a text that leave everything between them byte for byte.

use super::parts::trimmed;
use crate::frontmatter::newline_of;
use crate::span::Span;

/// A list of changes to one text.
#[derive(Debug, Default)]
pub(super) struct Splice {
    edits: Vec<Edit>,
}

#[derive(Debug)]
struct Edit {
    span: Span,
    order: Order,
    text: String,
}

/// What comes first where several changes are made at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    /// The text of a piece that had none.
    Body,
    /// A scenario at the end of a requirement.
    Nested,
    /// A whole piece, by its section and its number there.
    Block(Section, u32),
    /// Something that is there is replaced or removed.
    Replace,
}

/// The order of sections that do not stand in the text yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    Overview,
    Requirements,
    Criteria,
    Other,
}

impl Splice {
    /// Puts a text in the place of another.
    pub(super) fn replace(&mut self, span: Span, text: &str) {
        self.edits.push(Edit { span, order: Order::Replace, text: text.to_owned() });
    }

    /// Puts lines between the others, with a blank line on either side.
    pub(super) fn insert(&mut self, at: usize, order: Order, text: &str) {
        let text = trimmed(text, Span::new(0, text.len())).of(text).to_owned();
        self.edits.push(Edit { span: Span::at(at), order, text });
    }

    /// Takes out whole lines.
    pub(super) fn remove(&mut self, span: Span) {
        self.replace(span, "");
    }

    /// The text with all changes, which keep its line ends.
    pub(super) fn apply(mut self, text: &str) -> String {
        // Stable: what was said first comes first.
        self.edits.sort_by_key(|edit| (edit.span.start, edit.order));
        let newline = newline_of(text);
        let native = |text: &str| match newline {
            "\r\n" => text.replace("\r\n", "\n").replace('\n', "\r\n"),
            _ => text.replace("\r\n", "\n"),
        };
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for edit in &self.edits {
            // A piece inside of one that goes is gone with it.
            if edit.span.start < at {
                continue;
            }
            out.push_str(&text[at..edit.span.start]);
            at = edit.span.end;
            if edit.order == Order::Replace {
                out.push_str(&native(&edit.text));
                if edit.text.is_empty() && at == text.len() {
                    let kept = out.trim_end().len();
                    out.truncate(kept);
                    out.push_str(newline);
                }
                continue;
            }
            end_with_blank_line(&mut out, newline);
            out.push_str(&native(&edit.text));
            out.push_str(newline);
            let rest = &text[at..];
            if !rest.trim().is_empty() && !rest.starts_with(['\r', '\n']) {
                out.push_str(newline);
            }
        }
        out.push_str(&text[at..]);
        out
    }
}

fn end_with_blank_line(out: &mut String, newline: &str) {
    if out.is_empty() {
        return;
    }
    if !out.ends_with('\n') {
        out.push_str(newline);
    }
    let above = out.trim_end_matches(['\r', '\n']);
    if out[above.len()..].matches('\n').count() < 2 {
        out.push_str(newline);
    }
}
