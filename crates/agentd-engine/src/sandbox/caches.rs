//! Caches of package managers that an agent may write to, without changing what the user's
//! other projects build with.
//!
//! Each tool is pointed to a directory of the project's own by the variable that it reads. What
//! the user has downloaded already is offered where a tool can read it from a second, read-only
//! place; settings and logins are linked to.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{SandboxError, at, variable};
use crate::store::Project;

/// Caches that are ready to be used.
#[derive(Debug, Clone, Default)]
pub(super) struct Prepared {
    pub(super) writable: Vec<PathBuf>,
    pub(super) variables: Vec<(OsString, OsString)>,
}

/// The variable by which a tool finds its directory, and what that is called here.
const VARIABLES: [(&str, &str); 29] = [
    ("BUN_INSTALL_CACHE_DIR", "bun"),
    ("CARGO_HOME", "cargo"),
    ("CCACHE_DIR", "ccache"),
    ("COMPOSER_CACHE_DIR", "composer"),
    ("COURSIER_CACHE", "coursier"),
    ("DENO_DIR", "deno"),
    ("DOTNET_CLI_HOME", "dotnet"),
    ("GEM_HOME", "gem"),
    ("GEM_SPEC_CACHE", "gem-specs"),
    ("BUNDLE_USER_CACHE", "bundle"),
    ("GOCACHE", "go-build"),
    ("GOMODCACHE", "go/pkg/mod"),
    ("GOPATH", "go"),
    ("GRADLE_USER_HOME", "gradle"),
    ("MAVEN_USER_HOME", "m2"),
    ("NUGET_HTTP_CACHE_PATH", "nuget/http"),
    ("NUGET_PACKAGES", "nuget/packages"),
    ("PIP_CACHE_DIR", "pip"),
    ("POETRY_CACHE_DIR", "poetry"),
    ("PRE_COMMIT_HOME", "pre-commit"),
    ("PUB_CACHE", "pub"),
    ("SCCACHE_DIR", "sccache"),
    ("UV_CACHE_DIR", "uv"),
    ("XDG_CACHE_HOME", "xdg"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("YARN_GLOBAL_FOLDER", "yarn-global"),
    ("npm_config_cache", "npm"),
    ("npm_config_devdir", "node-gyp"),
    ("pnpm_config_store_dir", "pnpm"),
];

/// Directories that a tool has in its home beside its cache, and what of them is linked to:
/// settings, logins, programs.
const LINKED: [(&str, &str, &str, &[&str]); 2] = [
    (
        "CARGO_HOME",
        ".cargo",
        "cargo",
        &["config.toml", "config", "credentials.toml", "credentials", "bin", "env"],
    ),
    (
        "GRADLE_USER_HOME",
        ".gradle",
        "gradle",
        &["gradle.properties", "init.gradle", "init.gradle.kts", "init.d"],
    ),
];

/// Programs that were downloaded into the user's cache: they are only read.
const KEPT: [(&str, &str); 3] = [
    ("PLAYWRIGHT_BROWSERS_PATH", "ms-playwright"),
    ("CYPRESS_CACHE_FOLDER", "Cypress"),
    ("COREPACK_HOME", "node/corepack"),
];

/// How many downloaded packages are linked to.
const MOST_LINKS: usize = 20_000;

/// Those of the project.
pub(super) fn project(
    project: &Project,
    home: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> Result<Prepared, SandboxError> {
    let dir = project.user().cache_path(project.root())?.join("caches");
    at(&dir, fs::create_dir_all(&dir))?;
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    for (name, below) in VARIABLES {
        variables.push((name.into(), dir.join(below).into_os_string()));
    }
    let users = |variable_name: &str, default: &str| {
        variable(environment, variable_name).or_else(|| home.map(|home| home.join(default)))
    };
    for (name, default, below, files) in LINKED {
        let Some(from) = users(name, default) else { continue };
        let to = dir.join(below);
        at(&to, fs::create_dir_all(&to))?;
        for file in files {
            link(&from.join(file), &to.join(file));
        }
    }
    if let Some(from) = users("CARGO_HOME", ".cargo") {
        seed_crates(&from.join("registry"), &dir.join("cargo/registry"));
    }
    let downloads = users("GOMODCACHE", "go/pkg/mod").map(|dir| dir.join("cache/download"));
    if let Some(downloads) = downloads.filter(|downloads| downloads.is_dir()) {
        let rest = text(environment, "GOPROXY");
        let rest = rest.as_deref().unwrap_or("https://proxy.golang.org,direct");
        variables.push(("GOPROXY".into(), format!("file://{},{rest}", downloads.display()).into()));
    }
    let gradle = users("GRADLE_USER_HOME", ".gradle").map(|dir| dir.join("caches"));
    if let Some(caches) = gradle.filter(|caches| caches.join("modules-2").is_dir()) {
        variables.push(("GRADLE_RO_DEP_CACHE".into(), caches.into_os_string()));
    }
    // There is no variable for the repository of Maven, but for the options of its Java.
    let mut options = text(environment, "MAVEN_OPTS").unwrap_or_default();
    options.push_str(&format!(" -Dmaven.repo.local={}", dir.join("m2/repository").display()));
    if let Some(home) = home {
        let tail = home.join(".m2/repository");
        options.push_str(&format!(" -Dmaven.repo.local.tail={}", tail.display()));
    }
    variables.push(("MAVEN_OPTS".into(), options.trim().into()));
    let cache = variable(environment, "XDG_CACHE_HOME").or_else(|| home.map(|h| h.join(".cache")));
    for (name, below) in KEPT {
        let is_set = environment.iter().any(|(set, _)| set == name);
        let there = cache.as_ref().map(|cache| cache.join(below)).filter(|dir| dir.is_dir());
        if let (false, Some(there)) = (is_set, there) {
            variables.push((name.into(), there.into_os_string()));
        }
    }
    Ok(Prepared { writable: vec![dir], variables })
}

fn text(environment: &[(OsString, OsString)], wanted: &str) -> Option<String> {
    let (_, value) = environment.iter().find(|(name, _)| name == wanted)?;
    value.to_str().filter(|value| !value.is_empty()).map(str::to_owned)
}

/// A link to something that is there. It is made once; an agent that replaces it changes
/// nothing but its own cache.
fn link(from: &Path, to: &Path) {
    if from.exists() && fs::symlink_metadata(to).is_err() {
        let _ = symlink(from, to);
    }
}

/// Links to crates that were downloaded already, which cargo only reads.
fn seed_crates(from: &Path, to: &Path) {
    if to.exists() {
        return;
    }
    let mut left = MOST_LINKS;
    let indexes = fs::read_dir(from.join("cache")).into_iter().flatten().flatten();
    for index in indexes {
        let dir = to.join("cache").join(index.file_name());
        if fs::create_dir_all(&dir).is_err() {
            return;
        }
        for file in fs::read_dir(index.path()).into_iter().flatten().flatten() {
            let Some(rest) = left.checked_sub(1) else { return };
            left = rest;
            let _ = symlink(file.path(), dir.join(file.file_name()));
        }
    }
}

/// The user's own, where they lie: by choice of the user, who knows that an agent can change
/// what other projects build with.
pub(super) fn shared(home: Option<&Path>, environment: &[(OsString, OsString)]) -> Prepared {
    const IN_HOME: [&str; 14] = [
        ".bun/install/cache",
        ".bundle/cache",
        ".cache",
        ".cargo/git",
        ".cargo/registry",
        ".composer/cache",
        ".gradle",
        ".ivy2",
        ".local/share/pnpm",
        ".m2",
        ".npm",
        ".nuget",
        ".yarn",
        "go",
    ];
    let mut writable: Vec<PathBuf> =
        home.into_iter().flat_map(|home| IN_HOME.map(|below| home.join(below))).collect();
    let set = VARIABLES.iter().filter_map(|(name, _)| variable(environment, name));
    writable.extend(set);
    for path in &writable {
        // What is not there when the sandbox begins cannot be made in it.
        let _ = fs::create_dir_all(path);
    }
    Prepared { writable, variables: Vec::new() }
}
