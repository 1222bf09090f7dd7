//! Two clones of one remote repository, with the stand-in as every agent.

use std::path::PathBuf;

use test_project::TestProject;

use super::stand_in;

/// A repository with a remote one, and a clone of that for somebody else.
pub(crate) struct Clones {
    pub(crate) first: TestProject,
    pub(crate) second: PathBuf,
}

impl Clones {
    pub(crate) fn new(settings: &str) -> Self {
        let first = stand_in::repository(settings);
        let (remote, second) = (first.base().join("remote.git"), first.base().join("second"));
        first.git(&["init", "-q", "--bare", "-b", "main", remote.to_str().unwrap()]);
        first.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
        first.git(&["push", "-q", "-u", "origin", "main"]);
        Self { first, second }
    }

    /// Somebody else clones what is there now.
    pub(crate) fn clone_again(&self) {
        let (from, to) = (self.first.base().join("remote.git"), self.second.to_str().unwrap());
        self.first.git(&["clone", "-q", from.to_str().unwrap(), to]);
        for (name, value) in [("user.name", "Bob"), ("user.email", "bob@example.org")] {
            self.first.git(&["-C", to, "config", name, value]);
        }
    }

    pub(crate) fn second(&self, args: &[&str]) -> test_project::Output {
        let mut command = self.first.command(["-C", self.second.to_str().unwrap()]);
        self.first.finish(command.args(args))
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.first.git(&[&["-C", self.second.to_str().unwrap()], args].concat())
    }
}
