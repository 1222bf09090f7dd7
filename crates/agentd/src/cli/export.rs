use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentd_core::error_kind::Kind;
use agentd_core::text::{counted, printable};
use agentd_engine::agents::redact::Redactor;
use agentd_engine::insight::export;
use agentd_viewer::Format;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{Output, Screen};

/// Export a change: as a tar archive for a bug report, a web page, or the text of a pull request.
///
/// The archive contains the change and its runs. With `--html`, it is one page with the plan, the
/// reviews, the code and the runs, which needs no other file and no script; diagrams are in it as
/// their source text. With `--markdown`, it is a short text for a pull request.
///
/// Secrets are redacted: the values of variables whose names look secret, and anything that
/// looks like a key. Prompts and code are included unchanged, so review the file before
/// you send it. Archived changes can be exported too.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd export add-oauth\n  agentd export add-oauth --html\n  agentd export add-oauth --markdown --output - | gh pr create --title add-oauth --body-file -\n  agentd export add-oauth --output - | gzip > report.tar.gz\n  tar -tf add-oauth.tar"
)]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// Write one static web page.
    #[arg(long, conflicts_with = "markdown")]
    html: bool,

    /// Write the text of a pull request.
    #[arg(long)]
    markdown: bool,

    /// File to write, or `-` for standard output; the default is `<id>.tar`, `.html` or `.md` in
    /// this directory.
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    let change = context.change_to_read(&project, args.id.as_deref())?;
    let (dir, id) = (change.dir_in_project(), change.id().to_string());
    let format = match (args.html, args.markdown) {
        (true, _) => Some(Format::Html),
        (false, true) => Some(Format::Markdown),
        (false, false) => None,
    };
    let extension = format.map_or("tar", Format::extension);
    let file = || context.start.join(format!("{id}.{extension}"));
    let path = args.output.clone().unwrap_or_else(file);
    let to_stdout = path == Path::new("-");
    if to_stdout && context.ui.json {
        return Err(CommandError::usage("`--json` and `--output -` both write to standard output"));
    }
    if let Some(format) = format {
        let text = agentd_viewer::export(&project, &change, format).map_err(|error| {
            CommandError::new(Kind::Export, "the change cannot be read").cause(error.to_string())
        })?;
        return write(context, &id, &path, &text);
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

/// Writes a change that was made into a text.
fn write(context: &Context, id: &str, path: &Path, text: &str) -> Result<ExitCode, CommandError> {
    if path == Path::new("-") {
        let written = io::stdout().lock().write_all(text.as_bytes());
        written.map_err(|error| unwritable(path, &error))?;
        return Ok(ExitCode::SUCCESS);
    }
    let file = File::options().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| unwritable(path, &error))?;
    if let Err(error) = file.write_all(text.as_bytes()) {
        // Half a page is none.
        let _ = std::fs::remove_file(path);
        return Err(unwritable(path, &error));
    }
    context.ui.print(&ExportReport {
        change_id: id.to_owned(),
        path: path.display().to_string(),
        bytes: text.len() as u64,
        files: Vec::new(),
        redacted: Vec::new(),
        left_out: Vec::new(),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn unwritable(path: &Path, error: &io::Error) -> CommandError {
    let wrong = CommandError::new(Kind::Export, format!("cannot write {}", path.display()));
    if error.kind() == io::ErrorKind::AlreadyExists {
        return wrong.cause("it already exists").hint("name another file with --output");
    }
    wrong.cause(error.to_string())
}

/// A change that was exported.
#[derive(Debug, Serialize)]
pub(super) struct ExportReport {
    /// The change.
    change_id: String,
    /// What was written.
    path: String,
    /// Its size.
    bytes: u64,
    /// The files in it; none if it is not an archive.
    files: Vec<String>,
    /// The files in which something was redacted.
    redacted: Vec<String>,
    /// The files that were left out, and why.
    left_out: Vec<String>,
}

impl Output for ExportReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let path = printable(&self.path);
        match self.files.len() {
            0 => writeln!(screen, "{path} ({} bytes)", self.bytes)?,
            files => writeln!(screen, "{path} ({}, {} bytes)", counted(files, "file"), self.bytes)?,
        }
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
