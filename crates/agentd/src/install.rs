//! What `init` puts into a project and `uninstall` takes out again. Everything
//! is computed from what is there; nothing that a person wrote is touched.

mod codex;
mod settings;
mod workflows;

use agentd_core::agent::AgentKind;
use agentd_core::config::{self, Config};
use agentd_core::layout;
use agentd_core::managed_block::{self, BEGIN, END, Unclosed};
use agentd_core::rel_path::RelPath;
use agentd_core::text::head;
use agentd_engine::insight::toolchain::Commands;
use agentd_engine::store::{EntryKind, ProjectDir, StoreError};
use serde_json::{Map, Value, json};

pub(crate) use settings::{Players, Settings};

/// What agentd says in CLAUDE.md and its like.
const BLOCK: &str = include_str!("../assets/agents_block.md");
const PROJECT: &str = include_str!("../assets/project.md");

/// What happens to one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileChange {
    pub(crate) path: RelPath,
    pub(crate) action: FileAction,
}

/// What is done, or why nothing is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileAction {
    Create(String),
    Update(String),
    Remove,
    Unchanged,
    /// The file is in a shape that agentd does not touch.
    Leave(String),
}

impl FileAction {
    /// The word for it, done or about to be done.
    pub(crate) fn verb(&self, dry_run: bool) -> &'static str {
        match self {
            Self::Create(_) if dry_run => "create",
            Self::Create(_) => "created",
            Self::Update(_) if dry_run => "update",
            Self::Update(_) => "updated",
            Self::Remove if dry_run => "remove",
            Self::Remove => "removed",
            Self::Unchanged => "unchanged",
            Self::Leave(_) => "left",
        }
    }
}

/// What `init` does.
pub(crate) fn install(
    dir: &ProjectDir,
    agents: &[AgentKind],
    settings: &Settings,
) -> Result<Vec<FileChange>, StoreError> {
    let mut changes = Vec::new();
    for (path, text) in own_files(settings) {
        let action = if !dir.is_file(&path)? {
            FileAction::Create(text)
        } else if path == layout::config() && text != config::TEMPLATE && is_unset(dir) {
            FileAction::Update(text)
        } else {
            FileAction::Unchanged
        };
        changes.push(FileChange { path, action });
    }
    let before = read(dir, &layout::gitignore())?.unwrap_or_default();
    let ignored = with_ignored(&before, commits_runs(dir)?);
    changes.push(changed(layout::gitignore(), &before, ignored));
    let mut add = |change: FileChange| {
        // Most agents read AGENTS.md and .agents/skills.
        if changes.iter().all(|known: &FileChange| known.path != change.path) {
            changes.push(change);
        }
    };
    for agent in agents {
        if let Some(path) = context_file(*agent)? {
            add(theirs(dir, path, with_block));
        }
        if let Some(file) = mcp_file(*agent)? {
            add(theirs(dir, file.path, file.with));
        }
        for file in workflows::files(*agent)? {
            let with = |old: Option<&str>| workflows::with_workflow(old, &file.text);
            add(theirs(dir, file.path, with));
        }
    }
    Ok(changes)
}

/// Whether `init` decides what is in config.toml: it is not there, or nobody has set anything in
/// it yet.
pub(crate) fn is_unset(dir: &ProjectDir) -> bool {
    match read(dir, &layout::config()) {
        Ok(text) => text.is_none_or(|text| text == config::TEMPLATE),
        Err(_) => false,
    }
}

/// Whether the project wants the records of runs in git. A config that cannot be read says
/// nothing about it.
fn commits_runs(dir: &ProjectDir) -> Result<bool, StoreError> {
    let config = read(dir, &layout::config())?.and_then(|text| Config::parse(&text).ok());
    Ok(config.is_some_and(|config| config.git.commit_runs))
}

/// The text of `agentd/.gitignore` with what must be in it, and without the runs where they
/// are wanted in git.
fn with_ignored(before: &str, commit_runs: bool) -> String {
    let is_unwanted = |line: &str| commit_runs && layout::GITIGNORE_RUNS.contains(&line.trim());
    let mut ignored: String =
        before.split_inclusive('\n').filter(|line| !is_unwanted(line)).collect();
    for line in layout::GITIGNORE_LINES {
        if is_unwanted(line) || ignored.lines().any(|there| there.trim() == line) {
            continue;
        }
        if !ignored.is_empty() && !ignored.ends_with('\n') {
            ignored.push('\n');
        }
        ignored.push_str(line);
        ignored.push('\n');
    }
    ignored
}

