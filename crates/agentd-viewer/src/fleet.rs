//! What the remote repository has of changes that workers carry. Asking it takes a conversation, so pages
//! show what was seen last, with its age, and it is asked again in the background while somebody looks.

use std::hash::{Hash as _, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agentd_core::ids::ChangeId;
use agentd_core::stamp::Stamp;
use agentd_engine::carrier::sightings::{self, Sighting, Sightings};
use agentd_engine::git::GitTool;
use agentd_engine::store::Project;
use jiff::Timestamp;

/// Between two looks, at least.
const REST: Duration = Duration::from_secs(10);
/// If the remote does not answer, each pause is twice as long, up to this.
const LONGEST_REST: Duration = Duration::from_mins(5);

/// What was seen last.
#[derive(Debug)]
pub(super) struct Fleet {
    project: Project,
    /// Whether the remote may be asked.
    asks: bool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    sightings: Option<Arc<Sightings>>,
    is_read: bool,
    is_looking: bool,
    /// Not before that.
    next: Option<Instant>,
    failures: u32,
}

impl Fleet {
    pub(super) fn new(project: Project, asks: bool) -> Self {
        Self { project, asks, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was seen last, at once; where it is time, a look is begun. Nothing where no change of this
    /// project is carried: then the remote is not asked either.
    pub(super) fn seen(self: &Arc<Self>) -> Option<Arc<Sightings>> {
        let mut known = self.known();
        if !known.is_read {
            known.is_read = true;
            known.sightings = sightings::known(&self.project).map(Arc::new);
        }
        let is_due = known.next.is_none_or(|next| Instant::now() >= next);
        if is_due && !known.is_looking {
            if known.sightings.is_none() {
                // Somebody may have begun to use a fleet since.
                known.sightings = sightings::known(&self.project).map(Arc::new);
                known.next = Some(Instant::now() + REST);
            }
            if self.asks && known.sightings.is_some() {
                known.is_looking = true;
                let fleet = Arc::clone(self);
                std::thread::spawn(move || fleet.look());
            }
        }
        known.sightings.clone().filter(|sightings| sightings.seen.is_some())
    }

    fn look(&self) {
        let now = Stamp::new(Timestamp::now());
        let seen = sightings::look(&self.project, &GitTool::default(), now);
        let mut known = self.known();
        known.is_looking = false;
        known.failures = if seen.is_ok() { 0 } else { known.failures.saturating_add(1) };
        let rest = REST.saturating_mul(1 << known.failures.min(10)).min(LONGEST_REST);
        known.next = Some(Instant::now() + rest);
        if let Ok(Some(seen)) = seen {
            known.sightings = Some(Arc::new(seen));
        }
    }

    /// What is known of a change.
    pub(super) fn of(self: &Arc<Self>, change: &ChangeId) -> Option<(Sighting, Arc<Sightings>)> {
        let seen = self.seen()?;
        let sighting = seen.of(change)?.clone();
        Some((sighting, seen))
    }

    /// Adds what a page shows of it; of its age, the minute.
    pub(super) fn mark(self: &Arc<Self>, hasher: &mut impl Hasher) {
        let Some(seen) = self.seen() else { return };
        seen.seen.map(|at| at.moment().as_second() / 60).hash(hasher);
        for sighting in &seen.changes {
            sighting.change.as_str().hash(hasher);
            sighting.moved.to_string().hash(hasher);
        }
    }
}
