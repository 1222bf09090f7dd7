//! What was measured, as a table and as JSON.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::json;

/// All rows, in the order of their measurement.
#[derive(Default)]
pub(super) struct Report {
    rows: Vec<Row>,
}

/// One bar and where we stand.
pub(super) struct Row {
    name: String,
    bar: String,
    result: Result<Measured, String>,
}

struct Measured {
    unit: Unit,
    value: f64,
    limit: f64,
    reference: Option<(&'static str, f64)>,
}

#[derive(Clone, Copy)]
pub(super) enum Unit {
    Milliseconds,
    Megabytes,
    Kilobytes,
    Percent,
    /// A number of things.
    Count,
}

impl Unit {
    fn symbol(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Megabytes => "MB",
            Self::Kilobytes => "kB",
            Self::Percent => "%",
            Self::Count => "",
        }
    }
}

impl Row {
    /// A value that may be at most `limit`; `bar` says the same in words.
    pub(super) fn measured(name: &str, unit: Unit, value: f64, limit: f64, bar: &str) -> Self {
        let result = Ok(Measured { unit, value, limit, reference: None });
        Self { name: name.to_owned(), bar: bar.to_owned(), result }
    }

    /// A bar that nothing can be held against yet.
    pub(super) fn not_measurable(name: &str, bar: &str, why: String) -> Self {
        Self { name: name.to_owned(), bar: bar.to_owned(), result: Err(why) }
    }

    /// Adds what the value is compared with, in the same unit.
    pub(super) fn against(mut self, name: &'static str, value: f64) -> Self {
        if let Ok(measured) = &mut self.result {
            measured.reference = Some((name, value));
        }
        self
    }
}

impl Measured {
    fn passes(&self) -> bool {
        // A value that is no number passes nothing.
        self.value <= self.limit
    }
}

impl Report {
    pub(super) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Whether a bar was measured and missed.
    pub(super) fn missed(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.result).any(|measured| !measured.passes())
    }

    /// Whether something could not be measured.
    pub(super) fn has_gaps(&self) -> bool {
        self.rows.iter().any(|row| row.result.is_err())
    }

    pub(super) fn table(&self) -> String {
        let header = ["what", "value", "reference", "ratio", "bar", "limit", ""].map(str::to_owned);
        let mut lines = vec![header];
        let mut notes = String::new();
        for row in &self.rows {
            let (name, bar) = (row.name.clone(), format!("<= {}", row.bar));
            match &row.result {
                Ok(measured) => {
                    let unit = measured.unit.symbol();
                    let (reference, ratio) = match measured.reference {
                        Some((name, value)) => (
                            format!("{name} {value:.2} {unit}"),
                            format!("{:.2}x", measured.value / value),
                        ),
                        None => (String::new(), String::new()),
                    };
                    let value = format!("{:.2} {unit}", measured.value);
                    let limit = format!("{:.2} {unit}", measured.limit);
                    let verdict = if measured.passes() { "pass" } else { "FAIL" };
                    lines.push([name, value, reference, ratio, bar, limit, verdict.to_owned()]);
                }
                Err(why) => {
                    let _ = writeln!(notes, "  {name}: {why}");
                    let empty = String::new;
                    let verdict = "not measurable".to_owned();
                    lines.push([name, empty(), empty(), empty(), bar, empty(), verdict]);
                }
            }
        }
        let mut table = align(&lines);
        if !notes.is_empty() {
            let _ = write!(table, "\nNot measurable:\n{notes}");
        }
        table
    }

    pub(super) fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| match &row.result {
                Ok(measured) => json!({
                    "name": row.name,
                    "verdict": if measured.passes() { "pass" } else { "fail" },
                    "value": measured.value,
                    "unit": measured.unit.symbol(),
                    "bar": row.bar,
                    "limit": measured.limit,
                    "reference": measured.reference.map(|(name, value)| json!({
                        "name": name, "value": value, "ratio": measured.value / value,
                    })),
                }),
                Err(why) => json!({
                    "name": row.name, "verdict": "not_measurable", "bar": row.bar, "reason": why,
                }),
            })
            .collect();
        json!({"version": 1, "rows": rows})
    }
}

/// Columns as wide as their widest entry; the first to the left, numbers right.
fn align<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let mut text = String::new();
        for (column, (entry, width)) in line.iter().zip(&widths).enumerate() {
            let _ = match column {
                1 | 3 | 5 => write!(text, "{entry:>width$}  "),
                _ => write!(text, "{entry:width$}  "),
            };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(value: f64) -> Report {
        let mut report = Report::default();
        let row = Row::measured("start", Unit::Milliseconds, value, 8.0, "3x true + 5 ms");
        report.add(row.against("true", 1.0));
        report.add(Row::not_measurable("list", "x", "no such command".to_owned()));
        report
    }

    #[test]
    fn a_bar_is_missed_above_its_limit_and_never_by_what_could_not_be_measured() {
        assert!(!report(8.0).missed());
        assert!(report(8.1).missed());
        assert!(report(f64::NAN).missed());
        assert!(report(8.0).has_gaps());
        assert!(!Report::default().has_gaps());
    }

    #[test]
    fn table_and_json_say_the_same() {
        let report = report(2.5);
        let table = report.table();
        assert!(table.contains("2.50x") && table.contains("pass"), "{table}");
        assert!(table.contains("list: no such command"), "{table}");
        let json = report.json();
        assert_eq!(json["rows"][0]["verdict"], "pass");
        assert_eq!(json["rows"][0]["reference"]["ratio"], 2.5);
        assert_eq!(json["rows"][1]["verdict"], "not_measurable");
    }
}
