//! A minimal MCP server on stdin and stdout, for the CLIs to call.
//!
//! `notes-mcp FOLDER` offers `write_note {name, text}`, which writes a file to
//! the folder, and `fail {}`, which says that it failed.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| io::Error::other("usage: notes-mcp FOLDER"))?;
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        // A message without an id is a notification, which has no answer.
        let Some(id) = message.get("id") else { continue };
        let answer = match answer(&folder, &message) {
            Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            None => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}})
            }
        };
        writeln!(stdout, "{answer}")?;
        stdout.flush()?;
    }
    Ok(())
}

fn answer(folder: &Path, message: &Value) -> Option<Value> {
    match message["method"].as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "notes", "version": "1"},
        })),
        "ping" => Some(json!({})),
        "tools/list" => Some(tools()),
        "tools/call" => Some(call(folder, &message["params"])),
        _ => None,
    }
}

fn tools() -> Value {
    let text = json!({"type": "string"});
    json!({"tools": [
        {
            "name": "write_note",
            "description": "Writes a note.",
            "inputSchema": {
                "type": "object",
                "properties": {"name": text, "text": text},
                "required": ["name", "text"],
            },
        },
        {
            "name": "fail",
            "description": "Fails.",
            "inputSchema": {"type": "object", "properties": {}},
        },
    ]})
}

fn call(folder: &Path, params: &Value) -> Value {
    let arguments = &params["arguments"];
    let written = match (params["name"].as_str(), arguments["name"].as_str()) {
        (Some("write_note"), Some(name)) => {
            let path = folder.join(format!("{name}.md"));
            let text = arguments["text"].as_str().unwrap_or_default();
            std::fs::write(&path, text)
                .map(|()| format!("wrote {} bytes to {name}.md", text.len()))
                .map_err(|error| error.to_string())
        }
        _ => Err("this tool always fails".to_owned()),
    };
    let (text, is_error) = match written {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}
