//! Where comments belong in a text that was edited since.

use super::{Anchor, Comment};
use crate::outline::Outline;
use crate::span::LineIndex;
use crate::text::Line;

/// A text, prepared to find what comments are about.
///
/// Numbers of lines move with every edit above them, and words with an edit of their own, so the
/// words decide: where they are more than once, those under the same heading, and then the nearest.
/// Formatting and line breaks do not count, since a person may have picked the words on a page.
#[derive(Debug)]
pub struct CommentedText<'t> {
    text: &'t str,
    /// Letters and digits alone.
    letters: String,
    /// Where each line begins among them.
    begins: Vec<usize>,
    /// The lines and titles of the headings.
    headings: Vec<(usize, Line)>,
}

impl<'t> CommentedText<'t> {
    /// Prepares a text.
    pub fn new(text: &'t str) -> Self {
        let mut letters = String::new();
        let mut begins = Vec::new();
        for line in text.lines() {
            begins.push(letters.len());
            letters.extend(line.chars().filter(|c| c.is_alphanumeric()));
        }
        let index = LineIndex::new(text);
        let headings = Outline::scan(text).headings;
        let heading = |heading: &crate::outline::Heading| {
            (index.line_column(heading.span.start).0, Line::new(heading.title.of(text)))
        };
        let headings = headings.iter().map(heading).collect();
        Self { text, letters, begins, headings }
    }

    /// The line that a comment is about now, from 1; none if it is not about a line, or the words
    /// that it was about are gone.
    pub fn line_of(&self, comment: &Comment) -> Option<usize> {
        let (Anchor::Line(line) | Anchor::Removed(line)) = comment.at else { return None };
        let line = usize::try_from(line).ok()?;
        if comment.quote.is_empty() {
            return (line <= self.begins.len()).then_some(line);
        }
        let under = (!comment.under.is_empty()).then_some(&comment.under);
        self.lines_with(comment.quote.as_str()).into_iter().min_by_key(|at| {
            let elsewhere = under.is_some_and(|under| self.heading(*at) != Some(under));
            (elsewhere, at.abs_diff(line))
        })
    }

    /// The heading that a line is under, or is itself.
    pub fn heading(&self, line: usize) -> Option<&Line> {
        let count = self.headings.partition_point(|(at, _)| *at <= line);
        self.headings[..count].last().map(|(_, title)| title)
    }

    /// The lines, from 1, in which some words begin.
    fn lines_with(&self, words: &str) -> Vec<usize> {
        let wanted: String = words.chars().filter(|c| c.is_alphanumeric()).collect();
        if wanted.is_empty() {
            // A line of signs alone, such as a closing brace.
            let same = |(_, line): &(usize, &str)| line.trim() == words.trim();
            return (1..).zip(self.text.lines()).filter(same).map(|(number, _)| number).collect();
        }
        let line_of = |at: usize| self.begins.partition_point(|begin| *begin <= at);
        self.letters.match_indices(&wanted).map(|(at, _)| line_of(at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(at: &str, under: &str, quote: &str, text: &str, expected: Option<usize>) {
        let Ok(at) = at.parse();
        let (under, quote) = (Line::new(under), Line::new(quote));
        let comment = Comment { at, under, quote, ..Comment::default() };
        let found = CommentedText::new(text).line_of(&comment);
        assert_eq!(found, expected, "{comment:?} in {text:?}");
    }

    #[test]
    fn words_are_found_where_they_are_now() {
        let text = "# A\n\nWho is everybody?\n\n## B\n\nWho is **everybody**?\n}\n";
        check("line 3", "A", "Who is everybody?", text, Some(3));
        // Lines were added above, and the numbers are wrong.
        check("line 1", "", "Who is everybody?", text, Some(3));
        check("line 90", "", "Who is everybody?", text, Some(7));
        check("line 90", "A", "Who is everybody?", text, Some(3));
        check("line 1", "B", "is *everybody*", text, Some(7));
        // Words may go over a line break, and the heading may be gone.
        check("line 1", "C", "everybody? ## B", text, Some(3));
        check("line 1", "", "}", text, Some(8));
    }

    #[test]
    fn words_that_are_gone_are_nowhere() {
        check("line 1", "", "nobody", "Who is everybody?\n", None);
        check("line 1", "", "}", "a }\n", None);
        check("R1", "", "", "### R1: a\n", None);
        // Comments of earlier versions have only a number.
        check("line 2", "", "", "a\nb\n", Some(2));
        check("line 3", "", "", "a\nb\n", None);
        check("line 0", "", "a", "a\n", Some(1));
    }
}
