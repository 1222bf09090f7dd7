//! A clone of a repository of others with its packages, and copies of it for sandboxes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use real_agents::Sandbox;
use test_project::git;

/// A clone and what was fetched for it; kept between runs.
pub(super) struct Place {
    dir: PathBuf,
    pub(super) clone: PathBuf,
    /// The whole name of the commit.
    pub(super) commit: String,
}

impl Place {
    /// Clones the mirror before the commit, and fetches its packages once.
    pub(super) fn prepare(mirror: &str, commit: &str, fetch: &str) -> Self {
        let Some(mirrors) = std::env::var_os("AGENTD_MIRRORS") else {
            panic!("set AGENTD_MIRRORS to a directory with bare clones, `<owner>+<name>/repo`");
        };
        let mirror_dir = Path::new(&mirrors).join(mirror).join("repo");
        assert!(mirror_dir.is_dir(), "there is no mirror at {}", mirror_dir.display());
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/real-projects");
        let dir = target.join(mirror);
        fs::create_dir_all(&dir).unwrap();
        let dir = dir.canonicalize().unwrap();
        let clone = dir.join("clone");
        if !clone.exists() {
            let from = mirror_dir.to_str().unwrap();
            git(&dir, &["clone", "-q", "--shared", "--no-checkout", from, "clone"]);
        }
        let commit = git(&clone, &["rev-parse", commit]);
        let place = Self { dir, clone, commit };
        let fetched = place.dir.join(format!("fetched-{}", place.commit));
        if !fetched.exists() {
            place.forced_checkout();
            let mut command = Command::new("sh");
            command.arg("-c").arg(fetch).env("PLACE", &place.dir).current_dir(&place.clone);
            let done = command.output().unwrap();
            assert!(done.status.success(), "{fetch}: {done:?}");
            fs::write(fetched, "").unwrap();
        }
        place
    }

    /// Checks out the parent of the commit. Mirrors may lack their largest files, as partial
    /// clones do; git reports that and checks out the others.
    fn forced_checkout(&self) {
        let parent = format!("{}^", self.commit);
        let mut command = Command::new("git");
        command.args(["checkout", "-q", "-f", "--detach", &parent]).current_dir(&self.clone);
        command.output().unwrap();
        assert_eq!(
            git(&self.clone, &["rev-parse", "HEAD"]),
            git(&self.clone, &["rev-parse", &parent])
        );
    }

    /// Makes the project of the sandbox a copy of the clone, with packages, on `main`.
    pub(super) fn check_out(&self, sandbox: &Sandbox) {
        let root = sandbox.root();
        fs::remove_dir_all(&root).unwrap();
        self.forced_checkout();
        let mut copy = Command::new("cp");
        let copied = copy.arg("-a").arg(&self.clone).arg(&root).status().unwrap();
        assert!(copied.success());
        for (name, value) in [("user.name", "Ada"), ("user.email", "ada@example.org")] {
            git(&root, &["config", name, value]);
        }
        git(&root, &["switch", "-q", "-C", "main"]);
        // Files that the mirror lacks are no edits of the user's.
        if !git(&root, &["status", "--porcelain"]).is_empty() {
            git(&root, &["commit", "-q", "-a", "--no-verify", "-m", "Leave out what is missing"]);
        }
    }

    /// Fills in the names that a variable of the table uses.
    pub(super) fn expand(&self, value: &str, command: &Command) -> OsString {
        let set = |name: &str| {
            let mut variables = command.get_envs();
            let found = variables.find(|(key, _)| *key == name).and_then(|(_, value)| value);
            found.unwrap_or_default().to_string_lossy().into_owned()
        };
        let home = std::env::var("HOME").unwrap_or_default();
        let place = self.dir.to_string_lossy();
        value
            .replace("$PLACE", &place)
            .replace("$PATH", &set("PATH"))
            .replace("$HOME", &home)
            .into()
    }
}
