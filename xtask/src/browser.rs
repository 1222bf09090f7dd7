//! Chromium, in which the pages of the viewer are tested.

use std::env;
use std::path::Path;
use std::time::Duration;

use crate::Result;
use crate::process;
use crate::workspace::Workspace;

/// Where distributions put it. The test looks in the same places.
const PROGRAMS: [&str; 3] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

const INSTALL_LIMIT: Duration = Duration::from_mins(10);

/// Finds Chromium, or installs Debian's where we may. Otherwise says why there is none,
/// and the test of the pages is skipped.
pub(crate) fn find_or_install(workspace: &Workspace) -> Result<Option<String>> {
    let there = || PROGRAMS.iter().any(|program| Path::new(program).exists());
    if env::var_os("AGENTD_CHROMIUM").is_some() || there() {
        return Ok(None);
    }
    let root = workspace.root.as_path();
    let is_root = process::capture(process::command("id", root).arg("-u"))?.trim() == "0";
    if !is_root || !process::works(process::command("apt-get", root).arg("--version")) {
        let why = "no Chromium, and only root can install it (apt-get install chromium)";
        return Ok(Some(why.to_owned()));
    }
    let apt = |arguments: &[&str]| {
        let mut apt = process::command("apt-get", root);
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        process::run_within(&mut apt, INSTALL_LIMIT)
    };
    let install = ["install", "--yes", "--quiet", "--no-install-recommends", "chromium"];
    // The lists of packages may be missing, or older than the mirror.
    let installed =
        apt(&install).or_else(|_| apt(&["update", "--quiet"]).and_then(|()| apt(&install)));
    Ok(match installed {
        Ok(()) if there() => None,
        Ok(()) => Some("Chromium is not where it is expected".to_owned()),
        Err(error) => Some(format!("Chromium cannot be installed: {error}")),
    })
}
