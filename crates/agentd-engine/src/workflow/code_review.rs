//! The review of an implementation: agentd runs the tests itself, another agent reads the
//! code, and its verdict is what it gave to the tool.

use std::time::{Duration, Instant};

use agentd_core::agent::Role;
use agentd_core::document::issue_fate::{fates, in_words};
use agentd_core::document::review::{CodeVerdict, Review};
use agentd_core::hash::Digest;
use agentd_core::layout::ChangeFile;
use agentd_core::next_step::Command;
use agentd_core::phase::{Phase, Transition};
use agentd_core::state::{State, TestRun, is_independent};
use agentd_core::step_name::StepName;
use agentd_core::text::{Line, Prose, counted, head};

use super::commits::{commit_work, repository};
use super::generate::write_context;
use super::implement::{all_proven, is_work, last_session, still_approved};
use super::provenance::{authors_of, last_actor};
use super::report::{Found, StepSummary};
use super::{Action, Call, Progress, Report, Rounds, Verdict, Workflow, WorkflowError, prompts};
use crate::agents::context::ContextKind;
use crate::agents::receipts;
use crate::agents::step::{Artifact, StepError};
use crate::change::comments;
use crate::git::{OmitReason, OmittedFile};
use crate::guard::sandbox;
use crate::insight::code_rounds::code_rounds;
use crate::process::Limits;

/// How much of a diff the reviewer is given; the rest it reads itself.
const DIFF_BYTES: usize = 19_000;

/// How much of it the names of the files may be, where it is shortened.
const FILES_BYTES: usize = 2000;

/// How many of the files that a diff leaves out are named for each reason, and how much of a name.
const NAMED_OF_EACH: usize = 12;
const NAME_BYTES: usize = 200;

/// How much of the tests' output is recorded.
const OUTPUT_BYTES: usize = 16 << 10;

/// Runs the tests, has the code reviewed, and moves the phase by the verdict.
pub fn review(workflow: &mut Workflow<'_>) -> Result<Report, WorkflowError> {
    implementing(workflow)?;
    if let Err(waiting) = workflow.unanswered() {
        return workflow.or_waiting(Err(waiting));
    }
    if unread(workflow)?.is_none() {
        workflow.check_independence(Role::Implementer, Role::Reviewer)?;
        all_proven(workflow)?;
        // Without tests, the reviewer is told so.
        if workflow.agents.config.implementation.test_command.is_some() {
            run_tests(workflow)?;
        }
    }
    judge(workflow)
}

/// Whether the tests were run on the code as it is, so that a reviewer can be told what came of it.
/// Without tests there is nothing to run.
pub(super) fn tests_stand(workflow: &Workflow<'_>, rounds: Rounds) -> Result<bool, WorkflowError> {
    let Some(command) = &workflow.agents.config.implementation.test_command else {
        return Ok(true);
    };
    // A person who runs a command again may have changed what the tests depend on.
    if rounds.of_this_command && !workflow.tested {
        return Ok(false);
    }
    let state = workflow.state()?;
    let worked = state.llm_calls.iter().rfind(|call| is_work(&call.step));
    let worked = worked.and_then(|call| call.timestamp);
    let tree = workflow.tree_now();
    Ok(state.test_run.as_ref().is_some_and(|run| {
        run.command == *command
            && worked.is_none_or(|worked| run.at >= worked)
            && tree.is_none_or(|tree| run.covers(&tree))
    }))
}

/// Has the code reviewed, unless a verdict waits to be taken, and moves the phase by the verdict.
pub(super) fn judge(workflow: &mut Workflow<'_>) -> Result<Report, WorkflowError> {
    implementing(workflow)?;
    if let Some(review) = unread(workflow)? {
        workflow.note("a review of this implementation is there already; taking its verdict");
        workflow.show_found(Found::in_code(&review));
    } else {
        workflow.check_independence(Role::Implementer, Role::Reviewer)?;
        all_proven(workflow)?;
        if workflow.agents.config.implementation.test_command.is_none() {
            run_tests(workflow)?;
        }
        ask(workflow)?;
    }
    take(workflow)?;
    workflow.report(Action::Reviewed)
}

