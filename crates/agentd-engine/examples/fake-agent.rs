//! A scripted stand-in for an agent CLI, for what the real ones cannot be made to
//! do on demand. Its arguments are actions, done one after the other:
//!
//! `read` the input to its end · `close-stdin` · `say TEXT` (with a line end) ·
//! `half TEXT` (without) · `err TEXT` · `long BYTES` one line of that length ·
//! `bytes HEX` · `sleep MS` · `forever` · `ignore-term` · `grandchild` that holds the
//! pipes · `daemon` that holds them from a session of its own · `quiet-daemon` ·
//! `events CLI MB` a stream of typical events · `script FILE` prints a file ·
//! `exit CODE` · `kill-self` (exit 137 as a shell would see it) · `pids FILE` appends
//! its own process id · `cwd` · `env NAME`. Arguments of other CLIs before `--` are
//! ignored.
#![expect(clippy::print_stderr, reason = "it plays a program that does")]

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio, exit};
use std::thread::sleep;
use std::time::Duration;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if let Ok(script) = std::env::var("FAKE_AGENT") {
        args = script.split('\u{1f}').map(str::to_owned).collect();
    } else if let Some(dashes) = args.iter().position(|arg| arg == "--") {
        args.drain(..=dashes);
    }
    match act(&mut args.into_iter()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fake-agent: {error}");
            ExitCode::from(99)
        }
    }
}

fn act(args: &mut dyn Iterator<Item = String>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    while let Some(action) = args.next() {
        let mut word = || args.next().ok_or_else(|| io::Error::other("a word is missing"));
        match action.as_str() {
            "read" => {
                io::stdin().read_to_end(&mut Vec::new())?;
            }
            "close-stdin" => rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?,
            "say" => writeln!(out, "{}", word()?)?,
            "half" => write!(out, "{}", word()?)?,
            "err" => eprintln!("{}", word()?),
            "long" => long_line(&mut out, number(&word()?)?)?,
            "bytes" => out.write_all(&hex(&word()?))?,
            "sleep" => {
                out.flush()?;
                sleep(Duration::from_millis(number(&word()?)?));
            }
            "forever" => loop {
                out.flush()?;
                sleep(Duration::from_secs(1));
            },
            "ignore-term" => ignore_term()?,
            "grandchild" => sleeper(Held::Pipes, false)?,
            "daemon" => sleeper(Held::Pipes, true)?,
            "quiet-daemon" => sleeper(Held::Nothing, true)?,
            "events" => {
                let (cli, megabytes) = (word()?, number(&word()?)?);
                events(&mut out, &cli, megabytes << 20)?;
            }
            "script" => io::copy(&mut std::fs::File::open(word()?)?, &mut out).map(|_| ())?,
            "pids" => {
                let mut file = std::fs::File::options().append(true).create(true).open(word()?)?;
                writeln!(file, "{}", std::process::id())?;
            }
            "cwd" => writeln!(out, "{}", std::env::current_dir()?.display())?,
            "env" => {
                let name = word()?;
                writeln!(out, "{name}={}", std::env::var(&name).unwrap_or_default())?;
            }
            "kill-self" => {
                out.flush()?;
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::KILL)?;
            }
            "exit" => {
                out.flush()?;
                #[expect(clippy::exit, reason = "that is the action")]
                exit(i32::try_from(number(&word()?)?).unwrap_or(1));
            }
            // The last argument of codex.
            "-" => {}
            other => return Err(io::Error::other(format!("unknown action {other}"))),
        }
        out.flush()?;
    }
    Ok(())
}

fn number(text: &str) -> io::Result<u64> {
    text.parse().map_err(io::Error::other)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte =
        |pair: &[u8]| std::str::from_utf8(pair).ok().map(|pair| u8::from_str_radix(pair, 16));
    digits.chunks(2).filter_map(byte).flatten().collect()
}

fn long_line(out: &mut impl io::Write, mut bytes: u64) -> io::Result<()> {
    let block = vec![b'x'; 1 << 16];
    while bytes > 0 {
        let size = bytes.min(block.len() as u64);
        out.write_all(&block[..usize::try_from(size).unwrap_or(0)])?;
        bytes -= size;
    }
    out.write_all(b"\n")
}

/// A process that ignores TERM and INT is one that blocks or handles them; handling
/// is what real CLIs do.
fn ignore_term() -> io::Result<()> {
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, std::sync::Arc::clone(&seen))?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Held {
    Pipes,
    Nothing,
}

