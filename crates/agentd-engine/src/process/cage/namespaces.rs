//! Namespaces: a read-only view of the machine, in which some places can be written to.
//!
//! The supervisor enters new user, mount, process and IPC namespaces, arranges the mounts, and
//! starts itself once more as the first process in there. When that one ends, or is killed, the
//! kernel ends everything else inside. Nothing of this needs privileges, where the system lets
//! its users create namespaces.

#![expect(
    clippy::disallowed_methods,
    reason = "it builds the mounts of the sandbox in a process that runs nothing else"
)]

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};

use super::{Cage, Enforced, SHARED_PLACES, sockets};

/// What root may still do inside: what unpacking and installing files takes. Nothing of it
/// reaches beyond the mounts.
const ROOT_KEEPS: [CapabilitySet; 7] = [
    CapabilitySet::CHOWN,
    CapabilitySet::DAC_OVERRIDE,
    CapabilitySet::FOWNER,
    CapabilitySet::FSETID,
    CapabilitySet::KILL,
    CapabilitySet::SETGID,
    CapabilitySet::SETUID,
];

/// What the first process inside needs until it has mounted `/proc`.
const NEEDED_INSIDE: [CapabilitySet; 2] = [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP];

/// Which step failed, for a message.
#[derive(Debug)]
pub(in crate::process) struct StepFailure {
    pub(in crate::process) step: Step,
    pub(in crate::process) source: io::Error,
}

/// The steps by which the namespaces are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::process) enum Step {
    Unshare = 1,
    Users = 2,
    Mounts = 3,
    ReadOnly = 4,
    Tmp = 5,
    Sockets = 6,
    Writable = 7,
    Network = 8,
    Inside = 9,
    Proc = 10,
    Hidden = 11,
}

impl Step {
    const ALL: [Self; 11] = [
        Self::Unshare,
        Self::Users,
        Self::Mounts,
        Self::ReadOnly,
        Self::Tmp,
        Self::Sockets,
        Self::Writable,
        Self::Network,
        Self::Inside,
        Self::Proc,
        Self::Hidden,
    ];

    /// What was to be done, for a message.
    pub(in crate::process) fn words(number: i32) -> &'static str {
        let step = Self::ALL.into_iter().find(|step| *step as i32 == number);
        match step {
            Some(Self::Unshare) => "enter new namespaces",
            Some(Self::Users) => "map the user into them",
            Some(Self::Mounts) => "separate the mounts",
            Some(Self::ReadOnly) => "make the file system read-only",
            Some(Self::Tmp) => "give it its own /tmp",
            Some(Self::Sockets) => "hide the sockets of other programs",
            Some(Self::Writable) => "open the places it may write to",
            Some(Self::Network) => "take the network away",
            Some(Self::Inside) => "start inside of the namespaces",
            Some(Self::Proc) => "mount /proc",
            Some(Self::Hidden) => "hide what belongs to other calls",
            None => "set it up",
        }
    }
}

trait During<T> {
    fn during(self, step: Step) -> Result<T, StepFailure>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, step: Step) -> Result<T, StepFailure> {
        self.map_err(|source| StepFailure { step, source: source.into() })
    }
}

/// Enters new namespaces. The process that calls this must have one thread; it is not yet
/// inside of the new process namespace itself, but what it starts next is.
pub(in crate::process) fn enter(cage: &Cage) -> Result<Enforced, StepFailure> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID;
    flags |= UnshareFlags::NEWIPC;
    if !cage.network {
        flags |= UnshareFlags::NEWNET;
    }
    unshare(flags).during(Step::Unshare)?;
    map_users(uid, gid).during(Step::Users)?;
    if !cage.network {
        loopback_up().during(Step::Network)?;
    }
    let sockets_hidden = arrange_mounts(cage)?;
    // The working directory still leads to what is read-only now.
    let here = std::env::current_dir().during(Step::Mounts)?;
    std::env::set_current_dir(here).during(Step::Mounts)?;
    keep_for_inside().during(Step::Inside)?;
    Ok(Enforced::by_namespaces(cage, sockets_hidden))
}

#[expect(unsafe_code, reason = "descriptors could be unshared by the same call")]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: the table of descriptors stays shared; none of the flags above is about it.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

