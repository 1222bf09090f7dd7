//! The checks of a project.

use std::path::Path;
use std::time::Duration;

use agentd_builtin::{ClientError, count_tools};
use agentd_core::command_line::CommandLine;
use agentd_core::config::{Config, GitCommit};
use agentd_core::hint::Hint;
use agentd_core::layout;
use agentd_engine::change::documents::{self, DocumentError};
use agentd_engine::git::{self, Git, GitTool};
use agentd_engine::guard::sandbox as guard_sandbox;
use agentd_engine::guard::trust::{Consent, TrustError, TrustStatus};
use agentd_engine::insight::toolchain;
use agentd_engine::process::{self, Supervisor};
use agentd_engine::store::{LockName, LockState, Project, lock_state};

use super::programs::agree;
use super::{Check, Status};
use crate::error::CommandError;

/// How the tests are run, and whether the program is there. Nothing is run.
pub(super) fn tests(settings: &Config, root: &Path) -> Check {
    const NAME: &str = "tests";
    let Some(command) = &settings.implementation.test_command else {
        let found = toolchain::detect_at(root).test.map(|found| found.command);
        let value = found.unwrap_or_else(|| "…".to_owned());
        return Check::new(NAME, Status::Warning, "no command: reviews rely on reading alone").hint(
            Hint::Text(format!(
                "let agentd run the tests before every review: set test_command = \"{value}\" under \
                 [implementation] in agentd/config.toml"
            )),
        );
    };
    let is_variable = |word: &&String| word.contains('=');
    let words = shell_words::split(command).unwrap_or_default();
    let Some(program) = words.iter().find(|word| !is_variable(word)) else {
        return Check::new(NAME, Status::Warning, format!("`{command}` names no program"));
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let plain = program.chars().all(|c| c.is_alphanumeric() || "._-/+".contains(c));
    match process::find_program(program, &path, root) {
        Some(found) => Check::new(NAME, Status::Ok, format!("`{command}` ({})", found.display())),
        // A builtin of the shell, or a variable.
        None if !plain || SHELL_WORDS.contains(&program.as_str()) => {
            Check::new(NAME, Status::Ok, format!("`{command}`"))
        }
        None => {
            let missing = if program.contains('/') { "is not a program" } else { "is not on PATH" };
            Check::new(NAME, Status::Warning, format!("`{command}`: `{program}` {missing}")).hint(
                Hint::edit(
                    format!("install `{program}`, or correct test_command"),
                    "agentd/config.toml",
                ),
            )
        }
    }
}

/// Words that a shell knows itself.
const SHELL_WORDS: [&str; 12] =
    ["cd", "exec", "export", "set", "test", "true", "false", "if", "for", "while", "command", "."];

/// Who commits are by, where agentd makes any.
pub(super) fn identity(settings: &Config, root: &Path) -> Check {
    const NAME: &str = "identity";
    let commits = settings.git.commit != GitCommit::None;
    let by_variables = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"]
        .map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let person = match by_variables {
        [Some(name), Some(email)] => Some(format!("{name} <{email}>")),
        _ => git::person(&GitTool::default(), root),
    };
    // A name alone makes no commit.
    match person.filter(|person| person.contains('<')) {
        Some(person) => Check::new(NAME, Status::Ok, person),
        None if commits => Check::new(
            NAME,
            Status::Warning,
            "git has no user.name and user.email, and [git] commit makes commits",
        )
        .hint(Hint::run(
            "set both, user.email like user.name",
            CommandLine::new(["git", "config", "--global", "user.name", "Your Name"]),
        )),
        None => Check::new(
            NAME,
            Status::Ok,
            "git has no user.name and user.email; agentd makes no commits here",
        ),
    }
}

/// How git merges specs in this clone.
pub(super) fn merging(root: &Path) -> Option<Check> {
    const NAME: &str = "merging";
    let git = Git::discover(root).ok().flatten()?;
    Some(match git.knows_merge_driver() {
        Ok(true) => Check::new(NAME, Status::Ok, "git merges specs requirement by requirement"),
        Ok(false) => {
            let detail = "git merges specs line by line in this clone";
            Check::new(NAME, Status::Warning, detail)
                .hint(Hint::run("register agentd's merge driver", CommandLine::agentd(["init"])))
        }
        Err(error) => Check::of_error(NAME, Status::Warning, &error.into()),
    })
}

/// What a change may cost.
pub(super) fn budget(settings: &Config) -> Check {
    const NAME: &str = "budget";
    let budget = &settings.budget;
    let limits = [
        budget.max_cost_usd.map(|limit| format!("at most ${limit} for a change")),
        budget.max_tokens.map(|limit| format!("at most {limit} tokens for a change")),
        budget
            .ask_above_usd
            .map(|limit| format!("asks before a change that may cost over ${limit}")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if limits.is_empty() {
        return Check::new(NAME, Status::Ok, "none: a change may cost any amount")
            .hint(Hint::edit("limit it with max_cost_usd under [budget]", "agentd/config.toml"));
    }
    Check::new(NAME, Status::Ok, limits.join("; "))
}

/// What the settings run, where somebody has to agree to it.
pub(super) fn trust(
    standing: Result<TrustStatus, TrustError>,
    environment: Consent,
) -> Option<Check> {
    Some(match standing {
        Err(error) => Check::of_error("trust", Status::Warning, &error.into()),
        Ok(standing) if standing.settings.is_empty() => return None,
        Ok(standing) => {
            let settings: Vec<String> = standing.settings.iter().map(ToString::to_string).collect();
            let settings = settings.join("; ");
            if standing.trusted {
                Check::new("trust", Status::Ok, format!("you have agreed to {settings}"))
            } else if environment == Consent::Given {
                Check::new("trust", Status::Ok, format!("AGENTD_TRUST=all allows {settings}"))
            } else {
                Check::new(
                    "trust",
                    Status::Warning,
                    format!("not trusted, and not run: {settings}"),
                )
                .hint(agree())
            }
        }
    })
}

fn sandbox_setting(purpose: &str, value: &'static str) -> Hint {
    Hint::Set { purpose: purpose.to_owned(), table: "sandbox", key: "enabled", value }
}

/// Whether the MCP server starts and answers, asked as an agent asks it.
pub(super) fn mcp(project: &Project, limit: Duration) -> Check {
    let answer = std::env::current_exe()
        .map_err(ClientError::from)
        .and_then(|agentd| count_tools(&agentd, project.root(), "agentd-doctor", limit));
    match answer {
        Ok(tools) => {
            Check::new("mcp", Status::Ok, format!("the server answers with {tools} tools"))
        }
        Err(error) => {
            Check::new("mcp", Status::Failed, format!("the server does not answer: {error}")).hint(
                Hint::run(
                    "agents cannot write anything without it; see why",
                    CommandLine::agentd(["mcp"]),
                ),
            )
        }
    }
}

/// What agents and tests may do here, and whether the system holds them to it: tried, in a
/// directory that is removed again.
pub(super) fn sandbox(settings: &Config) -> Check {
    const NAME: &str = "sandbox";
    let words = guard_sandbox::in_words(&settings.sandbox);
    if !settings.sandbox.enabled {
        return Check::new(NAME, Status::Warning, words)
            .hint(sandbox_setting("confine agents", "true"));
    }
    let made = tempfile::Builder::new().prefix("agentd-doctor-").tempdir();
    let tried = Supervisor::this_program().map_err(|error| error.to_string()).and_then(|guard| {
        let dir = made.map_err(|error| error.to_string())?;
        guard_sandbox::try_out(&guard, dir.path())
    });
    match tried {
        Err(why) => Check::new(NAME, Status::Failed, format!("cannot be set up: {why}"))
            .hint(sandbox_setting("run agents without it", "false")),
        Ok(tried) if tried.outside || !tried.inside => {
            Check::new(NAME, Status::Warning, format!("{words}; this system does not enforce it"))
                .hint("what an agent writes is not confined here: see docs/sandbox.md")
        }
        Ok(tried) => {
            let gaps = tried.enforced.gaps(settings.sandbox.network);
            if gaps.is_empty() {
                return Check::new(NAME, Status::Ok, format!("{words} (tried)"));
            }
            let detail = format!("{words}; an agent could still {}", gaps.join(", "));
            Check::new(NAME, Status::Warning, detail).hint("see docs/sandbox.md")
        }
    }
}

pub(super) fn config(
    project: &Project,
    config: Option<Result<Config, DocumentError>>,
) -> Result<Check, CommandError> {
    Ok(match config {
        Some(Err(error)) => Check::of_error("config", Status::Failed, &error.into()),
        _ if project.dir().is_file(&layout::config())? => {
            Check::new("config", Status::Ok, "agentd/config.toml is valid")
        }
        _ => Check::new("config", Status::Ok, "no agentd/config.toml; the defaults hold"),
    })
}

/// Changes whose state cannot be read, and directories that are no changes.
pub(super) fn changes(project: &Project) -> Result<Vec<Check>, CommandError> {
    let listed = project.change_ids()?;
    let mut checks: Vec<Check> = Vec::new();
    for entry in &listed.odd {
        let detail = format!("agentd/changes/{} is not a change", entry.name);
        checks.push(
            Check::new("changes", Status::Warning, detail)
                .hint("rename it to an id, or move it away"),
        );
    }
    for id in &listed.ids {
        let Some(change) = project.change_if_open(id)? else { continue };
        if let Err(error) = documents::load_state_if_begun(&change) {
            checks.push(Check::of_error("state", Status::Failed, &error.into()));
        }
    }
    if checks.is_empty() {
        checks.push(Check::new("changes", Status::Ok, format!("{} open", listed.ids.len())));
    }
    Ok(checks)
}

/// Which locks are held.
pub(super) fn locks(project: &Project) -> Result<Vec<Check>, CommandError> {
    let mut checks = Vec::new();
    let ids = project.change_ids()?.ids;
    let runs = ids.iter().cloned().map(LockName::Run);
    for name in runs.chain([LockName::Sessions, LockName::Project]) {
        if let LockState::Held(holder) = lock_state(project.dir(), &name)? {
            let who =
                holder.map_or_else(|| "another process".to_owned(), |holder| holder.to_string());
            checks.push(Check::new("lock", Status::Ok, format!("{name}: held by {who}")));
        }
    }
    if checks.is_empty() {
        checks.push(Check::new("locks", Status::Ok, "nobody is at work"));
    }
    Ok(checks)
}
