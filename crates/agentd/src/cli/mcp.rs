use std::process::ExitCode;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::ids::ChangeId;

use super::Context;
use crate::error::CommandError;
use crate::mcp::{self, McpOptions, Toolset};

/// Serve the tools through which agents write, over MCP on standard input and output.
///
/// Bound to a change and a role, it offers what that role may do to that change.
/// Without a change it serves every open change of the project to an interactive
/// client. It ends when its input does.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd mcp --change add-oauth --role planner\n  claude mcp add agentd -- agentd mcp"
)]
pub(crate) struct Args {
    /// The change.
    #[arg(long, value_name = "ID")]
    change: Option<ChangeId>,

    /// The role: planner, challenger, implementer or reviewer.
    #[arg(long)]
    role: Option<Role>,

    /// The step that the agent was started for; some have tools of their own.
    #[arg(long, hide = true, requires = "change", requires = "role")]
    step: Option<String>,

    /// Who signs; without it, who plays the role by the configuration.
    #[arg(long, hide = true, requires = "role")]
    agent: Option<AgentKind>,

    /// A recording is played: the time comes with each call.
    #[arg(long, hide = true, requires = "agent")]
    replaying: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let options = McpOptions {
        start_dir: context.start.clone(),
        change: args.change.clone(),
        toolset: Toolset::new(args.role, args.step.as_deref()),
        agent: args.agent,
        replaying: args.replaying,
    };
    mcp::run(options).map_err(|error| CommandError::new("mcp", error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
