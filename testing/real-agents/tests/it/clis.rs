//! The real CLIs against the scripted models.

mod answers;
mod faults;
mod forms;
mod record;
mod sessions;
mod tools;

use real_agents::{McpServer, Sandbox, work};
use scripted_models::{Recorded, RequestKind};

use real_agents::for_every_cli;

/// The notes server, writing to the sandbox's `notes` folder.
fn notes(sandbox: &Sandbox) -> McpServer {
    let folder = sandbox.base().join("notes");
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
