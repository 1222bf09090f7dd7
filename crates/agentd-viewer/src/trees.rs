//! What is in working trees, to say which code was edited since it was reviewed. All files have to be
//! read for that, so the answer is kept for a while, and longer where it took long.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agentd_engine::change::glance::TreeDigest;

/// How long an answer is good for at least.
const FRESH: Duration = Duration::from_secs(2);

/// An answer is good for this many times as long as it took to find.
const REST: u32 = 20;

#[derive(Debug, Clone)]
struct Answer {
    digest: TreeDigest,
    until: Instant,
}

#[derive(Debug, Default)]
struct Known {
    answers: BTreeMap<PathBuf, Answer>,
    /// The trees that are being read.
    busy: Vec<PathBuf>,
}

/// The working trees that pages have asked about.
#[derive(Debug, Default)]
pub(super) struct Trees(Mutex<Known>);

impl Trees {
    /// What is known to be in a tree, for a page that cannot wait. If that is not new, it is read
    /// again in the background.
    pub(super) fn digest_later(self: &Arc<Self>, root: &Path) -> TreeDigest {
        let mut known = self.known();
        let answer = known.answers.get(root).cloned();
        let is_fresh = answer.as_ref().is_some_and(|answer| Instant::now() < answer.until);
        if !is_fresh && !known.busy.iter().any(|busy| busy == root) {
            known.busy.push(root.to_owned());
            let (trees, root) = (Arc::clone(self), root.to_owned());
            std::thread::spawn(move || {
                trees.read(&root);
                trees.known().busy.retain(|busy| *busy != root);
            });
        }
        answer.map_or(TreeDigest::Unknown, |answer| answer.digest)
    }

    /// A number that changes with what is known of a tree; asks for a new look from time to time.
    pub(super) fn version(self: &Arc<Self>, root: &Path) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self.digest_later(root) {
            TreeDigest::Known(digest) => digest.to_string().hash(&mut hasher),
            TreeDigest::Unreadable => 1_u8.hash(&mut hasher),
            TreeDigest::Unknown => 2_u8.hash(&mut hasher),
        }
        hasher.finish()
    }

    fn read(&self, root: &Path) -> TreeDigest {
        let begun = Instant::now();
        let digest = TreeDigest::read(root);
        let until = Instant::now() + FRESH.max(begun.elapsed() * REST);
        let answer = Answer { digest: digest.clone(), until };
        self.known().answers.insert(root.to_owned(), answer);
        digest
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
