//! `edit_file`.

use agentd_core::agent::Role;
use agentd_core::document::review_block;
use agentd_core::document::tasks::{self, Status};
use agentd_core::document::{proposal, spec};
use agentd_core::frontmatter;
use agentd_core::ids::{ChangeId, TaskId};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::span::{Span, line_column};
use agentd_core::stamp::Stamp;
use agentd_core::text::head;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Session;
use super::input::{self, MAX_DOCUMENT, Path, Verbatim};
use super::outcome::{ActionError, Refusal, Written};
use super::schema::{JsonObject, free_text, required, text, with_change, written};
use super::tool::{Answer, Tool, Toolset};
use super::writing::Gate;

pub(super) const TOOL: Tool = Tool {
    name: "edit_file",
    purpose: "Replace a piece of text in a document of the change.",
    offered_to: &[Toolset::All, Toolset::Role(Role::Planner)],
    by_hand: false,
    read_only: false,
    input: schema,
    output: Some(written),
    run: |session, arguments| {
        Answer::written(session, &edit_file(session, &input::read(arguments)?)?)
    },
};

/// One exact replacement in a document of the change.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// The change.
    pub change_id: ChangeId,
    /// The document, relative to the project or to the change.
    pub path: Path,
    /// The text that is there now, exactly and once.
    pub old_string: Verbatim<MAX_DOCUMENT>,
    /// The text that takes its place.
    pub new_string: Verbatim<MAX_DOCUMENT>,
}

fn schema(change: Value) -> JsonObject {
    let old = "Text to replace, exact and unique";
    with_change(
        change,
        vec![
            required("path", text("proposal.md, specs/<id>.md, tasks.md, …")),
            required("old_string", json!({"type": "string", "description": old, "minLength": 1})),
            required("new_string", free_text("What to put there")),
        ],
    )
}

/// Replaces one piece of a document. A document that is broken may be fixed
/// step by step; no step may break it further.
pub fn edit_file(session: &Session<'_>, input: &EditFile) -> Result<Written, ActionError> {
    let file = layout::agent_write_target(&input.change_id, &input.path.0)
        .map_err(|refused| Refusal::new(format!("{refused}.")))?;
    let mut open = session.open(&input.change_id)?;
    let Some(old) = open.text(&file)?.map(str::to_owned) else {
        return Err(Refusal::new(format!("`{}` does not exist yet.", file.path()))
            .hint("Write it with the create tool of that document first.")
            .into());
    };
    let newline = frontmatter::newline_of(&old);
    let native = |text: &str| match newline {
        "\r\n" => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        _ => text.to_owned(),
    };
    let (from, to) = (native(&input.old_string.0), native(&input.new_string.0));
    let protected =
        if file == ChangeFile::Proposal { review_block::spans(&old) } else { Vec::new() };
    let at = unique_match(&old, &from, &to, &protected)?;
    let mut text = old.clone();
    text.replace_range(at..at + from.len(), &to);
    if blocks(&text) != blocks(&old) && file == ChangeFile::Proposal {
        return Err(Refusal::new("This edit would add or change a review in proposal.md.")
            .hint("Reviews are written with append_review only. Edit the text above them.")
            .into());
    }
    if file == ChangeFile::Tasks {
        refuse_ticks(&old, &text)?;
    }
    let text = touched(&file, &text, session.now);
    open.put(&file, &text, Gate::NoNew)
}

pub(super) fn blocks(text: &str) -> Vec<&str> {
    review_block::spans(text).into_iter().map(|span| span.of(text)).collect()
}

