//! What people see of a program that writes to a terminal, row by row and over time.

use std::num::NonZeroU16;
use std::time::Duration;

/// Rows enough that nothing scrolls away.
const ROWS: u16 = 500;

/// What a program has written to its terminal, and when.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// The columns of the terminal.
    pub columns: u16,
    /// Pieces of output, each with its time since the start.
    pub pieces: Vec<(Duration, Vec<u8>)>,
}

/// One row, and all that was to be seen in it, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The first from when the row was first written to; the last one stays.
    pub shown: Vec<Shown>,
}

/// What a row showed for some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// When it appeared.
    pub from: Duration,
    /// Stretches of text of one style, without blanks at the end.
    pub runs: Vec<Run>,
}

/// A stretch of text of one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The column in which it begins.
    pub column: u16,
    /// How many columns it takes.
    pub width: u16,
    /// What it says.
    pub text: String,
    /// What it looks like.
    pub style: Style,
}

/// What text looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// One of the sixteen colours of a terminal, unless it has the usual one.
    pub color: Option<u8>,
    /// Whether it is bold.
    pub bold: bool,
    /// Whether it is dim.
    pub dim: bool,
}

impl Shown {
    /// The text of the row.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut column = 0;
        for run in &self.runs {
            text.extend(std::iter::repeat_n(' ', usize::from(run.column.saturating_sub(column))));
            text.push_str(&run.text);
            column = run.column + run.width;
        }
        text
    }

    /// What distinguishes it from another picture of the same progress line: neither a spinner
    /// nor seconds.
    fn gist(&self) -> String {
        let spinner = '\u{2800}'..='\u{28ff}';
        let counts = |c: &char| !spinner.contains(c) && !c.is_ascii_digit();
        self.text().chars().filter(counts).collect()
    }
}

impl Row {
    /// What the row showed at the end.
    pub fn at_last(&self) -> Option<&Shown> {
        self.shown.last()
    }
}

impl Recording {
    /// The rows that have been written to. A line that is drawn over and over, because it has
    /// a spinner or counts seconds, is shown as it was at last while it did, and as it ended.
    pub fn rows(&self) -> Vec<Row> {
        let size = |n| NonZeroU16::new(n).unwrap();
        let mut parser = vt100::Parser::new(size(ROWS), size(self.columns.max(1)), 0);
        let mut rows: Vec<Row> = vec![Row::default(); usize::from(ROWS)];
        for (from, piece) in &self.pieces {
            parser.process(piece);
            for (row, number) in rows.iter_mut().zip(0..) {
                let seen = Shown { from: *from, runs: runs(parser.screen(), number, self.columns) };
                match row.shown.last_mut() {
                    None if seen.runs.is_empty() => {}
                    None => row.shown.push(seen),
                    Some(last) if last.runs == seen.runs => {}
                    Some(last) if last.gist() == seen.gist() => last.runs = seen.runs,
                    Some(_) => row.shown.push(seen),
                }
            }
        }
        let used = rows.iter().rposition(|row| !row.shown.is_empty()).map_or(0, |last| last + 1);
        rows.truncate(used);
        rows
    }
}

/// What is on a screen of so many columns after all that was printed on it: the text, and the text with
/// its colors.
pub fn at_last(printed: &str, columns: u16) -> (String, String) {
    let size = |n| NonZeroU16::new(n).unwrap();
    let mut parser = vt100::Parser::new(size(ROWS), size(columns.max(1)), 0);
    parser.process(printed.as_bytes());
    let screen = parser.screen();
    let plain: Vec<String> = screen.rows(0, columns).collect();
    let used = plain.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |last| last + 1);
    let plain = plain.iter().take(used).map(|row| format!("{}\n", row.trim_end())).collect();
    let colored = screen.rows_formatted(0, columns).take(used);
    let colored = colored.map(|row| format!("{}\n", row.trim_end())).collect();
    (plain, colored)
}

/// A row as it is now.
fn runs(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column) else { continue };
        if cell.is_wide_continuation() {
            continue;
        }
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let width = if cell.is_wide() { 2 } else { 1 };
        let style = Style { color: color(cell.fgcolor()), bold: cell.bold(), dim: cell.dim() };
        match runs.last_mut() {
            Some(run) if run.style == style && run.column + run.width == column => {
                run.text.push_str(text);
                run.width += width;
            }
            _ => runs.push(Run { column, width, text: text.to_owned(), style }),
        }
    }
    // Blanks have no look; they only keep other text apart.
    for run in &mut runs {
        let blank = run.text.len() - run.text.trim_start_matches(' ').len();
        let kept = run.text.trim_matches(' ').to_owned();
        let cut = run.text.len() - kept.len();
        run.text = kept;
        run.column += u16::try_from(blank).unwrap();
        run.width -= u16::try_from(cut).unwrap();
    }
    runs.retain(|run| !run.text.is_empty());
    runs
}

fn color(color: vt100::Color) -> Option<u8> {
    match color {
        vt100::Color::Idx(index) if index < 16 => Some(index),
        vt100::Color::Idx(_) | vt100::Color::Rgb(..) | vt100::Color::Default => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(pieces: &[(u64, &str)]) -> Recording {
        let pieces = pieces.iter();
        let pieces = pieces.map(|(at, text)| (Duration::from_millis(*at), text.as_bytes().into()));
        Recording { columns: 40, pieces: pieces.collect() }
    }

    fn shown(rows: &[Row]) -> Vec<Vec<(u128, String)>> {
        let at = |shown: &Shown| (shown.from.as_millis(), shown.text());
        rows.iter().map(|row| row.shown.iter().map(at).collect()).collect()
    }

    #[test]
    fn a_line_that_is_drawn_over_is_shown_running_and_ended() {
        let rows = recording(&[
            (0, "one\r\n"),
            (10, "\u{2801} working 0.1s"),
            (20, "\r\u{2803} working 0.2s"),
            (30, "\r\u{1b}[2Kdone\r\n"),
        ])
        .rows();
        let wanted = vec![
            vec![(0, "one".to_owned())],
            vec![(10, "\u{2803} working 0.2s".to_owned()), (30, "done".to_owned())],
        ];
        assert_eq!(shown(&rows), wanted);
    }

    #[test]
    fn styles_divide_a_row_and_blanks_have_none() {
        let rows = recording(&[(0, "  \u{1b}[1;32mgreen\u{1b}[0m   plain")]).rows();
        let runs = &rows[0].at_last().unwrap().runs;
        let found: Vec<(u16, u16, &str, Style)> =
            runs.iter().map(|run| (run.column, run.width, &*run.text, run.style)).collect();
        let green = Style { color: Some(2), bold: true, dim: false };
        assert_eq!(found, [(2, 5, "green", green), (10, 5, "plain", Style::default())]);
        assert_eq!(rows[0].at_last().unwrap().text(), "  green   plain");
    }
}
