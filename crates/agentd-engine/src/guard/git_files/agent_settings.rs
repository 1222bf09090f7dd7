//! Settings from which agents take permissions and commands to run, in the project and in the
//! user's home: anyone who writes there decides what the next call does, outside of the sandbox.
//!
//! Documents that agents only read (CLAUDE.md, GEMINI.md, AGENTS.md) are not among them: a task
//! may edit those.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use agentd_core::agent::AgentKind;
use agentd_core::known_agent::KNOWN;
use serde_json::{Map, Value};

use crate::git::runnable::Runnable;

/// Settings of a project that are nobody's alone.
const PROJECT_FILES: [&str; 2] = [".mcp.json", "agentd/config.toml"];
const PROJECT_DIRS: [&str; 1] = [".agents/skills"];

/// Whose settings in the home directory are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Homes {
    /// Those of the agent that is called: it cannot write to those of others, which change while
    /// other calls run.
    Of(AgentKind),
    /// Those of all agents.
    All,
}

/// The places of settings.
#[derive(Debug, Default)]
pub(super) struct AgentSettings {
    pub(super) files: BTreeSet<PathBuf>,
    pub(super) dirs: BTreeSet<PathBuf>,
    /// Files of which only some values are watched: the CLI itself writes the others.
    pub(super) parts: BTreeSet<PathBuf>,
}

impl AgentSettings {
    /// The settings for a worktree and an environment. The directories of the user's settings
    /// are added to the places that the snapshot may enter.
    pub(super) fn of(
        runnable: &mut Runnable,
        environment: &[(OsString, OsString)],
        homes: Homes,
    ) -> Self {
        let mut found = Self::default();
        let Some(work_tree) = runnable.roots.first().cloned() else { return found };
        let files = KNOWN.iter().flat_map(|row| row.project.0).chain(&PROJECT_FILES);
        found.files.extend(files.map(|file| work_tree.join(file)));
        let dirs = KNOWN.iter().flat_map(|row| row.project.1).chain(&PROJECT_DIRS);
        found.dirs.extend(dirs.map(|dir| work_tree.join(dir)));
        let variable = |wanted: &str| {
            let set = environment.iter().rfind(|(name, value)| name == wanted && !value.is_empty());
            set.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
        };
        let home = variable("HOME");
        let is_watched = |agent: AgentKind| homes == Homes::All || homes == Homes::Of(agent);
        let rows = KNOWN.iter().filter(|row| row.name.parse().is_ok_and(is_watched));
        for of in rows.filter_map(|row| row.settings) {
            let named = variable(of.variable.0).map(|dir| dir.join(of.variable.1));
            let Some(dir) = named.or_else(|| home.as_ref().map(|home| home.join(of.directory)))
            else {
                continue;
            };
            // The CLI creates what does not exist yet; the way to it is the user's own.
            let Some(dir) = real(&dir) else { continue };
            found.files.extend(of.files.iter().map(|file| dir.join(file)));
            found.dirs.extend(of.dirs.iter().map(|name| dir.join(name)));
            runnable.roots.push(dir);
        }
        if !is_watched(AgentKind::Claude) {
            return found;
        }
        let of_claude = variable("CLAUDE_CONFIG_DIR").or(home);
        let file = of_claude.map(|dir| dir.join(".claude.json"));
        found.parts.extend(file.and_then(|file| fs::canonicalize(file).ok()));
        found
    }
}

/// The directory without links on the way to it, whether it exists or not.
fn real(dir: &Path) -> Option<PathBuf> {
    let there = dir.ancestors().find_map(|dir| Some((dir, fs::canonicalize(dir).ok()?)));
    let (there, real) = there?;
    let missing = dir.strip_prefix(there).ok()?;
    Some(missing.components().fold(real, |dir, part| dir.join(part)))
}

/// The keys of a project in `.claude.json` that give permissions or name programs.
const PROJECT_KEYS: [&str; 6] = [
    "mcpServers",
    "allowedTools",
    "enabledMcpjsonServers",
    "disabledMcpjsonServers",
    "hasTrustDialogAccepted",
    "hasClaudeMdExternalIncludesApproved",
];

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The values in a `.claude.json` that decide something. Empty ones are left out: the CLI creates
/// an empty entry for each project. The CLI may be able to read a text that we cannot, since half
/// of a surrogate pair is fine in JavaScript; so such a text equals no other.
pub(super) fn deciding(text: &[u8]) -> Value {
    let Ok(whole) = serde_json::from_slice::<Value>(text) else {
        return Value::String(String::from_utf8_lossy(text).into_owned());
    };
    let mut found = Map::new();
    found.extend(
        whole
            .get("mcpServers")
            .filter(|v| says_something(v))
            .map(|v| ("mcpServers".to_owned(), v.clone())),
    );
    let mut projects = Map::new();
    for (path, project) in whole.get("projects").and_then(Value::as_object).into_iter().flatten() {
        let kept = PROJECT_KEYS.iter().filter_map(|key| {
            let value = project.get(*key).filter(|value| says_something(value))?;
            Some(((*key).to_owned(), value.clone()))
        });
        let kept: Map<String, Value> = kept.collect();
        if !kept.is_empty() {
            projects.insert(path.clone(), Value::Object(kept));
        }
    }
    found.insert("projects".to_owned(), Value::Object(projects));
    Value::Object(found)
}

