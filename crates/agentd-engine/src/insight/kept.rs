//! Answers about repositories that take many git processes, kept for as long as nothing that they
//! were made from has changed. They are for pages, which ask for the same again and again; what is
//! decided asks anew.

use std::sync::{Arc, Mutex, PoisonError};

use crate::git::Seen;
use crate::insight::diff::Compared;
use crate::insight::trace::Commit;

/// What was compared and listed before.
#[derive(Debug, Default)]
pub struct Kept {
    pub(super) compared: Answers<Compared, 4>,
    /// By spec.
    pub(super) commits: Answers<Vec<Commit>, 64>,
}

/// What an answer was made from, and the answer.
type Answer<T> = Arc<(Seen, T)>;

/// The latest answers of a kind, with their questions.
#[derive(Debug)]
pub(super) struct Answers<T, const MOST: usize>(Mutex<Vec<(String, Answer<T>)>>);

impl<T, const MOST: usize> Default for Answers<T, MOST> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T, const MOST: usize> Answers<T, MOST> {
    /// The answer to a question, if it is still true.
    pub(super) fn get(&self, question: &str) -> Option<Answer<T>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(asked, _)| asked == question);
        let answer = found.map(|(_, answer)| Arc::clone(answer));
        drop(known);
        answer.filter(|answer| answer.0.holds())
    }

    /// Keeps an answer, if it will be noticed when it is no longer true.
    pub(super) fn keep(&self, question: String, seen: Seen, answer: T) -> Answer<T> {
        let can_be_kept = seen.can_be_kept();
        let answer = Arc::new((seen, answer));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(asked, _)| *asked != question);
        if can_be_kept {
            known.insert(0, (question, Arc::clone(&answer)));
            known.truncate(MOST);
        }
        answer
    }
}
