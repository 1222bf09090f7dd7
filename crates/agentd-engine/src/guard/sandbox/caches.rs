//! Caches of package managers that an agent may write to, without changing what the user's
//! other projects are built with.
//!
//! Each tool is pointed to a directory of the project's own by the variable that it reads. What
//! the user has downloaded already is offered where a tool can read it from a second, read-only
//! place; settings and logins are linked.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{SandboxError, at, variable};
use crate::store::{OutsideDir, Project, SHARED};

/// Caches that are ready to be used.
#[derive(Debug, Clone, Default)]
pub(super) struct CacheSetup {
    pub(super) writable: Vec<PathBuf>,
    pub(super) variables: Vec<(OsString, OsString)>,
}

/// The variable by which a tool finds its directory, and its name here.
const VARIABLES: [(&str, &str); 31] = [
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
    ("HATCH_DATA_DIR", "hatch"),
    ("MAVEN_USER_HOME", "m2"),
    ("NUGET_HTTP_CACHE_PATH", "nuget/http"),
    ("NUGET_PACKAGES", "nuget/packages"),
    ("PIP_CACHE_DIR", "pip"),
    // pnpm up to 10 finds its store by this, or by a variable that npm warns about.
    ("PNPM_HOME", "pnpm"),
    ("POETRY_CACHE_DIR", "poetry"),
    ("PRE_COMMIT_HOME", "pre-commit"),
    ("PUB_CACHE", "pub"),
    ("SCCACHE_DIR", "sccache"),
    ("UV_CACHE_DIR", "uv"),
    // The environments of pipenv.
    ("WORKON_HOME", "virtualenvs"),
    // node-gyp too: npm warns about the variable that would be its own.
    ("XDG_CACHE_HOME", "xdg"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("YARN_GLOBAL_FOLDER", "yarn-global"),
    ("npm_config_cache", "npm"),
    ("pnpm_config_store_dir", "pnpm/store"),
];

/// Directories that a tool has in the home besides its cache, and what is linked from them:
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

/// How many downloaded packages are linked.
const MOST_LINKS: usize = 20_000;

/// The caches of the project.
pub(super) fn project(
    project: &Project,
    home: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> Result<CacheSetup, SandboxError> {
    let dir = project.user().cache_path(project.root())?.join("caches");
    below(dir, home, environment)
}

/// Caches in a directory.
fn below(
    dir: PathBuf,
    home: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> Result<CacheSetup, SandboxError> {
    let caches = at(&dir, OutsideDir::open_or_create(&dir, SHARED))?;
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    for (name, below) in VARIABLES {
        variables.push((name.into(), dir.join(below).into_os_string()));
    }
    let users = |variable_name: &str, default: &str| {
        variable(environment, variable_name).or_else(|| home.map(|home| home.join(default)))
    };
    for (name, default, below, files) in LINKED {
        let Some(from) = users(name, default) else { continue };
        // Agents write here: a link in place of the directory must not be followed.
        let to = at(&dir.join(below), caches.subdir_or_create(below))?;
        for file in files {
            link(&from.join(file), &to, file);
        }
    }
    if let Some(from) = users("CARGO_HOME", ".cargo") {
        // If this fails, they are downloaded again.
        let _ = seed_crates(&from.join("registry"), &caches);
    }
    variables.extend(go_proxy(home, environment));
    let gradle = users("GRADLE_USER_HOME", ".gradle").map(|dir| dir.join("caches"));
    if let Some(caches) = gradle.filter(|caches| caches.join("modules-2").is_dir()) {
        variables.push(("GRADLE_RO_DEP_CACHE".into(), caches.into_os_string()));
    }
    variables.extend(maven_options(&dir, home, environment));
    let cache = variable(environment, "XDG_CACHE_HOME").or_else(|| home.map(|h| h.join(".cache")));
    for (name, below) in KEPT {
        let is_set = environment.iter().any(|(set, _)| set == name);
        let there = cache.as_ref().map(|cache| cache.join(below)).filter(|dir| dir.is_dir());
        if let (false, Some(there)) = (is_set, there) {
            variables.push((name.into(), there.into_os_string()));
        }
    }
    Ok(CacheSetup { writable: vec![dir], variables })
}

/// Where Go finds modules: those that the user has downloaded, then where it would look anyway.
fn go_proxy(
    home: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> Option<(OsString, OsString)> {
    let settings = go_settings(home, environment);
    let setting = |name: &str| {
        let line = || settings.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        text(environment, name).or_else(|| line().map(|value| value.trim().to_owned()))
    };
    let modules = setting("GOMODCACHE").map(PathBuf::from).or_else(|| {
        let path = setting("GOPATH").and_then(|paths| std::env::split_paths(&paths).next());
        path.or_else(|| home.map(|home| home.join("go"))).map(|path| path.join("pkg/mod"))
    })?;
    let downloads = modules.join("cache/download");
    // Separators of the list, and what means something in a URL.
    let plain = |path: &&str| !path.contains([' ', ',', '|', '%', '?', '#']);
    let path = downloads.to_str().filter(plain).filter(|_| downloads.is_dir())?;
    let rest = setting("GOPROXY").filter(|rest| !rest.is_empty());
    let rest = rest.as_deref().unwrap_or("https://proxy.golang.org,direct");
    Some(("GOPROXY".into(), format!("file://{path},{rest}").into()))
}

/// What `go env -w` has written.
fn go_settings(home: Option<&Path>, environment: &[(OsString, OsString)]) -> String {
    let config = || {
        let config = variable(environment, "XDG_CONFIG_HOME");
        config.or_else(|| home.map(|home| home.join(".config"))).map(|dir| dir.join("go/env"))
    };
    let path = text(environment, "GOENV").map(PathBuf::from).or_else(config);
    path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
}

/// Maven has no variable for its repository, but one for the options of its Java.
fn maven_options(
    dir: &Path,
    home: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> Option<(OsString, OsString)> {
    // Maven's script splits them at spaces, and takes the second half for a class to be run.
    let option = |name: &str, path: &Path| {
        let path = path.to_str().filter(|path| !path.contains(char::is_whitespace));
        path.map(|path| format!(" -D{name}={path}"))
    };
    let mut options = text(environment, "MAVEN_OPTS").unwrap_or_default();
    options.push_str(&option("maven.repo.local", &dir.join("m2/repository"))?);
    let tail = home.and_then(|home| option("maven.repo.local.tail", &home.join(".m2/repository")));
    options.push_str(&tail.unwrap_or_default());
    Some(("MAVEN_OPTS".into(), options.trim().into()))
}

fn text(environment: &[(OsString, OsString)], wanted: &str) -> Option<String> {
    let (_, value) = environment.iter().find(|(name, _)| name == wanted)?;
    value.to_str().filter(|value| !value.is_empty()).map(str::to_owned)
}

/// A link to something that exists. It is created once; an agent that replaces it changes nothing
/// but its own cache.
fn link(from: &Path, to: &OutsideDir, name: &str) {
    if from.exists() && !to.has(name) {
        let _ = to.symlink(from, name);
    }
}

/// Links to crates that were downloaded already and to what is known of them, which cargo only
/// reads: where it cannot write to an entry of the index, it goes on without.
fn seed_crates(from: &Path, caches: &OutsideDir) -> io::Result<()> {
    let cargo = caches.subdir_or_create("cargo")?;
    if cargo.has("registry") {
        return Ok(());
    }
    let to = cargo.create_dir("registry", SHARED)?;
    let mut left = MOST_LINKS;
    for part in ["cache", "index"] {
        // An index of crates.io has its entries two directories below `.cache`.
        link_tree(&OutsideDir::open(&from.join(part))?, &to, part.as_ref(), 4, &mut left)?;
    }
    Ok(())
}

/// Makes directories like those of `from`, at most so many levels down, with links to its files.
fn link_tree(
    from: &OutsideDir,
    to: &OutsideDir,
    name: &OsStr,
    levels: usize,
    left: &mut usize,
) -> io::Result<()> {
    let to = to.create_dir(name, SHARED)?;
    for name in from.names()? {
        match from.subdir(&name) {
            Ok(below) if levels > 0 => link_tree(&below, &to, &name, levels - 1, left)?,
            Ok(_) => {}
            Err(_) => {
                let Some(rest) = left.checked_sub(1) else { return Ok(()) };
                *left = rest;
                let _ = to.symlink(&from.path().join(&name), &name);
            }
        }
    }
    Ok(())
}

/// The user's own caches: by choice of the user, who knows that an agent can change what other
/// projects are built with.
pub(super) fn shared(home: Option<&Path>, environment: &[(OsString, OsString)]) -> CacheSetup {
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
        // What does not exist when the sandbox starts cannot be created in it.
        let _ = OutsideDir::open_or_create(path, SHARED);
    }
    CacheSetup { writable, variables: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Set<'a> = &'a [(&'a str, &'a str)];

    /// The value of a variable in the sandbox of a user who has these set.
    fn inside(base: &Path, set: Set<'_>, wanted: &str) -> Option<String> {
        let environment: Vec<(OsString, OsString)> =
            set.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let prepared = below(base.join("caches"), Some(&base.join("home")), &environment).unwrap();
        let found = prepared.variables.into_iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.into_string().unwrap())
    }

    #[test]
    fn crates_and_their_index_are_there_without_the_network() {
        let base = test_project::temp_dir();
        let base = base.path().canonicalize().unwrap();
        let files = [
            "cache/index.crates.io-1/itoa-1.0.0.crate",
            "index/index.crates.io-1/config.json",
            "index/index.crates.io-1/.cache/it/oa/itoa",
        ];
        for file in files {
            test_project::write(&base.join("home/.cargo/registry").join(file), file);
        }
        let home = inside(&base, &[], "CARGO_HOME").unwrap();
        for file in files {
            let seeded = Path::new(&home).join("registry").join(file);
            assert_eq!(fs::read_to_string(&seeded).unwrap(), file);
            assert!(seeded.is_symlink(), "{file}");
        }
        // What was added there stays.
        let added = Path::new(&home).join("registry/index/index.crates.io-1/.cache/it/oa/other");
        fs::write(&added, "new").unwrap();
        inside(&base, &[], "CARGO_HOME").unwrap();
        assert_eq!(fs::read_to_string(added).unwrap(), "new");
    }

    /// It would warn on every call.
    #[test]
    fn npm_gets_no_setting_that_it_does_not_know() {
        let own = VARIABLES.iter().map(|(name, _)| *name);
        let own: Vec<&str> = own.filter(|name| name.starts_with("npm_config_")).collect();
        assert_eq!(own, ["npm_config_cache"]);
    }

    #[test]
    fn environments_and_stores_in_the_home_belong_to_the_project() {
        let base = test_project::temp_dir();
        let set: Set<'_> = &[("PNPM_HOME", "/home/me/.local/share/pnpm")];
        for name in ["PNPM_HOME", "pnpm_config_store_dir", "WORKON_HOME", "HATCH_DATA_DIR"] {
            let value = inside(base.path(), set, name).unwrap();
            assert!(Path::new(&value).starts_with(base.path().join("caches")), "{name}={value}");
        }
    }

    #[test]
    fn go_searches_the_downloads_of_the_user_first() {
        let base = test_project::temp_dir();
        let base = base.path();
        let home = base.join("home");
        let (usual, other) = (home.join("go"), base.join("gopath"));
        assert_eq!(inside(base, &[], "GOPROXY"), None, "nothing is downloaded");
        for path in [&usual, &other] {
            fs::create_dir_all(path.join("pkg/mod/cache/download")).unwrap();
        }
        let check = |set: Set<'_>, path: &Path, rest: &str| {
            let downloads = path.join("pkg/mod/cache/download");
            let expected = format!("file://{},{rest}", downloads.display());
            assert_eq!(inside(base, set, "GOPROXY"), Some(expected));
        };
        let elsewhere = other.to_str().unwrap();
        check(&[], &usual, "https://proxy.golang.org,direct");
        check(&[("GOPROXY", "off")], &usual, "off");
        check(&[("GOPATH", elsewhere)], &other, "https://proxy.golang.org,direct");
        // As `go env -w` writes it: a company's registry must not be ignored.
        let settings = home.join(".config/go/env");
        fs::create_dir_all(settings.parent().unwrap()).unwrap();
        fs::write(&settings, format!("GOPATH={elsewhere}\nGOPROXY=https://go.example.org\n"))
            .unwrap();
        check(&[], &other, "https://go.example.org");
        check(&[("GOPROXY", "off")], &other, "off");
        check(&[("GOENV", "off")], &usual, "https://proxy.golang.org,direct");
    }

    #[test]
    fn options_of_maven_are_added_to_and_never_split_at_a_space() {
        let base = test_project::temp_dir();
        let base = base.path();
        let repository = base.join("caches/m2/repository");
        let tail = base.join("home/.m2/repository");
        let expected = format!(
            "-Xmx1g -Dmaven.repo.local={} -Dmaven.repo.local.tail={}",
            repository.display(),
            tail.display()
        );
        let set: Set<'_> = &[("MAVEN_OPTS", "-Xmx1g")];
        assert_eq!(inside(base, set, "MAVEN_OPTS"), Some(expected));
        assert_eq!(inside(&base.join("Ada Lovelace"), set, "MAVEN_OPTS"), None);
    }
}
