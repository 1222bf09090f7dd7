use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use agentd_core::document::review_block;
use agentd_core::error_kind::Kind;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::nearest::nearest;
use agentd_core::outline::Outline;
use agentd_core::rel_path::RelPath;
use agentd_core::text::printable;
use agentd_engine::change::documents;
use agentd_engine::store::{Change, Project, StoreError};
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{DIM, Output, Screen, markdown};

/// Show a document of a change, or a main spec.
///
/// Without a document the proposal is shown; `plan` shows the proposal, the specs and the tasks. A
/// single name that is no change may be a main spec, or a document of the only open change.
/// Archived changes can be named too. On a terminal, documents are rendered, and long ones shown in
/// a pager; a pipe gets them as they are.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd show add-oauth\n  agentd show add-oauth plan              all of its plan\n  agentd show add-oauth tasks --source    the text as it is on disk\n  agentd show add-oauth auth-flow         its spec of that name\n  agentd show auth-flow                   the main spec\n  agentd show tasks                       of the only open change"
)]
pub(crate) struct Args {
    /// Change ID, the name of an archived change, or a main spec; optional if only one change is open.
    id: Option<String>,

    /// proposal, tasks, plan, clarifications, challenge, review, state, or a spec of the change.
    document: Option<String>,

    /// Show the text as it is on disk.
    #[arg(long)]
    source: bool,
}

/// A document, as it is on disk.
#[derive(Debug, Serialize)]
pub(super) struct ShownDocument {
    /// Its path in the project.
    file: RelPath,
    text: String,
    /// Whether a person sees the text itself.
    #[serde(skip)]
    source: bool,
}

impl Output for ShownDocument {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let extension = Path::new(self.file.as_str()).extension();
        let is_markdown = extension.is_some_and(|extension| extension == "md");
        match screen.columns() {
            Some(columns) if is_markdown && !self.source => {
                render(screen, self.file.as_str(), &self.text, columns)
            }
            _ => write!(screen, "{}", printable(&self.text)),
        }
    }

    #[cfg(test)]
    fn sample() -> Self {
        let file = RelPath::new("agentd/changes/add-oauth/tasks.md").unwrap();
        Self { file, text: "# Tasks\n".to_owned(), source: false }
    }
}

/// A document for people: what its frontmatter says in one line, then the rest.
fn render(screen: &mut Screen<'_>, file: &str, text: &str, columns: usize) -> io::Result<()> {
    let outline = Outline::scan(text);
    let body = outline.body(text);
    let front = &text[..body.start];
    let value = |key: &str| {
        let line = front.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        line.map(|value| value.trim().trim_matches('"'))
    };
    let mut facts = vec![file.to_owned()];
    facts.extend(value("version").map(|version| format!("version {version}")));
    let updated = value("updated_at").and_then(|at| at.parse().ok());
    facts.extend(updated.map(|at| format!("updated {}", screen.when(at))));
    screen.paragraph(&facts.join(" · "), DIM)?;
    writeln!(screen)?;
    let lines = text[body.range()].split_inclusive('\n');
    let shown: String = lines.filter(|line| is_for_people(line)).collect();
    let rendered = markdown::render(&shown, columns);
    screen.write_all(rendered.as_bytes())
}

/// Whether a line of a document says something to people: digests and comments are for agentd and
/// for those who edit it, and a field may be empty.
fn is_for_people(line: &str) -> bool {
    let line = line.trim();
    let is_comment = line.starts_with("<!--") && line.ends_with("-->");
    let is_digest = ["- **Plan:** sha256:", "- **Plan**: sha256:"];
    let is_digest = is_digest.iter().any(|field| line.starts_with(field));
    !is_comment && !is_digest && !["- **Location:**", "- **Location**:"].contains(&line)
}

/// The documents of a plan, one after the other.
#[derive(Debug, Serialize)]
pub(super) struct ShownPlan {
    /// The change.
    change_id: ChangeId,
    /// Its documents.
    documents: Vec<ShownDocument>,
}

impl ShownPlan {
    /// The documents of the plan of a change, without its reviews.
    pub(super) fn of(change: &Change, source: bool) -> Result<Self, StoreError> {
        let documents = change.snapshot()?.documents;
        let shown = documents.plan_files().filter_map(|file| {
            let text = documents.get(&file).text()?;
            let text = review_block::without(text);
            let file = change.dir_in_project().join(&file.path());
            Some(ShownDocument { file, text, source })
        });
        let documents = shown.collect();
        Ok(Self { change_id: change.id().clone(), documents })
    }
}

