//! Markdown by people and agents as HTML, block by block.
//!
//! The text is not trusted. Every tag that comes out is one that this file or the renderer writes,
//! and a text gives it nothing but the address of a link, whose scheme is checked. Raw HTML is
//! shown as text, so that nothing can hide behind a tag or a comment, and images are replaced by
//! their descriptions. Each block ends what it begins, so that nothing in one block reaches into
//! the next.

mod line;

use std::borrow::Cow;
use std::collections::BTreeSet;

use agentd_core::span::{LineIndex, Span};
use agentd_core::text::reveal;
use maud::{Markup, PreEscaped};
use pulldown_cmark::{
    BlockQuoteKind, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};
use pulldown_cmark_escape::escape_href;

use super::assets::Asset;
use super::highlight::Language;
use super::html::slug;

pub(super) use line::{Mark, diff_line};

/// One top-level part of a document.
pub(super) struct Block {
    /// Its HTML, with nothing active in it.
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
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_GFM
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
    // The only HTML on any page that maud does not escape: nothing in `tamed` events can run, load
    // or lead anywhere.
    Block { html: PreEscaped(out), lines, heading }
}

/// Our own style sheet, for a page that has no other file.
pub(super) fn style(sheet: &Asset) -> Markup {
    PreEscaped(format!("<style>{}</style>", sheet.text()))
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
const INLINE: [(&str, &str); 5] = [
    ("<b>", "</b>"),
    ("<i>", "</i>"),
    ("<kbd>", "</kbd>"),
    ("<sub>", "</sub>"),
    ("<sup>", "</sup>"),
];

/// See [`reveal`].
fn revealed(text: CowStr<'_>) -> CowStr<'_> {
    match reveal(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(shown) => shown.into(),
    }
}

/// An element that has begun.
#[derive(PartialEq)]
enum Open {
    /// The renderer ends it.
    Rendered(TagEnd),
    /// It begins and ends with tags of ours.
    Ours(&'static str),
    /// A tag of [`INLINE`] in the text. It may be left open there.
    Inline(&'static str),
}

impl Open {
    fn end<'a>(self) -> Event<'a> {
        match self {
            Self::Rendered(end) => Event::End(end),
            Self::Ours(end) | Self::Inline(end) => raw(end),
        }
    }
}

const LINK_END: &str = "</a>";

const CODE_END: &str = "</code></pre></figure>";

/// The same events without raw HTML, images, attributes, and links that lead nowhere.
fn tamed(events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let mut out = Vec::with_capacity(events.len());
    let mut open: Vec<Open> = Vec::new();
    // The language of the code block that is open.
    let mut code: Option<&'static Language> = None;
    for event in events {
        match event {
            Event::Start(tag) => {
                if let Tag::CodeBlock(kind) = &tag {
                    code = language(kind);
                }
                let (start, end) = begin(tag, &open);
                // A wide table scrolls by itself instead of the page.
                if end == Open::Rendered(TagEnd::Table) {
                    out.push(raw("<div class=\"table\">"));
                    open.push(Open::Ours("</div>"));
                }
                out.push(start);
                open.push(end);
            }
            Event::End(ended) => {
                while let Some(Open::Inline(_)) = open.last() {
                    out.extend(open.pop().map(Open::end));
                }
                out.extend(open.pop().map(Open::end));
                if ended == TagEnd::Table {
                    out.extend(open.pop().map(Open::end));
                }
            }
            Event::InlineHtml(tag) => inline(revealed(tag), &mut out, &mut open),
            Event::Code(text) => out.push(Event::Code(revealed(text))),
            Event::Text(text) if open.last() == Some(&Open::Ours(CODE_END)) => {
                colored(&revealed(text), code, &mut out);
            }
            Event::Text(text) if !open.contains(&Open::Ours(LINK_END)) => {
                linked(revealed(text), &mut out);
            }
            Event::FootnoteReference(label) => {
                let label = format!("[{label}]");
                out.extend([raw("<sup>"), Event::Text(revealed(label.into())), raw("</sup>")]);
            }
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => out.push(Event::Text(revealed(text))),
            Event::SoftBreak | Event::HardBreak | Event::Rule | Event::TaskListMarker(_) => {
                out.push(event);
            }
        }
    }
    out.extend(open.into_iter().rev().map(Open::end));
    out
}

/// How an element begins and ends, inside those that are open.
fn begin<'a>(tag: Tag<'a>, open: &[Open]) -> (Event<'a>, Open) {
    let ours = |start, end| (raw(start), Open::Ours(end));
    let rendered = |tag: Tag<'a>| {
        let end = tag.to_end();
        (Event::Start(tag), Open::Rendered(end))
    };
    match tag {
        Tag::HtmlBlock => ours("<div class=\"raw\"><pre>", "</pre></div>"),
        Tag::Image { .. } => ours("<span class=\"image\">", "</span>"),
        Tag::Link { dest_url, .. } => match address(&dest_url) {
            // An address in the text of a link would be a link of its own.
            Some(address) if !open.contains(&Open::Ours(LINK_END)) => {
                let start = format!("<a href=\"{address}\" rel=\"noopener noreferrer\">");
                (Event::InlineHtml(start.into()), Open::Ours(LINK_END))
            }
            _ => ours("<span class=\"path\">", "</span>"),
        },
        Tag::CodeBlock(kind) => {
            let mermaid = matches!(&kind, CodeBlockKind::Fenced(info)
                if info.split([' ', ',', '{']).next().is_some_and(|l| l.eq_ignore_ascii_case("mermaid")));
            let start = if mermaid {
                "<figure class=\"diagram\"><pre><code class=\"mermaid\">"
            } else {
                "<figure><pre><code>"
            };
            ours(start, CODE_END)
        }
        Tag::Heading { level, .. } => {
            rendered(Tag::Heading { level, id: None, classes: Vec::new(), attrs: Vec::new() })
        }
        Tag::BlockQuote(None) => rendered(Tag::BlockQuote(None)),
        Tag::BlockQuote(Some(kind)) => ours(alert(kind), "</blockquote>"),
        // The renderer would align with an attribute.
        Tag::Table(_) => rendered(Tag::Table(Vec::new())),
        Tag::Paragraph
        | Tag::List(_)
        | Tag::Item
        | Tag::TableHead
        | Tag::TableRow
        | Tag::TableCell
        | Tag::Emphasis
        | Tag::Strong
        | Tag::Strikethrough => rendered(tag),
        Tag::FootnoteDefinition(_) => ours("<div class=\"footnote\">", "</div>"),
        // Not in `options`.
        Tag::DefinitionList
        | Tag::DefinitionListTitle
        | Tag::DefinitionListDefinition
        | Tag::Superscript
        | Tag::Subscript
        | Tag::MetadataBlock(_) => ours("<div>", "</div>"),
    }
}

/// How the kinds of notes begin that GitHub knows.
fn alert(kind: BlockQuoteKind) -> &'static str {
    match kind {
        BlockQuoteKind::Note => "<blockquote class=\"note\"><p><strong>Note</strong></p>",
        BlockQuoteKind::Tip => "<blockquote class=\"note\"><p><strong>Tip</strong></p>",
        BlockQuoteKind::Important => "<blockquote class=\"note\"><p><strong>Important</strong></p>",
        BlockQuoteKind::Warning => "<blockquote class=\"warning\"><p><strong>Warning</strong></p>",
        BlockQuoteKind::Caution => "<blockquote class=\"warning\"><p><strong>Caution</strong></p>",
    }
}

fn language(kind: &CodeBlockKind<'_>) -> Option<&'static Language> {
    match kind {
        CodeBlockKind::Fenced(info) => Language::named(info.split([' ', ',', '{']).next()?),
        CodeBlockKind::Indented => None,
    }
}

/// The lines of a code block, with colors.
fn colored(text: &str, language: Option<&'static Language>, out: &mut Vec<Event<'_>>) {
    let Some(language) = language else {
        out.push(Event::Text(text.to_owned().into()));
        return;
    };
    let mut open = None;
    for line in text.split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        for (piece, text) in language.pieces(bare, &mut open) {
            let text = Event::Text(text.to_owned().into());
            match piece.class() {
                Some("hl-c") => out.extend([raw("<span class=\"hl-c\">"), text, raw("</span>")]),
                Some("hl-s") => out.extend([raw("<span class=\"hl-s\">"), text, raw("</span>")]),
                Some("hl-n") => out.extend([raw("<span class=\"hl-n\">"), text, raw("</span>")]),
                Some(_) => out.extend([raw("<span class=\"hl-k\">"), text, raw("</span>")]),
                None => out.push(text),
            }
        }
        if bare.len() < line.len() {
            out.push(Event::Text("\n".into()));
        }
    }
}

/// A text in which addresses are links.
fn linked<'a>(text: CowStr<'a>, out: &mut Vec<Event<'a>>) {
    let mut rest = &*text;
    let start = |rest: &str| {
        let starts = ["https://", "http://"].into_iter().filter_map(|start| rest.find(start));
        starts.min()
    };
    if start(rest).is_none() {
        out.push(Event::Text(text));
        return;
    }
    while let Some(at) = start(rest) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c: char| c.is_whitespace() || "<>\"'`|".contains(c));
        // What ends a sentence is no part of an address.
        let url =
            from[..end.unwrap_or(from.len())].trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
        out.push(Event::Text(before.to_owned().into()));
        match address(url).filter(|_| url.len() > "https://".len()) {
            Some(address) => {
                let link = format!("<a href=\"{address}\" rel=\"noopener noreferrer\">");
                let text = Event::Text(url.to_owned().into());
                out.extend([Event::InlineHtml(link.into()), text, raw(LINK_END)]);
            }
            None => out.push(Event::Text(url.to_owned().into())),
        }
        // At least the scheme, so that this ends.
        rest = &from[url.len().max(4)..];
    }
    out.push(Event::Text(rest.to_owned().into()));
}

