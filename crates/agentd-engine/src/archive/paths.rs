//! The paths that a record may name: those that archiving writes, and no others. A record comes
//! with the repository, so that anything else in one was planted and is not a record.

use agentd_core::ids::SpecId;
use agentd_core::layout::{self, ChangeFile};
use agentd_core::rel_path::RelPath;
use serde::{Deserialize, Serialize};

/// A path in a record.
pub(super) trait RecordedPath {
    /// Where it is: in the project, or in the change for a document of its own.
    fn rel_path(&self) -> RelPath;
}

/// Why a text is no path of a record.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is not a path that archiving writes to", .0.escape_debug())]
pub(super) struct NotARecordPath(String);

/// `agentd/specs/<spec>.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct MainSpec(pub(super) SpecId);

impl RecordedPath for MainSpec {
    fn rel_path(&self) -> RelPath {
        layout::main_spec(&self.0)
    }
}

impl TryFrom<String> for MainSpec {
    type Error = NotARecordPath;
    fn try_from(text: String) -> Result<Self, NotARecordPath> {
        let name = text.rsplit('/').next().unwrap_or_default();
        let spec = layout::spec_of_file_name(name).map(Self);
        spec.filter(|spec| spec.rel_path().as_str() == text).ok_or(NotARecordPath(text))
    }
}

/// The changelog of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Changelog;

impl RecordedPath for Changelog {
    fn rel_path(&self) -> RelPath {
        layout::changelog()
    }
}

impl TryFrom<String> for Changelog {
    type Error = NotARecordPath;
    fn try_from(text: String) -> Result<Self, NotARecordPath> {
        if layout::changelog().as_str() == text { Ok(Self) } else { Err(NotARecordPath(text)) }
    }
}

/// A document of the change that archiving rewrites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct OwnFile(pub(super) ChangeFile);

impl RecordedPath for OwnFile {
    fn rel_path(&self) -> RelPath {
        self.0.path()
    }
}

impl TryFrom<String> for OwnFile {
    type Error = NotARecordPath;
    fn try_from(text: String) -> Result<Self, NotARecordPath> {
        let file = RelPath::new(&text).ok().and_then(|path| ChangeFile::from_path(&path));
        match file {
            Some(
                file @ (ChangeFile::State
                | ChangeFile::Journal
                | ChangeFile::Tasks
                | ChangeFile::Spec(_)),
            ) if file.path().as_str() == text => Ok(Self(file)),
            _ => Err(NotARecordPath(text)),
        }
    }
}

/// A directory that archiving makes where it is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) enum MadeDir {
    MainSpecs,
    Archive,
}

impl MadeDir {
    pub(super) const ALL: [Self; 2] = [Self::MainSpecs, Self::Archive];
}

impl RecordedPath for MadeDir {
    fn rel_path(&self) -> RelPath {
        match self {
            Self::MainSpecs => layout::main_specs_dir(),
            Self::Archive => layout::archive_dir(),
        }
    }
}

impl TryFrom<String> for MadeDir {
    type Error = NotARecordPath;
    fn try_from(text: String) -> Result<Self, NotARecordPath> {
        let found = Self::ALL.into_iter().find(|dir| dir.rel_path().as_str() == text);
        found.ok_or(NotARecordPath(text))
    }
}

macro_rules! as_text {
    ($($path:ty),*) => {$(
        impl From<$path> for String {
            fn from(path: $path) -> Self {
                path.rel_path().as_str().to_owned()
            }
        }
    )*};
}
as_text!(MainSpec, Changelog, OwnFile, MadeDir);

#[cfg(test)]
mod tests {
    use super::*;

    fn read<P: TryFrom<String> + Into<String>>(text: &str) -> bool {
        P::try_from(text.to_owned()).is_ok_and(|path| path.into() == text)
    }

    #[test]
    fn a_record_names_only_paths_that_archiving_writes() {
        assert!(read::<MainSpec>("agentd/specs/auth-flow.md"));
        assert!(read::<Changelog>(layout::changelog().as_str()));
        assert!(read::<OwnFile>("STATE.yaml") && read::<OwnFile>("specs/auth-flow.md"));
        assert!(read::<MadeDir>("agentd/specs") && read::<MadeDir>("agentd/archive"));
        for foreign in [
            "",
            ".",
            "..",
            ".git/config",
            "/etc/passwd",
            ".claude/settings.json",
            "agentd/config.toml",
            "agentd/specs/../config.toml",
            "agentd/specs/a/b.md",
            "./agentd/specs/a.md",
            "agentd/changes/x/STATE.yaml",
            "runs/0001-review.jsonl",
            "archive.json",
            "src/main.rs",
            "agentd",
        ] {
            assert!(!read::<MainSpec>(foreign), "{foreign}");
            assert!(!read::<Changelog>(foreign), "{foreign}");
            assert!(!read::<OwnFile>(foreign), "{foreign}");
            assert!(!read::<MadeDir>(foreign), "{foreign}");
        }
    }
}
