//! The cage: what a program that runs agent-written code, or an agent, may do to the machine.
//!
//! Two layers of the Linux kernel enforce it, each by itself where the other is missing.
//! [Namespaces](namespaces) show the program a file system that is read-only but for the places
//! it may write to, with its own `/tmp`, its own processes, and no sockets of other programs.
//! [Landlock](landlock) refuses writes by path, and signals and abstract sockets that would
//! leave the cage. Neither needs privileges; both are inherited and cannot be undone.
//!
//! What the program may *read* is not restricted, except for what the namespaces hide.

#[cfg(target_os = "linux")]
pub(super) mod landlock;
#[cfg(target_os = "linux")]
pub(super) mod namespaces;
#[cfg(target_os = "linux")]
mod sockets;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a program and everything that it starts may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cage {
    /// Files and directories that it may write to, absolute. What is not there is skipped.
    pub writable: Vec<PathBuf>,
    /// Paths inside of those that stay read-only. Only namespaces can do that.
    pub readonly: Vec<PathBuf>,
    /// Directories that are empty for it. Only namespaces can do that, and only with a `/tmp` of its
    /// own.
    pub hidden: Vec<PathBuf>,
    /// Paths that must stay visible although its own `/tmp` would hide them.
    pub visible: Vec<PathBuf>,
    /// The directory that it sees as `/tmp`; where that is impossible, it is just writable.
    pub tmp: Option<PathBuf>,
    /// Whether it may use the network.
    pub network: bool,
    /// Whether the program confines its own commands with mounts, which Landlock would forbid.
    pub makes_mounts: bool,
    /// The layers that may be used; a test leaves some out to stand for an older kernel.
    pub layers: Layers,
}

impl Default for Cage {
    fn default() -> Self {
        Self {
            writable: Vec::new(),
            readonly: Vec::new(),
            hidden: Vec::new(),
            visible: Vec::new(),
            tmp: None,
            network: true,
            makes_mounts: false,
            layers: Layers::default(),
        }
    }
}

/// The newest version of Landlock that is known here.
const NEWEST_LANDLOCK: u8 = 9;

/// Which means of the kernel are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    /// User, mount, process and IPC namespaces.
    pub namespaces: bool,
    /// Landlock up to this version of its interface; 0 for none of it.
    pub landlock: u8,
}

impl Default for Layers {
    fn default() -> Self {
        Self { namespaces: true, landlock: NEWEST_LANDLOCK }
    }
}

impl Layers {
    /// Neither of them.
    pub const NONE: Self = Self { namespaces: false, landlock: 0 };
}

/// What the system keeps a caged program from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Enforced {
    /// Writing to files outside.
    pub files: bool,
    /// Changing the mode, owner, times or attributes of files outside.
    pub metadata: bool,
    /// Signals to processes outside.
    pub signals: bool,
    /// Abstract UNIX sockets of programs outside.
    pub abstract_sockets: bool,
    /// UNIX sockets of programs outside that have a path, such as that of Docker.
    pub path_sockets: bool,
    /// Living on after the call.
    pub processes: bool,
    /// Seeing, and filling, the `/tmp` of others.
    pub private_tmp: bool,
    /// The network, if the cage forbids it.
    pub network: bool,
}

impl Enforced {
    const FIELDS: usize = 8;

    fn bits(self) -> [bool; Self::FIELDS] {
        let Self { files, metadata, signals, abstract_sockets, path_sockets, .. } = self;
        let Self { processes, private_tmp, network, .. } = self;
        [files, metadata, signals, abstract_sockets, path_sockets, processes, private_tmp, network]
    }

    /// As a number, for the wire.
    pub(super) fn encode(self) -> i32 {
        self.bits().iter().rev().fold(0, |number, bit| number * 2 + i32::from(*bit))
    }

    /// The inverse of `encode`.
    pub(super) fn decode(number: i32) -> Self {
        let bit = |at: i32| number >> at & 1 == 1;
        Self {
            files: bit(0),
            metadata: bit(1),
            signals: bit(2),
            abstract_sockets: bit(3),
            path_sockets: bit(4),
            processes: bit(5),
            private_tmp: bit(6),
            network: bit(7),
        }
    }

    /// The layers to use on a system that can enforce this: asking for namespaces where they
    /// cannot be made is an error, not a weaker cage.
    pub fn layers(self) -> Layers {
        Layers { namespaces: self.processes, ..Layers::default() }
    }

