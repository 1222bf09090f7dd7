//! git, with settings of its own and none of this machine's.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::{TestProject, write};

const SETTINGS: [(&str, &str); 5] = [
    ("user.name", "Ada"),
    ("user.email", "ada@example.org"),
    ("init.defaultBranch", "main"),
    ("commit.gpgsign", "false"),
    ("protocol.file.allow", "always"),
];

/// Runs git in a directory; what it prints, without the last line break.
#[track_caller]
pub fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    for (name, value) in SETTINGS {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    command.args(args).current_dir(dir).env("HOME", "/nonexistent");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

impl TestProject {
    /// Makes the project a git repository without a commit.
    pub fn repository(self) -> Self {
        self.git(&["init", "-q", "-b", "main"]);
        self
    }

    /// Runs git in the root of the project; what it prints, without the last line break.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        git(&self.root(), args)
    }

    /// Commits everything in the project; the new commit.
    #[track_caller]
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// The variables that make any git use the settings of tests, and look at nothing above the
    /// directory of this one.
    pub fn git_environment(&self) -> Vec<(OsString, OsString)> {
        let (base, file) = (self.base(), self.base().join("gitconfig"));
        let settings = SETTINGS.map(|(name, value)| {
            let (section, key) = name.rsplit_once('.').unwrap();
            let section = section.replacen('.', " \"", 1);
            let end = if section.contains('"') { "\"" } else { "" };
            format!("[{section}{end}]\n{key} = {value}\n")
        });
        // A test may have settings of its own there.
        if !file.exists() {
            write(&file, settings.concat());
        }
        vec![
            ("HOME".into(), base.clone().into()),
            ("GIT_CONFIG_GLOBAL".into(), file.into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_CEILING_DIRECTORIES".into(), base.into()),
        ]
    }
}
