//! How the project is tested, linted and built, for agents that plan it.

use std::fmt::Write as _;

use agentd_core::config::Config;
use agentd_core::layout;
use agentd_core::prompt::one_line;

use crate::insight::toolchain;
use crate::store::Project;

/// The longest command that is shown whole.
const COMMAND: usize = 240;

/// A line for each command: those of the settings, and for what they leave out, those that
/// manifests and CI files name.
pub(super) fn lines(project: &Project) -> String {
    let settings = project.dir().read_to_string(&layout::config()).unwrap_or_default();
    let settings = Config::parse(&settings).unwrap_or_default().implementation;
    let detected = toolchain::detect_at(project.root());
    let mut out = String::new();
    for (purpose, set, found) in [
        ("test", settings.test_command, detected.test),
        ("lint", settings.lint_command, detected.lint),
        ("build", settings.build_command, detected.build),
    ] {
        let source = layout::config().to_string();
        let set = set.map(|command| (command, source));
        let found = found.map(|found| (found.command, found.source));
        if let Some((command, source)) = set.or(found) {
            let _ = writeln!(out, "{purpose}: {} ({source})", one_line(&command, COMMAND));
        }
    }
    out
}
