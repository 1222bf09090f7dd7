//! A directory of run files, as something that can be replayed: which runs it has, and what
//! happened in them.
//!
//! The engine decides what is replayed, and compares the result ([`reproduce`](crate::agents::reproduce)).
//! Playing one run is an agent's work: a process of `agentd-builtin` that reads its run file itself
//! and reaches agentd over MCP only, as any CLI would.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentd_core::layout::RunName;
use agentd_core::recording::Run;
use agentd_core::step_name::StepName;

use crate::agents::run_record::{last_line, read_run};
use crate::store::Change;

/// A recording that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("there is no recorded run in {}", path.display())]
    Empty {
        /// Where.
        path: PathBuf,
    },
    /// A file does not begin as a run file does.
    #[error("{} is not the record of a run", path.display())]
    NotARun {
        /// The file.
        path: PathBuf,
    },
}

/// How many calls of a step a change has that came to an end. One that was cut short is made again, so
/// what was recorded of it is played again.
pub(crate) fn played(change: &Change, step: &StepName) -> usize {
    let runs = change.runs().map(|listed| listed.ids).unwrap_or_default();
    let ended = |name: &&RunName| {
        let file = change.open_run(name).ok();
        let end = file.and_then(|file| last_line(file).ok().flatten());
        end.is_some_and(|end| end.outcome.is_settled())
    };
    runs.iter().filter(|name| name.step() == *step).filter(ended).count()
}

/// The runs of a change, in order.
#[derive(Debug, Clone)]
pub struct Recording {
    dir: PathBuf,
    runs: Vec<RunName>,
}

impl Recording {
    /// Opens a directory of run files, or a change that has one.
    pub fn open(dir: &Path) -> Result<Self, RecordingError> {
        let below = dir.join("runs");
        let dir = if below.is_dir() { below } else { dir.to_owned() };
        let failed = |source| RecordingError::Io { path: dir.clone(), source };
        let mut runs: Vec<RunName> = Vec::new();
        for entry in fs::read_dir(&dir).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            runs.extend(name.to_str().and_then(|name| name.parse().ok()));
        }
        runs.sort_unstable();
        if runs.is_empty() {
            return Err(RecordingError::Empty { path: dir });
        }
        Ok(Self { dir, runs })
    }

    /// Where the run files are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The runs, in order.
    pub fn runs(&self) -> &[RunName] {
        &self.runs
    }

    /// The run that the next call of a step plays: of those that the change has, the ones that came to
    /// an end were played.
    pub(crate) fn next(&self, step: &StepName, change: &Change) -> Option<Run> {
        let played = played(change, step);
        let name = self.runs.iter().filter(|run| run.step() == *step).nth(played)?;
        self.read(name).ok()
    }

    /// Reads a run.
    pub fn read(&self, name: &RunName) -> Result<Run, RecordingError> {
        let path = self.dir.join(name.to_string());
        let failed = |source| RecordingError::Io { path: path.clone(), source };
        let records = read_run(&path).map_err(failed)?;
        let run = Run::from_records(name.clone(), records).map_err(failed)?;
        run.ok_or(RecordingError::NotARun { path })
    }
}
