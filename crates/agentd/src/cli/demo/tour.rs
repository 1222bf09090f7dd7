//! What there is to see at the end: what was written where, what it cost, and what to do next.

use std::io::Write as _;

use agentd_core::layout;
use agentd_core::state::LlmCall;
use agentd_core::text::{counted, printable};
use agentd_engine::git::FileChange;
use serde_json::json;

use super::place::Left;
use super::story::{CHANGE, Story};
use crate::cli::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, DIM};
use agentd_core::figures::tokens;

pub(super) fn show(context: &Context, story: &Story, left: &Left) -> Result<(), CommandError> {
    let next = next(left);
    if context.ui.json {
        document(context, story, left, &next)
    } else {
        text(context, story, left, &next)
    }
}

/// Three commands, each with what it is good for.
fn next(left: &Left) -> [(String, &'static str); 3] {
    let plan = ("agentd plan <id> \"<what you want>\"".to_owned(), "your first change");
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

fn document(
    context: &Context,
    story: &Story,
    left: &Left,
    next: &[(String, &str)],
) -> Result<(), CommandError> {
    let state = &story.archived.state;
    let [before, after] = story.tests;
    let steps: Vec<_> = state
        .llm_calls
        .iter()
        .map(|call| json!({ "step": call.step, "model": call.model, "cost_usd": call.cost }))
        .collect();
    let commits: Vec<&str> = story.commits.iter().map(|commit| commit.subject.as_str()).collect();
    let files: Vec<&str> = story.files.iter().map(|file| file.path.as_str()).collect();
    let next: Vec<&str> = next.iter().map(|(command, _)| command.as_str()).collect();
    context.ui.print_json(&json!({
        "version": 1,
        "action": "demonstrated",
        "directory": left.root.display().to_string(),
        "kept": left.is_there,
        "change_id": CHANGE,
        "phase": state.phase,
        "verdict": state.code_review.as_ref().map(|review| review.verdict.label()),
        "iteration": state.iteration,
        "tests": { "before": before, "after": after },
        "steps": steps,
        "commits": commits,
        "files": files,
        "specs": story.archived.specs,
        "path": layout::archived_change(&story.archived.name),
        "cost_usd": state.total_cost,
        "next": next,
    }))
}

fn text(
    context: &Context,
    story: &Story,
    left: &Left,
    next: &[(String, &str)],
) -> Result<(), CommandError> {
    let mut out = context.ui.out();
    let state = &story.archived.state;
    let title = |text: &str| format!("\n{BOLD}{text}{BOLD:#}");
    writeln!(out, "{}", title("What was written"))?;
    let mut line = |what: &str, is: &str| writeln!(out, "  {what:<40}  {DIM}{is}{DIM:#}");
    for file in &story.files {
        let is = if file.change == FileChange::Added { "new code" } else { "changed code" };
        line(&printable(&file.path), is)?;
    }
    for spec in &story.archived.specs {
        line(layout::main_spec(&spec.spec).as_str(), "what holds from now on")?;
    }
    let archive = layout::archived_change(&story.archived.name);
    line(archive.as_str(), "proposal, specs, tasks and reviews")?;
    line("  runs/", "all that the agents did, to be replayed")?;
    writeln!(out, "{}", title("Commits"))?;
    for commit in &story.commits {
        let id = commit.id.get(..7).unwrap_or(&commit.id);
        writeln!(out, "  {DIM}{id}{DIM:#} {}", printable(&commit.subject))?;
    }
    writeln!(out, "{}", title("What it cost"))?;
    for (model, calls, cost) in by_model(&state.llm_calls) {
        let (model, calls) = (printable(model), counted(calls, "call"));
        writeln!(out, "  {model:<18}  {calls:>8}  ${cost:.4}")?;
    }
    writeln!(
        out,
        "  {}, {} tokens in, {} out, {BOLD}${:.4}{BOLD:#}",
        counted(state.llm_calls.len(), "call"),
        tokens(state.total_tokens_in),
        tokens(state.total_tokens_out),
        state.total_cost,
    )?;
    writeln!(
        out,
        "  {DIM}As recorded, from gemini, codex and claude with scripted models; nothing was paid now.\n  \
         Commands, tools, tests and git were real.{DIM:#}"
    )?;
    writeln!(out, "{}", title("What to do next"))?;
    let width = next.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    for (command, what) in next {
        writeln!(out, "  {BOLD}{command:<width$}{BOLD:#}  {DIM}{what}{DIM:#}")?;
    }
    let root = left.root.display();
    if left.is_there {
        writeln!(out, "\nAll of it is in {root}.")?;
    } else {
        writeln!(
            out,
            "\nThe directory {root} is gone again; --keep or --dir DIR leaves it there."
        )?;
    }
    out.flush()?;
    Ok(())
}

/// The calls of each model and what they cost, in the order of their first call.
fn by_model(calls: &[LlmCall]) -> Vec<(&str, usize, f64)> {
    let mut models: Vec<(&str, usize, f64)> = Vec::new();
    for call in calls {
        match models.iter_mut().find(|(model, ..)| *model == call.model) {
            Some((_, count, cost)) => {
                *count += 1;
                *cost += call.cost;
            }
            None => models.push((&call.model, 1, call.cost)),
        }
    }
    models
}
