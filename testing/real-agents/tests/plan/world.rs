//! A project on a user's machine, in which agentd is run as a user would run it. The CLIs
//! on its PATH are the real ones, behind shims that note how they are called.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use agentd_core::document::proposal::{self, Proposal};
use agentd_core::ids::ChangeId;
use agentd_core::state::{self, State};
use real_agents::{Cli, Sandbox};
use serde_json::Value;

/// The agentd that was built beside this test.
pub fn agentd() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let agentd = test.parent().and_then(|deps| deps.parent()).unwrap().join("agentd");
    assert!(agentd.exists(), "{} is missing: cargo build -p agentd", agentd.display());
    agentd
}

pub const CHANGE: &str = "add-login";

/// What a run of agentd did.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The one JSON document on stdout.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn says(&self, text: &str) {
        let said = format!("{}{}", self.stdout, self.stderr);
        assert!(said.contains(text), "{text:?} is not in:\n{said}");
    }
}

/// One call of a CLI, as its shim saw it.
#[derive(Debug, Clone)]
pub struct Called {
    pub program: String,
    pub cwd: PathBuf,
    pub args: Vec<String>,
}

impl Called {
    pub fn has(&self, arg: &str) -> bool {
        self.args.iter().any(|have| have == arg)
    }

    /// What stands behind an option.
    pub fn after(&self, option: &str) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg == option)?;
        self.args.get(at + 1).map(String::as_str)
    }
}

pub struct World<'s> {
    pub sandbox: &'s Sandbox,
}

impl<'s> World<'s> {
    /// A project that agentd was set up in, with this configuration.
    pub fn new(sandbox: &'s Sandbox, config: &str) -> Self {
        let world = Self { sandbox };
        fs::create_dir_all(world.root().join("agentd/changes")).unwrap();
        fs::write(world.root().join("agentd/config.toml"), config).unwrap();
        fs::create_dir_all(world.shims()).unwrap();
        for cli in Cli::ALL {
            let name = cli.program();
            let real = sandbox.clis().program(cli);
            let log = world.log();
            world.shim(
                name,
                &format!(
                    "{{ printf '%s\\037' {name} \"$PWD\" \"$@\"; printf '\\036'; }} >> '{}'\nexec '{}' \"$@\"",
                    log.display(),
                    real.display()
                ),
            );
        }
        world
    }

    /// Puts a shell script on PATH, before everything else.
    pub fn shim(&self, name: &str, script: &str) {
        let path = self.shims().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn root(&self) -> PathBuf {
        self.sandbox.project()
    }

    fn shims(&self) -> PathBuf {
        self.sandbox.root().join("shims")
    }

    pub fn log(&self) -> PathBuf {
        self.sandbox.root().join("calls")
    }

    /// agentd, ready to be run in the project.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command(agentd());
        let path = self.sandbox.environment().into_iter().find(|(name, _)| *name == "PATH");
        let rest = path.map(|(_, value)| value).unwrap_or_default();
        let all = std::iter::once(self.shims()).chain(std::env::split_paths(&rest));
        command.env("PATH", std::env::join_paths(all).unwrap());
        command.env("USER", "tester");
        command.args(args).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// `agentd plan` of a new change, without questions.
    pub fn plan(&self, more: &[&str]) -> Ran {
        let mut args = vec!["plan", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];
        args.extend(more);
        self.run(&args)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.root().join("agentd/changes").join(CHANGE).join(name)
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn state(&self) -> State {
        self.state_of(CHANGE)
    }

    pub fn state_of(&self, change: &str) -> State {
        let path = self.root().join("agentd/changes").join(change).join("STATE.yaml");
        state::parse(&fs::read_to_string(path).unwrap(), &ChangeId::new(change).unwrap()).unwrap()
    }

    pub fn proposal(&self) -> Proposal {
        proposal::parse(&self.text("proposal.md")).value
    }

    /// The steps in the ledger, in order.
    pub fn steps(&self) -> Vec<String> {
        self.state().llm_calls.into_iter().map(|call| call.step).collect()
    }

    /// How the CLIs were called, in order.
    pub fn calls(&self) -> Vec<Called> {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let calls = log.split('\u{1e}').filter(|call| !call.is_empty());
        calls
            .map(|call| {
                let mut words = call.split_terminator('\u{1f}').map(str::to_owned);
                Called {
                    program: words.next().unwrap(),
                    cwd: Path::new(&words.next().unwrap()).to_owned(),
                    args: words.collect(),
                }
            })
            .collect()
    }

    /// The programs that were called, in order.
    pub fn programs(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.program).collect()
    }
}
