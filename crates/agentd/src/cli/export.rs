use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentd_core::error_kind::Kind;
use agentd_core::layout;
use agentd_core::rel_path::RelPath;
use agentd_core::text::{counted, printable};
use agentd_engine::agents::redact::Redactor;
use agentd_engine::insight::export;
use agentd_engine::store::Project;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{Output, Screen};

/// Export a change and its runs as a tar archive, for a bug report.
///
/// Secrets are redacted: the values of variables whose names look secret, and anything that
/// looks like a key. Prompts and code are included unchanged, so review the archive before
/// you send it. Archived changes can be exported too.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd export add-oauth\n  agentd export add-oauth --output - | gzip > report.tar.gz\n  tar -tf add-oauth.tar"
)]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// File to write, or `-` for standard output; the default is `<id>.tar` in this directory.
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    let (dir, id) = find(context, &project, args.id.as_deref())?;
    let path = args.output.clone().unwrap_or_else(|| context.start.join(format!("{id}.tar")));
    let to_stdout = path == Path::new("-");
    if to_stdout && context.ui.json {
        return Err(CommandError::usage("`--json` and `--output -` both write to standard output"));
    }
    let environment: Vec<_> = std::env::vars_os().collect();
    let redactor = Redactor::of_project(&environment, &project);
    let exported = if to_stdout {
        let mut out = io::BufWriter::new(io::stdout().lock());
        export::export(&project, &dir, &id, &redactor, &mut out)
    } else {
        let file = File::options().write(true).create_new(true).open(&path);
        let file = file.map_err(|error| unwritable(&path, &error))?;
        let mut out = io::BufWriter::new(file);
        let exported = export::export(&project, &dir, &id, &redactor, &mut out);
        if exported.is_err() {
            // Half an archive is none.
            let _ = std::fs::remove_file(&path);
        }
        exported
    };
    let exported = exported?;
    if to_stdout {
        for left in &exported.left_out {
            context.ui.warn(&format!("left out: {left}"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    context.ui.print(&ExportReport {
        change_id: id,
        path: path.display().to_string(),
        bytes: exported.bytes,
        files: exported.files,
        redacted: exported.redacted,
        left_out: exported.left_out,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The directory of an open change, or of an archived one.
fn find(
    context: &Context,
    project: &Project,
    id: Option<&str>,
) -> Result<(RelPath, String), CommandError> {
    match context.change(project, id) {
        Ok(change) => Ok((layout::change_dir(change.id()), change.id().to_string())),
        Err(error) => {
            let archived = project.archived()?.ids;
            let named = archived.iter().rev().find(|name| Some(name.change.as_str()) == id);
            named.map(|name| (layout::archived_change(name), name.change.to_string())).ok_or(error)
        }
    }
}

fn unwritable(path: &Path, error: &io::Error) -> CommandError {
    let wrong = CommandError::new(Kind::Export, format!("cannot write {}", path.display()));
    if error.kind() == io::ErrorKind::AlreadyExists {
        return wrong.cause("it already exists").hint("name another file with --output");
    }
    wrong.cause(error.to_string())
}

/// An archive that was written.
#[derive(Debug, Serialize)]
pub(super) struct ExportReport {
    /// The change.
    change_id: String,
    /// The archive.
    path: String,
    /// Its size.
    bytes: u64,
    /// The files in it.
    files: Vec<String>,
    /// The files in which something was redacted.
    redacted: Vec<String>,
    /// The files that were left out, and why.
    left_out: Vec<String>,
}

impl Output for ExportReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let (path, files) = (printable(&self.path), counted(self.files.len(), "file"));
        writeln!(screen, "{path} ({files}, {} bytes)", self.bytes)?;
        for file in &self.redacted {
            writeln!(screen, "redacted   {}", printable(file))?;
        }
        for file in &self.left_out {
            writeln!(screen, "left out   {}", printable(file))?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self {
            change_id: "add-oauth".to_owned(),
            path: "add-oauth.tar".to_owned(),
            bytes: 10_240,
            files: vec!["add-oauth/proposal.md".to_owned()],
            redacted: vec!["add-oauth/runs/0001-clarify.jsonl".to_owned()],
            left_out: vec!["add-oauth/runs/link: a symbolic link".to_owned()],
        }
    }
}
