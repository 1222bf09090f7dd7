//! Who signed what a change claims (T6).
//!
//! Each line names the one before, so the signature of the last one covers all of them: its
//! signer continued exactly these lines. That does not make earlier lines theirs, so the lines with a
//! verdict, a test run or a decision must be signed themselves. Only these and the last are checked,
//! since each check starts a program.

use std::collections::BTreeMap;

use agentd_core::journal::{Entry, Journal, Record};
use serde::Serialize;

use super::verify::{Claim, Status};
use crate::change::signing::{AllowedSigners, Signed, SigningError};

/// How many signatures are checked at a time.
const AT_A_TIME: usize = 8;
/// How many entries are listed by number.
const SHOWN: usize = 8;

/// The signatures in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Signatures {
    /// Whether it was checked who made them.
    pub checked: bool,
    /// How many entries have one.
    pub signed: usize,
    /// The entries that have none.
    pub unsigned: Vec<u64>,
    /// Who signed the last entry, where that was checked and someone on the list did.
    pub last: Option<String>,
    #[serde(skip)]
    found: BTreeMap<u64, Signed>,
    #[serde(skip)]
    decisions: Vec<u64>,
}

impl Signatures {
    /// Checks those that matter, where there is a list to check them against.
    pub(crate) fn of(
        journal: &Journal,
        said: &Record,
        signers: Option<&AllowedSigners>,
    ) -> Result<Self, SigningError> {
        let decisions: Vec<u64> = said.decisions.iter().map(|(seq, ..)| *seq).collect();
        let mut found = BTreeMap::new();
        if let Some(signers) = signers {
            let verdicts = [
                said.plan.as_ref().map(|plan| plan.seq),
                said.tests.as_ref().map(|tests| tests.seq),
                said.code.as_ref().map(|code| code.seq),
            ];
            let claimed = |entry: &&Entry| {
                entry.seq == journal.head.seq
                    || verdicts.contains(&Some(entry.seq))
                    || decisions.contains(&entry.seq)
            };
            let claimed: Vec<&Entry> = journal.entries.iter().filter(claimed).collect();
            for (entry, signed) in claimed.iter().zip(checked(&claimed, signers)) {
                found.insert(entry.seq, signed?);
            }
        }
        let unsigned = journal.entries.iter().filter(|entry| entry.sig.is_none());
        let unsigned: Vec<u64> = unsigned.map(|entry| entry.seq).collect();
        Ok(Self {
            checked: signers.is_some(),
            signed: journal.entries.len() - unsigned.len(),
            unsigned,
            last: match found.get(&journal.head.seq) {
                Some(Signed::By(name)) => Some(name.clone()),
                _ => None,
            },
            found,
            decisions,
        })
    }

    /// What is wrong with the signatures that were checked, if something is: that of the last entry, and
    /// those of entries with a verdict, a test run or a decision.
    pub(crate) fn missing(&self) -> Option<String> {
        if self.found.is_empty() {
            return Some("nothing was recorded".to_owned());
        }
        let wrong = self.found.keys().find_map(|entry| Some((entry, self.problem(*entry)?)));
        wrong.map(|(entry, why)| format!("entry #{entry} {why}"))
    }

    /// Adds to a claim who signed it. One that nobody on the list signed is not proven.
    pub(super) fn add_to(&self, claim: &mut Claim) {
        if !self.checked || claim.status != Status::Proven {
            return;
        }
        let entries: Vec<u64> = match claim.name {
            "plan" | "tests" | "code" => claim.entry.into_iter().collect(),
            "decisions" => self.decisions.clone(),
            _ => return,
        };
        let mut names: Vec<&str> = Vec::new();
        let mut wrong = Vec::new();
        for entry in entries {
            match self.problem(entry) {
                Some(why) => wrong.push(format!("#{entry} {why}")),
                None => names.extend(self.signer(entry)),
            }
        }
        claim.signed_by = names.last().map(|name| (*name).to_owned());
        if wrong.is_empty() {
            names.sort_unstable();
            names.dedup();
            claim.text = format!("{}; signed by {}", claim.text, names.join(", "));
        } else {
            claim.status = Status::NotProven;
            claim.text = format!("{}; {}", claim.text, shortened(&wrong));
        }
    }

    /// The claim about the journal as a whole.
    pub(super) fn claim(&self, journal: &Journal) -> Claim {
        let (last, count) = (journal.head.seq, journal.entries.len());
        let signed = format!("{} of {count} entries are signed", self.signed);
        let (status, entry, text) = match self.problem(last) {
            _ if !self.checked && self.signed == 0 => (Status::NotClaimed, None, "none".to_owned()),
            _ if !self.checked => {
                let text = format!("{signed}; not checked: pass --allowed-signers <file>");
                (Status::NotClaimed, None, text)
            }
            Some(why) => {
                let text = format!("the last entry {why}; {signed}");
                (Status::NotProven, Some(last), text)
            }
            None => {
                let mut text = format!(
                    "the last entry is signed by {}, and covers those before; {signed}",
                    self.last.as_deref().unwrap_or_default()
                );
                if !self.unsigned.is_empty() {
                    let unsigned: Vec<String> =
                        self.unsigned.iter().map(|entry| format!("#{entry}")).collect();
                    text = format!("{text}, not {}", shortened(&unsigned));
                }
                (Status::Proven, Some(last), text)
            }
        };
        Claim { name: "signatures", status, text, entry, signed_by: self.last.clone() }
    }

    fn signer(&self, entry: u64) -> Option<&str> {
        match self.found.get(&entry) {
            Some(Signed::By(name)) => Some(name),
            _ => None,
        }
    }

    /// What is wrong with the signature of an entry, if something is, and what to do about it.
    fn problem(&self, entry: u64) -> Option<String> {
        match self.found.get(&entry) {
            Some(Signed::By(_)) => None,
            Some(Signed::No) | None => Some(
                "is not signed: set `[policy] sign = \"ssh\"` before it is recorded again"
                    .to_owned(),
            ),
            Some(Signed::ByOther { key }) => Some(format!(
                "is signed with {key}, which is not on the list for `agentd-journal` at that \
                 time: add the key if it is a teammate's"
            )),
            Some(Signed::Wrong) => Some(
                "has a signature that is not its own: restore journal.jsonl from git".to_owned(),
            ),
        }
    }
}

/// Checks several at a time: most of it is waiting for programs.
fn checked(entries: &[&Entry], signers: &AllowedSigners) -> Vec<Result<Signed, SigningError>> {
    let check = |entries: &[&Entry]| -> Vec<_> {
        entries.iter().map(|entry| signers.signer_of(entry)).collect()
    };
    let share = entries.len().div_ceil(AT_A_TIME).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            entries.chunks(share).map(|share| scope.spawn(move || check(share))).collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}

fn shortened(all: &[String]) -> String {
    let mut text = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > SHOWN {
        text = format!("{text} and {} more", all.len() - SHOWN);
    }
    text
}
