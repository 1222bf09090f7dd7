use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::diagnostic::Counts;
use agentd_core::document::issue_fate::{EarlierIssue, IssueFate, earlier, fates, in_words};
use agentd_core::document::review::CodeVerdict;
use agentd_core::ids::ChangeId;
use agentd_core::stamp::Stamp;
use agentd_core::state::State;
use agentd_core::step_name::StepName;
use agentd_core::text::printable;
use agentd_engine::change::Snapshot;
use agentd_engine::git::{self, Git, GitTool};
use agentd_engine::insight::code_rounds::{CodeRounds, code_rounds};
use agentd_engine::store::Project;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, DIM, Output, Screen};
use agentd_core::figures::{duration, tokens};

/// Show what has happened to a change, oldest first.
///
/// Calls of agents with their tokens, cost and time, all reviews of the plan and of
/// the code, runs of the tests, commits, and what people have decided.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd log add-oauth\n  agentd log --json | jq '.events[] | select(.kind == \"decision\")'"
)]
pub(crate) struct Args {
    /// The change; may be left out where exactly one is open.
    id: Option<String>,
}

/// What has happened to a change, oldest first.
#[derive(Debug, Serialize)]
pub(super) struct LogReport {
    change_id: ChangeId,
    events: Vec<Event>,
}

/// One thing that has happened.
#[derive(Debug, Serialize)]
struct Event {
    at: Option<Stamp>,
    kind: EventKind,
    text: String,
    /// For a review: what became of the issues of earlier rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    previous: Vec<EarlierIssue>,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum EventKind {
    Begun,
    Call,
    Commit,
    Decision,
    Review,
    Tests,
}

impl EventKind {
    fn name(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Call => "call",
            Self::Commit => "commit",
            Self::Decision => "decision",
            Self::Review => "review",
            Self::Tests => "tests",
        }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    let snapshot = context.change(&project, args.id.as_deref())?.snapshot()?;
    let state = snapshot.state()?;
    let mut events = events(&snapshot, state, &code_rounds(&snapshot)?);
    events.extend(commits(&project, state));
    events.sort_by_key(|event| event.at);
    context.ui.print(&LogReport { change_id: snapshot.id().clone(), events })?;
    Ok(ExitCode::SUCCESS)
}

impl Output for LogReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        for Event { at, kind, text, .. } in &self.events {
            let at = at.map_or_else(String::new, |at| at.to_string());
            let (kind, text) = (kind.name(), printable(text));
            writeln!(screen, "{DIM}{at:20}{DIM:#}  {BOLD}{kind:8}{BOLD:#}  {text}")?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let text = "APPROVED by codex, round 2: 0 HIGH, 0 MEDIUM, 0 LOW; fixed: I1".to_owned();
        let at = "2026-11-04T10:00:00Z".parse().ok();
        let previous = vec![crate::cli::planning::earlier_issue()];
        let event = Event { at, kind: EventKind::Review, text, previous };
        Self { change_id: ChangeId::new("add-oauth").unwrap(), events: vec![event] }
    }
}

