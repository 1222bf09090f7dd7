//! What open changes share, as `agentd overlap` finds it. Reading all specs of a thousand
//! changes takes longer than a page may, so it is kept until a change is another one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use agentd_core::ids::ChangeId;
use agentd_engine::insight::overlap::overlaps;
use agentd_engine::store::Project;

use super::App;
use super::summaries::Known;

/// Something that another open change touches too.
#[derive(Debug)]
pub(super) struct Conflict {
    pub(super) with: ChangeId,
    pub(super) what: String,
}

type Shared = Arc<BTreeMap<ChangeId, Vec<Conflict>>>;

/// With more changes than this, a page shows what was found for the one before it and has
/// it looked for anew meanwhile.
const QUICK: usize = 100;

#[derive(Debug, Default)]
struct Found {
    /// The changes for which it was found; they are the same while their files are.
    changes: Vec<Arc<Known>>,
    shared: Shared,
    /// How often something was found after the page that it was looked for.
    late: u64,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Conflicts(Mutex<Found>);

impl Conflicts {
    /// A number that grows when a page that is shown already could show more.
    pub(super) fn times(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).late
    }

    /// What each of these changes shares with others.
    pub(super) fn of(&self, app: &Arc<App>, changes: &[Arc<Known>]) -> Shared {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = found.changes.len() == changes.len()
            && found.changes.iter().zip(changes).all(|(a, b)| Arc::ptr_eq(a, b));
        if same {
            return Arc::clone(&found.shared);
        }
        found.changes = changes.to_vec();
        if changes.len() <= QUICK {
            found.shared = look(&app.project);
        } else {
            let app = Arc::clone(app);
            std::thread::spawn(move || {
                let shared = look(&app.project);
                let mut found = app.conflicts.0.lock().unwrap_or_else(PoisonError::into_inner);
                found.shared = shared;
                found.late += 1;
            });
        }
        Arc::clone(&found.shared)
    }
}

/// A board without it is still a board.
fn look(project: &Project) -> Shared {
    let mut shared: BTreeMap<ChangeId, Vec<Conflict>> = BTreeMap::new();
    for overlap in overlaps(project, None).unwrap_or_default() {
        for touch in &overlap.changes {
            let others = overlap.changes.iter().filter(|other| other.change_id != touch.change_id);
            let conflicts = others.map(|other| Conflict {
                with: other.change_id.clone(),
                what: overlap.what.clone(),
            });
            shared.entry(touch.change_id.clone()).or_default().extend(conflicts);
        }
    }
    Arc::new(shared)
}
