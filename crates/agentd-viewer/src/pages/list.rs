//! Which changes are listed, in which order: what the address of the first page says.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::Deserialize;

use super::home::GROUPS;
use crate::html::query_value;
use crate::overview::Overview;

/// How many changes a page of the list has.
const PER_PAGE: usize = 100;

/// What the address says. What it cannot mean is ignored.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(crate) struct Query {
    pub(crate) q: String,
    pub(crate) phase: String,
    pub(crate) verdict: String,
    pub(crate) spec: String,
    pub(crate) sort: String,
    pub(crate) view: String,
    needs: String,
    page: String,
}

impl Query {
    pub(super) fn is_board(&self) -> bool {
        self.view == "board"
    }

    pub(super) fn needs(&self) -> bool {
        self.needs == "1"
    }

    fn wants(&self, known: &Overview) -> bool {
        let glance = &known.glance;
        let phase = GROUPS.iter().find(|(name, _)| *name == self.phase);
        let verdict = match self.verdict.as_str() {
            "" => true,
            "none" => glance.verdict.is_none(),
            wanted => glance.verdict == Some(wanted),
        };
        phase.is_none_or(|(_, phases)| phases.contains(&glance.summary.phase))
            && verdict
            && (self.spec.is_empty() || glance.specs.iter().any(|id| id.as_str() == self.spec))
            && (!self.needs() || known.needs_person())
            && self.q.to_lowercase().split_whitespace().all(|word| known.words.contains(word))
    }
}

/// A query as it is in an address, with another view and page.
pub(super) fn list_query(query: &Query, view: &str, page: Option<usize>) -> String {
    let page = page.map(|page| page.to_string()).unwrap_or_default();
    let pairs = [
        ("q", query.q.as_str()),
        ("phase", &query.phase),
        ("verdict", &query.verdict),
        ("spec", &query.spec),
        ("sort", &query.sort),
        ("needs", &query.needs),
        ("view", view),
        ("page", &page),
    ];
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    let pairs = pairs.map(|(name, value)| format!("{name}={}", query_value(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// The changes that are listed.
pub(super) struct Listing<'b> {
    /// All that were asked for, in order.
    pub(super) found: Vec<&'b Arc<Overview>>,
    /// Those on this page.
    shown: Vec<&'b Arc<Overview>>,
    pub(super) page: usize,
    pub(super) pages: usize,
    /// Whether they are in groups by phase; the order by which people sort goes over all.
    pub(super) is_grouped: bool,
}

impl<'b> Listing<'b> {
    pub(super) fn of(changes: &'b [Arc<Overview>], query: &Query) -> Self {
        let mut found: Vec<&Arc<Overview>> =
            changes.iter().filter(|known| query.wants(known)).collect();
        let updated = |known: &'b Arc<Overview>| known.glance.summary.updated_at.as_deref();
        found.sort_by(|a, b| updated(b).cmp(&updated(a)));
        let is_grouped = query.sort.is_empty();
        match query.sort.as_str() {
            "created" => found.sort_by_key(|known| Reverse(known.glance.created_at)),
            "id" => found.sort_by(|a, b| a.id().cmp(b.id())),
            "cost" => found
                .sort_by(|a, b| b.glance.summary.cost_usd.total_cmp(&a.glance.summary.cost_usd)),
            "progress" => found.sort_by_key(|known| Reverse(share_done(known))),
            // By phase, in the order of a change's life.
            _ => found.sort_by_key(|known| group_of(known)),
        }
        let pages = found.len().div_ceil(PER_PAGE).max(1);
        let page = query.page.parse::<usize>().unwrap_or(1).clamp(1, pages);
        let shown = found.iter().skip((page - 1) * PER_PAGE).take(PER_PAGE).copied().collect();
        Self { found, shown, page, pages, is_grouped }
    }

    /// What is on this page, by phase.
    pub(super) fn groups(&self) -> Vec<(&'static str, Vec<&'b Arc<Overview>>)> {
        if !self.is_grouped {
            return vec![("", self.shown.clone())];
        }
        let group = |(index, (name, _)): (usize, &(&'static str, _))| {
            let own = self.shown.iter().filter(|known| group_of(known) == index);
            (*name, own.copied().collect::<Vec<_>>())
        };
        let groups = GROUPS.iter().enumerate().map(group);
        groups.filter(|(_, changes)| !changes.is_empty()).collect()
    }

    /// How many changes of a group were found, also on other pages.
    pub(super) fn count(&self, name: &str) -> usize {
        let index = GROUPS.iter().position(|(group, _)| *group == name);
        self.found.iter().filter(|known| Some(group_of(known)) == index).count()
    }
}

fn group_of(known: &Overview) -> usize {
    let phase = known.glance.summary.phase;
    GROUPS.iter().position(|(_, phases)| phases.contains(&phase)).unwrap_or(0)
}

/// How much is done, in thousandths.
fn share_done(known: &Overview) -> usize {
    let tasks = known.glance.summary.tasks;
    (tasks.completed * 1000).checked_div(tasks.total).unwrap_or(0)
}
