//! Where every file of a project is. Paths are made here and nowhere else,
//! from validated ids, so that the layout is one page to read and no other
//! text can become a path.

mod machine;

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;

use crate::ids::{ChangeId, SpecId};
use crate::rel_path::RelPath;
use crate::step_name::StepName;

use crate::text::excerpt;

pub use machine::{
    BackgroundFile, background, background_dir, carried_note, change_of_mark, change_of_move_note,
    created_note, journal_copy, journal_mark, journals_dir, move_note, moves_dir, origin_note,
    receipt_key, receipt_keys, receipt_keys_of, sightings_note, uncommitted_note,
};

/// The directory of agentd in a project.
pub const AGENTD_DIR: &str = "agentd";

/// How the names of unfinished writes start. The store sweeps what a crash left.
pub const TEMP_PREFIX: &str = ".agentd-tmp-";

/// What `agentd/.gitignore` must hold: locks, what is written for a running agent (its context
/// too), and leftovers are of one machine; [`GITIGNORE_RUNS`] unless the project wants them in git.
pub const GITIGNORE_LINES: [&str; 9] = [
    "/.locks/",
    "/.agents/",
    ".agentd-tmp-*",
    "/changes/*/GEMINI.md",
    "/changes/*/AGENTS.md",
    "/archive/*/GEMINI.md",
    "/archive/*/AGENTS.md",
    GITIGNORE_RUNS[0],
    GITIGNORE_RUNS[1],
];

/// The lines for the records of what agents did, which hold their prompts and outputs.
pub const GITIGNORE_RUNS: [&str; 2] = ["/changes/*/runs/", "/archive/*/runs/"];

/// What is in the directory of a change and of one machine or one call only: it is not for git.
pub const LOCAL_FILES: [&str; 4] = ["runs", "GEMINI.md", "AGENTS.md", "receipt.json"];

/// `agentd/`
pub fn agentd_dir() -> RelPath {
    RelPath::from_safe(AGENTD_DIR.to_owned())
}

/// `agentd/.gitignore`
pub fn gitignore() -> RelPath {
    below_agentd(".gitignore")
}

/// `agentd/config.toml`
pub fn config() -> RelPath {
    below_agentd("config.toml")
}

/// `agentd/project.md`
pub fn project_context() -> RelPath {
    below_agentd("project.md")
}

/// `agentd/specs/`, the living specs of the project.
pub fn main_specs_dir() -> RelPath {
    below_agentd("specs")
}

/// `agentd/specs/<spec>.md`
pub fn main_spec(spec: &SpecId) -> RelPath {
    below_agentd(&format!("specs/{spec}.md"))
}

/// `agentd/specs/CHANGELOG.md`: what was archived, newest first.
pub fn changelog() -> RelPath {
    below_agentd("specs/CHANGELOG.md")
}

/// `agentd/changes/`
pub fn changes_dir() -> RelPath {
    below_agentd("changes")
}

/// `agentd/changes/<id>/`
pub fn change_dir(change: &ChangeId) -> RelPath {
    below_agentd(&format!("changes/{change}"))
}

/// Where a change is put together before it appears in [`changes_dir`], in one step.
pub fn arriving_change(change: &ChangeId) -> RelPath {
    below_agentd(&format!("changes/{TEMP_PREFIX}{change}"))
}

/// `agentd/archive/`
pub fn archive_dir() -> RelPath {
    below_agentd("archive")
}

/// `agentd/archive/YYYY-MM-DD-<id>/`
pub fn archived_change(name: &ArchiveName) -> RelPath {
    below_agentd(&format!("archive/{name}"))
}

/// `agentd/.agents/questions/`
pub fn questions_dir() -> RelPath {
    below_agentd(".agents/questions")
}

/// `agentd/.agents/questions/<id>.json`: what waits for a person's answer on this machine.
/// Directories of calls are named `<id>-<step>`, so that none is called `questions`.
pub fn questions(change: &ChangeId) -> RelPath {
    below_agentd(&format!(".agents/questions/{change}.json"))
}

