//! The keys of every JSON document, from the types of the outputs, for docs/agent-contract.md.

use std::collections::BTreeSet;

use agentd_core::diagnostic::Rule;
use agentd_engine::insight::cost::{CostReport, ProjectCost};
use agentd_engine::insight::forecast::ForecastReport;
use agentd_engine::insight::overlap::OverlapReport;
use agentd_engine::insight::trace::TraceReport;
use serde_json::{Map, Value};

use super::archive::{ArchivePreview, ArchiveReport};
use super::clarify::{ClarificationsReport, ClarifyReport, QuestionsReport};
use super::completions::CompletionScript;
use super::context::ContextReport;
use super::decide::{DecisionReport, QuestionReport};
use super::demo::DemoReport;
use super::diff::DiffReport;
use super::doctor::DoctorReport;
use super::doctor::probe::Probed;
use super::drop::DropReport;
use super::explain::{ErrorExplanation, ExplainList};
use super::export::ExportReport;
use super::give::GiveReport;
use super::init::InstallReport;
use super::list::{ArchivedList, ChangeList, SpecList};
use super::log::{CallReport, LogReport};
use super::man::ManPages;
use super::planning::WorkflowReport;
use super::rename::RenameReport;
use super::replay::ReplayReport;
use super::revise::RevisionReport;
use super::show::{ShownDocument, ShownPlan};
use super::status::{ProjectStatus, StatusReport};
use super::step::StepReport;
use super::take::TakeReport;
use super::trust::TrustReport;
use super::unarchive::UnarchiveReport;
use super::validate::ValidationReport;
use super::verify::VerifyReport;
use super::view::ViewReport;
use crate::ui::Output;
use crate::ui::measure::width;
use crate::ui::output::{document, shown};

/// What a command prints with `--json`.
struct Row {
    command: &'static str,
    keys: Map<String, Value>,
    /// The key that is there only if there is something to say.
    optional: Option<&'static str>,
    /// Says whether it fits every terminal, or what does not.
    fits: fn() -> Result<(), String>,
}

/// The terminals that every output fits.
const MIN: usize = 50;
const MAX: usize = 250;

/// Whether no line is wider than the terminal, and no word is cut without a mark.
fn fits(output: &impl Output, columns: usize) -> Result<(), String> {
    let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
    let now = "2026-11-04T12:00:00Z".parse().unwrap();
    let whole = plain(shown(output, Some(10_000), now));
    let words: BTreeSet<&str> = whole.split_whitespace().collect();
    let text = plain(shown(output, Some(columns), now));
    for line in text.lines() {
        if width(line) > columns {
            return Err(format!("{columns} columns: too wide: {line:?}"));
        }
        let is_known =
            |word: &str| words.contains(word) || words.iter().any(|all| all.contains(word));
        let mut cut = line.split_whitespace().filter(|word| !word.contains('…') && *word != "\\");
        // Rules below headings and bars are as long as there is room.
        let is_drawn = |word: &str| word.chars().all(|c| "─═█●○◐✗".contains(c));
        if let Some(word) = cut.find(|word| !is_known(word) && !is_drawn(word)) {
            return Err(format!("{columns} columns: cut: {word:?} in {line:?}"));
        }
    }
    Ok(())
}

/// Issue 19: at any width from 50, no line is longer than the terminal and no word is cut.
#[test]
fn every_output_fits_the_terminal() {
    for Row { command, fits, .. } in reading().into_iter().chain(acting()) {
        assert_eq!(fits(), Ok(()), "agentd {command}");
    }
}

impl Row {
    fn optional(self, key: &'static str) -> Self {
        assert!(self.keys.contains_key(key), "{}: {key}", self.command);
        Self { optional: Some(key), ..self }
    }
}

fn row<T: Output>(command: &'static str) -> Row {
    let fits = || (MIN..=MAX).try_for_each(|columns| fits(&T::sample(), columns));
    match document(&T::sample()) {
        Value::Object(mut keys) => {
            assert_eq!(keys.shift_remove("version"), Some(1.into()), "{command}");
            Row { command, keys, optional: None, fits }
        }
        other => panic!("{command}: {other}"),
    }
}

/// Commands that only read. A test of the page runs them all.
fn reading() -> Vec<Row> {
    vec![
        row::<ChangeList>("list"),
        row::<SpecList>("list --specs"),
        row::<ArchivedList>("list --archived"),
        row::<StatusReport>("status add-oauth").optional("question"),
        row::<ProjectStatus>("status --all"),
        row::<ShownDocument>("show add-oauth tasks"),
        row::<ShownPlan>("show add-oauth plan"),
        row::<DiffReport>("diff add-oauth"),
        row::<LogReport>("log add-oauth"),
        row::<CallReport>("log add-oauth --run 1"),
        row::<QuestionReport>("decide add-oauth").optional("asker"),
        row::<ValidationReport>("validate add-oauth").optional("omitted"),
        row::<VerifyReport>("verify add-oauth"),
        row::<CostReport>("cost add-oauth"),
        row::<ProjectCost>("cost --all"),
        row::<ForecastReport>("plan add-oauth --forecast"),
        row::<OverlapReport>("overlap"),
        row::<TraceReport>("trace auth-flow:R1"),
        row::<ContextReport>("context \"Add login\""),
        row::<DoctorReport>("doctor"),
        row::<Probed>("doctor --probe"),
        row::<TrustReport>("trust --show"),
        row::<Rule>("explain T005"),
        row::<ErrorExplanation>("explain locked"),
        row::<ExplainList>("explain"),
        row::<ArchivePreview>("archive add-oauth --dry-run"),
        row::<CompletionScript>("completions bash"),
        row::<ManPages>("man"),
    ]
}