/// The value for `href` of an address that leads to another site or to a place on the page. What
/// begins with one of these has no other scheme, however a browser reads the rest.
fn address(address: &str) -> Option<String> {
    let known = ["http://", "https://", "mailto:", "#"];
    let leads = known
        .iter()
        .any(|start| address.get(..start.len()).is_some_and(|a| a.eq_ignore_ascii_case(start)));
    let mut escaped = String::with_capacity(address.len());
    (leads && escape_href(&mut escaped, address).is_ok()).then_some(escaped)
}

/// A tag in a line of text: itself if it is harmless, and in its place, otherwise shown as text.
fn inline<'a>(tag: CowStr<'a>, out: &mut Vec<Event<'a>>, open: &mut Vec<Open>) {
    let lower = tag.to_ascii_lowercase();
    if ["<br>", "<br/>", "<br />"].contains(&lower.as_str()) {
        out.push(raw("<br>"));
    } else if let Some((start, end)) = INLINE.into_iter().find(|(start, _)| *start == lower) {
        out.push(raw(start));
        open.push(Open::Inline(end));
    } else if matches!(open.last(), Some(Open::Inline(end)) if *end == lower) {
        out.extend(open.pop().map(Open::end));
    } else {
        out.extend([raw("<span class=\"tag\">"), Event::Text(tag), raw("</span>")]);
    }
}

