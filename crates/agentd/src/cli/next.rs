//! Which commands to name: only such as exist. The phases of the core know the
//! commands of every version of agentd.

/// Whether there is a command of this name.
pub(crate) fn exists(name: &str) -> bool {
    super::definition().find_subcommand(name).is_some()
}

/// Those that exist and move a change on. `decide` only answers a question, and
/// whoever asks it names it.
pub(crate) fn existing(names: &[&'static str]) -> impl Iterator<Item = &'static str> {
    let command = super::definition();
    let known = move |name: &&str| *name != "decide" && command.find_subcommand(*name).is_some();
    names.iter().copied().filter(known).collect::<Vec<_>>().into_iter()
}
