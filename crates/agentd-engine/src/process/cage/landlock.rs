//! Landlock: writes by path, signals, abstract sockets, TCP.
//!
//! The rules are created in the supervisor and take effect in the child alone, between fork and
//! exec: a supervisor inside of them could be killed by the agent.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};

use super::{Cage, Enforced};

/// Devices that every program may write to; they store nothing.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Sockets by which names are looked up.
const NAME_SERVICES: [&str; 3] = ["/run/systemd/resolve", "/run/nscd", "/var/run/nscd"];

/// Rules that are ready to take effect.
#[derive(Debug)]
pub(in crate::process) struct Rules {
    rules: RulesetCreated,
    enforced: Enforced,
}

impl Rules {
    /// The rules of a cage, besides what is enforced already; none if the kernel has no Landlock,
    /// or it may not be used.
    pub(in crate::process) fn of(cage: &Cage, held: Enforced) -> Option<Self> {
        let abi = version().min(version_of(cage.layers.landlock));
        if abi == ABI::Unsupported {
            return None;
        }
        // A program that makes mounts would be refused them as soon as any rule is about files.
        let files = !cage.makes_mounts;
        make(cage, abi, files, held.private_tmp).ok().flatten()
    }

    /// What they keep a program from, once they take effect.
    pub(in crate::process) fn enforced(&self) -> Enforced {
        self.enforced
    }

    /// Takes effect for this thread and what it starts. Between fork and exec in a process that
    /// had one thread, or where nothing else runs yet.
    pub(in crate::process) fn restrict(self) -> io::Result<()> {
        let status = self.rules.restrict_self().map_err(io::Error::other)?;
        if status.ruleset == RulesetStatus::NotEnforced {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(())
    }
}

fn make(
    cage: &Cage,
    abi: ABI,
    files: bool,
    private_tmp: bool,
) -> Result<Option<Rules>, RulesetError> {
    let mut enforced = Enforced::default();
    let writes = AccessFs::from_write(abi);
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    if files {
        rules = rules.handle_access(writes)?;
        // Before that version a file could still be emptied.
        enforced.files = abi >= ABI::V3;
        enforced.path_sockets = abi >= ABI::V9;
    }
    if abi >= ABI::V6 {
        rules = rules.scope(Scope::from_all(abi))?;
        enforced.signals = true;
        enforced.abstract_sockets = true;
    }
    let network = !cage.network && abi >= ABI::V4;
    if network {
        rules = rules.handle_access(AccessNet::from_all(abi))?;
        enforced.network = true;
    }
    if !files && abi < ABI::V6 && !network {
        return Ok(None);
    }
    let mut rules = rules.create()?;
    if files {
        let devices = DEVICES.iter().map(Path::new);
        for path in devices.chain(cage.all_writable(private_tmp)) {
            rules = allow(rules, path, writes, abi)?;
        }
        if abi >= ABI::V9 {
            for path in NAME_SERVICES {
                rules = allow(rules, Path::new(path), AccessFs::ResolveUnix.into(), abi)?;
            }
        }
    }
    Ok(Some(Rules { rules, enforced }))
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
    abi: ABI,
) -> Result<RulesetCreated, RulesetError> {
    // What does not exist cannot be allowed, and need not be.
    let Ok(opened) = PathFd::new(path) else { return Ok(rules) };
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(abi) };
    if rights.is_empty() { Ok(rules) } else { rules.add_rule(PathBeneath::new(opened, rights)) }
}

/// The newest version that both the kernel and this program know.
pub(in crate::process) fn version() -> ABI {
    let candidates = (1..=super::NEWEST_LANDLOCK).rev().map(version_of);
    candidates.into_iter().find(|abi| is_supported(*abi)).unwrap_or(ABI::Unsupported)
}

/// Whether the kernel can do everything of a version.
fn is_supported(abi: ABI) -> bool {
    let make = || -> Result<RulesetCreated, RulesetError> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(abi))?;
        if abi >= ABI::V4 {
            rules = rules.handle_access(AccessNet::from_all(abi))?;
        }
        if abi >= ABI::V6 {
            rules = rules.scope(Scope::from_all(abi))?;
        }
        rules.create()
    };
    make().is_ok()
}

fn version_of(number: u8) -> ABI {
    match number {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        _ => ABI::V9,
    }
}
