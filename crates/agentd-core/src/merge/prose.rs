//! Sections of text, and the look at what came of the whole.

use super::ConflictKind;
use super::parts::{Key, Parts, same_text};
use super::splice::{Order, Section};
use super::three_way::{Choice, Merge, Piece, choose, section_of};
use crate::outline::{Outline, lines};

impl<'t> Merge<'t, '_> {
    /// A section of text, or the text at the top.
    pub(super) fn prose(&mut self, piece: &Piece<'_, 't>) {
        if piece.body().is_empty() {
            return;
        }
        let key = piece.key();
        let base = self.base.get(key).map(|part| self.base.body_of(part)).filter(|b| !b.is_empty());
        let Some(main) = self.main.get(key).cloned() else {
            if base.is_some_and(|base| same_text(base, piece.body())) {
                return;
            }
            if base.is_some() {
                let kind = ConflictKind::RemovedInMain;
                if self.stands(key, kind, base, None, Some(piece.whole())) {
                    return;
                }
            }
            self.insert_section(piece);
            self.other.push(key.to_string());
            return;
        };
        let main_body = self.main.body_of(&main);
        if main_body.is_empty() && base.is_none() {
            self.put_body(&main, piece.body());
            self.other.push(key.to_string());
            return;
        }
        match choose(base, main_body, piece.body(), same_text) {
            Choice::Main => return,
            Choice::Change => self.put_body(&main, piece.body()),
            Choice::Both => {
                // Descriptions stand beside each other; a design that both have edited does not.
                let beside = match key {
                    Key::Section(title) if title == "overview" => true,
                    Key::Section(_) => self.base_known && base.is_none(),
                    _ => self.base_known,
                };
                if beside {
                    let united = united(base.unwrap_or_default(), main_body, piece.body());
                    if same_text(&united, main_body) {
                        return;
                    }
                    self.put_body(&main, &united);
                } else {
                    let kind = self.both_kind(base.is_some());
                    let main_whole = self.main.whole_of(&main);
                    if self.stands(key, kind, base, Some(main_whole), Some(piece.whole())) {
                        return;
                    }
                    self.put_body(&main, piece.body());
                }
            }
        }
        self.other.push(key.to_string());
    }

    fn insert_section(&mut self, piece: &Piece<'_, 't>) {
        self.written.insert(piece.key().clone(), piece.body().to_owned());
        let end = self.main.text.len();
        let (at, section) = match piece.key() {
            Key::Section(title) if title == "overview" => {
                (self.main.first_section.unwrap_or(end), Section::Overview)
            }
            Key::Lead(group) => (self.group_end(*group), section_of(*group)),
            _ => (end, Section::Other),
        };
        self.splice.insert(at, Order::Block(section, 0), piece.whole());
    }
}

impl Merge<'_, '_> {
    /// A piece that would be read as something else than it should be: a code block that
    /// is never closed may swallow what it is put in front of.
    pub(super) fn misread(&self, text: &str) -> Option<(Key, Option<String>, Option<String>)> {
        if text == self.main.text {
            return None;
        }
        let merged = Parts::of(text);
        let differs = |key: &Key, wanted: Option<&str>| {
            let found = merged.get(key).map(|part| merged.body_of(part));
            let fine = match (wanted, found) {
                (Some(wanted), Some(found)) => same_text(wanted, found),
                (None, found) => found.is_none(),
                (Some(_), None) => false,
            };
            let own = |text: Option<&str>| text.map(str::to_owned);
            (!fine).then(|| (key.clone(), own(wanted), own(found)))
        };
        let expected = |key: &Key| {
            let kept = self.main.get(key).filter(|_| !self.gone.contains(key));
            let written = self.written.get(key).map(String::as_str);
            written.or_else(|| kept.map(|part| self.main.body_of(part)))
        };
        let all = self.main.all.iter().chain(&merged.all).map(|part| &part.key);
        all.chain(self.written.keys())
            .filter(|key| !(matches!(key, Key::Lead(_)) && expected(key).is_none()))
            .find_map(|key| differs(key, expected(key)))
    }
}

/// The main text, and behind it the paragraphs of the change that are new.
fn united(base: &str, main: &str, change: &str) -> String {
    let mut out = main.to_owned();
    for paragraph in paragraphs(change) {
        let known = |text: &str| paragraphs(text).iter().any(|other| same_text(other, paragraph));
        if !known(base) && !known(main) {
            out.push_str("\n\n");
            out.push_str(paragraph);
        }
    }
    out
}

/// Pieces between blank lines; code blocks stay whole.
fn paragraphs(text: &str) -> Vec<&str> {
    let outline = Outline::scan(text);
    let mut found = Vec::new();
    let mut start = 0;
    for (at, line, next) in lines(text) {
        if line.trim().is_empty() && !outline.in_fence(at) {
            found.push(&text[start..at]);
            start = next;
        }
    }
    found.push(text.get(start..).unwrap_or_default());
    found.retain(|paragraph| !paragraph.trim().is_empty());
    found.into_iter().map(str::trim_end).collect()
}