/// `agentd/.agents/questions/<id>.answers.json`: what a person has answered of them so far.
pub fn given_answers(change: &ChangeId) -> RelPath {
    below_agentd(&format!(".agents/questions/{change}.answers.json"))
}

/// `agentd/.agents/questions/<id>.asked.json`: what an agent asks a person, until its call is over.
pub fn asked_question(change: &ChangeId) -> RelPath {
    below_agentd(&format!(".agents/questions/{change}.asked.json"))
}

/// Where agentd used to keep what recovery acts on. A repository can bring such files along, so
/// nothing reads them any more.
pub fn former_recovery_files() -> [RelPath; 3] {
    [".agents/git", ".agents/gemini-settings.json.backup", ".locks/_archive.json"].map(below_agentd)
}

/// `agentd/.locks/`, outside of the changes so that archiving does not move a held lock.
pub fn locks_dir() -> RelPath {
    below_agentd(".locks")
}

/// `archive.json` in the user's state directory: the move into or out of the archive that is
/// under way.
pub fn archive_journal() -> RelPath {
    RelPath::from_safe("archive.json".to_owned())
}

/// `rename.json` in the user's state directory: the renaming that is under way.
pub fn rename_note() -> RelPath {
    RelPath::from_safe("rename.json".to_owned())
}

/// `agentd/.locks/<id>.conflicts.json`: the conflicts that somebody was shown.
pub fn shown_conflicts(change: &ChangeId) -> RelPath {
    below_agentd(&format!(".locks/{change}.conflicts.json"))
}

fn below_agentd(rest: &str) -> RelPath {
    RelPath::from_safe(format!("{AGENTD_DIR}/{rest}"))
}

/// `agentd/changes/<id>/specs/`
pub fn change_specs_dir(change: &ChangeId) -> RelPath {
    below_agentd(&format!("changes/{change}/specs"))
}

/// The id of a spec whose file has this name: `auth-flow` for `auth-flow.md`.
pub fn spec_of_file_name(name: &str) -> Option<SpecId> {
    SpecId::new(name.strip_suffix(".md")?).ok()
}

/// A file of a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeFile {
    /// `STATE.yaml`: phase, sessions, usage.
    State,
    /// `journal.jsonl`: what has counted so far, line by line.
    Journal,
    /// `receipt.json`: the proof of a review whose verdict waits to be taken.
    Receipt,
    /// `clarifications.md`: questions and answers before the plan.
    Clarifications,
    /// `proposal.md`: why and what, and the review blocks.
    Proposal,
    /// `specs/<spec>.md`: what the change adds to or edits in a spec.
    Spec(SpecId),
    /// `tasks.md`: the work.
    Tasks,
    /// `CHALLENGE.md`: the latest review of the plan, rendered.
    Challenge,
    /// `REVIEW.md`: the latest review of the implementation.
    Review,
    /// `comments.md`: what people have said about the documents.
    Comments,
    /// `rounds/NNNN.json`: the plan as the review of this number saw it.
    Round(u32),
    /// `GEMINI.md`: context for an agent that reads that name.
    GeminiContext,
    /// `AGENTS.md`: context for agents that read that name.
    AgentsContext,
    /// `base/<spec>.md`: the main spec as it was when the change began; empty where there
    /// was none.
    Base(SpecId),
    /// `archive.json`: what archiving has changed, and how it was before.
    ArchiveRecord,
    /// `runs/NNNN-<step>.jsonl`: the log of one agent call.
    Run(RunName),
}

/// Who writes a file of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Agents through tools, people through their editor.
    Agents,
    /// Only agentd itself; a tool that names such a file is refused.
    Agentd,
}

