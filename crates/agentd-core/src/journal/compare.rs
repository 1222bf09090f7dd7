//! How the journal and the state of a change compare with the copy of the journal that agentd keeps
//! for itself.

use super::{Broken, Entry, Event, Journal, claims, parse};
use crate::hash::Digest;
use crate::phase::Phase;
use crate::state::State;

/// A change whose files agree with its record.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The journal as it stands.
    pub journal: Journal,
    /// What is to be done with the file in the change.
    pub public: Public,
    /// Whether this machine has a copy of it that agrees.
    pub known_here: bool,
}

/// What is to be done with `journal.jsonl`, so that it is the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Public {
    /// Nothing.
    AsIs,
    /// Its last entry is missing: agentd was killed before it was written.
    OneShort,
    /// It was changed by somebody else, and is to be written again.
    Changed,
}

/// Why the files of a change are not what agentd recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The phase, a verdict or a decision in STATE.yaml is not the one that was recorded.
    #[error("STATE.yaml was edited: its phase, verdicts or decisions are not those in the journal")]
    StateEdited,
    /// The journal cannot be read.
    #[error("journal.jsonl is damaged: {0}")]
    Damaged(Broken),
    /// The journal has entries that this machine did not write.
    #[error("journal.jsonl has {count} entries that were not written on this machine")]
    Foreign {
        /// How many.
        count: u64,
    },
    /// The files are from before the last entries.
    #[error("STATE.yaml and journal.jsonl are {count} entries behind the record of this machine")]
    Behind {
        /// How many.
        count: u64,
    },
}

/// Compares the files of a change with the copy that agentd keeps. Without both journals there is
/// nothing to compare: the change is from before journals, or was made by hand.
pub fn compare(
    state: &State,
    state_text: &str,
    public: Option<&str>,
    private: Option<&str>,
) -> Result<Option<Compared>, Mismatch> {
    let Some(private) = private else {
        let Some(public) = public else { return Ok(None) };
        return alone(state, public).map(Some);
    };
    // A copy that is damaged says nothing; the next write makes a new one.
    let Ok(mut private) = parse(private) else {
        return match public {
            Some(public) => alone(state, public).map(Some),
            None => Err(Mismatch::StateEdited),
        };
    };
    let public_text = public.unwrap_or_default();
    let dropped = drop_what_never_happened(&mut private, &Digest::of(state_text), public_text);
    if dropped && public.is_none() && is_only_taken_over(&private) {
        // The first write to a change from before journals did not happen.
        return Ok(None);
    }
    let counts = claims(state);
    let text = private.text();
    if private.last().is_some_and(|last| grants(last, state)) {
        let public = if public_text == text {
            Public::AsIs
        } else if text.starts_with(public_text) && is_last_write(&private, public_text) {
            Public::OneShort
        } else {
            match longer(&text, public_text, &counts) {
                Some(count) => return Err(Mismatch::Foreign { count }),
                None => Public::Changed,
            }
        };
        return Ok(Some(Compared { journal: private, public, known_here: true }));
    }
    if let Some(count) = longer(&text, public_text, &counts) {
        return Err(Mismatch::Foreign { count });
    }
    match parse(public_text) {
        Ok(older)
            if text.starts_with(public_text)
                && older.last().is_some_and(|last| last.claims == counts) =>
        {
            Err(Mismatch::Behind { count: private.head.seq - older.head.seq })
        }
        _ => Err(Mismatch::StateEdited),
    }
}

/// A journal without a copy on this machine: it must agree with itself and with the state.
fn alone(state: &State, public: &str) -> Result<Compared, Mismatch> {
    let journal = parse(public).map_err(Mismatch::Damaged)?;
    if !public.ends_with('\n') && !public.is_empty() {
        let line = journal.entries.len() + 1;
        return Err(Mismatch::Damaged(Broken { line, why: "it has no end" }));
    }
    if journal.last().is_none_or(|last| !grants(last, state)) {
        return Err(Mismatch::StateEdited);
    }
    Ok(Compared { journal, public: Public::AsIs, known_here: false })
}

/// Whether an entry grants all that a state claims. A person may move a change back by hand: what
/// an earlier phase claims was granted before, and has to be earned again from there.
fn grants(entry: &Entry, state: &State) -> bool {
    let rank = |phase: Phase| match phase {
        Phase::Proposed | Phase::Rejected => 0,
        Phase::Challenged | Phase::Implementing => 1,
        Phase::Complete => 2,
        Phase::Archived => 3,
    };
    let recorded = Phase::ALL
        .into_iter()
        .find(|phase| entry.claims == claims(&State { phase: *phase, ..state.clone() }));
    recorded.is_some_and(|recorded| rank(state.phase) <= rank(recorded))
}

/// The copy is written first. Where agentd was killed before it wrote the state, its last entries
/// are of something that did not happen. Says whether there were any.
fn drop_what_never_happened(private: &mut Journal, state: &Digest, public: &str) -> bool {
    let Some(last) = private.last() else { return false };
    if last.state == *state || public.len() >= private.text().len() {
        return false;
    }
    let written = private.entries.iter().rposition(|entry| entry.state != last.state);
    let kept = written.map_or(0, |index| index + 1);
    if private.entries.get(kept.wrapping_sub(1)).is_some_and(|entry| entry.state == *state) {
        private.entries.truncate(kept);
        let text = private.text();
        if let Ok(shorter) = parse(&text) {
            *private = shorter;
        }
        return true;
    }
    false
}

/// Whether nothing is recorded but that a state was there.
fn is_only_taken_over(journal: &Journal) -> bool {
    let taken_over = |event: &Event| matches!(event, Event::Adopted { by, .. } if by.is_empty());
    journal.entries.iter().all(|entry| taken_over(&entry.event))
}

/// Whether all that is missing in the file is the last write, or a part of it.
fn is_last_write(private: &Journal, public: &str) -> bool {
    let Some(last) = private.last() else { return false };
    let written = private.entries.iter().rposition(|entry| entry.state != last.state);
    let before: usize = private.entries[..written.map_or(0, |index| index + 1)]
        .iter()
        .map(|entry| entry.line().len() + 1)
        .sum();
    public.len() >= before
}

/// How many entries the file has on top of the copy, where they are sound and are those of the
/// state.
fn longer(private: &str, public: &str, counts: &Digest) -> Option<u64> {
    let more = public.strip_prefix(private).filter(|more| !more.is_empty())?;
    let journal = parse(public).ok()?;
    let is_it = journal.last().is_some_and(|last| last.claims == *counts);
    is_it.then(|| more.lines().count() as u64)
}