fn map_users(uid: u32, gid: u32) -> io::Result<()> {
    // Root may map everybody, so that the owners of files stay what they are.
    let root = fs::write("/proc/self/uid_map", "0 0 4294967295\n").is_ok();
    if root {
        return fs::write("/proc/self/gid_map", "0 0 4294967295\n");
    }
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1\n"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1\n"))
}

/// A place, and the tree that is to be seen there.
struct Overlay {
    at: PathBuf,
    tree: OwnedFd,
    /// In the order in which overlays of the same path are mounted on top of each other.
    rank: u8,
    is_dir: bool,
}

/// Returns whether all sockets of other programs are hidden.
fn arrange_mounts(cage: &Cage) -> Result<bool, StepFailure> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).during(Step::Mounts)?;
    let mut overlays = Vec::new();
    let private_tmp = cage.tmp.as_ref().filter(|_| may_hide_tmp(cage));
    let hidden = |path: &Path| {
        private_tmp.is_some() && SHARED_PLACES.iter().any(|place| path.starts_with(place))
    };
    let seen = cage.visible.iter().filter(|path| hidden(path)).map(|path| (path, 0));
    let kept = cage.readonly.iter().map(|path| (path, 2));
    for (path, rank) in seen.chain(cage.writable.iter().map(|path| (path, 1))).chain(kept) {
        overlays.extend(overlay(path, rank).during(Step::Writable)?);
    }
    let tmp = private_tmp.map(|dir| shared_places(dir)).transpose().during(Step::Tmp)?;
    let nothing = cage.tmp.as_ref().map(|dir| dir.with_file_name("nothing"));
    let nothing = nothing.filter(|dir| fs::create_dir_all(dir).is_ok());
    for path in nothing.iter().flat_map(|_| &cage.hidden) {
        overlays.extend(hiding(path, nothing.as_deref()).during(Step::Hidden)?);
    }
    let empty = nothing.and_then(|dir| clone_tree(&dir).ok());
    set_readonly(CWD, "/").during(Step::ReadOnly)?;
    for (place, tree) in tmp.into_iter().flatten() {
        put(&tree, &place).during(Step::Tmp)?;
    }
    terminals().during(Step::Mounts)?;
    // What holds another comes first.
    overlays.sort_by_key(|overlay| (overlay.at.components().count(), overlay.rank));
    for overlay in overlays {
        if overlay.rank != 1 {
            set_readonly(overlay.tree.as_fd(), "").during(Step::Writable)?;
        }
        if hidden(&overlay.at) {
            make_mount_point(&overlay.at, overlay.is_dir).during(Step::Writable)?;
        }
        put(&overlay.tree, &overlay.at).during(Step::Writable)?;
    }
    // Last, so that no later mount shows them again.
    sockets::hide(&cage.writable, empty.as_ref()).during(Step::Sockets)
}

/// It cannot have its own `/tmp` if one of these *is* the directory that would be hidden.
pub(super) fn may_hide_tmp(cage: &Cage) -> bool {
    let all = cage.writable.iter().chain(&cage.visible);
    !all.into_iter().any(|path| SHARED_PLACES.iter().any(|place| path == Path::new(place)))
}

/// The tree to show at a path; none if nothing is there.
fn overlay(path: &Path, rank: u8) -> io::Result<Option<Overlay>> {
    let Ok(at) = fs::canonicalize(path) else { return Ok(None) };
    let is_dir = at.is_dir();
    match clone_tree(&at) {
        Ok(tree) => Ok(Some(Overlay { at, tree, rank, is_dir })),
        // Gone again, or on a mount that this user may not clone: it stays read-only.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Nothing at all, to show at a path.
fn hiding(path: &Path, nothing: Option<&Path>) -> io::Result<Option<Overlay>> {
    let (Some(nothing), Ok(at)) = (nothing, fs::canonicalize(path)) else { return Ok(None) };
    let is_dir = at.is_dir();
    Ok(Some(Overlay { at, tree: clone_tree(nothing)?, rank: 3, is_dir }))
}

/// The directories behind the places that others share.
fn shared_places(dir: &Path) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
    let mut places = Vec::new();
    for place in SHARED_PLACES {
        let place = Path::new(place);
        // A link to one of the others needs none of its own.
        if !fs::symlink_metadata(place).is_ok_and(|found| found.is_dir()) {
            continue;
        }
        let behind = match place.file_name().and_then(|name| name.to_str()) {
            Some("shm") => dir.with_file_name("shm"),
            _ => dir.to_owned(),
        };
        fs::create_dir_all(&behind)?;
        places.push((place.to_owned(), clone_tree(&behind)?));
    }
    Ok(places)
}

fn clone_tree(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(CWD, path, flags)?)
}

