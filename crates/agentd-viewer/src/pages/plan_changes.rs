//! What changed in a plan between two rounds of review.

use std::collections::BTreeSet;
use std::time::Duration;

use agentd_core::document::round::{self, Round};
use agentd_core::layout::ChangeFile;
use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};

use super::change_page;
use crate::App;
use crate::html::scroll_box;
use crate::problem::Problem;
use crate::routes::View;
use crate::subject::Subject;

/// How many unchanged lines are shown around a difference.
const CONTEXT: usize = 3;

/// How long to look for the shortest difference; after that a longer one is good enough.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The plan as a round saw it.
pub(super) fn kept(subject: &Subject, number: u32) -> Option<Round> {
    let text = subject.change().read(&ChangeFile::Round(number)).ok()?;
    round::parse(&text)
}

pub(crate) fn plan_changes(app: &App, subject: &Subject, view: &View) -> Result<Markup, Problem> {
    let from = view.from.unwrap_or(1);
    let old = kept(subject, from).ok_or_else(Problem::not_found)?;
    let (new, name) = match view.to {
        Some(to) => (kept(subject, to).ok_or_else(Problem::not_found)?, format!("round {to}")),
        None => (subject.documents().round(), "now".to_owned()),
    };
    let here = format!("{}/reviews", subject.address());
    let files: BTreeSet<&String> = old.files.keys().chain(new.files.keys()).collect();
    let differing: Vec<(&String, Markup)> = files
        .into_iter()
        .filter_map(|file| {
            let text = |round: &Round| round.files.get(file).cloned().unwrap_or_default();
            Some((file, difference(&text(&old), &text(&new))?))
        })
        .collect();
    let body = html! {
        h1 { "What changed" }
        p.facts {
            span { "round " (from) " → " (name) }
            a href=(here) { "Back to the reviews" }
        }
        @for (file, hunks) in &differing {
            h2 { code { (file) } }
            (scroll_box("diff scroll", &format!("Changes in {file}"), hunks))
        }
        @if differing.is_empty() { p.empty { "Nothing has changed." } }
    };
    Ok(change_page(app, subject, &here, "What changed", &body))
}

/// The lines that differ, with some around them; nothing if the texts are the same but for how
/// their lines end.
fn difference(old: &str, new: &str) -> Option<Markup> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_slices(&old, &new);
    let hunks = diff.grouped_ops(CONTEXT);
    if hunks.is_empty() {
        return None;
    }
    Some(html! {
        @for hunk in hunks {
            div.hunk {
                @for change in hunk.iter().flat_map(|op| diff.iter_changes(op)) {
                    @let (class, mark) = match change.tag() {
                        ChangeTag::Equal => ("same", " "),
                        ChangeTag::Delete => ("removed", "−"),
                        ChangeTag::Insert => ("added", "+"),
                    };
                    div.(class) { span { (mark) } code { (change.value()) } }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: &str) {
        let html = difference(old, new).map(Markup::into_string).unwrap_or_default();
        let shown: String = html
            .replace("<div class=\"hunk\">", "@\n")
            .replace("</code></div>", "\n")
            .replace("</div>", "");
        let lines = shown.lines().map(|line| {
            let line = line.replace("<div class=\"same\"><span> </span><code>", " ");
            let line = line.replace("<div class=\"removed\"><span>−</span><code>", "-");
            line.replace("<div class=\"added\"><span>+</span><code>", "+")
        });
        assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected, "{html}");
    }

    #[test]
    fn differences_are_shown_line_by_line() {
        check("a\nb\nc\n", "a\nx\nc\n", "@\n a\n-b\n+x\n c");
        check("a\nb\n", "a\nb\nc\n", "@\n a\n b\n+c");
        check("a\nb\nc\nd\n", "b\nd\ne\n", "@\n-a\n b\n-c\n d\n+e");
        check("", "<b>\n", "@\n+&lt;b&gt;");
        check("a\r\nb", "a\nb\n", "");
    }

    #[test]
    fn hunks_keep_some_lines_around() {
        let old: String = (0..40).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\n");
        let expected = "@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@\n 27\n 28\n 29\n-30\n 31\n 32\n 33";
        check(&old, &new, expected);
    }
}