/// The state of a change that is being implemented, by the plan that was approved.
fn implementing(workflow: &mut Workflow<'_>) -> Result<State, WorkflowError> {
    workflow.history()?;
    let state = workflow.state()?;
    if state.phase != Phase::Implementing {
        if state.phase == Phase::Challenged {
            // What was edited since has to be challenged first, not implemented.
            still_approved(workflow)?;
        }
        let (change, phase) = (workflow.change.clone(), state.phase);
        return Err(WorkflowError::ChangeNotReady { change, phase });
    }
    workflow.check_record()?;
    still_approved(workflow)?;
    Ok(state)
}

/// The review in REVIEW.md.
pub(super) fn latest(workflow: &Workflow<'_>) -> Result<Option<Review>, WorkflowError> {
    let documents = workflow.documents_with(&ChangeFile::Review)?;
    Ok(documents.review.value_if_there().cloned())
}

/// All rounds of review of the code that are known, oldest first: from the runs, or the latest
/// alone where there are none.
pub(super) fn rounds(workflow: &Workflow<'_>) -> Result<Vec<Review>, WorkflowError> {
    let rounds = code_rounds(&workflow.snapshot()?)?.reviews;
    let latest = latest(workflow)?;
    let is_last =
        |latest: &Review| rounds.last().is_some_and(|r| r.created_at == latest.created_at);
    match latest {
        Some(latest) if !is_last(&latest) => Ok(vec![latest]),
        _ => Ok(rounds),
    }
}

/// The review in REVIEW.md whose verdict was taken. A file that says something else was not
/// written in a call that agentd started (T1).
pub(super) fn taken_review(
    workflow: &Workflow<'_>,
    state: &State,
) -> Result<Option<Review>, WorkflowError> {
    let hash = review_hash(workflow)?;
    let is_known = |review: &Review| {
        state.code_review.as_ref().is_some_and(|known| match &known.review_hash {
            Some(known) => hash.as_ref() == Some(known),
            // Versions before the journal kept only this.
            None => {
                let same_round = known.iteration == review.iteration;
                Some(known.at) == review.created_at
                    && same_round
                    && review.verdict == Some(known.verdict)
            }
        })
    };
    Ok(latest(workflow)?.filter(is_known))
}

fn review_hash(workflow: &Workflow<'_>) -> Result<Option<Digest>, WorkflowError> {
    Ok(workflow.documents()?.review.text().map(Digest::of))
}

/// The review that the last call of a reviewer wrote, where the state does not know of it yet:
/// agentd may have been killed after the reviewer had spoken. A file that this call did not write is
/// nobody's verdict; an implementer can write files too.
pub(super) fn unread(workflow: &Workflow<'_>) -> Result<Option<Review>, WorkflowError> {
    let Some(hash) = review_hash(workflow)? else { return Ok(None) };
    let (project, change) = (&workflow.agents.project, workflow.change()?);
    let plan = workflow.documents()?.digest();
    if !receipts::proves(project, &change, Role::Reviewer, &hash, &plan)? {
        return Ok(None);
    }
    let said = |review: &Review| review.verdict.is_some() && review.created_at.is_some();
    Ok(latest(workflow)?.filter(said))
}

/// Runs the project's tests and records what came of it.
pub(super) fn run_tests(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let settings = &workflow.agents.config.implementation;
    let limit = Duration::from_secs(settings.test_timeout_secs);
    let Some(command) = settings.test_command.clone() else {
        workflow.warn(
            "no tests were run: set implementation.test_command in agentd/config.toml, \
             such as \"cargo test\"",
        );
        return workflow.update(|state| {
            state.test_run = None;
            Ok(())
        });
    };
    (workflow.watch)(Progress::TestsStarted { command: &command });
    workflow.tested = true;
    let tree = workflow.tree();
    let started = Instant::now();
    let limits = Limits { whole: limit, idle: limit, ..Limits::default() };
    let output =
        crate::agents::step::run_tests(workflow.agents, &workflow.change, &command, limits);
    // They may write to the change.
    workflow.forget();
    let output = output?;
    let duration = started.elapsed();
    let mut tail = output.stdout;
    if !output.stderr.is_empty() {
        tail.push_str("\n--- standard error ---\n");
        tail.push_str(&output.stderr);
    }
    if output.timed_out {
        tail.push_str(&format!("\n(stopped by agentd after {} s)", limit.as_secs()));
    }
    // Before it is cut: half of a key would not be known for one.
    let clean = workflow.agents.redactor().redact_text(&tail);
    let tail = agentd_core::text::tail(&clean, OUTPUT_BYTES);
    let run = TestRun {
        command,
        exit_code: if output.timed_out { None } else { output.code },
        output_tail: Prose::new(tail),
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        at: (workflow.now)(),
        tree_after: workflow.tree().filter(|after| Some(after) != tree.as_ref()),
        tree,
    };
    (workflow.watch)(Progress::TestsEnded(&run));
    if !run.passed()
        && let Some(hint) = sandbox::suspects(workflow.agents, &run.output_tail.to_string())
    {
        workflow.warn(&hint);
    }
    workflow.update(|state| {
        state.test_run = Some(run);
        Ok(())
    })
}

