use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use agentd_core::config::Speed;
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::text::{counted, printable};
use agentd_engine::agents::reproduce::reproduce;
use agentd_engine::agents::step::Agents;
use agentd_engine::change::documents;
use agentd_engine::guard::trust::Trusted;
use agentd_engine::process::{Cancel, Supervisor};
use serde::Serialize;

use super::Context;
use crate::error::{CommandError, unusable};
use crate::install;
use crate::ui::{BAD, GOOD, Output, Screen};

/// Replay a recorded change in another directory, without agents.
///
/// Runs are replayed in order: tool calls against the real MCP server, edits in the working tree.
/// Then the documents and files are compared with the recording; any difference is reported,
/// and the exit code is 1. The target should be a clone of the project from before the change.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd replay add-oauth --into ../clone\n  agentd replay agentd/archive/2026-11-04-add-oauth --into /tmp/again\n  agentd replay runs/ --into /tmp/again --speed 1x"
)]
pub(crate) struct Args {
    /// Change ID, or directory of a change or of its runs.
    source: PathBuf,

    /// Directory to replay into; set up as a project if it is not one.
    #[arg(long, value_name = "DIR")]
    into: PathBuf,

    /// Playback speed: `full`, or a multiple such as `1x`.
    #[arg(long, default_value_t = Speed::Full)]
    speed: Speed,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let source = source(context, &args.source)?;
    let agents = target(context, args)?;
    let into = agents.project.root().display().to_string();
    let reproduced = reproduce(agents, &source, &mut |_| {}, &mut |run| {
        context.ui.remark(&run.to_string());
    });
    let reproduced = reproduced?;
    let identical = reproduced.divergences.is_empty();
    context.ui.print(&ReplayReport {
        change_id: reproduced.change,
        into,
        identical,
        runs: reproduced.runs.iter().map(ToString::to_string).collect(),
        compared: reproduced.compared,
        divergences: reproduced.divergences,
    })?;
    Ok(if identical { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A path, or the name of a change.
fn source(context: &Context, source: &Path) -> Result<PathBuf, CommandError> {
    let path = context.start.join(source);
    let here = |path: &Path| {
        std::fs::canonicalize(path).map_err(|error| {
            CommandError::new(Kind::Recording, format!("cannot read {}", path.display()))
                .cause(error.to_string())
        })
    };
    if path.is_dir() {
        return here(&path);
    }
    let project = context.project_of(source.to_str())?;
    here(context.change_to_read(&project, source.to_str())?.path())
}

/// The project to play in, made if need be.
fn target(context: &Context, args: &Args) -> Result<Agents, CommandError> {
    let into = context.start.join(&args.into);
    let cannot = |error: std::io::Error| unusable(&into, &error);
    std::fs::create_dir_all(&into).map_err(cannot)?;
    let root = std::fs::canonicalize(&into).map_err(cannot)?;
    let project = context.project_at(&root)?;
    let changes = install::install(project.dir(), &[], &install::Settings::default())?;
    install::apply(project.dir(), &changes)?;
    project.dir().create_dir_all(&agentd_core::layout::changes_dir())?;
    let internal = |error: std::io::Error| {
        CommandError::new(Kind::Internal, "agentd cannot start itself").cause(error.to_string())
    };
    let mut config = documents::load_config(&project)?;
    config.replay.speed = args.speed;
    let cancel = Cancel::new().map_err(internal)?;
    cancel.on_signals().map_err(internal)?;
    let agentd = std::env::current_exe().map_err(internal)?;
    Ok(Agents {
        // What is played runs nothing, whatever the settings of the target say.
        config: Trusted::harmless(config),
        work_tree: root,
        environment: std::env::vars_os().collect(),
        agentd: agentd.to_string_lossy().into_owned(),
        supervisor: Supervisor::this_program().map_err(internal)?,
        cancel,
        holder: context.holder(),
        warm: Arc::default(),
        carrier: None,
        project,
    })
}

/// How a recorded change was replayed.
#[derive(Debug, Serialize)]
pub(super) struct ReplayReport {
    /// The change.
    change_id: ChangeId,
    /// The project it was replayed in.
    into: String,
    /// Whether everything is as recorded.
    identical: bool,
    /// The runs that were replayed.
    runs: Vec<String>,
    /// How many documents and files were compared.
    compared: usize,
    /// What is not as recorded.
    divergences: Vec<String>,
}

impl Output for ReplayReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        for divergence in &self.divergences {
            writeln!(screen, "{BAD}differs{BAD:#}  {}", printable(divergence))?;
        }
        let (runs, files) = (counted(self.runs.len(), "run"), counted(self.compared, "file"));
        let (style, result) =
            if self.identical { (GOOD, "all as recorded") } else { (BAD, "not as recorded") };
        let into = printable(&self.into);
        writeln!(screen, "{runs} played in {into}, {files} compared: {style}{result}{style:#}")
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self {
            change_id: ChangeId::new("add-oauth").unwrap(),
            into: "/tmp/again".to_owned(),
            identical: false,
            runs: vec!["0001-proposal-gen".to_owned()],
            compared: 12,
            divergences: vec!["src/token.rs is not there".to_owned()],
        }
    }
}
