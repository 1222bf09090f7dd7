//! The agents that agentd knows by name: how each is started, installed and logged in to, whose
//! models it uses, where it keeps its own files, and what it would take from a repository.
//!
//! Adding an agent is a row. An agent without one can be used as well, with `acp` in
//! `[agents.<name>]`; then nobody has said what it obeys, and the user's consent to the setting is
//! what counts.

use crate::agent::AgentKind;

/// What is known about an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownAgent {
    /// Its name in settings.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// The program by which it is found on PATH.
    pub program: &'static str,
    /// The command that speaks ACP.
    pub acp: &'static [&'static str],
    /// How to install it.
    pub install: &'static str,
    /// How to install what speaks ACP, if that is another package.
    pub install_acp: &'static str,
    /// How to log in to it.
    pub login: &'static str,
    /// Variables that hold a key for it, any of which is enough.
    pub keys: &'static [&'static str],
    /// Whose models it uses; none if that depends on the model.
    pub vendor: Option<&'static str>,
    /// Where it keeps its own files, which it writes in every role.
    pub state: &'static [CliState],
    /// Variables that keep it from settings of the repository, from updates and from telemetry.
    pub env: &'static [(&'static str, &'static str)],
    /// Files and directories of a repository from which it would take settings, and which it
    /// cannot be kept from. If one is there, the agent is not started.
    pub obeys: &'static [&'static str],
    /// The settings of a user from which it takes permissions and commands.
    pub settings: Option<HomeSettings>,
    /// Settings in a project from which it takes permissions and commands: files and directories.
    pub project: (&'static [&'static str], &'static [&'static str]),
    /// What the costs add up that it reports.
    pub cost: CostScope,
    /// Whether it can implement; `agentd doctor --probe` has shown of some that they cannot.
    pub implements: bool,
}

/// Settings of a user from which an agent takes permissions and commands: anyone who writes there
/// decides what the next call does, also outside of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HomeSettings {
    /// The variable that names their directory, and what is below that.
    pub variable: (&'static str, &'static str),
    /// Where they are in the home directory otherwise.
    pub directory: &'static str,
    /// Files in it.
    pub files: &'static [&'static str],
    /// Directories in it.
    pub dirs: &'static [&'static str],
}

/// Where an agent keeps its own files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CliState {
    /// A directory in the user's home, which the agent makes when it is missing.
    pub directory: &'static str,
    /// A file in the user's home, beside it.
    pub file: Option<&'static str>,
    /// A variable by which the user may have put them elsewhere.
    pub variable: &'static str,
    /// Where they are below the directory that the variable names.
    pub below: &'static str,
}

/// What a cost adds up that an agent reports over ACP. The protocol only says "the session".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostScope {
    /// Since the session was opened in this process.
    Opened,
    /// Since the session began, also in earlier processes.
    Whole,
}

const fn state(directory: &'static str, variable: &'static str) -> CliState {
    CliState { directory, file: None, variable, below: "" }
}

const fn xdg(directory: &'static str, variable: &'static str, below: &'static str) -> CliState {
    CliState { directory, file: None, variable, below }
}

/// The files of Gemini CLI.
pub(crate) const GEMINI_STATE: [CliState; 1] = [state(".gemini", "GEMINI_CLI_HOME")];
/// The files of Codex CLI.
pub(crate) const CODEX_STATE: [CliState; 1] = [state(".codex", "CODEX_HOME")];
/// The files of Claude Code.
pub(crate) const CLAUDE_STATE: [CliState; 1] = [CliState {
    directory: ".claude",
    file: Some(".claude.json"),
    variable: "CLAUDE_CONFIG_DIR",
    below: "",
}];

/// An agent with nothing in it that a row has to say.
const BLANK: KnownAgent = KnownAgent {
    name: "",
    title: "",
    program: "",
    acp: &[],
    install: "",
    install_acp: "",
    login: "",
    keys: &[],
    vendor: None,
    state: &[],
    env: &[],
    obeys: &[],
    settings: None,
    project: (&[], &[]),
    cost: CostScope::Opened,
    implements: true,
};

