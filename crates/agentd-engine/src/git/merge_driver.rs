//! The merge driver that agentd is for git, for what it owns: main specs, and their changelog.
//!
//! The settings and attributes of a clone, below `.git`, say which program it is and for which files. A
//! clone in which agentd was never run merges these files line by line, as all others.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentd_core::document::changelog;
use agentd_core::ids::SpecId;
use agentd_core::layout;
use agentd_core::merge::Versions;

use super::{Git, GitError, GitTool};
use crate::store::{DOCUMENT_CAP, OutsideDir};

/// The first argument of the program, where git calls it.
pub const MERGE_DRIVER: &str = "merge-driver";

/// How git calls it: base, ours, theirs, and the path of the file in the repository.
const COMMAND: &str = "agentd merge-driver %O %A %B %P";
const SETTING: &str = "merge.agentd.driver";
/// The files that it is for, in any project of the repository.
const ATTRIBUTES: &str = "**/agentd/specs/*.md merge=agentd\n";
/// The mode of a file that others may read.
const FILE: u32 = 0o644;
const NAME: [&str; 2] = ["merge.agentd.name", "agentd specs"];

impl Git {
    /// Whether git knows a driver here.
    pub fn knows_merge_driver(&self) -> Result<bool, GitError> {
        Ok(self.call("config").args(["--get", SETTING]).ask()?.code == 0)
    }

    /// Tells git about the driver, in the settings of this clone, unless it knows one.
    fn ensure_merge_driver(&self) -> Result<(), GitError> {
        if self.knows_merge_driver()? {
            return Ok(());
        }
        let (info, known) = self.attributes()?;
        let failed = |source| GitError::Path { path: info.path().to_owned(), source };
        let text = format!("{}{ATTRIBUTES}", ended(&known));
        info.write_atomic("attributes", text.as_bytes(), FILE).map_err(failed)?;
        for [name, value] in [NAME, [SETTING, COMMAND]] {
            self.call("config").args(["--local", name, value]).run()?;
        }
        Ok(())
    }

    /// Where the attributes of this clone are, and what they are, without ours.
    fn attributes(&self) -> Result<(OutsideDir, String), GitError> {
        let [_, common] = self.directories()?;
        let failed = |source| GitError::Path { path: common.clone(), source };
        let info = OutsideDir::open(&common).and_then(|dir| dir.subdir_or_create("info"));
        let info = info.map_err(failed)?;
        let known = match fs::read_to_string(info.path().join("attributes")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(failed)?,
        };
        Ok((info, known.replace(ATTRIBUTES, "")))
    }

    /// Takes it back, if it is still as agentd set it.
    pub fn remove_merge_driver(&self) -> Result<(), GitError> {
        let known = self.call("config").args(["--local", "--get", SETTING]).ask()?;
        if known.text().trim_end() == COMMAND {
            let (info, attributes) = self.attributes()?;
            let failed = |source| GitError::Path { path: info.path().to_owned(), source };
            info.write_atomic("attributes", attributes.as_bytes(), FILE).map_err(failed)?;
            self.call("config").args(["--local", "--remove-section", "merge.agentd"]).run()?;
        }
        Ok(())
    }
}

/// Tells git about the driver in the clone that a directory is in, unless it knows one; a warning if
/// that fails. A clone does not get the settings of the repository that it was made of.
pub fn register_merge_driver(tool: &GitTool, dir: &Path) -> Option<String> {
    let git = Git::discover_with(tool, dir).ok().flatten()?;
    let error = git.ensure_merge_driver().err()?;
    Some(format!("git will merge specs line by line: {error}"))
}

/// A text whose last line is whole.
fn ended(text: &str) -> String {
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{newline}")
}

/// Merges for git, which passes the files: the result goes into ours. The exit code says whether
/// something is left for a person: then ours has the usual marks.
pub fn merge_driver(args: impl Iterator<Item = OsString>) -> u8 {
    let files: Vec<PathBuf> = args.map(PathBuf::from).collect();
    let [base, ours, theirs, name] = files.as_slice() else { return 129 };
    let files = [base, ours, theirs].map(PathBuf::as_path);
    match merged(files, name) {
        Some(text) if write(ours, &text).is_ok() => 0,
        Some(_) => 129,
        None => line_by_line(files),
    }
}

/// The merged text; none where both sides have edited the same. Then what is no disagreement is out
/// of the way in the files.
fn merged(files: [&Path; 3], name: &Path) -> Option<String> {
    let read = |path: &Path| {
        let small = fs::metadata(path).ok()?.len() <= DOCUMENT_CAP;
        fs::read_to_string(path).ok().filter(|_| small)
    };
    let [base, ours, theirs] = [read(files[0])?, read(files[1])?, read(files[2])?];
    if name.file_name() == layout::changelog().as_path().file_name() {
        return changelog::merge(&base, &ours, &theirs);
    }
    let spec = SpecId::new(name.file_stem()?.to_str()?).ok()?;
    let versions = Versions { base, ours, theirs }.settled(&spec);
    let merged = versions.merge();
    if merged.is_none() {
        for (path, text) in files.iter().zip([&versions.base, &versions.ours, &versions.theirs]) {
            write(path, text).ok()?;
        }
    }
    merged
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let dir = OutsideDir::open(parent.unwrap_or(Path::new(".")))?;
    dir.write_atomic(path.file_name().unwrap_or_default(), text.as_bytes(), FILE)
}

fn line_by_line([base, ours, theirs]: [&Path; 3]) -> u8 {
    let tool = GitTool::default();
    let labels = ["-L", "ours", "-L", "base", "-L", "theirs"];
    let call = tool.call(Path::new("."), "merge-file").args(["-q"]).args(labels).args(["--"]);
    let merged = call.args([ours, base, theirs]).ask();
    merged.map_or(129, |output| u8::try_from(output.code).unwrap_or(129))
}