fn put(tree: &OwnedFd, at: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(rustix::mount::move_mount(tree, "", CWD, at, flags)?)
}

/// Something to mount on, in a `/tmp` that is still empty.
fn make_mount_point(at: &Path, is_dir: bool) -> io::Result<()> {
    if fs::symlink_metadata(at).is_ok() {
        return Ok(());
    }
    if is_dir {
        return fs::create_dir_all(at);
    }
    fs::create_dir_all(at.parent().unwrap_or(at))?;
    fs::write(at, "")
}

#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Makes a tree of mounts read-only, whatever else they are.
#[expect(unsafe_code, reason = "no library has this system call yet")]
fn set_readonly(dir: BorrowedFd<'_>, path: &str) -> io::Result<()> {
    const RDONLY: u64 = 1;
    const AT_RECURSIVE: libc::c_int = 0x8000;
    let path = std::ffi::CString::new(path)?;
    let attr = MountAttr { attr_set: RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = AT_RECURSIVE | if path.is_empty() { libc::AT_EMPTY_PATH } else { 0 };
    // SAFETY: the path is a C string and `attr` a struct of the size that is given; both
    // outlive the call, which changes neither.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            dir.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Terminals of its own, so that it can write to no window of the user's.
fn terminals() -> io::Result<()> {
    if !Path::new("/dev/pts").is_dir() {
        return Ok(());
    }
    let options = c"newinstance,ptmxmode=0666,mode=0620";
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    rustix::mount::mount("devpts", "/dev/pts", "devpts", flags, options)?;
    if fs::symlink_metadata("/dev/ptmx").is_ok_and(|found| !found.is_symlink()) {
        rustix::mount::mount_bind("/dev/pts/ptmx", "/dev/ptmx")?;
    }
    Ok(())
}

/// The loopback device of a new network is down; tests want to talk to themselves.
#[expect(unsafe_code, reason = "no library has this ioctl")]
fn loopback_up() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: all zeros is a valid `ifreq`; the name is shorter than its field.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    let flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING);
    request.ifr_ifru.ifru_flags = flags.map_err(io::Error::other)?;
    // SAFETY: the request is an `ifreq`, which is what this ioctl reads.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the first process inside mount `/proc`: without this a program that is not root loses
/// all rights in its own namespaces when it is started.
fn keep_for_inside() -> io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    for one in NEEDED_INSIDE {
        sets.inheritable |= one;
    }
    rustix::thread::set_capabilities(None, sets)?;
    for one in NEEDED_INSIDE {
        rustix::thread::configure_capability_in_ambient_set(one, true)?;
    }
    Ok(())
}

/// The rest, in the first process of the new process namespace: its own `/proc`, and no rights
/// that it does not need any more.
pub(in crate::process) fn settle(makes_mounts: bool) -> Result<(), StepFailure> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("proc", "/proc", "proc", flags, None::<&std::ffi::CStr>)
        .during(Step::Proc)?;
    // Not to be traced or written to by what it is going to start.
    let behavior = rustix::process::DumpableBehavior::NotDumpable;
    rustix::process::set_dumpable_behavior(behavior).during(Step::Inside)?;
    drop_rights(makes_mounts).during(Step::Inside)
}

fn drop_rights(makes_mounts: bool) -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let mut kept = CapabilitySet::empty();
    if geteuid().is_root() {
        for one in ROOT_KEEPS {
            kept |= one;
        }
        if makes_mounts {
            // The kernel asks it of a process that maps root into a namespace further down.
            kept |= CapabilitySet::SETFCAP;
        }
        for one in CapabilitySet::all().iter().filter(|one| !kept.contains(*one)) {
            // One that this kernel does not know need not be dropped.
            let _ = rustix::thread::remove_capability_from_bounding_set(one);
        }
    }
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets)?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}
