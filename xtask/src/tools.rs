//! Cargo subcommands that the machine may lack.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use crate::Result;
use crate::process;
use crate::workspace::Workspace;

/// A program from crates.io.
pub(crate) struct Tool {
    /// The crate, and the program it installs.
    name: &'static str,
    version: &'static str,
    extra: &'static [&'static str],
}

/// The test runner. Without it, `cargo test` runs the same tests, without time
/// limits and groups.
pub(crate) const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    version: "0.9.151",
    extra: &["--no-default-features", "--features", "default-no-update"],
};

/// The check of licenses, bans and sources.
pub(crate) const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", extra: &[] };

/// How long an install may take. Either tool takes two to six minutes on two
/// cores; what was built by then is kept, so that the next run goes on from there.
const INSTALL_LIMIT: Duration = Duration::from_mins(10);

/// Finds a tool on `PATH` or among the tools we built, else builds it where
/// that is wanted: in CI, or with `AGENTD_INSTALL_TOOLS=1`. A person is not made
/// to wait minutes unasked.
///
/// `Err` says why there is none; it never is a reason to fail.
pub(crate) fn find(workspace: &Workspace, tool: &Tool) -> Result<PathBuf> {
    let on_path = PathBuf::from(tool.name);
    let cached = workspace.tools.join("bin").join(tool.name);
    for program in [on_path, cached.clone()] {
        if process::works(process::command(&program, &workspace.root).arg("--version")) {
            return Ok(program);
        }
    }
    let wanted = workspace.ci || env::var_os("AGENTD_INSTALL_TOOLS").is_some();
    if !wanted {
        return Err(format!(
            "{name} is not installed (cargo install --locked {name}, or AGENTD_INSTALL_TOOLS=1)",
            name = tool.name
        )
        .into());
    }
    install(workspace, tool)?;
    Ok(cached)
}

fn install(workspace: &Workspace, tool: &Tool) -> Result<()> {
    let mut cargo = process::command("cargo", &workspace.root);
    cargo
        .args(["install", "--quiet", "--locked", tool.name, "--version", tool.version])
        .args(tool.extra)
        .arg("--root")
        .arg(&workspace.tools)
        .env("CARGO_TARGET_DIR", workspace.tools.join("build"))
        .env_remove("RUSTFLAGS");
    process::run_within(&mut cargo, INSTALL_LIMIT)
}
