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
pub(crate) fn agentd() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let agentd = test.parent().and_then(|deps| deps.parent()).unwrap().join("agentd");
    assert!(agentd.exists(), "{} is missing: cargo build -p agentd", agentd.display());
    agentd
}

pub(crate) const CHANGE: &str = "add-login";

/// codex plans too, which is quicker than gemini; lines for `[workflow]` may follow.
pub(crate) const CODEX: &str = "[roles]\nplanner = \"codex\"\n[workflow]\nretry_delay_secs = 0\n";

/// The same without self-reviews.
pub(crate) const CODEX_QUICK: &str =
    "[roles]\nplanner = \"codex\"\n[workflow]\nretry_delay_secs = 0\nself_review_iterations = 0\n";

/// What a run of agentd did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The one JSON document on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// The error under `--json`: its kind, message, cause and hints.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        let document = self.json();
        assert_eq!(document["version"], 1);
        assert_eq!(self.code, Some(1), "{self:#?}");
        document["error"].clone()
    }

    /// An error card (P28): this kind, a message with these words, a cause, hints.
    #[track_caller]
    pub(crate) fn card(&self, kind: &str, message: &str) -> Value {
        let error = self.error();
        assert_eq!(error["kind"], kind, "{error:#}");
        assert!(error["message"].as_str().unwrap().contains(message), "{error:#}");
        assert!(!error["hints"].as_array().unwrap().is_empty(), "{error:#}");
        error
    }

    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        let said = format!("{}{}", self.stdout, self.stderr);
        assert!(said.contains(text), "{text:?} is not in:\n{said}");
    }
}

/// One call of a CLI, as its shim saw it.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    pub(crate) program: String,
    pub(crate) cwd: PathBuf,
    pub(crate) args: Vec<String>,
}

impl Called {
    pub(crate) fn has(&self, arg: &str) -> bool {
        self.args.iter().any(|have| have == arg)
    }

    /// What stands behind an option.
    pub(crate) fn after(&self, option: &str) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg == option)?;
        self.args.get(at + 1).map(String::as_str)
    }
}

pub(crate) struct World<'s> {
    pub(crate) sandbox: &'s Sandbox,
}

impl<'s> World<'s> {
    /// A project that agentd was set up in, with this configuration.
    pub(crate) fn new(sandbox: &'s Sandbox, config: &str) -> Self {
        let world = Self { sandbox };
        fs::create_dir_all(world.root().join("agentd/changes")).unwrap();
        fs::write(world.root().join("agentd/config.toml"), config).unwrap();
        fs::create_dir_all(world.shims()).unwrap();
        for cli in Cli::ALL {
            world.real(cli);
        }
        world
    }

    /// The real CLI, which notes how it is called.
    pub(crate) fn real(&self, cli: Cli) {
        self.instead_of(cli, &format!("exec {} \"$@\"", self.path_of(cli)));
    }

    /// A script in front of the real CLI or instead of it, which notes how it is called.
    pub(crate) fn instead_of(&self, cli: Cli, script: &str) {
        let (name, log) = (cli.program(), self.log());
        let note = format!(
            "{{ printf '%s\\037' {name} \"$PWD\" \"$@\"; printf '\\036'; }} >> '{}'",
            log.display()
        );
        self.shim(name, &format!("{note}\n{script}"));
    }

    /// A script that runs after each call of the real CLI; `$step` is the step of its prompt.
    pub(crate) fn after(&self, cli: Cli, script: &str) {
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
    pub(crate) fn path_of(&self, cli: Cli) -> String {
        format!("'{}'", self.sandbox.clis().program(cli).display())
    }

    /// Puts a shell script on PATH, before everything else.
    pub(crate) fn shim(&self, name: &str, script: &str) {
        let path = self.shims().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.sandbox.project()
    }

    fn shims(&self) -> PathBuf {
        self.sandbox.root().join("shims")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.sandbox.root().join("calls")
    }

    /// agentd, ready to be run in the project.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command(agentd());
        let path = self.sandbox.environment().into_iter().find(|(name, _)| *name == "PATH");
        let rest = path.map(|(_, value)| value).unwrap_or_default();
        let all = std::iter::once(self.shims()).chain(std::env::split_paths(&rest));
        command.env("PATH", std::env::join_paths(all).unwrap());
        command.env("USER", "tester");
        command.args(args).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// `agentd plan` of a new change, without questions.
    pub(crate) fn plan(&self, more: &[&str]) -> Ran {
        let mut args = vec!["plan", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];
        args.extend(more);
        self.run(&args)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root().join("agentd/changes").join(CHANGE).join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn state(&self) -> State {
        self.state_of(CHANGE)
    }

    pub(crate) fn state_of(&self, change: &str) -> State {
        let path = self.root().join("agentd/changes").join(change).join("STATE.yaml");
        state::parse(&fs::read_to_string(path).unwrap(), &ChangeId::new(change).unwrap()).unwrap()
    }

    pub(crate) fn proposal(&self) -> Proposal {
        proposal::parse(&self.text("proposal.md")).value
    }

    /// The steps in the ledger, in order.
    pub(crate) fn steps(&self) -> Vec<String> {
        self.state().llm_calls.into_iter().map(|call| call.step).collect()
    }

    /// How the CLIs were called, in order.
    pub(crate) fn calls(&self) -> Vec<Called> {
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
    pub(crate) fn runs(&self, step: &str) -> usize {
        let runs = fs::read_dir(self.file("runs")).into_iter().flatten().flatten();
        let ending = format!("-{step}.jsonl");
        runs.filter(|run| run.file_name().to_string_lossy().ends_with(&ending)).count()
    }

    /// The prompt of the latest call of a step.
    pub(crate) fn prompt(&self, step: &str) -> String {
        let first = format!("agentd {step} {CHANGE}\n");
        let asked = self.sandbox.models().requests().into_iter().rev();
        let mut prompts = asked.map(|request| request.prompt);
        prompts.find(|prompt| prompt.starts_with(&first)).unwrap_or_else(|| panic!("no {step}"))
    }

    /// All that was said in the session of the latest call of a step.
    pub(crate) fn history(&self, step: &str) -> String {
        let first = format!("agentd {step} {CHANGE}\n");
        let asked = self.sandbox.models().requests();
        let call = asked.iter().rfind(|request| request.prompt.starts_with(&first)).unwrap();
        call.messages.iter().map(|message| message.text.clone() + "\n").collect()
    }

    /// Replaces a piece of a file of the change, as a person with an editor would.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let text = self.text(name);
        assert!(text.contains(from), "{name} has no {from:?}: {text}");
        fs::write(self.file(name), text.replace(from, to)).unwrap();
    }

    /// The programs that were called, in order.
    pub(crate) fn programs(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.program).collect()
    }
}
