//! A place to run the CLIs in: home, project, models, and no network.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use scripted_models::{Script, ScriptedModels};
use serde_json::json;
use tempfile::TempDir;

use crate::call::Call;
use crate::network::{Isolation, isolated};
use crate::{AgentClis, Cli};

/// The key that the CLIs are given for every provider.
const DUMMY_KEY: &str = "test-key";

/// A fresh home and project, in which the CLIs find scripted models.
///
/// It stands for a user's machine: what is set up here is what a user would
/// have set up. Flags and variables that agentd is to set are not.
pub struct Sandbox {
    root: TempDir,
    clis: AgentClis,
    isolation: Isolation,
    models: ScriptedModels,
}

impl Sandbox {
    /// Runs a test in a new sandbox.
    ///
    /// The body runs in a thread that has a network of its own (see
    /// [`isolated`]): what is to meet the models must be started from it.
    pub fn enter<T: Send>(script: Script, body: impl FnOnce(&Self) -> T + Send) -> T {
        isolated(|isolation| {
            let clis = AgentClis::get().unwrap_or_else(|error| panic!("{error}"));
            let models = ScriptedModels::start(script).expect("loopback lets a server listen");
            let root = tempfile::Builder::new().prefix("agentd-sandbox-").tempdir();
            let root = root.expect("the temporary folder is writable");
            let sandbox = Self { root, clis, isolation, models };
            sandbox.furnish();
            body(&sandbox)
        })
    }

    /// Prepares a call of a CLI with this prompt.
    pub fn call(&self, cli: Cli, prompt: &str) -> Call<'_> {
        Call::new(self, cli, prompt)
    }

    /// The models, to see what they were asked.
    pub fn models(&self) -> &ScriptedModels {
        &self.models
    }

    /// The installed CLIs.
    pub fn clis(&self) -> &AgentClis {
        &self.clis
    }

    /// How the network is kept away.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// The folder that everything else is in.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The user's home.
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// A git repository with nothing in it, to work in.
    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// A folder for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.root().join("tmp")
    }

    /// The whole environment of the user, for a child with a cleared one.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let mut environment: Vec<(&'static str, OsString)> = vec![
            ("HOME", self.home().into()),
            ("TMPDIR", self.temporary().into()),
            ("PATH", self.path()),
            ("LANG", "C.UTF-8".into()),
            ("GEMINI_API_KEY", DUMMY_KEY.into()),
            ("OPENAI_API_KEY", DUMMY_KEY.into()),
            ("ANTHROPIC_API_KEY", DUMMY_KEY.into()),
            ("GOOGLE_GEMINI_BASE_URL", self.models.url().into()),
            ("ANTHROPIC_BASE_URL", self.models.url().into()),
        ];
        if self.isolation == Isolation::DeadProxies {
            // Nothing listens on port 9, and nothing may go around it.
            for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"] {
                environment.push((name, "http://127.0.0.1:9".into()));
            }
            environment.push(("NO_PROXY", "127.0.0.1,localhost".into()));
            environment.push(("no_proxy", "127.0.0.1,localhost".into()));
        }
        environment
    }

    /// A command with the sandbox's environment and nothing else, in its project.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment()).current_dir(self.project());
        command
    }

    /// The same, with the programs of a folder before all others.
    pub fn command_with(&self, folder: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.command(program);
        let rest = self.path();
        let all = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&rest));
        command.env("PATH", std::env::join_paths(all).expect("it was split before"));
        command
    }

    /// The CLIs first, then where node and git are found on this machine.
    fn path(&self) -> OsString {
        let ours = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.clis.bin_folder()).chain(std::env::split_paths(&ours));
        std::env::join_paths(all).expect("no folder on PATH has a colon in its name")
    }

    fn furnish(&self) {
        let home = self.home();
        for folder in [home.join(".gemini"), home.join(".codex"), self.project(), self.temporary()]
        {
            fs::create_dir_all(folder).expect("a fresh folder is writable");
        }
        // With a base URL alone, gemini wants a login; the choice of the key is
        // one that its first interactive run would have saved here.
        let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
        fs::write(home.join(".gemini/settings.json"), settings.to_string())
            .expect("a fresh folder is writable");
        // codex reads no base URL from the environment.
        let provider = format!(
            "model_provider = \"scripted\"\n\n[model_providers.scripted]\nname = \"scripted\"\n\
             base_url = \"{}/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n",
            self.models.url()
        );
        fs::write(home.join(".codex/config.toml"), provider).expect("a fresh folder is writable");
        let status = self.command("git").args(["init", "--quiet"]).status();
        assert!(status.expect("git is installed").success(), "git init failed");
    }
}
