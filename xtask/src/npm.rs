//! npm packages that tests use, from pinned locks.
//!
//! Every directory `testing/<name>/` with a `package-lock.json` is installed
//! with `npm ci` into `target/npm/<name>` (or `$AGENTD_NPM_CACHE/<name>`), once
//! per content of that directory. Whether install scripts run is the
//! directory's `.npmrc`'s to say; `"agentd": {"setup": [{"node": .., "in": ..}]}`
//! in its `package.json` names programs of packages that are run afterwards.
//!
//! Tests find an install by environment: `AGENTD_NPM_<NAME>` is its directory,
//! and each entry of `"agentd": {"env": {..}}` in its `package.json` names a
//! file inside, such as `AGENTD_INSPECTOR`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::Result;
use crate::process;
use crate::workspace::Workspace;

/// What `npm ci` reads. `.npmrc` may be missing.
const INPUTS: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

/// Written last, holding the inputs: an interrupted install is done again.
const STAMP: &str = ".installed";

const INSTALL_LIMIT: Duration = Duration::from_mins(10);

/// One `testing/<name>/` with a lock file.
pub(crate) struct Package {
    pub(crate) name: String,
    source: PathBuf,
    pub(crate) directory: PathBuf,
}

/// All packages, in the order of their names.
pub(crate) fn packages(workspace: &Workspace) -> Result<Vec<Package>> {
    let base = base(workspace, env::var_os("AGENTD_NPM_CACHE"));
    find(&workspace.root.join("testing"), &base)
}

/// Where packages are installed. A variable that is empty would be the work tree itself.
fn base(workspace: &Workspace, asked: Option<OsString>) -> PathBuf {
    match asked.filter(|directory| !directory.is_empty()) {
        Some(directory) => workspace.root.join(directory),
        None => workspace.target.join("npm"),
    }
}

