//! What the remote repository has of changes that workers carry, as it was last seen from here.
//!
//! Looking takes a conversation with the remote, so it is done in the background or where somebody asks
//! for it, and what was seen is kept. Nothing of the repository is run for it: git works in a directory of
//! our own, without the settings of the clone, and asks nobody for a password. All of it is text from
//! outside that decides nothing.

use std::collections::BTreeMap;

use agentd_core::carried::Carried;
use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::stamp::Stamp;
use serde::{Deserialize, Serialize};

use super::remote::{Purpose, Remote};
use super::{CarrierError, wip_ref};
use crate::git::{Git, GitTool};
use crate::store::{Project, StoreError};

/// The most changes that are listed.
const MOST: usize = 2000;
/// The most that is read of what they say.
const MOST_TEXT: usize = 16 << 20;
const WIP: &str = "refs/agentd/wip/";

/// A change as the remote has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sighting {
    /// The change.
    pub change: ChangeId,
    /// What it says of itself, cut to what can be shown.
    pub carried: Carried,
    /// Where it was.
    commit: String,
    /// When it was first seen there, by the clock of this machine.
    pub moved: Stamp,
}

/// What was seen last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sightings {
    /// The remote, by its name.
    pub remote: String,
    /// When it last answered; never where this is none.
    pub seen: Option<Stamp>,
    /// The changes, in the order of their IDs.
    pub changes: Vec<Sighting>,
}

impl Sightings {
    /// What is known of a change.
    pub fn of(&self, change: &ChangeId) -> Option<&Sighting> {
        let at = self.changes.binary_search_by(|sighting| sighting.change.cmp(change)).ok()?;
        self.changes.get(at)
    }
}

/// What was seen last, where changes of this project are carried at all.
pub fn known(project: &Project) -> Option<Sightings> {
    project.note(&layout::sightings_note())
}

/// From now on it is worth looking: somebody uses a fleet here.
pub fn expect(project: &Project) -> Result<(), CarrierError> {
    if known(project).is_none() {
        keep(project, &Sightings::default())?;
    }
    Ok(())
}

fn keep(project: &Project, sightings: &Sightings) -> Result<(), StoreError> {
    let text = serde_json::to_vec(sightings).unwrap_or_default();
    project.state_dir()?.write_atomic(&layout::sightings_note(), &text)
}

/// Looks what the remote has now, and keeps it. Nothing where there is no remote.
pub fn look(
    project: &Project,
    tool: &GitTool,
    now: Stamp,
) -> Result<Option<Sightings>, CarrierError> {
    let Some(git) = Git::discover_with(tool, project.root())? else { return Ok(None) };
    let Some(name) = git.main_remote()? else { return Ok(None) };
    let remote = Remote::open(project, &git, tool, &name, Purpose::Looking)?;
    let before = known(project).unwrap_or_default();
    let mut there = remote.refs(&[&format!("{WIP}*")])?;
    there.retain(|name, _| ChangeId::new(name.strip_prefix(WIP).unwrap_or_default()).is_ok());
    let there: BTreeMap<ChangeId, String> = there
        .into_iter()
        .filter_map(|(name, commit)| Some((ChangeId::new(name.strip_prefix(WIP)?).ok()?, commit)))
        .take(MOST)
        .collect();
    let as_before = |change: &ChangeId, commit: &str| {
        before.of(change).filter(|sighting| sighting.commit == commit)
    };
    let moved: Vec<(&ChangeId, &String)> =
        there.iter().filter(|(change, commit)| as_before(change, commit).is_none()).collect();
    let said = said(&remote, &moved)?;
    let changes = there.iter().filter_map(|(change, commit)| {
        if let Some(sighting) = as_before(change, commit) {
            return Some(sighting.clone());
        }
        let carried = Carried::of_message(said.get(commit)?)?.cut();
        let (change, commit) = (change.clone(), commit.clone());
        Some(Sighting { change, carried, commit, moved: now })
    });
    let sightings = Sightings { remote: name, seen: Some(now), changes: changes.collect() };
    forget_others(&remote, &there)?;
    keep(project, &sightings)?;
    Ok(Some(sightings))
}

/// The messages of the commits at which changes are now.
fn said(
    remote: &Remote,
    moved: &[(&ChangeId, &String)],
) -> Result<BTreeMap<String, String>, CarrierError> {
    if moved.is_empty() {
        return Ok(BTreeMap::new());
    }
    let names: Vec<String> = moved.iter().map(|(change, _)| wip_ref(change)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    remote.fetch(&names)?;
    // One that has moved on since it was listed is read where it is now, and again the next time.
    let list: String = moved.iter().map(|(_, commit)| format!("{commit}\n")).collect();
    let words = ["--no-walk=unsorted", "--no-show-signature", "--ignore-missing", "-z"];
    let log = remote.call("log").args(words).args(["--format=%H%n%B", "--stdin"]);
    let text = log.input(list.into_bytes()).at_most(MOST_TEXT).run()?.text();
    let said = text.split('\0').filter_map(|one| one.split_once('\n'));
    Ok(said.map(|(commit, message)| (commit.to_owned(), message.to_owned())).collect())
}

/// What is no longer there is not kept in our own directory either.
fn forget_others(remote: &Remote, there: &BTreeMap<ChangeId, String>) -> Result<(), CarrierError> {
    let listed = remote.call("for-each-ref").args(["--format=%(refname)", WIP]).run()?.text();
    let gone = |name: &&str| {
        let change = name.strip_prefix(WIP).and_then(|id| ChangeId::new(id).ok());
        change.is_none_or(|change| !there.contains_key(&change))
    };
    let lines: String =
        listed.lines().filter(gone).map(|name| format!("delete {name}\n")).collect();
    if !lines.is_empty() {
        remote.call("update-ref").args(["--stdin"]).input(lines.into_bytes()).run()?;
    }
    Ok(())
}
