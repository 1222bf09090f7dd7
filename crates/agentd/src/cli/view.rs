use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_viewer::Options;
use serde_json::json;

use super::Context;
use crate::error::CommandError;

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
    let options = Options {
        project,
        port: args.port,
        person: super::user(),
        command_line: context.command_line.clone(),
    };
    let server =
        agentd_viewer::listen(options).map_err(|error| cannot_listen(args.port, &error))?;
    let address = server.address(&path);
    if context.ui.json {
        context.ui.print_json(&json!({ "version": 1, "address": address }))?;
    } else {
        let mut out = context.ui.out();
        writeln!(out, "{address}")?;
        out.flush()?;
    }
    let opened = if args.no_open { None } else { Some(server.open_in_browser(&address)) };
    if let Some(Err(_)) = opened {
        context.ui.note("No browser could be opened: copy the address into one.");
    }
    context.ui.note("Ctrl-C ends the viewer.");
    server.serve().map_err(|error| {
        CommandError::new("viewer", "the viewer has failed").cause(error.to_string())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn cannot_listen(port: u16, error: &io::Error) -> CommandError {
    let wrong = CommandError::new("port", format!("the viewer cannot listen on port {port}"));
    let wrong = wrong.cause(error.to_string());
    if port == 0 { wrong } else { wrong.hint("leave --port out, and a free port is taken") }
}
