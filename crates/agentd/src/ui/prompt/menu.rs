//! A question with answers to choose from: what keys do, and how it looks. No terminal is touched here.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::input::Input;
use crate::ui::measure::{fit, width, wrap};
use crate::ui::region::Frame;
use crate::ui::{BOLD, DIM, GOOD, WARN};

/// Lines that are longer than this are hard to read, however wide the terminal is.
const READABLE: usize = 100;

/// What marks an answer to choose that is recommended; one that was given is shown without it.
pub(crate) const RECOMMENDED: &str = " (recommended)";

/// An answer to choose.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    /// The answer, in a few words.
    pub(crate) label: String,
    /// What it means; may be empty.
    pub(crate) details: String,
}

/// A question.
#[derive(Debug, Clone, Default)]
pub(crate) struct Menu {
    pub(crate) question: String,
    pub(crate) choices: Vec<Choice>,
    /// Those that are marked; only where several may be.
    pub(crate) marked: Vec<bool>,
    /// Whether several may be chosen.
    pub(crate) several: bool,
    /// Whether people may answer in their own words, and those.
    own: Option<Input>,
    /// Whether there is a question to go back to.
    pub(crate) can_go_back: bool,
    /// Whether no words are an answer, too.
    pub(crate) may_be_empty: bool,
    /// Something to know before one answers; may be empty.
    pub(crate) remark: String,
    /// The choice that the cursor is on; the last one may be the own words.
    at: usize,
    /// Why the answer was not taken.
    problem: Option<String>,
    /// What was typed to find an answer, where typing is no answer itself.
    sought: String,
}

/// What came of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// These were chosen.
    Chosen { picks: Vec<usize>, own: Option<String> },
    /// The question before is wanted again.
    Back,
    /// The own words are to be written in an editor.
    Editor,
    /// Esc.
    Stopped,
    /// Ctrl-C.
    Interrupted,
}

impl Menu {
    /// One of these is to be chosen.
    pub(crate) fn new(question: impl Into<String>, choices: Vec<Choice>) -> Self {
        let marked = vec![false; choices.len()];
        Self { question: question.into(), choices, marked, ..Self::default() }
    }

    /// The same, with a line for own words.
    pub(crate) fn with_own_words(self) -> Self {
        Self { own: Some(Input::default()), ..self }
    }

    /// Begins with an answer that was given before.
    pub(crate) fn answered(mut self, picks: &[usize], own: Option<&str>) -> Self {
        for pick in picks {
            if let Some(mark) = self.marked.get_mut(*pick) {
                *mark = true;
            }
        }
        self.at = picks.first().copied().filter(|at| *at < self.choices.len()).unwrap_or(0);
        if let (Some(own), Some(input)) = (own, &mut self.own) {
            *input = Input::new(own);
            if picks.is_empty() {
                self.at = self.choices.len();
            }
        }
        self
    }

    /// Takes the text that was written in an editor.
    pub(crate) fn set_own(&mut self, text: &str) {
        if let Some(own) = &mut self.own {
            *own = Input::new(text.trim());
            self.at = self.choices.len();
        }
    }

    /// Says why nothing came of it.
    pub(crate) fn set_problem(&mut self, problem: &str) {
        self.problem = Some(problem.to_owned());
    }

    /// The own words so far.
    pub(crate) fn own(&self) -> &str {
        self.own.as_ref().map_or("", Input::text)
    }

    fn on_own(&self) -> bool {
        self.own.is_some() && self.at == self.choices.len()
    }

    fn rows(&self) -> usize {
        self.choices.len() + usize::from(self.own.is_some())
    }

