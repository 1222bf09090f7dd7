//! Where the demonstration happens: a directory with a project and a recording in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentd_core::config::Speed;
use agentd_core::error_kind::Kind;
use agentd_engine::git::{Git, GitTool};
use agentd_engine::store::UserDirs;
use serde_json::Value;
use tempfile::TempDir;

use super::Args;
use crate::cli::{Context, init};
use crate::error::{CommandError, unusable};
use crate::install::Players;

macro_rules! assets {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../assets/demo/", $folder, "/", $name)))),*]
    };
}

/// The project as it is before the change. Its test `by-name` fails.
const PROJECT: &[(&str, &str)] =
    assets!("project": "README.md", "bin/greet", "test.sh", "tests/by-name.sh", "tests/runs.sh");

/// What gemini, codex and claude did; `record_the_demo` in testing/real-agents makes it.
const RUNS: &[(&str, &str)] = assets!("runs":
    "0001-proposal-gen.jsonl",
    "0002-proposal-review.jsonl",
    "0003-spec-gen-greeting.jsonl",
    "0004-spec-review-greeting.jsonl",
    "0005-tasks-gen.jsonl",
    "0006-tasks-review.jsonl",
    "0007-challenge.jsonl",
    "0008-reproposal.jsonl",
    "0009-challenge.jsonl",
    "0010-implement-logic.jsonl",
    "0011-implement-testing.jsonl",
    "0012-review.jsonl",
    "0013-fix.jsonl",
    "0014-review.jsonl",
);

/// The directory of the recording, in the project.
const RECORDING: &str = "recordings/greet-by-name";

/// How long the agents are to take together where people watch.
const WATCHED_MS: u64 = 18_000;

pub(super) const TEST_COMMAND: &str = "sh test.sh";

/// A temporary directory, which goes when this does, with what agentd keeps about the project in it.
pub(in crate::cli) struct Temporary {
    dir: Option<TempDir>,
    root: PathBuf,
}

impl Temporary {
    /// A new directory, and the project in it.
    pub(in crate::cli) fn project(prefix: &str) -> Result<Self, CommandError> {
        let made = tempfile::Builder::new().prefix(prefix).tempdir();
        let dir = made.map_err(|error| unusable(&std::env::temp_dir(), &error))?;
        let root = dir.path().join("project");
        let made = fs::create_dir(&root).and_then(|()| fs::canonicalize(&root));
        let root = made.map_err(|error| unusable(&root, &error))?;
        Ok(Self { dir: Some(dir), root })
    }

    /// The root of the project.
    pub(in crate::cli) fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.dir.take().is_some() {
            UserDirs::from_env().forget(&self.root);
        }
    }
}

/// The directory.
pub(super) struct DemoDir {
    root: PathBuf,
    temporary: Option<Temporary>,
    keep: bool,
}

/// What has become of the directory at the end.
pub(super) struct Leftover {
    pub(super) root: PathBuf,
    pub(super) is_there: bool,
}

