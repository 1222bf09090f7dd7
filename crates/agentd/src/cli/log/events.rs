//! What has happened to a change, from its state, its journal, its reviews and git.

use agentd_core::diagnostic::Counts;
use agentd_core::document::issue_fate::{EarlierIssue, IssueFate, earlier, fates, in_words};
use agentd_core::document::review::CodeVerdict;
use agentd_core::figures::{duration, tokens};
use agentd_core::journal::{self, Event as Recorded, Journal};
use agentd_core::layout::ChangeFile;
use agentd_core::outcome::FailureKind;
use agentd_core::phase::Phase;
use agentd_core::stamp::Stamp;
use agentd_core::state::{Choice, GitSetup, LlmCall, Placement, State};
use agentd_core::step_name::StepName;
use agentd_core::text::counted;
use agentd_engine::change::Snapshot;
use agentd_engine::git::{self, Git, GitTool};
use agentd_engine::insight::code_rounds::CodeRounds;
use agentd_engine::store::Project;
use serde::Serialize;

/// One thing that has happened.
#[derive(Debug, Serialize)]
pub(super) struct Event {
    pub(super) at: Option<Stamp>,
    pub(super) kind: EventKind,
    pub(super) text: String,
    /// For a review: what became of the issues of earlier rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) previous: Vec<EarlierIssue>,
    /// For a call: the number of its run, which `--run` shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<u32>,
    /// For a call that failed: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<FailureKind>,
    /// Whether it is bad news, for people.
    #[serde(skip)]
    pub(super) is_bad: bool,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum EventKind {
    Begun,
    Adopted,
    Clarified,
    Git,
    Call,
    Settled,
    Tests,
    Review,
    Decision,
    Phase,
    Renamed,
    Commit,
}

impl EventKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Clarified => "clarified",
            Self::Git => "git",
            Self::Call => "call",
            Self::Settled => "settled",
            Self::Commit => "commit",
            Self::Decision => "decision",
            Self::Review => "review",
            Self::Tests => "tests",
            Self::Phase => "phase",
            Self::Renamed => "renamed",
            Self::Adopted => "adopted",
        }
    }
}

impl Event {
    fn new(at: Option<Stamp>, kind: EventKind, text: impl Into<String>) -> Self {
        let (previous, text) = (Vec::new(), text.into());
        Self { at, kind, text, previous, run: None, failure: None, is_bad: false }
    }

    fn bad(self, is_bad: bool) -> Self {
        Self { is_bad, ..self }
    }
}

/// Everything that is known, oldest first; what has no time stands first.
pub(super) fn all(
    project: &Project,
    snapshot: &Snapshot,
    state: &State,
    rounds: &CodeRounds,
) -> Vec<Event> {
    let asked = state.description.as_ref().map(|text| text.first_line().to_string());
    let mut events =
        vec![Event::new(state.created_at, EventKind::Begun, asked.unwrap_or_default())];
    let journal = snapshot.change().read(&ChangeFile::Journal).unwrap_or_default();
    // What it says is shown, not relied on: `agentd verify` does that.
    let journal = journal::parse(&journal).unwrap_or_default();
    events.extend(clarified(snapshot, &journal));
    events.extend(recorded(&journal, state));
    events.extend(reviews(snapshot, state, rounds, &journal));
    events.extend(calls(state));
    events.extend(tests(state, rounds));
    events.extend(decisions(state));
    events.extend(commits(project, state));
    // What happened in the same second is in the order in which it usually happens.
    events.sort_by_key(|event| (event.at, event.kind));
    events
}

/// The answers that were given, and when: the journal knows it to the second.
fn clarified(snapshot: &Snapshot, journal: &Journal) -> Option<Event> {
    let answers = snapshot.documents.clarifications.value_if_there()?;
    let name = ChangeFile::Clarifications.path().to_string();
    let first = journal.entries.iter().find(|entry| entry.files.contains_key(&name));
    let at = first.map(|entry| entry.at).or(answers.date);
    let topics: Vec<&str> = answers.questions.iter().map(|answer| answer.topic.as_str()).collect();
    let count = counted(answers.questions.len(), "answer");
    Some(Event::new(at, EventKind::Clarified, format!("{count}: {}", topics.join(", "))))
}

