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
pub struct Aside<T>(pub T);

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Aside<T> {}

/// Where a part of a document was found.
pub type Place = Aside<Span>;

/// Finds lines and columns in a text. Both count from 1; columns count characters.
pub fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = memchr::memrchr(b'\n', before.as_bytes()).map_or(0, |at| at + 1);
    let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
    (line, before[line_start..].chars().count() + 1)
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
    }
}