impl DemoDir {
    /// Finds or makes the directory; there is nothing in it yet.
    pub(super) fn make(context: &Context, args: &Args) -> Result<Self, CommandError> {
        let (path, temporary) = if let Some(dir) = &args.dir {
            let path = context.start.join(dir);
            fs::create_dir_all(&path).map_err(|error| unusable(&path, &error))?;
            (path, None)
        } else {
            let temporary = tempfile::Builder::new().prefix("agentd-demo-").tempdir();
            let temporary = temporary.map_err(|error| unusable(&std::env::temp_dir(), &error))?;
            (temporary.path().to_owned(), Some(temporary))
        };
        let failed = |error: io::Error| unusable(&path, &error);
        let root = fs::canonicalize(&path).map_err(failed)?;
        if fs::read_dir(&root).map_err(failed)?.next().is_some() {
            let message = format!("{} is not empty", root.display());
            return Err(CommandError::new(Kind::NotEmpty, message)
                .hint("name a new or empty directory; agentd does not overwrite your files"));
        }
        let temporary = temporary.map(|dir| Temporary { dir: Some(dir), root: root.clone() });
        Ok(Self { root, temporary, keep: args.keep })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Removes the directory, unless it is to stay.
    pub(super) fn leave(self) -> Result<Leftover, CommandError> {
        let is_there = match self.temporary {
            None => true,
            Some(mut temporary) if self.keep => {
                let _ = temporary.dir.take().map(TempDir::keep);
                true
            }
            Some(mut temporary) => {
                UserDirs::from_env().forget(&self.root);
                let closed = temporary.dir.take().map_or(Ok(()), TempDir::close);
                closed.map_err(|error| unusable(&self.root, &error))?;
                false
            }
        };
        Ok(Leftover { root: self.root, is_there })
    }
}

/// So many times as fast as it was that it can be watched.
pub(super) fn watchable() -> Speed {
    let took = |run: &&(&str, &str)| {
        let last: Option<Value> = run.1.lines().last().and_then(|l| serde_json::from_str(l).ok());
        last.and_then(|line| line["end"]["duration_ms"].as_u64()).unwrap_or(0)
    };
    let whole: u64 = RUNS.iter().map(|run| took(&run)).sum();
    let hundredths = whole.saturating_mul(100) / WATCHED_MS;
    Speed::Times(u32::try_from(hundredths).unwrap_or(u32::MAX).clamp(1, 100_000))
}

/// Writes the project and its recording, and commits them.
pub(super) fn furnish(
    context: &Context,
    root: &Path,
    speed: Speed,
    tool: &GitTool,
) -> Result<(), CommandError> {
    let write = |path: &Path, text: &str| {
        let path = root.join(path);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        folder.and_then(|()| fs::write(&path, text)).map_err(|error| unusable(&path, &error))
    };
    for (path, text) in PROJECT {
        write(Path::new(path), text)?;
    }
    for (name, text) in RUNS {
        write(&Path::new(RECORDING).join(name), text)?;
    }
    init::set_up_least(&context.project_at(root)?, Players::Default)?;
    write(Path::new("agentd/config.toml"), &config(speed))?;
    Git::create(tool, root, "A greeting, and a test that it fails")?;
    Ok(())
}

fn config(speed: Speed) -> String {
    let roles: String = ["planner", "challenger", "implementer", "reviewer"]
        .map(|role| format!("{role} = \"replay\"\n"))
        .concat();
    format!(
        "# Recorded agents play every role. Of your own project these would be gemini, codex\n\
         # and claude, or whichever you have.\n\
         [roles]\n{roles}\n\
         [replay]\nrecording = \"{RECORDING}\"\nspeed = \"{speed}\"\n\n\
         [git]\ncommit = \"layer\"\n\n\
         [implementation]\ntest_command = \"{TEST_COMMAND}\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(dir: &Path, below: &str) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().into_string().unwrap());
            if entry.path().is_dir() {
                names.extend(listed(&entry.path(), &format!("{name}/")));
            } else {
                names.push(name);
            }
        }
        names.sort_unstable();
        names
    }

    #[test]
    fn every_asset_is_in_the_program_and_they_are_small() {
        let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo");
        for (folder, table) in [("project", PROJECT), ("runs", RUNS)] {
            let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
            assert_eq!(listed(&assets.join(folder), ""), names);
        }
        let bytes: usize = RUNS.iter().map(|(_, text)| text.len()).sum();
        assert!(bytes < 300_000, "{bytes}");
    }

    #[test]
    fn the_recording_says_nothing_of_the_machine_it_was_made_on() {
        for (name, text) in RUNS {
            // Every agent hears about its own `/tmp`; a path in it would be one of this machine.
            for trace in ["/tmp/", "/work", "/root", "/home", "agentd-sandbox"] {
                assert!(!text.contains(trace), "{name} has {trace}");
            }
        }
    }

    #[test]
    fn the_speed_is_one_that_a_configuration_can_have() {
        let speed = watchable();
        assert!(matches!(speed, Speed::Times(_)));
        agentd_core::config::Config::parse(&config(speed)).unwrap();
    }
}
