use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::config::Config;
use agentd_core::text::counted;
use agentd_engine::change::documents;
use agentd_engine::guard::trust::{self, Consent, Since, Standing, TrustError, Trusted};
use agentd_engine::store::Project;
use serde_json::{Value, json};

use super::Context;
use crate::error::{CommandError, printed};
use crate::ui::ask::{self, TrustAnswer};
use crate::ui::{BAD, DIM, GOOD, WARN};

/// Agree to what the settings of a project make agentd run.
///
/// `agentd/config.toml` comes with a repository, and may name programs, their arguments and
/// variables, and a test command. agentd runs none of it before somebody has agreed to exactly
/// these settings; after an edit of them it asks again. The agents by their plain names need
/// no consent. Consent is kept in your own state directory, not in the project.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd trust              show what would run, and ask\n  agentd trust --show\n  agentd trust --yes        without asking\n  agentd trust --revoke\n  AGENTD_TRUST=all agentd plan add-oauth --auto     for a CI job"
)]
pub(crate) struct Args {
    /// Only show what would run, and whether you have agreed to it.
    #[arg(long, conflicts_with_all = ["revoke", "yes"])]
    show: bool,

    /// Take your consent back.
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,

    /// Agree without being asked.
    #[arg(long, short = 'y')]
    yes: bool,
}

/// What every command takes that may run something of the project's settings.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct TrustArg {
    /// Agree to what the project's settings run, for this one command.
    #[arg(long)]
    trust: bool,
}

impl TrustArg {
    pub(super) fn consent(self) -> Consent {
        if self.trust { Consent::Given } else { Consent::AsKept }
    }
}

/// What the user's environment says: `AGENTD_TRUST=all`, for a CI job.
pub(super) fn from_environment() -> Consent {
    let all = std::env::var_os("AGENTD_TRUST").is_some_and(|value| value == "all");
    if all { Consent::Given } else { Consent::AsKept }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    if args.revoke {
        let was = trust::revoke(&project)?;
        let standing = trust::standing(&project, &documents::load_config(&project)?)?;
        let said = if was { "consent is taken back" } else { "there was no consent to take back" };
        return report(context, "revoked", said, &standing);
    }
    let config = documents::load_config(&project)?;
    let standing = trust::standing(&project, &config)?;
    if args.show {
        return report(context, "shown", how(&standing), &standing);
    }
    if standing.trusted {
        return report(context, "unchanged", how(&standing), &standing);
    }
    if !args.yes {
        if !context.ui.can_prompt() {
            let error = CommandError::from(TrustError::NotTrusted(Box::new(standing)));
            return Err(error.hint("without a terminal: agentd trust --yes"));
        }
        if agreed(context, &standing)? != TrustAnswer::Yes {
            return Err(TrustError::NotTrusted(Box::new(standing)).into());
        }
    }
    trust::grant(&project, config)?;
    let standing = Standing { agreed: Some(standing.settings.clone()), trusted: true, ..standing };
    report(context, "trusted", "trusted until one of these settings changes", &standing)
}

/// The settings, for a command that is about to run something: agreed to before, on the command line,
/// or now.
pub(super) fn trusted(
    context: &Context,
    project: &Project,
    config: Config,
) -> Result<Trusted, CommandError> {
    match trust::check(project, config.clone(), context.consent) {
        Err(TrustError::NotTrusted(standing)) if context.ui.can_prompt() => {
            match agreed(context, &standing)? {
                TrustAnswer::Yes => Ok(trust::grant(project, config)?),
                TrustAnswer::Once => Ok(trust::check(project, config, Consent::Given)?),
                TrustAnswer::No => Err(TrustError::NotTrusted(standing).into()),
            }
        }
        result => Ok(result?),
    }
}

/// Shows what would run, and asks.
fn agreed(context: &Context, standing: &Standing) -> Result<TrustAnswer, CommandError> {
    let edited = standing.agreed.is_some();
    let what = if edited { "has changed what it" } else { "" };
    let count = counted(standing.settings.len(), "setting");
    context.ui.note(&if edited {
        format!("agentd/config.toml {what} makes agentd run since you agreed to it:")
    } else {
        format!("agentd/config.toml makes agentd run programs, by {count}:")
    });
    for (since, setting) in standing.compared() {
        context.ui.note(&format!("  {} {setting}", sign(since, edited)));
    }
    ask::trust()
}

fn sign(since: Since, edited: bool) -> char {
    match since {
        Since::New if edited => '+',
        Since::Gone => '-',
        Since::New | Since::Same => ' ',
    }
}

fn how(standing: &Standing) -> &'static str {
    if standing.settings.is_empty() {
        "nothing in agentd/config.toml needs consent"
    } else if standing.trusted {
        "trusted"
    } else {
        "not trusted: nothing of it is run"
    }
}

fn report(
    context: &Context,
    action: &str,
    said: &str,
    standing: &Standing,
) -> Result<ExitCode, CommandError> {
    printed(if context.ui.json {
        context.ui.print_json(&json!({
            "version": 1,
            "action": action,
            "trusted": standing.trusted,
            "settings": settings_json(standing),
        }))
    } else {
        print(context, said, standing)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The settings for programs, each with what has become of it since somebody agreed.
pub(crate) fn settings_json(standing: &Standing) -> Vec<Value> {
    let rows = standing.compared().into_iter();
    rows.map(|(since, setting)| {
        let since = match since {
            Since::Same => "same",
            Since::New => "new",
            Since::Gone => "gone",
        };
        json!({ "key": setting.key, "value": setting.value, "since_consent": since })
    })
    .collect()
}

fn print(context: &Context, said: &str, standing: &Standing) -> Result<(), CommandError> {
    let mut out = context.ui.out();
    let edited = standing.agreed.is_some() && !standing.trusted;
    for (since, setting) in standing.compared() {
        let style = match since {
            Since::Same => DIM,
            Since::New => GOOD,
            Since::Gone => BAD,
        };
        let setting = agentd_core::text::printable(&setting.to_string()).into_owned();
        writeln!(out, "{style}{} {setting}{style:#}", sign(since, edited))?;
    }
    let style = if standing.trusted { GOOD } else { WARN };
    writeln!(out, "{style}{said}{style:#}")?;
    out.flush()?;
    Ok(())
}
