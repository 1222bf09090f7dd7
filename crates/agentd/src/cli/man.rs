use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use agentd_core::nearest::nearest;
use agentd_core::text::counted;
use clap::Command;
use clap::builder::Resettable;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use serde::Serialize;

use super::Context;
use crate::error::{CommandError, unusable};
use crate::ui::{Output, Screen};

/// Print or write the man pages.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd man | man -l -\n  agentd man plan | man -l -\n  agentd man --dir ~/.local/share/man/man1"
)]
pub(crate) struct Args {
    /// Command whose page to print; the default is the page of agentd itself.
    #[arg(conflicts_with = "dir")]
    command: Option<String>,

    /// Write the pages of all commands to this directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Man pages.
#[derive(Debug, Serialize)]
pub(super) struct ManPages {
    /// The pages, by the names of their files.
    pages: Vec<String>,
    /// The directory that they were written to; none if one was printed.
    dir: Option<String>,
    /// The page that was printed.
    text: Option<String>,
}

impl Output for ManPages {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        match (&self.text, &self.dir) {
            (Some(text), _) => screen.write_all(text.as_bytes()),
            (None, dir) => {
                let pages = counted(self.pages.len(), "page");
                writeln!(screen, "{pages} written to {}", dir.as_deref().unwrap_or_default())
            }
        }
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self {
            pages: vec!["agentd-plan.1".to_owned()],
            dir: Some("/home/me/.local/share/man/man1".to_owned()),
            text: Some(".TH agentd 1".to_owned()),
        }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let mut all = super::definition();
    all.build();
    if let Some(dir) = &args.dir {
        let dir = context.start.join(dir);
        let cannot = |error: io::Error| unusable(&dir, &error);
        std::fs::create_dir_all(&dir).map_err(cannot)?;
        let mut pages = Vec::new();
        for (name, page) in std::iter::once(&all).chain(commands(&all)).map(page) {
            std::fs::write(dir.join(&name), page).map_err(cannot)?;
            pages.push(name);
        }
        let dir = Some(dir.display().to_string());
        context.ui.print(&ManPages { pages, dir, text: None })?;
        return Ok(ExitCode::SUCCESS);
    }
    let command = match &args.command {
        None => &all,
        Some(name) => all.find_subcommand(name).ok_or_else(|| unknown(&all, name))?,
    };
    let (name, text) = page(command);
    let text = Some(String::from_utf8_lossy(&text).into_owned());
    context.ui.print(&ManPages { pages: vec![name], dir: None, text })?;
    Ok(ExitCode::SUCCESS)
}

fn commands(all: &Command) -> impl Iterator<Item = &Command> {
    all.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn unknown(all: &Command, name: &str) -> CommandError {
    let error = CommandError::usage(format!("there is no command `{name}`"));
    match nearest(name, commands(all).map(Command::get_name)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("see all commands: agentd --help"),
    }
}

/// A page, and the name of its file. The examples get a section of their own, in which lines stay lines.
fn page(command: &Command) -> (String, Vec<u8>) {
    let bin = command.get_bin_name().unwrap_or_else(|| command.get_name()).replace(' ', "-");
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples = after.strip_prefix("Examples:\n");
    let command = command.clone();
    let command = if examples.is_some() { command.after_help(Resettable::Reset) } else { command };
    let man = Man::new(command).title(bin.clone()).section("1").manual("agentd");
    let mut text = Vec::new();
    // Into memory, which does not fail.
    let _ = man.render(&mut text);
    if let Some(examples) = examples {
        let mut section = Roff::new();
        section.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.lines() {
            section.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        section.control("fi", []);
        let _ = section.to_writer(&mut text);
    }
    (format!("{bin}.1"), text)
}
