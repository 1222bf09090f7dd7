//! When an earlier session can be opened.

use std::time::Duration;

use agentd_core::agent::{AgentKind, Transport};
use agentd_core::event::AgentEvent;
use agentd_core::state::State;
use jiff::Timestamp;

use super::{Agents, Step};
use crate::agents::runner::Observer;

/// Waits until a session can be loaded. False if that was interrupted.
///
/// Over ACP, Gemini CLI writes the beginning of a session again when it loads it, into a file that is
/// named by the minute: in the minute in which the session began, that is its own file, and all of
/// it is lost.
pub(super) fn may_load(
    agents: &Agents,
    step: &Step,
    state: &State,
    observer: &mut Observer<'_>,
) -> bool {
    let is_gemini =
        step.agent == AgentKind::Gemini && agents.config.transport(step.agent) == Transport::Acp;
    let Some(id) = step.resume.as_ref().filter(|_| is_gemini) else { return true };
    let first = state.llm_calls.iter().find(|call| call.session_id.as_ref() == Some(id));
    let Some(ended) = first.and_then(|call| call.timestamp) else { return true };
    let wait = wait(ended.moment(), Timestamp::now());
    if wait.is_zero() {
        return true;
    }
    let message = format!(
        "waiting {} s: Gemini CLI loses a session that is loaded in the minute in which it began",
        wait.as_secs()
    );
    observer(&AgentEvent::Warning { message: message.into() });
    !agents.cancel.sleep(wait)
}

/// How long it takes until the minute is over in which the first call of a session ended.
fn wait(ended: Timestamp, now: Timestamp) -> Duration {
    let minute = |time: Timestamp| time.as_second().div_euclid(60);
    if minute(ended) < minute(now) {
        return Duration::ZERO;
    }
    let left = (minute(ended) + 1) * 60 - now.as_second();
    // A clock that was set back must not stop the work for longer than that.
    Duration::from_secs(u64::try_from(left).unwrap_or(0).min(60) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_loaded_in_a_later_minute() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        for (ended, now, seconds) in [
            ("2026-11-18T10:00:10Z", "2026-11-18T10:00:10Z", 51),
            ("2026-11-18T10:00:10Z", "2026-11-18T10:00:59Z", 2),
            ("2026-11-18T10:00:59Z", "2026-11-18T10:01:00Z", 0),
            ("2026-11-18T10:00:10Z", "2026-11-18T12:00:00Z", 0),
            ("2026-11-18T12:00:00Z", "2026-11-18T10:00:00Z", 61),
        ] {
            assert_eq!(wait(at(ended), at(now)).as_secs(), seconds, "{ended} {now}");
        }
    }
}
