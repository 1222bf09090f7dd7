//! The editor of the person, on files of a change.

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use agentd_core::error_kind::Kind;
use agentd_engine::process::find_program;

use crate::error::CommandError;

/// Opens files in the editor, and waits until it is closed. A program inside the project, which a
/// repository may bring along, is never run, even if `PATH` leads there.
pub(crate) fn edit(files: &[PathBuf], root: &Path) -> Result<(), CommandError> {
    let set = ["VISUAL", "EDITOR"].into_iter().filter_map(|name| env::var(name).ok());
    let line = set.into_iter().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_else(|| "vi".to_owned());
    let wrong = |cause: String| {
        CommandError::new(Kind::Prompt, format!("cannot open the editor `{line}`"))
            .cause(cause)
            .hint("set VISUAL or EDITOR to your editor")
    };
    let words = shell_words::split(&line).map_err(|error| wrong(error.to_string()))?;
    let Some((name, args)) = words.split_first() else {
        return Err(wrong("it is empty".to_owned()));
    };
    let path = env::var_os("PATH").unwrap_or_default();
    let program = find_program(name, &path, root);
    let program = program.ok_or_else(|| wrong("there is no such program on PATH".to_owned()))?;
    let ended = Command::new(program).args(args).args(files).current_dir(root).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(wrong(status.to_string())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Lets a person write a text in their editor, and returns it.
pub(crate) fn compose(text: &str, root: &Path) -> Result<String, CommandError> {
    let cannot = |error: std::io::Error| {
        CommandError::new(Kind::Prompt, "cannot open the editor").cause(error.to_string())
    };
    let mut file =
        tempfile::Builder::new().prefix("agentd-").suffix(".md").tempfile().map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    edit(&[file.path().to_owned()], root)?;
    // Read by its path: an editor may have put another file there.
    std::fs::read_to_string(file.path()).map_err(cannot)
}
