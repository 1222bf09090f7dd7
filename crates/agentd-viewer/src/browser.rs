//! Opening the viewer in the browser of the desktop.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agentd_engine::process::find_program;
use maud::{DOCTYPE, html};

/// What can open a page, in order of preference.
const OPENERS: &[&str] =
    if cfg!(target_os = "macos") { &["open"] } else { &["xdg-open", "wslview"] };

/// A page that leads to the viewer; it is removed when this is dropped.
#[derive(Debug)]
pub struct OpenedPage {
    _dir: tempfile::TempDir,
}

/// Asks the desktop to open an address. Whether a browser appeared is not known, only that
/// the desktop was asked.
///
/// The programs are looked up here, not by a library: a program inside the project, which a
/// repository may bring along, must never be run because `PATH` happens to lead there.
pub(super) fn open(address: &str, root: &Path) -> io::Result<OpenedPage> {
    let (dir, page) = doorway(address)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = OPENERS.iter().filter_map(|name| find_program(name, &path, root));
    for program in programs {
        let mut command = Command::new(program);
        command.arg(&page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Ok(mut child) = command.spawn() {
            std::thread::spawn(move || child.wait());
            return Ok(OpenedPage { _dir: dir });
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "no program to open a browser was found"))
}

/// A page that leads to an address, in a directory that only this user can read. It is opened
/// instead of the address itself, because anyone on the machine can read command lines.
fn doorway(address: &str) -> io::Result<(tempfile::TempDir, PathBuf)> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

    let dir = tempfile::Builder::new()
        .prefix("agentd-view-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()?;
    let path = dir.path().join("open.html");
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let page = html! {
        (DOCTYPE)
        meta charset="utf-8";
        meta name="referrer" content="no-referrer";
        meta http-equiv="refresh" content={ "0;url=" (address) };
        title { "agentd" }
        a href=(address) { "Open the viewer" }
    };
    writeln!(file, "{}", page.into_string())?;
    Ok((dir, path))
}
