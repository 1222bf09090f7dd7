//! Markdown by people and agents as HTML, block by block.
//!
//! The text is not trusted. Raw HTML in it is shown as text, so that nothing can hide behind a
//! tag or a comment; images are replaced by their descriptions; and the result passes a
//! sanitizer as well. Each block is sanitized on its own, so that nothing in one block reaches
//! into the next.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use agentd_core::span::{LineIndex, Span};
use agentd_core::text::reveal;
use ammonia::{Builder, UrlRelative};
use maud::{Markup, PreEscaped};
use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

use super::html::slug;

/// One top-level part of a document.
pub(super) struct Block {
    /// Its HTML, sanitized.
    pub(super) html: Markup,
    /// The lines that it covers, from 1.
    pub(super) lines: (usize, usize),
    /// What it is the heading of.
    pub(super) heading: Option<Heading>,
}

/// A heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) level: u8,
    pub(super) title: String,
    /// Its place on the page.
    pub(super) anchor: String,
}

/// The extensions of Markdown that are understood.
fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// What the HTML of a text may contain. Links go to other sites or to a place on the page.
static SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = Builder::default();
    let tags = [
        "a",
        "b",
        "blockquote",
        "br",
        "code",
        "del",
        "div",
        "em",
        "figure",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "input",
        "kbd",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "span",
        "strong",
        "sub",
        "sup",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ];
    builder
        .tags(tags.into_iter().collect())
        .tag_attributes(
            [
                ("a", ["href"].into_iter().collect()),
                ("input", ["type", "checked", "disabled"].into_iter().collect()),
                ("ol", ["start"].into_iter().collect()),
            ]
            .into_iter()
            .collect(),
        )
        .generic_attributes(std::collections::HashSet::new())
        .allowed_classes(
            [
                ("figure", ["diagram"].into_iter().collect()),
                ("span", ["image", "path", "tag"].into_iter().collect()),
                ("div", ["table", "raw"].into_iter().collect()),
                ("code", ["mermaid"].into_iter().collect()),
            ]
            .into_iter()
            .collect(),
        )
        .url_schemes(["http", "https", "mailto"].into_iter().collect())
        .url_relative(UrlRelative::Custom(Box::new(on_this_page)))
        .link_rel(Some("noopener noreferrer"));
    builder
});

/// Of the addresses without a host, only places on the page itself are kept.
fn on_this_page(address: &str) -> Option<Cow<'_, str>> {
    address.starts_with('#').then_some(Cow::Borrowed(address))
}

/// A short text, such as the summary of a review, as HTML.
pub(super) fn fragment(text: &str) -> Markup {
    let blocks = blocks(text, &[Span::new(0, text.len())]);
    maud::html! {
        @for block in blocks {
            (block.html)
        }
    }
}

/// The first sentence of a text, shortened and without formatting: for a title.
pub(super) fn headline(text: &str) -> String {
    const MOST: usize = 80;
    let words = plain(&Parser::new_ext(text, options()).collect::<Vec<_>>());
    let sentence = words.split_inclusive(". ").next().unwrap_or_default().trim();
    let sentence = sentence.strip_suffix('.').unwrap_or(sentence);
    if sentence.chars().count() <= MOST {
        return sentence.to_owned();
    }
    let cut: String = sentence.chars().take(MOST).collect();
    let at_word = cut.rsplit_once(' ').map_or(cut.as_str(), |(kept, _)| kept);
    format!("{}…", at_word.trim_end_matches([',', ';', ':']))
}

