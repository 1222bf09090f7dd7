//! Text that comes from people and models, made safe to stand inside a document.
//!
//! agentd's documents are Markdown whose structure is carried by lines: ATX
//! headings, code fences, and HTML comments at the start of a line. Text that
//! is put into a document must never look like structure. [`Line`] and
//! [`Prose`] are the two shapes that such text can have; [`escape`] and
//! `unescape` are exact inverses, so that what goes in comes out again.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::outline::{Fences, LineKind};

/// A count with its noun.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// One line of text: no line breaks or control characters, single spaces, trimmed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Line(String);

impl Line {
    /// Folds any text into one line.
    pub fn new(text: &str) -> Self {
        // Most texts are one line already.
        let trimmed = text.trim_matches(' ');
        let ascii = trimmed.bytes().fold(true, |plain, b| plain & (b' '..=b'~').contains(&b));
        // Neighbors are compared for the same reason: texts are short, and searching has a price of
        // its own.
        let pairs = trimmed.as_bytes().iter().zip(trimmed.as_bytes().get(1..).unwrap_or_default());
        let is_space = |b: &u8| u8::from(*b == b' ');
        let plain = ascii && pairs.fold(0, |two, (a, b)| two | (is_space(a) & is_space(b))) == 0;
        if plain {
            return Self(trimmed.to_owned());
        }
        let mut folded = String::with_capacity(text.len());
        for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
            if word.is_empty() {
                continue;
            }
            if !folded.is_empty() {
                folded.push(' ');
            }
            folded.push_str(word);
        }
        Self(folded)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Text of any number of lines: `\n` line ends, no other control characters
/// than tabs, no blank lines at its ends, no space at its very end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Prose(String);

impl Prose {
    /// Brings any text into this form.
    pub fn new(text: &str) -> Self {
        // Folded rather than searched, so that the compiler can look at many bytes at once.
        let is_control = |b: u8| u8::from((b < b' ' && b != b'\n' && b != b'\t') || b == 0x7f);
        let control = text.bytes().fold(0, |found, b| found | is_control(b)) != 0;
        let needs_cleaning = control
            || (memchr::memchr(0xc2, text.as_bytes()).is_some()
                && text.chars().any(char::is_control));
        let cleaned: Cow<'_, str> = if needs_cleaning {
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            Cow::Owned(
                text.chars().filter(|&c| !c.is_control() || c == '\n' || c == '\t').collect(),
            )
        } else {
            Cow::Borrowed(text)
        };
        let mut kept = cleaned.trim_end();
        while let Some((first, rest)) = kept.split_once('\n') {
            if !first.trim().is_empty() {
                break;
            }
            kept = rest;
        }
        Self(kept.to_owned())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What stands before its first blank line, folded.
    pub fn first_paragraph(&self) -> Line {
        let end = self.0.lines().position(|line| line.trim().is_empty()).unwrap_or(usize::MAX);
        Line::new(&self.0.lines().take(end).collect::<Vec<_>>().join(" "))
    }

    /// Its first line, folded.
    pub fn first_line(&self) -> Line {
        Line::new(self.0.lines().next().unwrap_or_default())
    }
}

macro_rules! text_traits {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(|text| Self::new(&text))
            }
        }
    };
}
text_traits!(Line);
text_traits!(Prose);

/// Whether a line, once its indentation and leading backslashes are off,
/// begins like structure.
fn looks_structural(line: &str) -> bool {
    let bare = line.trim_start_matches([' ', '\t']).trim_start_matches('\\');
    bare.starts_with('#')
        || bare.starts_with("<!--")
        || bare.starts_with("```")
        || bare.starts_with("~~~")
}

fn map_open_lines(text: &str, change: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    if !text.lines().any(looks_structural) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let kinds = Fences::of_lines(&lines);
    let mut out = String::with_capacity(text.len() + 16);
    for (i, (line, kind)) in lines.iter().zip(kinds).enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let changed =
            if kind == LineKind::Open && looks_structural(line) { change(line) } else { None };
        out.push_str(changed.as_deref().unwrap_or(line));
    }
    Cow::Owned(out)
}

/// Puts a backslash in front of every line that would be read as a heading, a
/// comment or an unclosed code fence. Closed code blocks stay as they are.
pub fn escape(text: &str) -> Cow<'_, str> {
    map_open_lines(text, |line| {
        let at = line.len() - line.trim_start_matches([' ', '\t']).len();
        Some(format!("{}\\{}", &line[..at], &line[at..]))
    })
}

/// Takes the backslashes off that [`escape`] has put in front.
pub(crate) fn unescape(text: &str) -> Cow<'_, str> {
    map_open_lines(text, |line| {
        let at = line.len() - line.trim_start_matches([' ', '\t']).len();
        let rest = line[at..].strip_prefix('\\')?;
        Some(format!("{}{rest}", &line[..at]))
    })
}

/// Text of agents and repositories for a terminal: control characters but line breaks and tabs
/// are taken out, and characters that only steer how others look are [revealed](reveal).
pub fn printable(text: &str) -> Cow<'_, str> {
    let bad = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(bad) {
        let kept: String = text.chars().filter(|&c| !bad(c)).collect();
        Cow::Owned(reveal(&kept).into_owned())
    } else {
        reveal(text)
    }
}