/// Every agent that is known, those with code of their own first.
pub const KNOWN: [KnownAgent; 11] = [
    KnownAgent {
        name: "gemini",
        title: "Gemini CLI",
        program: "gemini",
        acp: &["gemini", "--acp"],
        install: "npm install -g @google/gemini-cli",
        login: "log in by running `gemini` once, or set GEMINI_API_KEY",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"],
        vendor: Some("Google"),
        state: &GEMINI_STATE,
        settings: Some(HomeSettings {
            variable: ("GEMINI_CLI_HOME", ".gemini"),
            directory: ".gemini",
            files: &["settings.json", "trustedFolders.json", ".env"],
            dirs: &["commands", "agents", "hooks", "skills", "policies", "extensions"],
        }),
        project: (
            &[".gemini/settings.json", ".gemini/.env"],
            &[
                ".gemini/commands",
                ".gemini/agents",
                ".gemini/hooks",
                ".gemini/skills",
                ".gemini/policies",
                ".gemini/extensions",
            ],
        ),
        ..BLANK
    },
    KnownAgent {
        name: "codex",
        title: "Codex CLI",
        program: "codex",
        acp: &["codex-acp"],
        install: "npm install -g @openai/codex",
        install_acp: "npm install -g @agentclientprotocol/codex-acp",
        login: "run `codex login`, or set OPENAI_API_KEY or CODEX_API_KEY",
        keys: &["CODEX_API_KEY", "OPENAI_API_KEY"],
        vendor: Some("OpenAI"),
        state: &CODEX_STATE,
        // It writes its config.toml and skills/ itself in each call; its own sandbox keeps what it
        // runs from them.
        settings: Some(HomeSettings {
            variable: ("CODEX_HOME", ""),
            directory: ".codex",
            files: &["hooks.json"],
            dirs: &["prompts", "rules", "hooks"],
        }),
        project: (&[], &[".codex"]),
        ..BLANK
    },
    KnownAgent {
        name: "claude",
        title: "Claude Code",
        program: "claude",
        acp: &["claude-agent-acp"],
        install: "npm install -g @anthropic-ai/claude-code",
        install_acp: "npm install -g @agentclientprotocol/claude-agent-acp",
        login: "run `claude` and `/login`, or set ANTHROPIC_API_KEY",
        // It is asked, and knows its variables itself.
        keys: &[],
        vendor: Some("Anthropic"),
        state: &CLAUDE_STATE,
        settings: Some(HomeSettings {
            variable: ("CLAUDE_CONFIG_DIR", ""),
            directory: ".claude",
            files: &[
                "settings.json",
                "settings.local.json",
                "plugins/installed_plugins.json",
                "plugins/config.json",
            ],
            dirs: &["commands", "agents", "hooks", "skills"],
        }),
        project: (
            &[".claude/settings.json", ".claude/settings.local.json"],
            &[
                ".claude/commands",
                ".claude/agents",
                ".claude/hooks",
                ".claude/skills",
                ".claude/plugins",
            ],
        ),
        ..BLANK
    },
    KnownAgent {
        name: "opencode",
        title: "OpenCode",
        program: "opencode",
        acp: &["opencode", "acp"],
        install: "npm install -g opencode-ai",
        login: "run `opencode auth login`, or set the key of your provider",
        keys: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENCODE_API_KEY"],
        state: &[
            xdg(".local/share/opencode", "XDG_DATA_HOME", "opencode"),
            xdg(".local/state/opencode", "XDG_STATE_HOME", "opencode"),
            xdg(".cache/opencode", "XDG_CACHE_HOME", "opencode"),
            xdg(".config/opencode", "XDG_CONFIG_HOME", "opencode"),
        ],
        env: &[
            // Its plugins are programs, and `opencode.json` starts servers.
            ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ],
        settings: Some(HomeSettings {
            variable: ("XDG_CONFIG_HOME", "opencode"),
            directory: ".config/opencode",
            files: &["opencode.json", "opencode.jsonc", "config.json"],
            dirs: &[
                "plugin", "plugins", "command", "commands", "agent", "agents", "tool", "tools",
                "skill", "skills", "mode", "modes",
            ],
        }),
        project: (&["opencode.json", "opencode.jsonc"], &[".opencode"]),
        cost: CostScope::Whole,
        ..BLANK
    },
    KnownAgent {
        name: "qwen",
        title: "Qwen Code",
        program: "qwen",
        acp: &["qwen", "--acp"],
        install: "npm install -g @qwen-code/qwen-code",
        login: "run `qwen` and `/auth`, or set OPENAI_API_KEY for its endpoint",
        keys: &["DASHSCOPE_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"],
        state: &[state(".qwen", "QWEN_HOME")],
        env: &[("QWEN_CODE_NO_RELAUNCH", "true")],
        settings: Some(HomeSettings {
            variable: ("QWEN_HOME", ""),
            directory: ".qwen",
            files: &["settings.json", "trustedFolders.json", ".env"],
            dirs: &["commands", "agents", "hooks", "extensions"],
        }),
        project: (
            &[".qwen/settings.json", ".qwen/.env"],
            &[".qwen/commands", ".qwen/agents", ".qwen/hooks", ".qwen/skills", ".qwen/extensions"],
        ),
        implements: false,
        ..BLANK
    },
    KnownAgent {
        name: "copilot",
        title: "GitHub Copilot CLI",
        program: "copilot",
        acp: &["copilot", "--acp"],
        install: "npm install -g @github/copilot",
        login: "run `copilot` and `/login`, or set GH_TOKEN",
        keys: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
        state: &[state(".copilot", "COPILOT_HOME")],
        env: &[("COPILOT_AUTO_UPDATE", "false")],
        obeys: &[".github/copilot", ".github/hooks", ".copilot"],
        settings: Some(HomeSettings {
            variable: ("COPILOT_HOME", ""),
            directory: ".copilot",
            files: &["config.json", "mcp-config.json", "lsp-config.json"],
            dirs: &["agents", "hooks", "plugins", "skills"],
        }),
        project: (&[], &[".github/copilot", ".github/hooks", ".copilot"]),
        ..BLANK
    },
    KnownAgent {
        name: "mistral-vibe",
        title: "Mistral Vibe",
        program: "vibe-acp",
        acp: &["vibe-acp"],
        install: "uv tool install mistral-vibe",
        login: "run `vibe --setup`, or set MISTRAL_API_KEY",
        keys: &["MISTRAL_API_KEY"],
        vendor: Some("Mistral"),
        state: &[state(".vibe", "VIBE_HOME")],
        obeys: &[".vibe"],
        settings: Some(HomeSettings {
            variable: ("VIBE_HOME", ""),
            directory: ".vibe",
            files: &["config.toml", ".env", "trusted_folders.toml"],
            dirs: &["agents", "hooks", "prompts", "skills", "tools"],
        }),
        project: (&[], &[".vibe"]),
        ..BLANK
    },
    KnownAgent {
        name: "cline",
        title: "Cline",
        program: "cline",
        acp: &["cline", "--acp"],
        install: "npm install -g cline",
        login: "run `cline auth`",
        state: &[state(".cline", "CLINE_DIR")],
        obeys: &[".cline", ".clinerules/hooks"],
        settings: Some(HomeSettings {
            variable: ("CLINE_DIR", ""),
            directory: ".cline",
            files: &["settings.json"],
            dirs: &["hooks", "rules", "workflows"],
        }),
        project: (&[], &[".cline", ".clinerules/hooks"]),
        ..BLANK
    },
    KnownAgent {
        name: "kimi",
        title: "Kimi Code",
        program: "kimi",
        acp: &["kimi", "acp"],
        install: "npm install -g @moonshot-ai/kimi-code",
        login: "run `kimi` and `/login`, or set MOONSHOT_API_KEY",
        keys: &["MOONSHOT_API_KEY", "KIMI_API_KEY"],
        vendor: Some("Moonshot"),
        state: &[state(".kimi", "KIMI_HOME"), state(".kimi-code", "KIMI_CODE_HOME")],
        obeys: &[".kimi", ".kimi-code"],
        settings: Some(HomeSettings {
            variable: ("KIMI_HOME", ""),
            directory: ".kimi",
            files: &["config.toml", "config.json", "mcp.json"],
            dirs: &["agents", "hooks", "skills"],
        }),
        project: (&[], &[".kimi", ".kimi-code"]),
        ..BLANK
    },
    KnownAgent {
        name: "goose",
        title: "goose",
        program: "goose",
        acp: &["goose", "acp"],
        install: "see https://block.github.io/goose for how to install it",
        login: "run `goose configure`",
        state: &[
            xdg(".config/goose", "XDG_CONFIG_HOME", "goose"),
            xdg(".local/share/goose", "XDG_DATA_HOME", "goose"),
            xdg(".local/state/goose", "XDG_STATE_HOME", "goose"),
        ],
        obeys: &[".goose"],
        settings: Some(HomeSettings {
            variable: ("XDG_CONFIG_HOME", "goose"),
            directory: ".config/goose",
            files: &["config.yaml", "permission.yaml"],
            dirs: &["custom_providers", "recipes"],
        }),
        project: (&[], &[".goose"]),
        ..BLANK
    },
    KnownAgent {
        name: "agy",
        title: "Antigravity CLI",
        program: "agy",
        acp: &["agy_acp_server"],
        install: "see https://antigravity.google for how to install it",
        login: "run `agy` once",
        vendor: Some("Google"),
        state: &[state(".gemini", "GEMINI_CLI_HOME"), state(".antigravity", "ANTIGRAVITY_HOME")],
        obeys: &[".agent", ".antigravity"],
        project: (&[], &[".agent", ".antigravity"]),
        ..BLANK
    },
];

