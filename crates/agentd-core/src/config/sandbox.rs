//! `[sandbox]`: what agents, tests and hooks may do to the machine.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use strum::IntoStaticStr;

/// `[sandbox]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// Whether there is one.
    pub enabled: bool,
    /// Whose caches package managers use.
    pub caches: Caches,
    /// Where else may be written: absolute paths, or paths that start with `~/`.
    pub writable: Vec<String>,
    /// Whether commands may use the network.
    pub network: bool,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self { enabled: true, caches: Caches::Project, writable: Vec::new(), network: true }
    }
}

/// Whose caches package managers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Caches {
    /// Those of this project, outside of the repository. The user's own stay as they are.
    #[default]
    Project,
    /// The user's own: an agent may change what other projects build with.
    Shared,
    /// None that can be written to.
    None,
}

impl Caches {
    /// As it is written in the configuration.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Sandbox {
    /// The first entry of `writable` that is neither absolute nor in the user's home.
    pub(super) fn unusable(&self) -> Option<&str> {
        unusable_place(&self.writable)
    }

    /// The entries of `writable` as paths.
    pub fn writable_paths(&self, home: Option<&Path>) -> Vec<PathBuf> {
        places(&self.writable, home)
    }
}

/// The first of these places that is neither absolute nor in the user's home.
pub(super) fn unusable_place(places: &[String]) -> Option<&str> {
    let is_usable = |path: &str| {
        let plain = !Path::new(path).components().any(|part| part.as_os_str() == "..");
        plain && (path.starts_with('/') || path.starts_with("~/"))
    };
    places.iter().map(String::as_str).find(|path| !is_usable(path))
}

/// Places as paths.
pub fn places(places: &[String], home: Option<&Path>) -> Vec<PathBuf> {
    let path = |text: &String| match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Some(home.join(rest)),
        (Some(_), None) => None,
        (None, _) => Some(PathBuf::from(text)),
    };
    places.iter().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let text =
            "[sandbox]\nenabled = true\ncaches = \"project\"\nwritable = []\nnetwork = true\n";
        assert_eq!(Config::parse(text).unwrap(), Config::default());
    }

    #[test]
    fn paths_are_absolute_or_in_the_home() {
        let bad = ["target", "./x", "~", "~other/x", "", "/a/../b", "~/../b"];
        let errors = bad.map(|path| {
            let text = format!("[sandbox]\nwritable = [\"/ok\", \"{path}\"]\n");
            Config::parse(&text).unwrap_err().to_string()
        });
        insta::assert_snapshot!(errors.join("\n"), @"
        writable has `target`: each path is absolute or starts with ~/, without `..` (line 2, column 1)
        writable has `./x`: each path is absolute or starts with ~/, without `..` (line 2, column 1)
        writable has `~`: each path is absolute or starts with ~/, without `..` (line 2, column 1)
        writable has `~other/x`: each path is absolute or starts with ~/, without `..` (line 2, column 1)
        writable has ``: each path is absolute or starts with ~/, without `..` (line 2, column 1)
        writable has `/a/../b`: each path is absolute or starts with ~/, without `..` (line 2, column 1)
        writable has `~/../b`: each path is absolute or starts with ~/, without `..` (line 2, column 1)
        ");
        let config = Config::parse("[sandbox]\nwritable = [\"/srv/x\", \"~/.android\"]\n").unwrap();
        let home = Path::new("/home/me");
        let expected = [PathBuf::from("/srv/x"), PathBuf::from("/home/me/.android")];
        assert_eq!(config.sandbox.writable_paths(Some(home)), expected);
        assert_eq!(config.sandbox.writable_paths(None), [PathBuf::from("/srv/x")]);
        let error = Config::parse("[sandbox]\ncaches = \"mine\"\n").unwrap_err();
        insta::assert_snapshot!(error, @"unknown value `mine` (line 2, column 10)");
    }
}
