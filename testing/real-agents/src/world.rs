//! A project on a user's machine, in which agentd is run as a user would run it. The CLIs
//! on its PATH are the real ones, behind shims that note how they are called.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use agentd_core::document::proposal::{self, Proposal};
use agentd_core::ids::ChangeId;
use agentd_core::state::{self, State};
use serde_json::Value;

use crate::{Cli, Sandbox};

/// The agentd that was built beside this test.
pub fn agentd() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let agentd = test.parent().and_then(|deps| deps.parent()).unwrap().join("agentd");
    assert!(agentd.exists(), "{} is missing: cargo build -p agentd", agentd.display());
    agentd
}

/// Writes a shell script that can be run.
pub fn write_script(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The change that all of it is about.
pub const CHANGE: &str = "add-login";

/// codex plans too, which is quicker than gemini; lines for `[workflow]` may follow.
pub const CODEX: &str = "[roles]\nplanner = \"codex\"\n[workflow]\nretry_delay_secs = 0\n";

/// The same without self-reviews.
pub const CODEX_QUICK: &str =
    "[roles]\nplanner = \"codex\"\n[workflow]\nretry_delay_secs = 0\nself_review_iterations = 0\n";

/// What a run of agentd did.
#[derive(Debug)]
pub struct Ran {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
}

impl Ran {
    /// Reads what a process has printed.
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

    /// It must have ended with this exit code.
    #[track_caller]
    #[allow(clippy::return_self_not_must_use, reason = "the code alone is often what matters")]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// The error under `--json`: its kind, message, cause and hints.
    #[track_caller]
    pub fn error(&self) -> Value {
        let document = self.json();
        assert_eq!(document["version"], 1);
        assert_eq!(self.code, Some(1), "{self:#?}");
        document["error"].clone()
    }

    /// An error card (P28): this kind, a message with these words, a cause, hints.
    #[track_caller]
    pub fn card(&self, kind: &str, message: &str) -> Value {
        let error = self.error();
        assert_eq!(error["kind"], kind, "{error:#}");
        assert!(error["message"].as_str().unwrap().contains(message), "{error:#}");
        assert!(error["cause"].as_str().is_some_and(|cause| !cause.is_empty()), "{error:#}");
        assert!(!error["hints"].as_array().unwrap().is_empty(), "{error:#}");
        error
    }

    /// One of the streams must hold this text.
    #[track_caller]
    pub fn says(&self, text: &str) {
        let said = format!("{}{}", self.stdout, self.stderr);
        assert!(said.contains(text), "{text:?} is not in:\n{said}");
    }
}

/// One call of a CLI, as its shim saw it.
#[derive(Debug, Clone)]
pub struct Called {
    /// Its name.
    pub program: String,
    /// Where it was started.
    pub cwd: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

impl Called {
    /// Whether it got this argument.
    pub fn has(&self, arg: &str) -> bool {
        self.args.iter().any(|have| have == arg)
    }

    /// What stands behind an option.
    pub fn after(&self, option: &str) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg == option)?;
        self.args.get(at + 1).map(String::as_str)
    }
}

/// A project, and the CLIs on the PATH of the user who works in it.
pub struct World<'s> {
    /// Where it lies.
    pub sandbox: &'s Sandbox,
}

impl<'s> World<'s> {
    /// A project that agentd was set up in, with this configuration.
    pub fn new(sandbox: &'s Sandbox, config: &str) -> Self {
        let world = Self { sandbox };
        fs::create_dir_all(world.root().join("agentd/changes")).unwrap();
        fs::write(world.root().join("agentd/config.toml"), config).unwrap();
        fs::create_dir_all(world.shims()).unwrap();
        fs::create_dir_all(world.log().parent().unwrap()).unwrap();
        for cli in Cli::ALL {
            world.real(cli);
        }
        world
    }

    /// The real CLI, which notes how it is called.
    pub fn real(&self, cli: Cli) {
        self.instead_of(cli, &format!("exec {} \"$@\"", self.path_of(cli)));
    }

    /// A script in front of the real CLI or instead of it, which notes how it is called.
    pub fn instead_of(&self, cli: Cli, script: &str) {
        let (name, log) = (cli.program(), self.log());
        let note = format!(
            "{{ printf '%s\\037' {name} \"$PWD\" \"$@\"; printf '\\036'; }} >> '{}'",
            log.display()
        );
        self.shim(name, &format!("{note}\n{script}"));
    }

