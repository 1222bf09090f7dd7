//! What an agent sees of the project: nothing that is git's, agentd's locks, another
//! change, or plainly a secret.

use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, AGENTD_DIR};
use agentd_core::rel_path::RelPath;

use super::Session;
use super::outcome::{ActionError, Refusal};
use crate::store::{ProjectDir, StoreError};

/// The file that a path means: in the change if it is there, else in the
/// project. `.` is the project. The answer is a path without symlinks, and a
/// directory in which none are followed.
pub(super) fn locate(
    session: &Session<'_>,
    id: &ChangeId,
    path: &RelPath,
) -> Result<(ProjectDir, RelPath), ActionError> {
    let root = session.project.dir();
    let change = session.project.change(id)?;
    let in_change = !path.is_root() && change.dir().kind(path).is_ok_and(|kind| kind.is_some());
    let path = if in_change { layout::change_dir(id).join(path) } else { path.clone() };
    visible(id, &path)?;
    let real = root.real_path(&path)?;
    if in_change && real != path {
        return Err(StoreError::Symlink { path }.into());
    }
    // What a link leads to counts as much as the name that was asked for.
    visible(id, &real)?;
    Ok((root.without_symlinks(), real))
}

fn visible(id: &ChangeId, path: &RelPath) -> Result<(), ActionError> {
    if is_hidden(path) {
        return Err(Refusal::new(format!("`{path}` is not for agents to see.")).into());
    }
    if let Some(other) = other_change(id, path) {
        return Err(Refusal::new(format!(
            "`{path}` belongs to the change `{other}`; this call is about `{id}`."
        ))
        .into());
    }
    Ok(())
}

/// The change in whose directory a path is, if that is not this one.
fn other_change<'p>(id: &ChangeId, path: &'p RelPath) -> Option<&'p str> {
    let mut names = path.components();
    let (agentd, changes, other) = (names.next()?, names.next()?, names.next()?);
    let in_changes =
        agentd.eq_ignore_ascii_case(AGENTD_DIR) && changes.eq_ignore_ascii_case("changes");
    (in_changes && !other.eq_ignore_ascii_case(id.as_str())).then_some(other)
}

/// What is git's, or agentd's own machinery. Compared without case, as some disks do.
pub(super) fn is_hidden(path: &RelPath) -> bool {
    let git = path.components().any(|name| name.eq_ignore_ascii_case(".git"));
    let mut names = path.components();
    let locks = names.next().is_some_and(|name| name.eq_ignore_ascii_case(AGENTD_DIR))
        && names.next().is_some_and(|name| name.eq_ignore_ascii_case(".locks"));
    git || locks
}

pub(super) fn secret(path: &RelPath) -> ActionError {
    Refusal::new(format!("`{path}` looks like a secret, and secrets are not shown to agents."))
        .hint("Work without it; if a value is needed, ask for an example file.")
        .into()
}

/// Names under which keys and passwords are kept. A list can only catch the
/// obvious; what matters more is that agents cannot leave the project.
pub(super) fn is_secret(path: &RelPath) -> bool {
    const NAMES: [&str; 14] = [
        ".env",
        ".envrc",
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".git-credentials",
        ".htpasswd",
        "credentials.json",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
    ];
    const ENDS: [&str; 7] = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx"];
    const DIRS: [&str; 4] = [".ssh", ".gnupg", ".aws", ".azure"];
    const SAMPLES: [&str; 4] = ["example", "sample", "template", "dist"];
    let Some(name) = path.file_name().map(str::to_lowercase) else { return false };
    let sample = SAMPLES.iter().any(|sample| name.split(['.', '-', '_']).any(|p| p == *sample));
    let env = name.strip_prefix(".env").is_some_and(|rest| rest.starts_with(['.', '-', '_']));
    let in_dir = path.components().any(|dir| DIRS.iter().any(|d| dir.eq_ignore_ascii_case(d)));
    let named = NAMES.contains(&name.as_str()) || ENDS.iter().any(|end| name.ends_with(end));
    in_dir || ((named || env) && !sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        for yes in [
            ".env",
            "a/.env.local",
            ".ENV",
            "tls/server.pem",
            "id_rsa",
            "x/ID_ED25519",
            ".ssh/config",
            ".aws/credentials",
            "my.key",
            ".npmrc",
        ] {
            assert!(is_secret(&path(yes)), "{yes}");
        }
        for no in [".env.example", "env.rs", "src/keys.rs", "id_rsa.pub", "monkey", "environment"] {
            assert!(!is_secret(&path(no)), "{no}");
        }
    }

    #[test]
    fn files_not_for_agents_are_hidden() {
        for yes in [".git", ".git/config", "sub/.GIT/x", "agentd/.locks", "agentd/.locks/a.run"] {
            assert!(is_hidden(&path(yes)), "{yes}");
        }
        for no in [".github/x.yml", ".gitignore", "agentd", "locks/.locks"] {
            assert!(!is_hidden(&path(no)), "{no}");
        }
        let id = ChangeId::new("a").unwrap();
        assert_eq!(other_change(&id, &path("agentd/changes/b/tasks.md")), Some("b"));
        assert_eq!(other_change(&id, &path("agentd/changes/a/tasks.md")), None);
        assert_eq!(other_change(&id, &path("agentd/changes")), None);
    }
}