/// The row of an agent.
pub fn known(agent: AgentKind) -> Option<&'static KnownAgent> {
    KNOWN.iter().find(|row| row.name == agent.name())
}

/// The agents of all rows.
pub fn agents() -> impl Iterator<Item = AgentKind> {
    KNOWN.iter().filter_map(|row| row.name.parse().ok())
}

/// Whose models answered: as the name of the model says it, which counts more than who made the
/// agent, otherwise the vendor of the agent.
pub fn vendor(agent: AgentKind, model: &str) -> &'static str {
    match agent {
        AgentKind::Builtin => "agentd",
        AgentKind::Replay => "a recording",
        AgentKind::Gemini | AgentKind::Codex | AgentKind::Claude | AgentKind::Named(_) => {
            let made = || known(agent).and_then(|row| row.vendor);
            vendor_of_model(model).or_else(made).unwrap_or(UNKNOWN_VENDOR)
        }
    }
}

/// Stands where nobody knows whose model answered.
pub const UNKNOWN_VENDOR: &str = "unknown";

/// Whether models of two vendors judge each other as strangers: it has to be known whose they are.
pub fn are_independent(one: &str, other: &str) -> bool {
    one != other && one != UNKNOWN_VENDOR && other != UNKNOWN_VENDOR
}

/// Words that the names of models begin with, and whose they are.
const MODEL_WORDS: [(&str, &[&str]); 10] = [
    ("Anthropic", &["claude", "opus", "sonnet", "haiku"]),
    ("OpenAI", &["gpt", "codex", "o1", "o3", "o4"]),
    ("Google", &["gemini", "gemma"]),
    ("Alibaba", &["qwen", "qwen2", "qwen3", "qwq"]),
    ("Mistral", &["mistral", "devstral", "codestral", "magistral", "ministral"]),
    ("Moonshot", &["kimi", "moonshot"]),
    ("xAI", &["grok"]),
    ("DeepSeek", &["deepseek"]),
    ("Z.ai", &["glm"]),
    ("MiniMax", &["minimax"]),
];

