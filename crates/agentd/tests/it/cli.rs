//! The commands of agentd, as a person or a program meets them: the real
//! binary, its exit code, stdout and stderr.

mod adopt;
mod archive;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod archive_kills;
mod archived;
mod ask_user;
mod begin;
mod carry;
mod clarify;
pub(crate) mod clones;
mod completions;
mod context;
mod decide;
mod doctor;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod door;
mod drop;
mod explain;
mod forecast;
mod forgeries;
mod help;
mod hints;
mod hostile;
mod init;
mod init_fits;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod journal_kills;
mod json;
mod landing;
mod ledger;
mod list;
mod man;
mod no_fallback;
mod offers;
#[cfg(target_os = "linux")]
mod opens;
mod pipes;
mod plan;
mod plan_kills;
mod plan_terminal;
mod portable;
mod rename;
mod revise;
mod sarif;
mod screens;
mod settings;
mod show;
pub(crate) mod stand_in;
mod status;
mod step;
mod teams;
mod terminal;
mod trust;
mod uninstall;
mod validate;
mod verify;
mod walks;
mod worktrees;
