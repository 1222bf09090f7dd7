//! What of `agentd/config.toml` makes agentd run something, or lets an agent do more. A
//! repository brings its own `config.toml`, so all of this needs a person's consent.
//!
//! This is the one list. A new setting that names a program, goes to one as an argument or a
//! variable, or widens what an agent may do belongs into [`Config::executable`] and
//! [`Config::without_executable`]; a test holds that the two agree.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{AgentConfig, Caches, Config, Implementation, Sandbox};
use crate::agent::AgentKind;
use crate::known_agent::known;

/// A setting that makes agentd run something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExecutableSetting {
    /// Its key, such as `gemini.command`.
    pub key: String,
    /// Its value as it is shown to a person, on one line: a quoted text or a list of them.
    pub value: String,
}

impl fmt::Display for ExecutableSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.key, self.value)
    }
}

impl Config {
    /// Everything in these settings that makes agentd run something. Empty where all of it is
    /// the default: the agents by their own names, found on `PATH`.
    pub fn executable(&self) -> Vec<ExecutableSetting> {
        let mut settings = Vec::new();
        for (section, agent) in self.agent_sections() {
            self.agent(agent).executable(&section, agent, &mut settings);
        }
        self.implementation.executable(&mut settings);
        self.sandbox.widening(&mut settings);
        settings
    }

    /// The same settings with nothing in them that makes agentd run something.
    #[must_use]
    pub fn without_executable(mut self) -> Self {
        let clis = [&mut self.gemini, &mut self.codex, &mut self.claude];
        for agent in clis.into_iter().chain(self.agents.values_mut()) {
            agent.command = None;
            agent.args.clear();
            agent.acp = None;
            agent.env.clear();
            agent.state.clear();
        }
        self.implementation.test_command = None;
        self.implementation.lint_command = None;
        self.implementation.build_command = None;
        self.sandbox.enabled = true;
        self.sandbox.writable.clear();
        if self.sandbox.caches == Caches::Shared {
            self.sandbox.caches = Caches::Project;
        }
        self
    }
}

impl AgentConfig {
    fn executable(&self, section: &str, agent: AgentKind, settings: &mut Vec<ExecutableSetting>) {
        if let Some(command) = self.command.as_deref().filter(|command| *command != agent.name()) {
            settings.push(setting(format!("{section}.command"), quoted(command)));
        }
        if !self.args.is_empty() {
            settings.push(setting(format!("{section}.args"), quoted_list(&self.args)));
        }
        let usual = known(agent).map(|row| row.acp).unwrap_or_default();
        if let Some(acp) = self.acp.as_ref().filter(|acp| *acp != usual) {
            settings.push(setting(format!("{section}.acp"), quoted_list(acp)));
        }
        for (variable, value) in &self.env {
            settings.push(setting(format!("{section}.env.{}", plain_key(variable)), quoted(value)));
        }
        if !self.state.is_empty() {
            settings.push(setting(format!("{section}.state"), quoted_list(&self.state)));
        }
    }
}

impl Implementation {
    fn executable(&self, settings: &mut Vec<ExecutableSetting>) {
        let commands = [
            ("test_command", &self.test_command),
            ("lint_command", &self.lint_command),
            ("build_command", &self.build_command),
        ];
        for (key, command) in commands {
            if let Some(command) = command {
                settings.push(setting(format!("implementation.{key}"), quoted(command)));
            }
        }
    }
}

impl Sandbox {
    /// What lets agents and tests do more than they may by default.
    fn widening(&self, settings: &mut Vec<ExecutableSetting>) {
        if !self.enabled {
            settings.push(setting("sandbox.enabled".to_owned(), "false".to_owned()));
        }
        if self.caches == Caches::Shared {
            settings.push(setting("sandbox.caches".to_owned(), quoted(self.caches.name())));
        }
        if !self.writable.is_empty() {
            settings.push(setting("sandbox.writable".to_owned(), quoted_list(&self.writable)));
        }
    }
}

fn setting(key: String, value: String) -> ExecutableSetting {
    ExecutableSetting { key, value }
}

/// A key as TOML writes it.
fn plain_key(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !key.is_empty() && key.chars().all(plain) { key.to_owned() } else { quoted(key) }
}

/// A list of texts in quotes.
fn quoted_list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A text in quotes, in which nothing is hidden: what a terminal would obey, or not show, is
/// escaped, so that two values that look the same are the same.
fn quoted(text: &str) -> String {
    let mut shown = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => shown.extend(['\\', c]),
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c if c.is_control() || is_invisible(c) => {
                shown.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
            c => shown.push(c),
        }
    }
    shown.push('"');
    shown
}

/// Characters without a glyph, among them those that turn the direction of a line.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        || (c.is_whitespace() && c != ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: &str = r#"
[gemini]
command = "./evil.sh"
args = ["-x", "two words"]
env = { BASH_ENV = "./evil", "a b" = "\u202e\n" }
[codex]
command = "codex"
[claude]
env = { A = "1" }
[agents.opencode]
acp = ["opencode", "acp"]
timeout_secs = 9
[agents.qwen]
acp = ["qwen", "--yolo"]
[agents.mine]
acp = ["./mine"]
env = { B = "2" }
state = ["~/.mine"]
[implementation]
test_command = "make test"
lint_command = "make lint"
build_command = "make"
[sandbox]
enabled = false
caches = "shared"
writable = ["/srv", "~/.ssh"]
"#;

    fn lines(config: &Config) -> Vec<String> {
        config.executable().iter().map(ToString::to_string).collect()
    }

    // contract T7
    #[test]
    fn every_program_that_would_run_is_named_except_plain_names() {
        let config = Config::parse(EVERYTHING).unwrap();
        assert_eq!(
            lines(&config),
            [
                r#"gemini.command = "./evil.sh""#,
                r#"gemini.args = ["-x", "two words"]"#,
                r#"gemini.env.BASH_ENV = "./evil""#,
                r#"gemini.env."a b" = "\u{202e}\n""#,
                r#"claude.env.A = "1""#,
                r#"agents.mine.acp = ["./mine"]"#,
                r#"agents.mine.env.B = "2""#,
                r#"agents.mine.state = ["~/.mine"]"#,
                r#"agents.qwen.acp = ["qwen", "--yolo"]"#,
                r#"implementation.test_command = "make test""#,
                r#"implementation.lint_command = "make lint""#,
                r#"implementation.build_command = "make""#,
                "sandbox.enabled = false",
                r#"sandbox.caches = "shared""#,
                r#"sandbox.writable = ["/srv", "~/.ssh"]"#,
            ]
        );
        assert_eq!(lines(&config.without_executable()), Vec::<String>::new());
        assert_eq!(lines(&Config::default()), Vec::<String>::new());
        assert_eq!(lines(&Config::parse(super::super::TEMPLATE).unwrap()), Vec::<String>::new());
    }

    #[test]
    fn two_values_that_look_the_same_are_the_same() {
        for (one, other) in
            [("a", "a\u{200b}"), ("a b", "a\u{a0}b"), ("\\n", "\n"), ("x", "x\u{7f}")]
        {
            assert_ne!(quoted(one), quoted(other));
            assert!(quoted(other).chars().all(|c| !c.is_control() && !is_invisible(c)));
        }
    }
}
