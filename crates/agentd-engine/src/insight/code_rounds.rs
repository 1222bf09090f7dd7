//! The rounds in which the code of a change was reviewed: all of them, where STATE.yaml and
//! REVIEW.md keep the latest.
//!
//! The runs of the reviewers have the others: their calls of `create_review` that were taken,
//! and the test results that each of them was given.

use agentd_core::document::review::Review;
use agentd_core::prompt::{self, TestEvidence};
use agentd_core::recording::{RecordedCall, Run};
use agentd_core::stamp::Stamp;
use agentd_core::step_name::StepName;
use agentd_core::text::Line;

use crate::change::Snapshot;
use crate::change::documents::DocumentError;
use crate::tools::{self, input};

/// The rounds, oldest first.
#[derive(Debug, Default)]
pub struct CodeRounds {
    /// The reviews.
    pub reviews: Vec<Review>,
    /// The run of each of them; empty where no run was kept.
    pub runs: Vec<u32>,
    /// The runs of the tests before the one that STATE.yaml has, each with the time at which
    /// its reviewer was asked.
    pub tests: Vec<(Stamp, TestEvidence)>,
}

/// Reads the rounds of a change. Runs that cannot be read are left out.
pub fn code_rounds(snapshot: &Snapshot) -> Result<CodeRounds, DocumentError> {
    let state = snapshot.state()?;
    let mut rounds = CodeRounds::default();
    let runs = snapshot.runs().unwrap_or_default();
    for name in runs.iter().filter(|run| run.step() == StepName::Review) {
        let Ok(Some(run)) = snapshot.read_run(name) else { continue };
        let asked = Stamp::new(run.started());
        // An attempt that follows another was given the same test results.
        let is_known = state.test_run.as_ref().is_some_and(|latest| latest.at <= asked);
        if run.header.attempt <= 1 && !is_known {
            let reported = prompt::Review::tests_reported(&run.header.prompt);
            rounds.tests.extend(reported.map(|tests| (asked, tests)));
        }
        taken(&run, &mut rounds.reviews);
        rounds.runs.resize(rounds.reviews.len(), name.number());
    }
    // Of the latest the document itself is there.
    let latest = snapshot.documents.review.value_if_there();
    if let (Some(latest), Some(last)) = (latest, rounds.reviews.last_mut())
        && latest.created_at == last.created_at
    {
        last.clone_from(latest);
    }
    Ok(rounds)
}

/// The reviews that were taken from a reviewer.
fn taken(run: &Run, reviews: &mut Vec<Review>) {
    for call in run.records.iter().filter_map(RecordedCall::of) {
        let answer = run.answer(call.id).filter(|answer| answer.ok);
        let (Some(answer), "create_review") = (answer, call.tool) else { continue };
        let serde_json::Value::Object(arguments) = call.arguments.to_value() else { continue };
        let Ok(input) = input::read(arguments) else { continue };
        let reviewer = Line::new(run.agent.name());
        let now = run.moment(Some(&answer), answer.t);
        reviews.extend(tools::next_review(reviews.last(), input, reviewer, now).ok());
    }
}
