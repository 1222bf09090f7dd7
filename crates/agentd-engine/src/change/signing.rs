//! SSH signatures of journals, as git makes them for commits: by `ssh-keygen`, with the user's key.
//!
//! A repository may ask that lines are signed (`[policy] sign`). With which key and by which program
//! is in the user's own git settings: what is set in the repository's is not taken, because an agent
//! may write there, or the person who prepared the directory.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentd_core::command_line::CommandLine;
use agentd_core::config::{Config, Sign};
use agentd_core::error_kind::Kind;
use agentd_core::hint::Hint;
use agentd_core::journal::{Entry, NAMESPACE, Signature};
use agentd_core::layout;
use agentd_core::text::printable;
use rustix::process::Signal;

use super::documents::DocumentError;
use crate::explain::{ErrorReport, Explain};
use crate::git::{GitError, GitTool};
use crate::process::child::{Child, ChildCommand, ChildError, ChildLimits, ChildOutput};
use crate::process::find_program;
use crate::store::{Project, TemporaryDir};

/// How long a signature may take: an agent for keys may ask a person.
const PATIENCE: Duration = Duration::from_mins(1);
/// The largest list of signers that is read.
const LARGEST_LIST: u64 = 4 << 20;
/// How many names a key may have in such a list.
const MOST_NAMES: usize = 8;
/// The settings of git that matter here.
const KEYS: [&str; 2] = ["agentd.signingkey", "user.signingkey"];
const PROGRAM: &str = "gpg.ssh.program";
const KEYGEN: &str = "ssh-keygen";