/// The text with those values as they were, and everything else as it is. None if it is no
/// longer JSON.
pub(super) fn with_deciding(text: &[u8], was: &Value) -> Option<Vec<u8>> {
    let mut whole: Value = serde_json::from_slice(text).ok()?;
    let root = whole.as_object_mut()?;
    set(root, "mcpServers", was.get("mcpServers"));
    let before = was.get("projects").and_then(Value::as_object);
    let paths = before.into_iter().flatten().map(|(path, _)| path.clone());
    let projects = root.entry("projects").or_insert_with(|| Value::Object(Map::new()));
    let projects = projects.as_object_mut()?;
    for path in paths.chain(projects.keys().cloned().collect::<Vec<_>>()).collect::<BTreeSet<_>>() {
        let old = before.and_then(|projects| projects.get(&path));
        let Some(project) =
            projects.entry(path).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
        else {
            continue;
        };
        for key in PROJECT_KEYS {
            set(project, key, old.and_then(|old| old.get(key)));
        }
    }
    serde_json::to_vec_pretty(&whole).ok()
}

fn set(object: &mut Map<String, Value>, key: &str, was: Option<&Value>) {
    match was {
        Some(was) => {
            object.insert(key.to_owned(), was.clone());
        }
        None if object.get(key).is_some_and(says_something) => {
            object.shift_remove(key);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_clis_locate_their_settings() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for name in ["home", "gemini", "codex"] {
            fs::create_dir(dir.join(name)).unwrap();
        }
        let environment: Vec<(OsString, OsString)> = vec![
            ("HOME".into(), dir.join("home").into()),
            ("GEMINI_CLI_HOME".into(), dir.join("gemini").into()),
            ("CODEX_HOME".into(), dir.join("codex").into()),
        ];
        let mut runnable = Runnable { roots: vec![dir.join("work")], ..Runnable::default() };
        let found = AgentSettings::of(&mut runnable, &environment, Homes::All);
        let listed = |found: AgentSettings| {
            let paths = found.files.iter().chain(&found.dirs);
            let below = paths.map(|path| path.strip_prefix(&dir).unwrap().display().to_string());
            // Those of the others are as many again.
            let shown = ["claude", "gemini", "codex", "agentd/", ".mcp", ".agents"];
            let below = below.filter(|path| shown.iter().any(|name| path.contains(name)));
            below.collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(listed(found), @"
        codex/hooks.json
        gemini/.gemini/.env
        gemini/.gemini/settings.json
        gemini/.gemini/trustedFolders.json
        home/.claude/plugins/config.json
        home/.claude/plugins/installed_plugins.json
        home/.claude/settings.json
        home/.claude/settings.local.json
        work/.claude/settings.json
        work/.claude/settings.local.json
        work/.gemini/.env
        work/.gemini/settings.json
        work/.mcp.json
        work/agentd/config.toml
        codex/hooks
        codex/prompts
        codex/rules
        gemini/.gemini/agents
        gemini/.gemini/commands
        gemini/.gemini/extensions
        gemini/.gemini/hooks
        gemini/.gemini/policies
        gemini/.gemini/skills
        home/.claude/agents
        home/.claude/commands
        home/.claude/hooks
        home/.claude/skills
        work/.agents/skills
        work/.claude/agents
        work/.claude/commands
        work/.claude/hooks
        work/.claude/plugins
        work/.claude/skills
        work/.codex
        work/.gemini/agents
        work/.gemini/commands
        work/.gemini/extensions
        work/.gemini/hooks
        work/.gemini/policies
        work/.gemini/skills
        ");
        let found = AgentSettings::of(&mut runnable, &environment, Homes::Of(AgentKind::Gemini));
        insta::assert_snapshot!(listed(found), @"
        gemini/.gemini/.env
        gemini/.gemini/settings.json
        gemini/.gemini/trustedFolders.json
        work/.claude/settings.json
        work/.claude/settings.local.json
        work/.gemini/.env
        work/.gemini/settings.json
        work/.mcp.json
        work/agentd/config.toml
        gemini/.gemini/agents
        gemini/.gemini/commands
        gemini/.gemini/extensions
        gemini/.gemini/hooks
        gemini/.gemini/policies
        gemini/.gemini/skills
        work/.agents/skills
        work/.claude/agents
        work/.claude/commands
        work/.claude/hooks
        work/.claude/plugins
        work/.claude/skills
        work/.codex
        work/.gemini/agents
        work/.gemini/commands
        work/.gemini/extensions
        work/.gemini/hooks
        work/.gemini/policies
        work/.gemini/skills
        ");
    }

    #[test]
    fn only_relevant_settings_are_compared_and_restored() {
        let was = br#"{"numStartups":1,"mcpServers":{"a":{"command":"a"}},"projects":{"/p":{"allowedTools":["x"],"lastCost":1}}}"#;
        let honest = br#"{"numStartups":2,"mcpServers":{"a":{"command":"a"}},"projects":{"/p":{"allowedTools":["x"],"lastCost":2},"/q":{"allowedTools":[],"hasTrustDialogAccepted":false}}}"#;
        assert_eq!(deciding(was), deciding(honest));
        let forged = br#"{"numStartups":3,"mcpServers":{"evil":{"command":"e"}},"projects":{"/p":{"allowedTools":["Bash"],"lastCost":3},"/r":{"hasTrustDialogAccepted":true}}}"#;
        let back = with_deciding(forged, &deciding(was)).unwrap();
        assert_eq!(deciding(&back), deciding(was));
        let back: Value = serde_json::from_slice(&back).unwrap();
        assert_eq!(
            (&back["numStartups"], &back["projects"]["/p"]["lastCost"]),
            (&3.into(), &3.into())
        );
        assert_eq!(with_deciding(b"nonsense", &deciding(was)), None);
        assert_ne!(deciding(b"nonsense"), deciding(was));
        for unread in [r#"{"x":"\ud800","mcpServers":{"e":{}}}"#, "\u{feff}{}", r#"{"x":1e999}"#] {
            assert_ne!(deciding(unread.as_bytes()), deciding(b"{}"), "{unread}");
        }
    }
}
