use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::command_line::CommandLine;
use agentd_core::config::Config;
use agentd_core::hint::Hint;
use agentd_core::text::{counted, printable};
use agentd_engine::change::documents;
use agentd_engine::guard::trust::{
    self, ComparedSetting, Consent, SettingChange, TrustError, TrustStatus, Trusted,
};
use agentd_engine::opening;
use agentd_engine::store::Project;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::ask::{self, TrustAnswer};
use crate::ui::{BAD, DIM, GOOD, Output, Screen, WARN};

/// Allow a project's settings to run programs.
///
/// `agentd/config.toml` comes with the repository and can name programs, arguments, variables,
/// and a test command. agentd runs none of them until you agree to exactly these settings, and
/// asks again when they change. Agents under their plain names need no consent. Your consent
/// is stored in your own state directory, not in the project.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd trust              show what would run, and ask\n  agentd trust --show\n  agentd trust --yes        without asking\n  agentd trust --revoke\n  AGENTD_TRUST=all agentd plan add-oauth --auto     for a CI job"
)]
pub(crate) struct Args {
    /// Show what would run and whether you have agreed to it.
    #[arg(long, conflicts_with_all = ["revoke", "yes"])]
    show: bool,

    /// Revoke your consent.
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,

    /// Agree without asking.
    #[arg(long, short = 'y')]
    yes: bool,
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
        let result = if was { "consent revoked" } else { "there was no consent to revoke" };
        return report(context, "revoked", result, &standing);
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
            let yes = CommandLine::agentd(["trust", "--yes"]);
            return Err(error.run("without a terminal", yes));
        }
        if agreed(context, &standing)? != TrustAnswer::Yes {
            return Err(TrustError::NotTrusted(Box::new(standing)).into());
        }
    }
    trust::grant(&project, config)?;
    let standing =
        TrustStatus { agreed: Some(standing.settings.clone()), trusted: true, ..standing };
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
        Err(error @ TrustError::NotTrusted(_)) => {
            let mut error = CommandError::from(error);
            // From here, the plain command would be about the settings of another checkout.
            if opening::root_of(&context.start).is_ok_and(|root| root != project.root()) {
                let root = project.root().to_string_lossy();
                for hint in &mut error.hints {
                    if let Hint::Run { command, .. } = hint {
                        *command = CommandLine::agentd(["-C", &root, "trust"]);
                    }
                }
            }
            Err(error)
        }
        result => Ok(result?),
    }
}

/// Shows what would run, and asks.
fn agreed(context: &Context, standing: &TrustStatus) -> Result<TrustAnswer, CommandError> {
    let edited = standing.agreed.is_some();
    let count = counted(standing.settings.len(), "setting");
    context.ui.note(&if edited {
        "agentd/config.toml has changed what agentd runs since you agreed to it:".to_owned()
    } else {
        format!("agentd/config.toml makes agentd run programs, in {count}:")
    });
    for (since, setting) in standing.compared() {
        context.ui.note(&format!("  {} {setting}", sign(since, edited)));
    }
    ask::trust()
}

fn sign(since: SettingChange, edited: bool) -> char {
    match since {
        SettingChange::New if edited => '+',
        SettingChange::Gone => '-',
        SettingChange::New | SettingChange::Same => ' ',
    }
}

fn how(standing: &TrustStatus) -> &'static str {
    if standing.settings.is_empty() {
        "nothing in agentd/config.toml needs consent"
    } else if standing.trusted {
        "trusted"
    } else {
        "not trusted: nothing of it is run"
    }
}

/// What the settings of a project run, and whether a person has agreed to it.
#[derive(Debug, Serialize)]
pub(super) struct TrustReport {
    /// What was done: `shown`, `trusted`, `revoked` or `unchanged`.
    action: &'static str,
    /// Whether nothing is left to agree to.
    trusted: bool,
    /// The settings that run something.
    settings: Vec<ComparedSetting>,
    /// Whether the settings were edited since a person agreed to them.
    #[serde(skip)]
    edited: bool,
    /// The result, in words.
    #[serde(skip)]
    result: &'static str,
}

fn report(
    context: &Context,
    action: &'static str,
    result: &'static str,
    standing: &TrustStatus,
) -> Result<ExitCode, CommandError> {
    context.ui.print(&TrustReport {
        action,
        trusted: standing.trusted,
        settings: standing.compared_settings(),
        edited: standing.agreed.is_some() && !standing.trusted,
        result,
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Output for TrustReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        for ComparedSetting { setting, since_consent } in &self.settings {
            let style = match since_consent {
                SettingChange::Same => DIM,
                SettingChange::New => GOOD,
                SettingChange::Gone => BAD,
            };
            let sign = sign(*since_consent, self.edited);
            writeln!(screen, "{style}{sign} {}{style:#}", printable(&setting.to_string()))?;
        }
        let style = if self.trusted { GOOD } else { WARN };
        writeln!(screen, "{style}{}{style:#}", self.result)
    }

    #[cfg(test)]
    fn sample() -> Self {
        let (key, value) = ("gemini.command".to_owned(), "\"./gemini\"".to_owned());
        let setting = agentd_core::config::ExecutableSetting { key, value };
        Self {
            action: "shown",
            trusted: false,
            settings: vec![ComparedSetting { setting, since_consent: SettingChange::New }],
            edited: false,
            result: "not trusted",
        }
    }
}
