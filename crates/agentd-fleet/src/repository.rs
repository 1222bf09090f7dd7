//! The repository whose changes are worked on, and its remote.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use sha2::{Digest as _, Sha256};

use crate::error::{FleetError, Result};
use crate::program;

/// A repository, by a checkout of it.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The checkout.
    pub root: PathBuf,
    /// The address of its remote. May have a password in it, and is shown to nobody.
    pub url: String,
    /// Its name in the fleet: host and path, without user and password.
    pub key: String,
}

impl Repository {
    /// The repository that a directory is in, with the remote of this name.
    pub async fn at(dir: &Path, remote: &str) -> Result<Self> {
        let top = ["rev-parse", "--show-toplevel"].map(OsStr::new);
        let top = program::git(dir, &top, b"").await?;
        if !top.ok {
            return Err(FleetError::new(
                Kind::GitNoRepository,
                format!("{} is not in a git repository", dir.display()),
            )
            .cause(top.stderr)
            .hint("run it in a clone of the project, or name one with -C DIR"));
        }
        let root = PathBuf::from(top.stdout.trim_end());
        let no_remote = || {
            FleetError::new(Kind::RemoteUnreachable, "there is no such remote")
                .cause(format!("`{remote}` of {}", root.display()))
                .hint("see which there are: git remote -v")
        };
        if remote.starts_with('-') {
            return Err(no_remote());
        }
        let url = ["remote", "get-url", "--push", "--", remote].map(OsStr::new);
        let url = program::git(&root, &url, b"").await?;
        let text = url.stdout.trim().to_owned();
        if !url.ok || text.is_empty() {
            return Err(no_remote());
        }
        let beside = root.join(&text);
        let url = if beside.exists() { beside.to_string_lossy().into_owned() } else { text };
        let key = key_of(&url);
        Ok(Self { root, url, key })
    }

    /// The name of a change in the whole fleet.
    pub fn name_of(&self, change: &ChangeId) -> String {
        format!("{}/{change}", self.key)
    }

    /// A name for directories: readable, and no other repository has it.
    pub fn slug(&self) -> String {
        let last = self.key.rsplit('/').next().unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let last: String = last.chars().take(40).map(plain).collect();
        let digest = hex::encode(Sha256::digest(self.key.as_bytes()));
        format!("{last}-{}", &digest[..8])
    }
}

/// Host and path of an address, so that `https://ada:pw@example.org/a/b.git` and
/// `git@example.org:a/b` are the same repository.
fn key_of(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, url),
    };
    let rest = if scheme == Some("file") || rest.starts_with('/') {
        rest.to_owned()
    } else {
        let (host, path) = match scheme {
            Some(_) => rest.split_once('/').unwrap_or((rest, "")),
            None => rest.split_once(':').unwrap_or((rest, "")),
        };
        let host = host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase();
        format!("{host}/{}", path.trim_start_matches('/'))
    };
    let rest = rest.trim_end_matches('/');
    let rest = rest.strip_suffix(".git").unwrap_or(rest);
    rest.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_one_name_without_secrets() {
        for url in [
            "https://ada:pw@Example.org/a/b.git",
            "https://example.org/a/b",
            "git@example.org:a/b.git",
            "ssh://git@example.org/a/b.git/",
        ] {
            assert_eq!(key_of(url), "example.org/a/b", "{url}");
        }
        assert_eq!(key_of("/srv/a b.git"), "/srv/a b");
        assert_eq!(key_of("file:///srv/b.git"), "/srv/b");
        let repository = |key: &str| Repository {
            root: PathBuf::new(),
            url: String::new(),
            key: key.to_owned(),
        };
        let slug = repository("example.org/a/b").slug();
        assert!(slug.starts_with("b-") && slug.len() == 10, "{slug}");
        assert_ne!(slug, repository("example.org/c/b").slug());
    }
}
