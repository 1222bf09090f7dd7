//! The remote repository, by way of a git directory of our own.
//!
//! It has its own settings and refs, and takes from the repository of the project nothing but its
//! objects, so that nothing that an agent has left in `.git` has a say in what is pushed, or where.
//! What git needs to reach the remote is read once, before any agent is called.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use agentd_core::rel_path::RelPath;

use super::CarrierError;
use crate::git::{Git, GitError, GitTool, GitToolCall, is_hash};
use crate::store::{Project, StoreError};

/// How long the remote is tried to be reached.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a page or a screen waits for it.
const GLANCE: Duration = Duration::from_secs(20);
/// The first pause after a failure; each further one is twice as long, up to the longest: who has a change
/// shows soon after the remote is back that they are alive.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);
/// How long one conversation with the remote may take.
const CONVERSATION: Duration = Duration::from_mins(5);
/// The settings that say how a remote is reached.
const TRANSPORT: &str =
    "^(http|https|credential|ssh|url|protocol)\\.|^core\\.(sshcommand|askpass|gitproxy)$";

/// Files as they are, whatever `.gitattributes` of the repository says; and specs are merged by agentd.
const ATTRIBUTES: &str = "* -text -eol -ident -filter -working-tree-encoding -export-subst\n\
                          **/agentd/specs/*.md merge=agentd\n";

/// How many settings are in variables.
const COUNT: &str = "GIT_CONFIG_COUNT";

/// What the remote is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To carry a change, as somebody has asked.
    Carrying,
    /// To look what is there, which nobody has asked for: nothing that the repository says is run for
    /// that, and nobody is asked for a password.
    Looking,
}

impl Purpose {
    /// The name of our own git directory.
    fn dir(self) -> &'static str {
        match self {
            Self::Carrying => "carrier",
            Self::Looking => "sightings",
        }
    }
}

/// A remote repository.
#[derive(Debug)]
pub(super) struct Remote {
    purpose: Purpose,
    tool: GitTool,
    /// Our own git directory.
    pub(super) dir: PathBuf,
    /// The name of the remote, for messages.
    name: String,
    url: String,
}

/// A change of a ref that is pushed: it must be at the first, and is then at the second; none for a
/// ref that is not there.
#[derive(Debug, Clone)]
pub(super) struct Update {
    pub(super) name: String,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
}

/// What became of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// All of it is there.
    Yes,
    /// Nothing of it: a ref is not where it was expected.
    Refused,
}

/// What became of one attempt to push.
enum Attempt {
    /// The remote has decided.
    Decided(Pushed),
    /// Every ref is as before, or nobody knows.
    Failed(String),
}

/// How often a branch is tried that the remote may never accept pushes to.
const TRIES: u32 = 3;

/// The commits of refs, by their names.
pub(super) type Refs = BTreeMap<String, String>;

impl Remote {
    /// The remote of this name, which the user has configured.
    pub(super) fn open(
        project: &Project,
        git: &Git,
        tool: &GitTool,
        name: &str,
        purpose: Purpose,
    ) -> Result<Self, CarrierError> {
        let no_remote = || CarrierError::NoRemote { remote: name.to_owned() };
        if name.is_empty() || name.starts_with('-') {
            return Err(no_remote());
        }
        let call = tool.call(git.root(), "remote").args(["get-url", "--push", "--", name]);
        let output = call.ask()?;
        let url = output.text().trim().to_owned();
        if output.code != 0 || url.is_empty() {
            return Err(no_remote());
        }
        // A path is relative to the repository.
        let beside = git.top().join(&url);
        let url = if url.starts_with('.') && beside.exists() {
            beside.to_string_lossy().into_owned()
        } else {
            url
        };
        let dir = project.user().state_path(project.root())?.join(purpose.dir());
        let mut tool = GitTool { caged: None, cancel: None, ..tool.clone() };
        match purpose {
            Purpose::Carrying => tool.env.extend(transport_settings(&tool, git)?),
            Purpose::Looking => tool.env.extend(quiet(&tool, &url)),
        }
        let remote = Self { purpose, tool, dir, name: name.to_owned(), url };
        remote.set_up(project, git)?;
        Ok(remote)
    }

