//! The text of an assistant, put together from pieces, in bounded memory: the
//! last message for the outcome, and the review marks in all of it.

use super::review::{Marks, marks};
use crate::outcome::ReviewMark;
use crate::text::tail;

/// How much of a message is kept. Markers are found in all of it.
const KEEP: usize = 256 << 10;

/// Collects what an assistant says.
#[derive(Debug, Default)]
pub(super) struct AssistantText {
    message: String,
    /// The start of the message has been dropped, so its first line is not a whole line.
    headless: bool,
    last: String,
    marks: Marks,
}

impl AssistantText {
    /// More of the current message.
    pub(super) fn delta(&mut self, piece: &str) {
        // A huge piece goes in by parts, so that the buffer stays small.
        let mut rest = piece;
        while !rest.is_empty() {
            let part = crate::text::head(rest, KEEP);
            self.message.push_str(part);
            rest = &rest[part.len()..];
            if self.message.len() >= 4 * KEEP {
                self.look();
                let kept = tail(&self.message, KEEP).len();
                self.message.drain(..self.message.len() - kept);
                self.headless = true;
            }
        }
    }

    /// The current message is complete.
    pub(super) fn end_message(&mut self) {
        if self.message.is_empty() {
            return;
        }
        self.look();
        self.headless = false;
        self.last.clear();
        self.last.push_str(tail(&self.message, KEEP));
        self.message.clear();
        self.message.shrink_to(KEEP);
    }

    /// A message that came whole.
    pub(super) fn whole(&mut self, text: &str) {
        self.end_message();
        if !text.is_empty() {
            self.marks = self.marks.then(marks(text));
            self.last.clear();
            self.last.push_str(tail(text, KEEP));
        }
    }

    fn look(&mut self) {
        let text = match (self.headless, self.message.split_once('\n')) {
            (true, Some((first, rest))) => {
                self.marks = self.marks.then(Marks { line: None, ..marks(first) });
                rest
            }
            (true, None) => "",
            (false, _) => &self.message,
        };
        self.marks = self.marks.then(marks(text));
        if self.headless {
            // A tag may extend past the end of that first line.
            self.marks = self.marks.then(Marks { line: None, ..marks(&self.message) });
        }
    }

    /// The last message and the verdict in all of the text.
    pub(super) fn finish(mut self) -> (String, Option<ReviewMark>) {
        self.end_message();
        (self.last, self.marks.verdict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_may_be_split_over_pieces() {
        let mut text = AssistantText::default();
        for piece in ["<rev", "iew>NEEDS_", "REVISION</", "review>"] {
            text.delta(piece);
        }
        assert_eq!(
            text.finish(),
            ("<review>NEEDS_REVISION</review>".into(), Some(ReviewMark::NeedsRevision))
        );
    }

    #[test]
    fn endless_text_is_bounded_and_its_markers_are_seen() {
        let mut text = AssistantText::default();
        text.delta("<review>PASS</review>");
        for _ in 0..100 {
            text.delta(&"é".repeat(100_000));
        }
        text.delta("PASS or not");
        assert!(text.message.capacity() < 8 * KEEP);
        let (last, mark) = text.finish();
        assert!(last.ends_with("PASS or not") && last.len() <= KEEP);
        assert_eq!(mark, Some(ReviewMark::Pass));
    }

    #[test]
    fn the_last_message_is_the_text() {
        let mut text = AssistantText::default();
        text.whole("first\nPASS");
        text.whole("second");
        assert_eq!(text.finish(), ("second".into(), Some(ReviewMark::Pass)));
    }
}
