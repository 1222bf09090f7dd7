use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentd_core::layout;
use agentd_core::rel_path::RelPath;
use agentd_core::text::{counted, printable};
use agentd_engine::agents::redact::Redactor;
use agentd_engine::insight::export::{self, Exported};
use agentd_engine::store::Project;
use serde_json::json;

use super::Context;
use crate::error::{CommandError, printed};

/// Put a change and its runs into one archive, for a bug report.
///
/// Secrets are replaced: the values of variables whose names say so, and what looks like
/// a key. Look at it all the same before you send it: prompts and code are in it as they
/// were. An archived change can be exported too.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd export add-oauth\n  agentd export add-oauth --output - | gzip > report.tar.gz\n  tar -tf add-oauth.tar"
)]
pub(crate) struct Args {
    /// The change; may be left out where exactly one is open.
    id: Option<String>,

    /// The archive; `-` is standard output. Without it, `<id>.tar` where you are.
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let (dir, id) = find(context, &project, args.id.as_deref())?;
    let path = args.output.clone().unwrap_or_else(|| context.start.join(format!("{id}.tar")));
    let to_stdout = path == Path::new("-");
    if to_stdout && context.ui.json {
        return Err(CommandError::usage("`--json` and `--output -` both want standard output"));
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
    let exported = exported.map_err(|error| CommandError::new("export", error.to_string()))?;
    if to_stdout {
        for left in &exported.left_out {
            context.ui.warn(&format!("left out: {left}"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    printed(report(context, &id, &path, &exported))?;
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
    let wrong = CommandError::new("export", format!("{} cannot be written", path.display()));
    if error.kind() == io::ErrorKind::AlreadyExists {
        return wrong.cause("it is there already").hint("name another with --output");
    }
    wrong.cause(error.to_string())
}

fn report(
    context: &Context,
    id: &str,
    path: &Path,
    exported: &Exported,
) -> Result<(), CommandError> {
    if context.ui.json {
        return context.ui.print_json(&json!({
            "version": 1,
            "change_id": id,
            "path": path.display().to_string(),
            "bytes": exported.bytes,
            "files": exported.files,
            "redacted": exported.redacted,
            "left_out": exported.left_out,
        }));
    }
    let mut out = context.ui.out();
    writeln!(
        out,
        "{} ({}, {} bytes)",
        printable(&path.display().to_string()),
        counted(exported.files.len(), "file"),
        exported.bytes
    )?;
    for file in &exported.redacted {
        writeln!(out, "redacted   {}", printable(file))?;
    }
    for file in &exported.left_out {
        writeln!(out, "left out   {}", printable(file))?;
    }
    out.flush()?;
    Ok(())
}
