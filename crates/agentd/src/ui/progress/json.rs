//! Progress as JSON lines, for programs that show it: one object in a line, with an `event`.

use agentd_core::agent::AgentKind;
use agentd_core::diagnostic::Severity;
use agentd_core::document::review_block::Issue;
use agentd_core::event::AgentEvent;
use agentd_core::stamp::Stamp;
use agentd_core::step_name::StepName;
use agentd_engine::workflow::Progress;
use jiff::Timestamp;
use serde::Serialize;

use super::activity::Roots;
use crate::ui::escape_control;
use crate::ui::issues::by_weight;
use crate::ui::measure::one_line;

/// The format of every line; the keys of a version never change their meaning.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Line<'a> {
    version: u32,
    at: Stamp,
    #[serde(flatten)]
    event: Event<'a>,
}

/// What happened.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    StepStarted {
        step: &'a StepName,
        label: &'a str,
        agent: AgentKind,
        model: Option<&'a str>,
        resumed: bool,
        number: usize,
        of: usize,
        to_come: &'a [String],
        spent_usd: f64,
        budget_usd: Option<f64>,
        forecast_usd: Option<[f64; 2]>,
    },
    StepDone {
        step: &'a StepName,
        label: &'a str,
        summary: &'a str,
        verdict: Option<&'static str>,
        tokens_in: u64,
        tokens_cached: u64,
        tokens_out: u64,
        cost_usd: f64,
        duration_ms: u64,
    },
    StepFailed {
        step: &'a StepName,
        label: &'a str,
        message: &'a str,
        duration_ms: u64,
    },
    StepSkipped {
        step: &'a StepName,
        label: &'a str,
        why: &'a str,
    },
    /// What the agent does now.
    Activity {
        text: String,
    },
    Findings {
        summary: &'a str,
        issues: Vec<Finding<'a>>,
    },
    TestsStarted {
        command: &'a str,
    },
    TestsEnded {
        command: &'a str,
        passed: bool,
        exit_code: Option<i32>,
        duration_ms: u64,
        output_tail: &'a str,
    },
    Note {
        text: &'a str,
    },
    Warning {
        text: &'a str,
    },
}

#[derive(Serialize)]
struct Finding<'a> {
    id: String,
    severity: Severity,
    title: &'a str,
    location: &'a str,
    description: &'a str,
    recommendation: &'a str,
}

impl<'a> Finding<'a> {
    fn new(issue: &'a Issue) -> Self {
        Self {
            id: format!("I{}", issue.number),
            severity: issue.severity,
            title: issue.title.as_str(),
            location: issue.location.as_str(),
            description: issue.description.as_str(),
            recommendation: issue.recommendation.as_str(),
        }
    }
}

/// The line for what a workflow reports; none for what is of no interest to others.
pub(super) fn line(progress: &Progress<'_>, roots: &Roots) -> Option<String> {
    let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let event = match progress {
        Progress::Started { step, label, agent, resumed, outlook } => Event::StepStarted {
            step,
            label,
            agent: *agent,
            model: outlook.model.as_deref(),
            resumed: *resumed,
            number: outlook.number,
            of: outlook.of,
            to_come: &outlook.to_come,
            spent_usd: outlook.spent_usd,
            budget_usd: outlook.budget_usd,
            forecast_usd: outlook.forecast_usd,
        },
        Progress::Done { step, label, summary, verdict, usage, cost_usd, duration } => {
            Event::StepDone {
                step,
                label,
                summary,
                verdict: verdict.map(agentd_engine::workflow::Verdict::label),
                tokens_in: usage.input,
                tokens_cached: usage.cached,
                tokens_out: usage.output,
                cost_usd: *cost_usd,
                duration_ms: ms(*duration),
            }
        }
        Progress::Failed { step, label, message, duration } => {
            Event::StepFailed { step, label, message, duration_ms: ms(*duration) }
        }
        Progress::Skipped { step, label, why } => Event::StepSkipped { step, label, why },
        // Words come in pieces, and tools say what is done.
        Progress::Agent(event @ (AgentEvent::ToolCall { .. } | AgentEvent::Retry { .. })) => {
            Event::Activity { text: one_line(&super::activity::described_in(event, roots)) }
        }
        Progress::Agent(_) => return None,
        Progress::Findings { summary, issues } => {
            Event::Findings { summary, issues: by_weight(issues).map(Finding::new).collect() }
        }
        Progress::TestsStarted { command } => Event::TestsStarted { command },
        Progress::TestsEnded(run) => Event::TestsEnded {
            command: &run.command,
            passed: run.passed(),
            exit_code: run.exit_code,
            duration_ms: run.duration_ms,
            output_tail: run.output_tail.as_str(),
        },
        Progress::Note(text) => Event::Note { text },
        Progress::Warning(text) => Event::Warning { text },
    };
    Some(written(event))
}

/// An event in a line.
fn written(event: Event<'_>) -> String {
    let line = Line { version: VERSION, at: Stamp::new(Timestamp::now()), event };
    let text = serde_json::to_string(&line).unwrap_or_default();
    escape_control(&text).into_owned()
}

/// The line for a remark.
pub(in crate::ui) fn note(text: &str) -> String {
    written(Event::Note { text })
}

/// The line for a warning.
pub(in crate::ui) fn warning(text: &str) -> String {
    written(Event::Warning { text })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Programs read this page; what is missing there cannot be relied on.
    #[test]
    fn the_contract_names_every_key() {
        let page = include_str!("../../../../../docs/agent-contract.md");
        let (step, label, command) = (&StepName::Challenge, "Challenge", "cargo test");
        let finding = Finding {
            id: "I1".to_owned(),
            severity: Severity::High,
            title: "",
            location: "",
            description: "",
            recommendation: "",
        };
        let events = [
            Event::StepStarted {
                step,
                label,
                agent: AgentKind::Codex,
                model: None,
                resumed: false,
                number: 1,
                of: 2,
                to_come: &[],
                spent_usd: 0.0,
                budget_usd: None,
                forecast_usd: None,
            },
            Event::StepDone {
                step,
                label,
                summary: "",
                verdict: None,
                tokens_in: 0,
                tokens_cached: 0,
                tokens_out: 0,
                cost_usd: 0.0,
                duration_ms: 0,
            },
            Event::StepFailed { step, label, message: "", duration_ms: 0 },
            Event::StepSkipped { step, label, why: "" },
            Event::Activity { text: String::new() },
            Event::Findings { summary: "", issues: vec![finding] },
            Event::TestsStarted { command },
            Event::TestsEnded {
                command,
                passed: true,
                exit_code: None,
                duration_ms: 0,
                output_tail: "",
            },
            Event::Note { text: "" },
            Event::Warning { text: "" },
        ];
        for event in events {
            let line: Value = serde_json::from_str(&written(event)).unwrap();
            let named = |row: &&str, name: &str| row.contains(&format!("`{name}`"));
            let event = line["event"].as_str().unwrap();
            let is_row = |row: &&str| row.starts_with("| `") && named(row, event);
            let row = page.lines().find(is_row).unwrap_or_else(|| panic!("{event} has no row"));
            let issue = line["issues"][0].as_object();
            let keys =
                line.as_object().unwrap().keys().chain(issue.into_iter().flat_map(|it| it.keys()));
            for key in keys.filter(|key| !["version", "at", "event"].contains(&key.as_str())) {
                assert!(named(&row, key), "{event}: {key}");
            }
        }
    }
}
