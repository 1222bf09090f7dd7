//! Digests: of a document, and of a whole plan.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest as _;

/// A SHA-256 digest; written `sha256:<64 hex digits>`, so that `sha256sum` can check it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The first 12 hex digits, for showing.
    pub fn short(&self) -> String {
        hex(&self.0[..6])
    }
}

/// Makes a digest of bytes that come in pieces.
#[derive(Debug, Clone, Default)]
pub struct Digester(sha2::Sha256);

impl Digester {
    /// Takes in the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of all of it.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// So that a reader can be copied into it.
impl std::io::Write for Digester {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        self.update(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Bytes as hex digits.
pub fn hex(bytes: &[u8]) -> String {
    hex::encode(bytes)
}

/// Hex digits as bytes.
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    hex::decode(digits).ok()
}

/// The first 16 hex digits of a text's digest. Line ends do not count, so that a
/// checkout with other line ends does not look like an edit.
pub(crate) fn short_digest(text: &str) -> String {
    let digest =
        if text.contains('\r') { Digest::of(text.replace("\r\n", "\n")) } else { Digest::of(text) };
    hex(&digest.0[..8])
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes)
            .map_err(|_| "expected sha256: and 64 hex digits".to_owned())?;
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha256sum() {
        let digest = Digest::of("abc");
        assert_eq!(
            digest.to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        assert!("sha256:+1".parse::<Digest>().is_err());
        assert!(format!("sha256:{}", "+1".repeat(32)).parse::<Digest>().is_err());
        assert_eq!(unhex(&hex(&[0, 255, 16])).unwrap(), [0, 255, 16]);
        assert_eq!((unhex("abc"), unhex("+1")), (None, None));
    }
}
