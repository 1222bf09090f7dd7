//! The skeleton of a Markdown text: frontmatter, headings, code fences and
//! comments, with their places.
//!
//! Structure is carried by lines, deliberately simpler than `CommonMark`: an ATX
//! heading stands at the start of a line, a comment begins there, fences may be
//! indented. `CommonMark` would let an unclosed `<!--` or `<script>` in an agent's
//! sentence swallow every heading after it, and a document whose requirements
//! can be made invisible cannot be checked. One pass over the lines is also what
//! lets a thousand changes be validated in the time of a few greps.

use crate::span::Span;

/// A heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heading {
    /// How many `#`.
    pub level: u8,
    /// The whole line, without its line break.
    pub span: Span,
    /// The title, without `#` and spaces around it.
    pub title: Span,
}

/// A closed or unclosed code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// From the opening line to the closing line, line break included.
    pub span: Span,
    /// What stands behind the opening backticks (`yaml`, `mermaid`).
    pub info: Span,
    /// The lines between.
    pub content: Span,
    /// Whether a closing line was found.
    pub closed: bool,
}

/// The skeleton of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The lines between the two `---` at the top, if the text starts with one.
    pub frontmatter: Option<Frontmatter>,
    /// Where the body starts.
    pub body_start: usize,
    /// Headings outside code and comments, in order.
    pub headings: Vec<Heading>,
    /// Code blocks, in order.
    pub fences: Vec<Fence>,
    /// Comments that start a line, in order: from `<!--` to behind `-->`.
    pub comments: Vec<Span>,
}

/// The place of a frontmatter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frontmatter {
    /// The YAML text between the fences.
    pub content: Span,
    /// Whether the closing `---` was found. If not, the rest of the text is the content.
    pub closed: bool,
}

/// A heading with everything under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section<'t> {
    /// The heading.
    pub heading: Heading,
    /// Its title.
    pub title: &'t str,
    /// What stands under it, up to the next heading of the same or a higher level.
    pub body: Span,
    /// Heading and body.
    pub span: Span,
}

/// Longer fences are taken for one of this length, so that a text of ever shorter
/// unclosed fences is searched so many times at most.
const MAX_FENCE: usize = 64;

fn fence_marker(line: &str) -> Option<(u8, usize, &str)> {
    let bare = line.trim_start_matches([' ', '\t']);
    let marker = *bare.as_bytes().first()?;
    if marker != b'`' && marker != b'~' {
        return None;
    }
    let length = bare.bytes().take_while(|&b| b == marker).count();
    let rest = &bare[length..];
    // As in CommonMark, an info string of a backtick fence holds no backtick: ```a``` is inline code.
    (length >= 3 && !(marker == b'`' && rest.contains('`'))).then_some((
        marker,
        length.min(MAX_FENCE),
        rest,
    ))
}

fn closes(line: &str, marker: u8, length: usize) -> bool {
    fence_marker(line)
        .is_some_and(|(m, l, rest)| m == marker && l >= length && rest.trim().is_empty())
}

/// What a line is with regard to code fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// Ordinary text.
    Open,
    /// Part of a closed code block, its fences included.
    Code,
}

/// Separates code from text in a list of lines.
pub(crate) struct Fences;

impl Fences {
    /// The kind of every line. A fence that is never closed makes no code block.
    pub(crate) fn of_lines(lines: &[&str]) -> Vec<LineKind> {
        let mut kinds = vec![LineKind::Open; lines.len()];
        let mut hopeless = Unclosed::default();
        let mut i = 0;
        while i < lines.len() {
            if let Some((marker, length, _)) = fence_marker(lines[i]) {
                let shortest_unclosed = hopeless.fence(marker);
                if length < *shortest_unclosed {
                    let close = lines[i + 1..].iter().position(|line| closes(line, marker, length));
                    if let Some(offset) = close {
                        kinds[i..=i + 1 + offset].fill(LineKind::Code);
                        i += offset + 2;
                        continue;
                    }
                    *shortest_unclosed = length;
                }
            }
            i += 1;
        }
        kinds
    }
}

/// What is known never to be closed, so that a text full of openings is not
/// searched to its end for each of them: a fence for which no closing line was
/// found proves the same for every later one that is as long or longer.
struct Unclosed {
    backticks: usize,
    tildes: usize,
    comments: bool,
}

impl Default for Unclosed {
    fn default() -> Self {
        Self { backticks: usize::MAX, tildes: usize::MAX, comments: false }
    }
}

impl Unclosed {
    fn fence(&mut self, marker: u8) -> &mut usize {
        if marker == b'~' { &mut self.tildes } else { &mut self.backticks }
    }

