//! The command line of `agentd-fleet`, which `agentd fleet` and `agentd worker` start.

use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use agentd_core::carried::WorkerName;
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::text::{Prose, printable};
use clap::{Parser, Subcommand};
use serde_json::{Value, json};

use crate::account::Account;
use crate::engine::git::{GitEngine, PATIENCE};
use crate::engine::postgres::{PostgresEngine, Timing};
use crate::engine::{BudgetScope, Engine, Limit, Signal, Submission};
use crate::error::{FleetError, Result};
use crate::program::{self, ENGINE_VARIABLE};
use crate::repository::Repository;
use crate::screen;
use crate::worker::{self, WorkerOptions};

/// Changes of agentd on many machines.
#[derive(Debug, Parser)]
#[command(name = "agentd-fleet", bin_name = "agentd", version, max_term_width = 100)]
struct Cli {
    /// Run as if it was started in DIR.
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    directory: Option<PathBuf>,

    /// Print exactly one JSON document to stdout.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Give changes to a fleet of workers, and see what becomes of them.
    #[command(
        subcommand,
        after_help = "Examples:\n  agentd fleet submit add-oauth \"Let people sign in with GitHub\"\n  agentd fleet status"
    )]
    Fleet(Fleet),
    Worker(WorkerArgs),
}

/// Where the fleet is.
#[derive(Debug, clap::Args)]
struct EngineArgs {
    /// Server of the fleet, `postgres://…`, or `git` for the remote repository alone. The default is
    /// `AGENTD_FLEET`, or `git`.
    #[arg(long, value_name = "URL")]
    engine: Option<String>,

    /// Remote that the changes are carried over.
    #[arg(long, value_name = "REMOTE", default_value = "origin")]
    remote: String,
}