    /// A script that runs after each call of the real CLI; `$step` is the step of its prompt.
    pub fn after(&self, cli: Cli, script: &str) {
        let real = self.path_of(cli);
        self.instead_of(
            cli,
            &format!(
                "prompt=$(mktemp)\ncat > $prompt\nstep=$(head -1 $prompt | cut -d' ' -f2)\n\
                 {real} \"$@\" < $prompt\ncode=$?\nrm $prompt\n{script}\nexit $code"
            ),
        );
    }

    /// The path of the real CLI, for a script.
    pub fn path_of(&self, cli: Cli) -> String {
        format!("'{}'", self.sandbox.clis().program(cli).display())
    }

    /// Puts a shell script on PATH, before everything else.
    pub fn shim(&self, name: &str, script: &str) {
        write_script(&self.shims().join(name), script);
    }

    /// The directory of the project.
    pub fn root(&self) -> PathBuf {
        self.sandbox.project()
    }

    fn shims(&self) -> PathBuf {
        self.sandbox.root().join("shims")
    }

    /// Where the shims note how they are called.
    pub fn log(&self) -> PathBuf {
        // Where the kernel lets every agent write, and with it the shim.
        self.root().join("agentd/.locks/calls-seen-by-shims")
    }

    /// agentd, ready to be run in the project.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command_with(&self.shims(), agentd());
        command.env("USER", "tester");
        // Whoever runs the tests has written the settings themselves.
        command.env("AGENTD_TRUST", "all");
        command.args(args).stdin(Stdio::null());
        command
    }

    /// Runs agentd to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// `agentd plan` of a new change, without questions.
    pub fn plan(&self, more: &[&str]) -> Ran {
        let mut args = vec!["plan", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];
        args.extend(more);
        self.run(&args)
    }

    /// A file of the change.
    pub fn file(&self, name: &str) -> PathBuf {
        self.root().join("agentd/changes").join(CHANGE).join(name)
    }

    /// The text of a file of the change.
    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The state of the change.
    pub fn state(&self) -> State {
        self.state_of(CHANGE)
    }

    /// The state of some change.
    pub fn state_of(&self, change: &str) -> State {
        let path = self.root().join("agentd/changes").join(change).join("STATE.yaml");
        state::parse(&fs::read_to_string(path).unwrap(), &ChangeId::new(change).unwrap()).unwrap()
    }

    /// The proposal of the change.
    pub fn proposal(&self) -> Proposal {
        proposal::parse(&self.text("proposal.md")).value
    }

    /// The steps in the ledger, in order.
    pub fn steps(&self) -> Vec<String> {
        self.state().llm_calls.into_iter().map(|call| call.step.to_string()).collect()
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

    /// The runs that were recorded of a step.
    pub fn runs(&self, step: &str) -> usize {
        let runs = fs::read_dir(self.file("runs")).into_iter().flatten().flatten();
        let ending = format!("-{step}.jsonl");
        runs.filter(|run| run.file_name().to_string_lossy().ends_with(&ending)).count()
    }

    /// The prompt of the latest call of a step.
    pub fn prompt(&self, step: &str) -> String {
        let first = format!("agentd {step} {CHANGE}\n");
        let asked = self.sandbox.models().requests().into_iter().rev();
        let mut prompts = asked.map(|request| request.prompt);
        prompts.find(|prompt| prompt.starts_with(&first)).unwrap_or_else(|| panic!("no {step}"))
    }

    /// All that was said in the session of the latest call of a step.
    pub fn history(&self, step: &str) -> String {
        let first = format!("agentd {step} {CHANGE}\n");
        let asked = self.sandbox.models().requests();
        let call = asked.iter().rfind(|request| request.prompt.starts_with(&first)).unwrap();
        call.messages.iter().map(|message| message.text.clone() + "\n").collect()
    }

    /// Replaces a piece of a file of the change, as a person with an editor would.
    pub fn edit(&self, name: &str, from: &str, to: &str) {
        let text = self.text(name);
        assert!(text.contains(from), "{name} has no {from:?}: {text}");
        fs::write(self.file(name), text.replace(from, to)).unwrap();
    }

    /// The programs that were called, in order.
    pub fn programs(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.program).collect()
    }
}
