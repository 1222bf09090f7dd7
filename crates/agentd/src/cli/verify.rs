use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

#[cfg(test)]
use agentd_core::ids::ChangeId;
use agentd_core::phase::Phase;
use agentd_engine::change::journal;
use agentd_engine::change::signing::AllowedSigners;
use agentd_engine::insight::verify::{self, Claim, Status, Verified};
use agentd_engine::store::{Change, Project};
use anstyle::Style;
use serde::Serialize;

use super::{Context, user};
use crate::error::CommandError;
use crate::ui::{BAD, BOLD, DIM, GOOD, Output, Screen};

/// Check what is proven about a change: reviews, tests and decisions.
///
/// Compares the files of a change with its journal, `journal.jsonl`, and says for each claim
/// whether it holds: who reviewed which plan and which files, on which files the tests passed,
/// and who decided. Exits with 1 if a claim does not hold, so CI can use it as a gate.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd verify add-oauth\n  agentd verify --all                     every open change, as a gate in CI\n  agentd verify add-oauth --accept        after pulling a teammate's work\n  agentd verify --all --allowed-signers ~/allowed_signers"
)]
pub(crate) struct Args {
    /// Change ID, or the name of an archived change; optional if only one change is open.
    id: Option<String>,

    /// Check every open change.
    #[arg(long, conflicts_with = "id")]
    all: bool,

    /// Take the files of the change as they are for its record, and record who said so.
    #[arg(long, conflicts_with = "all")]
    accept: bool,

    /// Check the signatures in the journal against this list of people and their SSH keys, as git
    /// has it in `gpg.ssh.allowedSignersFile`.
    #[arg(long, value_name = "FILE")]
    allowed_signers: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project =
        if args.all { context.project()? } else { context.project_of(args.id.as_deref())? };
    if args.accept {
        let change = context.change(&project, args.id.as_deref())?;
        journal::accept(&project, change.id(), &user(&project), &context.holder(), context.now())?;
    }
    let changes = verified(context, &project, args)?;
    let report = VerifyReport { valid: changes.iter().all(|change| change.valid), changes };
    let valid = report.valid;
    context.ui.print(&report)?;
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn verified(
    context: &Context,
    project: &Project,
    args: &Args,
) -> Result<Vec<Verified>, CommandError> {
    let signers = args.allowed_signers.as_deref();
    let signers = signers.map(|file| AllowedSigners::read(file, project.root())).transpose()?;
    let check = |change: &Change| verify::verify(project, change, signers.as_ref());
    if args.all {
        let mut all = Vec::new();
        for id in project.change_ids()?.ids {
            if let Some(change) = project.change_if_open(&id)? {
                all.push(check(&change)?);
            }
        }
        return Ok(all);
    }
    Ok(vec![check(&context.change_to_read(project, args.id.as_deref())?)?])
}

/// What is proven about changes.
#[derive(Debug, Serialize)]
pub(super) struct VerifyReport {
    /// Whether every claim of every change holds.
    valid: bool,
    /// The changes.
    changes: Vec<Verified>,
}

impl Output for VerifyReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        if self.changes.is_empty() {
            screen.note("No change is open.");
        }
        for (index, change) in self.changes.iter().enumerate() {
            if index > 0 {
                writeln!(screen)?;
            }
            let phase = change.phase.map_or("new", Phase::name);
            writeln!(screen, "{BOLD}{}{BOLD:#}  {phase}", change.change_id)?;
            for Claim { name, status, text, entry, .. } in &change.claims {
                let (mark, style) = match status {
                    Status::Proven => ('\u{2713}', GOOD),
                    Status::NotProven => ('\u{2717}', BAD),
                    Status::NotClaimed => ('\u{2013}', DIM),
                };
                let entry = entry.map(|entry| format!("  #{entry}")).unwrap_or_default();
                let label = format!("  {style}{mark}{style:#} {name:<10} ");
                let look = if *status == Status::NotClaimed { DIM } else { Style::new() };
                screen.labeled_as(&label, &format!("{text}{entry}"), look)?;
            }
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let claim = Claim {
            name: "plan",
            status: Status::Proven,
            text: "APPROVED".to_owned(),
            entry: Some(3),
            signed_by: Some("ada@example.org".to_owned()),
        };
        let mut signatures = agentd_engine::insight::signatures::Signatures::default();
        signatures.unsigned.push(1);
        signatures.last = Some("ada@example.org".to_owned());
        let change = Verified {
            change_id: ChangeId::new("add-oauth").unwrap(),
            phase: Some(Phase::Proposed),
            valid: true,
            entries: 3,
            head: Some(agentd_core::hash::Digest::of("")),
            known_here: true,
            signatures: Some(signatures),
            claims: vec![claim],
        };
        Self { valid: true, changes: vec![change] }
    }
}