/// Whose model has this name. A provider before it, as in `openrouter/anthropic/claude-5`, only
/// passes it on.
fn vendor_of_model(model: &str) -> Option<&'static str> {
    let name = model.rsplit(['/', '|']).next().unwrap_or(model).to_ascii_lowercase();
    let word = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let is_of = |words: &&[&str]| {
        words.iter().any(|start| {
            let rest = word.strip_prefix(start);
            rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    MODEL_WORDS.iter().find(|(_, words)| is_of(words)).map(|(vendor, _)| *vendor)
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract G7
    #[test]
    fn every_row_is_whole_and_has_a_name_of_its_own() {
        let mut names: Vec<&str> = KNOWN.iter().map(|row| row.name).collect();
        for row in &KNOWN {
            let agent: AgentKind = row.name.parse().unwrap();
            assert_eq!(known(agent), Some(row));
            assert!(!row.title.is_empty() && !row.program.is_empty(), "{}", row.name);
            assert!(!row.install.is_empty() && !row.login.is_empty(), "{}", row.name);
            assert!(!row.acp.is_empty() && !row.state.is_empty(), "{}", row.name);
        }
        for cli in AgentKind::CLIS {
            assert!(known(cli).is_some_and(|row| row.vendor.is_some()));
        }
        assert!(AgentKind::BUILT_IN.into_iter().all(|a| known(a).is_some() != a.is_own()));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KNOWN.len());
    }

    // contract T4
    #[test]
    fn the_model_says_whose_it_is() {
        let named: AgentKind = "opencode".parse().unwrap();
        for (agent, model, expected) in [
            (AgentKind::Claude, "opus", "Anthropic"),
            (AgentKind::Claude, "", "Anthropic"),
            (AgentKind::Claude, "glm-5.1", "Z.ai"),
            (AgentKind::Codex, "scripted", "OpenAI"),
            (AgentKind::Gemini, "flash", "Google"),
            (named, "anthropic/claude-sonnet-5-5", "Anthropic"),
            (named, "openrouter/openai/gpt-6.1-sol", "OpenAI"),
            (named, "$runtime|anthropic|claude-sonnet-4-5(anthropic)", "Anthropic"),
            (named, "qwen3-coder-plus", "Alibaba"),
            (named, "o3", "OpenAI"),
            (named, "o3x", UNKNOWN_VENDOR),
            (named, "claudette", UNKNOWN_VENDOR),
            (named, "", UNKNOWN_VENDOR),
            (AgentKind::Builtin, "gpt", "agentd"),
        ] {
            assert_eq!(vendor(agent, model), expected, "{agent} {model}");
        }
    }
}
