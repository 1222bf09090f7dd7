//! Whatever a killed agentd could not finish is put right by the next command.
//!
//! All that this acts on lies in the user's state directory. Files of the project that look like
//! what an older agentd has left there may as well have come with the repository: they are named,
//! and nothing else is done about them.

use std::path::Path;

use agentd_core::layout;
use agentd_core::rel_path::RelPath;

use crate::archive::{self, ArchiveError, Recovered};
use crate::guard::calls::{self, Claim};
use crate::guard::git_files::{self, Unchecked};
use crate::guard::sandbox;
use crate::guard::state_file;
use crate::store::{Holder, Project, StoreError};

/// What was found and done.
#[derive(Debug)]
pub struct PutRight {
    /// What an agent has changed in calls that were cut short.
    pub unchecked: Vec<Unchecked>,
    /// What has become of an archiving that was interrupted.
    pub archive: Result<Option<Recovered>, ArchiveError>,
    /// Files in the project that agentd does not act on.
    pub ignored: Vec<RelPath>,
}

/// Puts right what was left. Everyone who opens a project calls this before anything else; it
/// costs a few looks for things that are hardly ever there.
pub fn put_right(project: &Project, holder: impl Fn() -> Holder) -> PutRight {
    let unchecked = match project.user().state_path(project.root()) {
        Ok(state) => unchecked(project, &state, &holder),
        // Then nothing was ever kept.
        Err(_) => Vec::new(),
    };
    // Temporary files of killed writers; elsewhere the next writer removes them.
    project.dir().sweep(&layout::locks_dir());
    sandbox::sweep(project);
    let archive = archive::recover(project, holder);
    let is_there = |path: &RelPath| matches!(project.dir().kind(path), Ok(Some(_)));
    let ignored = layout::former_recovery_files().into_iter().filter(is_there).collect();
    PutRight { unchecked, archive, ignored }
}

fn unchecked(project: &Project, at: &Path, holder: impl Fn() -> Holder) -> Vec<Unchecked> {
    let abandoned = || -> Result<Vec<Claim>, StoreError> {
        let Some(state) = project.state_dir_if_there()? else { return Ok(Vec::new()) };
        calls::abandoned(&state, at)
    };
    match abandoned() {
        Ok(claims) => {
            let check = |claim: &Claim| {
                let picture = git_files::recover(project, claim, at);
                [picture, state_file::recover(project, claim, &holder())]
            };
            claims.iter().flat_map(check).flatten().collect()
        }
        Err(error) => vec![Unchecked::Unknown { path: at.to_owned(), why: error.to_string() }],
    }
}
