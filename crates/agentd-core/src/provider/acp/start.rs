//! How each agent is started, how its sessions are opened, and how it is kept from what a
//! repository has for it.

use serde_json::{Value, json};

use crate::agent::AgentKind;
use crate::known_agent::known;
use crate::provider::{
    AgentRequest, CommandSpec, JsonMerge, MCP_SERVER, Session, codex, gemini, path_text,
};

/// The command that starts an agent, and what is to be prepared for it. The command does not
/// differ from call to call: one process serves many.
pub(super) fn command(agent: AgentKind, request: &AgentRequest) -> CommandSpec {
    let mut spec = CommandSpec {
        program: request.program.clone(),
        args: request.extra_args.clone(),
        env: vec![("TMPDIR".to_owned(), path_text(&request.surroundings.tmp_dir))],
        stdin: prompt(agent, request),
        extra_state: request.extra_state.clone(),
        is_dialogue: true,
        ..CommandSpec::default()
    };
    if let Some(row) = known(agent) {
        spec.state = row.state;
        spec.obeys = row.obeys;
        let fixed = row.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        spec.env.extend(fixed);
    }
    match agent {
        AgentKind::Gemini => for_gemini(request, &mut spec),
        AgentKind::Codex => for_codex(request, &mut spec),
        AgentKind::Claude => for_claude(request, &mut spec),
        AgentKind::Named(name) => {
            spec.settings = known(agent).and_then(|row| row.settings);
            match name.as_str() {
                "qwen" => spec.merge = Some(qwen_settings()),
                "opencode" => for_opencode(request, &mut spec),
                _ => {}
            }
        }
        AgentKind::Builtin | AgentKind::Replay => {}
    }
    spec.env.extend(request.extra_env.iter().cloned());
    spec
}

fn set(spec: &mut CommandSpec, name: &str, value: impl Into<String>) {
    spec.env.push((name.to_owned(), value.into()));
}

/// The same settings as for the CLI itself, for the same reasons. Its policies do not know the
/// servers of a session, so tools are allowed when it asks.
fn for_gemini(request: &AgentRequest, spec: &mut CommandSpec) {
    if let Some(model) = &request.model {
        spec.args.extend(["-m".to_owned(), model.clone()]);
    }
    for (name, value) in gemini::TRUSTED_ENV {
        set(spec, name, value);
    }
    spec.merge = Some(gemini::settings(request));
    spec.env_file = Some(gemini::ENV_FILE);
}

/// Its adapter takes settings as JSON.
fn for_codex(request: &AgentRequest, spec: &mut CommandSpec) {
    let around = &request.surroundings;
    let edits = request.role.edits_the_work_tree();
    let mut config = json!({
        // Both together save 5 s at the end of a run without network.
        "analytics": { "enabled": false },
        "features": { "plugins": false },
    });
    if let Some(model) = &request.model {
        config["model"] = json!(model);
    }
    if let Some(effort) = &request.effort {
        config["model_reasoning_effort"] = json!(effort);
    }
    if edits {
        config["sandbox_workspace_write"] = json!({
            "exclude_slash_tmp": !around.private_tmp,
            "network_access": around.network,
            "writable_roots": around.writable.iter().map(|path| path_text(path)).collect::<Vec<_>>(),
        });
    }
    let untrusted = request.found.settings_dirs.iter();
    let untrusted: serde_json::Map<String, Value> =
        untrusted.map(|dir| (path_text(dir), json!({ "trust_level": "untrusted" }))).collect();
    if !untrusted.is_empty() {
        config["projects"] = Value::Object(untrusted);
    }
    set(spec, "CODEX_CONFIG", config.to_string());
    set(spec, "INITIAL_AGENT_MODE", if edits { "workspace-write" } else { "read-only" });
    spec.makes_mounts = true;
}

fn for_claude(request: &AgentRequest, spec: &mut CommandSpec) {
    // No title request, no update check.
    set(spec, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    // Else the first turn may start before agentd's tools are there.
    set(spec, "MCP_CONNECTION_NONBLOCKING", "0");
    set(spec, "CLAUDE_CODE_TMPDIR", path_text(&request.surroundings.tmp_dir));
}

fn for_opencode(request: &AgentRequest, spec: &mut CommandSpec) {
    // What its settings allow by default is asked for, so that the role decides. It ends its turn if
    // the answer is no, so what a role never may is not even offered to its model.
    let rule = if request.role.edits_the_work_tree() { "ask" } else { "deny" };
    let rules = json!({ "edit": rule, "bash": rule, "webfetch": "ask" });
    set(spec, "OPENCODE_PERMISSION", rules.to_string());
    // Nobody reads the titles of sessions, and each costs a request.
    let no_titles = json!({ "agent": { "title": { "disable": true } } });
    set(spec, "OPENCODE_CONFIG_CONTENT", no_titles.to_string());
}

/// Qwen Code is a relative of Gemini CLI: it would run what its settings in a project name.
fn qwen_settings() -> JsonMerge {
    JsonMerge {
        path: ".qwen/settings.json",
        set: vec![(&["privacy", "usageStatisticsEnabled"], json!(false))],
        keep: &[&["context", "fileName"]],
    }
}

/// The params with which a session is opened, but for the id of an earlier one.
pub(super) fn session(agent: AgentKind, request: &AgentRequest) -> Value {
    let servers = request.mcp.iter().map(
        |mcp| json!({ "name": MCP_SERVER, "command": mcp.command, "args": mcp.args, "env": [] }),
    );
    let mut params = json!({
        "cwd": path_text(&request.project_root),
        "mcpServers": servers.collect::<Vec<_>>(),
    });
    if agent == AgentKind::Claude {
        params["_meta"] = claude_options(request);
    }
    params
}

/// What the adapter of Claude Code passes on: the same as the flags of the CLI.
fn claude_options(request: &AgentRequest) -> Value {
    let mut tools = vec!["Read", "Grep", "Glob"];
    if request.role.edits_the_work_tree() {
        tools.extend(["Edit", "Write", "NotebookEdit", "Bash", "TodoWrite"]);
    }
    let mut meta = json!({ "claudeCode": { "options": {
        // Those of the project could run programs, allow tools, and lead the key to another host.
        "settingSources": ["user"],
        "strictMcpConfig": true,
        "tools": tools,
        "allowedTools": [format!("mcp__{MCP_SERVER}__*")],
    } } });
    if let Some(text) = &request.found.instructions {
        let text = format!("# CLAUDE.md, the instructions of this project\n\n{text}");
        meta["systemPrompt"] = json!({ "append": text });
    }
    meta
}

/// The prompt, with instructions of the project that the agent does not read by itself.
pub(super) fn prompt(agent: AgentKind, request: &AgentRequest) -> String {
    let is_resumed = matches!(request.session, Session::Resume { .. });
    match &request.found.instructions {
        Some(text) if agent == AgentKind::Codex && !is_resumed => {
            codex::with_instructions(&request.prompt, text)
        }
        _ => request.prompt.clone(),
    }
}
