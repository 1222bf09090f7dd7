//! The tab of the code: the tests, what was changed by layer, task or file, and the way from
//! requirements to it.

use agentd_core::diff::{DiffLine, Hunk, LineKind};
use agentd_core::document::comments::{Anchor, Commented};
use agentd_core::figures::duration;
use agentd_core::ids::Layer;
use agentd_core::rel_path::RelPath;
use agentd_core::text::counted;
use agentd_engine::git::{FileChange, OmitReason, OmittedFile};
use agentd_engine::insight::diff::{self, CodeDiff, CodeFile};
use maud::{Markup, html};

use super::changes::sign;
use super::code_comments::{FileComments, all_comments, other_comments};
use super::comments::{button, template, thread};
use super::frame::{ChangePage, Tab};
use super::trace::trace_table;
use crate::App;
use crate::highlight::{Language, Open};
use crate::html::{count, query_value, slug, time};
use crate::routes::View;
use crate::subject::Subject;

/// Files whose difference is longer than this are folded.
const UNFOLDED: usize = 400;

/// How much of a page lines may fill; files beyond it are named only.
const MOST_LINES: usize = 12_000;

/// The place of a file on the page.
pub(super) fn file_anchor(path: &str) -> String {
    slug(path).replacen("h-", "file-", 1)
}

/// The place of a line of it.
pub(super) fn line_anchor(path: &str, line: usize) -> String {
    format!("{}-L{line}", file_anchor(path))
}

/// The first line that was added to a file; the only one that has a place on the page.
pub(super) fn first_line(file: &CodeFile) -> Option<usize> {
    let mut lines = file.diff.hunks.iter().flat_map(|hunk| &hunk.lines);
    lines.find_map(|line| line.new.filter(|_| line.old.is_none()))
}

/// Whether a file can be commented on: the code of the change has it now, whatever a page shows.
pub(crate) fn is_in_code(subject: &Subject, path: &RelPath) -> bool {
    let code = diff::code(subject.home(), subject.snapshot()).ok().flatten();
    code.is_some_and(|code| code.files.iter().any(|file| file.path == path.as_str()))
}

