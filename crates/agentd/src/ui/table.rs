//! Tables that fit the terminal: columns are shortened, and the less important ones left out, until
//! a row has room. A pipe gets all columns in full.
//!
//! The libraries of the field (comfy-table, tabled) wrap cells to make a table fit, which turns a
//! list with one line per change into one that nobody can scan; none leaves columns out. What they
//! would add to the few lines here is borders.

use std::io::{self, Write};

use anstyle::Style;

use super::DIM;
use super::measure::{fit, fit_end, one_line, width};

/// Between two columns.
const GAP: usize = 2;

/// In a pipe, for a cell without text: every row has the same number of fields.
const NOTHING: &str = "-";

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    heading: &'static str,
    right: bool,
    /// The order in which columns are left out, the lowest first; none for those that stay.
    rank: Option<u8>,
    /// The fewest columns of the terminal that it makes sense in, and what is left if it is cut.
    least: Option<(usize, Keep)>,
    /// It keeps so many columns of the terminal as long as others up to this rank can be left out.
    keeps: Option<(usize, u8)>,
}

/// Which part of a text is kept if it is too long.
#[derive(Debug, Clone, Copy)]
enum Keep {
    Start,
    End,
}

impl Column {
    /// A column that stays and is not shortened.
    pub(crate) fn new(heading: &'static str) -> Self {
        Self { heading, right: false, rank: None, least: None, keeps: None }
    }

    /// A column of figures.
    pub(crate) fn figures(heading: &'static str) -> Self {
        Self { right: true, ..Self::new(heading) }
    }

    /// It may be left out; of several, the one with the lowest rank goes first.
    pub(crate) fn optional(self, rank: u8) -> Self {
        Self { rank: Some(rank), ..self }
    }

    /// It may be cut down to so many columns of the terminal.
    pub(crate) fn least(self, columns: usize) -> Self {
        Self { least: Some((columns, Keep::Start)), ..self }
    }

    /// Before it is cut down to fewer columns of the terminal than these, others are left out, up to
    /// this rank.
    pub(crate) fn keeps(self, columns: usize, rank: u8) -> Self {
        Self { keeps: Some((columns, rank)), ..self }
    }

    /// It may be cut down, too, but keeps its end: for a path or a name whose end says the most.
    pub(crate) fn least_end(self, columns: usize) -> Self {
        Self { least: Some((columns, Keep::End)), ..self }
    }
}