/// What `uninstall` does: only what is still as `init` wrote it goes.
/// `detected` are the commands that `init` would find.
pub(crate) fn uninstall(
    dir: &ProjectDir,
    detected: &Commands,
) -> Result<Vec<FileChange>, StoreError> {
    let mut changes = Vec::new();
    for agent in AgentKind::CLIS {
        let gone = |without: fn(&str) -> FileAction| {
            move |old: Option<&str>| old.map_or(FileAction::Unchanged, without)
        };
        if let Some(path) = context_file(agent)? {
            changes.push(theirs(dir, path, gone(without_block)));
        }
        if let Some(file) = mcp_file(agent)? {
            changes.push(theirs(dir, file.path, gone(file.without)));
        }
        for file in workflows::files(agent)? {
            changes.push(theirs(dir, file.path, gone(workflows::without_workflow)));
        }
    }
    changes.retain(|change| change.action != FileAction::Unchanged);
    let edited = || FileAction::Leave("it was edited".to_owned());
    for (path, text) in own_files(&Settings::default()) {
        if let Some(old) = read(dir, &path)? {
            let is_config = path == layout::config();
            let is_ours = old == text || (is_config && settings::wrote(&old, detected));
            let action = if is_ours { FileAction::Remove } else { edited() };
            changes.push(FileChange { path, action });
        }
    }
    if let Some(old) = read(dir, &layout::gitignore())? {
        // Earlier versions wrote fewer lines.
        let is_ours = old.lines().all(|line| layout::GITIGNORE_LINES.contains(&line));
        let action = if is_ours { FileAction::Remove } else { edited() };
        changes.push(FileChange { path: layout::gitignore(), action });
    }
    Ok(changes)
}

/// What happens to a file of the user's. One that agentd cannot read or may not
/// follow (a link to somewhere else, another encoding) is left, not an error.
fn theirs(
    dir: &ProjectDir,
    path: RelPath,
    change: impl Fn(Option<&str>) -> FileAction,
) -> FileChange {
    let linked = matches!(dir.kind(&path), Ok(Some(EntryKind::Symlink)));
    let action = match read(dir, &path) {
        Ok(None) if linked => FileAction::Leave("it is a link to nothing".to_owned()),
        Ok(old) => change(old.as_deref()),
        Err(error) => FileAction::Leave(error.to_string()),
    };
    let action = match action {
        FileAction::Remove if linked => FileAction::Leave("it is a link".to_owned()),
        action => action,
    };
    FileChange { path, action }
}

/// Takes out the directories that `init` made, as far as they are empty, and
/// those that `uninstall` has emptied.
pub(crate) fn tidy(dir: &ProjectDir, changes: &[FileChange]) -> Result<(), StoreError> {
    let own = [layout::changes_dir(), layout::main_specs_dir(), layout::locks_dir()];
    let above = |path: &RelPath| path.parent().filter(|parent| *parent != RelPath::root());
    let removed = changes.iter().filter(|change| change.action == FileAction::Remove);
    let emptied =
        removed.flat_map(|change| std::iter::successors(above(&change.path), |path| above(path)));
    for path in own.into_iter().chain(emptied) {
        dir.remove_empty_dir(&path)?;
    }
    Ok(())
}

/// Carries the changes out.
pub(crate) fn apply(dir: &ProjectDir, changes: &[FileChange]) -> Result<(), StoreError> {
    for change in changes {
        match &change.action {
            FileAction::Create(text) | FileAction::Update(text) => {
                dir.write_atomic(&change.path, text.as_bytes())?;
            }
            FileAction::Remove => dir.remove_file(&change.path)?,
            FileAction::Unchanged | FileAction::Leave(_) => {}
        }
    }
    Ok(())
}

fn own_files(settings: &Settings) -> [(RelPath, String); 2] {
    [(layout::config(), settings.text()), (layout::project_context(), PROJECT.to_owned())]
}

/// The file that an agent reads at the start of every session.
fn context_file(agent: AgentKind) -> Result<Option<RelPath>, StoreError> {
    Ok(match agent {
        AgentKind::Claude => Some(RelPath::new("CLAUDE.md")?),
        AgentKind::Codex | AgentKind::Named(_) => Some(RelPath::new("AGENTS.md")?),
        AgentKind::Gemini => Some(RelPath::new("GEMINI.md")?),
        AgentKind::Builtin | AgentKind::Replay => None,
    })
}

/// The file in which an agent looks for the MCP servers of a project, and how the entry for
/// agentd gets into it and out of it.
struct McpFile {
    path: RelPath,
    with: fn(Option<&str>) -> FileAction,
    without: fn(&str) -> FileAction,
}

