//! How a project is tested, linted and built, as its manifests and CI files say.
//!
//! These files come with the repository, and what is found in them ends up as a setting that
//! agentd runs. So no text of theirs becomes a command: a command is one of the templates here,
//! and the only word that a file may fill in is the name of a script or target that it defines,
//! of plain characters (`is_plain`).

mod ci;
mod manifests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// Files whose text is read, beside CI files. Of all others only the name counts.
pub const TEXTS: [&str; 16] = [
    "CMakeLists.txt",
    "Cargo.toml",
    "GNUmakefile",
    "Gemfile",
    "Justfile",
    "Makefile",
    "composer.json",
    "deno.json",
    "justfile",
    "makefile",
    "package.json",
    "pyproject.toml",
    "requirements-dev.txt",
    "requirements.txt",
    "setup.cfg",
    "tox.ini",
];

/// Files that make a directory a package of its own.
const MANIFESTS: [&str; 18] = [
    "CMakeLists.txt",
    "Cargo.toml",
    "Gemfile",
    "Pipfile",
    "build.gradle",
    "build.gradle.kts",
    "build.sbt",
    "composer.json",
    "deno.json",
    "go.mod",
    "mix.exs",
    "package.json",
    "pom.xml",
    "pubspec.yaml",
    "pyproject.toml",
    "requirements.txt",
    "setup.cfg",
    "setup.py",
];

/// Manifests by how their names end.
const MANIFEST_ENDINGS: [&str; 4] = [".csproj", ".fsproj", ".sln", ".slnx"];

/// The directory of a project, as far as it says how the project is built.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// The names in the directory: files and directories.
    pub names: BTreeSet<String>,
    /// The names of files in the directories above, up to the root of the repository: a package
    /// of a monorepo has its lock file there.
    pub above: BTreeSet<String>,
    /// The texts of those of [`TEXTS`] that are there, by name.
    pub texts: BTreeMap<String, String>,
    /// CI files, by path.
    pub ci: BTreeMap<String, String>,
}

/// A command, and what it was found in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detected {
    /// The command, for a shell in the directory of the project.
    pub command: String,
    /// The file that names it.
    pub source: String,
}

/// The commands of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Commands {
    /// Runs its tests.
    pub test: Option<Detected>,
    /// Checks its code without running it.
    pub lint: Option<Detected>,
    /// Builds it.
    pub build: Option<Detected>,
}

impl Commands {
    /// The commands by what they are for, in the words of `[implementation]`.
    pub fn by_purpose(&self) -> impl Iterator<Item = (&'static str, &Detected)> {
        let all = [("test", &self.test), ("lint", &self.lint), ("build", &self.build)];
        all.into_iter().filter_map(|(purpose, found)| Some((purpose, found.as_ref()?)))
    }
}

/// What a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Test,
    Lint,
    Build,
}

/// A program that builds projects, in the order in which they are preferred: an entry point that
/// somebody wrote for people comes before what a language does by convention, and what is often
/// only there for a part of the project (a few scripts for the web) comes late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tool {
    Just,
    Make,
    Cargo,
    Go,
    Maven,
    Gradle,
    Mix,
    Dotnet,
    Composer,
    Ruby,
    Python,
    Deno,
    Node,
    CMake,
}

impl Tool {
    /// Whether it belongs to a language that is not that of the web.
    fn is_language(self) -> bool {
        self > Self::Make && self < Self::Deno
    }
}

/// A command that could be the one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    tool: Tool,
    purpose: Purpose,
    found: Detected,
}

impl Candidate {
    fn new(tool: Tool, purpose: Purpose, command: impl Into<String>, source: &str) -> Self {
        let found = Detected { command: command.into(), source: source.to_owned() };
        Self { tool, purpose, found }
    }
}

/// Whether a directory with this file in it is a package of its own.
pub fn is_manifest(name: &str) -> bool {
    MANIFESTS.contains(&name) || MANIFEST_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether a file can say how something is built.
pub fn is_ci_file(name: &str) -> bool {
    [".yml", ".yaml"].iter().any(|ending| name.ends_with(ending))
}

/// The commands of a project.
pub fn detect(tree: &Tree) -> Commands {
    let candidates = manifests::candidates(tree);
    let in_ci = ci::candidates(tree, &candidates);
    let choose = |purpose: Purpose| {
        let of = |all: &[Candidate]| {
            let fitting = all.iter().filter(|candidate| candidate.purpose == purpose);
            fitting.min_by_key(|candidate| candidate.tool).cloned()
        };
        let best = match (of(&in_ci), of(&candidates)) {
            // The scripts for the web of a project in another language, whose own command in CI
            // is not known.
            (Some(ci), Some(manifest)) if ci.tool == Tool::Node && manifest.tool.is_language() => {
                Some(manifest)
            }
            // What runs for every commit is known to work.
            (ci, manifest) => ci.or(manifest),
        };
        best.map(|best| best.found)
    };
    Commands {
        test: choose(Purpose::Test),
        lint: choose(Purpose::Lint),
        build: choose(Purpose::Build),
    }
}

/// Whether a name from a file may be a word of a command: nothing that a shell or the program
/// that gets it could take for something else.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':' | '.');
    name.len() <= 50
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(plain)
}

#[cfg(test)]
mod tests;
