//! Running git: never through a shell, with a time limit, and ended as a group.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::caged::GitSandbox;
use super::error::GitError;
use crate::process::child::{Child, ChildCommand, ChildError, ChildLimits};
use crate::process::{Cancel, find_program};

/// How long a question to git may take, in a repository of any size.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long git may take where it checks files out or runs hooks.
const LONG_PATIENCE: Duration = Duration::from_mins(15);
/// Between asking git to stop and killing it: it removes its lock files first.
pub(super) const GRACE: Duration = Duration::from_secs(3);
/// How long its pipes are read after it has ended: a hook may leave something behind.
pub(super) const DRAIN: Duration = Duration::from_secs(2);
/// The most that is kept of what it prints, unless the call says otherwise.
const KEPT: usize = 64 << 20;
/// The most that is kept of its errors.
pub(super) const KEPT_ERRORS: usize = 16 << 10;

/// Variables by which git decides *which* repository to use. agentd uses the one of the project,
/// even if it is started by a hook of another.
const REPOSITORY_VARIABLES: [&str; 14] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// The git program, and the environment that it runs in.
#[derive(Debug, Clone)]
pub struct GitTool {
    /// The program.
    pub program: OsString,
    /// Variables that are set for it besides those that agentd itself has.
    pub env: Vec<(OsString, OsString)>,
    /// The request to stop.
    pub cancel: Option<Cancel>,
    /// The sandbox for commands that may run files of the working tree; none runs them without one.
    pub caged: Option<Box<GitSandbox>>,
}

impl Default for GitTool {
    fn default() -> Self {
        Self { program: "git".into(), env: Vec::new(), cancel: None, caged: None }
    }
}

impl GitTool {
    /// A call of git in a directory.
    pub(crate) fn call<'t>(&'t self, dir: &'t Path, subcommand: &'static str) -> Call<'t> {
        Call {
            tool: self,
            dir,
            subcommand,
            args: Vec::new(),
            env: Vec::new(),
            input: Vec::new(),
            limit: PATIENCE,
            kept: KEPT,
            own_words: false,
            orphan_signal: Signal::KILL,
        }
    }
}

/// A call of git.
#[derive(Debug)]
#[must_use = "a call does nothing until it is run"]
pub(crate) struct Call<'t> {
    pub(super) tool: &'t GitTool,
    pub(super) dir: &'t Path,
    subcommand: &'static str,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    pub(super) input: Vec<u8>,
    pub(super) limit: Duration,
    pub(super) kept: usize,
    own_words: bool,
    /// The signal that it gets when agentd is gone.
    orphan_signal: Signal,
}

/// What git printed, and its exit code.
#[derive(Debug)]
pub(crate) struct GitOutput {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    /// Whether it printed more than was kept, and was killed for that.
    pub(crate) cut: bool,
    pub(crate) stderr: String,
}

impl GitOutput {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Both streams, for people.
    pub(crate) fn combined(&self) -> String {
        let both = format!("{}\n{}", self.stderr.trim(), self.text().trim());
        both.trim().to_owned()
    }
}

impl<'t> Call<'t> {
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Treats paths as names, whatever characters are in them.
    pub(crate) fn literal_paths(self) -> Self {
        self.env("GIT_LITERAL_PATHSPECS", "1")
    }

    pub(crate) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    /// It may check out files or run hooks.
    pub(crate) fn long(self) -> Self {
        self.writing().patient()
    }

    /// It may have to read a lot.
    pub(crate) fn patient(mut self) -> Self {
        self.limit = LONG_PATIENCE;
        self
    }

    /// It writes, and needs time to remove its lock files when agentd is gone.
    pub(crate) fn writing(mut self) -> Self {
        self.orphan_signal = Signal::TERM;
        self
    }

    pub(crate) fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Only this much of the output matters.
    pub(crate) fn at_most(mut self, bytes: usize) -> Self {
        self.kept = bytes;
        self
    }

    /// In the user's own language: hooks run in it, and only people read its output.
    pub(crate) fn in_own_words(mut self) -> Self {
        self.own_words = true;
        self
    }

