//! Sockets of other programs, by which a caged program could have things done outside: the
//! session bus, systemd, Docker, agents of SSH and GPG.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, CWD};
use rustix::mount::MoveMountFlags;

/// Where daemons listen, and how deep the search goes.
const SYSTEM: (&str, usize) = ("/run", 4);
/// The same in the user's home.
const HOME: [(&str, usize); 7] = [
    (".gnupg", 2),
    (".ssh", 2),
    (".docker", 3),
    (".colima", 3),
    (".lima", 3),
    (".orbstack", 3),
    (".config/systemd", 2),
];
/// How many names are checked in total.
const MOST: usize = 8192;
/// By these, names of hosts and users are looked up.
const HARMLESS: [&str; 4] = ["nscd", "systemd/resolve", "systemd/userdb", "avahi"];

/// Hides every socket that this user could connect to, except those that it may use.
/// Returns whether it has checked everything. `empty` is an empty directory, to replace the
/// directory of the user's session.
pub(super) fn hide(allowed: &[PathBuf], empty: Option<&OwnedFd>) -> io::Result<bool> {
    let mut found = Vec::new();
    let mut left = MOST;
    look(Path::new(SYSTEM.0), SYSTEM.1, &mut left, &mut found);
    if let Some(home) = std::env::home_dir() {
        for (dir, depth) in HOME {
            look(&home.join(dir), depth, &mut left, &mut found);
        }
    }
    let is_allowed = |path: &Path| allowed.iter().any(|one| path == one || path.starts_with(one));
    let is_harmless = |path: &Path| {
        let rest = path.strip_prefix(SYSTEM.0).unwrap_or(Path::new(""));
        HARMLESS.iter().any(|name| rest.starts_with(name))
    };
    for path in found.iter().filter(|path| !is_allowed(path) && !is_harmless(path)) {
        match rustix::mount::mount_bind("/dev/null", path) {
            // Its owner has just removed it.
            Err(rustix::io::Errno::NOENT) => {}
            result => result?,
        }
    }
    // All of the session, so that what is started later is not seen either.
    let session = PathBuf::from(format!("/run/user/{}", rustix::process::getuid().as_raw()));
    if let (Some(empty), true) = (empty, session.is_dir() && !is_allowed(&session)) {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(empty, "", CWD, &session, flags)?;
    }
    Ok(left > 0)
}

fn look(dir: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let Some(rest) = left.checked_sub(1) else { return };
        *left = rest;
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth > 1 {
            look(&path, depth - 1, left, found);
        } else if kind.is_socket() && rustix::fs::access(&path, Access::WRITE_OK).is_ok() {
            found.push(path);
        }
    }
}