    fn comment_end(&mut self, text: &str, from: usize) -> Option<usize> {
        if self.comments {
            return None;
        }
        let found = memchr::memmem::find(&text.as_bytes()[from..], b"-->");
        self.comments = found.is_none();
        found.map(|n| from + n + 3)
    }
}

struct Lines<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Lines<'t> {
    /// The line's start, its text without the line break, and the start of the next line.
    type Item = (usize, &'t str, usize);

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.text.len() {
            return None;
        }
        let start = self.at;
        let end = memchr::memchr(b'\n', &self.text.as_bytes()[start..]).map(|n| start + n);
        self.at = end.map_or(self.text.len(), |end| end + 1);
        let line = &self.text[start..end.unwrap_or(self.text.len())];
        Some((start, line.strip_suffix('\r').unwrap_or(line), self.at))
    }
}

/// The lines of a text with their places: start, text without line break, start of the next.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str, usize)> {
    Lines { text, at: 0 }
}

fn heading(start: usize, line: &str) -> Option<Heading> {
    let level = line.bytes().take_while(|&b| b == b'#').count();
    if level == 0 || level > 6 {
        return None;
    }
    let rest = &line[level..];
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return None;
    }
    let title = rest.trim();
    let title_start = start + level + (rest.len() - rest.trim_start().len());
    Some(Heading {
        level: u8::try_from(level).unwrap_or(6),
        span: Span::new(start, start + line.len()),
        title: Span::new(title_start, title_start + title.len()),
    })
}

impl Outline {
    /// Scans a text.
    pub fn scan(text: &str) -> Self {
        let mut outline = Self::default();
        let mut hopeless = Unclosed::default();
        let mut rest = Lines { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } };
        outline.body_start = rest.at;
        outline.scan_frontmatter(text, &mut rest);
        while let Some((start, line, next)) = rest.next() {
            match line.as_bytes().first() {
                Some(b'#') => outline.headings.extend(heading(start, line)),
                Some(b'<') if line.starts_with("<!--") => {
                    let close = hopeless.comment_end(text, start + 4);
                    let end = close.unwrap_or(start + line.len());
                    outline.comments.push(Span::new(start, end));
                    if end > next {
                        rest.at = memchr::memchr(b'\n', &text.as_bytes()[end..])
                            .map_or(text.len(), |n| end + n + 1);
                    }
                }
                Some(b'`' | b'~' | b' ' | b'\t') => {
                    if let Some((marker, length, info)) = fence_marker(line) {
                        outline.scan_fence(
                            &mut rest,
                            &mut hopeless,
                            (start, line, next),
                            (marker, length, info),
                        );
                    }
                }
                _ => {}
            }
        }
        outline
    }

    fn scan_frontmatter(&mut self, text: &str, rest: &mut Lines<'_>) {
        let begin = rest.at;
        match rest.next() {
            Some((_, line, content_start)) if line.trim_end() == "---" => {
                for (start, line, next) in (Lines { text, at: content_start }) {
                    if line.trim_end() == "---" {
                        let content = Span::new(content_start, start);
                        self.frontmatter = Some(Frontmatter { content, closed: true });
                        self.body_start = next;
                        rest.at = next;
                        return;
                    }
                }
                let content = Span::new(content_start, text.len());
                self.frontmatter = Some(Frontmatter { content, closed: false });
                rest.at = begin;
            }
            _ => rest.at = begin,
        }
    }

    fn scan_fence(
        &mut self,
        rest: &mut Lines<'_>,
        hopeless: &mut Unclosed,
        (start, line, content_start): (usize, &str, usize),
        (marker, length, info): (u8, usize, &str),
    ) {
        let info_start = start + line.len() - info.len();
        let trimmed = info.trim();
        let info_start = info_start + (info.len() - info.trim_start().len());
        let info = Span::new(info_start, info_start + trimmed.len());
        let shortest_unclosed = hopeless.fence(marker);
        if length < *shortest_unclosed {
            for (at, line, next) in (Lines { text: rest.text, at: content_start }) {
                if closes(line, marker, length) {
                    let content = Span::new(content_start, at);
                    self.fences.push(Fence {
                        span: Span::new(start, next),
                        info,
                        content,
                        closed: true,
                    });
                    rest.at = next;
                    return;
                }
            }
        }
        *shortest_unclosed = length.min(*shortest_unclosed);
        // Unclosed: only the line itself is set apart, so that what follows is still seen.
        let content = Span::at(content_start);
        self.fences.push(Fence {
            span: Span::new(start, content_start),
            info,
            content,
            closed: false,
        });
    }

    /// The sections of one level inside a range of the text.
    pub fn sections<'t>(&self, text: &'t str, level: u8, within: Span) -> Vec<Section<'t>> {
        let first = self.headings.partition_point(|h| h.span.start < within.start);
        let inside: Vec<&Heading> =
            self.headings[first..].iter().take_while(|h| h.span.start < within.end).collect();
        let mut sections = Vec::new();
        for (i, &&heading) in inside.iter().enumerate() {
            if heading.level != level {
                continue;
            }
            let end = inside[i + 1..]
                .iter()
                .find(|h| h.level <= level)
                .map_or(within.end, |h| h.span.start);
            let body_start = next_line(text, heading.span.end).min(end);
            sections.push(Section {
                heading,
                title: heading.title.of(text),
                body: Span::new(body_start, end),
                span: Span::new(heading.span.start, end),
            });
        }
        sections
    }

    /// The closed code blocks inside a range.
    pub(crate) fn fences_in(&self, within: Span) -> impl Iterator<Item = &Fence> {
        let first = self.fences.partition_point(|f| f.span.start < within.start);
        self.fences[first..].iter().take_while(move |f| f.span.start < within.end)
    }

    /// Whether a place is inside a code block.
    pub(crate) fn in_fence(&self, offset: usize) -> bool {
        let behind = self.fences.partition_point(|f| f.span.start <= offset);
        behind > 0 && offset < self.fences[behind - 1].span.end
    }

    /// The body of the text: everything behind the frontmatter.
    pub fn body(&self, text: &str) -> Span {
        Span::new(self.body_start, text.len())
    }
}