/// Shows what cannot be seen, as `‹U+202E›`: characters that turn the direction of text around,
/// join or hide others would make people read something else than what is there.
pub fn reveal(text: &str) -> Cow<'_, str> {
    let mut hidden = hidden(text).peekable();
    if hidden.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for (start, c) in hidden {
        out.push_str(&text[at..start]);
        out.push_str(&format!("‹U+{:04X}›", u32::from(c)));
        at = start + c.len_utf8();
    }
    out.push_str(&text[at..]);
    Cow::Owned(out)
}

/// The characters of a text that nobody can see, and where they are. A joiner that belongs to
/// an emoji, or to a script that is not written without, is none of them.
pub fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    // All of them take two bytes or more, and most texts have no such byte at all.
    let found = if text.is_ascii() { "" } else { text };
    let hidden = found.char_indices().filter(|(_, c)| is_format(*c));
    hidden.filter(|(at, c)| {
        let before = text[..*at].chars().next_back();
        let after = text[at + c.len_utf8()..].chars().next();
        match (*c, before, after) {
            ('\u{200c}' | '\u{200d}', Some(before), Some(after)) => {
                let in_emoji = *c == '\u{200d}' && is_emoji(before) && is_emoji(after);
                !(in_emoji || (joins(before) && (joins(after) || after.is_whitespace())))
            }
            _ => true,
        }
    })
}

/// The characters of Unicode's category Cf that have no shape, and the two separators, which
/// end lines.
fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// Pictures, their skin tones, and the mark that asks for a picture.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{fe0f}' | '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Letters and signs of scripts in which joiners belong to the spelling: Arabic to Myanmar,
/// Khmer and Mongolian, and the Arabic forms.
fn joins(c: char) -> bool {
    let script = matches!(c,
        '\u{600}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{fb50}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefc}');
    script && !is_format(c)
}

/// The longest prefix of at most `max` bytes that ends at a character.
pub fn head(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// The longest suffix of at most `max` bytes that starts at a character.
pub fn tail(text: &str, max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max))..]
}

/// The first characters of a text that may be anything, fit for an error message: control
/// characters are escaped.
pub fn excerpt(text: &str, chars: usize) -> String {
    text.chars().take(chars).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn heads_and_tails_end_at_characters() {
        assert_eq!(head("aé", 2), "a");
        assert_eq!(tail("éa", 2), "a");
        assert_eq!(tail("éa", 9), "éa");
        assert_eq!(head("", 0), "");
    }

    /// Attack L7.
    #[test]
    fn what_cannot_be_seen_is_shown() {
        for (text, shown) in [
            ("a\u{202e}b\u{2066}c\u{1b}[1m", "a‹U+202E›b‹U+2066›c[1m"),
            (
                "x\u{200b}y\u{200e}\u{61c}\u{feff}\u{ad}",
                "x‹U+200B›y‹U+200E›‹U+061C›‹U+FEFF›‹U+00AD›",
            ),
            ("tag\u{e0041}\u{2028}", "tag‹U+E0041›‹U+2028›"),
            ("pay\u{200d}pal \u{200d}", "pay‹U+200D›pal ‹U+200D›"),
            ("pay\u{200c}pal", "pay‹U+200C›pal"),
            ("\u{645}\u{200c}\u{200c}\u{645}", "\u{645}‹U+200C›‹U+200C›\u{645}"),
        ] {
            assert_eq!(printable(text), shown, "{text:?}");
        }
        for fine in [
            "plain\n\ttext",
            "über 認証",
            "\u{1F469}\u{200d}\u{1F4BB} \u{1F468}\u{1F3FD}\u{200d}\u{2764}\u{fe0f}\u{200d}\u{1F468}",
            "\u{0645}\u{06CC}\u{200c}\u{062E}\u{0648}\u{0627}\u{0647}\u{0645}",
            "\u{0915}\u{094D}\u{200D}\u{0937}",
        ] {
            assert_eq!(printable(fine), fine);
        }
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(Line::new("  a\r\n\tb \u{1b}[31mc ").as_str(), "a b [31mc");
    }

    #[test]
    fn prose_keeps_its_inner_shape() {
        assert_eq!(Prose::new("\n \n  a\r\n\r\nb\n\n").as_str(), "  a\n\nb");
    }

    #[test]
    fn structure_is_escaped_outside_closed_fences_only() {
        let text = "## Why\n```\n# code\n```\n  <!-- x\n\\# y\n```\n# after";
        let escaped = escape(text);
        assert_eq!(escaped, "\\## Why\n```\n# code\n```\n  \\<!-- x\n\\\\# y\n\\```\n\\# after");
        assert_eq!(unescape(&escaped), text);
    }

    proptest! {
        #[test]
        fn escaping_is_undone_exactly(text in "([ \t]{0,3}(\\\\{0,2})(#|##|<!--|```|~~~~|a| )[a` ]{0,3}\n){0,8}") {
            let escaped = escape(&text).into_owned();
            prop_assert_eq!(unescape(&escaped), text);
        }

        #[test]
        fn forms_are_stable(text in any::<String>()) {
            let prose = Prose::new(&text);
            prop_assert_eq!(&Prose::new(prose.as_str()), &prose);
            let line = Line::new(&text);
            prop_assert_eq!(&Line::new(line.as_str()), &line);
        }
    }
}
