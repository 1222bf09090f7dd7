//! agentd in the sandbox, run as a user would run it. The CLIs on its PATH are the real ones,
//! behind shims that record how they are called.

use std::fs;
use std::path::{Path, PathBuf};

use agentd_core::document::proposal::{self, Proposal};
use agentd_core::ids::ChangeId;
use agentd_core::state::{self, State};
use test_project::{Output, write_script};

use crate::{Cli, Sandbox};

/// The change that all of it is about.
pub const CHANGE: &str = "add-login";

/// codex plans too, which is quicker than gemini; lines for `[workflow]` may follow.
pub const CODEX: &str = "[roles]\nplanner = \"codex\"\n[workflow]\nretry_delay_secs = 0\n";

/// The same without self-reviews.
pub const CODEX_QUICK: &str =
    "[roles]\nplanner = \"codex\"\n[workflow]\nretry_delay_secs = 0\nself_review_iterations = 0\n";

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

impl Sandbox {
    /// Sets agentd up in the project, with this configuration, and the real CLIs on PATH.
    pub fn set_up(&self, config: &str) -> &Self {
        self.write_root("agentd/config.toml", config);
        fs::create_dir_all(self.root().join("agentd/changes")).unwrap();
        fs::create_dir_all(self.log().parent().unwrap()).unwrap();
        for cli in Cli::ALL {
            self.real(cli);
        }
        self
    }

    /// The real CLI, behind a shim that records its arguments.
    pub fn real(&self, cli: Cli) {
        self.instead_of(cli, &format!("exec {} \"$@\"", self.path_of(cli)));
    }

    /// A script in front of the real CLI or instead of it, which records its arguments.
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
        format!("'{}'", self.clis().program(cli).display())
    }

    /// Puts a shell script on PATH, before everything else.
    pub fn shim(&self, name: &str, script: &str) {
        write_script(&self.bin().join(name), script);
    }

    /// Where the shims record how they are called.
    pub fn log(&self) -> PathBuf {
        // Where the kernel lets every agent write, and with it the shim.
        self.root().join("agentd/.locks/calls-seen-by-shims")
    }

    /// `agentd plan` of a new change, without questions.
    pub fn plan(&self, more: &[&str]) -> Output {
        let mut args = vec!["plan", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];
        args.extend(more);
        self.run(args)
    }

    /// The state of some change.
    pub fn state_of(&self, change: &str) -> State {
        let path = self.root().join("agentd/changes").join(change).join("STATE.yaml");
        state::parse(&fs::read_to_string(path).unwrap(), &ChangeId::new(change).unwrap()).unwrap()
    }

    /// The proposal of the change.
    pub fn proposal(&self) -> Proposal {
        proposal::parse(&self.read("proposal.md")).value
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
        let runs = fs::read_dir(self.path("runs")).into_iter().flatten().flatten();
        let ending = format!("-{step}.jsonl");
        runs.filter(|run| run.file_name().to_string_lossy().ends_with(&ending)).count()
    }

    /// The first result of a tool that has these words in it.
    #[track_caller]
    pub fn tool_result(&self, words: &str) -> String {
        let results = self.models().requests().into_iter().flat_map(|request| request.tool_results);
        let mut found = results.filter(|result| result.contains(words));
        found.next().unwrap_or_else(|| panic!("no tool answered {words:?}"))
    }

    /// The prompt of the latest call of a step.
    pub fn prompt(&self, step: &str) -> String {
        let first = format!("agentd {step} {CHANGE}\n");
        let asked = self.models().requests().into_iter().rev();
        let mut prompts = asked.map(|request| request.prompt);
        prompts.find(|prompt| prompt.starts_with(&first)).unwrap_or_else(|| panic!("no {step}"))
    }

    /// All that was said in the session of the latest call of a step.
    pub fn history(&self, step: &str) -> String {
        let first = format!("agentd {step} {CHANGE}\n");
        let asked = self.models().requests();
        let call = asked.iter().rfind(|request| request.prompt.starts_with(&first)).unwrap();
        call.messages.iter().map(|message| message.text.clone() + "\n").collect()
    }

    /// The programs that were called, in order.
    pub fn programs_called(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.program).collect()
    }
}
