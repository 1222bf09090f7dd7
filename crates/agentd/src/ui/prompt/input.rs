//! A line that a person types.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::ui::measure::width;

/// The most that is kept: more is for an editor, or a file.
const MOST_BYTES: usize = 16 << 10;

/// A text and where the cursor is in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Input {
    text: String,
    /// Always between two characters, as people see them.
    at: usize,
}

impl Input {
    pub(super) fn new(text: &str) -> Self {
        let mut input = Self::default();
        input.insert(text);
        input
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Puts text where the cursor is: one line, without anything that steers a terminal.
    pub(super) fn insert(&mut self, text: &str) {
        let mut clean = String::new();
        for c in text.chars() {
            match c {
                '\n' | '\r' | '\t' => clean.push(' '),
                c if c.is_control() => {}
                c => clean.push(c),
            }
        }
        if self.text.len() + clean.len() <= MOST_BYTES {
            self.text.insert_str(self.at, &clean);
            self.at += clean.len();
        }
    }

    fn before(&self) -> Option<usize> {
        self.text[..self.at].grapheme_indices(true).next_back().map(|(at, _)| at)
    }

    fn after(&self) -> Option<usize> {
        let next = self.text[self.at..].graphemes(true).next()?;
        Some(self.at + next.len())
    }

    /// The start of the word in front of the cursor.
    fn word_before(&self) -> usize {
        let text = self.text[..self.at].trim_end();
        text.rfind(char::is_whitespace)
            .map_or(0, |at| at + text[at..].chars().next().map_or(0, char::len_utf8))
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.at = from;
    }

    /// Does what a key says; whether it was a key for a line of text.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.at = 0,
            KeyCode::Char('u') if control => self.remove(0, self.at),
            KeyCode::Char('k') if control => self.text.truncate(self.at),
            KeyCode::Char('w') if control => self.remove(self.word_before(), self.at),
            KeyCode::Char(_) if control => return false,
            KeyCode::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => {
                if let Some(before) = self.before() {
                    self.remove(before, self.at);
                }
            }
            KeyCode::Delete => {
                if let Some(after) = self.after() {
                    self.remove(self.at, after);
                }
            }
            KeyCode::Left => match self.before() {
                Some(before) => self.at = before,
                None => return false,
            },
            KeyCode::Right => self.at = self.after().unwrap_or(self.at),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            _ => return false,
        }
        true
    }

    /// The part of the text around the cursor that has room, and the column of the cursor in it.
    pub(super) fn window(&self, columns: usize) -> (String, usize) {
        let columns = columns.max(2);
        if width(&self.text) < columns {
            return (self.text.clone(), width(&self.text[..self.at]));
        }
        // The cursor is in the last quarter, so that what was typed is seen.
        let (mut start, mut used) = (self.at, 0);
        for (at, cluster) in self.text[..self.at].grapheme_indices(true).rev() {
            if used + width(cluster) > columns * 3 / 4 {
                break;
            }
            used += width(cluster);
            start = at;
        }
        let mut shown = String::new();
        if start > 0 {
            shown.push('…');
            let first = self.text[start..].graphemes(true).next().map_or(0, str::len);
            start += first;
        }
        let cursor = width(&shown) + width(&self.text[start..self.at.max(start)]);
        for cluster in self.text[start..].graphemes(true) {
            if width(&shown) + width(cluster) > columns - 1 {
                shown.push('…');
                break;
            }
            shown.push_str(cluster);
        }
        (shown, cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(input: &mut Input, keys: &[KeyCode]) {
        for key in keys {
            input.key(KeyEvent::from(*key));
        }
    }

    #[test]
    fn a_line_is_edited_by_what_people_see() {
        let mut input = Input::new("日本 \u{1b}[2J👩\u{200d}💻x");
        press(&mut input, &[KeyCode::Backspace, KeyCode::Backspace]);
        assert_eq!(input.text(), "日本 [2J");
        press(&mut input, &[KeyCode::Home, KeyCode::Right, KeyCode::Delete, KeyCode::Char('é')]);
        assert_eq!(input.text(), "日é [2J");
        input.key(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
        assert_eq!(input.text(), " [2J");
        assert!(!input.key(KeyEvent::from(KeyCode::Left)), "there is nothing to the left");
        input.key(KeyEvent::new(KeyCode::Char('k'), KeyModifiers::CONTROL));
        assert!(input.is_empty());
        input.insert("two\nlines\tof text");
        assert_eq!(input.text(), "two lines of text");
        input.insert(&"x".repeat(MOST_BYTES));
        assert_eq!(input.text(), "two lines of text", "what is too long is not taken in part");
    }

    #[test]
    fn the_cursor_is_always_in_the_window() {
        let mut input = Input::new(&"日本語 text ".repeat(20));
        for _ in 0..260 {
            for columns in [5, 20, 60] {
                let (shown, cursor) = input.window(columns);
                assert!(width(&shown) <= columns, "{shown:?}");
                assert!(cursor < columns, "{cursor} of {columns}");
            }
            input.key(KeyEvent::from(KeyCode::Left));
        }
    }
}
