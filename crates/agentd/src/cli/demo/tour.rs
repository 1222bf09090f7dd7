//! What there is to see at the end: what was written where, what it cost, and what to do next.

use std::io::{self, Write as _};

use agentd_core::layout;
use agentd_core::phase::Phase;
use agentd_core::rel_path::RelPath;
use agentd_core::step_name::StepName;
use agentd_core::text::{counted, printable};
use agentd_engine::archive::SpecChange;
use agentd_engine::git::{ChangedFile, Commit, FileChange};
use serde::{Serialize, Serializer};

use super::place::Leftover;
use super::story::{CHANGE, Story};
use crate::cli::begin;
use crate::ui::{BOLD, DIM, Output, Screen};
use agentd_core::figures::tokens;

/// What the demonstration has done.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct DemoReport {
    /// `demonstrated`
    action: &'static str,
    /// Where it happened.
    directory: String,
    /// Whether that directory is still there.
    kept: bool,
    /// The change.
    change_id: &'static str,
    /// Its phase now.
    phase: Phase,
    /// The verdict of the last review.
    verdict: Option<&'static str>,
    /// How many rounds of revision there were.
    iteration: u32,
    /// The exit codes of the tests.
    tests: Tests,
    /// The calls of agents.
    steps: Vec<DemoStep>,
    /// The subjects of the commits, oldest first.
    #[serde(serialize_with = "subjects")]
    commits: Vec<Commit>,
    /// The files of the project that were changed.
    #[serde(serialize_with = "paths")]
    files: Vec<ChangedFile>,
    /// What has happened to each main spec.
    specs: Vec<SpecChange>,
    /// The directory of the change in the archive.
    path: RelPath,
    /// What the recorded calls have cost, in US dollars.
    cost_usd: f64,
    /// Commands to try next.
    #[serde(serialize_with = "commands")]
    next: [Suggestion; 3],
    /// Tokens that went in, including cached ones.
    #[serde(skip)]
    tokens_in: u64,
    /// Tokens that came out.
    #[serde(skip)]
    tokens_out: u64,
}

/// The exit codes of the tests; none if they were killed.
#[derive(Debug, Serialize)]
struct Tests {
    /// Before the change.
    before: Option<i32>,
    /// After the change.
    after: Option<i32>,
}

/// One call of an agent.
#[derive(Debug, Serialize)]
struct DemoStep {
    /// The step.
    step: StepName,
    /// The model that answered.
    model: String,
    /// What it cost, in US dollars.
    cost_usd: f64,
}

