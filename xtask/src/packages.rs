//! Programs of the system that some tests need. They are installed where we may.

use std::env;
use std::path::Path;
use std::time::Duration;

use crate::Result;
use crate::process;
use crate::workspace::Workspace;

/// A program, and the Debian package that has it.
pub(crate) struct Package {
    /// What people call it.
    title: &'static str,
    debian: &'static str,
    /// Where distributions put it. The tests look in the same places.
    programs: &'static [&'static str],
    /// The variable that names another program to take.
    variable: Option<&'static str>,
}

/// The browser in which the pages of the viewer are tested.
pub(crate) const CHROMIUM: Package = Package {
    title: "Chromium",
    debian: "chromium",
    programs: &["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"],
    variable: Some("AGENTD_CHROMIUM"),
};

/// Counts the files that a command opens.
pub(crate) const STRACE: Package =
    Package { title: "strace", debian: "strace", programs: &["/usr/bin/strace"], variable: None };

/// The shells whose completions are tested, besides bash.
pub(crate) const SHELLS: [Package; 2] = [
    Package { title: "zsh", debian: "zsh", programs: &["/usr/bin/zsh"], variable: None },
    Package { title: "fish", debian: "fish", programs: &["/usr/bin/fish"], variable: None },
];

/// The server of a fleet. The tests start it themselves, and take the newest that is there.
pub(crate) const POSTGRES: Package = Package {
    title: "Postgres",
    debian: "postgresql",
    programs: &[
        "/usr/lib/postgresql/15/bin/initdb",
        "/usr/lib/postgresql/16/bin/initdb",
        "/usr/lib/postgresql/17/bin/initdb",
        "/usr/lib/postgresql/18/bin/initdb",
    ],
    variable: None,
};

const INSTALL_LIMIT: Duration = Duration::from_mins(10);

/// Finds a program, or installs Debian's where we may. Otherwise says why there is none,
/// and the tests that need it are skipped.
pub(crate) fn find_or_install(workspace: &Workspace, wanted: &Package) -> Result<Option<String>> {
    let Package { title, debian: package, .. } = wanted;
    let there = || wanted.programs.iter().any(|program| Path::new(program).exists());
    if wanted.variable.and_then(env::var_os).is_some() || there() {
        return Ok(None);
    }
    let root = workspace.root.as_path();
    let is_root = process::capture(process::command("id", root).arg("-u"))?.trim() == "0";
    if !is_root || !process::works(process::command("apt-get", root).arg("--version")) {
        let why = format!("no {title}, and only root can install it (apt-get install {package})");
        return Ok(Some(why));
    }
    let apt = |arguments: &[&str]| {
        let mut apt = process::command("apt-get", root);
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        process::run_quietly_within(&mut apt, INSTALL_LIMIT)
    };
    let install = ["install", "--yes", "--quiet", "--no-install-recommends", package];
    // The lists of packages may be missing, or older than the mirror.
    let installed =
        apt(&install).or_else(|_| apt(&["update", "--quiet"]).and_then(|()| apt(&install)));
    Ok(match installed {
        Ok(()) if there() => None,
        Ok(()) => Some(format!("{title} is not where it is expected")),
        Err(error) => Some(format!("{title} cannot be installed: {error}")),
    })
}