    /// Text that was pasted.
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(own) = &mut self.own {
            own.insert(text);
            self.at = self.choices.len();
        }
    }

    /// Goes to the next answer with the typed text in it; one that begins with it is meant first.
    fn seek(&mut self, sought: String) {
        let wanted = sought.to_lowercase();
        let labels: Vec<String> =
            self.choices.iter().map(|choice| choice.label.to_lowercase()).collect();
        let found = labels.iter().position(|label| label.starts_with(&wanted));
        match found.or_else(|| labels.iter().position(|label| label.contains(&wanted))) {
            Some(at) => (self.at, self.sought) = (at, sought),
            None => self.set_problem(&format!("there is no answer with `{sought}`")),
        }
    }

    /// Does what a key says.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        self.problem = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let seeks = self.own.is_none() && !control;
        if !matches!(key.code, KeyCode::Char(_) | KeyCode::Backspace) {
            self.sought.clear();
        }
        match key.code {
            KeyCode::Char('c') if control => return Some(Outcome::Interrupted),
            KeyCode::Char('e') if control && self.own.is_some() => return Some(Outcome::Editor),
            KeyCode::Esc if self.on_own() && !self.own().is_empty() => {
                // Takes back what was typed, and nothing else.
                self.own = Some(Input::default());
                self.at = 0;
            }
            KeyCode::Esc => return Some(Outcome::Stopped),
            KeyCode::Enter => return self.enter(),
            KeyCode::BackTab if self.can_go_back => return Some(Outcome::Back),
            KeyCode::Up => self.at = (self.at + self.rows() - 1) % self.rows().max(1),
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1) % self.rows().max(1),
            KeyCode::Char(' ') if self.several && !self.on_own() => {
                self.sought.clear();
                if let Some(mark) = self.marked.get_mut(self.at) {
                    *mark = !*mark;
                }
            }
            KeyCode::Left if !self.on_own() && self.can_go_back => return Some(Outcome::Back),
            KeyCode::Char(_) if !control && self.own.is_some() && !self.on_own() => {
                // Typing is an answer of their own.
                self.at = self.choices.len();
                self.edit(key);
            }
            // A space at the begin is no text to find.
            KeyCode::Char(' ') if seeks && self.sought.is_empty() => {}
            KeyCode::Char(typed) if seeks => self.seek(format!("{}{typed}", self.sought)),
            KeyCode::Backspace if seeks => {
                let mut sought = std::mem::take(&mut self.sought);
                sought.pop();
                if !sought.is_empty() {
                    self.seek(sought);
                }
            }
            _ if self.on_own() => {
                let is_taken = self.edit(key);
                let back = !is_taken && key.code == KeyCode::Left && self.can_go_back;
                return back.then_some(Outcome::Back);
            }
            _ => {}
        }
        None
    }

    fn edit(&mut self, key: KeyEvent) -> bool {
        self.own.as_mut().is_some_and(|own| own.key(key))
    }

    fn enter(&mut self) -> Option<Outcome> {
        let own = Some(self.own().trim().to_owned()).filter(|own| !own.is_empty());
        if self.several {
            let mut picks: Vec<usize> =
                (0..self.choices.len()).filter(|at| self.marked[*at]).collect();
            // Without marks, the one under the cursor is meant only if nothing was typed.
            if picks.is_empty() && own.is_none() {
                if self.on_own() || self.own.is_none() {
                    if self.own.is_none() {
                        return Some(Outcome::Chosen { picks, own: None });
                    }
                    self.set_problem("mark an answer, or type one");
                    return None;
                }
                picks.push(self.at);
            }
            return Some(Outcome::Chosen { picks, own });
        }
        if self.on_own() {
            if own.is_none() && !self.may_be_empty {
                self.set_problem("type an answer, or choose one above");
                return None;
            }
            return Some(Outcome::Chosen { picks: Vec::new(), own });
        }
        Some(Outcome::Chosen { picks: vec![self.at], own: None })
    }

    /// What is chosen by an outcome, in words.
    pub(crate) fn in_words(&self, picks: &[usize], own: Option<&str>) -> String {
        let labels = picks.iter().filter_map(|pick| Some(&*self.choices.get(*pick)?.label));
        let labels = labels.map(|label| label.strip_suffix(RECOMMENDED).unwrap_or(label));
        labels.chain(own).collect::<Vec<_>>().join(", ")
    }

    /// What keys do. Where there is little room, those are left out that people try first; `is_cut`
    /// says that some answers are not on the screen.
    fn keys(&self, room: usize, is_cut: bool) -> String {
        let mut keys: Vec<(u8, String)> = Vec::new();
        let mut add = |weight, text: &str| keys.push((weight, text.to_owned()));
        if self.rows() > 1 {
            add(0, "↑↓ move");
        }
        if is_cut && self.own.is_none() {
            add(3, "type to find");
        }
        if self.several {
            add(5, "space marks");
        }
        add(6, "enter answers");
        if self.own.is_some() {
            add(2, "Ctrl-E editor");
        }
        if self.can_go_back {
            // In a text, the arrow moves the cursor.
            let in_text = self.on_own() && !self.own().is_empty();
            add(4, if in_text { "Shift-Tab back" } else { "← back" });
        }
        add(7, "Esc stops");
        if is_cut {
            add(1, &format!("{} of {}", self.at + 1, self.rows()));
        }
        let joined = |keys: &[(u8, String)]| {
            keys.iter().map(|(_, text)| &**text).collect::<Vec<_>>().join(" · ")
        };
        while width(&joined(&keys)) > room && keys.len() > 1 {
            let least = keys.iter().map(|(weight, _)| *weight).min();
            keys.retain(|(weight, _)| Some(*weight) != least);
        }
        fit(&joined(&keys), room)
    }

    /// How it looks in a terminal of this size.
    pub(in crate::ui) fn frame(&self, columns: usize, rows: usize) -> Frame {
        let room = columns.min(READABLE);
        let mut top: Vec<(String, usize)> = Vec::new();
        for (index, line) in wrap(&self.question, room.saturating_sub(2)).into_iter().enumerate() {
            let took = 2 + width(&line);
            let mark = if index == 0 { format!("{GOOD}?{GOOD:#}") } else { " ".to_owned() };
            top.push((format!("{mark} {BOLD}{line}{BOLD:#}"), took));
        }
        let mut bottom: Vec<(String, usize)> = Vec::new();
        let sought = match &*self.sought {
            "" => String::new(),
            sought => format!("find: {sought}"),
        };
        for (text, style) in [
            (self.problem.as_deref().unwrap_or_default(), WARN),
            (&*sought, DIM),
            (&*self.remark, DIM),
        ] {
            for line in wrap(text, room).into_iter().filter(|line| !line.is_empty()) {
                let took = width(&line);
                bottom.push((format!("{style}{line}{style:#}"), took));
            }
        }
        // One more for the keys.
        let left = rows.saturating_sub(top.len() + bottom.len() + 2).max(1);
        let all = |detailed: bool| -> Vec<Vec<(String, usize)>> {
            (0..self.choices.len())
                .map(|at| self.choice(at, room, detailed || at == self.at))
                .collect()
        };
        // Descriptions of all if there is room for them, otherwise of the one under the cursor.
        let mut blocks = all(true);
        let height = |blocks: &[Vec<(String, usize)>]| blocks.iter().map(Vec::len).sum::<usize>();
        let own = self.own.as_ref().map(|own| self.own_line(own, room));
        let extra = usize::from(own.is_some());
        if height(&blocks) + extra > left {
            blocks = all(false);
        }
        // Still too many: those around the cursor.
        let mut first = 0;
        while height(&blocks[first..]) + extra > left && first + 1 < blocks.len() && first < self.at
        {
            first += 1;
        }
        let mut lines = top;
        let mut cursor = None;
        let (mut shown, mut answers) = (0, 0);
        for block in &blocks[first..] {
            if shown + block.len() + extra > left && shown > 0 {
                break;
            }
            shown += block.len();
            answers += 1;
            lines.extend(block.iter().cloned());
        }
        let keys = self.keys(room, answers < blocks.len());
        bottom.push((format!("{DIM}{keys}{DIM:#}"), width(&keys)));
        if let Some((line, took, column)) = own {
            if self.on_own() {
                cursor = Some((lines.len(), column));
            }
            lines.push((line, took));
        }
        lines.extend(bottom);
        Frame { lines, cursor }
    }

    /// An answer: its label, and what it means below it.
    fn choice(&self, at: usize, room: usize, detailed: bool) -> Vec<(String, usize)> {
        let choice = &self.choices[at];
        let is_here = at == self.at;
        let pointer = if is_here { "> " } else { "  " };
        let mark = match (self.several, self.marked[at]) {
            (false, _) => "",
            (true, true) => "[x] ",
            (true, false) => "[ ] ",
        };
        let indent = pointer.len() + mark.len();
        let mut lines = Vec::new();
        let style = if is_here { BOLD } else { anstyle::Style::new() };
        for (index, line) in wrap(&choice.label, room.saturating_sub(indent)).iter().enumerate() {
            let before = if index == 0 { format!("{pointer}{mark}") } else { " ".repeat(indent) };
            let took = indent + width(line);
            lines.push((format!("{before}{style}{line}{style:#}"), took));
        }
        if detailed {
            for line in wrap(&choice.details, room.saturating_sub(indent + 2)) {
                let took = indent + 2 + width(&line);
                let pad = " ".repeat(indent + 2);
                lines.push((format!("{pad}{DIM}{line}{DIM:#}"), took));
            }
        }
        lines
    }

    /// The line for own words, how wide it is, and where the cursor is in it.
    fn own_line(&self, own: &Input, room: usize) -> (String, usize, usize) {
        let pointer = if self.on_own() { "> " } else { "  " };
        let mark = match (self.several, own.is_empty()) {
            (false, _) => "",
            (true, false) => "[x] ",
            (true, true) => "[ ] ",
        };
        let label = if self.choices.is_empty() { "" } else { "other: " };
        let before = format!("{pointer}{mark}{label}");
        let (text, column) = own.window(room.saturating_sub(width(&before)));
        let start = width(&before);
        if own.text().is_empty() && !self.on_own() {
            let hint = fit("type your own answer", room.saturating_sub(start));
            let took = start + width(&hint);
            return (format!("{before}{DIM}{hint}{DIM:#}"), took, start);
        }
        (format!("{before}{text}"), start + width(&text), start + column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu() -> Menu {
        let choice =
            |label: &str, details: &str| Choice { label: label.into(), details: details.into() };
        Menu::new(
            "How do people sign in?",
            vec![
                choice("OAuth (recommended)", "With GitHub. Nothing is stored here."),
                choice("Password", "With a form of our own."),
            ],
        )
        .with_own_words()
    }

    fn plain(menu: &Menu, columns: usize, rows: usize) -> String {
        let lines = menu.frame(columns, rows).lines;
        let text = |(line, took): (String, usize)| {
            let line = anstream::adapter::strip_str(&line).to_string();
            assert_eq!(width(&line), took, "{line:?}");
            assert!(took <= columns, "{line:?}");
            line
        };
        lines.into_iter().map(text).collect::<Vec<_>>().join("\n")
    }

    fn press(menu: &mut Menu, keys: &[KeyCode]) -> Option<Outcome> {
        keys.iter().fold(None, |_, key| menu.key(KeyEvent::from(*key)))
    }

    fn type_in(menu: &mut Menu, text: &str) {
        for c in text.chars() {
            assert_eq!(menu.key(KeyEvent::from(KeyCode::Char(c))), None);
        }
    }

    #[test]
    fn descriptions_are_below_their_labels() {
        assert_eq!(
            plain(&menu(), 80, 40),
            "? How do people sign in?\n\
             > OAuth (recommended)\n    \
             With GitHub. Nothing is stored here.\n  \
             Password\n    \
             With a form of our own.\n  \
             other: type your own answer\n\
             ↑↓ move · enter answers · Ctrl-E editor · Esc stops"
        );
        // In few rows only that of the answer under the cursor.
        assert_eq!(
            plain(&menu(), 30, 7),
            "? How do people sign in?\n\
             > OAuth (recommended)\n    \
             With GitHub. Nothing is\n    \
             stored here.\n  \
             other: type your own answer\n\
             enter answers · Esc stops"
        );
    }

    /// Of many answers people see where they are, and type to find one.
    #[test]
    fn one_of_many_is_found_by_typing() {
        let ids = ["add-account", "add-session", "fix-webhook", "drop-account"];
        let choices = ids.map(|id| Choice { label: id.into(), details: String::new() });
        let mut menu = Menu::new("Which change?", choices.to_vec());
        let keys = |menu: &Menu, columns, rows| {
            plain(menu, columns, rows).lines().last().unwrap().to_owned()
        };
        let all = "↑↓ move · type to find · enter answers · Esc stops";
        assert_eq!(keys(&menu, 80, 40), all.replace("type to find · ", ""));
        assert_eq!(keys(&menu, 80, 6), format!("{all} · 1 of 4"));
        let fewer = all.replace("↑↓ move · ", "");
        assert_eq!(keys(&menu, 55, 6), format!("{fewer} · 1 of 4"));
        assert_eq!(keys(&menu, 45, 6), fewer);
        type_in(&mut menu, "acc");
        assert!(plain(&menu, 80, 40).contains("> add-account"), "{}", plain(&menu, 80, 40));
        type_in(&mut menu, "x");
        let shown = plain(&menu, 80, 40);
        assert!(shown.contains("there is no answer with `accx`\nfind: acc\n"), "{shown}");
        press(&mut menu, &[KeyCode::Backspace, KeyCode::Backspace, KeyCode::Backspace]);
        type_in(&mut menu, "Dr");
        assert!(plain(&menu, 80, 40).contains("> drop-account"));
        press(&mut menu, &[KeyCode::Up]);
        assert!(plain(&menu, 80, 40).contains("> fix-webhook"));
        let chosen = Outcome::Chosen { picks: vec![2], own: None };
        assert_eq!(press(&mut menu, &[KeyCode::Enter]), Some(chosen));
    }

    /// What is recommended is said where one chooses, not where one has chosen.
    #[test]
    fn an_answer_is_shown_without_its_recommendation() {
        assert_eq!(menu().in_words(&[0, 1], Some("SAML")), "OAuth, Password, SAML");
    }

    /// Issue 19, m1 and m2: typing is an own answer, and Esc takes back no more than it must.
    #[test]
    fn typing_is_an_answer_of_their_own() {
        let mut menu = menu();
        type_in(&mut menu, "SAM");
        assert!(plain(&menu, 80, 40).contains("> other: SAM"), "{}", plain(&menu, 80, 40));
        assert_eq!(menu.frame(80, 40).cursor, Some((5, 12)));
        assert_eq!(press(&mut menu, &[KeyCode::Esc]), None, "back to the answers");
        assert!(plain(&menu, 80, 40).contains("> OAuth"));
        type_in(&mut menu, "SAML");
        let chosen = Outcome::Chosen { picks: Vec::new(), own: Some("SAML".to_owned()) };
        assert_eq!(press(&mut menu, &[KeyCode::Enter]), Some(chosen));
        assert_eq!(press(&mut menu, &[KeyCode::Esc, KeyCode::Esc]), Some(Outcome::Stopped));
        press(&mut menu, &[KeyCode::Up]);
        assert_eq!(press(&mut menu, &[KeyCode::Enter]), None);
        assert!(plain(&menu, 80, 40).contains("type an answer, or choose one above"));
        menu.set_problem("cannot open the editor `ed`: there is no such program on PATH");
        assert!(plain(&menu, 80, 40).contains("cannot open the editor `ed`"));
        menu.paste("two\nlines");
        assert_eq!(menu.own(), "two lines");
    }

    #[test]
    fn one_can_go_back_and_finds_the_answer() {
        let mut first = menu();
        assert_eq!(press(&mut first, &[KeyCode::Left]), None, "there is nothing before it");
        let mut second = Menu { can_go_back: true, ..menu() };
        assert_eq!(press(&mut second, &[KeyCode::Left]), Some(Outcome::Back));
        assert_eq!(press(&mut second, &[KeyCode::BackTab]), Some(Outcome::Back));
        assert!(plain(&menu().answered(&[1], None), 80, 40).contains("> Password"));
        assert!(plain(&menu().answered(&[], Some("SAML")), 80, 40).contains("> other: SAML"));
    }

    #[test]
    fn several_can_be_marked() {
        let mut menu = Menu { several: true, ..menu() };
        press(&mut menu, &[KeyCode::Char(' '), KeyCode::Down, KeyCode::Char(' ')]);
        assert!(plain(&menu, 80, 40).contains("[x] OAuth"), "{}", plain(&menu, 80, 40));
        type_in(&mut menu, "and keys");
        let chosen = Outcome::Chosen { picks: vec![0, 1], own: Some("and keys".to_owned()) };
        assert_eq!(press(&mut menu, &[KeyCode::Enter]), Some(chosen));
        let mut none = Menu { several: true, ..super::tests::menu() };
        let first = Outcome::Chosen { picks: vec![0], own: None };
        assert_eq!(press(&mut none, &[KeyCode::Enter]), Some(first), "the one under the cursor");
    }

    #[test]
    fn any_text_and_any_size_fit() {
        let nasty = "\u{1b}[2J 讓搜尋更快averyveryverylongwordindeed\n\n\tx";
        let choice = Choice { label: nasty.into(), details: nasty.repeat(3) };
        let mut menu = Menu::new(nasty, vec![choice; 9]).with_own_words();
        menu.remark = nasty.into();
        for columns in 20..120 {
            for rows in [3, 8, 24] {
                press(&mut menu, &[KeyCode::Down]);
                let shown = plain(&menu, columns, rows);
                let bad = |c: char| c.is_control() && c != '\n';
                assert!(!shown.contains(bad), "{shown:?}");
            }
        }
    }
}