fn raw<'a>(html: &'static str) -> Event<'a> {
    Event::InlineHtml(CowStr::Borrowed(html))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that may come out, besides links and the starts of lists.
    const TAGS: &[&str] = &[
        "b",
        "blockquote",
        "blockquote class=\"note\"",
        "blockquote class=\"warning\"",
        "br",
        "br /",
        "code",
        "code class=\"mermaid\"",
        "del",
        "div class=\"footnote\"",
        "div class=\"raw\"",
        "div class=\"table\"",
        "em",
        "figure",
        "figure class=\"diagram\"",
        "h1",
        "h2",
        "h3",
        "hr /",
        "i",
        "kbd",
        "li",
        "ol",
        "p",
        "pre",
        "span class=\"hl-c\"",
        "span class=\"hl-k\"",
        "span class=\"hl-n\"",
        "span class=\"hl-s\"",
        "span class=\"image\"",
        "span class=\"path\"",
        "span class=\"tag\"",
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

    /// Fails unless each tag is known, attributes included, and ends where it has to.
    fn assert_harmless(text: &str) {
        let html = fragment(text).into_string();
        let mut open = Vec::new();
        for rest in html.split('<').skip(1) {
            let Some((tag, words)) = rest.split_once('>') else {
                panic!("{text:?} gave {html}");
            };
            assert!(!words.contains('>'), "{text:?} gave {html}");
            if let Some(end) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(end), "{text:?} gave {html}");
                continue;
            }
            let void = ["br", "br /", "hr /"].contains(&tag) || tag.starts_with("input ");
            let checkbox = "input disabled=\"\" type=\"checkbox\"";
            let known = TAGS.contains(&tag)
                || tag == format!("{checkbox}/")
                || tag == format!("{checkbox} checked=\"\"/");
            let start = tag.strip_prefix("ol start=\"").and_then(|n| n.strip_suffix('"'));
            let numbered = start.is_some_and(|n| n.parse::<u64>().is_ok());
            let leads = tag
                .strip_prefix("a href=\"")
                .and_then(|a| a.strip_suffix("\" rel=\"noopener noreferrer\""))
                .is_some_and(|address| {
                    let lower = address.to_lowercase();
                    let known = ["http://", "https://", "mailto:", "#"];
                    !address.contains(['"', '\'', ' ', '\t', '\n', '`'])
                        && known.iter().any(|start| lower.starts_with(start))
                });
            assert!(known || numbered || leads, "{text:?} gave <{tag}> in {html}");
            if leads {
                assert!(!open.contains(&"a"), "{text:?} gave a link in a link: {html}");
            }
            if !void {
                open.push(tag.split(' ').next().unwrap());
            }
        }
        assert_eq!(open, [""; 0], "{text:?} gave {html}");
    }

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
            "![x][y]\n\n[y]: http://evil/x.png \"t\"",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](\u{1}javascript:alert(1))",
            "[x](java&Tab;script:alert(1))",
            "[x](java&#10;script:alert(1))",
            "[x](&#106;avascript:alert(1))",
            "[x](<java\tscript:alert(1)>)",
            "[x](< javascript:alert(1)>)",
            "[x](\u{a0}javascript:alert(1))",
            "[x](javascript&colon;alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "[x](DATA:text/html;base64,PHNjcmlwdD4=)",
            "[x](vbscript:x)",
            "[x](file:///etc/passwd)",
            "[x](blob:http://evil/)",
            "[x](http:javascript:alert(1))",
            "[x](//evil/)",
            "[x](\\\\evil/)",
            "[x](/changes/a/decide)",
            "[x](?a=b)",
            "[x](https://evil/\"onclick=alert(1)\")",
            "[x](<https://evil/\" onclick=\"alert(1)>)",
            "[x](https://evil/'onclick='alert(1))",
            "[x](https://evil/&quot;&gt;&lt;script&gt;)",
            "[x](https://evil/ \"\\\" onclick=alert(1)\")",
            "[x](#\" onclick=\"alert(1))",
            "<javascript:alert(1)>",
            "<https://evil/\"onclick=alert(1)>",
            "<a@evil.example>",
            "[x]: javascript:alert(1)\n\n[x]",
            "[x]: <java\tscript:alert(1)> 'onclick=alert(1)'\n\n[x] [x][] [y][x]",
            "[^1]\n\n[^1]: [x](javascript:alert(1)) <script>",
            "[![a [b](http://in)](c)](http://out)",
            "[a <https://in> b](https://out)",
            "[a <b>b](http://out) c</b>",
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
            "~~~ mermaid\" onclick=alert(1)\nx\n~~~",
            "# <img src=x onerror=alert(1)>",
            "# a {#id .class onclick=alert(1)}",
            "| <script>alert(1)</script> |\n|:-:|\n| <img onerror=x src=y> |",
            "<!-- <script>alert(1)</script>",
            "<?php x ?> <!DOCTYPE x> <![CDATA[ x ]]>",
            "- [x] <input autofocus onfocus=alert(1)>",
            "- [ ] a\n- b <kbd>\n  - c\n\n  </kbd>",
            "7. a <sub>\n8. b</sub>",
            "> [!NOTE]\n> <b>a",
            "> [!WARNING]\n> <script>alert(1)</script>",
            "```rust\n\"</code><script>alert(1)</script>\" // </span>\n```",
            "```js\n/* <img onerror=x src=y>\n\n```\n*/",
            "see https://evil/\"onclick=alert(1) and http://x'onclick='y",
            "https://evil/<script>alert(1)</script>",
            "http:// https:// http:",
            "a[^1] b[^x\"><script>]\n\n[^1]: one <b>\n[^x\"><script>]: two",
            "$$a$$ ^b^ ~c~ ~~d~~ [[e]]",
            "---\na: b\n---\n\nterm\n: definition",
            "<b onclick=alert(1)>x</b>",
            "<br onload=alert(1)>",
            "</div></div></main><b>",
            "a <b> b </i> c </B> d </b>",
            "<b><i>a</b></i> *<sup>b* </sup>",
            "a\\\nb <br> c <br/> d <BR /> e\n\n***",
            "\0<\0b>&lt;script&gt;&#60;script&#62;",
        ];
        for attack in attacks {
            assert_harmless(attack);
            for other in attacks {
                assert_harmless(&format!("{attack}{other}"));
                assert_harmless(&format!("{attack}\n{other}"));
            }
        }
    }

    #[test]
    fn a_tag_that_is_left_open_ends_with_its_block() {
        let html = |text: &str| fragment(text).into_string();
        assert_eq!(html("a <b>b\n\nc"), "<p>a <b>b</b></p>\n<p>c</p>\n");
        assert_eq!(
            html("*a <sub>b* c</sub>"),
            "<p><em>a <sub>b</sub></em> c<span class=\"tag\">&lt;/sub&gt;</span></p>\n"
        );
        assert_eq!(html("</i><B>a</B>"), "<p><span class=\"tag\">&lt;/i&gt;</span><b>a</b></p>\n");
    }

    #[test]
    fn links_lead_to_other_sites_and_places_on_the_page() {
        let html = |text: &str| fragment(text).into_string();
        let rel = "rel=\"noopener noreferrer\"";
        for address in
            ["https://example.org/?a=1&b=2#c", "HTTP://example.org", "mailto:a@b.c", "#d"]
        {
            let escaped = address.replace('&', "&amp;");
            assert_eq!(
                html(&format!("[x]({address} \"title\")")),
                format!("<p><a href=\"{escaped}\" {rel}>x</a></p>\n")
            );
        }
        for address in ["src/lib.rs", "/", "../a", "http:x", "javascript:x", "héé"] {
            assert_eq!(html(&format!("[x]({address})")), "<p><span class=\"path\">x</span></p>\n");
        }
    }

    #[test]
    fn bare_addresses_are_links_and_code_has_colors() {
        let html = |text: &str| fragment(text).into_string();
        let shown = html("See https://example.org/a?b=1. And (http://x.y).");
        let link = |a: &str| format!("<a href=\"{a}\" rel=\"noopener noreferrer\">{a}</a>");
        let expected = format!(
            "<p>See {}. And ({}).</p>\n",
            link("https://example.org/a?b=1"),
            link("http://x.y")
        );
        assert_eq!(shown, expected);
        let code = html("```rust\nlet x = 1; // <b>\n```\n");
        let expected = "<figure><pre><code><span class=\"hl-k\">let</span> x = \
                        <span class=\"hl-n\">1</span>; <span class=\"hl-c\">// &lt;b&gt;</span>\n</code></pre></figure>";
        assert_eq!(code, expected);
        let note = html("> [!NOTE]\n> Read this.\n");
        assert!(
            note.starts_with("<blockquote class=\"note\"><p><strong>Note</strong></p>"),
            "{note}"
        );
        let foot = html("a[^1]\n\n[^1]: why\n");
        assert!(
            foot.contains("<sup>[1]</sup>") && foot.contains("<div class=\"footnote\">"),
            "{foot}"
        );
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