/// Where the text is, if it occurs exactly once outside of reviews.
fn unique_match(
    text: &str,
    from: &str,
    to: &str,
    protected: &[Span],
) -> Result<usize, ActionError> {
    if from.is_empty() {
        return Err(Refusal::new("`old_string` is empty.")
            .hint("Send the text that is to be replaced, copied from read_file.")
            .into());
    }
    if from == to {
        return Err(Refusal::new("`old_string` and `new_string` are the same.").into());
    }
    let all: Vec<usize> = text.match_indices(from).map(|(at, _)| at).collect();
    let inside = |at: usize| protected.iter().any(|s| at < s.end && at + from.len() > s.start);
    let free: Vec<usize> = all.iter().copied().filter(|&at| !inside(at)).collect();
    match free.as_slice() {
        [at] => Ok(*at),
        [] if !all.is_empty() => Err(Refusal::new("`old_string` is only in a review.")
            .hint("Reviews stay as they were given. Edit the text above them.")
            .into()),
        [] => Err(not_found(text, from).into()),
        many => {
            let lines: Vec<String> =
                many.iter().take(10).map(|&at| line_column(text, at).0.to_string()).collect();
            let (count, lines) = (many.len(), lines.join(", "));
            Err(Refusal::new(format!(
                "`old_string` occurs {count} times, in lines {lines}; it must be unique."
            ))
            .hint("Send more of the text around the place that you mean.")
            .into())
        }
    }
}

/// Says which line comes nearest to the first line that was asked for.
fn not_found(text: &str, from: &str) -> Refusal {
    let wanted = from.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let score = |line: &str| similarity(wanted, line.trim());
    let nearest = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(i, line)| (score(line), i, line))
        .max_by_key(|&(score, i, _)| (score, std::cmp::Reverse(i)))
        .filter(|&(score, _, _)| score > 0);
    let refusal = Refusal::new("`old_string` is not in the file; it must match exactly.");
    match nearest {
        Some((_, i, line)) => refusal.hint(format!(
            "The nearest line is line {}: `{}`. Copy the text from read_file.",
            i + 1,
            head(line, 200)
        )),
        None => refusal.hint("Read the file with read_file and copy the text from there."),
    }
}

/// How many words two lines share, in any order.
fn similarity(a: &str, b: &str) -> usize {
    let words = |line: &str| -> Vec<String> {
        let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.take(60).map(str::to_lowercase).collect()
    };
    let (a, mut b) = (words(a), words(b));
    let mut shared = 0;
    for word in a {
        if let Some(at) = b.iter().position(|other| *other == word) {
            b.swap_remove(at);
            shared += 1;
        }
    }
    shared
}

/// A tick is given for evidence, not by editing.
fn refuse_ticks(old: &str, new: &str) -> Result<(), ActionError> {
    let done = |text: &str| -> Vec<TaskId> {
        let tasks = tasks::parse(text).value.tasks.into_iter();
        tasks.filter(|task| task.status == Status::Done).map(|task| task.id).collect()
    };
    let before = done(old);
    match done(new).into_iter().find(|id| !before.contains(id)) {
        Some(id) => Err(Refusal::new(format!("This edit would mark task {id} as done."))
            .hint("Tasks are ticked with complete_task only, which looks for evidence.")
            .into()),
        None => Ok(()),
    }
}

/// The text with version, time and counts brought up to date.
pub(super) fn touched(file: &ChangeFile, text: &str, now: Stamp) -> String {
    let version = match file {
        ChangeFile::Proposal => return proposal::touch(text, now),
        ChangeFile::Spec(_) => {
            let parsed = spec::parse(text).value;
            parsed.place.has_frontmatter.0.then_some(parsed.version)
        }
        ChangeFile::Tasks => {
            let parsed = tasks::parse(text).value;
            parsed.has_frontmatter.0.then_some(parsed.version)
        }
        _ => None,
    };
    let Some(version) = version else { return text.to_owned() };
    let mut out = text.to_owned();
    let mut set = |key: &str, value: String| {
        if let Ok(patched) = frontmatter::set(&out, key, &value) {
            out = patched;
        }
    };
    set("version", version.saturating_add(1).to_string());
    set("updated_at", now.to_string());
    if *file == ChangeFile::Tasks {
        let parsed = tasks::parse(text).value;
        // Counts that the author does not keep are refused by `set`: there is no `summary`.
        set("summary.total", parsed.tasks.len().to_string());
        set("summary.completed", parsed.completed().to_string());
    }
    out
}
