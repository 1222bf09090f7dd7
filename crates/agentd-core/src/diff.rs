//! Differences between two texts: as `diff -u` shows them, and line by line with the words that
//! differ marked, for front ends to draw.

mod patch;
mod words;

use serde::Serialize;
use similar::{Algorithm, ChangeTag, DiffOp, TextDiff, capture_diff_slices, group_diff_ops};

use crate::outline::Outline;
use crate::span::LineIndex;

pub use patch::{FilePatch, patches};

/// How many unchanged lines are shown around a difference.
const CONTEXT: usize = 3;

/// Texts that differ in more lines than this are shown as removed and added: the search for what
/// they have in common would take seconds, and no document is that long.
const MOST_LINES: usize = 6000;

/// A unified diff of one file; empty where nothing differs. A side that is not there is
/// `/dev/null`, as git says it.
pub fn unified(path: &str, old: Option<&str>, new: Option<&str>) -> String {
    if old == new {
        return String::new();
    }
    let name = |side: char, text: Option<&str>| {
        text.map_or_else(|| "/dev/null".to_owned(), |_| format!("{side}/{path}"))
    };
    let diff = TextDiff::from_lines(old.unwrap_or_default(), new.unwrap_or_default());
    diff.unified_diff().context_radius(CONTEXT).header(&name('a', old), &name('b', new)).to_string()
}

/// How two texts differ: what changed, with a few lines around it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LineDiff {
    /// How many lines were added.
    pub added: usize,
    /// How many lines were removed.
    pub removed: usize,
    /// The pieces that differ, in order.
    pub hunks: Vec<Hunk>,
}

/// A piece of two texts that differs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Hunk {
    /// What it belongs to: the heading above it in Markdown, a function in code. May be empty.
    pub under: String,
    /// Its lines, with some unchanged ones around what differs.
    pub lines: Vec<DiffLine>,
}

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffLine {
    /// What happened to it.
    pub kind: LineKind,
    /// Its number in the old text, from 1, if it is there.
    pub old: Option<usize>,
    /// Its number in the new text, from 1, if it is there.
    pub new: Option<usize>,
    /// Its text without the line break, in pieces.
    pub parts: Vec<Part>,
    /// Whether it is in a code block of a Markdown text.
    pub is_code: bool,
}

/// What happened to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    /// Nothing.
    Same,
    /// It is only in the old text.
    Removed,
    /// It is only in the new text.
    Added,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The words.
    pub text: String,
    /// Whether they are what makes the line different. Where a whole line is, none are marked.
    pub changed: bool,
}

impl DiffLine {
    fn new(kind: LineKind, old: Option<usize>, new: Option<usize>, text: &str) -> Self {
        // Only how a line ends has changed in many files, which nobody could see.
        let text = text.trim_end_matches(['\n', '\r']).to_owned();
        Self { kind, old, new, parts: vec![Part { text, changed: false }], is_code: false }
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect()
    }
}

impl LineDiff {
    /// Whether the texts are the same, except for how their lines end.
    pub fn is_empty(&self) -> bool {
        self.hunks.is_empty()
    }

    /// The difference of hunks that were found elsewhere, with words marked.
    fn of(mut hunks: Vec<Hunk>) -> Self {
        for hunk in &mut hunks {
            words::mark(&mut hunk.lines);
        }
        let count = |kind| {
            let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.filter(|line| line.kind == kind).count()
        };
        Self { added: count(LineKind::Added), removed: count(LineKind::Removed), hunks }
    }
}

/// The difference between two Markdown texts.
pub fn markdown(old: &str, new: &str) -> LineDiff {
    let (before, after): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let (above, below) = (Structure::of(old), Structure::of(new));
    let hunks = group_diff_ops(operations(&before, &after), CONTEXT).into_iter().map(|ops| {
        let mut lines: Vec<DiffLine> =
            ops.iter().flat_map(|op| op.iter_changes(&before, &after)).map(line).collect();
        for line in &mut lines {
            line.is_code = match (line.new, line.old) {
                (Some(new), _) => below.is_code(new),
                (None, Some(old)) => above.is_code(old),
                (None, None) => false,
            };
        }
        let first = lines.iter().find(|line| line.kind != LineKind::Same);
        let added = lines.iter().find_map(|line| line.new.filter(|_| line.old.is_none()));
        let under = first.and_then(|line| match (line.new, line.old) {
            (Some(new), _) => below.above(new),
            // A heading that has another title now.
            (None, Some(old)) if above.is_at(old) && added.is_some() => below.above(added?),
            (None, Some(old)) => above.above(old),
            (None, None) => None,
        });
        Hunk { under: under.unwrap_or_default().to_owned(), lines }
    });
    LineDiff::of(hunks.collect())
}