/// Removes a review that nobody has given: after the call of a reviewer who says nothing it
/// would pass for what that one said.
fn remove_forged(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let state = workflow.state()?;
    if latest(workflow)?.is_none() || taken_review(workflow, &state)?.is_some() {
        return Ok(());
    }
    workflow.warn("REVIEW.md was not written by a reviewer that agentd has called; it is removed");
    let (project, holder) = (&workflow.agents.project, &workflow.agents.holder);
    let lock = project.write_lock(&workflow.change, holder)?;
    workflow.forget();
    Ok(workflow.change()?.remove(&lock, &ChangeFile::Review)?)
}

fn ask(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    remove_forged(workflow)?;
    write_context(workflow, ContextKind::Reviewer)?;
    let diff = diff(workflow)?;
    let round = latest(workflow)?.map_or(1, |review| review.iteration.saturating_add(1));
    let prompt = prompts::review(workflow, &diff, &rounds(workflow)?)?;
    workflow.reviewed_tree = workflow.tree();
    let result = workflow.run(
        Call {
            step: StepName::Review,
            role: Role::Reviewer,
            label: if round == 1 { "Review".to_owned() } else { format!("Review {round}") },
            prompt,
            resume: None,
            artifact: Artifact::File(ChangeFile::Review),
        },
        |report| {
            let review = report.after.documents.review.value();
            let verdict = review.verdict.map(Verdict::Code);
            StepSummary { text: verdict_line(review), verdict, found: Found::in_code(review) }
        },
    );
    match result {
        Err(WorkflowError::Step(StepError::NoArtifact { agent, cause, .. })) => {
            let (change, step) = (workflow.change.clone(), StepName::Review);
            Err(WorkflowError::VerdictUnknown { change, step, agent, cause })
        }
        result => result.map(|_| ()),
    }
}

/// What was changed since the change began, as far as a prompt holds it.
fn diff(workflow: &mut Workflow<'_>) -> Result<String, WorkflowError> {
    let base = workflow.state()?.base_commit().map(str::to_owned);
    let Some((git, base)) = repository(workflow)?.zip(base) else {
        workflow.warn("there is no commit to compare with: the reviewer gets no diff");
        return Ok("(no diff: the project had no commit when the change began)".to_owned());
    };
    let diff = git.diff(&base, DIFF_BYTES)?;
    // At the top, where nothing cuts it off.
    let mut text = not_shown(&diff.left_out);
    if diff.truncated {
        let files: Vec<&str> = diff.files.iter().map(|file| &*file.path).collect();
        let all = files.join(", ");
        let names = head(&all, FILES_BYTES);
        let more = if names.len() < all.len() { " …" } else { "" };
        let count = files.len();
        text.push_str(&format!(
            "(shortened; the {count} files that were changed: {names}{more})\n"
        ));
    }
    text.push_str(&diff.text);
    Ok(text)
}

/// Names what a diff does not show, so that nothing goes by unseen.
fn not_shown(left_out: &[OmittedFile]) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let mut text =
        "(not in the diff below; look at what matters of it yourself before you approve:\n"
            .to_owned();
    // Of each reason some, so that many of one kind push none of another out.
    for same in left_out.chunk_by(|a, b| a.why == b.why) {
        for it in same.iter().take(NAMED_OF_EACH) {
            let path = Line::new(head(&it.path, NAME_BYTES));
            let several = (it.files > 1)
                .then(|| counted(usize::try_from(it.files).unwrap_or(usize::MAX), "file"));
            let size = it.size.map(|size| format!("{size} bytes"));
            let facts: Vec<String> = several.into_iter().chain(size).collect();
            let facts =
                if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
            text.push_str(&format!("- {path}{facts}: {}\n", why(&it.why)));
        }
        if let Some(more @ 1..) = same.len().checked_sub(NAMED_OF_EACH) {
            text.push_str(&format!("- and {more} more like these\n"));
        }
    }
    text.push_str(")\n");
    text
}