pub(crate) fn code(app: &App, subject: &Subject, view: &View) -> Markup {
    let here = format!("{}/code", subject.address());
    let found = if subject.is_open() {
        diff::code_kept(subject.home(), subject.snapshot(), &app.kept)
    } else {
        Ok(None)
    };
    let (code, problem) = match found {
        Ok(code) => (code, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let body = html! {
        (tests(subject))
        @if let Some(problem) = &problem {
            p.alert role="alert" { "The code cannot be compared: " (problem) }
        }
        @match &code {
            Some(code) => { (differences(subject, code, &here, view)) }
            None => { @if problem.is_none() { p.empty { (nothing(subject)) } } }
        }
        div data-live="about-code" {
            (other_comments(subject, code.as_ref()))
            (trace_table(subject, code.as_ref(), &app.kept))
        }
        (template(subject))
    };
    ChangePage { tab: Tab::Code, title: "Code", here: Some(&here), body }.render(app, subject)
}

fn nothing(subject: &Subject) -> &'static str {
    if !subject.is_open() {
        "The change is archived. Its commits are listed below, as far as git has them."
    } else if subject.state().and_then(|state| state.base_commit()).is_none() {
        "There is no commit to compare with: the work has not begun, or the project is not in git."
    } else {
        "Nothing was changed yet."
    }
}

/// The runs of the project's tests, the latest first.
pub(super) fn tests(subject: &Subject) -> Markup {
    let latest = subject.state().and_then(|state| state.test_run.as_ref());
    let earlier = &subject.code_rounds().tests;
    html! {
        div data-live="tests" {
            @if let Some(run) = latest {
                details.tests open[!run.passed()] {
                    summary {
                        @if run.passed() { span.badge.good { "tests passed" } }
                        @else { span.badge.high { "tests failed" } }
                        " " code { (run.command) } " "
                        span.quiet {
                            @match run.exit_code {
                                Some(code) => { "exit code " (code) }
                                None => { "stopped" }
                            }
                            ", " (duration(run.duration_ms)) ", " (time(run.at))
                        }
                    }
                    pre.output tabindex="0" { (run.output_tail) }
                }
            } @else if subject.is_open() {
                p.quiet { "agentd has not run the tests of the project for this change." }
            }
            @if !earlier.is_empty() {
                details.tests {
                    summary { "Earlier test runs " (count(earlier.len())) }
                    @for (at, run) in earlier.iter().rev() {
                        details {
                            summary {
                                @if run.exit_code == Some(0) { span.badge.good { "passed" } }
                                @else { span.badge.high { "failed" } }
                                " " code { (run.command) } " " (time(*at))
                            }
                            pre.output { (run.output) }
                        }
                    }
                }
            }
        }
    }
}

fn differences(subject: &Subject, code: &CodeDiff, here: &str, view: &View) -> Markup {
    let (added, removed) = code.totals();
    let by = match view.by.as_str() {
        "task" | "file" => view.by.as_str(),
        _ => "layer",
    };
    let groups: Vec<(String, Vec<&CodeFile>)> = match by {
        "task" => code
            .by_task(subject.tasks())
            .into_iter()
            .map(|(task, files)| {
                let name = task.map(|task| format!("{} {}", task.id, task.title));
                (name.unwrap_or_else(|| "No task names these".to_owned()), files)
            })
            .collect(),
        "file" => vec![(String::new(), code.files.iter().collect())],
        _ => code
            .by_layer()
            .into_iter()
            .map(|(layer, files)| (layer.map_or("No layer", Layer::name).to_owned(), files))
            .collect(),
    };
    let mut room = MOST_LINES;
    let mut shown: Vec<&str> = Vec::new();
    html! {
        div.filters {
            h2.page-title {
                (counted(code.files.len(), "file")) " changed "
                span.added { "+" (added) } " " span.removed { "−" (removed) }
            }
            span.switch role="group" aria-label="Order" {
                @for name in ["layer", "task", "file"] {
                    a href={ (here) "?by=" (name) } aria-current=[(by == name).then_some("true")] {
                        "by " (name)
                    }
                }
            }
            span.quiet { "since " code { (code.base.get(..8).unwrap_or(&code.base)) } }
            (button(subject, &Commented::Code, &Anchor::Document, "all of the code"))
        }
        div.with-list data-live="code" {
            nav.documents.files aria-label="Files" {
                @for (name, files) in &groups {
                    @if !name.is_empty() { p.group { (name) } }
                    ul {
                        @for file in files {
                            li {
                                a href={ "#" (file_anchor(&file.path)) } title=(file.path) {
                                    span.name { (file.path.rsplit('/').next().unwrap_or_default()) }
                                    span.more { (lines_of(file)) }
                                }
                            }
                        }
                    }
                }
            }
            div.pane {
                @for (name, files) in &groups {
                    @if !name.is_empty() { h3.layer { (name) } }
                    @for file in files {
                        // A file of two tasks is shown with the first.
                        @if shown.contains(&file.path.as_str()) {
                            p.quiet {
                                a href={ "#" (file_anchor(&file.path)) } { code { (file.path) } } " is above."
                            }
                        } @else {
                            (file_diff(subject, file, &mut room))
                        }
                        ({ shown.push(&file.path); html! {} })
                    }
                }
                (left_out(&code.left_out, code.cut))
            }
        }
    }
}

/// The differences without anything to press, by file.
pub(super) fn static_differences(subject: &Subject, code: &CodeDiff) -> Markup {
    let mut room = MOST_LINES;
    html! {
        @for file in &code.files { (file_diff(subject, file, &mut room)) }
        (left_out(&code.left_out, code.cut))
    }
}

fn lines_of(file: &CodeFile) -> Markup {
    html! {
        @match file.lines {
            Some((added, removed)) => {
                span.added { "+" (added) } " " span.removed { "−" (removed) }
            }
            None => { "binary" }
        }
    }
}

fn file_diff(subject: &Subject, file: &CodeFile, room: &mut usize) -> Markup {
    let lines: usize = file.diff.hunks.iter().map(|hunk| hunk.lines.len()).sum();
    let fits = lines <= *room;
    if fits {
        *room -= lines;
    }
    let what = match &file.change {
        FileChange::Added => Some("new".to_owned()),
        FileChange::Deleted => Some("deleted".to_owned()),
        FileChange::Renamed { from } => Some(format!("renamed from {from}")),
        FileChange::Modified => None,
    };
    let on = RelPath::new(&file.path).ok().map(Commented::File);
    let language = Language::of_path(&file.path);
    html! {
        details.file id=(file_anchor(&file.path)) open[lines <= UNFOLDED && fits] data-stop
            data-viewed={ (subject.id()) " " (file.path) " " (fingerprint(file)) } {
            summary {
                code { (file.path) } " " (lines_of(file)) " "
                @if let Some(what) = &what { span.badge { (what) } " " }
                @for task in &file.tasks { span.badge { "task " (task) } " " }
            }
            div.file-body {
                @if subject.is_open() { label.check.viewed hidden { input type="checkbox"; " Viewed" } }
                @if !fits {
                    p.quiet { "Too long for this page: " (counted(lines, "line")) "." }
                    (all_comments(subject, on.as_ref()))
                } @else if file.diff.hunks.is_empty() {
                    p.quiet { @if file.lines.is_none() { "Not text." } @else { "No lines to show." } }
                    (all_comments(subject, on.as_ref()))
                } @else {
                    (hunks(subject, file, on.as_ref(), language))
                }
                @if file.cut { p.quiet { "The rest of this file is cut." } }
            }
        }
    }
}

/// A number for what is shown of a file, so that marks go when it changes.
fn fingerprint(file: &CodeFile) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    for line in file.diff.hunks.iter().flat_map(|hunk| &hunk.lines) {
        (line.old, line.new, line.text()).hash(&mut hasher);
    }
    format!("{:08x}", hasher.finish() & 0xffff_ffff)
}

