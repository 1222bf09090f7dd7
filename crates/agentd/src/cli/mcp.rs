use std::convert::Infallible;
use std::path::PathBuf;
use std::process::ExitCode;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::ids::ChangeId;
use agentd_core::step_name::StepName;
use agentd_engine::tools::Toolset;

use super::Context;
use crate::error::CommandError;
use crate::mcp::{self, McpOptions};

/// Serve the tools for agents over MCP on standard input and output.
///
/// With a change and a role, offers the tools of that role for that change. Without a change,
/// serves all open changes of the project to an interactive client. Exits at the end of its
/// input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd mcp --change add-oauth --role planner\n  claude mcp add agentd -- agentd mcp"
)]
pub(crate) struct Args {
    /// Change to serve.
    #[arg(long, value_name = "ID")]
    change: Option<ChangeId>,

    /// Role to serve: planner, challenger, implementer, or reviewer.
    #[arg(long)]
    role: Option<Role>,

    /// Step that the agent was started for; some steps have their own tools.
    #[arg(long, hide = true, requires = "change", requires = "role", value_parser = any_step)]
    step: Option<StepName>,

    /// Agent that signs; the default is the one configured for the role.
    #[arg(long, hide = true, requires = "role")]
    agent: Option<AgentKind>,

    /// File with the key for the receipts of reviews; `-` for none.
    #[arg(long, hide = true, requires = "role")]
    receipt: Option<PathBuf>,

    /// Take the time from each call, because a recording is being replayed.
    #[arg(long, hide = true, requires = "agent")]
    replaying: bool,
}

/// A step that is not known has no tools of its own.
#[expect(clippy::unnecessary_wraps, reason = "clap takes a parser that can fail")]
fn any_step(name: &str) -> Result<StepName, Infallible> {
    Ok(StepName::of(name))
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let options = McpOptions {
        start_dir: context.start.clone(),
        change: args.change.clone(),
        toolset: Toolset::new(args.role, args.step.as_ref()),
        step: args.step.clone(),
        agent: args.agent,
        replaying: args.replaying,
        receipt: args.receipt.clone().filter(|path| path.as_os_str() != "-"),
    };
    mcp::run(options)?;
    Ok(ExitCode::SUCCESS)
}
