//! The review marker: `<review>PASS</review>` or `<review>NEEDS_REVISION</review>`
//! in the text of an assistant (C4, E1.6 – E1.8).

use std::sync::LazyLock;

use memchr::memmem;

use crate::outcome::ReviewMark;

/// The mark that is all of a text.
fn exact(text: &str) -> Option<ReviewMark> {
    match text.trim() {
        text if text.eq_ignore_ascii_case("PASS") => Some(ReviewMark::Pass),
        text if text.eq_ignore_ascii_case("NEEDS_REVISION") => Some(ReviewMark::NeedsRevision),
        _ => None,
    }
}

/// The mark at the start of a line.
fn starting(line: &str) -> Option<ReviewMark> {
    let line = line.trim_start();
    for (word, mark) in [("PASS", ReviewMark::Pass), ("NEEDS_REVISION", ReviewMark::NeedsRevision)]
    {
        if let Some(rest) = line.strip_prefix(word) {
            let goes_on = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            return (!goes_on).then_some(mark);
        }
    }
    None
}

/// The last marker of each form in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    /// The last complete tag.
    pub tag: Option<ReviewMark>,
    /// The last line that starts with one of the words.
    pub line: Option<ReviewMark>,
}

impl Marks {
    /// A tag counts more than a line.
    pub fn verdict(self) -> Option<ReviewMark> {
        self.tag.or(self.line)
    }

    /// These, unless `later` text has others.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self { tag: later.tag.or(self.tag), line: later.line.or(self.line) }
    }
}

// Built once: messages are many and short, and building costs more than searching.
static PASS: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("PASS"));
static NEEDS_REVISION: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new("NEEDS_REVISION"));
static REVIEW: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("eview"));
static REVIEW_UPPER: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new("EVIEW"));

/// Both kinds of markers in a text. Angle brackets may be escaped as JSON does it.
pub fn marks(text: &str) -> Marks {
    let mut found = Marks::default();
    let has = |word: &LazyLock<memmem::Finder<'static>>| word.find(text.as_bytes()).is_some();
    if has(&PASS) || has(&NEEDS_REVISION) {
        found.line = text.lines().filter_map(starting).next_back();
    }
    if !has(&REVIEW) && !has(&REVIEW_UPPER) {
        return found;
    }
    let plain = unescape_angles(text);
    let lower = plain.to_ascii_lowercase();
    let mut from = 0;
    while let Some(length) = lower[from..].find("</review>") {
        let close = from + length;
        if let Some(open) = lower[from..close].rfind("<review>") {
            let start = from + open + "<review>".len();
            found.tag = exact(&plain[start..close]).or(found.tag);
        }
        from = close + "</review>".len();
    }
    found
}

fn unescape_angles(text: &str) -> std::borrow::Cow<'_, str> {
    if memmem::find(text.as_bytes(), b"\\u003").is_none() {
        return text.into();
    }
    let text = text.replace("\\u003c", "<").replace("\\u003C", "<");
    text.replace("\\u003e", ">").replace("\\u003E", ">").into()
}

#[cfg(test)]
mod tests {
    use super::ReviewMark::{NeedsRevision, Pass};
    use super::*;

    #[test]
    fn the_last_tag_wins_else_a_line() {
        let cases = [
            ("<review>PASS</review>", Some(Pass)),
            ("<review>PASS</review> no: <review>NEEDS_REVISION</review>", Some(NeedsRevision)),
            ("<review>\n  PASS\n</review>", Some(Pass)),
            (r"\u003creview\u003ePASS\u003c/review\u003e", Some(Pass)),
            (r"\u003Creview\u003ENEEDS_REVISION\u003C/review\u003E", Some(NeedsRevision)),
            ("text\nPASS", Some(Pass)),
            ("text\n  NEEDS_REVISION: two things\nbye", Some(NeedsRevision)),
            ("PASS\n<review>NEEDS_REVISION</review>", Some(NeedsRevision)),
            ("<review>NEEDS_REVISION</review>\nPASS", Some(NeedsRevision)),
            ("it will PASS", None),
            ("PASSED all", None),
            ("PASS_X", None),
            ("<review>maybe</review>", None),
            ("<review>not PASS</review>", None),
            ("<review>PASS", None),
            ("<review><review>PASS</review>", Some(Pass)),
            ("<REVIEW>pass</REVIEW>", Some(Pass)),
            ("<review>PASS</review><review>broken", Some(Pass)),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(marks(text).verdict(), expected, "{text:?}");
        }
    }

    #[test]
    fn later_text_overrides_the_marks_that_it_has() {
        let (tag, line) = (marks("<review>PASS</review>"), marks("NEEDS_REVISION"));
        assert_eq!(tag.then(Marks::default()), tag);
        assert_eq!(tag.then(line), Marks { tag: Some(Pass), line: Some(NeedsRevision) });
        let later = marks("<review>NEEDS_REVISION</review>\nPASS");
        assert_eq!(tag.then(line).then(later), later);
    }
}
