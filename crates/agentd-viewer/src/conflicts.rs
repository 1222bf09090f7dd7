//! What open changes have in common, as `agentd overlap` finds it. Reading all specs of a
//! thousand changes takes longer than a page may, so the result is kept until a change is
//! written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use agentd_core::ids::ChangeId;
use agentd_engine::insight::overlap::overlaps;
use agentd_engine::store::Project;

use super::App;
use super::overview::Overview;

/// Something that another open change touches as well.
#[derive(Debug)]
pub(super) struct Conflict {
    pub(super) with: ChangeId,
    pub(super) what: String,
}

pub(super) type Shared = Arc<BTreeMap<ChangeId, Vec<Conflict>>>;

/// With more changes than this, a page shows the previous result, and a new one is computed in
/// the background.
const QUICK: usize = 100;

#[derive(Debug, Default)]
struct Cache {
    /// The changes that were compared; the same pointers as long as their files are the same.
    changes: Vec<Arc<Overview>>,
    shared: Shared,
    /// How many results came after the page that asked for them.
    late: u64,
}

/// The last result.
#[derive(Debug, Default)]
pub(super) struct Conflicts(Mutex<Cache>);

impl Conflicts {
    /// A number that grows when a page that is already shown could show more.
    pub(super) fn times(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).late
    }

    /// What each of these changes has in common with others.
    pub(super) fn of(&self, app: &Arc<App>, changes: &[Arc<Overview>]) -> Shared {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = found.changes.len() == changes.len()
            && found.changes.iter().zip(changes).all(|(a, b)| Arc::ptr_eq(a, b));
        if same {
            return Arc::clone(&found.shared);
        }
        found.changes = changes.to_vec();
        if changes.len() <= QUICK {
            found.shared = find(&app.project);
        } else {
            let app = Arc::clone(app);
            std::thread::spawn(move || {
                let shared = find(&app.project);
                let mut found = app.conflicts.0.lock().unwrap_or_else(PoisonError::into_inner);
                found.shared = shared;
                found.late += 1;
            });
        }
        Arc::clone(&found.shared)
    }
}

/// A failure gives an empty result: the board is useful without it.
fn find(project: &Project) -> Shared {
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
