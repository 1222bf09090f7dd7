//! What a reviewer says of the issues of earlier rounds (T5): fields of a review, such as
//! `- **Earlier I1**: fixed: the lock is in R3`.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::fields::{self, Field};
use crate::text::Line;

/// The label of such a field, before the number of the issue.
const LABEL: &str = "Earlier I";

/// What a reviewer can say of an issue of an earlier round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum IssueStatus {
    /// It is gone.
    Fixed,
    /// It is still there.
    Open,
    /// It was mistaken.
    Rejected,
    /// It is there, and can wait.
    Deferred,
}

impl IssueStatus {
    /// `fixed`, `open`, `rejected` or `deferred`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What a reviewer says of one issue of an earlier round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previous {
    /// The number of the issue.
    pub number: u32,
    /// What became of it.
    pub status: IssueStatus,
    /// Why; may be empty.
    pub reason: Line,
}

/// Writes what is said, a line each.
pub(crate) fn push(out: &mut String, said: &[Previous]) {
    for Previous { number, status, reason } in said {
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        fields::push_line(out, &format!("{LABEL}{number}"), format!("{}{reason}", status.name()));
    }
}

/// Reads what is said. A line that cannot be read says nothing.
pub(crate) fn read(labels: &[Field<'_>]) -> Vec<Previous> {
    labels
        .iter()
        .filter_map(|field| {
            let number = field.name.strip_prefix(LABEL)?.parse().ok()?;
            let line = field.line();
            let (status, reason) = line.as_str().split_once(':').unwrap_or((line.as_str(), ""));
            let status = status.trim().parse().ok()?;
            Some(Previous { number, status, reason: Line::new(reason) })
        })
        .collect()
}
