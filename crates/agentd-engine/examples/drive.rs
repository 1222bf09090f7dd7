//! A small program around the runner, for tests and measurements: it is to the
//! runner what agentd is, and can be killed like it.
//!
//! `drive __supervise …` is the supervisor. `drive CLI PROJECT PROGRAM ARG…` makes one
//! call of PROGRAM as if it were the CLI, prints a line when it has started and the
//! outcome as JSON at the end. `drive decode CLI FILE` only decodes, and prints MB per
//! second of processor time.
#![expect(clippy::print_stdout, reason = "that is what it is for")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use agentd_core::agent::{AgentKind, Role, Transport};
use agentd_core::event::AgentEvent;
use agentd_core::ids::ChangeId;
use agentd_core::provider::{AgentRequest, FoundInProject, Session, Surroundings, provider};
use agentd_core::step_name::StepName;
use agentd_engine::agents::run_record::RecordLimits;
use agentd_engine::agents::runner::{Retry, Runner, Spending};
use agentd_engine::opening::open_root;
use agentd_engine::process::{Cancel, Limits, SUPERVISE, Supervisor, supervise};
use agentd_engine::store::{Holder, UserDirs};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|arg| arg == SUPERVISE).is_some() {
        return supervise(args);
    }
    let args: Vec<String> = args.filter_map(|arg| arg.into_string().ok()).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["decode", cli, file] => decode(cli, file),
        [cli, project, program, ..] => call(cli, project, program, &args[3..]),
        _ => Err("usage: drive CLI PROJECT PROGRAM ARG…".into()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            println!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn request(project: &str, program: &str) -> Result<AgentRequest, Box<dyn std::error::Error>> {
    let change = ChangeId::new("add-oauth")?;
    Ok(AgentRequest {
        role: Role::Planner,
        change,
        step: StepName::ProposalGen,
        prompt: std::env::var("DRIVE_PROMPT").unwrap_or_else(|_| "hello\n".into()),
        project_root: project.into(),
        private_dir: PathBuf::from(project).join(".calls/call"),
        program: program.into(),
        extra_args: vec![],
        extra_env: vec![],
        extra_state: vec![],
        env_names: vec![],
        model: None,
        effort: None,
        session: Session::Fresh,
        mcp: None,
        surroundings: Surroundings::default(),
        found: FoundInProject::default(),
    })
}

fn call(
    cli: &str,
    project: &str,
    program: &str,
    args: &[String],
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let kind: AgentKind = cli.parse()?;
    let mut request = request(project, program)?;
    request.extra_args.push("--".into());
    request.extra_args.extend(args.iter().cloned());
    let cancel = Cancel::new()?;
    cancel.on_signals()?;
    let runner = Runner {
        supervisor: Supervisor::this_program()?,
        environment: std::env::vars_os().collect(),
        retry: Retry { retries: 0, ..Retry::default() },
        record: RecordLimits::default(),
        cancel,
        sandbox: None,
        spending: Spending::default(),
        warm: std::sync::Arc::default(),
        estimate_usd: None,
        carrier: None,
    };
    let limits = Limits { grace: Duration::from_millis(500), ..Limits::default() };
    let holder = || Holder::this_process("drive", jiff::Timestamp::UNIX_EPOCH);
    let project = open_root(project.as_ref(), UserDirs::from_env(), &holder)?.project;
    let id = &request.change;
    let change = project.change(id).or_else(|_| project.create_change(id))?;
    let mut events = 0_u64;
    let mut started = false;
    let mut observer = |_: &AgentEvent<'_>| {
        events += 1;
        if !started {
            started = true;
            println!("started");
        }
    };
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let report =
        runner.call(&*provider(kind, Transport::Cli), &request, &change, limits, &mut observer)?;
    let took = start.elapsed();
    let outcome = report.outcome().ok_or("no attempt")?;
    println!("{}", serde_json::to_string(outcome)?);
    let cpu = cpu_seconds() - cpu;
    println!("events {events}, {took:?}, cpu {cpu:.3} s, peak memory {} kB", peak_memory());
    Ok(if outcome.reported_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The processor time of this thread: on a busy machine the clock on the wall says
/// nothing about the code.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos: f64 = text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(f64::NAN);
    nanos / 1e9
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map(|line| line.trim().trim_end_matches(" kB").to_owned()).unwrap_or_default()
}

fn decode(cli: &str, file: &str) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let kind: AgentKind = cli.parse()?;
    let text = std::fs::read_to_string(file)?;
    let mut decoder = provider(kind, Transport::Cli).decoder(&request("/", "x")?);
    let mut events = 0_u64;
    let start = cpu_seconds();
    for line in text.lines() {
        decoder.line(line, &mut |_| events += 1);
    }
    let seconds = cpu_seconds() - start;
    #[expect(clippy::cast_precision_loss, reason = "a measurement")]
    let megabytes = text.len() as f64 / 1e6;
    println!("{megabytes:.0} MB, {events} events, {:.0} MB/s", megabytes / seconds);
    Ok(ExitCode::SUCCESS)
}
