//! The config.toml that `init` writes: the template, with what fits this project filled in.

use agentd_core::agent::{AgentKind, Role};
use agentd_core::config::{Config, Roles, TEMPLATE};
use agentd_engine::insight::toolchain::Commands;

/// Who is to play the roles, as far as the configuration says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Players {
    /// Nobody was chosen: the defaults, which are not written.
    #[default]
    Default,
    /// The built-in agent, because a person wants no other (T2).
    Builtin,
    /// Those that work on this project (R3).
    Agents(Roles),
}

/// What `init` fills in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Who plays the roles.
    pub(crate) players: Players,
    /// How the project is built.
    pub(crate) commands: Commands,
}

impl Settings {
    /// The text of config.toml.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut in_roles = false;
        for line in TEMPLATE.split_inclusive('\n') {
            in_roles |= line == "# [roles]\n";
            in_roles &= line != "\n";
            let role = line.strip_prefix("# ").and_then(|line| line.split_once(" = "));
            let role = role.filter(|_| in_roles).and_then(|(role, _)| role.parse::<Role>().ok());
            let example = line.strip_prefix("# e.g. ").and_then(|line| line.split_once("_command"));
            let known = |(purpose, _): (&str, &str)| {
                self.commands.by_purpose().any(|(known, _)| known == purpose)
            };
            match role {
                _ if line == "# [roles]\n" && self.players != Players::Default => {
                    text.push_str("[roles]\n");
                }
                _ if line == "# [implementation]\n" => text.push_str(&self.implementation()),
                // What is set needs no example.
                None if example.is_some_and(known) => {}
                None => text.push_str(line),
                Some(role) => match self.player(role) {
                    Some(agent) => text.push_str(&format!("{role} = \"{agent}\"\n")),
                    None => text.push_str(line),
                },
            }
        }
        text
    }

    fn player(&self, role: Role) -> Option<AgentKind> {
        match self.players {
            Players::Default => None,
            // It writes no code.
            Players::Builtin => (role != Role::Implementer).then_some(AgentKind::Builtin),
            Players::Agents(roles) => Some(roles.agent(role)),
        }
    }

    /// The beginning of `[implementation]`.
    fn implementation(&self) -> String {
        let mut text = String::new();
        for (purpose, found) in self.commands.by_purpose() {
            let command = found.command.replace('\\', "\\\\").replace('"', "\\\"");
            text.push_str(&format!("{purpose}_command = \"{command}\"\n"));
        }
        let comment = if text.is_empty() { "# " } else { "" };
        format!("{comment}[implementation]\n{text}")
    }
}

/// Whether `init` wrote this text, and nobody has edited it since: the roles are those of some
/// set of agents, and the commands are those that are found here.
pub(super) fn wrote(text: &str, detected: &Commands) -> bool {
    let Ok(config) = Config::parse(text) else { return false };
    let mut agents = config.roles.all().to_vec();
    agents.sort_unstable();
    agents.dedup();
    let chosen = Roles::among(&agents).filter(|roles| *roles == config.roles);
    let players = [Players::Default, Players::Builtin];
    let players = players.into_iter().chain(chosen.map(Players::Agents));
    let mut commands = detected.clone();
    for (found, written) in [
        (&mut commands.test, &config.implementation.test_command),
        (&mut commands.lint, &config.implementation.lint_command),
        (&mut commands.build, &config.implementation.build_command),
    ] {
        if written.is_none() {
            *found = None;
        }
    }
    players
        .into_iter()
        .any(|players| Settings { players, commands: commands.clone() }.text() == text)
}

#[cfg(test)]
mod tests {
    use agentd_engine::insight::toolchain::Detected;

    use super::*;

    fn commands(test: &str) -> Commands {
        let test = Detected { command: test.to_owned(), source: "Cargo.toml".to_owned() };
        Commands { test: Some(test), ..Commands::default() }
    }

    /// The lines that are different in the template.
    fn changed(settings: &Settings) -> Vec<String> {
        let (before, after) = (TEMPLATE.to_owned(), settings.text());
        let before: Vec<&str> = before.lines().collect();
        let new = after.lines().filter(|line| !before.contains(line));
        new.map(str::to_owned).collect()
    }

    #[test]
    fn nothing_to_fill_in_is_the_template() {
        assert_eq!(Settings::default().text(), TEMPLATE);
    }

    /// T2: `init --agents none` is the choice of the built-in agent.
    #[test]
    fn roles_of_the_builtin_agent_are_written_into_the_template() {
        let settings = Settings { players: Players::Builtin, ..Settings::default() };
        let config = Config::parse(&settings.text()).unwrap();
        let default = Config::default().roles;
        let roles = agentd_engine::agents::installed::roles_of(AgentKind::Builtin, default);
        assert_eq!(config, Config { roles, roles_are_written: true, ..Config::default() });
        assert_eq!(
            changed(&settings),
            [
                "[roles]",
                "planner = \"builtin\"",
                "challenger = \"builtin\"",
                "reviewer = \"builtin\""
            ]
        );
    }

    // contract R3
    #[test]
    fn roles_and_commands_are_written_into_the_template() {
        let roles = Roles::among(&[AgentKind::Claude]).unwrap();
        let settings =
            Settings { players: Players::Agents(roles), commands: commands("a \"b\" \\") };
        let config = Config::parse(&settings.text()).unwrap();
        assert_eq!((config.roles, config.roles_are_written), (roles, true));
        assert_eq!(config.implementation.test_command.as_deref(), Some("a \"b\" \\"));
        assert_eq!(config.implementation.lint_command, None);
        assert!(!settings.text().contains("e.g. test_command"));
        assert!(settings.text().contains("e.g. lint_command"));
    }

    #[test]
    fn what_init_wrote_is_recognized_until_it_is_edited() {
        let roles = Roles::among(&[AgentKind::Codex, AgentKind::Claude]).unwrap();
        let found = commands("cargo test");
        for players in [Players::Default, Players::Builtin, Players::Agents(roles)] {
            for commands in [Commands::default(), found.clone()] {
                let text = Settings { players, commands }.text();
                assert!(wrote(&text, &found), "{text}");
                assert!(!wrote(&text.replace("ceremony", "ceremonY"), &found));
                assert!(!wrote(&format!("{text}\n[git]\ncommit = \"layer\"\n"), &found));
            }
        }
        let text = Settings { players: Players::Agents(roles), commands: found.clone() }.text();
        assert!(!wrote(&text.replace("cargo test", "cargo test -q"), &found));
        assert!(!wrote(&text.replace("reviewer = \"codex\"", "reviewer = \"claude\""), &found));
        assert!(!wrote("", &found) && !wrote("[", &found));
    }
}