fn mcp_file(agent: AgentKind) -> Result<Option<McpFile>, StoreError> {
    let json = |path: &str| {
        Ok(Some(McpFile {
            path: RelPath::new(path)?,
            with: with_mcp_entry,
            without: without_mcp_entry,
        }))
    };
    match agent {
        AgentKind::Claude => json(".mcp.json"),
        AgentKind::Gemini => json(".gemini/settings.json"),
        AgentKind::Codex => Ok(Some(McpFile {
            path: RelPath::new(".codex/config.toml")?,
            with: codex::with_entry,
            without: codex::without_entry,
        })),
        // Each has a format of its own; those that agentd runs need no entry.
        AgentKind::Builtin | AgentKind::Replay | AgentKind::Named(_) => Ok(None),
    }
}

fn read(dir: &ProjectDir, path: &RelPath) -> Result<Option<String>, StoreError> {
    match dir.read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn changed(path: RelPath, old: &str, new: String) -> FileChange {
    let action = if new == old {
        FileAction::Unchanged
    } else if old.is_empty() {
        FileAction::Create(new)
    } else {
        FileAction::Update(new)
    };
    FileChange { path, action }
}

fn block() -> String {
    format!("{BEGIN}\n{}\n{END}\n", BLOCK.trim_end())
}

fn with_block(old: Option<&str>) -> FileAction {
    let Some(old) = old else { return FileAction::Create(block()) };
    match managed_block::find(old) {
        Some(Err(Unclosed)) => FileAction::Leave(format!("its agentd block has no `{END}`")),
        Some(Ok(range)) => {
            let mut new = old.to_owned();
            new.replace_range(range, &block());
            if new == old { FileAction::Unchanged } else { FileAction::Update(new) }
        }
        None => {
            let gap = match () {
                () if old.is_empty() || old.ends_with("\n\n") => "",
                () if old.ends_with('\n') => "\n",
                () => "\n\n",
            };
            FileAction::Update(format!("{old}{gap}{}", block()))
        }
    }
}

fn without_block(old: &str) -> FileAction {
    match managed_block::find(old) {
        None => FileAction::Unchanged,
        Some(Err(Unclosed)) => FileAction::Leave(format!("its agentd block has no `{END}`")),
        Some(Ok(range)) if old[range.clone()] != block() => {
            FileAction::Leave("its agentd block was edited".to_owned())
        }
        Some(Ok(range)) => {
            let mut new = old.to_owned();
            // The empty line that `init` put in front goes too.
            let start =
                if old[..range.start].ends_with("\n\n") { range.start - 1 } else { range.start };
            new.replace_range(start..range.end, "");
            if new.trim().is_empty() { FileAction::Remove } else { FileAction::Update(new) }
        }
    }
}

fn mcp_entry() -> Value {
    json!({ "command": "agentd", "args": ["mcp"] })
}

const NOT_JSON: &str =
    "it is not plain JSON; add the server `agentd` with the command `agentd mcp` by hand";

fn with_mcp_entry(old: Option<&str>) -> FileAction {
    let text = old.unwrap_or("{}");
    let parsed: Result<Map<String, Value>, _> =
        serde_json::from_str(if text.trim().is_empty() { "{}" } else { text });
    let Ok(mut settings) = parsed else { return FileAction::Leave(NOT_JSON.to_owned()) };
    let servers = settings.entry("mcpServers").or_insert_with(|| json!({}));
    let Some(servers) = servers.as_object_mut() else {
        return FileAction::Leave(NOT_JSON.to_owned());
    };
    if let Some(entry) = servers.get("agentd") {
        // Whatever it says: if a person has changed it, they had a reason. But the file may
        // have come with the repository, and agents run what it names.
        return match entry {
            entry if *entry == mcp_entry() => FileAction::Unchanged,
            entry => FileAction::Leave(other_entry(entry)),
        };
    }
    servers.insert("agentd".to_owned(), mcp_entry());
    let new = pretty(&settings, text);
    if old.is_none() { FileAction::Create(new) } else { FileAction::Update(new) }
}

/// What an entry runs that is not the one that `init` writes.
fn other_entry(entry: &Value) -> String {
    let words = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<&str> = entry["command"].as_str().into_iter().chain(words).collect();
    let runs = match words.as_slice() {
        [] => head(&entry.to_string(), 200).to_owned(),
        words => head(&words.join(" "), 200).to_owned(),
    };
    let and = if entry.get("env").is_some() { " with variables of its own" } else { "" };
    format!("its `agentd` entry differs: it runs `{runs}`{and}, not `agentd mcp`")
}

fn without_mcp_entry(old: &str) -> FileAction {
    let Ok(mut settings) = serde_json::from_str::<Map<String, Value>>(old) else {
        return FileAction::Leave(NOT_JSON.to_owned());
    };
    let Some(servers) = settings.get_mut("mcpServers").and_then(Value::as_object_mut) else {
        return FileAction::Unchanged;
    };
    match servers.get("agentd") {
        None => return FileAction::Unchanged,
        Some(entry) if *entry != mcp_entry() => {
            return FileAction::Leave("its agentd entry was edited".to_owned());
        }
        Some(_) => {}
    }
    servers.shift_remove("agentd");
    if servers.is_empty() {
        settings.shift_remove("mcpServers");
    }
    if settings.is_empty() {
        FileAction::Remove
    } else {
        FileAction::Update(pretty(&settings, old))
    }
}

/// JSON with the indentation that the file had.
fn pretty(value: &Map<String, Value>, old: &str) -> String {
    let indent: String = old.lines().find(|line| line.starts_with([' ', '\t'])).map_or_else(
        || "  ".to_owned(),
        |line| line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect(),
    );
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    // Writing a map of values to memory cannot fail.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    let mut text = String::from_utf8(out).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_text(action: &FileAction) -> &str {
        match action {
            FileAction::Create(text) | FileAction::Update(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_block_is_added_once_and_taken_out_without_a_trace() {
        for mine in ["# Mine\n", "# Mine\n\n", "# Mine", "# Mine\r\n"] {
            let added = with_block(Some(mine));
            let text = new_text(&added).to_owned();
            assert!(text.starts_with(mine));
            assert_eq!(with_block(Some(&text)), FileAction::Unchanged);
            let removed = without_block(&text);
            assert_eq!(new_text(&removed).trim_end(), mine.trim_end());
        }
        assert_eq!(without_block(&block()), FileAction::Remove);
    }

    #[test]
    fn runs_are_kept_out_of_git_unless_they_are_wanted() {
        let fresh = with_ignored("", false);
        assert!(fresh.lines().eq(layout::GITIGNORE_LINES));
        assert_eq!(with_ignored(&fresh, false), fresh);
        let wanted = with_ignored(&format!("{fresh}mine"), true);
        let runs = layout::GITIGNORE_RUNS;
        assert!(wanted.lines().all(|line| !runs.contains(&line)) && wanted.ends_with("\nmine"));
        assert_eq!(with_ignored(&wanted, true), wanted);
        // What an earlier version wrote.
        assert_eq!(with_ignored("/.locks/\n/.agents/\n.agentd-tmp-*\n", false), fresh);
    }

    #[test]
    fn an_edited_or_broken_block_is_left() {
        let edited = block().replace(END, &format!("mine\n{END}"));
        assert!(matches!(without_block(&edited), FileAction::Leave(_)));
        assert!(matches!(with_block(Some("<!-- agentd:begin -->\nx")), FileAction::Leave(_)));
    }

    #[test]
    fn an_mcp_entry_is_merged_and_taken_out() {
        let mine = "{\n    \"a\": [1],\n    \"mcpServers\": {\n        \"other\": {}\n    }\n}\n";
        let with = with_mcp_entry(Some(mine));
        let text = new_text(&with).to_owned();
        assert!(text.contains("    \"a\": [\n        1\n    ]"), "{text}");
        assert!(text.contains("\"other\"") && text.contains("\"agentd\""));
        assert_eq!(with_mcp_entry(Some(&text)), FileAction::Unchanged);
        let back: Value = serde_json::from_str(new_text(&without_mcp_entry(&text))).unwrap();
        assert_eq!(back, serde_json::from_str::<Value>(mine).unwrap());
        // Attack L8: a repository may bring an entry of its own.
        for (entry, reported) in [
            ("{\"command\": \"./evil.sh\"}", "it runs `./evil.sh`, not"),
            ("{\"command\": \"sh\", \"args\": [\"-c\", \"x\"]}", "it runs `sh -c x`, not"),
            (
                "{\"command\": \"agentd\", \"args\": [\"mcp\"], \"env\": {\"PATH\": \".\"}}",
                "it runs `agentd mcp` with variables of its own",
            ),
            ("{\"url\": \"http://x\"}", "it runs `{\"url\":\"http://x\"}`"),
        ] {
            let text = format!("{{\"mcpServers\": {{\"agentd\": {entry}}}}}");
            let FileAction::Leave(why) = with_mcp_entry(Some(&text)) else { panic!("{entry}") };
            assert!(why.contains(reported), "{why}");
        }
        let fresh = with_mcp_entry(None);
        assert_eq!(without_mcp_entry(new_text(&fresh)), FileAction::Remove);
        for odd in ["// c\n{}", "[]", "{\"mcpServers\": 3}", "{"] {
            assert!(matches!(with_mcp_entry(Some(odd)), FileAction::Leave(_)), "{odd}");
        }
    }
}
