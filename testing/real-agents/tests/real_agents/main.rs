//! The real CLIs against the scripted models.
//!
//! They must be installed: `cargo run -p real-agents -- install`.

mod answers;
mod faults;
mod record;
mod sessions;
mod tools;

use real_agents::{McpServer, Sandbox};

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
