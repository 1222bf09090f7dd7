use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::command_line::CommandLine;
use agentd_core::diagnostic::{Example, Rule};
use agentd_core::error_kind::Kind;
use agentd_core::nearest::nearest;
use agentd_core::rules;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, DIM, Output, Screen};

/// Explain a validation code or an error kind, or list them all.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd explain T005\n  agentd explain task-cycle\n  agentd explain session_not_found\n  agentd explain                       list all, one per line"
)]
pub(crate) struct Args {
    /// Code or name of a validation rule, or kind of an error.
    code: Option<String>,
}

/// Everything that can be explained.
#[derive(Debug, Serialize)]
pub(super) struct ExplainList {
    /// The rules of `agentd validate`.
    rules: &'static [&'static Rule],
    /// The kinds of errors.
    errors: Vec<ErrorExplanation>,
}

/// What a kind of error means.
#[derive(Debug, Serialize)]
pub(super) struct ErrorExplanation {
    /// Its name.
    kind: &'static str,
    /// What has happened.
    means: &'static str,
    /// What to do about it.
    remedy: &'static str,
    /// What it has to do with; only in the list of all kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'static str>,
}

impl ErrorExplanation {
    fn new(kind: Kind, group: Option<&'static str>) -> Self {
        Self { kind: kind.name(), means: kind.means(), remedy: kind.remedy(), group }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.code {
        None => context.ui.print(&list())?,
        Some(code) => match (code.parse::<Kind>(), rules::find(code)) {
            (Ok(kind), _) => context.ui.print(&ErrorExplanation::new(kind, None))?,
            (Err(_), Some(rule)) => context.ui.print(rule)?,
            (Err(_), None) => return Err(unknown(code)),
        },
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown(code: &str) -> CommandError {
    let known = rules::ALL.iter().flat_map(|rule| [rule.code, rule.name]);
    let known = known.chain(Kind::ALL.iter().map(|kind| kind.name()));
    let message = format!("there is no rule or error `{code}`");
    let error = CommandError::new(Kind::NoSuchRule, message);
    match nearest(code, known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.run("see all rules and errors", CommandLine::agentd(["explain"])),
    }
}

fn list() -> ExplainList {
    let errors = Kind::ALL.iter().map(|kind| ErrorExplanation::new(*kind, Some(kind.group())));
    ExplainList { rules: rules::ALL, errors: errors.collect() }
}

impl Output for Rule {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let (code, name, severity) = (self.code, self.name, self.severity.label());
        writeln!(screen, "{BOLD}{code} {name}{BOLD:#} ({severity})\n")?;
        writeln!(screen, "{}\n\nWhy: {}\nFix: {}", self.summary, self.why, self.fix)?;
        if let Some(Example { bad, good }) = self.example {
            writeln!(screen, "\nInstead of:\n{}\nwrite:\n{}", indented(bad), indented(good))?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::diagnostic::Severity;
        Self {
            code: "T005",
            name: "task-cycle",
            severity: Severity::High,
            summary: "Tasks do not wait for each other.",
            why: "Neither could begin.",
            fix: "Remove one of the dependencies.",
            example: Some(Example { bad: "depends: 1.1", good: "depends: 1.2" }),
        }
    }
}

impl Output for ErrorExplanation {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let Self { kind, means, remedy, .. } = self;
        writeln!(screen, "{BOLD}{kind}{BOLD:#} (error)\n\n{means}\n\n{remedy}")
    }

    #[cfg(test)]
    fn sample() -> Self {
        let (kind, means, remedy) = ("locked", "Someone else is at work.", "Wait.");
        Self { kind, means, remedy, group: None }
    }
}

impl Output for ExplainList {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let is_terminal = screen.columns().is_some();
        if is_terminal {
            writeln!(screen, "{BOLD}Rules{BOLD:#}\n")?;
        }
        let names = self.rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0);
        for Rule { code, severity, summary, name, .. } in self.rules {
            let severity = severity.label();
            let label = format!("{BOLD}{code}{BOLD:#}  {severity:6}  {DIM}{name:names$}{DIM:#}  ");
            screen.labeled(&label, summary)?;
        }
        if is_terminal {
            writeln!(screen, "\n{BOLD}Errors{BOLD:#}\n")?;
        }
        let kinds = self.errors.iter().map(|error| error.kind.len()).max().unwrap_or(0);
        for ErrorExplanation { kind, means, .. } in &self.errors {
            screen.labeled(&format!("{BOLD}{kind:kinds$}{BOLD:#}  "), means)?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        list()
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}
