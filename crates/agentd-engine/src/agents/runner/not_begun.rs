//! Attempts whose program was never started: they are recorded, too.

use std::time::Duration;

use agentd_core::outcome::{AgentOutcome, Failure, FailureKind};
use agentd_core::run_format::RunEnd;

use super::{Attempt, RunError};
use crate::agents::run_record::RunWriter;

/// The attempt that failed before its program was started.
pub(super) fn not_begun(record: RunWriter, started_at: String, error: RunError) -> Attempt {
    let failure = Failure::new(FailureKind::Other, error.to_string());
    let outcome = AgentOutcome { failure: Some(failure), ..AgentOutcome::default() };
    let run_file = record.path().to_owned();
    let end = RunEnd { exit_code: None, signal: None, duration_ms: 0, outcome: outcome.clone() };
    // The first error is the one to report.
    let _ = record.end(&end);
    let (duration, tampered, error) = (Duration::ZERO, Vec::new(), Some(error));
    let (left_behind, estimate_usd) = (0, None);
    Attempt { outcome, run_file, started_at, duration, left_behind, estimate_usd, tampered, error }
}