/// A piece of text with its look.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Text from anywhere, on one line.
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self { text: one_line(text.as_ref()), style: Style::new() }
    }

    /// The same in a style.
    pub(crate) fn styled(text: impl AsRef<str>, style: Style) -> Self {
        Self { style, ..Self::new(text) }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

enum Row {
    Cells(Vec<Cell>),
    /// A line between rows, for people.
    Group(Cell),
}

/// Rows of cells, some of them under a heading of their own.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
    indent: usize,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new(), indent: 0 }
    }

    /// The same, so many columns to the right.
    pub(crate) fn indented(self, indent: usize) -> Self {
        Self { indent, ..self }
    }

    /// Adds a row, with a cell for each column.
    pub(crate) fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let mut cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.columns.len(), Cell::default());
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a heading, below which rows are indented. It is for people: pipes get the rows alone.
    pub(crate) fn group(&mut self, heading: impl Into<Cell>) {
        self.indent = 2;
        self.rows.push(Row::Group(heading.into()));
    }

    /// Writes the table for a terminal of so many columns, or in full.
    pub(crate) fn write(&self, out: &mut dyn Write, columns: Option<usize>) -> io::Result<()> {
        let Some(columns) = columns else { return self.write_in_full(out) };
        let widths = self.widths(columns.saturating_sub(self.indent));
        let has_headings = self.columns.iter().any(|column| !column.heading.is_empty());
        if has_headings && !self.rows.is_empty() {
            let headings = self.columns.iter().map(|column| Cell::styled(column.heading, DIM));
            self.line(out, &headings.collect::<Vec<_>>(), &widths)?;
        }
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.line(out, cells, &widths)?,
                Row::Group(heading) => {
                    let style = heading.style;
                    writeln!(out, "{style}{}{style:#}", fit(&heading.text, columns))?;
                }
            }
        }
        Ok(())
    }

    fn write_in_full(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|at| self.natural(at).max(width(NOTHING))).collect();
        let widths: Vec<Option<usize>> = widths.into_iter().map(Some).collect();
        let table = Self { columns: self.columns.clone(), rows: Vec::new(), indent: 0 };
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                let filled = cells.iter().map(|cell| match &*cell.text {
                    "" => Cell::styled(NOTHING, cell.style),
                    _ => cell.clone(),
                });
                table.line(out, &filled.collect::<Vec<_>>(), &widths)?;
            }
        }
        Ok(())
    }

    /// The widest text of a column.
    fn natural(&self, at: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(width(&cells[at].text)),
            Row::Group(_) => None,
        });
        cells.max().unwrap_or(0)
    }

    /// How wide each column becomes; none where it is left out.
    fn widths(&self, room: usize) -> Vec<Option<usize>> {
        let mut widths: Vec<Option<usize>> = (0..self.columns.len())
            .map(|at| match self.natural(at) {
                // A column in which nobody has anything says nothing.
                0 => None,
                natural => Some(natural.max(width(self.columns[at].heading))),
            })
            .collect();
        // As narrow as they can be, or as they should be while others can be left out.
        let least = |widths: &[Option<usize>], should: bool| {
            let shortest = |(column, width): (&Column, &Option<usize>)| {
                let least = column.least.map(|(least, _)| least.max(column.heading.len()));
                let kept = column.keeps.filter(|_| should).map_or(0, |(columns, _)| columns);
                width.map(|width| least.map_or(width, |least| least.max(kept).min(width)))
            };
            self.columns.iter().zip(widths).map(shortest).collect::<Vec<_>>()
        };
        // The first column to be left out, of those up to a rank.
        let goes = |widths: &[Option<usize>], most: u8| {
            let kept = (0..widths.len()).filter(|at| widths[*at].is_some());
            let optional =
                kept.filter(|at| self.columns[*at].rank.is_some_and(|rank| rank <= most));
            optional.min_by_key(|at| self.columns[*at].rank)
        };
        let most = self.columns.iter().filter_map(|column| Some(column.keeps?.1)).max();
        while total(&least(&widths, true)) > room
            && let Some(first) = most.and_then(|most| goes(&widths, most))
        {
            widths[first] = None;
        }
        while total(&least(&widths, false)) > room
            && let Some(first) = goes(&widths, u8::MAX)
        {
            widths[first] = None;
        }
        let wanted = least(&widths, true);
        let least = if total(&wanted) <= room { wanted } else { least(&widths, false) };
        // The widest gives way first, so that no column suffers for another.
        while total(&widths) > room {
            let shrinks = (0..widths.len()).filter(|at| widths[*at] > least[*at]);
            let Some(widest) = shrinks.max_by_key(|at| widths[*at]) else { break };
            widths[widest] = widths[widest].map(|width| width - 1);
        }
        widths
    }

    fn line(
        &self,
        out: &mut dyn Write,
        cells: &[Cell],
        widths: &[Option<usize>],
    ) -> io::Result<()> {
        let mut line = String::new();
        let (mut at, mut start) = (0, self.indent);
        for ((cell, column), columns) in cells.iter().zip(&self.columns).zip(widths) {
            let Some(columns) = *columns else { continue };
            let text = match column.least {
                Some((_, Keep::End)) => fit_end(&cell.text, columns),
                Some((_, Keep::Start)) | None => fit(&cell.text, columns),
            };
            let took = width(&text);
            let place = if column.right { start + columns.saturating_sub(took) } else { start };
            if took > 0 {
                let (pad, style) = (" ".repeat(place.saturating_sub(at)), cell.style);
                line.push_str(&format!("{pad}{style}{text}{style:#}"));
                at = place + took;
            }
            start += columns + GAP;
        }
        writeln!(out, "{line}")
    }
}

