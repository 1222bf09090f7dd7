//! Text of several looks in lines that fit.

use anstyle::Style;

use crate::ui::measure::{fit, pieces, width};

/// A piece of text with its look.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) style: Style,
}

/// How many columns they take.
pub(super) fn width_of(spans: &[Span]) -> usize {
    spans.iter().map(|span| width(&span.text)).sum()
}

/// As a terminal takes them.
pub(super) fn styled(spans: &[Span]) -> String {
    spans
        .iter()
        .map(
            |Span { text, style }| {
                if text.trim().is_empty() {
                    text.clone()
                } else {
                    format!("{style}{text}{style:#}")
                }
            },
        )
        .collect()
}

/// A word, which may have parts of several looks.
#[derive(Default)]
struct Word {
    /// Whether a space is in front of it.
    space: bool,
    parts: Vec<Span>,
}

/// The words of text of several looks; a word ends where a line may end.
fn words_of(spans: &[Span], columns: usize) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut space = false;
    for span in spans {
        space |= span.text.starts_with(char::is_whitespace);
        for (index, (has_space, piece)) in pieces(&span.text, columns).enumerate() {
            let part = Span { text: piece.to_owned(), style: span.style };
            let begins = index > 0 || space || words.is_empty();
            match words.last_mut() {
                Some(word) if !begins => word.parts.push(part),
                _ => {
                    let space = space || (index > 0 && has_space);
                    words.push(Word { space, parts: vec![part] });
                }
            }
            space = false;
        }
        space |= span.text.ends_with(char::is_whitespace);
    }
    words
}

/// Breaks text of several looks into lines.
pub(super) fn lines_of(spans: &[Span], columns: usize) -> Vec<Vec<Span>> {
    let mut lines: Vec<Vec<Span>> = vec![Vec::new()];
    let mut used = 0;
    for Word { space, parts } in words_of(spans, columns) {
        let wide = width_of(&parts);
        let gap = usize::from(space && used > 0);
        if used > 0 && used + gap + wide > columns {
            lines.push(Vec::new());
            used = 0;
        }
        let line = lines.len() - 1;
        if space && used > 0 {
            lines[line].push(Span { text: " ".to_owned(), style: Style::new() });
            used += 1;
        }
        for part in parts {
            let text = fit(&part.text, columns.saturating_sub(used).max(1));
            used += width(&text);
            lines[line].push(Span { text, style: part.style });
            if used >= columns {
                break;
            }
        }
    }
    lines
}