/// What only the journal has: places, names, and phases without a verdict.
fn recorded(journal: &Journal, state: &State) -> Vec<Event> {
    let mut events = Vec::new();
    let mut is_placed = false;
    for entry in &journal.entries {
        let at = Some(entry.at);
        events.extend(match &entry.event {
            Recorded::Placed { git } => {
                is_placed = true;
                Some(Event::new(at, EventKind::Git, place(git)))
            }
            Recorded::Renamed { from, to, by } => {
                Some(Event::new(at, EventKind::Renamed, format!("{from} to {to} by {by}")))
            }
            Recorded::Adopted { phase, by } if by.is_empty() => {
                Some(Event::new(at, EventKind::Adopted, format!("as {phase}")))
            }
            Recorded::Adopted { phase, by } => {
                Some(Event::new(at, EventKind::Adopted, format!("as {phase}, by {by}")))
            }
            Recorded::Settled { run, cost } => {
                let text = format!("run {run} has cost ${cost:.4}");
                Some(Event { run: Some(*run), ..Event::new(at, EventKind::Settled, text) })
            }
            Recorded::Moved { phase } => Some(Event::new(at, EventKind::Phase, phase.name())),
            // The state, the reviews and git say more about them.
            Recorded::Begun {}
            | Recorded::Call { .. }
            | Recorded::PlanReviewed { .. }
            | Recorded::TestsRun { .. }
            | Recorded::CodeReviewed { .. }
            | Recorded::Decided { .. }
            | Recorded::Updated {} => None,
        });
    }
    // A change from before journals.
    if let Some(git) = state.git.as_ref().filter(|_| !is_placed) {
        events.push(Event::new(state.created_at, EventKind::Git, place(git)));
    }
    if journal.entries.is_empty() && state.phase == Phase::Archived {
        events.push(Event::new(state.updated_at, EventKind::Phase, Phase::Archived.name()));
    }
    events
}