fn why(why: &OmitReason) -> String {
    let why = match why {
        OmitReason::OnlyCommitted => {
            "a commit has another version of it, while the working tree has the one from before; \
             see `git show HEAD`"
        }
        OmitReason::IgnoredSince => "ignored, by a rule that was added since",
        OmitReason::Filtered { filter } => {
            return format!(
                "stored through the filter `{}`, which was not run; git believes that it is \
                 unchanged",
                Line::new(head(filter, NAME_BYTES))
            );
        }
        OmitReason::Repository => "a git repository of its own",
        OmitReason::Special => "neither a file nor a directory nor a link",
        OmitReason::Unreadable => "cannot be read",
        OmitReason::TooMany => "one new file too many",
        OmitReason::TooLarge => "changed, and too large to be shown",
        OmitReason::Binary => "changed, and not text",
        OmitReason::NotCheckedOut => "left out by the sparse checkout",
    };
    why.to_owned()
}

/// Moves the phase by the verdict in REVIEW.md.
fn take(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let nothing =
        || WorkflowError::NoReview { change: workflow.change.clone(), review: Command::Review };
    let review = unread(workflow)?.ok_or_else(nothing)?;
    let (verdict, at) = review.verdict.zip(review.created_at).ok_or_else(nothing)?;
    let (hash, plan) = (review_hash(workflow)?, workflow.documents()?.digest());
    // The tree that the reviewer saw, unless somebody has edited it since.
    let now = workflow.tree();
    let seen = workflow.reviewed_tree.take().or_else(|| now.clone());
    if seen != now {
        workflow.warn("files were edited while the code was reviewed: the verdict is stale");
    }
    workflow.update(|state| {
        let reviewer = review.reviewer.clone();
        *state = state.apply(&Transition::CodeReviewed { verdict, reviewer, at })?;
        let authors = authors_of(state, Role::Implementer);
        let actor = last_actor(state, &StepName::Review);
        if let Some(known) = &mut state.code_review {
            known.iteration = review.iteration;
            known.run = actor.as_ref().and_then(|(_, run)| *run);
            (known.review_hash, known.plan_hash, known.tree) = (hash, Some(plan), seen);
            known.reviewed_by = actor.map(|(actor, _)| actor);
            known.independent =
                known.reviewed_by.as_ref().map(|actor| is_independent(&authors, actor));
            known.authors = authors;
        }
        state.last_action = Some(StepName::Review.into());
        Ok(())
    })?;
    workflow.close_receipt()?;
    let rounds = rounds(workflow)?;
    let fates = fates(&rounds);
    let words = in_words(fates.iter().map(|known| (known.issue.number, known.fate)));
    if !words.is_empty() {
        workflow.note(&format!("issues {words}"));
    }
    Ok(())
}

fn verdict_line(review: &Review) -> String {
    let counts = review.counts();
    let label = review.verdict.map_or("no verdict", CodeVerdict::label);
    match review.verdict {
        Some(verdict @ CodeVerdict::Approved) => {
            let rules_only = Verdict::Code(verdict).rules_only(&review.reviewer);
            format!("{label} - {}", rules_only.unwrap_or("Ready for the archive!"))
        }
        _ => format!(
            "{label} - Found {} HIGH, {} MEDIUM, {} LOW severity issues",
            counts.high, counts.medium, counts.low
        ),
    }
}

/// Has the implementer fix what the latest review found and what people say about the code, in
/// the session in which it worked last.
pub fn fix(workflow: &mut Workflow<'_>) -> Result<Report, WorkflowError> {
    let fixed = run_fix(workflow).and_then(|()| workflow.report(Action::Fixed));
    workflow.or_waiting(fixed)
}

