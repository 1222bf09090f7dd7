//! What becomes of an account whose vendor refuses calls: it is used less for a while, and recovers.
//!
//! A refusal halves how many calls there are at once, and each further one makes the rest longer. An
//! account that is refused again and again, or has used up a quota, rests altogether. After the rest it
//! gets twice as many calls every half a minute, until it has its own limit again.

use std::time::Duration;

/// A call that the vendor has refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throttle {
    /// The agent that was called.
    pub agent: String,
    /// Whether a quota is used up, rather than too much at once.
    pub exhausted: bool,
    /// How long to wait, where the vendor says so.
    pub retry_after: Option<Duration>,
    /// What the vendor has said.
    pub why: String,
}

/// How an account is used for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lowered {
    /// How many calls at once; none where it is 0.
    pub to: u32,
    /// How often it was refused in a row.
    pub times: u32,
    /// For how long.
    pub rest: Duration,
}

/// The first rest after too much at once; each further one is twice as long.
const REST: Duration = Duration::from_secs(30);
const LONGEST_REST: Duration = Duration::from_mins(10);
/// The same for a quota of which nobody says when it is renewed.
const QUOTA_REST: Duration = Duration::from_mins(30);
const LONGEST_QUOTA_REST: Duration = Duration::from_hours(6);
/// Nobody is believed who says that it takes longer.
const LONGEST: Duration = Duration::from_hours(7 * 24);
/// After so many refusals in a row, nothing is called during the rest.
const BREAKER: u32 = 5;
/// How long a step of the recovery takes.
const RECOVERY_STEP: Duration = Duration::from_secs(30);
/// After so many of them it is over.
const RECOVERY_STEPS: u32 = 5;
/// After a rest, how long it takes until the account is as before.
pub(crate) const RECOVERY: Duration = Duration::from_secs(30 * 5);

/// What a refusal makes of an account that has so many calls now, this one included, and was refused so
/// often before without having recovered.
pub fn lowered(throttle: &Throttle, running: u32, times_before: u32) -> Lowered {
    let times = times_before.saturating_add(1);
    let doubled = |first: Duration, longest: Duration| {
        first.saturating_mul(1 << (times - 1).min(16)).min(longest)
    };
    let asked = throttle.retry_after.unwrap_or_default().min(LONGEST);
    if throttle.exhausted {
        let rest = if asked.is_zero() { doubled(QUOTA_REST, LONGEST_QUOTA_REST) } else { asked };
        return Lowered { to: 0, times, rest };
    }
    let to = if times >= BREAKER { 0 } else { (running / 2).max(1) };
    Lowered { to, times, rest: doubled(REST, LONGEST_REST).max(asked) }
}

/// How many calls at once an account may have that was lowered, so long after its rest has ended; before
/// that, nothing. None once it has recovered.
pub fn effective(to: u32, since_rest: Option<Duration>) -> Option<u32> {
    let Some(since) = since_rest else { return Some(to) };
    let step = u32::try_from(since.as_secs() / RECOVERY_STEP.as_secs()).unwrap_or(u32::MAX);
    (step < RECOVERY_STEPS).then(|| to.saturating_mul(2).max(1).saturating_mul(1 << step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(exhausted: bool, retry_after: Option<u64>) -> Throttle {
        Throttle {
            agent: "claude".to_owned(),
            exhausted,
            retry_after: retry_after.map(Duration::from_secs),
            why: "429".to_owned(),
        }
    }

    #[test]
    fn a_refusal_halves_and_a_used_up_quota_stops() {
        let check = |throttle: &Throttle, running, before, (to, rest)| {
            let found = lowered(throttle, running, before);
            assert_eq!(
                (found.to, found.rest.as_secs()),
                (to, rest),
                "{throttle:?} {running} {before}"
            );
            assert_eq!(found.times, before + 1);
        };
        let too_many = refused(false, None);
        check(&too_many, 8, 0, (4, 30));
        check(&too_many, 4, 1, (2, 60));
        check(&too_many, 1, 2, (1, 120));
        check(&too_many, 1, 4, (0, 480));
        check(&too_many, 1, 90, (0, 600));
        check(&refused(false, Some(45)), 6, 0, (3, 45));
        check(&refused(false, Some(5)), 6, 0, (3, 30));
        check(&refused(true, Some(13_872)), 6, 0, (0, 13_872));
        check(&refused(true, None), 6, 0, (0, 1800));
        check(&refused(true, None), 6, 7, (0, 21_600));
        check(&refused(true, Some(u64::MAX)), 6, 0, (0, 604_800));
    }

    #[test]
    fn an_account_recovers_step_by_step() {
        let after = |to, secs: Option<u64>| effective(to, secs.map(Duration::from_secs));
        assert_eq!(after(3, None), Some(3));
        assert_eq!(after(0, None), Some(0));
        let steps = [0, 30, 60, 90, 120, 150].map(|secs| after(3, Some(secs)));
        assert_eq!(steps, [Some(6), Some(12), Some(24), Some(48), Some(96), None]);
        assert_eq!([0, 30].map(|secs| after(0, Some(secs))), [Some(1), Some(2)]);
        assert_eq!(after(1, Some(RECOVERY.as_secs())), None);
    }
}
