use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
use agentd_viewer::Options;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{Output, Screen};

/// Show changes in a browser: plans, reviews, code, runs, cost, and what to do next.
///
/// Serves on 127.0.0.1 until you press Ctrl-C. The printed address contains a token that is
/// required for access. You can comment on plans and code, edit documents, and decide, as with
/// `agentd decide`. With `--act`, you can also start changes, run the next step, and stop a run.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd view\n  agentd view add-oauth\n  agentd view --act\n  agentd view --no-open --port 8080"
)]
pub(crate) struct Args {
    /// Change to open; the default is the list of all changes.
    id: Option<String>,

    /// Let the pages start and stop commands.
    #[arg(long)]
    act: bool,

    /// Print the address without opening a browser.
    #[arg(long)]
    no_open: bool,

    /// Don't ask the remote repository which worker has what. It is asked only if changes of this project
    /// were given to workers.
    #[arg(long)]
    offline: bool,

    /// Port to listen on; the default is any free port.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

/// Where the viewer is.
#[derive(Debug, Serialize)]
pub(super) struct ViewReport {
    /// Its address, with the token without which nothing is shown.
    address: String,
}

impl Output for ViewReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        writeln!(screen, "{}", self.address)
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self { address: "http://127.0.0.1:8080/?token=0123".to_owned() }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let path = match &args.id {
        Some(id) => {
            let home = context.project_of(Some(id))?;
            let change = context.change_to_read(&home, Some(id))?;
            match change.archived() {
                Some(name) => format!("/archive/{name}"),
                None => format!("/changes/{}", change.id()),
            }
        }
        None => "/".to_owned(),
    };
    let person = super::user(&project);
    let program = std::env::current_exe().map_err(|error| {
        CommandError::new(Kind::Viewer, "cannot find the agentd program").cause(error.to_string())
    })?;
    let options = Options {
        project,
        port: args.port,
        person,
        command_line: context.command_line.clone(),
        acts: args.act,
        program,
        asks_remote: !args.offline,
    };
    let server =
        agentd_viewer::listen(options).map_err(|error| cannot_listen(args.port, &error))?;
    if args.act && !server.is_trusted() {
        context.ui.warn(
            "the settings of this project run programs, and you have not agreed to that yet; \
             until you run `agentd trust`, no command can be started from the pages",
        );
    }
    let address = server.address(&path);
    context.ui.print(&ViewReport { address: address.clone() })?;
    let opened = if args.no_open { None } else { Some(server.open_in_browser(&address)) };
    if let Some(Err(_)) = opened {
        context.ui.note("Could not open a browser; open the address yourself.");
    }
    context.ui.note("Press Ctrl-C to stop the viewer.");
    server.serve().map_err(|error| {
        CommandError::new(Kind::Viewer, "the viewer failed").cause(error.to_string())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn cannot_listen(port: u16, error: &io::Error) -> CommandError {
    let wrong = CommandError::new(Kind::Port, format!("cannot listen on port {port}"));
    let wrong = wrong.cause(error.to_string());
    if port == 0 { wrong } else { wrong.run("use any free port", CommandLine::agentd(["view"])) }
}