    /// Starts it, to be waited for later: calls that need nothing of each other run side by side. It
    /// must be one that runs no files of the working tree.
    pub(crate) fn begin(self) -> Result<StartedCall<'t>, GitError> {
        debug_assert!(!self.runs_files(), "{}", self.what());
        Ok(StartedCall { child: self.start()?, call: self })
    }

    /// Runs it; every exit code is an answer.
    pub(crate) fn ask(self) -> Result<GitOutput, GitError> {
        let what = self.what();
        let output = match self.tool.caged.as_ref().filter(|_| self.runs_files()) {
            Some(caged) => caged.run(&self, &what)?,
            None => self.output(self.start()?)?,
        };
        self.understood(output)
    }

    fn understood(&self, output: GitOutput) -> Result<GitOutput, GitError> {
        if output.code == 129 && !output.stderr.contains("fatal:") {
            return Err(self.misunderstood(&output));
        }
        Ok(output)
    }

    /// Runs it; a failure is an error.
    pub(crate) fn run(self) -> Result<GitOutput, GitError> {
        let what = self.what();
        succeeded(what, self.ask()?)
    }

    fn what(&self) -> String {
        format!("git {}", self.subcommand)
    }

    /// The program: by its plain name, never one that comes with the repository.
    pub(super) fn program(&self) -> Result<OsString, GitError> {
        let Some(name) = self.tool.program.to_str().filter(|name| !name.contains('/')) else {
            return Ok(self.tool.program.clone());
        };
        let set = self.tool.env.iter().rfind(|(name, _)| name == "PATH");
        let path = set.map(|(_, path)| path.clone()).or_else(|| std::env::var_os("PATH"));
        // Without a PATH the system looks where it always does.
        let Some(path) = path else { return Ok(name.into()) };
        find_program(name, &path, self.dir).map(Into::into).ok_or(GitError::NotInstalled)
    }

    /// Whether it runs hooks and filters, which may be files of the working tree.
    fn runs_files(&self) -> bool {
        matches!(self.subcommand, "add" | "commit" | "rm" | "status")
    }

    /// Whether it only reads, or writes what was checked already. Git runs a hook
    /// (`post-index-change`) for some of these too, and the user's hooks may be files of the work
    /// tree.
    fn only_reads(&self) -> bool {
        matches!(
            self.subcommand,
            "commit-tree" | "diff" | "log" | "ls-files" | "status" | "update-index" | "update-ref"
        )
    }

    /// Its arguments.
    pub(super) fn words(&self) -> Vec<OsString> {
        // A program that the repository configures to be run on reading is not run.
        let mut words =
            vec!["--no-pager", "-c", "core.quotepath=off", "-c", "core.fsmonitor=false"];
        if self.only_reads() {
            words.extend(["-c", "core.hooksPath=/dev/null"]);
        }
        words.push(self.subcommand);
        words.into_iter().map(OsString::from).chain(self.args.iter().cloned()).collect()
    }

    /// The variables that are set for it, and those that are removed.
    pub(super) fn variables(&self) -> Vec<(OsString, Option<OsString>)> {
        let mut variables: Vec<(OsString, Option<OsString>)> =
            REPOSITORY_VARIABLES.iter().map(|name| (name.into(), None)).collect();
        let mut set = |name: &str, value: &str| variables.push((name.into(), Some(value.into())));
        set("GIT_TERMINAL_PROMPT", "0");
        set("GIT_OPTIONAL_LOCKS", "0");
        set("GIT_EDITOR", "true");
        // Anyone who can write to the repository could replace commits by others.
        set("GIT_NO_REPLACE_OBJECTS", "1");
        set("GIT_GRAFT_FILE", "/dev/null/none");
        if !self.own_words {
            set("LC_ALL", "C");
            variables.push(("LANGUAGE".into(), None));
        }
        let ours = self.tool.env.iter().chain(&self.env);
        variables.extend(ours.map(|(name, value)| (name.clone(), Some(value.clone()))));
        variables
    }

    fn start(&self) -> Result<Child, GitError> {
        let limits = ChildLimits {
            time: self.limit,
            grace: GRACE,
            drain: DRAIN,
            stdout_bytes: self.kept,
            stderr_bytes: KEPT_ERRORS,
        };
        let command = ChildCommand {
            program: &self.program()?,
            args: &self.words(),
            cwd: self.dir,
            env: &self.variables(),
            input: &self.input,
            orphan_signal: self.orphan_signal,
            limits,
        };
        Child::start(&command).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound if self.dir.is_dir() => GitError::NotInstalled,
            _ => GitError::Start { what: self.what(), source },
        })
    }

    /// Waits for git to end, and takes what it printed.
    fn output(&self, child: Child) -> Result<GitOutput, GitError> {
        let what = self.what();
        let output = child.wait(self.tool.cancel.as_ref()).map_err(|error| match error {
            ChildError::System(source) => GitError::Start { what, source },
            ChildError::TimedOut => GitError::TimedOut { what, limit: self.limit },
            ChildError::Cancelled => GitError::Interrupted { what },
        })?;
        Ok(GitOutput {
            code: output.code(),
            cut: output.cut,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            stdout: output.stdout,
        })
    }

    /// Git does not know an option: it is older than what agentd needs.
    fn misunderstood(&self, output: &GitOutput) -> GitError {
        let version = self.tool.call(self.dir, "version");
        let version = version.start().and_then(|child| version.output(child)).ok();
        let version = version.map(|output| output.text().trim().to_owned()).unwrap_or_default();
        if is_too_old(&version) {
            GitError::TooOld { version }
        } else {
            GitError::Failed { what: self.what(), code: output.code, output: output.combined() }
        }
    }
}