/// Everything that is known, in order; what has no time stands first.
fn events(snapshot: &Snapshot, state: &State, rounds: &CodeRounds) -> Vec<Event> {
    let mut events = Vec::new();
    let reviews = snapshot.documents.reviews();
    for (index, review) in reviews.iter().enumerate() {
        let verdict = review.verdict.label();
        let text = format!("{verdict} by {}, round {}", review.reviewer, review.iteration);
        let fates = fates(&reviews[..=index]);
        events.push(reviewed(review.date, &text, review.counts(), &fates));
    }
    for (index, review) in rounds.reviews.iter().enumerate() {
        let verdict = review.verdict.map_or("no verdict", CodeVerdict::label);
        let text = format!("{verdict} by {}, round {}", review.reviewer, review.iteration);
        let fates = fates(&rounds.reviews[..=index]);
        events.push(reviewed(review.created_at, &text, review.counts(), &fates));
    }
    let mut add = |at, kind, text| events.push(Event { at, kind, text, previous: Vec::new() });
    let asked = state.description.as_ref().map(|text| text.first_line().to_string());
    add(state.created_at, EventKind::Begun, asked.unwrap_or_default());
    let mut fixes = 0;
    for call in &state.llm_calls {
        let round = if call.step == StepName::Fix {
            fixes += 1;
            format!(" {fixes}")
        } else {
            String::new()
        };
        let text = format!(
            "{}{round} by {}: {} in, {} out, {}, ${:.4}",
            call.step,
            call.model,
            tokens(call.tokens_in),
            tokens(call.tokens_out),
            duration(call.duration_ms),
            call.cost
        );
        add(call.timestamp, EventKind::Call, text);
    }
    let tests = |exit_code: Option<i32>, took: &str, command: &str| {
        let result = if exit_code == Some(0) { "passed" } else { "failed" };
        format!("{result} in {took}: {command}")
    };
    for (at, run) in &rounds.tests {
        // Of earlier rounds only whole seconds are known.
        let took = match run.seconds {
            0 => "under 1 s".to_owned(),
            seconds => duration(seconds.saturating_mul(1000)),
        };
        add(Some(*at), EventKind::Tests, tests(run.exit_code, &took, &run.command));
    }
    if let Some(run) = &state.test_run {
        let took = duration(run.duration_ms);
        add(Some(run.at), EventKind::Tests, tests(run.exit_code, &took, &run.command));
    }
    // One whose run is not here.
    let is_listed = |at: Stamp| rounds.reviews.iter().any(|review| review.created_at == Some(at));
    if let Some(review) = state.code_review.as_ref().filter(|review| !is_listed(review.at)) {
        let label = review.verdict.label();
        let text = format!("{label} by {}, round {}", review.reviewer, review.iteration);
        add(Some(review.at), EventKind::Review, text);
    }
    for decision in &state.decisions {
        let choice = serde_json::to_value(decision.choice).unwrap_or_default();
        let choice = choice.as_str().unwrap_or_default();
        let note =
            if decision.note.is_empty() { String::new() } else { format!(": {}", decision.note) };
        add(Some(decision.at), EventKind::Decision, format!("{choice} by {}{note}", decision.by));
    }
    events
}

/// A round of review: the verdict, its issues, and what it says of earlier ones.
fn reviewed(at: Option<Stamp>, verdict: &str, issues: Counts, known: &[IssueFate<'_>]) -> Event {
    let Counts { high, medium, low } = issues;
    let words = in_words(known.iter().map(|known| (known.issue.number, known.fate)));
    let words = if words.is_empty() { words } else { format!("; {words}") };
    let text = format!("{verdict}: {high} HIGH, {medium} MEDIUM, {low} LOW{words}");
    Event { at, kind: EventKind::Review, text, previous: earlier(known) }
}

/// The commits that agentd has made for a change. Where git cannot be asked there are none.
fn commits(project: &Project, state: &State) -> Vec<Event> {
    let Some(setup) = &state.git else { return Vec::new() };
    let Some(base) = &setup.base_commit else { return Vec::new() };
    let (tool, id) = (GitTool::default(), &state.change_id);
    let tree = git::work_tree(&tool, project.root(), id, setup);
    let Ok(Some(git)) = tree.and_then(|tree| Git::discover_with(&tool, &tree)) else {
        return Vec::new();
    };
    let own = format!("{id}: ");
    let made = git.commits_since(base).unwrap_or_default();
    let made = made.into_iter().filter(|commit| commit.subject.starts_with(&own));
    made.map(|commit| {
        let short = commit.id.get(..10).unwrap_or(&commit.id);
        let text = format!("{short} {}", commit.subject);
        let at = commit.at.parse().ok();
        Event { at, kind: EventKind::Commit, text, previous: Vec::new() }
    })
    .collect()
}
