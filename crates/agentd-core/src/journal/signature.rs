//! The signature of a line, as `ssh-keygen -Y sign` makes it.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// What signatures of lines are for. One that was made for something else, such as a commit, is none
/// of a line, and none of a line can pass for one of a commit.
pub const NAMESPACE: &str = "agentd-journal";

const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
/// The longest that is read. One by an RSA key of 16384 bits has less than half of it.
const LONGEST: usize = 16 << 10;

/// A signature: what is between the first and the last line of the file that `ssh-keygen` writes,
/// on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signature(String);

impl Signature {
    /// Reads the file that `ssh-keygen` writes.
    pub fn from_file(text: &str) -> Option<Self> {
        let inner = text.trim().strip_prefix(BEGIN)?.strip_suffix(END)?;
        Self::new(inner.split_ascii_whitespace().collect())
    }

    /// The file that `ssh-keygen` reads.
    pub fn to_file(&self) -> String {
        let mut file = format!("{BEGIN}\n");
        let mut rest = &*self.0;
        while !rest.is_empty() {
            // It is ASCII.
            let (line, more) = rest.split_at(rest.len().min(70));
            file.extend([line, "\n"]);
            rest = more;
        }
        file + END + "\n"
    }

    fn new(text: String) -> Option<Self> {
        let is_base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
        let is_one = !text.is_empty() && text.len() <= LONGEST && text.bytes().all(is_base64);
        is_one.then_some(Self(text))
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(text).ok_or_else(|| D::Error::custom("not a signature"))
    }
}