fn find(testing: &Path, base: &Path) -> Result<Vec<Package>> {
    let mut packages = Vec::new();
    if !testing.is_dir() {
        return Ok(packages);
    }
    for entry in fs::read_dir(testing)? {
        let source = entry?.path();
        let Some(name) = source.file_name().and_then(|name| name.to_str()) else { continue };
        if source.join("package-lock.json").is_file() {
            let (name, directory) = (name.to_owned(), base.join(name));
            packages.push(Package { name, source, directory });
        }
    }
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

/// Installs what is missing or out of date; returns how many were installed.
pub(crate) fn install_all(workspace: &Workspace) -> Result<usize> {
    let mut installed = 0;
    for package in packages(workspace)? {
        if package.is_current()? {
            println!("{}: already installed", package.name);
            continue;
        }
        package.install()?;
        installed += 1;
    }
    Ok(installed)
}

/// The environment by which tests find the packages that are installed now.
pub(crate) fn environment(workspace: &Workspace) -> Result<Vec<(String, PathBuf)>> {
    let mut variables = Vec::new();
    for package in packages(workspace)? {
        if package.is_current()? {
            variables.extend(package.environment()?);
        }
    }
    Ok(variables)
}

impl Package {
    /// Whether the install was made from exactly these inputs.
    fn is_current(&self) -> Result<bool> {
        let stamp = self.directory.join(STAMP);
        Ok(stamp.is_file() && fs::read(stamp)? == self.inputs()?)
    }

    fn inputs(&self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        for name in INPUTS {
            let path = self.source.join(name);
            if path.is_file() {
                all.extend_from_slice(format!("== {name}\n").as_bytes());
                all.extend(fs::read(path)?);
            }
        }
        Ok(all)
    }

    fn install(&self) -> Result<()> {
        // Only the stamp goes: npm ci removes node_modules itself.
        fs::create_dir_all(&self.directory)?;
        let stamp = self.directory.join(STAMP);
        if stamp.exists() {
            fs::remove_file(&stamp)?;
        }
        for name in INPUTS {
            let (from, to) = (self.source.join(name), self.directory.join(name));
            if from.is_file() {
                fs::copy(from, to)?;
            } else if to.exists() {
                fs::remove_file(to)?;
            }
        }
        let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
        let mut npm = process::command(program, &self.directory);
        npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
        process::run_quietly_within(&mut npm, INSTALL_LIMIT)?;
        self.set_up()?;
        // A lock that lacks a file which package.json promises is our mistake:
        // find it here, not as a test that quietly had nothing to run.
        for (name, path) in self.environment()? {
            if !path.exists() {
                return Err(format!("{name} names {}, which is not there", path.display()).into());
            }
        }
        fs::write(stamp, self.inputs()?)?;
        Ok(())
    }

    /// Runs what `package.json` wants to be run after the install.
    fn set_up(&self) -> Result<()> {
        let manifest = self.manifest()?;
        for step in manifest["agentd"]["setup"].as_array().into_iter().flatten() {
            let (Some(script), Some(inside)) = (step["node"].as_str(), step["in"].as_str()) else {
                return Err(format!("{}: a setup needs `node` and `in`", self.name).into());
            };
            let mut node = process::command("node", &self.directory.join(inside));
            process::run_quietly_within(node.arg(script), INSTALL_LIMIT)?;
        }
        Ok(())
    }

    fn manifest(&self) -> Result<Value> {
        let manifest = fs::read_to_string(self.source.join("package.json"))?;
        Ok(serde_json::from_str(&manifest)?)
    }

    fn environment(&self) -> Result<Vec<(String, PathBuf)>> {
        let name = self.name.to_uppercase().replace('-', "_");
        let mut variables = vec![(format!("AGENTD_NPM_{name}"), self.directory.clone())];
        let manifest = self.manifest()?;
        for (name, path) in manifest["agentd"]["env"].as_object().into_iter().flatten() {
            let path = path.as_str().ok_or_else(|| format!("{name} is not a path"))?;
            variables.push((name.clone(), self.directory.join(path)));
        }
        Ok(variables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_cache_variable_counts_as_none() {
        let [root, target, tools] = ["/project", "/project/target", "/tools"].map(PathBuf::from);
        let workspace = Workspace { root, target, tools, ci: false };
        for (asked, expected) in [
            (None, "/project/target/npm"),
            (Some(""), "/project/target/npm"),
            (Some("cache"), "/project/cache"),
            (Some("/cache"), "/cache"),
        ] {
            assert_eq!(base(&workspace, asked.map(OsString::from)), PathBuf::from(expected));
        }
    }

    #[test]
    fn a_directory_with_a_lock_is_a_package_and_a_changed_lock_makes_it_stale() {
        let temporary = tempfile::tempdir().unwrap();
        let testing = temporary.path().join("testing");
        fs::create_dir_all(testing.join("some-tool")).unwrap();
        fs::create_dir_all(testing.join("a-crate")).unwrap();
        let manifest = r#"{"agentd": {"env": {"SOME_TOOL": "bin/tool.js"}}}"#;
        fs::write(testing.join("some-tool/package.json"), manifest).unwrap();
        fs::write(testing.join("some-tool/package-lock.json"), "{}").unwrap();

        let found = find(&testing, &temporary.path().join("npm")).unwrap();
        let names: Vec<_> = found.iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["some-tool"]);

        let package = &found[0];
        let directory = temporary.path().join("npm/some-tool");
        assert_eq!(
            package.environment().unwrap(),
            [
                ("AGENTD_NPM_SOME_TOOL".to_owned(), directory.clone()),
                ("SOME_TOOL".to_owned(), directory.join("bin/tool.js")),
            ]
        );
        assert!(!package.is_current().unwrap());
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(STAMP), package.inputs().unwrap()).unwrap();
        assert!(package.is_current().unwrap());
        fs::write(testing.join("some-tool/package-lock.json"), "{ }").unwrap();
        assert!(!package.is_current().unwrap());
    }
}