/// Commands that change something, or run until they are stopped.
fn acting() -> Vec<Row> {
    vec![
        row::<WorkflowReport>("plan add-oauth").optional("question"),
        row::<WorkflowReport>("bug add-oauth TEXT").optional("question"),
        row::<WorkflowReport>("proposal add-oauth TEXT").optional("question"),
        row::<WorkflowReport>("challenge add-oauth").optional("question"),
        row::<WorkflowReport>("reproposal add-oauth").optional("question"),
        row::<WorkflowReport>("impl add-oauth").optional("question"),
        row::<WorkflowReport>("implement add-oauth").optional("question"),
        row::<WorkflowReport>("review add-oauth").optional("question"),
        row::<WorkflowReport>("fix add-oauth").optional("question"),
        row::<StepReport>("step add-oauth"),
        row::<TakeReport>("take add-oauth"),
        row::<GiveReport>("give add-oauth"),
        row::<QuestionsReport>("clarify add-oauth"),
        row::<ClarifyReport>("clarify add-oauth --answers FILE"),
        row::<ClarificationsReport>("clarify add-oauth --show"),
        row::<DecisionReport>("decide add-oauth fix"),
        row::<RevisionReport>("revise add-oauth"),
        row::<RenameReport>("rename add-oauth add-google-login"),
        row::<DropReport>("drop add-oauth --yes"),
        row::<ArchiveReport>("archive add-oauth"),
        row::<UnarchiveReport>("unarchive add-oauth"),
        row::<ExportReport>("export add-oauth"),
        row::<ReplayReport>("replay add-oauth --into DIR"),
        row::<ViewReport>("view"),
        row::<InstallReport>("init"),
        row::<InstallReport>("uninstall"),
        row::<DemoReport>("demo"),
    ]
}

/// The tables of the page.
pub(super) fn tables() -> String {
    let (reading, acting) = (reading(), acting());
    let mut text = String::from("\n");
    text.push_str(&table("command", &reading));
    text.push_str("\nCommands that change something:\n\n");
    text.push_str(&table("command that changes something", &acting));
    text.push_str("\nThe keys of objects inside these documents:\n\n");
    text.push_str("| key | its keys | in |\n|---|---|---|\n");
    for Inner { key, keys, commands } in inner(reading.iter().chain(&acting)) {
        text.push_str(&format!("| `{key}` | {} | {} |\n", spans(&keys), spans(&commands)));
    }
    text
}

fn table(heading: &str, rows: &[Row]) -> String {
    let mut text = format!("| {heading} | keys beside `version` |\n|---|---|\n");
    for Row { command, keys, optional, .. } in rows {
        let keys: Vec<String> = keys
            .keys()
            .map(|key| {
                let mark = if *optional == Some(key.as_str()) { " (optional)" } else { "" };
                format!("`{key}`{mark}")
            })
            .collect();
        text.push_str(&format!("| `agentd {command}` | {} |\n", keys.join(" ")));
    }
    text
}

fn spans(names: &[impl std::fmt::Display]) -> String {
    let spans: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    spans.join(" ")
}

/// An object inside documents.
struct Inner {
    key: String,
    keys: Vec<String>,
    commands: Vec<&'static str>,
}

/// The objects inside documents, those of the same shape together.
fn inner<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<Inner> {
    let mut all: Vec<Inner> = Vec::new();
    for row in rows {
        // A command is named without its arguments.
        let command = row.command.split(' ').next().unwrap_or_default();
        for (key, value) in &row.keys {
            walk(key, value, &mut |key, keys| {
                let same = |inner: &&mut Inner| inner.key == key && inner.keys == keys;
                match all.iter_mut().find(same) {
                    Some(inner) if inner.commands.contains(&command) => {}
                    Some(inner) => inner.commands.push(command),
                    None => {
                        all.push(Inner { key: key.to_owned(), keys, commands: vec![command] });
                    }
                }
            });
        }
    }
    all
}

/// Shows every object in a value. A sample with a gap would hide keys, so there must be none.
fn walk(path: &str, value: &Value, found: &mut dyn FnMut(&str, Vec<String>)) {
    match value {
        Value::Null => panic!("{path} of the sample is missing"),
        Value::Array(items) => {
            let path = format!("{path}[]");
            assert!(!items.is_empty(), "{path} of the sample is empty");
            // Of items that differ in what is optional, all keys.
            let mut merged = Map::new();
            for (key, value) in items.iter().filter_map(Value::as_object).flatten() {
                if merged.get(key).is_none_or(Value::is_null) {
                    merged.insert(key.clone(), value.clone());
                }
            }
            if !merged.is_empty() {
                walk(&path, &Value::Object(merged), found);
            }
        }
        Value::Object(entries) => {
            found(path, entries.keys().cloned().collect());
            for (key, value) in entries {
                walk(&format!("{path}.{key}"), value, found);
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_command_has_a_row() {
    let rows: Vec<Row> = reading().into_iter().chain(acting()).collect();
    for command in super::definition().get_subcommands() {
        let name = command.get_name();
        // One speaks MCP on stdout; the others are another program.
        let exempt = matches!(name, "mcp" | "fleet" | "worker");
        let listed = rows.iter().any(|row| row.command.split(' ').next() == Some(name));
        assert!(listed || exempt, "`agentd {name}` is missing in the tables");
    }
}