/// Has what the review found and what people have commented on fixed, by one call of the implementer.
pub(super) fn run_fix(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let comments = comments::open_on_code(&workflow.change()?)?;
    if !comments.is_empty() {
        take_up_again(workflow)?;
    }
    let state = implementing(workflow)?;
    let review = taken_review(workflow, &state)?.filter(|review| !review.issues.is_empty());
    if review.is_none() && comments.is_empty() {
        let (change, review) = (workflow.change.clone(), Command::Review);
        return Err(WorkflowError::NoReview { change, review });
    }
    let issues = review.as_ref().map_or(&[][..], |review| &review.issues);
    let round = state.code_review.as_ref().map_or(1, |review| review.iteration);
    let resume = last_session(&state);
    if resume.is_none() {
        workflow.note("no session of the implementer is known: a fresh one is begun");
    }
    let prompt = prompts::fix(workflow, review.as_ref(), &comments)?;
    let before = work_digest(workflow)?;
    workflow.run(
        Call {
            step: StepName::Fix,
            role: Role::Implementer,
            label: format!("Fix {round}"),
            prompt,
            resume,
            artifact: Artifact::Nothing,
        },
        |_| asked_for(issues.len(), comments.len()),
    )?;
    still_approved(workflow)?;
    if before.is_some() && work_digest(workflow)? == before {
        workflow.warn("the implementer has changed nothing in the working tree");
        return Ok(());
    }
    let findings = issues.iter().map(|issue| format!("- I{} {}", issue.number, issue.title));
    let said = comments.iter().map(|it| format!("- C{} {}", it.number, it.text.first_line()));
    let named: Vec<String> = findings.chain(said).collect();
    let what = match &review {
        Some(review) => format!("fix the findings of review {}", review.iteration),
        None => "follow the comments on its code".to_owned(),
    };
    let message = format!("{}: {what}\n\n{}\n", workflow.change, named.join("\n"));
    commit_work(workflow, &message)
}

/// What a fix is about, in words.
fn asked_for(issues: usize, comments: usize) -> String {
    let parts = [(issues, "finding"), (comments, "comment")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    parts.map(|(count, noun)| counted(count, noun)).collect::<Vec<_>>().join(", ")
}

/// Takes approved code up again.
fn take_up_again(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    workflow.history()?;
    if workflow.state()?.phase != Phase::Complete {
        return Ok(());
    }
    workflow.check_record()?;
    let plan = workflow.documents()?.digest();
    workflow.update(|state| {
        *state = state.apply(&Transition::CodeReopened { plan })?;
        Ok(())
    })
}

/// What the working tree looks like, to see whether a fix has changed anything.
fn work_digest(workflow: &Workflow<'_>) -> Result<Option<String>, WorkflowError> {
    let base = workflow.state()?.base_commit().map(str::to_owned);
    let Some((git, base)) = repository(workflow)?.zip(base) else { return Ok(None) };
    let diff = git.diff(&base, 1 << 20)?;
    Ok(Some(format!("{}{:?}", diff.text, diff.left_out)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_omitted_file_is_named() {
        let it = |path: &str, why, size| OmittedFile { path: path.into(), why, files: 1, size };
        let mut left_out = vec![it("evil\n(end)", OmitReason::OnlyCommitted, None)];
        left_out.extend((0..100).map(|i| it(&format!("{i}"), OmitReason::TooLarge, Some(5))));
        left_out.push(it("x.png", OmitReason::Binary, Some(3)));
        insta::assert_snapshot!(not_shown(&left_out), @"
        (not in the diff below; look at what matters of it yourself before you approve:
        - evil (end): a commit has another version of it, while the working tree has the one from before; see `git show HEAD`
        - 0 (5 bytes): changed, and too large to be shown
        - 1 (5 bytes): changed, and too large to be shown
        - 2 (5 bytes): changed, and too large to be shown
        - 3 (5 bytes): changed, and too large to be shown
        - 4 (5 bytes): changed, and too large to be shown
        - 5 (5 bytes): changed, and too large to be shown
        - 6 (5 bytes): changed, and too large to be shown
        - 7 (5 bytes): changed, and too large to be shown
        - 8 (5 bytes): changed, and too large to be shown
        - 9 (5 bytes): changed, and too large to be shown
        - 10 (5 bytes): changed, and too large to be shown
        - 11 (5 bytes): changed, and too large to be shown
        - and 88 more like these
        - x.png (3 bytes): changed, and not text
        )
        ");
        assert_eq!(not_shown(&[]), "");
    }
}
