//! One line of a Markdown text as it reads, with the words marked that make it different: what the
//! difference of two documents is shown with.

use std::ops::Range;

use agentd_core::diff::DiffLine;
use maud::{Markup, PreEscaped};
use pulldown_cmark::{Event, Parser, html};

use super::{Open, begin, inline, options, raw, revealed};

/// How words that differ are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Added,
    Removed,
}

impl Mark {
    fn tags(self) -> (&'static str, &'static str) {
        match self {
            Self::Added => ("<ins>", "</ins>"),
            Self::Removed => ("<del>", "</del>"),
        }
    }
}

/// A line of a difference, and its kind as a class: a heading, an item of a list, a row of a table,
/// or text. What stands in front of a heading or an item is left out.
pub(crate) fn diff_line(line: &DiffLine, mark: Mark) -> (&'static str, Markup) {
    let text = line.text();
    let mut at = 0;
    let mut changed: Vec<Range<usize>> = Vec::new();
    for part in &line.parts {
        let range = at..at + part.text.len();
        at = range.end;
        if part.changed {
            changed.push(range);
        }
    }
    let bare = text.trim_start();
    let (class, skip) = kind(line, bare);
    let skip = text.len() - bare.len() + skip;
    let events = words(&text[skip..], skip, &changed, mark);
    // Some lines are only there to be referred to, and read as nothing.
    let is_shown = |event: &Event<'_>| match event {
        Event::Text(text) | Event::Code(text) => !text.trim().is_empty(),
        _ => false,
    };
    if class == "code" || (!bare.is_empty() && !events.iter().any(is_shown)) {
        return ("code", marked_plain(line, mark));
    }
    let mut out = String::new();
    html::push_html(&mut out, events.into_iter());
    // Made of events that nothing in the text has made, as in `markdown::block`.
    (class, PreEscaped(out))
}

/// What a line is, and how much of it says so.
fn kind(line: &DiffLine, bare: &str) -> (&'static str, usize) {
    let level = bare.bytes().take_while(|byte| *byte == b'#').count();
    let is_number = |head: &str| head.len() <= 4 && head.bytes().all(|byte| byte.is_ascii_digit());
    match bare {
        _ if line.is_code || bare.starts_with('|') => ("code", 0),
        _ if (1..=6).contains(&level) && bare[level..].starts_with(' ') => ("heading", level + 1),
        _ if ["- ", "* ", "+ "].iter().any(|mark| bare.starts_with(mark)) => ("item", 2),
        // The number of an item is a part of what is said.
        _ if bare.split_once(". ").is_some_and(|(head, _)| is_number(head)) => ("code", 0),
        _ => ("text", 0),
    }
}

/// The line as it is written.
fn marked_plain(line: &DiffLine, mark: Mark) -> Markup {
    maud::html! {
        @for part in &line.parts {
            @if !part.changed {
                (part.text)
            } @else if mark == Mark::Added {
                ins { (part.text) }
            } @else {
                del { (part.text) }
            }
        }
    }
}

/// The events of a text without its paragraph, with marks around words that differ. `shift` is where
/// the text begins in its line.
fn words<'t>(text: &'t str, shift: usize, changed: &[Range<usize>], mark: Mark) -> Vec<Event<'t>> {
    let mut out = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                let (start, end) = begin(tag, &open);
                if is_inline(&end) {
                    out.push(start);
                }
                open.push(end);
            }
            Event::End(_) => {
                while let Some(Open::Inline(_)) = open.last() {
                    out.extend(open.pop().map(Open::end));
                }
                out.extend(open.pop().filter(is_inline).map(Open::end));
            }
            Event::Text(text) if range.len() == text.len() => {
                marked(&text, range.start + shift, changed, mark, &mut out);
            }
            Event::Text(text) | Event::Html(text) => out.push(Event::Text(revealed(text))),
            Event::Code(text) => {
                let hit = |it: &Range<usize>| {
                    it.start < range.end + shift && range.start + shift < it.end
                };
                let (start, end) = mark.tags();
                let is_marked = changed.iter().any(hit);
                out.extend(is_marked.then(|| raw(start)));
                out.push(Event::Code(revealed(text)));
                out.extend(is_marked.then(|| raw(end)));
            }
            Event::InlineHtml(tag) => inline(revealed(tag), &mut out, &mut open),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                out.push(Event::Text(revealed(text)));
            }
            Event::TaskListMarker(done) => {
                out.push(Event::Text(if done { "[x] " } else { "[ ] " }.into()));
            }
            Event::SoftBreak | Event::HardBreak | Event::Rule => out.push(Event::Text(" ".into())),
        }
    }
    out.extend(open.into_iter().rev().filter(is_inline).map(Open::end));
    out
}