impl ChangeFile {
    /// The path below the directory of the change.
    pub fn path(&self) -> RelPath {
        RelPath::from_safe(match self {
            Self::State => "STATE.yaml".to_owned(),
            Self::Journal => "journal.jsonl".to_owned(),
            Self::Receipt => "receipt.json".to_owned(),
            Self::Clarifications => "clarifications.md".to_owned(),
            Self::Proposal => "proposal.md".to_owned(),
            Self::Spec(spec) => format!("specs/{spec}.md"),
            Self::Tasks => "tasks.md".to_owned(),
            Self::Challenge => "CHALLENGE.md".to_owned(),
            Self::Review => "REVIEW.md".to_owned(),
            Self::Comments => "comments.md".to_owned(),
            Self::Round(number) => format!("rounds/{number:04}.json"),
            Self::GeminiContext => "GEMINI.md".to_owned(),
            Self::AgentsContext => "AGENTS.md".to_owned(),
            Self::Base(spec) => format!("base/{spec}.md"),
            Self::ArchiveRecord => "archive.json".to_owned(),
            Self::Run(run) => format!("runs/{run}"),
        })
    }

    /// The path below the project.
    pub fn path_in_project(&self, change: &ChangeId) -> RelPath {
        change_dir(change).join(&self.path())
    }

    /// The file at this path below the directory of the change; none where
    /// agentd knows no such file. Case counts, also where the disk ignores it.
    pub fn from_path(path: &RelPath) -> Option<Self> {
        let text = path.as_str();
        match text.split_once('/') {
            None => match text {
                "STATE.yaml" => Some(Self::State),
                "journal.jsonl" => Some(Self::Journal),
                "receipt.json" => Some(Self::Receipt),
                "clarifications.md" => Some(Self::Clarifications),
                "proposal.md" => Some(Self::Proposal),
                "tasks.md" => Some(Self::Tasks),
                "CHALLENGE.md" => Some(Self::Challenge),
                "REVIEW.md" => Some(Self::Review),
                "comments.md" => Some(Self::Comments),
                "GEMINI.md" => Some(Self::GeminiContext),
                "AGENTS.md" => Some(Self::AgentsContext),
                "archive.json" => Some(Self::ArchiveRecord),
                _ => None,
            },
            Some(("specs", name)) => spec_of_file_name(name).map(Self::Spec),
            Some(("base", name)) => spec_of_file_name(name).map(Self::Base),
            Some(("rounds", name)) => {
                let number = name.strip_suffix(".json").and_then(|number| number.parse().ok());
                number.map(Self::Round).filter(|round| round.path() == *path)
            }
            Some(("runs", name)) => name.parse().ok().map(Self::Run),
            Some(_) => None,
        }
    }

    /// Who may write it.
    pub fn writer(&self) -> Writer {
        match self {
            Self::Clarifications | Self::Proposal | Self::Spec(_) | Self::Tasks => Writer::Agents,
            Self::State
            | Self::Journal
            | Self::Receipt
            | Self::Challenge
            | Self::Review
            | Self::Comments
            | Self::Round(_)
            | Self::GeminiContext
            | Self::AgentsContext
            | Self::Base(_)
            | Self::ArchiveRecord
            | Self::Run(_) => Writer::Agentd,
        }
    }
}

/// Why an agent may not write to a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefused {
    /// The path is elsewhere in the project, perhaps in another change.
    #[error("`{path}` is outside of the change `{change}`; tools write only inside it")]
    OutsideChange {
        /// The change that the agent works on.
        change: ChangeId,
        /// The path it asked for.
        path: RelPath,
    },
    /// agentd writes this file itself.
    #[error("`{path}` is written by agentd itself and cannot be edited through a tool")]
    OwnedByAgentd {
        /// The path it asked for.
        path: RelPath,
    },
    /// No document of a change has this name.
    #[error(
        "`{path}` is no document of a change; those are clarifications.md, proposal.md, \
         specs/<spec>.md and tasks.md"
    )]
    NotADocument {
        /// The path it asked for.
        path: RelPath,
    },
}