/// A command, and what it is good for.
type Suggestion = (String, &'static str);

fn subjects<S: Serializer>(commits: &[Commit], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(commits.iter().map(|commit| &commit.subject))
}

fn paths<S: Serializer>(files: &[ChangedFile], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(files.iter().map(|file| &file.path))
}

fn commands<S: Serializer>(next: &[Suggestion; 3], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(next.iter().map(|(command, _)| command))
}

impl DemoReport {
    pub(super) fn new(story: Story, left: &Leftover) -> Self {
        let state = story.archived.state;
        let [before, after] = story.tests;
        let steps = state.llm_calls.into_iter().map(|call| DemoStep {
            step: call.step,
            model: call.model,
            cost_usd: call.cost,
        });
        Self {
            action: "demonstrated",
            directory: left.root.display().to_string(),
            kept: left.is_there,
            change_id: CHANGE,
            phase: state.phase,
            verdict: state.code_review.map(|review| review.verdict.label()),
            iteration: state.iteration,
            tests: Tests { before, after },
            steps: steps.collect(),
            commits: story.commits,
            files: story.files,
            specs: story.archived.specs,
            path: layout::archived_change(&story.archived.name),
            cost_usd: state.total_cost,
            next: next(left),
            tokens_in: state.total_tokens_in,
            tokens_out: state.total_tokens_out,
        }
    }
}

/// Three commands to try next.
fn next(left: &Leftover) -> [Suggestion; 3] {
    let plan = (begin().to_string(), "your first change");
    if !left.is_there {
        let again = ("agentd demo --keep".to_owned(), "do it again, and keep the directory");
        return [again, ("agentd init".to_owned(), "in your own project"), plan];
    }
    let root = left.root.display();
    let view = (format!("agentd -C {root} view"), "all of it in a browser");
    let trace = (
        format!("agentd -C {root} trace greeting:R2"),
        "from a requirement to its tasks, commits and review",
    );
    [view, trace, ("agentd init".to_owned(), "in your own project")]
}

impl Output for DemoReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        self.written(screen)?;
        self.cost(screen)?;
        title(screen, "What to do next")?;
        let width = self.next.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
        for (command, what) in &self.next {
            writeln!(screen, "  {BOLD}{command:<width$}{BOLD:#}  {DIM}{what}{DIM:#}")?;
        }
        let root = &self.directory;
        if self.kept {
            writeln!(screen, "\nAll of it is in {root}.")
        } else {
            writeln!(
                screen,
                "\nThe directory {root} was removed; --keep or --dir DIR leaves it there."
            )
        }
    }

    #[cfg(test)]
    fn sample() -> Self {
        use crate::cli::archive::ArchiveReport;
        let left = Leftover { root: "/tmp/demo".into(), is_there: true };
        let commit = Commit {
            id: "1f2e3d4c5b".to_owned(),
            at: "2026-11-04T10:00:00Z".to_owned(),
            subject: "greet-by-name: greet".to_owned(),
            body: String::new(),
            files: Vec::new(),
        };
        let step =
            DemoStep { step: StepName::ProposalGen, model: "gemini".to_owned(), cost_usd: 0.01 };
        let file =
            ChangedFile { path: "greet.sh".to_owned(), change: FileChange::Added, lines: None };
        Self {
            action: "demonstrated",
            directory: left.root.display().to_string(),
            kept: left.is_there,
            change_id: CHANGE,
            phase: Phase::Archived,
            verdict: Some("APPROVED"),
            iteration: 1,
            tests: Tests { before: Some(1), after: Some(0) },
            steps: vec![step],
            commits: vec![commit],
            files: vec![file],
            specs: ArchiveReport::sample().specs,
            path: RelPath::new("agentd/archive/2026-11-04-greet-by-name").unwrap(),
            cost_usd: 0.4,
            next: next(&left),
            tokens_in: 12_000,
            tokens_out: 800,
        }
    }
}

fn title(screen: &mut Screen<'_>, text: &str) -> io::Result<()> {
    writeln!(screen, "\n{BOLD}{text}{BOLD:#}")
}

impl DemoReport {
    fn written(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        title(screen, "What was written")?;
        let mut line = |what: &str, is: &str| writeln!(screen, "  {what:<40}  {DIM}{is}{DIM:#}");
        for file in &self.files {
            let is = if file.change == FileChange::Added { "new code" } else { "changed code" };
            line(&printable(&file.path), is)?;
        }
        for spec in &self.specs {
            line(layout::main_spec(&spec.spec).as_str(), "what holds from now on")?;
        }
        line(self.path.as_str(), "proposal, specs, tasks and reviews")?;
        line("  runs/", "all that agents did, to be replayed")?;
        title(screen, "Commits")?;
        for commit in &self.commits {
            let id = commit.id.get(..7).unwrap_or(&commit.id);
            writeln!(screen, "  {DIM}{id}{DIM:#} {}", printable(&commit.subject))?;
        }
        Ok(())
    }

    fn cost(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        title(screen, "What it cost")?;
        for (model, calls, cost) in by_model(&self.steps) {
            let (model, calls) = (printable(model), counted(calls, "call"));
            writeln!(screen, "  {model:<18}  {calls:>8}  ${cost:.4}")?;
        }
        writeln!(
            screen,
            "  {}, {} tokens in, {} out, {BOLD}${:.4}{BOLD:#}",
            counted(self.steps.len(), "call"),
            tokens(self.tokens_in),
            tokens(self.tokens_out),
            self.cost_usd,
        )?;
        writeln!(
            screen,
            "  {DIM}As recorded, from gemini, codex and claude with scripted models; nothing was paid now.\n  \
             Commands, tools, tests and git were real.{DIM:#}"
        )
    }
}

/// The calls of each model and what they cost, in the order of their first call.
fn by_model(steps: &[DemoStep]) -> Vec<(&str, usize, f64)> {
    let mut models: Vec<(&str, usize, f64)> = Vec::new();
    for step in steps {
        match models.iter_mut().find(|(model, ..)| *model == step.model) {
            Some((_, count, cost)) => {
                *count += 1;
                *cost += step.cost_usd;
            }
            None => models.push((&step.model, 1, step.cost_usd)),
        }
    }
    models
}
