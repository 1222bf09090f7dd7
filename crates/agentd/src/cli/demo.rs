//! The whole workflow on a machine that has no agent: everything is real but the agents,
//! which are played from a recording that is part of the program.

pub(super) mod place;
mod story;
mod tour;

use std::path::PathBuf;
use std::process::ExitCode;

use agentd_engine::guard::trust::Consent;

use self::place::DemoDir;
use self::story::Story;
pub(super) use self::tour::DemoReport;
use super::Context;
use super::agents_setup::cancel_on_signals;
use crate::error::CommandError;
use crate::ui::Ui;
use crate::ui::progress::ProgressMode;

/// Watch a change go from one sentence to merged specs, without agents.
///
/// Creates a small project with tests in a new directory and runs the whole workflow in it:
/// plan, challenge, revision, implementation, review, fix, archive. The commands, the MCP
/// server, the tests, and git are real; the agents are replayed from a recording. Needs no
/// API key and no network, and writes nothing outside the directory.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd demo\n  agentd demo --fast\n  agentd demo --dir /tmp/demo     keep the result to look at"
)]
pub(crate) struct Args {
    /// Run without pauses; the default takes about twenty seconds.
    #[arg(long)]
    fast: bool,

    /// Directory to use and keep; must be new or empty.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Keep the directory afterwards.
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    // From before the directory is there: anyone who stops it finds nothing left behind.
    let cancel = cancel_on_signals()?;
    let place = DemoDir::make(context, args)?;
    let inside = Context {
        ui: Ui { json: context.ui.json, pages: false, progress: ProgressMode::auto(false) },
        start: place.root().to_owned(),
        command_line: context.command_line.clone(),
        // agentd has written these settings itself, right now.
        consent: Consent::Given,
        agent: None,
    };
    let speed = if args.fast { agentd_core::config::Speed::Full } else { place::watchable() };
    let story = Story::play(&inside, &cancel, speed);
    if cancel.reason().is_some() {
        return Err(CommandError::interrupted());
    }
    let story = story?;
    let kept = place.leave()?;
    context.ui.print(&DemoReport::new(story, &kept))?;
    Ok(ExitCode::SUCCESS)
}