fn hunks(
    subject: &Subject,
    file: &CodeFile,
    on: Option<&Commented>,
    language: Option<&'static Language>,
) -> Markup {
    let comments = on.map(|on| FileComments::of(subject, on, file));
    let first = first_line(file).map(|line| (line, line_anchor(&file.path, line)));
    html! {
        @for comment in comments.iter().flat_map(|comments| &comments.others) {
            (thread(subject, comment, matches!(comment.at, Anchor::Line(_) | Anchor::Removed(_))))
        }
        div.diff.code-diff role="region" aria-label={ "Changes in " (file.path) } tabindex="0" {
            @for hunk in &file.diff.hunks {
                (code_hunk(subject, hunk, on, language, (comments.as_ref(), first.as_ref())))
            }
        }
    }
}

fn code_hunk(
    subject: &Subject,
    hunk: &Hunk,
    on: Option<&Commented>,
    language: Option<&'static Language>,
    (comments, first): (Option<&FileComments<'_>>, Option<&(usize, String)>),
) -> Markup {
    // What is open on either side; unchanged lines belong to both.
    let (mut old_open, mut new_open) = (None, None);
    html! {
        div.hunk {
            @if !hunk.under.is_empty() { p.under { (hunk.under) } }
            @for line in &hunk.lines {
                @let open = if line.kind == LineKind::Removed { &mut old_open } else { &mut new_open };
                @let anchor = first.filter(|(first, _)| line.new == Some(*first));
                (code_line(subject, line, (on, anchor.map(|(_, anchor)| anchor)), language, open))
                @for comment in comments.into_iter().flat_map(|comments| comments.at(line)) {
                    div.margin { (thread(subject, comment, false)) }
                }
            }
        }
    }
}

fn code_line(
    subject: &Subject,
    line: &DiffLine,
    (on, anchor): (Option<&Commented>, Option<&String>),
    language: Option<&'static Language>,
    open: &mut Option<Open>,
) -> Markup {
    let (class, mark, spoken) = sign(line.kind);
    html! {
        div.diff-line.(class) id=[anchor] {
            (numbers(subject, line, on))
            span.sign aria-hidden="true" { (mark) }
            span.words.code {
                @if !spoken.is_empty() { span.visually-hidden { (spoken) } }
                (colored(line, language, open))
            }
        }
    }
}

/// The numbers of a line; the one that it has now, or had, leads to a comment on it.
fn numbers(subject: &Subject, line: &DiffLine, on: Option<&Commented>) -> Markup {
    let at = match (line.new, line.old) {
        (Some(new), _) => Some((format!("line {new}"), new)),
        (None, Some(old)) => Some((format!("removed line {old}"), old)),
        (None, None) => None,
    };
    html! {
        span.number { @if let (Some(old), Some(_)) = (line.old, line.new) { (old) } }
        @match (at, on) {
            (Some((at, number)), Some(on)) if subject.is_open() => {
                // Thousands of lines have one: the address says it all, from this page.
                a.number.add-comment href={
                    "comments?on=" (query_value(&on.to_string())) "&at=" (query_value(&at))
                } data-quote[line.new.is_none()] {
                    (number)
                }
            }
            (Some((_, number)), _) => { span.number { (number) } }
            (None, _) => { span.number {} }
        }
    }
}

/// The text with its colors, and marks around what differs.
fn colored(
    line: &DiffLine,
    language: Option<&'static Language>,
    open: &mut Option<Open>,
) -> Markup {
    let text = line.text();
    let whole = [(crate::highlight::Piece::Plain, text.as_str())];
    let pieces = language.map(|language| language.pieces(&text, open));
    let pieces = pieces.as_deref().unwrap_or(&whole);
    let mut marks = Vec::new();
    let mut at = 0;
    for part in &line.parts {
        marks.push((at..at + part.text.len(), part.changed));
        at += part.text.len();
    }
    let is_removed = line.kind == LineKind::Removed;
    let mut start = 0;
    html! {
        @for (piece, words) in pieces {
            @let range = start..start + words.len();
            ({ start = range.end; html! {} })
            @for (mark, changed) in &marks {
                @let from = mark.start.max(range.start);
                @let to = mark.end.min(range.end);
                @if from < to && let Some(words) = text.get(from..to) {
                    (colored_piece(words, piece.class(), *changed, is_removed))
                }
            }
        }
    }
}

fn colored_piece(words: &str, class: Option<&str>, changed: bool, is_removed: bool) -> Markup {
    let inner = html! {
        @match class {
            Some(class) => { span.(class) { (words) } }
            None => { (words) }
        }
    };
    html! {
        @if !changed { (inner) } @else if is_removed { del { (inner) } } @else { ins { (inner) } }
    }
}

/// What was changed and is not shown.
fn left_out(files: &[OmittedFile], cut: bool) -> Markup {
    html! {
        @if cut { p.quiet { "There is more than this page shows; `git diff` has all of it." } }
        @if !files.is_empty() {
            details {
                summary { "Not shown " (count(files.len())) }
                ul.plain {
                    @for file in files {
                        li { code { (file.path) } " " span.quiet { (why(&file.why)) } }
                    }
                }
            }
        }
    }
}

fn why(why: &OmitReason) -> String {
    match why {
        OmitReason::OnlyCommitted => {
            "was committed, but the working tree has what was there before"
        }
        OmitReason::IgnoredSince => "is ignored, by a rule that was added since",
        OmitReason::Filtered { filter } => {
            return format!("goes through the filter `{filter}`, which is not run");
        }
        OmitReason::Repository => "is a git repository of its own",
        OmitReason::Special => "is neither a file nor a directory nor a link",
        OmitReason::Unreadable => "cannot be read",
        OmitReason::TooMany => "is one new file too many",
        OmitReason::TooLarge => "is too large",
        OmitReason::Binary => "is not text",
        OmitReason::NotCheckedOut => "is left out by the sparse checkout",
    }
    .to_owned()
}