/// Why something cannot be signed, or a signature cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// The user's git settings name no key.
    #[error("the journal is to be signed, and your git settings name no key")]
    NoKey,
    /// They name something else.
    #[error("the journal is to be signed, and `{value}` is no SSH key")]
    NotAKey {
        /// What they name.
        value: String,
    },
    /// The program is not there.
    #[error("`{program}` is not installed")]
    NoProgram {
        /// Its name.
        program: String,
    },
    /// Git could not be asked.
    #[error("the key to sign with is not known")]
    Git(#[source] GitError),
    /// The program failed.
    #[error("the journal cannot be signed")]
    Failed {
        /// What it said.
        output: String,
    },
    /// The system refused something.
    #[error("`{program}` cannot be run")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It took too long.
    #[error("`{program}` took longer than {} seconds", PATIENCE.as_secs())]
    TimedOut {
        /// The program.
        program: String,
    },
    /// The list of signers cannot be read.
    #[error("cannot read the list of signers {}", file.display())]
    Signers {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Explain for SigningError {
    fn explain(&self) -> ErrorReport {
        let report = || ErrorReport::of(Kind::SigningFailed, self);
        match self {
            Self::NoKey => report()
                .cause(format!(
                    "`{}` is read from your own git settings, not from the repository's",
                    KEYS[1]
                ))
                .hint(set_key(KEYS[1]))
                .hint(sign_nothing()),
            Self::NotAKey { .. } => report()
                .cause("it has to be the path of a key, absolute or from ~/, or a public key")
                .hint(set_key(KEYS[0]))
                .hint(sign_nothing()),
            Self::NoProgram { .. } => report()
                .cause("signatures are made and checked by OpenSSH, 8.2 or newer")
                .hint("install OpenSSH"),
            Self::Git(error) => ErrorReport { kind: Kind::SigningFailed, ..error.explain() },
            Self::Failed { output } => report()
                .cause(format!("ssh-keygen: {}", printable(output.trim())))
                .run("see which keys your SSH agent has", CommandLine::new(["ssh-add", "-l"]))
                .hint(sign_nothing()),
            Self::TimedOut { .. } => report()
                .cause("your SSH agent may be waiting for you to unlock it")
                .run("see which keys your SSH agent has", CommandLine::new(["ssh-add", "-l"])),
            Self::Start { .. } => report(),
            Self::Signers { .. } => {
                report().hint("the format is the one of git's `gpg.ssh.allowedSignersFile`")
            }
        }
    }
}

fn set_key(setting: &str) -> Hint {
    let key = "~/.ssh/id_ed25519.pub";
    Hint::run("name a key", CommandLine::git(["config", "--global", setting, key]))
}

fn sign_nothing() -> Hint {
    let purpose = "or do not sign".to_owned();
    Hint::Set { purpose, table: "policy", key: "sign", value: "\"none\"" }
}

/// Signs lines with the user's key.
#[derive(Debug)]
pub(crate) struct Signer {
    program: PathBuf,
    key: Key,
}

#[derive(Debug, PartialEq, Eq)]
enum Key {
    /// The file of a private key, or of a public one whose private one is beside it or in the agent.
    File(PathBuf),
    /// A public key whose private one is in the agent.
    Public(String),
}

impl Signer {
    /// The one of this user; none where lines are not signed in this project.
    pub(crate) fn of(project: &Project) -> Result<Option<Self>, DocumentError> {
        let text = match project.dir().read_to_string(&layout::config()) {
            Err(error) if error.is_not_found() => return Ok(None),
            text => text?,
        };
        match Config::parse_sign(&text)? {
            Sign::None => Ok(None),
            Sign::Ssh => Ok(Some(Self::from_git(project.root(), &GitTool::default())?)),
        }
    }

    fn from_git(root: &Path, git: &GitTool) -> Result<Self, SigningError> {
        let wanted = format!("^({}|{}|{PROGRAM})$", KEYS[0], KEYS[1]).replace('.', "\\.");
        let asked = git.call(root, "config").args(["--show-scope", "-z", "--get-regexp", &wanted]);
        let found = asked.ask().map_err(SigningError::Git)?;
        let settings = users_own(&found.stdout);
        let get = |name: &str| settings.iter().rfind(|(key, _)| key == name).map(|(_, v)| &**v);
        let key = KEYS.into_iter().find_map(get).filter(|key| !key.is_empty());
        let key = Key::from_setting(key.ok_or(SigningError::NoKey)?)?;
        let program = program(get(PROGRAM).unwrap_or(KEYGEN), root)?;
        Ok(Self { program, key })
    }

    /// Signs a text.
    pub(crate) fn sign(&self, text: &str) -> Result<Signature, SigningError> {
        let mut args: Vec<OsString> =
            ["-q", "-Y", "sign", "-n", NAMESPACE].map(OsString::from).into();
        let mut _temporary = None;
        match &self.key {
            Key::File(file) => args.extend(["-f".into(), file.into()]),
            Key::Public(key) => {
                let temporary = self.started(TemporaryDir::create("key"))?;
                let key = format!("{key}\n");
                self.started(temporary.dir().create_file("key.pub", key.as_bytes(), 0o600))?;
                let file = temporary.dir().path().join("key.pub");
                args.extend(["-U".into(), "-f".into(), file.into()]);
                _temporary = Some(temporary);
            }
        }
        let output = run(&self.program, &args, text)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let signature = Signature::from_file(&String::from_utf8_lossy(&output.stdout));
        match signature.filter(|_| output.code() == 0) {
            Some(signature) => Ok(signature),
            None if said.trim().is_empty() => {
                Err(SigningError::Failed { output: "it printed no signature".to_owned() })
            }
            None => Err(SigningError::Failed { output: said }),
        }
    }

    fn started<T>(&self, result: io::Result<T>) -> Result<T, SigningError> {
        result.map_err(|source| SigningError::Start { program: shown(&self.program), source })
    }
}

/// Tries to sign, before something begins whose result could then not be recorded.
pub(crate) fn check(project: &Project) -> Result<(), DocumentError> {
    if let Some(signer) = Signer::of(project)? {
        signer.sign("can this be signed?")?;
    }
    Ok(())
}

/// Settings with their names, of the user and the system, as `git config --show-scope -z` prints
/// them; those of the repository are left out.
fn users_own(output: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(output);
    let mut fields = text.split('\0');
    let mut settings = Vec::new();
    while let (Some(scope), Some(setting)) = (fields.next(), fields.next()) {
        if matches!(scope, "system" | "global" | "command") {
            let (name, value) = setting.split_once('\n').unwrap_or((setting, ""));
            settings.push((name.to_owned(), value.to_owned()));
        }
    }
    settings
}

impl Key {
    /// As git reads `user.signingkey`, but for a relative path: it would mean a file of the
    /// repository.
    fn from_setting(value: &str) -> Result<Self, SigningError> {
        if let Some(key) = value.strip_prefix("key::") {
            return Ok(Self::Public(key.to_owned()));
        }
        if ["ssh-", "ecdsa-", "sk-"].iter().any(|kind| value.starts_with(kind)) {
            return Ok(Self::Public(value.to_owned()));
        }
        match in_home(value) {
            Some(path) => Ok(Self::File(path)),
            None => Err(SigningError::NotAKey { value: value.to_owned() }),
        }
    }
}

/// An absolute path, or one from the home directory.
fn in_home(value: &str) -> Option<PathBuf> {
    let path = match value.strip_prefix("~/") {
        Some(rest) => std::env::home_dir()?.join(rest),
        None => PathBuf::from(value),
    };
    path.is_absolute().then_some(path)
}

/// The program that a setting of the user's means: never one of the project at `root`.
fn program(name: &str, root: &Path) -> Result<PathBuf, SigningError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = if name.contains('/') { in_home(name) } else { find_program(name, &path, root) };
    found.ok_or_else(|| SigningError::NoProgram { program: name.to_owned() })
}

fn shown(program: &Path) -> String {
    program.display().to_string()
}

fn run(program: &Path, args: &[OsString], input: &str) -> Result<ChildOutput, SigningError> {
    let set = |name: &str, value: &str| (OsString::from(name), Some(OsString::from(value)));
    let env = [
        set("LC_ALL", "C"),
        // Times without a zone are in this one.
        set("TZ", "UTC"),
        // It is in the background, and would wait for a terminal forever.
        set("SSH_ASKPASS_REQUIRE", "force"),
    ];
    let limits = ChildLimits {
        time: PATIENCE,
        grace: Duration::ZERO,
        drain: Duration::from_secs(1),
        stdout_bytes: 64 << 10,
        stderr_bytes: 4 << 10,
    };
    let command = ChildCommand {
        program: program.as_os_str(),
        args,
        cwd: Path::new("/"),
        env: &env,
        input: input.as_bytes(),
        orphan_signal: Signal::KILL,
        limits,
    };
    let start = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => SigningError::NoProgram { program: shown(program) },
        _ => SigningError::Start { program: shown(program), source },
    };
    Child::start(&command).map_err(start)?.wait(None).map_err(|error| match error {
        ChildError::System(source) => SigningError::Start { program: shown(program), source },
        ChildError::TimedOut | ChildError::Cancelled => {
            SigningError::TimedOut { program: shown(program) }
        }
    })
}