    /// Creates the git directory, unless it is there.
    fn set_up(&self, project: &Project, git: &Git) -> Result<(), CarrierError> {
        let state = project.state_dir()?;
        let file = |name: &str| RelPath::new(&format!("{}/{name}", self.purpose.dir()));
        let objects = self.tool.call(git.root(), "rev-parse");
        let objects = objects.args(["--git-path", "objects"]).run()?.text();
        let objects = git.root().join(objects.trim_end());
        let alternates = format!("{}\n", objects.display());
        let files = [("info/attributes", ATTRIBUTES), ("objects/info/alternates", &*alternates)];
        let is_there = |(name, text): &(&str, &str)| -> Result<bool, CarrierError> {
            let there = state.read_to_string(&file(name).map_err(StoreError::from)?);
            Ok(there.is_ok_and(|there| there == *text))
        };
        if is_there(&files[0])? && is_there(&files[1])? {
            return Ok(());
        }
        let format = self.tool.call(git.root(), "rev-parse").args(["--show-object-format"]);
        let format = format!("--object-format={}", format.run()?.text().trim());
        let init = self.tool.call(git.root(), "init");
        let init = init.args(["--quiet", "--bare", "--template=", &format, "--"]).args([&self.dir]);
        init.env("GIT_CONFIG_GLOBAL", "/dev/null").run()?;
        // No hooks.
        for (key, value) in [
            ("core.hooksPath", "/dev/null"),
            ("core.autocrlf", "false"),
            ("core.quotePath", "false"),
            ("gc.auto", "0"),
        ] {
            self.call("config").args([key, value]).run()?;
        }
        for (name, text) in files {
            state.write_atomic(&file(name).map_err(StoreError::from)?, text.as_bytes())?;
        }
        Ok(())
    }

