//! Who sits at the terminal.

use agentd_engine::git::{self, GitTool};
use agentd_engine::store::Project;

/// Who sits at the terminal, for what people decide and say: as git names them, or else the system.
pub(crate) fn user(project: &Project) -> String {
    git::person(&GitTool::default(), project.root()).unwrap_or_else(login_name)
}

pub(super) fn login_name() -> String {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    if name.is_empty() { "unknown".to_owned() } else { name }
}