/// The document that an agent bound to `change` may write at `path`.
///
/// The path is relative to the project (`agentd/changes/<id>/tasks.md`) or to
/// the change (`tasks.md`). Only what is listed as a document is allowed, so a
/// spelling that a case-blind disk takes for `STATE.yaml` is refused as well.
pub fn agent_write_target(change: &ChangeId, path: &RelPath) -> Result<ChangeFile, WriteRefused> {
    let in_change = match path.strip_prefix(&change_dir(change)) {
        Some(rest) => rest,
        None if path.components().next() == Some(AGENTD_DIR) => {
            return Err(WriteRefused::OutsideChange { change: change.clone(), path: path.clone() });
        }
        None => path.clone(),
    };
    match ChangeFile::from_path(&in_change) {
        Some(file) if file.writer() == Writer::Agents => Ok(file),
        Some(_) => Err(WriteRefused::OwnedByAgentd { path: path.clone() }),
        None => Err(WriteRefused::NotADocument { path: path.clone() }),
    }
}

/// Why a text is not the name of a run log or of an archived change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not {what}")]
pub struct NameError {
    /// The text, cut and with control characters escaped.
    pub shown: String,
    /// What was wanted.
    pub what: &'static str,
}

impl NameError {
    fn new(text: &str, what: &'static str) -> Self {
        Self { shown: excerpt(text, 80), what }
    }
}

/// The name of the log of one agent call: `0001-proposal-gen.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunName {
    number: u32,
    step: Box<str>,
}

impl RunName {
    /// The log of the call with this number, which ran this step (`spec-gen-auth-flow`).
    pub fn new(number: u32, step: &StepName) -> Result<Self, NameError> {
        Self::of_text(number, &step.to_string())
    }

    fn of_text(number: u32, step: &str) -> Result<Self, NameError> {
        const MAX_STEP_LEN: usize = 128;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if step.is_empty() || step.len() > MAX_STEP_LEN || !step.chars().all(plain) {
            return Err(NameError::new(step, "the name of a step"));
        }
        Ok(Self { number, step: step.into() })
    }

    /// The number of the call in its change, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The step that ran.
    pub fn step(&self) -> StepName {
        StepName::of(&self.step)
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{}.jsonl", self.number, self.step)
    }
}

impl FromStr for RunName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let parsed = || {
            let (number, step) = text.strip_suffix(".jsonl")?.split_once('-')?;
            let run = Self::of_text(number.parse().ok()?, step).ok()?;
            (run.to_string() == text).then_some(run)
        };
        parsed().ok_or_else(|| NameError::new(text, "the name of a run log"))
    }
}

/// The name of an archived change: `2026-11-04-add-oauth`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchiveName {
    /// The day on which it was archived.
    pub date: Date,
    /// The change.
    pub change: ChangeId,
}

impl ArchiveName {
    /// The ID without the number behind it, and that number, where it ends in one: another change
    /// of that ID may have been archived on the same day.
    pub fn without_number(&self) -> Option<(&str, u32)> {
        let (stem, number) = self.change.as_str().rsplit_once('-')?;
        Some((stem, number.parse().ok().filter(|number| *number > 0)?))
    }
}

impl fmt::Display for ArchiveName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.date, self.change)
    }
}

