//! A few lines at the bottom of a terminal that are drawn over and over: the view of what runs, and
//! questions.
//!
//! What is drawn is one piece of text for one write, over what was there, so that nothing flickers.

/// Lines, each with how many columns it takes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in crate::ui) struct Frame {
    pub(super) lines: Vec<(String, usize)>,
    /// Where the cursor is left: the row from the top, and the column; otherwise at the end.
    pub(super) cursor: Option<(usize, usize)>,
}

/// What is on the screen.
#[derive(Debug, Default)]
pub(super) struct Region {
    drawn: Option<Frame>,
}

impl Region {
    /// Whether something is on the screen.
    pub(super) fn is_drawn(&self) -> bool {
        self.drawn.is_some()
    }

    /// What takes the lines off the screen. A terminal that has become narrower has broken them into
    /// more.
    pub(super) fn erase(&mut self, columns: usize) -> String {
        let drawn = self.drawn.take();
        drawn.map(|frame| format!("{}\u{1b}[J", to_top(&frame, columns))).unwrap_or_default()
    }

    /// What shows other lines instead; nothing if they are there already.
    pub(super) fn draw(&mut self, frame: Frame, columns: usize) -> String {
        let before = match &self.drawn {
            Some(drawn) if *drawn == frame && fits(drawn, columns) => return String::new(),
            // Drawn over as it is, without clearing first.
            Some(drawn) if fits(drawn, columns) => to_top(drawn, columns),
            Some(_) => self.erase(columns),
            None => String::new(),
        };
        let text = format!("{before}{}", shown(&frame));
        self.drawn = Some(frame);
        text
    }
}

/// To the first column of the first line.
fn to_top(frame: &Frame, columns: usize) -> String {
    let row = match frame.cursor {
        Some((row, _)) if fits(frame, columns) => row,
        Some((row, _)) => rows_of(&frame.lines[..=row.min(frame.lines.len() - 1)], columns) - 1,
        None => rows_of(&frame.lines, columns).saturating_sub(1),
    };
    match row {
        0 => "\r".to_owned(),
        up => format!("\r\u{1b}[{up}A"),
    }
}

/// The lines of a frame, each over what was there; what was below them goes. Not wrapped, also where
/// the terminal counts columns in another way than we do.
fn shown(frame: &Frame) -> String {
    let lines: Vec<String> =
        frame.lines.iter().map(|(line, _)| format!("{line}\u{1b}[K")).collect();
    let cursor = frame.cursor.map(|(row, column)| {
        let up = match (frame.lines.len() - 1).saturating_sub(row) {
            0 => String::new(),
            up => format!("\u{1b}[{up}A"),
        };
        let right = if column == 0 { String::new() } else { format!("\u{1b}[{column}C") };
        format!("{up}\r{right}")
    });
    let cursor = cursor.unwrap_or_default();
    format!("\u{1b}[?7l{}\u{1b}[J\u{1b}[?7h{cursor}", lines.join("\r\n"))
}

/// Whether no line of a frame is broken in so many columns.
fn fits(frame: &Frame, columns: usize) -> bool {
    frame.lines.iter().all(|(_, took)| *took <= columns)
}

/// How many rows lines take in so many columns.
fn rows_of(lines: &[(String, usize)], columns: usize) -> usize {
    lines.iter().map(|(_, took)| took.saturating_sub(1) / columns.max(1) + 1).sum()
}
