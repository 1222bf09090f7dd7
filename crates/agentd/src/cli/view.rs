use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use agentd_engine::agents::installed::find_program;
use serde_json::json;

use super::Context;
use crate::error::CommandError;
use crate::viewer::{self, App};

/// Show the changes in a browser: documents, reviews, cost, and what is running now.
///
/// Serves on 127.0.0.1 until Ctrl-C. The address that is printed holds a token, and
/// without it nothing is shown. Comments are kept in the change, and decisions are
/// those of `agentd decide`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd view\n  agentd view add-oauth\n  agentd view --no-open --port 8080"
)]
pub(crate) struct Args {
    /// The change to begin with; all of them where none is named.
    id: Option<String>,

    /// Print the address, and leave the browser alone.
    #[arg(long)]
    no_open: bool,

    /// The port; a free one where none is given.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let path = match &args.id {
        Some(id) => format!("/changes/{}", context.change(&project, Some(id))?.id()),
        None => "/".to_owned(),
    };
    let command = context.command_line.clone();
    let root = project.root().to_owned();
    let listening = viewer::listen(project, args.port, super::user(), command)
        .map_err(|error| cannot_listen(args.port, &error))?;
    let address = listening.app.address(&path);
    if context.ui.json {
        context.ui.print_json(&json!({ "version": 1, "address": address }))?;
    } else {
        let mut out = context.ui.out();
        writeln!(out, "{address}")?;
        out.flush()?;
    }
    // Kept until the end, and removed with it.
    let doorway = if args.no_open { None } else { Some(App::doorway(&address)) };
    if let Some(doorway) = &doorway
        && !doorway.as_ref().is_ok_and(|(_dir, page)| open(page, &root))
    {
        context.ui.note("No browser could be opened: copy the address into one.");
    }
    context.ui.note("Ctrl-C ends the viewer.");
    listening.serve().map_err(|error| {
        CommandError::new("viewer", "the viewer has failed").cause(error.to_string())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn cannot_listen(port: u16, error: &io::Error) -> CommandError {
    let wrong = CommandError::new("port", format!("the viewer cannot listen on port {port}"));
    let wrong = wrong.cause(error.to_string());
    if port == 0 { wrong } else { wrong.hint("leave --port out, and a free port is taken") }
}

/// Asks the desktop to open a page. Whether it did is not known, only whether it was asked.
fn open(page: &Path, root: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs: &[&str] =
        if cfg!(target_os = "macos") { &["open"] } else { &["xdg-open", "wslview"] };
    let quiet = |program: &&&str| {
        let Some(program) = find_program(program, &path, root) else { return false };
        let mut command = Command::new(program);
        command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else { return false };
        std::thread::spawn(move || child.wait());
        true
    };
    programs.iter().any(|program| quiet(&program))
}
