//! The real CLIs against the scripted models.
//!
//! They must be installed: `cargo xtask test --only npm`.
#![allow(clippy::unwrap_used, reason = "all of it is tests, also the functions without #[test]")]

mod answers;
mod faults;
mod record;
mod sessions;
mod tools;

use real_agents::{Cli, McpServer, Sandbox};
use scripted_models::{Recorded, Reply, RequestKind, Rule, Script};
use serde_json::json;

use real_agents::for_every_cli;

/// The notes server, writing to the sandbox's `notes` folder.
fn notes(sandbox: &Sandbox) -> McpServer {
    let folder = sandbox.root().join("notes");
    std::fs::create_dir_all(&folder).unwrap();
    McpServer {
        name: "agentd".to_owned(),
        command: env!("CARGO_BIN_EXE_notes-mcp").into(),
        arguments: vec![folder.to_str().unwrap().to_owned()],
    }
}

/// How many requests were the CLI's own.
fn side_requests(records: &[Recorded]) -> usize {
    let requests = records.iter().filter_map(|record| record.request.as_ref());
    requests.filter(|request| request.kind == RequestKind::Side).count()
}

/// Writes `hello.txt` and copies it to `copy.txt`, by the CLI's own tools.
fn work(cli: Cli) -> Script {
    let copy = "cp hello.txt copy.txt";
    let (write, run) = match cli {
        Cli::Gemini => (
            ("write_file", json!({"file_path": "${cwd}/hello.txt", "content": "hello\n"})),
            ("run_shell_command", json!({"command": copy})),
        ),
        Cli::Codex => (
            (
                "apply_patch",
                json!("*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch\n"),
            ),
            ("exec_command", json!({"cmd": copy})),
        ),
        Cli::Claude => (
            ("Write", json!({"file_path": "${cwd}/hello.txt", "content": "hello\n"})),
            ("Bash", json!({"command": copy})),
        ),
    };
    Script::new().rule(
        Rule::new()
            .reply(Reply::call(write.0, write.1).saying("I write."))
            .reply(Reply::call(run.0, run.1).saying("I run."))
            .reply(Reply::text("Done.")),
    )
}
