//! `cargo xtask picture`: the picture of the README, which is a real run of `agentd demo`.

use crate::Result;
use crate::process;
use crate::workspace::Workspace;

/// For those who cannot see it.
const LABEL: &str = "agentd demo in a terminal: a plan is written, challenged and revised; \
the code is written, reviewed and fixed; the specs are merged";

pub(crate) fn make(workspace: &Workspace) -> Result<()> {
    let build = ["build", "--release", "--package", "agentd"];
    process::run(process::command("cargo", &workspace.root).args(build))?;
    let agentd = workspace.target.join("release/agentd");
    let mut picture = process::command("cargo", &workspace.root);
    picture.args(["run", "--quiet", "--package", "terminal", "--bin", "picture", "--"]);
    process::run(picture.args(["docs/demo.svg", LABEL]).arg(agentd).arg("demo"))
}