/// Leaves a process behind that sleeps for long and whose parent is gone.
fn sleeper(held: Held, own_session: bool) -> io::Result<()> {
    let mut command = Command::new(if own_session { "setsid" } else { "sleep" });
    if own_session {
        command.args(["--fork", "sleep"]);
    }
    // A time by which tests find it.
    let time = std::env::var("FAKE_SLEEP").unwrap_or_else(|_| "86399".to_owned());
    command.arg(time).stdin(Stdio::null());
    if matches!(held, Held::Nothing) {
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    }
    let _left = command.spawn()?;
    Ok(())
}

/// A typical stream: many short deltas, some tool calls, some long outputs.
fn events(out: &mut impl io::Write, cli: &str, bytes: u64) -> io::Result<()> {
    let code = "fn main() {\\n    println!(\\\"hello\\\");\\n}\\n".repeat(40);
    let text = "The change adds a login flow, and three files are touched by it. ".repeat(2);
    let (start, round, end): (&str, Vec<String>, &str) = match cli {
        "gemini" => (
            r#"{"type":"init","timestamp":"2026-11-15T18:41:48.497Z","session_id":"3f04ffe7","model":"auto"}"#,
            (0..24)
                .map(|n| format!(r#"{{"type":"message","timestamp":"2026-11-15T18:41:48.{n:03}Z","role":"assistant","content":"{text}","delta":true}}"#))
                .chain([
                    r#"{"type":"tool_use","timestamp":"2026-11-15T18:41:49.100Z","tool_name":"mcp_agentd_read_file","tool_id":"mcp_agentd_read_file__1_0","parameters":{"change_id":"add-oauth","path":"src/main.rs"}}"#.to_owned(),
                    format!(r#"{{"type":"tool_result","timestamp":"2026-11-15T18:41:49.200Z","tool_id":"mcp_agentd_read_file__1_0","status":"success","output":"{code}"}}"#),
                ])
                .collect(),
            r#"{"type":"result","timestamp":"t","status":"success","stats":{"total_tokens":10,"input_tokens":6,"output_tokens":4,"cached":0}}"#,
        ),
        "codex" => (
            r#"{"type":"thread.started","thread_id":"01a1e084"}"#,
            (0..6)
                .map(|n| format!(r#"{{"type":"item.completed","item":{{"id":"item_{n}","type":"agent_message","text":"{text}"}}}}"#))
                .chain([
                    r#"{"type":"item.started","item":{"id":"item_9","type":"command_execution","command":"/bin/bash -lc 'cat src/main.rs'","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#.to_owned(),
                    format!(r#"{{"type":"item.completed","item":{{"id":"item_9","type":"command_execution","command":"/bin/bash -lc 'cat src/main.rs'","aggregated_output":"{code}","exit_code":0,"status":"completed"}}}}"#),
                ])
                .collect(),
            r#"{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2,"reasoning_output_tokens":1}}"#,
        ),
        _ => (
            r#"{"type":"system","subtype":"init","session_id":"daa347b4","mcp_servers":[{"name":"agentd","status":"connected"}],"model":"claude-opus-4-8"}"#,
            (0..6)
                .map(|n| format!(r#"{{"type":"assistant","message":{{"id":"msg_{n}","type":"message","role":"assistant","model":"claude-opus-4-8","content":[{{"type":"text","text":"{text}"}}],"stop_reason":null,"usage":{{"input_tokens":1034,"cache_read_input_tokens":200,"output_tokens":1}}}},"parent_tool_use_id":null,"session_id":"daa347b4","uuid":"a-{n}"}}"#))
                .chain([
                    r#"{"type":"assistant","message":{"id":"msg_7","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"mcp__agentd__read_file","input":{"path":"src/main.rs"}}]},"parent_tool_use_id":null,"session_id":"daa347b4"}"#.to_owned(),
                    format!(r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"toolu_1","type":"tool_result","content":"{code}"}}]}},"session_id":"daa347b4","tool_use_result":{{"content":"{code}"}}}}"#),
                ])
                .collect(),
            r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"daa347b4","total_cost_usd":0.02,"usage":{"input_tokens":10,"output_tokens":2}}"#,
        ),
    };
    writeln!(out, "{start}")?;
    let round = round.join("\n") + "\n";
    let block = round.repeat((1 << 20) / round.len() + 1);
    let mut left = bytes;
    while left > 0 {
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        // Whole rounds only.
        let size = size.div_ceil(round.len()).saturating_mul(round.len()).min(block.len());
        out.write_all(&block.as_bytes()[..size])?;
        left = left.saturating_sub(size as u64);
    }
    writeln!(out, "{end}")
}
