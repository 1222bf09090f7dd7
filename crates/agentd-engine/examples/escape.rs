//! A program that tries to get out of the cage it is run in: `escape <door> [words]`. It ends
//! with 0 if it got out, with 1 if the system refused, with 2 if the words make no sense.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, File, OpenOptions, Permissions};
    use std::io::{self, Write as _};
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    use std::path::Path;
    use std::process::{Command, ExitCode};

    use rustix::fs::{CWD, FileType, Mode, Timestamps, XattrFlags};
    use rustix::mount::{MountFlags, UnmountFlags};
    use rustix::process::{Pid, Resource, Signal, kill_process};
    use rustix::time::Timespec;

    pub(super) fn main() -> ExitCode {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match door(&words) {
            Some(Ok(())) => ExitCode::SUCCESS,
            Some(Err(error)) => {
                let _ = writeln!(io::stderr(), "{words:?}: {error}");
                ExitCode::from(1)
            }
            None => ExitCode::from(2),
        }
    }

    fn door(words: &[&str]) -> Option<io::Result<()>> {
        let result = match *words {
            ["write", path] => fs::write(path, "escaped"),
            ["append", path] => OpenOptions::new()
                .append(true)
                .open(path)
                .and_then(|mut file| file.write_all(b"escaped")),
            ["truncate", path] => rustix::fs::open(path, rustix::fs::OFlags::RDONLY, Mode::empty())
                .map(drop)
                .and_then(|()| {
                    rustix::fs::open(
                        path,
                        rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::TRUNC,
                        Mode::empty(),
                    )
                })
                .map(drop)
                .map_err(Into::into),
            ["mkdir", path] => fs::create_dir(path),
            ["rmdir", path] => fs::remove_dir(path),
            ["unlink", path] => fs::remove_file(path),
            ["rename", from, to] => fs::rename(from, to),
            ["exchange", from, to] => {
                rustix::fs::renameat_with(CWD, from, CWD, to, rustix::fs::RenameFlags::EXCHANGE)
                    .map_err(Into::into)
            }
            ["hardlink", from, to] => fs::hard_link(from, to),
            ["hardlink-in", from, to] => {
                fs::hard_link(from, to).and_then(|()| fs::write(to, "escaped"))
            }
            ["symlink", from, to] => symlink(from, to),
            ["write-through-link", from, to] => {
                symlink(from, to).and_then(|()| fs::write(to, "escaped"))
            }
            ["chmod", path] => fs::set_permissions(path, Permissions::from_mode(0o777)),
            ["chown", path] => rustix::fs::chown(path, Some(rustix::fs::Uid::from_raw(1)), None)
                .map_err(Into::into),
            ["utime", path] => {
                let then = Timespec { tv_sec: 1, tv_nsec: 0 };
                let times = Timestamps { last_access: then, last_modification: then };
                rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::empty())
                    .map_err(Into::into)
            }
            ["setxattr", path] => {
                rustix::fs::setxattr(path, "user.escaped", b"1", XattrFlags::empty())
                    .map_err(Into::into)
            }
            ["fifo", path] => {
                rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).map_err(Into::into)
            }
            ["device", path] => {
                let null = rustix::fs::makedev(1, 3);
                rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::RWXU, null)
                    .map_err(Into::into)
            }
            _ => return processes(words),
        };
        Some(result)
    }

    /// Doors that lead by sockets, processes and mounts.
    fn processes(words: &[&str]) -> Option<io::Result<()>> {
        let result = match *words {
            ["bind", path] => UnixListener::bind(path).map(drop),
            ["connect", path] => UnixStream::connect(path).map(drop),
            ["connect-abstract", name] => SocketAddr::from_abstract_name(name)
                .and_then(|address| UnixStream::connect_addr(&address))
                .map(drop),
            ["kill", pid] => kill_process(number(pid)?, Signal::KILL).map_err(Into::into),
            ["stop", pid] => kill_process(number(pid)?, Signal::STOP).map_err(Into::into),
            ["kill-parent"] => {
                // The supervisor itself; to have killed it is not to have got out.
                let parent = rustix::process::getppid()?;
                kill_process(parent, Signal::KILL).map_err(io::Error::from)
            }
            ["proc-mem", pid] => {
                File::options().write(true).open(format!("/proc/{pid}/mem")).map(drop)
            }
            ["proc-root", pid, path] => fs::write(format!("/proc/{pid}/root{path}"), "escaped"),
            ["proc-cwd", pid, name] => fs::write(format!("/proc/{pid}/cwd/{name}"), "escaped"),
            ["proc-fd", pid] => fs::write(format!("/proc/{pid}/oom_score_adj"), "1000"),
            ["prlimit", pid] => {
                let limit = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
                rustix::process::prlimit(number(pid), Resource::Core, limit)
                    .map(drop)
                    .map_err(Into::into)
            }
            ["renice", pid] => {
                rustix::process::setpriority_process(number(pid), 19).map_err(Into::into)
            }
            ["setns", pid, kind] => File::open(format!("/proc/{pid}/ns/{kind}")).and_then(|file| {
                use std::os::fd::AsFd as _;
                rustix::thread::move_into_link_name_space(file.as_fd(), None).map_err(Into::into)
            }),
            ["remount", place, path] => {
                let flags = MountFlags::BIND;
                rustix::mount::mount_remount(place, flags, "")
                    .map_err(io::Error::from)
                    .and_then(|()| fs::write(path, "escaped"))
            }
            ["umount", place, path] => rustix::mount::unmount(place, UnmountFlags::DETACH)
                .map_err(io::Error::from)
                .and_then(|()| fs::write(path, "escaped")),
            ["bind-mount", from, to, name] => rustix::mount::mount_bind(from, to)
                .map_err(io::Error::from)
                .and_then(|()| fs::write(Path::new(to).join(name), "escaped")),
            // A shell in namespaces of its own, in which it is root.
            ["as-root", script] => {
                shell("unshare", &["--user", "--map-root-user", "--mount", "sh", "-c", script])
            }
            ["sudo", script] => shell("sudo", &["-n", "sh", "-c", script]),
            ["sh", script] => shell("sh", &["-c", script]),
            ["terminal", path] => OpenOptions::new()
                .write(true)
                .open(path)
                .and_then(|mut file| file.write_all(b"escaped")),
            ["tcp", address] => std::net::TcpStream::connect(address).map(drop),
            _ => return None,
        };
        Some(result)
    }

    fn number(pid: &str) -> Option<Pid> {
        pid.parse().ok().and_then(Pid::from_raw)
    }

    fn shell(program: &str, args: &[&str]) -> io::Result<()> {
        let status = Command::new(program).args(args).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
    }
}