impl FromStr for ArchiveName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        const DATE_LEN: usize = "2026-11-04".len();
        let parsed = || {
            let (date, rest) = text.split_at_checked(DATE_LEN)?;
            let change = ChangeId::new(rest.strip_prefix('-')?).ok()?;
            let name = Self { date: date.parse().ok()?, change };
            (name.to_string() == text).then_some(name)
        };
        parsed().ok_or_else(|| NameError::new(text, "the name of an archived change"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change() -> ChangeId {
        ChangeId::new("add-oauth").unwrap()
    }

    fn all_files() -> Vec<ChangeFile> {
        let spec = SpecId::new("auth-flow").unwrap();
        vec![
            ChangeFile::State,
            ChangeFile::Clarifications,
            ChangeFile::Proposal,
            ChangeFile::Spec(spec.clone()),
            ChangeFile::Tasks,
            ChangeFile::Challenge,
            ChangeFile::Review,
            ChangeFile::Comments,
            ChangeFile::Round(1),
            ChangeFile::GeminiContext,
            ChangeFile::AgentsContext,
            ChangeFile::Base(spec),
            ChangeFile::ArchiveRecord,
            ChangeFile::Run(RunName::new(1, &StepName::of("spec-gen-auth-flow")).unwrap()),
        ]
    }

    #[test]
    fn every_file_of_the_contract_has_its_path() {
        let paths: Vec<String> = all_files().iter().map(|file| file.path().to_string()).collect();
        let expected = [
            "STATE.yaml",
            "clarifications.md",
            "proposal.md",
            "specs/auth-flow.md",
            "tasks.md",
            "CHALLENGE.md",
            "REVIEW.md",
            "comments.md",
            "rounds/0001.json",
            "GEMINI.md",
            "AGENTS.md",
            "base/auth-flow.md",
            "archive.json",
            "runs/0001-spec-gen-auth-flow.jsonl",
        ];
        assert_eq!(paths, expected);
        for file in all_files() {
            assert_eq!(ChangeFile::from_path(&file.path()), Some(file));
        }
        let state = ChangeFile::State.path_in_project(&change());
        assert_eq!(state.as_str(), "agentd/changes/add-oauth/STATE.yaml");
        let archived: ArchiveName = "2026-11-04-add-oauth".parse().unwrap();
        assert_eq!(archived_change(&archived).as_str(), "agentd/archive/2026-11-04-add-oauth");
    }

    #[test]
    fn agents_write_only_documents_of_their_change() {
        let target = |text: &str| agent_write_target(&change(), &RelPath::new(text).unwrap());
        assert_eq!(target("tasks.md"), Ok(ChangeFile::Tasks));
        assert_eq!(target("./agentd/changes/add-oauth/tasks.md"), Ok(ChangeFile::Tasks));
        let allowed = all_files().into_iter().filter(|f| target(f.path().as_str()).is_ok());
        let allowed: Vec<String> = allowed.map(|file| file.path().to_string()).collect();
        let expected = ["clarifications.md", "proposal.md", "specs/auth-flow.md", "tasks.md"];
        assert_eq!(allowed, expected);
        for owned in ["STATE.yaml", "base/auth-flow.md", "runs/0001-x.jsonl"] {
            assert!(matches!(target(owned), Err(WriteRefused::OwnedByAgentd { .. })), "{owned}");
        }
        for outside in [
            "agentd/config.toml",
            "agentd",
            "agentd/changes/other/tasks.md",
            "agentd/changes/add-oauth-2/tasks.md",
            "agentd/specs/auth-flow.md",
        ] {
            let result = target(outside);
            assert!(matches!(result, Err(WriteRefused::OutsideChange { .. })), "{outside}");
        }
        for other in ["state.yaml", ".", "specs", "specs/A.md", "specs/a/b.md", "src/main.rs"] {
            assert!(matches!(target(other), Err(WriteRefused::NotADocument { .. })), "{other}");
        }
    }

    #[test]
    fn names_are_read_only_as_they_are_written() {
        for good in ["0001-challenge.jsonl", "12345-implement-data.jsonl"] {
            assert_eq!(good.parse::<RunName>().unwrap().to_string(), good);
        }
        for bad in ["1-x.jsonl", "0001-.jsonl", "0001-X.jsonl", "0001-x.json", "-1-x.jsonl", ""] {
            assert!(bad.parse::<RunName>().is_err(), "{bad}");
        }
        for bad in ["2026-11-04", "2026-11-04-", "2026-13-04-a", "26-11-04-a", "é026-11-04-a"] {
            assert!(bad.parse::<ArchiveName>().is_err(), "{bad}");
        }
    }
}
