//! What a worker does about its own machine: one that can do nothing must not try one change after the
//! other, and fail them all.

use std::time::{Duration, Instant};

use agentd_core::ids::ChangeId;

use crate::engine::Outcome;

/// The first rest; each further one is twice as long.
const REST: Duration = Duration::from_secs(30);
const LONGEST_REST: Duration = Duration::from_mins(10);
/// After so many tries of the same change, which nobody else has done meanwhile, a person has to look.
const TRIES: u32 = 3;

/// What this machine could not do, since it last did something.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// The last change of these, and how often it was that one.
    last: Option<(ChangeId, u32)>,
    /// How often it was any.
    times: u32,
    until: Option<Instant>,
}

impl Trouble {
    /// What becomes of a step, now that this has come of it.
    pub(super) fn judge(&mut self, change: &ChangeId, outcome: Outcome) -> Outcome {
        let why = match outcome {
            Outcome::Unfit(why) | Outcome::Away(why) => why,
            Outcome::Stepped { .. } => {
                *self = Self::default();
                return outcome;
            }
            Outcome::Busy(_) | Outcome::Throttled(_) | Outcome::Lost | Outcome::Failed(_) => {
                return outcome;
            }
        };
        let before = self.last.take().filter(|(last, _)| last == change);
        let tries = before.map_or(0, |(_, tries)| tries) + 1;
        let longer = 1 << self.times.min(8);
        self.until = Some(Instant::now() + (REST * longer).min(LONGEST_REST));
        self.times = self.times.saturating_add(1);
        if tries >= TRIES {
            return Outcome::Failed(why);
        }
        self.last = Some((change.clone(), tries));
        Outcome::Unfit(why)
    }

    /// For how long this machine leaves everything to others.
    pub(super) fn rest(&self) -> Option<Duration> {
        let left = self.until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Whether it leaves everything to others now.
    pub(super) fn rests(&self) -> bool {
        self.rest().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::StepReport;

    #[test]
    fn a_machine_that_can_do_nothing_fails_no_change_that_another_may_do() {
        let unfit = || Outcome::Unfit("no space left".to_owned());
        let failed = Outcome::Failed("no space left".to_owned());
        let [a, b] = ["a", "b"].map(|id| ChangeId::new(id).unwrap());
        let mut trouble = Trouble::default();
        assert!(!trouble.rests());
        let mut rests = Vec::new();
        for change in [&a, &b, &a, &b, &b, &b, &b] {
            rests.push((trouble.judge(change, unfit()) == failed, trouble.rest().unwrap()));
        }
        let judged: Vec<bool> = rests.iter().map(|(failed, _)| *failed).collect();
        // Nobody else has done the last one in three rests.
        assert_eq!(judged, [false, false, false, false, false, true, false]);
        let rests: Vec<u64> = rests.iter().map(|(_, rest)| rest.as_secs() + 1).collect();
        assert_eq!(rests, [30, 60, 120, 240, 480, 600, 600]);
        let report = StepReport::default();
        let stepped = Outcome::Stepped { report, cost_before: None };
        assert_eq!(trouble.judge(&a, stepped.clone()), stepped);
        assert!(!trouble.rests(), "it can do something again");
    }
}
