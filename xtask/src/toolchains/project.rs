//! A project with an approved change, and the stand-in that implements it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::Result;
use crate::process;

use super::ToolchainDir;
use super::table::Toolchain;

const CHANGE: &str = "add-dependency";

const STATE: &str = "\
change_id: add-dependency
phase: proposed
created_at: 2026-11-04T10:00:00Z
updated_at: 2026-11-04T10:00:00Z
last_action: proposal
iteration: 0
llm_calls: []
total_cost: 0.0
total_tokens_in: 0
total_tokens_out: 0
";

const PROPOSAL: &str = "\
---
id: add-dependency
type: proposal
version: 1
created_at: 2026-11-04T10:00:00Z
updated_at: 2026-11-04T10:00:00Z
summary: \"Use a library\"
impact:
  scope: minor
  affected_files: 1
  new_files: 0
affected_specs:
  - id: library
    depends: []
---

# Change: add-dependency

## Summary

Use a library from the registry.

## Why

Nobody wants to write it again.

## What Changes

- A dependency

## Impact

- Scope: minor
- Affected specs: `library`
- Affected files: 1
- Affected code: `FILE`
- Breaking changes: none
";

const SPEC: &str = "\
---
id: library
type: spec
title: \"Library\"
version: 1
created_at: 2026-11-04T10:00:00Z
updated_at: 2026-11-04T10:00:00Z
---

# Specification: Library

## Overview

What the library is for.

## Requirements

### R1: Use it

**Priority**: high

The project MUST use the library in 1 test.

## Acceptance Criteria

### Scenario: The tests pass

- **WHEN** the tests of R1 are run
- **THEN** they exit with 0

### Scenario: The library is missing

- **WHEN** the library cannot be found
- **THEN** the tests exit with an error
";

const TASKS: &str = "\
---
change_id: add-dependency
type: tasks
version: 1
created_at: 2026-11-04T10:00:00Z
updated_at: 2026-11-04T10:00:00Z
summary:
  total: 1
  completed: 0
---

# Tasks: add-dependency

## 2. Logic Layer

### Task 2.1: Use the library

```yaml
id: \"2.1\"
action: MODIFY
file: FILE
spec_ref: \"library:R1\"
depends_on: []
status: pending
```

Add it, and test with it.
";

const START: &str = r#"{"type":"system","subtype":"init","session_id":"daa347b4","mcp_servers":[{"name":"agentd","status":"connected"}],"model":"claude-opus-4-8"}"#;
const SAY: &str = r#"{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-opus-4-8","content":[{"type":"text","text":"Done."}]},"session_id":"daa347b4"}"#;
const END: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"daa347b4","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":2}}"#;

/// Writes the files of the project and of its plan, and what runs before.
pub(super) fn create(toolchain: &Toolchain, place: &ToolchainDir) -> Result<()> {
    let root = place.base.join("project");
    for (name, text) in toolchain.files {
        write(&place.base.join("warm").join(name), text)?;
        write(&root.join(name), text)?;
    }
    for (name, text) in toolchain.beside {
        write(&place.base.join(name), text)?;
    }
    if !toolchain.prepare.is_empty() {
        let mut shell = place.command("sh", &place.base);
        process::capture(shell.args(["-ec", toolchain.prepare]))?;
    }
    let config = format!(
        "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\nimplementer = \"claude\"\n\
         reviewer = \"builtin\"\n[workflow]\nscript_retries = 0\n[git]\nworkflow = \"in-place\"\n\
         [implementation]\ntest_command = {}\n[sandbox]\ncaches = \"project\"\n",
        json!(toolchain.test)
    );
    write(&root.join("agentd/config.toml"), &config)?;
    let change = root.join("agentd/changes").join(CHANGE);
    write(&change.join("STATE.yaml"), STATE)?;
    write(&change.join("proposal.md"), &PROPOSAL.replace("FILE", toolchain.changed))?;
    write(&change.join("specs/library.md"), SPEC)?;
    write(&change.join("tasks.md"), &TASKS.replace("FILE", toolchain.changed))?;
    write(&root.join(".gitignore"), &format!("work.log\n{}\n", toolchain.ignored.join("\n")))?;
    stand_in(toolchain, place)
}

/// A stand-in for Claude Code: it works by the commands of the toolchain, ticks its task through
/// the real MCP server, and says how it went.
fn stand_in(toolchain: &Toolchain, place: &ToolchainDir) -> Result<()> {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "stand-in", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let tick = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "complete_task", "arguments": {"change_id": CHANGE, "task_id": "2.1"}}});
    let calls = place.base.join("calls.json");
    write(&calls, &format!("{hello}\n{ready}\n{tick}\n"))?;
    write(
        &place.base.join("work.sh"),
        &format!("set -ex\n{}\n{}\n", toolchain.work, toolchain.test),
    )?;
    let script = format!(
        "#!/bin/sh\ncat > /dev/null\necho '{START}'\n\
         sh '{base}/work.sh' > work.log 2>&1 || exit 1\n\
         '{agentd}' mcp --change {CHANGE} --role implementer --step implement-logic < '{calls}' >> work.log\n\
         echo '{SAY}'\necho '{END}'\n",
        base = place.base.display(),
        agentd = place.agentd.display(),
        calls = calls.display(),
    );
    let path = place.base.join("bin/claude");
    write(&path, &script)?;
    Ok(fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?)
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(fs::write(path, text)?)
}

/// Challenges the plan and implements it, with the real agentd.
pub(super) fn implement(toolchain: &Toolchain, place: &ToolchainDir) -> Result<()> {
    let root = place.base.join("project");
    for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "Start"]] {
        process::capture(place.command("git", &root).args(args))?;
    }
    let log = |error: crate::Error| -> crate::Error {
        let log = fs::read_to_string(root.join("work.log")).unwrap_or_default();
        println!("{log}\n{error}");
        "see above".into()
    };
    for args in [&["challenge", CHANGE, "--trust"][..], &["impl", CHANGE, "--trust"]] {
        process::capture(place.command(&place.agentd, &root).args(args)).map_err(log)?;
    }
    let state = fs::read_to_string(root.join("agentd/changes").join(CHANGE).join("STATE.yaml"))?;
    let caches = caches(place)?;
    let (file, text) = toolchain.shows;
    let there = fs::read_to_string(root.join(file)).unwrap_or_default();
    let facts = [
        (state.contains("phase: complete"), "the change is not complete"),
        (state.contains(toolchain.tested), "the output of the tests does not show that any ran"),
        (there.contains(text), "the dependency is not there"),
        (is_filled(&caches.join(toolchain.cache)), "the cache of the project is empty"),
    ];
    match facts.into_iter().find(|(holds, _)| !holds) {
        None => Ok(()),
        Some((_, what)) => Err(log(format!("{what}\n{state}").into())),
    }
}

/// The caches of the project: the only one that this user has.
fn caches(place: &ToolchainDir) -> Result<std::path::PathBuf> {
    let projects = place.home.path().join(".cache/agentd/projects");
    let found = fs::read_dir(&projects)?.flatten().map(|entry| entry.path().join("caches"));
    let found = found.into_iter().find(|path| path.is_dir());
    Ok(found.ok_or_else(|| format!("no caches below {}", projects.display()))?)
}

/// Whether there is something in a directory.
pub(super) fn is_filled(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}
