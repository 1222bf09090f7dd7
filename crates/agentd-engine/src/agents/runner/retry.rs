//! When a call is made again, and what it asks for then.

use std::time::Duration;

use agentd_core::outcome::FailureKind;
use agentd_core::provider::Session;

/// When a transient failure is tried again (C13).
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// How often, at most.
    pub retries: u32,
    /// How long to wait before the first; twice as long before each further one.
    pub delay: Duration,
    /// The longest wait, also when a CLI asks for a longer one.
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { retries: 2, delay: Duration::from_secs(5), longest: Duration::from_mins(10) }
    }
}

impl Retry {
    /// How long to wait before retry number `n`, from 1.
    pub fn wait(&self, n: u32, asked_ms: Option<u64>) -> Duration {
        let doubled = self.delay.saturating_mul(1 << n.saturating_sub(1).min(16));
        doubled.max(Duration::from_millis(asked_ms.unwrap_or(0))).min(self.longest)
    }
}

/// A retry must not ask for what the attempt before it has used up: an id that is
/// taken, or an index that has shifted.
pub(super) fn for_retry(session: &Session) -> Session {
    match session {
        Session::Fresh | Session::FreshWithId(_) => Session::Fresh,
        Session::Resume { id, thread_usage, cost_before, .. } => Session::Resume {
            id: id.clone(),
            index: None,
            thread_usage: *thread_usage,
            cost_before: *cost_before,
        },
    }
}

/// Whether an index has led to another session: a program that is not agentd has resumed one since
/// the list was read. It is asked for once more, by its ID (C32).
pub(super) fn was_moved(failure: FailureKind, session: &Session) -> bool {
    failure == FailureKind::WrongSession
        && matches!(session, Session::Resume { index: Some(_), .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_honor_the_cli_and_have_a_limit() {
        let retry =
            Retry { retries: 9, delay: Duration::from_secs(5), longest: Duration::from_mins(1) };
        let seconds = |n, asked: Option<u64>| retry.wait(n, asked.map(|s| s * 1000)).as_secs();
        assert_eq!([seconds(1, None), seconds(2, None), seconds(3, None)], [5, 10, 20]);
        assert_eq!(seconds(9, None), 60);
        assert_eq!(seconds(1, Some(30)), 30);
        assert_eq!(seconds(1, Some(2)), 5);
        assert_eq!(seconds(1, Some(100_000)), 60);
    }

    #[test]
    fn a_retry_drops_used_session_ids() {
        assert_eq!(for_retry(&Session::FreshWithId("a".into())), Session::Fresh);
        let resume = Session::Resume {
            id: "a".into(),
            index: Some(2),
            thread_usage: None,
            cost_before: None,
        };
        let again =
            Session::Resume { id: "a".into(), index: None, thread_usage: None, cost_before: None };
        assert_eq!(for_retry(&resume), again);
    }
}
