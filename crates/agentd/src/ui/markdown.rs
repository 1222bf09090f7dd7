//! Markdown as people read it in a terminal: headings, lists, tables, code and diffs, in lines that
//! fit.
//!
//! The reader is the one of the viewer (pulldown-cmark). Renderers for terminals exist (termimad),
//! with a reader of their own that knows less of Markdown, and with widths of their own; here both
//! are those of the rest of agentd. Nothing is hidden but agentd's own marks: other comments and HTML
//! are shown as they are.

mod spans;

use agentd_core::text::printable;
use anstyle::Style;
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use self::spans::{Span, lines_of, styled, width_of};
use super::measure::{fit, width};
use super::{BAD, BOLD, DIM, GOOD};

const ITALIC: Style = Style::new().italic();

/// Lines that are longer than this are hard to read, however wide the terminal is.
const READABLE: usize = 100;

/// The least that a column of a table has.
const LEAST_CELL: usize = 6;

/// Renders Markdown in lines of at most so many columns.
pub(crate) fn render(text: &str, columns: usize) -> String {
    let text = printable(text);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
    let mut page = Page::new(columns);
    for event in Parser::new_ext(&text, options) {
        page.take(event);
    }
    page.flush();
    let mut out = page.out;
    out.truncate(out.trim_end().len());
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// A list that is open.
struct List {
    /// The number of the next item; none for bullets.
    next: Option<u64>,
}

/// A table that is being read.
#[derive(Default)]
struct TableRows {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Span>>>,
}

struct Page {
    out: String,
    columns: usize,
    /// The text of the block that is open.
    line: Vec<Span>,
    style: Vec<Style>,
    lists: Vec<List>,
    quotes: usize,
    /// What stands in front of the first line of an item.
    bullet: Option<String>,
    heading: Option<HeadingLevel>,
    /// The language of the code that is open.
    code: Option<String>,
    table: Option<TableRows>,
    link: Option<String>,
    html: Option<String>,
    /// Whether blocks are kept apart by a blank line here.
    tight: bool,
}

impl Page {
    fn new(columns: usize) -> Self {
        Self {
            out: String::new(),
            columns,
            line: Vec::new(),
            style: Vec::new(),
            lists: Vec::new(),
            quotes: 0,
            bullet: None,
            heading: None,
            code: None,
            table: None,
            link: None,
            html: None,
            tight: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.code.is_some() => self.code_lines(&text),
            Event::Text(text) => self.push(&text),
            Event::Code(text) => self.push(&format!("`{text}`")),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(&text),
            Event::Html(text) => match &mut self.html {
                Some(html) => html.push_str(&text),
                None => self.html(&text),
            },
            Event::InlineHtml(text) => self.push(&text),
            Event::FootnoteReference(name) => self.push(&format!("[{name}]")),
            Event::SoftBreak => self.push(" "),
            Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.gap();
                let rule = "─".repeat(self.room().min(READABLE));
                self.write(&format!("{DIM}{rule}{DIM:#}"));
            }
            Event::TaskListMarker(done) => {
                let mark = if done { "[x] " } else { "[ ] " };
                match &mut self.bullet {
                    Some(bullet) => bullet.push_str(mark),
                    None => self.push(mark),
                }
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                self.heading = Some(level);
            }
            Tag::Paragraph => self.flush(),
            Tag::BlockQuote(_) => {
                self.flush();
                self.gap();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.gap();
                self.code = Some(match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                });
            }
            Tag::List(next) => {
                self.flush();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(List { next });
            }
            Tag::Item => {
                self.flush();
                let bullet = match self.lists.last_mut() {
                    Some(List { next: Some(number) }) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.bullet = Some(bullet);
            }
            Tag::Emphasis => self.style.push(ITALIC),
            Tag::Strong => self.style.push(BOLD),
            Tag::Strikethrough => self.style.push(Style::new().strikethrough()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
            }
            Tag::Table(alignments) => {
                self.flush();
                self.table = Some(TableRows { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell => self.line.clear(),
            Tag::HtmlBlock => {
                self.flush();
                self.html = Some(String::new());
            }
            Tag::FootnoteDefinition(name) => {
                self.flush();
                self.push(&format!("[{name}] "));
            }
            Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) | TagEnd::Paragraph | TagEnd::FootnoteDefinition => self.flush(),
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::CodeBlock => self.code = None,
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.bullet = None;
            }
            TagEnd::Item => {
                self.flush();
                // An item without text.
                if let Some(bullet) = self.bullet.take() {
                    self.bullet = Some(bullet);
                    self.line.push(Span { text: " ".to_owned(), style: Style::new() });
                    self.flush();
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.style.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                if let Some(address) = self.link.take() {
                    let said: String = self.line.iter().map(|span| &*span.text).collect();
                    if !address.is_empty() && !said.ends_with(&address) {
                        self.push(&format!(" ({address})"));
                    }
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.write_table(&table);
                }
            }
            TagEnd::HtmlBlock => {
                if let Some(html) = self.html.take() {
                    self.html(&html);
                }
            }
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn push(&mut self, text: &str) {
        let style = self
            .style
            .iter()
            .fold(Style::new(), |all, style| all.effects(all.get_effects() | style.get_effects()));
        self.line.push(Span { text: text.to_owned(), style });
    }

    /// Ends a line within a paragraph.
    fn break_line(&mut self) {
        let spans = std::mem::take(&mut self.line);
        self.wrapped(&spans);
        self.tight = true;
    }

    /// agentd's own marks are left out; everything else of that kind is shown as it is.
    fn html(&mut self, html: &str) {
        let lines: Vec<&str> = html.lines().filter(|line| !is_mark(line)).collect();
        let is_empty = lines.iter().all(|line| line.trim().is_empty());
        if !is_empty {
            self.gap();
            for line in lines {
                let line = fit(line, self.room());
                self.write(&format!("{DIM}{line}{DIM:#}"));
            }
        }
    }

    /// Writes the block that is open.
    fn flush(&mut self) {
        let spans = std::mem::take(&mut self.line);
        if spans.iter().all(|span| span.text.is_empty()) {
            return;
        }
        if let Some(level) = self.heading.take() {
            return self.write_heading(level, &spans);
        }
        // Items of a list stand close together.
        if self.lists.is_empty() && !self.tight {
            self.gap();
        }
        self.tight = false;
        self.wrapped(&spans);
    }

    fn write_heading(&mut self, level: HeadingLevel, spans: &[Span]) {
        self.gap();
        let bold: Vec<Span> = spans
            .iter()
            .map(|span| Span { text: span.text.clone(), style: span.style.bold() })
            .collect();
        let lines = lines_of(&bold, self.room().min(READABLE));
        let longest = lines.iter().map(|line| width_of(line)).max().unwrap_or(0);
        for line in &lines {
            self.write(&styled(line));
        }
        // Headings look different from text without colors, too.
        let rule = match level {
            HeadingLevel::H1 => "═",
            HeadingLevel::H2 => "─",
            _ => return,
        };
        self.write(&format!("{DIM}{}{DIM:#}", rule.repeat(longest)));
    }

    fn wrapped(&mut self, spans: &[Span]) {
        let bullet = self.bullet.take();
        let indent = match &bullet {
            Some(bullet) => width(bullet),
            None if self.lists.is_empty() => 0,
            None => 2,
        };
        let room = self.room().min(READABLE).saturating_sub(indent).max(LEAST_CELL);
        for (index, line) in lines_of(spans, room).iter().enumerate() {
            let before = match &bullet {
                Some(bullet) if index == 0 => bullet.clone(),
                _ => " ".repeat(indent),
            };
            self.write(&format!("{before}{}", styled(line)));
        }
    }

    fn code_lines(&mut self, text: &str) {
        let is_diff = self.code.as_deref().is_some_and(|language| language.starts_with("diff"));
        let room = self.room().saturating_sub(4).max(LEAST_CELL);
        for line in text.lines() {
            let line = fit(&line.replace('\t', "    "), room);
            let style = if is_diff { diff_style(&line) } else { Style::new() };
            self.write(&format!("    {style}{line}{style:#}"));
        }
    }

    fn write_table(&mut self, table: &TableRows) {
        let count = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        if count == 0 {
            return;
        }
        self.gap();
        let natural = |at: usize| {
            let cells = table.rows.iter().filter_map(|row| row.get(at));
            cells.map(|cell| width_of(cell)).max().unwrap_or(0).max(1)
        };
        let mut widths: Vec<usize> = (0..count).map(natural).collect();
        let room = self.room().saturating_sub(2 * (count - 1));
        while widths.iter().sum::<usize>() > room {
            let Some(widest) = widths.iter_mut().filter(|width| **width > LEAST_CELL).max() else {
                break;
            };
            *widest -= 1;
        }
        for (index, row) in table.rows.iter().enumerate() {
            let cells: Vec<Vec<Vec<Span>>> = (0..count)
                .map(|at| row.get(at).map_or_else(Vec::new, |cell| lines_of(cell, widths[at])))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for part in 0..height {
                let line: Vec<String> = (0..count)
                    .map(|at| {
                        let spans = cells[at].get(part).map_or(&[][..], Vec::as_slice);
                        aligned(spans, widths[at], table.alignments.get(at), index == 0)
                    })
                    .collect();
                let line = line.join("  ");
                self.write(line.trim_end());
            }
            if index == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.write(&format!("{DIM}{}{DIM:#}", rules.join("  ")));
            }
        }
    }

    /// A blank line between blocks.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// The columns that are left of quotes and lists.
    fn room(&self) -> usize {
        let depth = self.lists.len().saturating_sub(1);
        self.columns.saturating_sub(2 * self.quotes + 2 * depth).max(LEAST_CELL)
    }

    fn write(&mut self, line: &str) {
        let depth = self.lists.len().saturating_sub(1);
        let quotes = format!("{DIM}│{DIM:#} ").repeat(self.quotes);
        let line = format!("{quotes}{}{line}", "  ".repeat(depth));
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }
}

/// Whether a line is one of the marks by which agentd finds its own parts of a document.
fn is_mark(line: &str) -> bool {
    let comment = line.trim().strip_prefix("<!-- ").unwrap_or_default();
    comment.trim_start_matches('/').starts_with("agentd:") && comment.ends_with("-->")
}

/// The look of a line of a diff.
pub(crate) fn diff_style(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'+') if !line.starts_with("+++") => GOOD,
        Some(b'-') if !line.starts_with("---") => BAD,
        Some(b'@') => DIM,
        _ if line.starts_with("+++") || line.starts_with("---") || line.starts_with("diff ") => {
            BOLD
        }
        _ => Style::new(),
    }
}

fn aligned(spans: &[Span], columns: usize, side: Option<&Alignment>, is_head: bool) -> String {
    let text = if is_head {
        let bold = spans.iter().map(|span| Span { style: span.style.bold(), ..span.clone() });
        styled(&bold.collect::<Vec<_>>())
    } else {
        styled(spans)
    };
    let free = columns.saturating_sub(width_of(spans));
    match side {
        Some(Alignment::Right) => format!("{}{text}", " ".repeat(free)),
        Some(Alignment::Center) => {
            format!("{}{text}{}", " ".repeat(free / 2), " ".repeat(free - free / 2))
        }
        Some(Alignment::Left | Alignment::None) | None => format!("{text}{}", " ".repeat(free)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(text: &str, columns: usize) -> String {
        anstream::adapter::strip_str(&render(text, columns)).to_string()
    }

    #[test]
    fn a_document_is_readable_without_its_marks() {
        let text = "# Change: add-oauth\n\n## Summary\n\nLet people sign in with **GitHub**, \
                    or `codex`.\n\n- one that is rather long and wraps\n- two\n  1. first\n  2. second\n\n\
                    - [x] 1.1 Store it\n- [ ] 1.2 Tell it\n\n<!-- agentd:review abc -->\n\n> quoted\n\n<!-- /agentd:review abc -->\n\n\
                    ```diff\n+ added\n- removed\n```\n\n| Task | Cost |\n|---|---:|\n| one | $0.10 |\n\n\
                    <!-- seen -->\n\nSee [the docs](https://example.org).\n";
        let expected = "\
Change: add-oauth
═════════════════

Summary
───────

Let people sign in with
GitHub, or `codex`.

• one that is rather long and
  wraps
• two
  1. first
  2. second
• [x] 1.1 Store it
• [ ] 1.2 Tell it

│ quoted

    + added
    - removed

Task   Cost
────  ─────
one   $0.10

<!-- seen -->

See the docs
(https://example.org).
";
        assert_eq!(plain(text, 30), expected);
    }

    #[test]
    fn wide_scripts_and_tables_fit() {
        let text = "新增密碼登入：使用者必須輸入電子郵件與密碼。\n\n| 名稱 | 說明 |\n|---|---|\n| 登入 | 使用者輸入電子郵件與密碼，五次失敗後鎖定 |\n";
        let expected = "\
新增密碼登入：使用者必
須輸入電子郵件與密碼。

名稱  說明
────  ────────────────
登入  使用者輸入電子郵
      件與密碼，五次失
      敗後鎖定
";
        assert_eq!(plain(text, 22), expected);
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide(text in "([-#>|*`1. ]{0,3}[a-z新 ]{0,12}[|\n]{0,2}){0,12}", columns in 50_usize..120) {
            for line in plain(&text, columns).lines() {
                prop_assert!(width(line) <= columns, "{line:?} in {columns}");
            }
        }
    }
}