/// A call of git that has been started; dropping it kills it.
#[derive(Debug)]
#[must_use = "what it prints is the answer"]
pub(crate) struct StartedCall<'t> {
    call: Call<'t>,
    child: Child,
}

impl StartedCall<'_> {
    /// Waits for it; every exit code is an answer.
    pub(crate) fn ask(self) -> Result<GitOutput, GitError> {
        let output = self.call.output(self.child)?;
        self.call.understood(output)
    }

    /// Waits for it; a failure is an error.
    pub(crate) fn run(self) -> Result<GitOutput, GitError> {
        let what = self.call.what();
        succeeded(what, self.ask()?)
    }
}

fn succeeded(what: String, output: GitOutput) -> Result<GitOutput, GitError> {
    if output.code == 0 || output.cut {
        return Ok(output);
    }
    Err(GitError::Failed { what, code: output.code, output: output.combined() })
}

/// Whether a version, as in `git version 2.35.1`, is older than 2.36, the first that lists work
/// trees with `-z`.
fn is_too_old(version: &str) -> bool {
    let numbers = version.trim_start_matches("git version ").split(['.', ' ', '-']);
    let mut numbers = numbers.map_while(|number| number.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), minor) => (major, minor.unwrap_or(0)) < (2, 36),
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared() {
        for (version, old) in [
            ("git version 2.35.8", true),
            ("git version 1.9", true),
            ("git version 2.36.0", false),
            ("git version 2.47.3", false),
            ("git version 2.39.5 (Apple Git-154)", false),
            ("git version 3.0.0-rc1", false),
            ("", false),
        ] {
            assert_eq!(is_too_old(version), old, "{version}");
        }
    }

    #[test]
    fn reading_runs_no_hook_of_the_work_tree() {
        let dir = tempfile::tempdir().unwrap();
        let hook = dir.path().join("hooks/post-index-change");
        std::fs::create_dir(dir.path().join("hooks")).unwrap();
        std::fs::write(&hook, "#!/bin/sh\ntouch ran\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&hook, mode).unwrap();
        let tool = GitTool::default();
        tool.call(dir.path(), "init").args(["--quiet"]).run().unwrap();
        tool.call(dir.path(), "config").args(["core.hooksPath", "hooks"]).run().unwrap();
        let line = format!("100644 {}\tfile\n", "a".repeat(40)).into_bytes();
        tool.call(dir.path(), "update-index").args(["--index-info"]).input(line).run().unwrap();
        tool.call(dir.path(), "status").args(["--porcelain"]).run().unwrap();
        assert!(!dir.path().join("ran").exists());
        let paths = tool.call(dir.path(), "rev-parse").args(["--git-path", "hooks"]).run().unwrap();
        assert_eq!(paths.text(), "hooks\n", "which hooks there are is still known");
    }

    #[test]
    fn a_git_of_the_repository_is_not_run() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("git");
        std::fs::write(&script, "#!/bin/sh\ntouch ran\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, mode).unwrap();
        let path = format!(".:{}:", dir.path().display());
        let tool = GitTool { env: vec![("PATH".into(), path.into())], ..GitTool::default() };
        let output = tool.call(dir.path(), "status").run();
        assert!(matches!(output, Err(GitError::NotInstalled)));
        assert!(!dir.path().join("ran").exists());
    }

    #[test]
    fn a_hanging_git_is_stopped_and_long_output_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("git");
        let text = "#!/bin/sh\ncase \"$*\" in *hang*) sleep 60 & wait;; *) exec yes;; esac\n";
        std::fs::write(&script, text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, mode).unwrap();
        let tool = GitTool { program: script.into(), ..GitTool::default() };
        let call = tool.call(dir.path(), "hang").within(Duration::from_millis(100));
        assert!(matches!(call.run(), Err(GitError::TimedOut { .. })));
        let output = tool.call(dir.path(), "talk").at_most(100_000).run().unwrap();
        assert!(output.cut);
        assert_eq!(output.stdout.len(), 100_000);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn git_ends_with_the_process_that_started_it() {
        use std::os::unix::process::ExitStatusExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        let script = dir.path().join("git");
        std::fs::write(&script, "#!/bin/sh\nexec sleep 600\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, mode).unwrap();
        let tool = GitTool { program: script.into(), ..GitTool::default() };
        // What the kernel watches is the thread, which can end without this test.
        let started = std::thread::spawn(move || {
            let reading = tool.call(&path, "hang").start().unwrap();
            [reading, tool.call(&path, "hang").writing().start().unwrap()]
        });
        let ended = started.join().unwrap().map(|child| child.wait(None).unwrap().status.signal());
        assert_eq!(ended, [Some(9), Some(15)]);
    }
}