#[derive(Debug, Subcommand)]
enum Fleet {
    /// Put a change on the list. The same change again is the same change.
    Submit {
        /// Change ID.
        id: String,
        /// What you want.
        description: String,
        /// Which is first: the lower number.
        #[arg(long, value_name = "N", default_value_t = 100, allow_negative_numbers = true)]
        priority: i32,
        /// The most that it may cost, in US dollars.
        #[arg(long, value_name = "USD")]
        budget: Option<f64>,
        /// Don't wait for decisions about the plan.
        #[arg(long)]
        auto: bool,
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Show the changes, workers, accounts and budgets.
    Status {
        /// Show it again every two seconds.
        #[arg(long)]
        watch: bool,
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Begin no further step, of one change or of all. Steps that are running go on.
    Pause {
        /// Change ID; all changes without one.
        id: Option<String>,
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Go on with one change, also after it has failed, or with all.
    Resume {
        /// Change ID; all changes without one.
        id: Option<String>,
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Let all workers finish what they have begun, and end.
    Drain {
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Limit an account over the whole fleet.
    Limit {
        /// Account, such as `claude:team1`.
        account: Account,
        /// How many calls at the same time; 0 for any number.
        #[arg(long, value_name = "N")]
        concurrency: Option<u32>,
        /// How many calls begin per minute; 0 for any number.
        #[arg(long, value_name = "N")]
        rpm: Option<u32>,
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Limit what may be spent: for a change, by this repository, by a team, or per day.
    Budget {
        /// `change:<id>`, `repository`, `day`, or `team:<name>`.
        #[arg(value_name = "SCOPE")]
        scope: String,
        /// The most, in US dollars.
        usd: f64,
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Say what a call has cost that was cut short; without arguments, list such calls.
    Settle {
        /// Call, as listed.
        call: Option<String>,
        /// What it has cost, in US dollars, as the vendor says.
        #[arg(requires = "call")]
        usd: Option<f64>,
        #[command(flatten)]
        engine: EngineArgs,
    },
}

/// Do steps of changes that were submitted, until you stop it.
///
/// Claims one step at a time for each slot, does it with `agentd step` in a clone of its own, and pushes
/// what comes of it. Keys of agents stay on this machine. Ctrl-C lets running steps end; a second one ends
/// them.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd worker --accounts claude:team1,codex:team1\n  agentd worker --slots 4 --accounts claude:team1 --until-done"
)]
struct WorkerArgs {
    /// How many steps at the same time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    slots: u16,

    /// Accounts whose keys this machine has, such as `claude:team1,codex:team1`.
    #[arg(long, value_name = "ACCOUNTS", value_delimiter = ',', required = true)]
    accounts: Vec<Account>,

    /// Directory for clones; by default below `~/.local/state/agentd-fleet`.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Beginning of the worker's name; by default the name of this machine.
    #[arg(long, value_name = "NAME")]
    name: Option<WorkerName>,

    /// Take a worker for dead that was silent for so many seconds; the same for all workers.
    #[arg(long, value_name = "SECONDS", default_value_t = 14, value_parser = clap::value_parser!(u64).range(3..=3600))]
    patience: u64,

    /// Allow the project's settings to run programs.
    #[arg(long)]
    trust: bool,

    /// End when every change that was submitted is done.
    #[arg(long)]
    until_done: bool,

    #[command(flatten)]
    engine: EngineArgs,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let mut args = env::args_os();
    if args.nth(1).as_deref() == Some(program::MORTAL.as_ref()) {
        return program::become_mortal(args);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && env::args_os().any(|arg| arg == "--json") => {
            let text = error.to_string();
            let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            anstream::println!("{:#}", json!({"version": 1, "error": FleetError::usage(message)}));
            return ExitCode::from(2);
        }
        Err(error) => error.exit(),
    };
    let json = cli.json;
    // One thread: see `worker`.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => Err(FleetError::usage("cannot start").cause(error)),
    };
    let Err(error) = result else { return ExitCode::SUCCESS };
    if error.kind == Kind::OutputClosed {
        // A reader that has gone wants to know nothing.
    } else if json {
        let _ = print(&format!("{:#}", json!({"version": 1, "error": error})));
    } else {
        anstream::eprintln!("error: {}", printable(&error.message));
        if let Some(cause) = &error.cause {
            anstream::eprintln!("  cause: {}", printable(cause));
        }
        for hint in &error.hints {
            anstream::eprintln!("hint: {hint}");
        }
    }
    ExitCode::from(error.kind.exit_code())
}

async fn run(cli: Cli) -> Result<()> {
    let dir = cli.directory.unwrap_or_else(|| PathBuf::from("."));
    let args = match &cli.command {
        Command::Worker(args) => &args.engine,
        Command::Fleet(
            Fleet::Submit { engine, .. }
            | Fleet::Status { engine, .. }
            | Fleet::Pause { engine, .. }
            | Fleet::Resume { engine, .. }
            | Fleet::Drain { engine }
            | Fleet::Limit { engine, .. }
            | Fleet::Budget { engine, .. }
            | Fleet::Settle { engine, .. },
        ) => engine,
    };
    let repository = Repository::at(&dir, &args.remote).await?;
    let state = state_dir()?.join(repository.slug());
    let is_worker = matches!(cli.command, Command::Worker(_));
    let patience = match &cli.command {
        Command::Worker(args) => Duration::from_secs(args.patience),
        Command::Fleet(_) => PATIENCE,
    };
    let engine = args.engine.clone().or_else(|| env::var(ENGINE_VARIABLE).ok());
    match engine.as_deref() {
        None | Some("" | "git") => {
            if is_worker {
                anstream::eprintln!(
                    "note: without a server, there are no limits and budgets over several workers"
                );
            }
            let engine = GitEngine::new(repository.clone(), state.join("queue.git"), patience);
            command(&engine, &repository, &state, cli.command, cli.json).await
        }
        Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            let timing = Timing { dead_after: patience };
            let start = Instant::now();
            let engine = loop {
                match PostgresEngine::connect(url, repository.clone(), timing).await {
                    // A worker waits for a server that is being started.
                    Err(_) if is_worker && start.elapsed() < Duration::from_mins(1) => {
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    }
                    engine => break engine?,
                }
            };
            command(&engine, &repository, &state, cli.command, cli.json).await
        }
        Some(_) => {
            Err(FleetError::usage("--engine is `git`, or the address of a Postgres database")
                .hint("for example: --engine postgres://fleet@db.example.org/fleet"))
        }
    }
}

async fn command<E: Engine>(
    engine: &E,
    repository: &Repository,
    state: &Path,
    command: Command,
    json: bool,
) -> Result<()> {
    match command {
        Command::Worker(args) => {
            let options = WorkerOptions {
                name: args.name.unwrap_or_else(worker::machine_name),
                slots: usize::from(args.slots.max(1)),
                accounts: args.accounts,
                dir: args.dir.unwrap_or_else(|| state.join("workers")),
                remote: "origin".to_owned(),
                patience: Duration::from_secs(args.patience),
                trust: args.trust,
                until_done: args.until_done,
                json,
            };
            worker::run(engine, repository, &options).await
        }
        Command::Fleet(what) => fleet(engine, what, json).await,
    }
}

async fn fleet<E: Engine>(engine: &E, what: Fleet, json: bool) -> Result<()> {
    let (said, data) = match what {
        Fleet::Submit { id, description, priority, budget, auto, .. } => {
            let id = change_id(&id)?;
            let description = Prose::new(&description).as_str().to_owned();
            if description.is_empty() {
                return Err(FleetError::usage("the description is empty"));
            }
            let budget_usd = budget.map(amount).transpose()?;
            let what = Submission { description, priority, budget_usd, auto };
            let action = engine.submit(&id, &what).await?;
            (format!("{id}: {}", words(&json!(action))), json!({"action": action, "change_id": id}))
        }
        Fleet::Status { watch: true, .. } => return watch(engine, json).await,
        Fleet::Status { .. } => {
            let list = engine.list().await?;
            (screen::overview(&list).trim_end().to_owned(), json!(list))
        }
        Fleet::Pause { id, .. } => {
            let id = id.as_deref().map(change_id).transpose()?;
            engine.signal(&Signal::Pause(id.clone())).await?;
            ("paused".to_owned(), json!({"action": "paused", "change_id": id}))
        }
        Fleet::Resume { id, .. } => {
            let id = id.as_deref().map(change_id).transpose()?;
            engine.signal(&Signal::Resume(id.clone())).await?;
            ("resumed".to_owned(), json!({"action": "resumed", "change_id": id}))
        }
        Fleet::Drain { .. } => {
            engine.signal(&Signal::Drain).await?;
            ("workers end when their steps have".to_owned(), json!({"action": "drained"}))
        }
        Fleet::Limit { account, concurrency, rpm, .. } => {
            let list = engine.list().await?;
            let now = list.accounts.iter().find(|listed| listed.account == account.to_string());
            let now = now.map(|listed| listed.limit).unwrap_or_default();
            // What is not named stays as it is.
            let one = |wanted: Option<u32>, now| wanted.map_or(now, |n| Some(n).filter(|n| *n > 0));
            let limit =
                Limit { concurrency: one(concurrency, now.concurrency), rpm: one(rpm, now.rpm) };
            engine.limit(&account, limit).await?;
            let data = json!({"action": "limited", "account": account, "limit": limit});
            (format!("{account} is limited"), data)
        }
        Fleet::Budget { scope, usd, .. } => {
            let parsed = match scope.split_once(':') {
                None if scope == "repository" => BudgetScope::Repository,
                None if scope == "day" => BudgetScope::Day,
                Some(("team", team)) if !team.is_empty() => BudgetScope::Team(team.to_owned()),
                Some(("change", id)) => BudgetScope::Change(change_id(id)?),
                _ => {
                    return Err(FleetError::usage(
                        "a scope is `change:<id>`, `repository`, `day` or `team:<name>`",
                    ));
                }
            };
            engine.budget(&parsed, amount(usd)?).await?;
            let data = json!({"action": "budget_set", "scope": scope, "usd": usd});
            (format!("{scope}: at most ${usd:.2}"), data)
        }
        Fleet::Settle { call: Some(call), usd, .. } => {
            let usd =
                usd.ok_or_else(|| FleetError::usage("say what it has cost, in US dollars"))?;
            engine.settle(&call, amount(usd)?).await?;
            (format!("{call}: ${usd:.4}"), json!({"action": "settled", "call": call, "usd": usd}))
        }
        Fleet::Settle { call: None, .. } => {
            let unsettled = engine.list().await?.unsettled;
            let line = |call: &crate::engine::UnsettledCall| {
                format!("{} {} ${:.4}", call.call, call.step, call.estimate_usd)
            };
            let text: Vec<String> = unsettled.iter().map(line).collect();
            let text =
                if text.is_empty() { "nothing to settle".to_owned() } else { text.join("\n") };
            (text, json!({"unsettled": unsettled}))
        }
    };
    if json { print(&format!("{:#}", document(data))) } else { print(&printable(&said)) }
}

fn document(data: Value) -> Value {
    let mut document = serde_json::Map::new();
    document.insert("version".to_owned(), json!(1));
    if let Value::Object(data) = data {
        document.extend(data);
    }
    Value::Object(document)
}

fn print(text: &str) -> Result<()> {
    let mut out = anstream::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| {
        let closed = error.kind() == io::ErrorKind::BrokenPipe;
        let kind = if closed { Kind::OutputClosed } else { Kind::Output };
        FleetError::new(kind, "cannot write the output").cause(error)
    })
}

/// Shows the fleet until somebody stops it. A server that is away for a while is waited for.
async fn watch<E: Engine>(engine: &E, json: bool) -> Result<()> {
    let mut list = engine.list().await?;
    loop {
        if json {
            print(&document(json!(list)).to_string())?;
        } else {
            // The screen is cleared where there is one.
            print(&format!("\u{1b}[2J\u{1b}[H{}", screen::overview(&list)))?;
        }
        list = loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            match engine.list().await {
                Ok(list) => break list,
                Err(error) => anstream::eprintln!("{}", printable(&error.to_string())),
            }
        };
    }
}

fn words(action: &Value) -> String {
    action.as_str().unwrap_or_default().replace('_', " ")
}

fn amount(usd: f64) -> Result<f64> {
    let fits = usd.is_finite() && (0.0..=1e9).contains(&usd);
    if fits { Ok(usd) } else { Err(FleetError::usage("an amount is a number of US dollars")) }
}

fn change_id(text: &str) -> Result<ChangeId> {
    ChangeId::new(text).map_err(|error| FleetError::usage(error.to_string()))
}

fn state_dir() -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    let none = || FleetError::usage("neither HOME nor XDG_STATE_HOME is set").hint("set HOME");
    Ok(state.ok_or_else(none)?.join("agentd-fleet"))
}
