//! A recorded call that writes down when it is paid for, as a vendor would: so a test of schedulers can
//! compare what was paid with what agentd believes to have spent.
//!
//! Set in the environment of the test; a repository cannot turn it on.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agentd_core::recording::Run;
use serde_json::{Value, json};

use crate::call::Call;
use crate::error::AgentError;

/// The file to which a line is added when a call begins, and one when it has ended.
const FILE: &str = "AGENTD_REPLAY_PAYMENTS";
/// How long a call takes at least, in milliseconds.
const LEAST: &str = "AGENTD_REPLAY_CALL_MS";

/// A call that was paid for.
pub(super) struct Payment {
    file: PathBuf,
    entry: Value,
    until: Instant,
}

impl Payment {
    /// Pays for a call, if somebody wants to know.
    pub(super) fn make(call: &Call, run: &Run) -> Result<Option<Self>, AgentError> {
        let Some(file) = env::var_os(FILE).map(PathBuf::from) else { return Ok(None) };
        let least = env::var(LEAST).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        let cost = run.end.as_ref().and_then(|end| end.outcome.cost_usd).unwrap_or(0.0);
        // Processes in namespaces of their own may have the same number.
        let id = format!("{}-{}", nanoseconds(), std::process::id());
        let entry = json!({"call": id, "change": call.change, "step": call.step, "usd": cost});
        let payment = Self { file, entry, until: Instant::now() + Duration::from_millis(least) };
        payment.add("paid")?;
        Ok(Some(payment))
    }

    /// Notes that the call has ended, once it has taken as long as it should.
    pub(super) fn end(self) -> Result<(), AgentError> {
        thread::sleep(self.until.saturating_duration_since(Instant::now()));
        self.add("ended")
    }

    fn add(&self, what: &str) -> Result<(), AgentError> {
        let mut entry = self.entry.clone();
        entry["what"] = json!(what);
        entry["at_ms"] = json!(nanoseconds() / 1_000_000);
        // One write, so that lines of several processes do not mix.
        let line = format!("{entry}\n");
        let file = OpenOptions::new().append(true).create(true).open(&self.file);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> AgentError {
        AgentError::other(format!("cannot write {FILE}={}: {error}", self.file.display()))
    }
}

fn nanoseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
