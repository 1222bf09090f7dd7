//! Work that an implementer does by the CLI's own tools.

use scripted_models::{Reply, Rule, Script};
use serde_json::json;

use crate::Cli;

/// Writes `hello.txt` and copies it to `copy.txt`, by the CLI's own tools.
pub fn work(cli: Cli) -> Script {
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
