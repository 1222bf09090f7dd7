//! Runs the real gemini, codex and claude CLIs, without a network.
//!
//! What agentd orchestrates is not agentd's to define, so its tests run the
//! real programs, at the versions pinned in `testing/agents`. They see a fresh
//! home, an environment of a few variables with dummy keys, and a network that
//! is loopback alone, where [`scripted_models`] answers them.
//!
//! ```no_run
//! use real_agents::{Cli, Sandbox};
//! use scripted_models::{Reply, Rule, Script};
//!
//! let script = Script::new().rule(Rule::new().step("plan").reply(Reply::text("done")));
//! Sandbox::enter(script, |sandbox| {
//!     let run = sandbox.call(Cli::Codex, "agentd plan add-login\n").run();
//!     assert_eq!(run.exit_code, Some(0));
//!     assert_eq!(sandbox.models().requests().len(), 1);
//! });
//! ```
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "this is part of tests: what goes wrong here fails the test that asked for it"
)]

mod agentd;
mod call;
mod install;
pub mod models;
mod network;
mod processes;
mod sandbox;
mod stream;
mod text;
mod work;

pub use agentd::{CHANGE, CODEX, CODEX_QUICK, Called};
pub use call::{Call, Finished, McpServer, Profile, signal};
pub use install::{AcpAgents, AgentClis, NotInstalled};
pub use network::{Isolation, isolated};
pub use processes::until;
pub use rustix::process::Signal;
pub use sandbox::{DUMMY_KEY, Sandbox};
pub use stream::Usage;
pub use text::{lines_with, paragraph};
pub use work::work;

/// One of the agent CLIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cli {
    /// Google's Gemini CLI.
    Gemini,
    /// `OpenAI`'s Codex CLI.
    Codex,
    /// Anthropic's Claude Code.
    Claude,
}

impl Cli {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Gemini, Self::Codex, Self::Claude];

    /// The name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::Codex => "codex",
            Self::Claude => "claude",
        }
    }
}

/// Makes a test of each function for each of the CLIs, in a module of its name, so
/// that they run in parallel and a failure names the CLI.
#[macro_export]
macro_rules! for_every_cli {
    ($($test:ident),* $(,)?) => {
        mod gemini {
            $(#[test] fn $test() { super::$test($crate::Cli::Gemini); })*
        }
        mod codex {
            $(#[test] fn $test() { super::$test($crate::Cli::Codex); })*
        }
        mod claude {
            $(#[test] fn $test() { super::$test($crate::Cli::Claude); })*
        }
    };
}
