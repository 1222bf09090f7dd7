//! The whole workflow on a machine that has no agent: everything is real but the agents,
//! which are played from a recording that is part of the program.

mod place;
mod story;
mod tour;

use std::path::PathBuf;
use std::process::ExitCode;

use agentd_engine::guard::trust::Consent;

use self::place::Place;
use self::story::Story;
use super::Context;
use super::agents_setup::cancel_on_signals;
use crate::error::{CommandError, printed};
use crate::ui::Ui;

/// See a whole change happen, from one sentence to merged specs, without any agent.
///
/// A small project with tests is made in a fresh directory, and the whole workflow runs in
/// it: plan, challenge, revision, implementation, review, fix, archive. The commands, the MCP
/// server, the tests and git are real; what the agents did is played from a recording. No
/// key and no network is needed, and nothing is written anywhere else.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd demo\n  agentd demo --fast\n  agentd demo --dir /tmp/demo     look at all of it afterwards"
)]
pub(crate) struct Args {
    /// Without pauses; otherwise it goes on for about twenty seconds.
    #[arg(long)]
    fast: bool,

    /// Do it in this directory, which must be new or empty, and leave it there.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Leave the directory there at the end.
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    // From before the directory is there: whoever stops it finds nothing left behind.
    let cancel = cancel_on_signals()?;
    let place = Place::make(context, args)?;
    let inside = Context {
        ui: Ui { json: context.ui.json },
        start: place.root().to_owned(),
        command_line: context.command_line.clone(),
        // agentd has written these settings itself, right now.
        consent: Consent::Given,
    };
    let speed = if args.fast { agentd_core::config::Speed::Full } else { place::watchable() };
    let story = Story::play(&inside, &cancel, speed);
    if cancel.reason().is_some() {
        return Err(CommandError::interrupted());
    }
    let story = story?;
    let kept = place.leave()?;
    printed(tour::show(context, &story, &kept))?;
    Ok(ExitCode::SUCCESS)
}
