//! Every kind of error, what it means and what to do about it: for `agentd explain`, and for
//! docs/troubleshooting.md, which is made from it.

mod table;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub(crate) use table::GROUPS;

/// A kind of error.
#[derive(Debug, Serialize)]
pub(crate) struct Kind {
    /// Its name, as `--json` tells it; stable.
    #[serde(rename = "kind")]
    pub(crate) name: &'static str,
    /// What has happened.
    pub(crate) means: &'static str,
    /// What to do about it.
    pub(crate) remedy: &'static str,
}

/// Kinds that have to do with one thing.
#[derive(Debug)]
pub(crate) struct Group {
    /// What they have to do with.
    pub(crate) title: &'static str,
    /// The kinds.
    pub(crate) kinds: &'static [Kind],
}

/// The kind of that name.
pub(crate) fn find(name: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.name == name)
}

/// All of them, in the order of the page.
pub(crate) fn all() -> impl Iterator<Item = &'static Kind> {
    GROUPS.iter().flat_map(|group| group.kinds)
}