fn line(change: similar::Change<&str>) -> DiffLine {
    let kind = match change.tag() {
        ChangeTag::Equal => LineKind::Same,
        ChangeTag::Delete => LineKind::Removed,
        ChangeTag::Insert => LineKind::Added,
    };
    let number = |index: Option<usize>| index.map(|index| index + 1);
    DiffLine::new(kind, number(change.old_index()), number(change.new_index()), change.value())
}

/// What turns some lines into others.
fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(new).take_while(same).count();
    let (rest_old, rest_new) = (&old[head..], &new[head..]);
    let tail = rest_old.iter().rev().zip(rest_new.iter().rev()).take_while(same).count();
    let differing = rest_old.len().max(rest_new.len()) - tail;
    if differing <= MOST_LINES {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let (old_len, new_len) = (rest_old.len() - tail, rest_new.len() - tail);
    let middle = DiffOp::Replace { old_index: head, old_len, new_index: head, new_len };
    let equal = |old_index, new_index, len| DiffOp::Equal { old_index, new_index, len };
    let end = equal(old.len() - tail, new.len() - tail, tail);
    let ops = [equal(0, 0, head), middle, end];
    ops.into_iter().filter(|op| !op.old_range().is_empty() || !op.new_range().is_empty()).collect()
}

/// The headings and code blocks of a text, by line.
struct Structure<'t> {
    headings: Vec<(usize, &'t str)>,
    /// The first and the last line of each block.
    blocks: Vec<(usize, usize)>,
}

impl<'t> Structure<'t> {
    fn of(text: &'t str) -> Self {
        let index = LineIndex::new(text);
        let outline = Outline::scan(text);
        let line = |offset| index.line_column(offset).0;
        let headings = outline.headings.iter();
        let headings = headings.map(|it| (line(it.span.start), it.title.of(text))).collect();
        let blocks = outline.fences.iter().filter(|fence| fence.closed);
        let blocks = blocks.map(|it| (line(it.span.start), line(it.span.end.max(1) - 1)));
        Self { headings, blocks: blocks.collect() }
    }

    /// Whether a line is in a code block, its fences included.
    fn is_code(&self, line: usize) -> bool {
        let count = self.blocks.partition_point(|(first, _)| *first <= line);
        self.blocks[..count].last().is_some_and(|(_, last)| line <= *last)
    }

    /// Whether a line is a heading.
    fn is_at(&self, line: usize) -> bool {
        self.headings.binary_search_by_key(&line, |(at, _)| *at).is_ok()
    }

    /// The last heading up to a line.
    fn above(&self, line: usize) -> Option<&'t str> {
        let count = self.headings.partition_point(|(at, _)| *at <= line);
        self.headings[..count].last().map(|(_, title)| *title)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_differences_are_shown_with_their_context() {
        let old = "1\n2\n3\n4\n5\n6\n";
        let expected = "--- a/x\n+++ b/x\n@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n+five\n 6\n";
        assert_eq!(unified("x", Some(old), Some(&old.replace('5', "five"))), expected);
        assert_eq!(unified("x", Some(old), Some(old)), "");
        let created = "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n";
        assert_eq!(unified("x", None, Some("a\n")), created);
    }

    /// A difference as text: `@` and the heading, then the lines, with `[` and `]` around marks.
    pub(super) fn shown(diff: &LineDiff) -> String {
        let mut out = String::new();
        for hunk in &diff.hunks {
            out.push_str(&format!("@{}\n", hunk.under));
            for line in &hunk.lines {
                out.push(match line.kind {
                    LineKind::Same => ' ',
                    LineKind::Removed => '-',
                    LineKind::Added => '+',
                });
                for part in &line.parts {
                    let (open, close) = if part.changed { ("[", "]") } else { ("", "") };
                    out.push_str(&format!("{open}{}{close}", part.text));
                }
                out.push('\n');
            }
        }
        out
    }