/// The start of the line after the one that holds `offset`.
pub(crate) fn next_line(text: &str, offset: usize) -> usize {
    memchr::memchr(b'\n', &text.as_bytes()[offset..]).map_or(text.len(), |n| offset + n + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn titles(text: &str) -> Vec<&str> {
        Outline::scan(text).headings.iter().map(|h| h.title.of(text)).collect()
    }

    #[test]
    fn headings_in_code_and_comments_do_not_count() {
        let text = "# A\n```\n# B\n```\n<!-- \n# C\n-->\n## D\n#E\n  # F\n";
        assert_eq!(titles(text), ["A", "D"]);
    }

    #[test]
    fn unclosed_fences_and_comments_hide_nothing() {
        assert_eq!(titles("# A\n```\n# B\n<!-- x\n# C\n"), ["A", "B", "C"]);
    }

    #[test]
    fn dashes_in_the_body_do_not_end_the_frontmatter() {
        let text = "---\na: |\n  ---\nb: 1\n---\n# T\n\n---\n\nx\n";
        let outline = Outline::scan(text);
        let front = outline.frontmatter.unwrap();
        assert_eq!(front.content.of(text), "a: |\n  ---\nb: 1\n");
        assert_eq!(titles(text), ["T"]);
        assert!(Outline::scan("x\n---\na\n---\n").frontmatter.is_none());
        assert!(!Outline::scan("---\na: 1\n# T\n").frontmatter.unwrap().closed);
    }

    #[test]
    fn windows_line_ends_and_a_byte_order_mark_are_read() {
        let text = "\u{feff}---\r\na: 1\r\n---\r\n# T\r\n```yaml\r\nx\r\n```\r\n";
        let outline = Outline::scan(text);
        assert!(outline.frontmatter.unwrap().closed);
        assert_eq!(titles(text), ["T"]);
        assert_eq!(outline.fences[0].info.of(text), "yaml");
        assert_eq!(outline.fences[0].content.of(text), "x\r\n");
    }

    #[test]
    fn sections_end_at_headings_of_their_level() {
        let text = "# T\n## A\na\n### A1\nx\n## B\n";
        let outline = Outline::scan(text);
        let sections = outline.sections(text, 2, outline.body(text));
        let bodies: Vec<_> = sections.iter().map(|s| (s.title, s.body.of(text))).collect();
        assert_eq!(bodies, [("A", "a\n### A1\nx\n"), ("B", "")]);
    }

    #[test]
    fn unclosed_openings_take_linear_time() {
        let text = "```a\n~~~~b\n<!-- c\n".repeat(100_000);
        assert!(Outline::scan(&text).fences.iter().filter(|f| !f.closed).count() > 0);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(Fences::of_lines(&lines).len(), lines.len());
    }

    proptest! {
        #[test]
        fn scanning_never_panics_and_spans_fit(text in "(---\n|[#`~<!> \\-]{0,5}|[a-zé]{0,3}|\r?\n|<!--|-->|```|\u{feff}){0,60}") {
            let outline = Outline::scan(&text);
            for heading in &outline.headings {
                prop_assert!(text.get(heading.title.range()).is_some());
            }
            for fence in &outline.fences {
                prop_assert!(text.get(fence.content.range()).is_some() && text.get(fence.info.range()).is_some());
            }
        }
    }
}
