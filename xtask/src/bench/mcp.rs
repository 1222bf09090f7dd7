//! `agentd mcp`: its start, its memory, and how much text it sends to a model.

use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;

use super::Bench;
use super::measure::Samples;
use super::report::Report;
use super::report::Row;
use super::report::Unit;
use crate::Result;
use crate::sample_project::Size;

const ROLES: [&str; 4] = ["planner", "challenger", "implementer", "reviewer"];

/// No answer by then is no answer.
const PATIENCE: Duration = Duration::from_secs(5);

const START: &str = "agentd mcp: start to initialize";

/// Adds the rows about the server, or says why there are none.
pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let project = bench.project("mcp", Size { changes: 1, specs: 1 })?;
    let change = only_change(&project)?;
    let server = |role: &str| bench.agentd(&project, &["mcp", "--change", &change, "--role", role]);

    let (idle, relative) = (format!("{START} (best)"), format!("{START} (median)"));
    match starts(bench, &project, &|| server("planner")) {
        Ok((start, version)) => {
            // The first bar is for an idle machine, and this one rarely is.
            report.add(Row::measured(&idle, Unit::Milliseconds, start.best(), 10.0, "10 ms"));
            let limit = 3.0 * version.median();
            let bar = "3x --version";
            let row = Row::measured(&relative, Unit::Milliseconds, start.median(), limit, bar);
            report.add(row.against("agentd --version", version.median()));
        }
        Err(error) => {
            report.add(Row::not_measurable(&idle, "10 ms", error.to_string()));
            report.add(Row::not_measurable(&relative, "3x --version", error.to_string()));
        }
    }
    let mut memory = Err("no server answered".to_owned());
    for role in ROLES {
        let name = format!("tools/list for {role}");
        report.add(match tools(server(role)) {
            Ok((bytes, resident)) => {
                memory = resident.map_err(|error| error.to_string());
                Row::measured(&name, Unit::Kilobytes, bytes, 8.0, "8 kB")
            }
            Err(error) => Row::not_measurable(&name, "8 kB", error.to_string()),
        });
    }
    let name = "agentd mcp: resident memory";
    report.add(match memory {
        Ok(megabytes) => Row::measured(name, Unit::Megabytes, megabytes, 12.0, "12 MB"),
        Err(why) => Row::not_measurable(name, "12 MB", why),
    });
    Ok(())
}

pub(super) fn only_change(project: &Path) -> Result<String> {
    let mut changes = fs::read_dir(project.join("agentd/changes"))?;
    let change = changes.next().ok_or("the sample project has no change")??;
    Ok(change.file_name().to_string_lossy().into_owned())
}

/// Times the server's start and that of `agentd --version`, in turn.
fn starts(
    bench: &Bench,
    project: &Path,
    server: &dyn Fn() -> Command,
) -> Result<(Samples, Samples)> {
    let (mut start, mut version) = (Vec::new(), Vec::new());
    for round in 0..bench.rounds.div_ceil(2) + 2 {
        let begun = Instant::now();
        let mut client = Client::start(server())?;
        client.initialize()?;
        let took = begun.elapsed();
        drop(client);
        let begun = Instant::now();
        bench.agentd(project, &["--version"]).output()?;
        let took_version = begun.elapsed();
        if round >= 2 {
            start.push(took);
            version.push(took_version);
        }
    }
    Ok((Samples::new(start), Samples::new(version)))
}

/// The size of the list of tools in kilobytes, and the server's memory then.
fn tools(server: Command) -> Result<(f64, Result<f64>)> {
    let mut client = Client::start(server)?;
    client.initialize()?;
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))?;
    let answer = client.answer(2)?;
    let tools = answer["tools"].as_array().map_or(0, Vec::len);
    if tools == 0 {
        return Err("tools/list names no tool".into());
    }
    // Counted as the model's client gets it: the result, without the envelope.
    let bytes = u32::try_from(answer.to_string().len())?;
    Ok((f64::from(bytes) / 1000.0, peak_resident(client.child.id())))
}

/// The server's peak of resident memory so far, in megabytes.
fn peak_resident(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .map_err(|_| "no /proc on this platform")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes: u32 =
        line.and_then(|line| line.split_whitespace().next()).ok_or("no VmHWM")?.parse()?;
    Ok(f64::from(kibibytes) * 1024.0 / 1_000_000.0)
}

/// The least MCP client that can ask what we want to know.
struct Client {
    child: Child,
    answers: mpsc::Receiver<String>,
}

impl Client {
    fn start(mut server: Command) -> Result<Self> {
        let mut child =
            server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, answers })
    }

    fn initialize(&mut self) -> Result<Value> {
        self.send(&json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "xtask", "version": "0"},
            },
        }))?;
        self.answer(1)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let stdin = self.child.stdin.as_mut().ok_or("no stdin")?;
        writeln!(stdin, "{message}").map_err(|_| "the server reads nothing".into())
    }

    /// The result of a request; notifications that come before it are skipped.
    fn answer(&mut self, id: u32) -> Result<Value> {
        loop {
            let line = self.answers.recv_timeout(PATIENCE).map_err(|error| match error {
                mpsc::RecvTimeoutError::Timeout => "the server does not answer",
                mpsc::RecvTimeoutError::Disconnected => "`agentd mcp` ended without an answer",
            })?;
            let mut message: Value =
                serde_json::from_str(&line).map_err(|_| format!("not JSON on stdout: {line:?}"))?;
            if message["id"] == id {
                return match message["result"].take() {
                    Value::Null => Err(format!("an error: {}", message["error"]).into()),
                    result => Ok(result),
                };
            }
        }
    }
}

impl Drop for Client {
    /// Closes stdin, which must end the server, and sees to it.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(1);
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