fn place(git: &GitSetup) -> String {
    let branch = git.branch.as_deref().unwrap_or("no branch");
    let from = match (&git.base_branch, &git.base_commit) {
        (Some(base), _) => format!(" from {base}"),
        (None, Some(commit)) => format!(" from {}", short(commit)),
        (None, None) => String::new(),
    };
    match git.workflow {
        Placement::Branch => format!("on the branch {branch}{from}"),
        Placement::Worktree => format!("in a worktree on {branch}{from}"),
        Placement::InPlace => "in place".to_owned(),
    }
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

fn reviews(
    snapshot: &Snapshot,
    state: &State,
    rounds: &CodeRounds,
    journal: &Journal,
) -> Vec<Event> {
    let mut events = Vec::new();
    let reviews = snapshot.documents.reviews();
    // A review that was played from a recording has the date of the recording; the journal says when
    // it was given here. Only where each round is in it: which one is meant is known by the count.
    let recorded = |is_one: fn(&Recorded) -> bool, rounds: usize| {
        let entries = journal.entries.iter().filter(|entry| is_one(&entry.event));
        let at: Vec<Stamp> = entries.map(|entry| entry.at).collect();
        if at.len() == rounds { at } else { Vec::new() }
    };
    let of_plan = recorded(|event| matches!(event, Recorded::PlanReviewed { .. }), reviews.len());
    let of_code =
        recorded(|event| matches!(event, Recorded::CodeReviewed { .. }), rounds.reviews.len());
    for (index, review) in reviews.iter().enumerate() {
        let verdict = review.verdict.label();
        let text = format!("{verdict} by {}, round {}", review.reviewer, review.iteration);
        let fates = fates(&reviews[..=index]);
        let at = of_plan.get(index).copied().or(review.date);
        events.push(reviewed(at, &text, review.counts(), &fates));
    }
    for (index, review) in rounds.reviews.iter().enumerate() {
        let verdict = review.verdict.map_or("no verdict", CodeVerdict::label);
        let text = format!("{verdict} by {}, round {}", review.reviewer, review.iteration);
        let fates = fates(&rounds.reviews[..=index]);
        let at = of_code.get(index).copied().or(review.created_at);
        events.push(reviewed(at, &text, review.counts(), &fates));
    }
    // One whose run is not here.
    let is_listed = |at: Stamp| rounds.reviews.iter().any(|review| review.created_at == Some(at));
    if let Some(review) = state.code_review.as_ref().filter(|review| !is_listed(review.at)) {
        let label = review.verdict.label();
        let text = format!("{label} by {}, round {}", review.reviewer, review.iteration);
        let is_bad = review.verdict != CodeVerdict::Approved;
        events.push(Event::new(Some(review.at), EventKind::Review, text).bad(is_bad));
    }
    events
}

/// A round of review: the verdict, its issues, and what it says of earlier ones.
fn reviewed(at: Option<Stamp>, verdict: &str, issues: Counts, known: &[IssueFate<'_>]) -> Event {
    let Counts { high, medium, low } = issues;
    let words = in_words(known.iter().map(|known| (known.issue.number, known.fate)));
    let words = if words.is_empty() { words } else { format!("; {words}") };
    let text = format!("{verdict}: {high} HIGH, {medium} MEDIUM, {low} LOW{words}");
    let is_bad = !verdict.starts_with("APPROVED");
    Event { previous: earlier(known), ..Event::new(at, EventKind::Review, text).bad(is_bad) }
}

fn calls(state: &State) -> impl Iterator<Item = Event> {
    let mut fixes = 0;
    state.llm_calls.iter().map(move |call| {
        let round = if call.step == StepName::Fix {
            fixes += 1;
            format!(" {fixes}")
        } else {
            String::new()
        };
        let text = format!("{}{round} by {}: {}", call.step, caller(call), used(call));
        let event = Event::new(call.timestamp, EventKind::Call, text);
        Event { run: call.run, failure: call.failure, ..event }.bad(call.failure.is_some())
    })
}

/// `gemini (gemini-3.8-flash)`, as far as it is known.
fn caller(call: &LlmCall) -> String {
    match (call.agent, &*call.model) {
        (Some(agent), "") => agent.to_string(),
        (Some(agent), model) if model == agent.name() => model.to_owned(),
        (Some(agent), model) => format!("{agent} ({model})"),
        (None, "") => "an agent".to_owned(),
        (None, model) => model.to_owned(),
    }
}

/// Whether it failed, and what it has used.
fn used(call: &LlmCall) -> String {
    let mut parts = Vec::new();
    parts.extend(call.failure.map(|failure| match failure {
        FailureKind::Other => "failed".to_owned(),
        failure => format!("failed: {}", failure.words()),
    }));
    if call.tokens_in > 0 || call.tokens_out > 0 {
        parts.push(format!("{} in, {} out", tokens(call.tokens_in), tokens(call.tokens_out)));
    }
    parts.push(duration(call.duration_ms));
    if call.cost > 0.0 {
        parts.push(format!("${:.4}", call.cost));
    }
    parts.join(", ")
}

fn tests(state: &State, rounds: &CodeRounds) -> Vec<Event> {
    let event = |at, exit_code: Option<i32>, took: &str, command: &str| {
        let result = match exit_code {
            Some(0) => format!("passed in {took}"),
            Some(code) => format!("failed with exit code {code} after {took}"),
            None => format!("stopped after {took}"),
        };
        let text = format!("{result}: {command}");
        Event::new(Some(at), EventKind::Tests, text).bad(exit_code != Some(0))
    };
    let mut events = Vec::new();
    for (at, run) in &rounds.tests {
        // Of earlier rounds only whole seconds are known.
        let took = match run.seconds {
            0 => "under 1 s".to_owned(),
            seconds => duration(seconds.saturating_mul(1000)),
        };
        events.push(event(*at, run.exit_code, &took, &run.command));
    }
    if let Some(run) = &state.test_run {
        events.push(event(run.at, run.exit_code, &duration(run.duration_ms), &run.command));
    }
    if let Some(shown) = &state.reproduction {
        let run = &shown.run;
        let mut seen = event(run.at, run.exit_code, &duration(run.duration_ms), &run.command);
        seen.text.push_str(", as the test for the bug has to");
        events.push(seen.bad(false));
    }
    events
}

fn decisions(state: &State) -> impl Iterator<Item = Event> {
    state.decisions.iter().map(|decision| {
        let choice = choice_name(decision.choice);
        let note =
            if decision.note.is_empty() { String::new() } else { format!(": {}", decision.note) };
        let text = format!("{choice} by {}{note}", decision.by);
        Event::new(Some(decision.at), EventKind::Decision, text)
    })
}

fn choice_name(choice: Choice) -> String {
    let name = serde_json::to_value(choice).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

/// The commits that agentd has made for a change. Where git cannot be asked there are none.
fn commits(project: &Project, state: &State) -> Vec<Event> {
    let Some(setup) = &state.git else { return Vec::new() };
    let Some(base) = &setup.base_commit else { return Vec::new() };
    let tool = GitTool::default();
    // The worktree of an archived change may be gone, and its commits be in the main one.
    let tree = git::work_tree(&tool, project.root(), &state.change_id, setup);
    let tree = tree.unwrap_or_else(|_| project.root().to_owned());
    let Ok(Some(git)) = Git::discover_with(&tool, &tree) else { return Vec::new() };
    // Commits name the change as it was called then.
    let own: Vec<String> = state.ids().map(|id| format!("{id}: ")).collect();
    let made = git.commits_since(base).unwrap_or_default();
    let made =
        made.into_iter().filter(|commit| own.iter().any(|id| commit.subject.starts_with(id)));
    made.map(|commit| {
        let text = format!("{} {}", short(&commit.id), commit.subject);
        Event::new(commit.at.parse().ok(), EventKind::Commit, text)
    })
    .collect()
}