/// Who signed an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Signed {
    /// Nobody.
    No,
    /// Someone on the list, by this name.
    By(String),
    /// Someone who is not on the list, or not for journals, or not at that time, with this key.
    ByOther {
        /// The fingerprint of the key.
        key: String,
    },
    /// The signature is not one of this entry.
    Wrong,
}

/// A list of people and their keys, in the format of git's `gpg.ssh.allowedSignersFile`.
#[derive(Debug)]
pub struct AllowedSigners {
    program: PathBuf,
    temporary: TemporaryDir,
    next: AtomicU32,
}

const LIST: &str = "allowed_signers";

impl AllowedSigners {
    /// Reads it, once: it is the same for every signature.
    pub fn read(file: &Path, root: &Path) -> Result<Self, SigningError> {
        let failed = |source| SigningError::Signers { file: file.to_owned(), source };
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(file).map_err(failed)?;
        io::Read::read_to_end(&mut io::Read::take(opened, LARGEST_LIST), &mut bytes)
            .map_err(failed)?;
        let temporary = TemporaryDir::create("signers").map_err(failed)?;
        temporary.dir().create_file(LIST, &bytes, 0o600).map_err(failed)?;
        Ok(Self { program: program(KEYGEN, root)?, temporary, next: AtomicU32::new(0) })
    }

