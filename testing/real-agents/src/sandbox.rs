//! A project in which the real CLIs run: scripted models, dummy keys, and no network.

use std::ffi::OsString;
use std::fs;
use std::ops::Deref;

use scripted_models::{Script, ScriptedModels};
use serde_json::json;
use test_project::{TestProject, write};

use crate::agentd::CHANGE;
use crate::call::Call;
use crate::network::{Isolation, isolated};
use crate::{AcpAgents, AgentClis, Cli};

/// The key that the CLIs are given for every provider.
pub const DUMMY_KEY: &str = "test-key";

/// A [`TestProject`] with the real CLIs on its PATH, which find scripted models.
///
/// It stands for a user's machine: what is set up here is what a user would
/// have set up. Flags and variables that agentd must set are not.
pub struct Sandbox {
    project: TestProject,
    clis: AgentClis,
    isolation: Isolation,
    models: ScriptedModels,
}

impl Deref for Sandbox {
    type Target = TestProject;

    fn deref(&self) -> &TestProject {
        &self.project
    }
}

impl Sandbox {
    /// Runs a test in a new sandbox.
    ///
    /// The body runs in a thread that has a network of its own (see
    /// [`isolated`]): what is to meet the models must be started from it.
    pub fn enter<T: Send>(script: Script, body: impl FnOnce(&Self) -> T + Send) -> T {
        Self::enter_with(script, None, body)
    }

    /// Runs a test in a new sandbox that has the agents that speak ACP, too.
    pub fn enter_acp<T: Send>(script: Script, body: impl FnOnce(&Self) -> T + Send) -> T {
        let agents = AcpAgents::get().unwrap_or_else(|error| panic!("{error}"));
        Self::enter_with(script, Some(&agents), body)
    }

    fn enter_with<T: Send>(
        script: Script,
        acp: Option<&AcpAgents>,
        body: impl FnOnce(&Self) -> T + Send,
    ) -> T {
        isolated(|isolation| {
            let clis = AgentClis::get().unwrap_or_else(|error| panic!("{error}"));
            let models = ScriptedModels::start(script).expect("loopback lets a server listen");
            let base = tempfile::Builder::new().prefix("agentd-sandbox-").tempdir();
            let project = TestProject::in_dir(base.expect("the temporary directory is writable"));
            let project = project.repository().about(CHANGE);
            let variables = environment(&project, &clis, acp, &models, isolation);
            let project = project.with_environment(variables);
            let sandbox = Self { project, clis, isolation, models };
            sandbox.write_home();
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

    /// Writes what a user's home has, once the CLIs were set up.
    fn write_home(&self) {
        let home = self.home();
        // With a base URL alone, gemini wants a login; the choice of the key is
        // one that its first interactive run would have saved here.
        let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
        write(&home.join(".gemini/settings.json"), settings.to_string());
        // codex reads no base URL from the environment.
        let provider = format!(
            "model_provider = \"scripted\"\n\n[model_providers.scripted]\nname = \"scripted\"\n\
             base_url = \"{}/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n",
            self.models.url()
        );
        write(&home.join(".codex/config.toml"), provider);
        let anthropic = json!({"options": {"baseURL": format!("{}/v1", self.models.url())}});
        let opencode = json!({
            "provider": {"anthropic": anthropic},
            "model": "anthropic/claude-sonnet-4-5",
            "small_model": "anthropic/claude-sonnet-4-5",
        });
        write(&home.join(".config/opencode/opencode.json"), opencode.to_string());
    }
}

/// The whole environment of a user who has the CLIs, with dummy keys for the scripted models.
fn environment(
    project: &TestProject,
    clis: &AgentClis,
    acp: Option<&AcpAgents>,
    models: &ScriptedModels,
    isolation: Isolation,
) -> Vec<(OsString, OsString)> {
    let temporary = project.base().join("tmp");
    fs::create_dir(&temporary).expect("a fresh directory is writable");
    // The programs of the test first, then the CLIs, then where node and git are on this machine.
    let machine = std::env::var_os("PATH").unwrap_or_default();
    let path = [project.bin(), clis.bin_folder()].into_iter().chain(acp.map(AcpAgents::bin_folder));
    let path = path.chain(std::env::split_paths(&machine));
    let path = std::env::join_paths(path).expect("no directory on PATH has a colon in its name");
    let mut variables: Vec<(&str, OsString)> = vec![
        ("HOME", project.home().into()),
        ("USER", "ada".into()),
        ("TMPDIR", temporary.into()),
        ("PATH", path),
        ("LANG", "C.UTF-8".into()),
        // The test has written the settings of the project itself.
        ("AGENTD_TRUST", "all".into()),
        ("GEMINI_API_KEY", DUMMY_KEY.into()),
        ("OPENAI_API_KEY", DUMMY_KEY.into()),
        ("ANTHROPIC_API_KEY", DUMMY_KEY.into()),
        ("GOOGLE_GEMINI_BASE_URL", models.url().into()),
        ("ANTHROPIC_BASE_URL", models.url().into()),
        // Without a network, it waits for the list of models.
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".into()),
    ];
    if isolation == Isolation::DeadProxies {
        // Nothing listens on port 9, and nothing may go around it.
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"] {
            variables.push((name, "http://127.0.0.1:9".into()));
        }
        variables.push(("NO_PROXY", "127.0.0.1,localhost".into()));
        variables.push(("no_proxy", "127.0.0.1,localhost".into()));
    }
    variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
}