    /// A call of git in our own directory, which talks to nobody.
    pub(super) fn call(&self, subcommand: &'static str) -> GitToolCall<'_> {
        self.tool
            .call(&self.dir, subcommand)
            .env("GIT_DIR", &self.dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .writing()
    }

    /// A call of git that talks to the remote, with the user's settings for that.
    fn conversation(&self, subcommand: &'static str) -> GitToolCall<'_> {
        let call = self.tool.call(&self.dir, subcommand).env("GIT_DIR", &self.dir);
        call.writing().within(match self.purpose {
            Purpose::Carrying => CONVERSATION,
            Purpose::Looking => GLANCE,
        })
    }

    /// Tries something until it succeeds, for a while.
    fn patiently<T>(
        &self,
        mut attempt: impl FnMut() -> Result<Result<T, String>, GitError>,
    ) -> Result<T, CarrierError> {
        let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let output = match attempt() {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(output)) => output,
                Err(error @ GitError::TimedOut { .. }) => error.to_string(),
                Err(error) => return Err(error.into()),
            };
            if start.elapsed() + pause > PATIENCE || self.purpose == Purpose::Looking {
                return Err(CarrierError::Unreachable { remote: self.name.clone(), output });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Where refs of these names are, of those that are there. A name may end in `*`.
    pub(super) fn refs(&self, names: &[&str]) -> Result<Refs, CarrierError> {
        self.patiently(|| {
            let call = self.conversation("ls-remote").args(["--quiet", "--", &*self.url]);
            let output = call.args(names).ask()?;
            Ok(if output.code == 0 { Ok(refs(&output.text())) } else { Err(output.combined()) })
        })
    }

    /// Brings refs here, under the same names.
    pub(super) fn fetch(&self, names: &[&str]) -> Result<(), CarrierError> {
        let specs: Vec<String> = names.iter().map(|name| format!("+{name}:{name}")).collect();
        self.patiently(|| {
            let fetch = self.conversation("fetch");
            let fetch =
                fetch.args(["--quiet", "--no-tags", "--no-write-fetch-head", "--", &self.url]);
            let output = fetch.args(&specs).ask()?;
            Ok(if output.code == 0 { Ok(()) } else { Err(output.combined()) })
        })
    }

    /// Pushes, all or nothing.
    pub(super) fn push(&self, updates: &[Update]) -> Result<Pushed, CarrierError> {
        self.patiently(|| {
            Ok(match self.attempt(updates)? {
                Attempt::Decided(pushed) => Ok(pushed),
                Attempt::Failed(output) => Err(output),
            })
        })
    }

    /// Pushes, all or nothing, where the remote may not want this branch to be pushed to: then, what it
    /// says about that.
    pub(super) fn push_if_allowed(
        &self,
        updates: &[Update],
        branch: &str,
    ) -> Result<Result<Pushed, String>, CarrierError> {
        let mut tries = 0;
        self.patiently(|| {
            Ok(match self.attempt(updates)? {
                Attempt::Decided(pushed) => Ok(Ok(pushed)),
                Attempt::Failed(output) => {
                    tries += 1;
                    match rejection(&output, branch).filter(|_| tries >= TRIES) {
                        Some(why) => Ok(Err(why)),
                        None => Err(output),
                    }
                }
            })
        })
    }

    /// Pushes once. Whatever git says, the remote is asked where its refs are: a push may have arrived
    /// although its answer did not, and may fail although nobody else has pushed.
    fn attempt(&self, updates: &[Update]) -> Result<Attempt, GitError> {
        let nothing = String::new;
        // Whatever the user has set for other pushes.
        let fixed = ["--porcelain", "--no-verify", "--no-follow-tags", "--no-signed"];
        let mut words: Vec<String> = fixed.map(str::to_owned).into();
        words.push("--recurse-submodules=no".to_owned());
        if updates.len() > 1 {
            words.push("--atomic".to_owned());
        }
        for Update { name, from, .. } in updates {
            let from = from.clone().unwrap_or_else(nothing);
            words.push(format!("--force-with-lease={name}:{from}"));
        }
        words.extend(["--".to_owned(), self.url.clone()]);
        for Update { name, to, .. } in updates {
            words.push(format!("{}:{name}", to.clone().unwrap_or_else(nothing)));
        }
        let names: Vec<&str> = updates.iter().map(|update| &*update.name).collect();
        let output = self.conversation("push").args(&words).ask()?;
        if output.code == 0 {
            return Ok(Attempt::Decided(Pushed::Yes));
        }
        let Ok(there) = self.refs(&names) else { return Ok(Attempt::Failed(output.combined())) };
        let all = |is_there: fn(&Update) -> &Option<String>| {
            updates.iter().all(|update| there.get(&update.name) == is_there(update).as_ref())
        };
        Ok(if all(|update| &update.to) {
            Attempt::Decided(Pushed::Yes)
        } else if all(|update| &update.from) {
            // As before: somebody has locked the ref, or the remote refuses such refs altogether.
            Attempt::Failed(output.combined())
        } else {
            Attempt::Decided(Pushed::Refused)
        })
    }

    /// The branch that a clone of the remote checks out.
    pub(super) fn default_branch(&self) -> Result<Option<String>, CarrierError> {
        self.patiently(|| {
            let call = self.conversation("ls-remote");
            let output = call.args(["--quiet", "--symref", "--", &*self.url, "HEAD"]).ask()?;
            let text = output.text();
            let line = text.lines().find_map(|line| line.strip_prefix("ref: "));
            let name = line.and_then(|line| line.split('\t').next()?.strip_prefix("refs/heads/"));
            let name = name.map(str::to_owned);
            Ok(if output.code == 0 { Ok(name) } else { Err(output.combined()) })
        })
    }
}

/// What a remote says that does not want a branch to be pushed to: a hook of it, or a rule for the branch.
/// A lock of a moment is none.
fn rejection(output: &str, branch: &str) -> Option<String> {
    let line = output.lines().find(|line| {
        line.contains("[remote rejected]") && line.contains(&format!(":{branch}\t"))
    })?;
    let why = line.rsplit_once("[remote rejected]")?.1.trim();
    let why = why.trim_start_matches('(').trim_end_matches(')');
    let passes = ["cannot lock", "failed to update", "atomic", "unable to"];
    let passes = passes.iter().any(|words| why.contains(words));
    (!passes).then(|| agentd_core::text::Line::new(why).as_str().to_owned())
}

/// Asks nobody, and starts no program but those that git and ssh themselves are.
fn quiet(tool: &GitTool, url: &str) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = [
        ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
        ("GIT_ASKPASS", "true"),
        ("SSH_ASKPASS_REQUIRE", "never"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .into();
    let set = ["GIT_SSH_COMMAND", "GIT_SSH"];
    let is_set = |name: &&str| {
        std::env::var_os(name).is_some() || tool.env.iter().any(|(key, _)| key == name)
    };
    let by_ssh = !url.contains("://") || url.starts_with("ssh://");
    if by_ssh && !set.iter().any(is_set) {
        let root = Path::new("/");
        let of_user = tool.call(root, "config").args(["--get", "core.sshCommand"]).ask();
        if of_user.is_ok_and(|output| output.code != 0) {
            variables.push(("GIT_SSH_COMMAND".into(), "ssh -oBatchMode=yes".into()));
        }
    }
    variables
}

/// The settings of the repository that say how its remote is reached, such as the token of a CI job,
/// as variables. They are not words of a command, which others can see.
fn transport_settings(tool: &GitTool, git: &Git) -> Result<Vec<(OsString, OsString)>, GitError> {
    let call = tool.call(git.root(), "config");
    let output = call.args(["--local", "-z", "--get-regexp", TRANSPORT]).ask()?;
    let text = output.text();
    let settings: Vec<(&str, &str)> = text
        .split('\0')
        .filter(|entry| !entry.is_empty())
        .map(|entry| entry.split_once('\n').unwrap_or((entry, "true")))
        .collect();
    // The user may have set some in the same way.
    let set = tool.env.iter().rfind(|(name, _)| name == COUNT).map(|(_, count)| count.clone());
    let set = set.or_else(|| std::env::var_os(COUNT));
    let first = set.and_then(|count| count.to_str()?.parse::<usize>().ok()).unwrap_or(0);
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: String, value: &str| variables.push((name.into(), value.into()));
    for (number, (key, value)) in (first..).zip(&settings) {
        set(format!("GIT_CONFIG_KEY_{number}"), key);
        set(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    set(COUNT.to_owned(), &(first + settings.len()).to_string());
    Ok(variables)
}

/// Reads `git ls-remote`.
fn refs(text: &str) -> Refs {
    let line = |line: &str| {
        let (commit, name) = line.split_once('\t')?;
        is_hash(commit).then(|| (name.to_owned(), commit.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protected_branch_is_told_from_a_locked_one() {
        let line = |why: &str| {
            format!("To x\n!\tabc:refs/heads/main\t[remote rejected] ({why})\nDone\nerror: failed")
        };
        let check = |output: &str, expected: Option<&str>| {
            assert_eq!(rejection(output, "refs/heads/main").as_deref(), expected, "{output}");
        };
        check(&line("pre-receive hook declined"), Some("pre-receive hook declined"));
        check(&line("protected branch hook declined"), Some("protected branch hook declined"));
        check(&line("cannot lock ref 'refs/heads/main'"), None);
        check(&line("failed to update ref"), None);
        check("!\tabc:refs/heads/x\t[remote rejected] (hook declined)", None);
        check("!\tabc:refs/heads/main\t[rejected] (stale info)", None);
        check("fatal: cannot read from remote repository", None);
    }
}