    /// Finds out who signed an entry.
    pub(crate) fn signer_of(&self, entry: &Entry) -> Result<Signed, SigningError> {
        let Some(signature) = &entry.sig else { return Ok(Signed::No) };
        let name = format!("{}.sig", self.next.fetch_add(1, Ordering::Relaxed));
        let dir = self.temporary.dir();
        dir.create_file(&name, signature.to_file().as_bytes(), 0o600)
            .map_err(|source| SigningError::Start { program: shown(&self.program), source })?;
        let (file, list) = (dir.path().join(&name), dir.path().join(LIST));
        let time: String =
            entry.at.to_string().chars().filter(char::is_ascii_digit).take(14).collect();
        let time = format!("-Overify-time={time}");
        let of = [OsStr::new("-s"), file.as_os_str()];
        let by = [OsStr::new("-f"), list.as_os_str(), OsStr::new(&time)];
        let text = entry.signed_text();
        let ask = |what: &str, more: &[&OsStr], input: &str| {
            let args = [OsStr::new("-Y"), OsStr::new(what)]
                .into_iter()
                .chain(of)
                .chain(more.iter().copied());
            let args: Vec<OsString> = args.map(OsStr::to_owned).collect();
            run(&self.program, &args, input)
        };
        let found = ask("find-principals", &by, "")?;
        let names = String::from_utf8_lossy(&found.stdout).into_owned();
        let in_namespace = [OsStr::new("-n"), OsStr::new(NAMESPACE)];
        for name in names.lines().map(str::trim).filter(|name| !name.is_empty()).take(MOST_NAMES) {
            let who = [OsStr::new("-I"), OsStr::new(name)];
            if ask("verify", &[&in_namespace[..], &by, &who].concat(), &text)?.code() == 0 {
                return Ok(Signed::By(name.to_owned()));
            }
        }
        let checked = ask("check-novalidate", &in_namespace, &text)?;
        if checked.code() != 0 {
            return Ok(Signed::Wrong);
        }
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        let key = said.split_whitespace().last().unwrap_or_default().to_owned();
        Ok(Signed::ByOther { key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_names_no_key() {
        let output = b"global\0user.signingkey\n~/.ssh/id.pub\0local\0user.signingkey\nevil\0\
            worktree\0gpg.ssh.program\n./evil\0command\0agentd.signingkey\n/k\0system\0x.y\0";
        let own = users_own(output);
        let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(
            own,
            [("user.signingkey", "~/.ssh/id.pub"), ("agentd.signingkey", "/k"), ("x.y", "")]
        );
        assert_eq!(users_own(b""), []);
    }

    #[test]
    fn a_key_is_a_path_or_a_public_key() {
        let file = |path: &str| Some(Key::File(path.into()));
        let public = |key: &str| Some(Key::Public(key.to_owned()));
        for (value, expected) in [
            ("/keys/id", file("/keys/id")),
            ("key::ssh-ed25519 AAAA", public("ssh-ed25519 AAAA")),
            ("ssh-ed25519 AAAA", public("ssh-ed25519 AAAA")),
            ("sk-ssh-ed25519@openssh.com AAAA", public("sk-ssh-ed25519@openssh.com AAAA")),
            // Files of the repository, and a key of OpenPGP.
            ("id.pub", None),
            ("./id.pub", None),
            ("../id.pub", None),
            ("0A1B2C3D4E5F6071", None),
            ("", None),
        ] {
            assert_eq!(Key::from_setting(value).ok(), expected, "{value}");
        }
    }

    #[test]
    fn the_program_is_none_of_the_project() {
        let dir = tempfile::tempdir().unwrap();
        for relative in ["./ssh-keygen", "bin/ssh-keygen"] {
            assert!(matches!(program(relative, dir.path()), Err(SigningError::NoProgram { .. })));
        }
    }
}