    fn check(old: &str, new: &str, expected: &str) {
        assert_eq!(shown(&markdown(old, new)), expected);
    }

    #[test]
    fn lines_are_compared_with_a_few_around_them() {
        check("a\nb\nc\n", "a\nx\nc\n", "@\n a\n-b\n+x\n c\n");
        check("a\nb\n", "a\nb\nc\n", "@\n a\n b\n+c\n");
        check("a\nb\nc\nd\n", "b\nd\ne\n", "@\n-a\n b\n-c\n d\n+e\n");
        check("", "<b>\n", "@\n+<b>\n");
        check("a\r\nb", "a\nb\n", "");
        let old: String = (0..40).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\n");
        let expected =
            "@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@\n 27\n 28\n 29\n-30\n 31\n 32\n 33\n";
        check(&old, &new, expected);
    }

    #[test]
    fn a_hunk_says_what_it_belongs_to() {
        let filler = "x\n".repeat(9);
        let old = format!("# A\n\n## R1: One\n\nold\n{filler}## R2: Two\n\ngone\n");
        let new = format!("# A\n\n## R1: First\n\nold\n{filler}## R2: Two\n");
        let expected = "@R1: First\n # A\n \n-## R1: [One]\n+## R1: [First]\n \n old\n x\n\
                        @R2: Two\n x\n x\n ## R2: Two\n-\n-gone\n";
        check(&old, &new, expected);
    }

    #[test]
    fn lines_have_their_numbers_on_both_sides() {
        let diff = markdown("a\nb\nc\n", "a\nc\nd\n");
        let numbers: Vec<_> = diff.hunks[0].lines.iter().map(|l| (l.old, l.new)).collect();
        let expected = [(Some(1), Some(1)), (Some(2), None), (Some(3), Some(2)), (None, Some(3))];
        assert_eq!(numbers, expected);
        assert_eq!((diff.added, diff.removed), (1, 1));
    }

    #[test]
    fn lines_of_code_blocks_are_known() {
        let diff = markdown("a\n```\nb\n```\nc\n", "a\n```\nx\n```\nd\n");
        let code: Vec<bool> = diff.hunks[0].lines.iter().map(|line| line.is_code).collect();
        assert_eq!(code, [false, true, true, true, true, false, false]);
    }

    #[test]
    fn texts_that_are_too_long_are_replaced_as_a_whole() {
        let lines = |word: &str| -> String {
            (0..MOST_LINES + 5).map(|n| format!("{word} {}\n", n % 7)).collect()
        };
        let (old, new) =
            (format!("same\n{}end\n", lines("a")), format!("same\n{}end\n", lines("b")));
        let diff = markdown(&old, &new);
        assert_eq!((diff.added, diff.removed), (MOST_LINES + 5, MOST_LINES + 5));
        assert_eq!(diff.hunks[0].lines.first().map(DiffLine::text).as_deref(), Some("same"));
        assert_eq!(diff.hunks[0].lines.last().map(DiffLine::text).as_deref(), Some("end"));
    }

    proptest! {
        /// The sides of a difference are the texts, no matter what is in them.
        #[test]
        fn both_sides_can_be_read_from_it(old in "([ab# .]{0,4}\n){0,12}", new in "([ab# .]{0,4}\n){0,12}") {
            let diff = markdown(&old, &new);
            let lines: Vec<&DiffLine> = diff.hunks.iter().flat_map(|hunk| &hunk.lines).collect();
            for line in lines {
                let text = line.text();
                if let Some(number) = line.old {
                    prop_assert_eq!(old.lines().nth(number - 1), Some(text.as_str()));
                }
                if let Some(number) = line.new {
                    prop_assert_eq!(new.lines().nth(number - 1), Some(text.as_str()));
                }
                prop_assert_eq!(line.kind == LineKind::Same, line.old.is_some() && line.new.is_some());
            }
            prop_assert_eq!(diff.is_empty(), old == new);
        }
    }
}
