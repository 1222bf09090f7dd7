//! Where something stands in a text.

use std::ops::Range;

/// A range of bytes in one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The empty span at a place.
    pub fn at(start: usize) -> Self {
        Self { start, end: start }
    }

    /// The span as a range, for slicing.
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// The text of this span; empty where the span does not fit the text.
    pub fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or_default()
    }

    /// The same span, seen from a text that has `by` more bytes in front.
    #[must_use]
    pub fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }
}

/// Something noticed about a text that is no part of the document in it, such
/// as where a part stands. It is ignored when documents are compared, as `syn`
/// does with its spans: the same document read from two texts is the same.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uncompared<T>(pub T);

impl<T> PartialEq for Uncompared<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Uncompared<T> {}

/// Where a part of a document was found.
pub type Location = Uncompared<Span>;

/// Where a text is as a word of its own: `auth` is not in `auth-flow`.
pub(crate) fn word_in(text: &str, within: Span, word: &str) -> Option<Span> {
    let part = within.of(text);
    let joins = |c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == '/';
    let whole = |at: &usize| {
        !part[..*at].chars().next_back().is_some_and(joins)
            && !part[at + word.len()..].chars().next().is_some_and(joins)
    };
    let mut places = part.match_indices(word).map(|(at, _)| at).filter(|_| !word.is_empty());
    let at = within.start + places.find(whole)?;
    Some(Span::new(at, at + word.len()))
}

/// Finds lines and columns in a text. Both count from 1; columns count characters.
/// For more than a few places in one text, [`LineIndex`] is quicker.
pub fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let offset = on_boundary(text, offset);
    let before = &text[..offset];
    let line_start = memchr::memrchr(b'\n', before.as_bytes()).map_or(0, |at| at + 1);
    let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

fn on_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// The starts of the lines of a text, found once: a large document may have tens of
/// thousands of findings.
#[derive(Debug, Clone)]
pub struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    /// Looks for the lines.
    pub fn new(text: &'t str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes());
        Self { text, starts: std::iter::once(0).chain(ends.map(|end| end + 1)).collect() }
    }

    /// The line and column of a place, as [`line_column`] computes them.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let offset = on_boundary(self.text, offset);
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.line_start(line);
        (line, self.text[start..offset].chars().count() + 1)
    }

    /// Where a line starts; lines count from 1.
    pub fn line_start(&self, line: usize) -> usize {
        self.starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len())
    }

    /// The text of a line, without its line break.
    pub fn line(&self, line: usize) -> &'t str {
        let text = &self.text[self.line_start(line)..self.line_start(line + 1)];
        text.trim_end_matches(['\n', '\r'])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let text = "aé\nb";
        assert_eq!(line_column(text, 0), (1, 1));
        assert_eq!(line_column(text, 2), (1, 2), "inside é counts as its start");
        assert_eq!(line_column(text, 3), (1, 3));
        assert_eq!(line_column(text, 4), (2, 1));
        assert_eq!(line_column(text, 999), (2, 2));
        let index = LineIndex::new(text);
        for offset in 0..8 {
            assert_eq!(index.line_column(offset), line_column(text, offset), "{offset}");
        }
        assert_eq!([index.line(1), index.line(2), index.line(3)], ["aé", "b", ""]);
    }
}
