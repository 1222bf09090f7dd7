use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use agentd_core::config::CONTEXT_BYTES;
use agentd_core::text::printable;
use agentd_engine::agents::context::{self, Candidate, Candidates, RelatedCommit};
use agentd_engine::change::documents;
use agentd_engine::opening;
use agentd_engine::store::StoreError;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{Output, Screen};

/// How many files and tests `--json` lists if no number is given.
const LISTED: (usize, usize) = (50, 12);

/// Show the files that matter for what you want, as a planner gets them.
///
/// Files are found by words, by passages, by their paths, and by git history. Without `--files`, prints
/// the context that a planner would get. Calls no agent, and needs no `agentd init` in a git
/// repository.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd context \"Lock accounts after five failed logins\"\n  agentd context \"Lock accounts after five failed logins\" --files 20\n  agentd context \"Lock accounts after five failed logins\" --json | jq -r '.files[].path'"
)]
pub(crate) struct Args {
    /// What you want, in your own words.
    #[arg(value_name = "WHAT")]
    wanted: String,

    /// Print the paths of this many files, the best first.
    #[arg(long, value_name = "N")]
    files: Option<usize>,

    /// The most bytes of the context; the default is `workflow.context_bytes`.
    #[arg(long, value_name = "N", conflicts_with = "files")]
    bytes: Option<usize>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.wanted.trim().is_empty() {
        return Err(CommandError::usage("say what you want, in a few words"));
    }
    let (least, most) = (context::LEAST_PREVIEW, *CONTEXT_BYTES.end());
    if args.bytes.is_some_and(|bytes| !(least..=most).contains(&bytes)) {
        return Err(CommandError::usage(format!("--bytes is from {least} to {most}")));
    }
    if args.files == Some(0) {
        return Err(CommandError::usage("--files is at least 1"));
    }
    let root = match opening::root_of(&context.start) {
        Err(StoreError::NotInitialised { suggested, .. }) if suggested.join(".git").exists() => {
            suggested
        }
        root => root?,
    };
    let project = context.project_at(&root)?;
    let report = match args.files {
        Some(number) => {
            let found = waiting(context, || context::candidates(&project, &args.wanted));
            ContextReport::new(found, (number, LISTED.1), None)
        }
        None => {
            let budget = match args.bytes {
                Some(bytes) => bytes,
                None => documents::load_config(&project)?.workflow.context_bytes,
            };
            let (built, found) =
                waiting(context, || context::preview(&project, &args.wanted, budget))?;
            ContextReport::new(found, LISTED, Some(built))
        }
    };
    context.ui.print(&report)?;
    Ok(ExitCode::SUCCESS)
}

/// Does something, and says so on a terminal if it takes longer than a second.
fn waiting<T>(context: &Context, work: impl FnOnce() -> T) -> T {
    if context.ui.json || !io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        scope.spawn(move || {
            if is_done.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                context.ui.note("Reading the files of the project…");
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// What was found for what somebody wants.
#[derive(Debug, Serialize)]
pub(crate) struct ContextReport {
    files: Vec<Candidate>,
    tests: Vec<Candidate>,
    commits: Vec<RelatedCommit>,
    /// The text for a planner; none if only files were asked for.
    context: Option<String>,
    left_out: Vec<String>,
}

impl ContextReport {
    fn new(
        mut found: Candidates,
        (files, tests): (usize, usize),
        built: Option<context::Context>,
    ) -> Self {
        found.files.truncate(files);
        found.tests.truncate(tests);
        let (context, left_out) =
            built.map_or((None, Vec::new()), |built| (Some(built.text), built.left_out));
        let Candidates { files, tests, commits } = found;
        Self { files, tests, commits, context, left_out }
    }
}

impl Output for ContextReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        if let Some(context) = &self.context {
            return write!(screen, "{}", printable(context));
        }
        if self.files.is_empty() {
            screen.note("There is no code in this project.");
        }
        for file in &self.files {
            writeln!(screen, "{}", printable(&file.path))?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_engine::agents::context::Symbol;
        let file = Candidate {
            path: "src/login.rs".to_owned(),
            score: 1.0,
            words: vec!["login".to_owned()],
            commits: 1,
            symbols: vec![Symbol { name: "log_in".to_owned(), line: 1 }],
            lines: Some((1, 40)),
        };
        let commit = RelatedCommit {
            date: "2026-11-04".to_owned(),
            subject: "Add login".to_owned(),
            files: vec!["src/login.rs".to_owned()],
        };
        Self {
            files: vec![file.clone()],
            tests: vec![file],
            commits: vec![commit],
            context: Some("# Context".to_owned()),
            left_out: vec!["README.md: all 10 bytes".to_owned()],
        }
    }
}