/// Whether an element stands in a line. Others are what the line alone looks like by mistake.
fn is_inline(open: &Open) -> bool {
    use pulldown_cmark::TagEnd::{Emphasis, Strikethrough, Strong};
    match open {
        Open::Rendered(end) => matches!(end, Emphasis | Strong | Strikethrough),
        Open::Ours(end) => matches!(*end, "</a>" | "</span>"),
        Open::Inline(_) => true,
    }
}

/// A text, piece by piece.
fn marked(
    text: &str,
    start: usize,
    changed: &[Range<usize>],
    mark: Mark,
    out: &mut Vec<Event<'_>>,
) {
    let (open, close) = mark.tags();
    let mut at = 0;
    for range in changed {
        let from = range.start.saturating_sub(start).clamp(at, text.len());
        let to = range.end.saturating_sub(start).clamp(from, text.len());
        // Both are borders of the parts of the line, but the text may have been read differently.
        let (Some(before), Some(piece)) = (text.get(at..from), text.get(from..to)) else {
            continue;
        };
        if piece.is_empty() {
            continue;
        }
        out.push(Event::Text(revealed(before.to_owned().into())));
        out.extend([raw(open), Event::Text(revealed(piece.to_owned().into())), raw(close)]);
        at = to;
    }
    out.push(Event::Text(revealed(text[at..].to_owned().into())));
}

#[cfg(test)]
mod tests {
    use agentd_core::diff;

    use super::*;

    /// The lines of a difference that were removed and added.
    fn check(old: &str, new: &str, expected: &[&str]) {
        let diff = diff::markdown(old, new);
        let lines = diff.hunks.iter().flat_map(|hunk| &hunk.lines).filter_map(|line| {
            let mark = match line.kind {
                diff::LineKind::Same => return None,
                diff::LineKind::Removed => Mark::Removed,
                diff::LineKind::Added => Mark::Added,
            };
            let (class, html) = diff_line(line, mark);
            Some(format!("{class}: {}", html.into_string()))
        });
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_line_reads_as_it_is_rendered_with_its_words_marked() {
        check(
            "- A **session** ends after `12` hours.\n",
            "- A **session** ends after `8` hours, always.\n",
            &[
                "item: A <strong>session</strong> ends after <del><code>12</code></del> hours.",
                "item: A <strong>session</strong> ends after <ins><code>8</code></ins> hours<ins>, always</ins>.",
            ],
        );
        check(
            "### R1: One\n",
            "### R1: Two\n",
            &["heading: R1: <del>One</del>", "heading: R1: <ins>Two</ins>"],
        );
        check(
            "```\na *b*\n```\n",
            "```\na *c*\n```\n",
            &["code: a *<del>b</del>*", "code: a *<ins>c</ins>*"],
        );
    }

    #[test]
    fn a_line_stays_harmless_and_whole() {
        for text in [
            "<script>alert(1)</script>",
            "<b>x",
            "**x",
            "[x](javascript:alert(1)) [y](https://e.x)",
            "1. a",
            "    code",
            "> quote",
            "---",
            "| a | b |",
            "![i](http://evil/x.png)",
            "# ",
            "\\# x &amp; y",
            "",
        ] {
            let diff = diff::markdown("", &format!("{text}\n"));
            for line in diff.hunks.iter().flat_map(|hunk| &hunk.lines) {
                let html = diff_line(line, Mark::Added).1.into_string();
                assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
                assert!(!html.contains("javascript:") && !html.contains("<p>"), "{html}");
                assert_eq!(html.matches("<b>").count(), html.matches("</b>").count(), "{html}");
            }
        }
    }
}
