//! Cargo subcommands that the machine may lack.

use std::env;
use std::fs;
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
    /// Whether CI builds it where it is missing.
    built_in_ci: bool,
}

/// The test runner. Without it, `cargo test` runs the same tests, without time
/// limits and groups; that is no reason to build for ten minutes, which is what
/// it took on two busy cores.
pub(crate) const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    version: "0.9.151",
    extra: &["--no-default-features", "--features", "default-no-update"],
    built_in_ci: false,
};

/// The check of licenses, bans and sources. Nothing stands in for it. It takes
/// four to five minutes to build.
pub(crate) const DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", extra: &[], built_in_ci: true };

/// The check of the tests themselves, for `cargo xtask mutants` only.
pub(crate) const MUTANTS: Tool =
    Tool { name: "cargo-mutants", version: "27.1.0", extra: &[], built_in_ci: false };

/// How long an install may take in CI; someone who asked for it waits longer.
/// What was built by then is kept, so that the next run continues from there.
const CI_LIMIT: Duration = Duration::from_mins(10);
const LIMIT: Duration = Duration::from_mins(30);

/// Finds a tool on `PATH` or among the tools we built, otherwise builds it where
/// that is wanted: in CI, or with `AGENTD_INSTALL_TOOLS=1`. A person is not made
/// to wait minutes unasked.
///
/// `Err` says why there is none; it never is a reason to fail.
pub(crate) fn find(workspace: &Workspace, tool: &Tool) -> Result<PathBuf> {
    if let Some(program) = installed(workspace, tool) {
        return Ok(program);
    }
    let limit = match (env::var_os("AGENTD_INSTALL_TOOLS"), workspace.ci && tool.built_in_ci) {
        (Some(_), _) => LIMIT,
        (None, true) => CI_LIMIT,
        (None, false) => {
            let name = tool.name;
            let advice = format!("cargo install --locked {name}, or AGENTD_INSTALL_TOOLS=1");
            return Err(format!("{name} is not installed ({advice})").into());
        }
    };
    install(workspace, tool, limit)?;
    Ok(cached(workspace, tool))
}

/// Finds a tool, and builds it if it is missing: for a command that is nothing without it.
pub(crate) fn find_or_install(workspace: &Workspace, tool: &Tool) -> Result<PathBuf> {
    if let Some(program) = installed(workspace, tool) {
        return Ok(program);
    }
    install(workspace, tool, LIMIT)?;
    Ok(cached(workspace, tool))
}

/// The tool on `PATH`, or the one that we built.
fn installed(workspace: &Workspace, tool: &Tool) -> Option<PathBuf> {
    [PathBuf::from(tool.name), cached(workspace, tool)].into_iter().find(|program| {
        // A subcommand of cargo expects its own name first, as cargo passes it.
        let name = tool.name.trim_start_matches("cargo-");
        let mut plain = process::command(program, &workspace.root);
        let mut as_cargo = process::command(program, &workspace.root);
        process::works(plain.arg("--version")) || process::works(as_cargo.args([name, "--version"]))
    })
}

fn cached(workspace: &Workspace, tool: &Tool) -> PathBuf {
    workspace.tools.join("bin").join(tool.name)
}

fn install(workspace: &Workspace, tool: &Tool, limit: Duration) -> Result<()> {
    let build = workspace.tools.join("build");
    let mut cargo = process::command("cargo", &workspace.root);
    cargo
        .args(["install", "--quiet", "--locked", tool.name, "--version", tool.version])
        .args(tool.extra)
        .arg("--root")
        .arg(&workspace.tools)
        .env("CARGO_TARGET_DIR", &build)
        .env_remove("RUSTFLAGS");
    process::run_within(&mut cargo, limit)?;
    // Close to a gigabyte, and of no use any more.
    fs::remove_dir_all(build)?;
    Ok(())
}