/// The parts of a document inside the spans, in order.
pub(super) fn blocks(text: &str, within: &[Span]) -> Vec<Block> {
    let index = LineIndex::new(text);
    let mut anchors = BTreeSet::new();
    let mut blocks = Vec::new();
    for span in within {
        let part = span.of(text);
        let mut depth = 0_usize;
        let mut events: Vec<Event<'_>> = Vec::new();
        let mut place = Span::at(0);
        for (event, range) in Parser::new_ext(part, options()).into_offset_iter() {
            if depth == 0 && events.is_empty() {
                place = Span::new(range.start, range.end);
            }
            match &event {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
            events.push(event);
            if depth == 0 {
                let place = place.shifted(span.start);
                let end = place.end.max(place.start + 1) - 1;
                let lines = (index.line_column(place.start).0, index.line_column(end).0);
                blocks.push(block(std::mem::take(&mut events), lines, &mut anchors));
            }
        }
    }
    blocks
}

fn block(events: Vec<Event<'_>>, lines: (usize, usize), anchors: &mut BTreeSet<String>) -> Block {
    let heading = match events.first() {
        Some(Event::Start(Tag::Heading { level, .. })) => Some(*level),
        _ => None,
    };
    let heading = heading.map(|level| {
        let title = plain(&events);
        let wanted = slug(&title);
        let mut anchor = wanted.clone();
        let mut next = 2;
        while !anchors.insert(anchor.clone()) {
            anchor = format!("{wanted}-{next}");
            next += 1;
        }
        Heading { level: level_number(level), title, anchor }
    });
    let mut out = String::new();
    html::push_html(&mut out, tamed(events).into_iter());
    // The only HTML on any page that maud does not escape: the sanitizer has removed everything
    // that could run, load or lead anywhere.
    let html = PreEscaped(SANITIZER.clean(&out).to_string());
    Block { html, lines, heading }
}

fn level_number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// The words of some events.
fn plain(events: &[Event<'_>]) -> String {
    let mut out = String::new();
    for event in events {
        match event {
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => out.push_str(text),
            Event::SoftBreak | Event::HardBreak => out.push(' '),
            _ => {}
        }
    }
    out
}

/// The tags that people write in Markdown because there is no other way.
const INLINE: [&str; 13] = [
    "<br>", "<br/>", "<br />", "<sub>", "</sub>", "<sup>", "</sup>", "<kbd>", "</kbd>", "<b>",
    "</b>", "<i>", "</i>",
];

/// See [`reveal`].
fn revealed(text: CowStr<'_>) -> CowStr<'_> {
    match reveal(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(shown) => shown.into(),
    }
}

/// The same events without raw HTML, images, and links that lead nowhere.
fn tamed(events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let mut out = Vec::with_capacity(events.len());
    let mut links: Vec<bool> = Vec::new();
    for event in events {
        let event = match event {
            Event::Text(text) => Event::Text(revealed(text)),
            Event::Code(text) => Event::Code(revealed(text)),
            Event::Html(text) => Event::Html(revealed(text)),
            Event::InlineHtml(text) => Event::InlineHtml(revealed(text)),
            event => event,
        };
        match event {
            Event::Start(Tag::HtmlBlock) => out.push(raw("<div class=\"raw\"><pre>")),
            Event::End(TagEnd::HtmlBlock) => out.push(raw("</pre></div>")),
            Event::Html(text) => out.push(Event::Text(text)),
            Event::InlineHtml(tag) if INLINE.contains(&tag.to_ascii_lowercase().as_str()) => {
                out.push(Event::InlineHtml(tag));
            }
            Event::InlineHtml(text) => {
                out.extend([raw("<span class=\"tag\">"), Event::Text(text), raw("</span>")]);
            }
            Event::Start(Tag::Image { .. }) => out.push(raw("<span class=\"image\">")),
            Event::End(TagEnd::Image) => out.push(raw("</span>")),
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let known = ["http://", "https://", "mailto:", "#"];
                let leads =
                    known.iter().any(|start| dest_url.to_ascii_lowercase().starts_with(start));
                links.push(leads);
                out.push(if leads {
                    Event::Start(Tag::Link { link_type, dest_url, title, id })
                } else {
                    raw("<span class=\"path\">")
                });
            }
            Event::End(TagEnd::Link) => {
                let leads = links.pop().unwrap_or(true);
                out.push(if leads { Event::End(TagEnd::Link) } else { raw("</span>") });
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let language = info.split([' ', ',', '{']).next().unwrap_or_default();
                out.push(if language.eq_ignore_ascii_case("mermaid") {
                    raw("<figure class=\"diagram\"><pre><code class=\"mermaid\">")
                } else {
                    raw("<figure><pre><code>")
                });
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => {
                out.push(raw("<figure><pre><code>"));
            }
            Event::End(TagEnd::CodeBlock) => out.push(raw("</code></pre></figure>")),
            // A wide table scrolls by itself instead of the page.
            Event::Start(Tag::Table(alignments)) => {
                out.extend([raw("<div class=\"table\">"), Event::Start(Tag::Table(alignments))]);
            }
            Event::End(TagEnd::Table) => {
                out.extend([Event::End(TagEnd::Table), raw("</div>")]);
            }
            other => out.push(other),
        }
    }
    out
}

fn raw(html: &'static str) -> Event<'static> {
    Event::InlineHtml(CowStr::Borrowed(html))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is in a text, no element, attribute or address of its own comes out.
    #[test]
    fn nothing_in_a_text_becomes_active() {
        let attacks = [
            "<script>alert(1)</script>",
            "<SCRIPT SRC=//evil></SCRIPT>",
            "<img src=x onerror=alert(1)>",
            "text <img src=x onerror=alert(1)> text",
            "![x](http://evil/x.png)",
            "![x](javascript:alert(1))",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](\u{1}javascript:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "[x](vbscript:x)",
            "[x](//evil/)",
            "[x](/changes/a/decide)",
            "<javascript:alert(1)>",
            "[x]: javascript:alert(1)\n\n[x]",
            "<a href=\"javascript:alert(1)\">x</a>",
            "<iframe src=//evil></iframe>",
            "<svg onload=alert(1)>",
            "<style>*{display:none}</style>",
            "<div style=\"position:fixed\">x</div>",
            "<form action=//evil><input name=x></form>",
            "<base href=//evil>",
            "<meta http-equiv=refresh content=\"0;url=//evil\">",
            "<math><mtext></p><style><img src=x onerror=alert(1)></style>",
            "```mermaid\n</code><script>alert(1)</script>\n```",
            "```\"><script>alert(1)</script>\nx\n```",
            "# <img src=x onerror=alert(1)>",
            "| <script>alert(1)</script> |\n|---|\n| <img onerror=x src=y> |",
            "<!-- <script>alert(1)</script>",
            "- [x] <input autofocus onfocus=alert(1)>",
            "<b onclick=alert(1)>x</b>",
            "<br onload=alert(1)>",
        ];
        for attack in attacks {
            let html = fragment(attack).into_string();
            let lower = html.to_lowercase();
            for bad in [
                "<script", "<img", "<iframe", "<svg", "<style", "<form", "<base", "<meta", "<math",
                "href=\"j", "href=\"d", "href=\"v", "href=\"/", " on", " style=", "src=\"",
            ] {
                // Tags only: the text between them may contain anything.
                let tags = lower.split('<').skip(1).filter_map(|t| t.split_once('>'));
                let inside: String = tags.map(|(tag, _)| format!("<{tag}>")).collect();
                assert!(!inside.contains(bad), "{attack:?} gave {html}");
            }
        }
    }

    #[test]
    fn a_headline_is_one_sentence_in_words() {
        assert_eq!(headline("Let **people** in with `x`. And more."), "Let people in with x");
        assert_eq!(headline(""), "");
        let long = headline(&"word, ".repeat(60));
        assert!(long.ends_with("word…") && long.chars().count() <= 81, "{long}");
    }

    #[test]
    fn what_html_would_hide_is_shown() {
        let html =
            fragment("before\n\n<!-- hidden\n\n### R2: The system MUST obey\n\nrest").into_string();
        assert!(html.contains("hidden") && html.contains("R2: The system MUST obey"), "{html}");
    }

    #[test]
    fn blocks_know_their_lines_and_headings_their_place() {
        let text = "---\nx\n---\n# A\n\ntext\nmore\n\n## R1: B\n\n- a\n- b\n\n## R1: B\n";
        let body = Span::new(10, text.len());
        let blocks = blocks(text, &[body]);
        let lines: Vec<(usize, usize)> = blocks.iter().map(|b| b.lines).collect();
        assert_eq!(lines, [(4, 4), (6, 7), (9, 9), (11, 13), (14, 14)]);
        let anchors: Vec<&str> =
            blocks.iter().filter_map(|b| b.heading.as_ref()).map(|h| h.anchor.as_str()).collect();
        assert_eq!(anchors, ["h-a", "h-r1-b", "h-r1-b-2"]);
    }

    #[test]
    fn usual_markdown_is_rendered() {
        let html = fragment("**a** `b` [c](https://example.org)\n\n| x |\n|---|\n| y<br>z |\n")
            .into_string();
        assert!(html.contains("<strong>a</strong> <code>b</code>"), "{html}");
        assert!(html.contains("rel=\"noopener noreferrer\""), "{html}");
        assert!(html.contains("<td>y<br>z</td>"), "{html}");
        let diagram = fragment("```mermaid\ngraph TD; A-->B\n```\n").into_string();
        assert!(diagram.contains("<code class=\"mermaid\">graph TD; A--&gt;B"), "{diagram}");
    }
}