    /// With what another layer enforces besides.
    #[must_use]
    pub(super) fn and_also(self, other: Option<Self>) -> Self {
        Self::decode(self.encode() | other.unwrap_or_default().encode())
    }

    /// What namespaces enforce for a cage.
    #[cfg(target_os = "linux")]
    pub(super) fn by_namespaces(cage: &Cage, sockets_hidden: bool) -> Self {
        Self {
            files: true,
            metadata: true,
            signals: true,
            abstract_sockets: !cage.network,
            path_sockets: sockets_hidden,
            processes: true,
            private_tmp: cage.tmp.is_some() && namespaces::may_hide_tmp(cage),
            network: !cage.network,
        }
    }

    /// What a caged program could still do, in words; empty if the cage is complete.
    pub fn gaps(self, network_allowed: bool) -> Vec<&'static str> {
        let texts = [
            "write to files anywhere you may",
            "change modes, owners and times of your files elsewhere",
            "send signals to your other processes",
            "use abstract UNIX sockets of your other programs",
            "use UNIX sockets of your other programs, such as that of Docker",
            "leave processes running when its guard is killed",
            "see the files of others in /tmp",
            "use the network",
        ];
        let held = self.bits();
        texts
            .into_iter()
            .zip(held)
            .enumerate()
            .filter(|(at, (_, held))| !(*held || *at == 7 && network_allowed))
            .map(|(_, (text, _))| text)
            .collect()
    }
}

/// The arguments of a supervisor are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadArguments;

/// The options that describe a cage on the command line of the supervisor.
mod flag {
    pub(super) const CAGE: &str = "--cage";
    pub(super) const WRITABLE: &str = "--writable";
    pub(super) const READONLY: &str = "--readonly";
    pub(super) const HIDDEN: &str = "--hidden";
    pub(super) const VISIBLE: &str = "--visible";
    pub(super) const TMP: &str = "--tmp";
    pub(super) const NO_NETWORK: &str = "--no-network";
    pub(super) const MAKES_MOUNTS: &str = "--makes-mounts";
    pub(super) const NO_NAMESPACES: &str = "--no-namespaces";
    pub(super) const LANDLOCK: &str = "--landlock";
}

impl Cage {
    /// The arguments that describe it to a supervisor.
    pub(super) fn to_args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec![flag::CAGE.into()];
        let mut paths = |name: &str, paths: &mut dyn Iterator<Item = &Path>| {
            args.extend(paths.flat_map(|path| [OsString::from(name), path.into()]));
        };
        paths(flag::WRITABLE, &mut self.writable.iter().map(PathBuf::as_path));
        paths(flag::READONLY, &mut self.readonly.iter().map(PathBuf::as_path));
        paths(flag::HIDDEN, &mut self.hidden.iter().map(PathBuf::as_path));
        paths(flag::VISIBLE, &mut self.visible.iter().map(PathBuf::as_path));
        paths(flag::TMP, &mut self.tmp.iter().map(PathBuf::as_path));
        let mut word = |set: bool, name: &str| args.extend(set.then(|| OsString::from(name)));
        word(!self.network, flag::NO_NETWORK);
        word(self.makes_mounts, flag::MAKES_MOUNTS);
        word(!self.layers.namespaces, flag::NO_NAMESPACES);
        if self.layers.landlock != NEWEST_LANDLOCK {
            args.extend([flag::LANDLOCK.into(), self.layers.landlock.to_string().into()]);
        }
        args
    }

    /// Reads those arguments, up to and including the one that ends them.
    pub(super) fn from_args(
        args: &mut impl Iterator<Item = OsString>,
        end: &str,
    ) -> Result<Option<Self>, BadArguments> {
        let mut found: Option<Self> = None;
        loop {
            let word = args.next().ok_or(BadArguments)?;
            if word == end {
                return Ok(found);
            }
            let cage = found.get_or_insert_default();
            let mut path = || args.next().map(PathBuf::from);
            match word.to_str().ok_or(BadArguments)? {
                flag::CAGE => {}
                flag::WRITABLE => cage.writable.extend(path()),
                flag::READONLY => cage.readonly.extend(path()),
                flag::HIDDEN => cage.hidden.extend(path()),
                flag::VISIBLE => cage.visible.extend(path()),
                flag::TMP => cage.tmp = path(),
                flag::NO_NETWORK => cage.network = false,
                flag::MAKES_MOUNTS => cage.makes_mounts = true,
                flag::NO_NAMESPACES => cage.layers.namespaces = false,
                flag::LANDLOCK => {
                    let number = args.next().and_then(|number| number.to_str()?.parse().ok());
                    cage.layers.landlock = number.ok_or(BadArguments)?;
                }
                _ => return Err(BadArguments),
            }
        }
    }

    /// What Landlock is to allow writing to: with a `/tmp` of its own all of that, otherwise the
    /// directory that stands for it.
    #[cfg(target_os = "linux")]
    fn all_writable(&self, private_tmp: bool) -> Vec<&Path> {
        let mut all: Vec<&Path> = self.writable.iter().map(PathBuf::as_path).collect();
        if private_tmp {
            all.extend(SHARED_PLACES.iter().map(Path::new));
        } else {
            all.extend(self.tmp.as_deref());
        }
        all
    }
}