impl Output for ShownPlan {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        for (index, document) in self.documents.iter().enumerate() {
            if index > 0 {
                writeln!(screen)?;
            }
            if screen.columns().is_none() || document.source {
                writeln!(screen, "=== {} ===\n", document.file)?;
            }
            document.text(screen)?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let change_id = ChangeId::new("add-oauth").unwrap();
        Self { change_id, documents: vec![ShownDocument::sample()] }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    let wants_plan = args.document.as_deref() == Some("plan")
        || (args.document.is_none() && args.id.as_deref() == Some("plan"));
    if wants_plan {
        let id = args.id.as_deref().filter(|_| args.document.is_some());
        let change = context.change_to_read(&project, id)?;
        context.ui.print_paged(&ShownPlan::of(&change, args.source)?, project.root())?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = find(context, &project, args)?;
    context.ui.print_paged(&ShownDocument { source: args.source, ..found }, project.root())?;
    Ok(ExitCode::SUCCESS)
}

fn find(context: &Context, project: &Project, args: &Args) -> Result<ShownDocument, CommandError> {
    let change = match context.change_to_read(project, args.id.as_deref()) {
        Ok(change) => change,
        Err(error) => {
            let (Some(name), None) = (&args.id, &args.document) else { return Err(error) };
            if let Some(found) = main_spec(project, name) {
                return Ok(found);
            }
            return match context.change(project, None) {
                Ok(only) if is_document(&only, name)? => document(&only, name),
                _ => Err(error),
            };
        }
    };
    document(&change, args.document.as_deref().unwrap_or("proposal"))
}

/// The documents that are not specs, by the names that people give them.
pub(super) const NAMED: [(&str, ChangeFile); 6] = [
    ("proposal", ChangeFile::Proposal),
    ("tasks", ChangeFile::Tasks),
    ("clarifications", ChangeFile::Clarifications),
    ("challenge", ChangeFile::Challenge),
    ("review", ChangeFile::Review),
    ("state", ChangeFile::State),
];

/// The file that a name means: `tasks`, `tasks.md`, `auth-flow`, `specs/auth-flow.md`.
fn file(name: &str) -> Option<ChangeFile> {
    let bare = name.trim_end_matches(".md").trim_end_matches(".yaml");
    let named = NAMED.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(bare));
    let spec = || SpecId::new(bare.trim_start_matches("specs/")).ok().map(ChangeFile::Spec);
    named.map(|(_, file)| file).or_else(spec)
}

fn is_document(change: &Change, name: &str) -> Result<bool, StoreError> {
    match file(name) {
        Some(spec @ ChangeFile::Spec(_)) => change.has(&spec),
        named => Ok(named.is_some()),
    }
}

fn document(change: &Change, name: &str) -> Result<ShownDocument, CommandError> {
    let Some(file) = file(name) else { return Err(missing(change, name)?) };
    match change.read(&file) {
        Ok(text) => {
            let file = change.dir_in_project().join(&file.path());
            Ok(ShownDocument { file, text, source: false })
        }
        Err(error) if error.is_not_found() => Err(missing(change, name)?),
        Err(error) => Err(error.into()),
    }
}

/// There is no such document; these are there.
fn missing(change: &Change, wanted: &str) -> Result<CommandError, StoreError> {
    let mut there = Vec::new();
    for (name, file) in NAMED {
        if change.has(&file)? {
            there.push(name.to_owned());
        }
    }
    there.extend(change.spec_ids()?.ids.iter().map(ToString::to_string));
    let message = format!("`{}` has no document `{wanted}`", change.id());
    let error = CommandError::new(Kind::NoSuchDocument, message);
    Ok(match nearest(wanted, there.iter().map(String::as_str)) {
        _ if there.is_empty() => error.hint("it has no documents yet"),
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("it has: {}", there.join(", "))),
    })
}

fn main_spec(project: &Project, name: &str) -> Option<ShownDocument> {
    let id = SpecId::new(name).ok()?;
    let text = documents::load_main_spec(project, &id).text()?.to_owned();
    Some(ShownDocument { file: layout::main_spec(&id), text, source: false })
}
