//! Whether an agent CLI has an account or a key to work with, as far as that can be known without
//! a call that costs something.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use agentd_core::agent::AgentKind;
use agentd_core::known_agent::known;
use serde::Deserialize;

use super::installed::ask;

/// What is known about a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// There is one, or a key; by what that is known.
    Known(String),
    /// There is none.
    Missing,
    /// It cannot be known, and why.
    Unknown(String),
}

/// The part of what `claude auth status` prints that counts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaudeStatus {
    logged_in: bool,
    auth_method: Option<String>,
}

/// Asks a CLI, or looks where it keeps its login. `settings` are variables that agentd adds for
/// it, `environment` those that it has anyway.
pub fn status(
    agent: AgentKind,
    program: &Path,
    settings: &BTreeMap<String, String>,
    environment: impl Fn(&str) -> Option<OsString>,
    limit: Duration,
) -> Login {
    let is_set = |name: &&&str| {
        settings.get(**name).is_some_and(|value| !value.is_empty())
            || environment(name).is_some_and(|value| !value.is_empty())
    };
    let keys = known(agent).map(|row| row.keys).unwrap_or_default();
    let key = keys.iter().find(is_set);
    let by_key = key.map(|name| Login::Known(format!("{name} is set")));
    let env: Vec<(OsString, Option<OsString>)> =
        settings.iter().map(|(name, value)| (name.into(), Some(value.into()))).collect();
    match agent {
        AgentKind::Gemini => by_key.unwrap_or_else(|| gemini(environment("HOME").as_deref())),
        AgentKind::Codex => by_key.unwrap_or_else(|| {
            match ask(program, "login status", &env, limit) {
                Err(error) => Login::Unknown(error.to_string()),
                // It reports on standard error.
                Ok(output) => codex(output.code(), &[output.stdout, output.stderr].concat()),
            }
        }),
        AgentKind::Claude => match ask(program, "auth status", &env, limit) {
            Err(error) => Login::Unknown(error.to_string()),
            Ok(output) => claude(&output.stdout),
        },
        AgentKind::Builtin | AgentKind::Replay => Login::Known("it needs none".to_owned()),
        // Most have a login of their own, which only they can tell.
        AgentKind::Named(_) => by_key.unwrap_or_else(|| {
            Login::Unknown("a probe finds out: `agentd doctor --probe`".to_owned())
        }),
    }
}

fn codex(code: i32, said: &[u8]) -> Login {
    let said = String::from_utf8_lossy(said);
    match said.lines().find(|line| line.to_ascii_lowercase().contains("logged in")) {
        Some(line) if line.to_ascii_lowercase().contains("not logged in") => Login::Missing,
        Some(_) if code == 0 => Login::Known("`codex login status` says so".to_owned()),
        _ => Login::Unknown("`codex login status` does not say".to_owned()),
    }
}

fn claude(said: &[u8]) -> Login {
    match serde_json::from_slice::<ClaudeStatus>(said) {
        Ok(ClaudeStatus { logged_in: false, .. }) => Login::Missing,
        Ok(status) => {
            let method = status.auth_method.unwrap_or_default();
            let method = agentd_core::text::head(&method, 40);
            Login::Known(format!("`claude auth status` says so: {method}"))
        }
        Err(_) => Login::Unknown("`claude auth status` does not say".to_owned()),
    }
}

/// Gemini has no command for it: it keeps what it got from Google in its own directory.
fn gemini(home: Option<&std::ffi::OsStr>) -> Login {
    let Some(home) = home else { return Login::Unknown("HOME is not set".to_owned()) };
    let dir = Path::new(home).join(".gemini");
    let kept = ["oauth_creds.json", "gemini-credentials.json", ".env"];
    match kept.into_iter().find(|name| dir.join(name).is_file()) {
        Some(name) => Login::Known(format!("~/.gemini/{name} is there")),
        None => Login::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_clis_say_is_understood() {
        let known = |text: &str| Login::Known(text.to_owned());
        let in_words = "`codex login status` says so";
        assert_eq!(codex(0, b"WARNING: x\nLogged in using ChatGPT\n"), known(in_words));
        assert_eq!(codex(1, b"WARNING: x\nNot logged in\n"), Login::Missing);
        assert!(matches!(codex(0, b"1.0\n"), Login::Unknown(_)));
        assert!(matches!(codex(2, b"Logged in? no such command\n"), Login::Unknown(_)));
        let status = br#"{"loggedIn": true, "authMethod": "api_key", "apiProvider": "x"}"#;
        assert_eq!(claude(status), known("`claude auth status` says so: api_key"));
        assert_eq!(claude(br#"{"loggedIn": false, "authMethod": "none"}"#), Login::Missing);
        assert!(matches!(claude(b"2.0.1\n"), Login::Unknown(_)));
    }

    #[test]
    fn a_key_for_gemini_may_be_in_the_environment_the_settings_or_its_directory() {
        let home = tempfile::tempdir().unwrap();
        let with = |settings: &[(&str, &str)], variable: Option<&str>| {
            let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            let environment = |name: &str| match name {
                "HOME" => Some(home.path().into()),
                name => variable.filter(|set| *set == name).map(|_| "x".into()),
            };
            let limit = Duration::from_secs(1);
            let program = Path::new("/nowhere");
            status(AgentKind::Gemini, program, &settings.collect(), environment, limit)
        };
        assert_eq!(with(&[], None), Login::Missing);
        assert_eq!(with(&[("GEMINI_API_KEY", "")], None), Login::Missing);
        let known = Login::Known("GEMINI_API_KEY is set".to_owned());
        assert_eq!(with(&[("GEMINI_API_KEY", "x")], None), known);
        assert_eq!(with(&[], Some("GEMINI_API_KEY")), known);
        std::fs::create_dir(home.path().join(".gemini")).unwrap();
        std::fs::write(home.path().join(".gemini/oauth_creds.json"), "{}").unwrap();
        assert_eq!(with(&[], None), Login::Known("~/.gemini/oauth_creds.json is there".to_owned()));
    }
}
