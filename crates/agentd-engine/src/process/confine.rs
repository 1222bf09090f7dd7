//! Keeping a program and all that it starts from writing elsewhere.
//!
//! On Linux by Landlock, which needs no privileges, cannot be undone and is inherited.
//! Only writing is restricted: an agent may read what its user may. Elsewhere nothing
//! is enforced, and the caller is told.

use std::path::PathBuf;

/// Devices that every program may write to; they keep nothing.
#[cfg(target_os = "linux")]
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

/// Restricts this thread and everything that it starts from now on. Says whether the
/// system enforces it.
#[cfg(target_os = "linux")]
pub fn confine(writable: &[PathBuf]) -> bool {
    use landlock::{
        ABI, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
        RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus,
    };

    let restrict = || -> Result<RulesetStatus, RulesetError> {
        // The first version that can tell truncating from writing.
        let all = AccessFs::from_write(ABI::V3);
        let of_files: BitFlags<AccessFs> = AccessFs::from_file(ABI::V3) & all;
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .create()?;
        let devices = DEVICES.iter().map(PathBuf::from);
        for path in devices.chain(writable.iter().cloned()) {
            // What is not there cannot be allowed, and need not be.
            let Ok(opened) = PathFd::new(&path) else { continue };
            let rights = if path.is_dir() { all } else { of_files };
            rules = rules.add_rule(PathBeneath::new(opened, rights))?;
        }
        Ok(rules.restrict_self()?.ruleset)
    };
    matches!(restrict(), Ok(RulesetStatus::FullyEnforced))
}

/// Nothing is known to do it with here.
#[cfg(not(target_os = "linux"))]
pub fn confine(_: &[PathBuf]) -> bool {
    false
}
