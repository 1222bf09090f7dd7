use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentd_core::config::Speed;
use agentd_core::text::{counted, printable};
use agentd_engine::agents::reproduce::{ReproduceError, Reproduced, reproduce};
use agentd_engine::agents::step::{Agents, StepError};
use agentd_engine::change::documents;
use agentd_engine::guard::trust::Trusted;
use agentd_engine::process::{Cancel, Supervisor};
use serde_json::json;

use super::Context;
use crate::error::{CommandError, printed};
use crate::install;
use crate::ui::{BAD, GOOD};

/// Do a recorded change again in another directory, without any agent.
///
/// Every run is played in order: its calls of agentd's tools against the real MCP server,
/// its edits in the work tree. At the end documents and files are compared with those of
/// the recording; where something is not as it was, that is said, and the exit code is 1.
/// The target should be a clone of the project as it was before the change.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd replay add-oauth --into ../clone\n  agentd replay agentd/archive/2026-11-04-add-oauth --into /tmp/again\n  agentd replay runs/ --into /tmp/again --speed 1x"
)]
pub(crate) struct Args {
    /// A change of this project, or the directory of a change or of its runs.
    source: PathBuf,

    /// Where to do it again; set up as a project where it is none.
    #[arg(long, value_name = "DIR")]
    into: PathBuf,

    /// How fast: `full`, or so many times as fast as it was, as in `1x`.
    #[arg(long, default_value_t = Speed::Full)]
    speed: Speed,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let source = source(context, &args.source)?;
    let agents = target(context, args)?;
    let into = agents.project.root().display().to_string();
    let interactive = !context.ui.json;
    let reproduced = reproduce(agents, &source, &mut |_| {}, &mut |run| {
        if interactive {
            context.ui.note(&format!("{run}"));
        }
    });
    let reproduced = reproduced.map_err(command_error)?;
    printed(report(context, &into, &reproduced))?;
    let same = reproduced.divergences.is_empty();
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A path, or the name of a change.
fn source(context: &Context, source: &Path) -> Result<PathBuf, CommandError> {
    let path = context.start.join(source);
    let here = |path: &Path| {
        std::fs::canonicalize(path).map_err(|error| {
            CommandError::new("recording", format!("{} cannot be read", path.display()))
                .cause(error.to_string())
        })
    };
    if path.is_dir() {
        return here(&path);
    }
    let project = context.project()?;
    let change = context.change(&project, source.to_str())?;
    here(&project.root().join(agentd_core::layout::change_dir(change.id()).as_path()))
}

/// The project to play in, made if need be.
fn target(context: &Context, args: &Args) -> Result<Agents, CommandError> {
    let into = context.start.join(&args.into);
    let cannot = |error: std::io::Error| {
        CommandError::new("store", format!("{} cannot be used", into.display()))
            .cause(error.to_string())
    };
    std::fs::create_dir_all(&into).map_err(cannot)?;
    let root = std::fs::canonicalize(&into).map_err(cannot)?;
    let project = context.project_at(&root)?;
    let changes = install::install(project.dir(), &[])?;
    install::apply(project.dir(), &changes)?;
    project.dir().create_dir_all(&agentd_core::layout::changes_dir())?;
    let internal = |error: std::io::Error| {
        CommandError::new("internal", "agentd cannot start itself").cause(error.to_string())
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
        project,
    })
}

fn command_error(error: ReproduceError) -> CommandError {
    let message = error.to_string();
    match error {
        ReproduceError::Documents(error) => error.into(),
        ReproduceError::Step(StepError::Documents(error)) => error.into(),
        ReproduceError::Exists { change } => CommandError::new("already_there", message).hint(
            format!("replay into a directory that has no change `{change}`, such as a fresh clone"),
        ),
        ReproduceError::Interrupted => CommandError::interrupted(),
        ReproduceError::Step(_) => CommandError::new("replay", message),
        ReproduceError::Recording(_) | ReproduceError::BadChange(_) | ReproduceError::Io { .. } => {
            CommandError::new("recording", message).hint(
                "name a change, its directory, or a directory of run files (NNNN-<step>.jsonl)",
            )
        }
    }
}

fn report(context: &Context, into: &str, done: &Reproduced) -> Result<(), CommandError> {
    let same = done.divergences.is_empty();
    if context.ui.json {
        let runs: Vec<String> = done.runs.iter().map(ToString::to_string).collect();
        return context.ui.print_json(&json!({
            "version": 1,
            "change_id": done.change,
            "into": into,
            "identical": same,
            "runs": runs,
            "compared": done.compared,
            "divergences": done.divergences,
        }));
    }
    let mut out = context.ui.out();
    for divergence in &done.divergences {
        writeln!(out, "{BAD}differs{BAD:#}  {}", printable(divergence))?;
    }
    let (runs, files) = (counted(done.runs.len(), "run"), counted(done.compared, "file"));
    let (style, said) = if same { (GOOD, "all as recorded") } else { (BAD, "not as recorded") };
    writeln!(
        out,
        "{runs} played in {}, {files} compared: {style}{said}{style:#}",
        printable(into)
    )?;
    out.flush()?;
    Ok(())
}
