//! The same targets under libFuzzer; `AGENTD_FUZZ_TARGET` names the one to run.
//! Built by `cargo xtask fuzz`, which adds the flags for coverage.
#![no_main]
#![allow(missing_docs, reason = "made by a macro")]

use std::sync::LazyLock;

use agentd_fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("AGENTD_FUZZ_TARGET").unwrap_or_default();
    match agentd_fuzz::target(&name) {
        Some(target) => target,
        None => panic!("AGENTD_FUZZ_TARGET names no target: {name:?}"),
    }
});

fuzz_target!(|data: &[u8]| (TARGET.run)(data));