/// Directories that programs share, and that a cage replaces by its own.
#[cfg(target_os = "linux")]
pub(super) const SHARED_PLACES: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Whether a path is in a place that a cage has for itself, and the first directory in it
/// that leads there.
pub(crate) fn hidden_by_private_tmp(path: &Path) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    for place in SHARED_PLACES {
        if let Ok(rest) = path.strip_prefix(place) {
            let first = rest.components().next()?;
            return Some(Path::new(place).join(first));
        }
    }
    let _ = path;
    None
}

/// Restricts this process and everything that it starts from now on to writing in these places.
/// For a part of agentd that handles an agent's files. Returns whether the system enforces it.
pub fn confine(writable: &[PathBuf]) -> bool {
    #[cfg(target_os = "linux")]
    {
        let cage = Cage { writable: writable.to_vec(), ..Cage::default() };
        landlock::Rules::of(&cage, Enforced::default()).is_some_and(|rules| {
            let enforced = rules.enforced();
            rules.restrict().is_ok() && enforced.files
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = writable;
        false
    }
}

/// The argument that makes a supervisor only report what it could enforce.
#[cfg(target_os = "linux")]
pub(super) const PROBE: &str = "--probe";
/// The argument that makes it the first process of a namespace.
#[cfg(target_os = "linux")]
pub(super) const INSIDE: &str = "--inside";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cage_goes_over_the_command_line() {
        let cage = Cage {
            writable: vec!["/a b".into(), "/-c".into()],
            readonly: vec!["/a b/.git".into()],
            hidden: vec!["/h".into()],
            visible: vec!["/tmp/x".into()],
            tmp: Some("/tmp/t".into()),
            network: false,
            makes_mounts: true,
            layers: Layers { namespaces: false, landlock: 3 },
        };
        for cage in [cage, Cage::default()] {
            let mut args = cage.to_args();
            args.extend(["--".into(), "prog".into()]);
            let mut args = args.into_iter();
            assert_eq!(Cage::from_args(&mut args, "--"), Ok(Some(cage)));
            assert_eq!(args.next(), Some("prog".into()));
        }
        let mut none = ["--".into(), "prog".into()].into_iter();
        assert_eq!(Cage::from_args(&mut none, "--"), Ok(None));
        for bad in [vec!["--what"], vec!["--cage"], vec!["--cage", "--landlock", "x", "--"]] {
            let mut bad = bad.into_iter().map(OsString::from);
            assert_eq!(Cage::from_args(&mut bad, "--"), Err(BadArguments));
        }
    }

    #[test]
    fn what_is_enforced_goes_over_the_wire() {
        for number in 0..256 {
            assert_eq!(Enforced::decode(number).encode(), number);
        }
        let all = Enforced::decode(255);
        assert!(all.gaps(false).is_empty());
        assert_eq!(Enforced { network: false, ..all }.gaps(true), Vec::<&str>::new());
        assert_eq!(Enforced { network: false, ..all }.gaps(false), ["use the network"]);
        assert_eq!(Enforced::default().gaps(true).len(), 7);
        // Where namespaces cannot be made, they are not asked for.
        assert_eq!(all.layers(), Layers::default());
        let without = Enforced { processes: false, ..all };
        assert_eq!(without.layers(), Layers { namespaces: false, ..Layers::default() });
    }
}