/// How many columns of the terminal a row takes.
fn total(widths: &[Option<usize>]) -> usize {
    let kept = widths.iter().flatten();
    kept.clone().sum::<usize>() + GAP * kept.count().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            Column::new("CHANGE").least(8),
            Column::figures("COST").optional(2),
            Column::new("BRANCH").optional(1).least_end(8),
            Column::new("TITLE").optional(0).least(10),
        ]);
        table.row(["add-oauth", "$12.50", "agentd/add-oauth", "Let people sign in with GitHub"]);
        table.row(["fix", "$0.02", "", "修正拼字錯誤，並補上測試"]);
        table
    }

    fn written(table: &Table, columns: Option<usize>) -> String {
        let mut out = Vec::new();
        table.write(&mut out, columns).unwrap();
        let text = String::from_utf8(out).unwrap();
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn columns_are_shortened_then_left_out() {
        for (columns, expected) in [
            (
                80,
                "CHANGE       COST  BRANCH            TITLE\n\
                 add-oauth  $12.50  agentd/add-oauth  Let people sign in with GitHub\n\
                 fix         $0.02                    修正拼字錯誤，並補上測試\n",
            ),
            (
                60,
                "CHANGE       COST  BRANCH            TITLE\n\
                 add-oauth  $12.50  agentd/add-oauth  Let people sign in wit…\n\
                 fix         $0.02                    修正拼字錯誤，並補上測…\n",
            ),
            (
                42,
                "CHANGE       COST  BRANCH       TITLE\n\
                 add-oauth  $12.50  …/add-oauth  Let peopl…\n\
                 fix         $0.02               修正拼字…\n",
            ),
            (
                36,
                "CHANGE       COST  BRANCH\n\
                 add-oauth  $12.50  agentd/add-oauth\n\
                 fix         $0.02\n",
            ),
            (20, "CHANGE       COST\nadd-oauth  $12.50\nfix         $0.02\n"),
            (8, "CHANGE\nadd-oau…\nfix\n"),
        ] {
            assert_eq!(written(&table(), Some(columns)), expected, "{columns}");
        }
    }

    /// Issue 19: what matters is whole as long as something else can go.
    #[test]
    fn less_important_columns_go_before_an_important_one_is_cut() {
        let mut table = Table::new([
            Column::new("CHANGE").least(8),
            Column::new("STATE").least(8).keeps(24, 1),
            Column::new("BRANCH").optional(1).least_end(8),
            Column::new("TITLE").optional(0).least(10),
        ]);
        table.row(["add-oauth", "needs revision: 1H 1M", "agentd/add-oauth", "Let people sign in"]);
        for (columns, expected) in [
            (52, "add-oauth  needs revision: 1H 1M  agentd/add-oauth"),
            (44, "add-oauth  needs revision: 1H 1M  …add-oauth"),
            (40, "add-oauth  needs revision: 1H 1M"),
            (30, "add-oauth  needs revision: 1H…"),
        ] {
            let shown = written(&table, Some(columns));
            assert_eq!(shown.lines().next_back(), Some(expected), "{columns}");
        }
    }

    #[test]
    fn a_pipe_gets_everything_and_the_same_number_of_fields() {
        let mut table = table();
        table.group("Nobody sees this");
        assert_eq!(
            written(&table, None),
            "add-oauth  $12.50  agentd/add-oauth  Let people sign in with GitHub\n\
             fix         $0.02  -                 修正拼字錯誤，並補上測試\n"
        );
    }

    #[test]
    fn a_column_without_text_is_left_out() {
        let mut table = Table::new([Column::new("A"), Column::new("B"), Column::figures("C")]);
        table.group("Group");
        table.row(["x", "", "1"]);
        assert_eq!(written(&table, Some(50)), "  A  C\nGroup\n  x  1\n");
        assert_eq!(written(&Table::new([Column::new("A")]), Some(50)), "");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(
            rows in prop::collection::vec(prop::collection::vec("[a-z/ 新👍]{0,30}", 4), 0..4),
            columns in 50_usize..250,
        ) {
            let mut table = Table::new([
                Column::new("CHANGE").least(8),
                Column::figures("COST").optional(2).least(6),
                Column::new("BRANCH").optional(1).least_end(8),
                Column::new("TITLE").optional(0).least(10),
            ]);
            for row in rows {
                table.row(row);
            }
            for line in written(&table, Some(columns)).lines() {
                prop_assert!(width(line) <= columns, "{line:?}");
                prop_assert_eq!(line, line.trim_end());
            }
        }
    }
}
