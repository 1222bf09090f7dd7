//! The proof that a review was written in a call that agentd started for it.
//!
//! Before it calls a challenger or a reviewer, agentd creates a random key that only this call's MCP
//! server is given. The tool that writes the review leaves a receipt beside it, which nobody can make
//! without the key. When the verdict is taken, the key and the receipt are gone: what counts from then
//! on is the journal.

use serde::{Deserialize, Serialize};

use crate::agent::Role;
use crate::hash::{Digest, hex, unhex};
use crate::ids::ChangeId;

/// The key of one call.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceiptKey([u8; 32]);

impl ReceiptKey {
    /// A key of random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// Reads a key as [`ReceiptKey::text`] writes it, from the first line of a text.
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text.lines().next()?.trim())?.try_into().ok().map(Self)
    }

    /// The key in hex digits.
    pub fn text(&self) -> String {
        hex(&self.0)
    }

    /// The receipt for a review of this digest.
    pub fn receipt(&self, change: &ChangeId, role: Role, review: &Digest) -> Receipt {
        Receipt { role, review: review.clone(), proof: self.proof(change, role, review) }
    }

    /// Whether a receipt is for this review, and was made with this key.
    pub fn proves(
        &self,
        receipt: &Receipt,
        change: &ChangeId,
        role: Role,
        review: &Digest,
    ) -> bool {
        *receipt == self.receipt(change, role, review)
    }

    /// Nested, so that a longer text cannot be derived from a proof that is known.
    fn proof(&self, change: &ChangeId, role: Role, review: &Digest) -> Digest {
        let text = format!("agentd review\n{change}\n{role}\n{review}\n");
        let inner = Digest::of([&self.0[..], text.as_bytes()].concat()).to_string();
        Digest::of([&self.0[..], inner.as_bytes()].concat())
    }
}

impl std::fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReceiptKey(..)")
    }
}

/// `receipt.json`, while the verdict of a call waits to be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Who wrote the review.
    pub role: Role,
    /// The digest of the review.
    pub review: Digest,
    /// What only the key can make.
    pub proof: Digest,
}

impl Receipt {
    /// Reads a receipt; a text that is none proves nothing.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Writes it.
    pub fn render(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_for_one_change_role_and_review() {
        let id = |id| ChangeId::new(id).unwrap();
        let key = ReceiptKey::new([7; 32]);
        let review = Digest::of("a review");
        let receipt = key.receipt(&id("a"), Role::Challenger, &review);
        assert_eq!(Receipt::parse(&receipt.render()), Some(receipt.clone()));
        let proves = |key: &ReceiptKey, change, role, review: &Digest| {
            key.proves(&receipt, &id(change), role, review)
        };
        assert!(proves(&key, "a", Role::Challenger, &review));
        assert!(!proves(&key, "b", Role::Challenger, &review));
        assert!(!proves(&key, "a", Role::Reviewer, &review));
        assert!(!proves(&key, "a", Role::Challenger, &Digest::of("another")));
        assert!(!proves(&ReceiptKey::new([8; 32]), "a", Role::Challenger, &review));
        // One for another role or review cannot be turned into this one by editing it.
        let other = key.receipt(&id("a"), Role::Reviewer, &review);
        let edited = Receipt { role: Role::Challenger, ..other };
        assert!(!key.proves(&edited, &id("a"), Role::Challenger, &review));
        // Neither is one with a true proof that says something else.
        for said in [
            Receipt { role: Role::Reviewer, ..receipt.clone() },
            Receipt { review: Digest::of("another"), ..receipt.clone() },
        ] {
            assert!(!key.proves(&said, &id("a"), Role::Challenger, &review));
        }
        assert_eq!(format!("{key:?}"), "ReceiptKey(..)", "logs do not have it");
        assert_eq!(ReceiptKey::parse(&key.text()), Some(key));
        assert_eq!(ReceiptKey::parse("00"), None);
    }
}
