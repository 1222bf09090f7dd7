//! A change for people who do not have the project: as one HTML page, or as the text of a pull
//! request.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;

use agentd_core::document::tasks::Status;
use agentd_core::ids::RequirementId;
use agentd_engine::agents::redact::Redactor;
use agentd_engine::insight::trace::{self, Scenarios};
use agentd_engine::store::{Change, Project};

use super::findings::{on_code, over_rounds};
use super::html::{dollars, visible};
use super::pages;
use super::subject::{ChangeRef, Subject};

/// What a change is made into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One page that needs no other file and no script.
    Html,
    /// The text of a pull request.
    Markdown,
}

impl Format {
    /// How the name of a file ends.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "md",
        }
    }

    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Markdown => "text/plain; charset=utf-8",
        }
    }
}

/// Why a change cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ExportError(String);

/// A change of a project in a format, without secrets.
pub fn export(project: &Project, change: &Change, format: Format) -> Result<String, ExportError> {
    let which = match change.archived() {
        Some(name) => ChangeRef::Archived(name.clone()),
        None => ChangeRef::Open(change.id().clone()),
    };
    let subject =
        Subject::load(project, which).map_err(|problem| ExportError(problem.message()))?;
    Ok(text(&subject.for_others(), format))
}

/// The change as a text, without secrets.
pub(super) fn text(subject: &Subject, format: Format) -> String {
    let text = match format {
        Format::Html => unlinked(&visible(pages::static_page(subject))),
        Format::Markdown => markdown(subject),
    };
    // A secret may look different in HTML.
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let escaped: Vec<(OsString, OsString)> = environment
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), escaped(value.to_str()?)?.into())))
        .collect();
    environment.extend(escaped);
    let redactor = Redactor::of_project(&environment, subject.home());
    redactor.clean(&text).into_owned()
}

/// A text as it is in HTML; none if that is the same.
fn escaped(text: &str) -> Option<String> {
    let shown = maud::html! { (text) }.into_string();
    (shown != text).then_some(shown)
}

/// The place on the page to which an address of the viewer leads: specs have requirements of the same
/// number, so these are named with their spec.
fn place_on_page(address: &str) -> Option<String> {
    let (page, place) = address.split_once('#')?;
    let spec = page.rsplit_once("/specs/").map(|(_, spec)| spec.split('?').next().unwrap_or(spec));
    match (spec, place.parse::<RequirementId>()) {
        (Some(spec), Ok(id)) => Some(pages::static_requirement(spec, id)),
        _ => Some(place.to_owned()),
    }
}

/// A page whose links lead to places on it, or to other sites, and nowhere else.
fn unlinked(page: &str) -> String {
    let ids: BTreeSet<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(" href=\"") {
        let Some((address, more)) = after.split_once('"') else { break };
        out.push_str(before);
        let place = place_on_page(address);
        if address.starts_with("http://") || address.starts_with("https://") {
            let _ = write!(out, " href=\"{address}\"");
        } else if let Some(place) = place.filter(|place| ids.contains(place.as_str())) {
            let _ = write!(out, " href=\"#{place}\"");
        }
        rest = more;
    }
    out + rest
}

/// The text of a pull request: what it is for, what it does to the specs, and what was said of it.
fn markdown(subject: &Subject) -> String {
    let mut out = String::new();
    let proposal = subject.proposal();
    let _ = writeln!(out, "# {}\n", subject.title());
    if !proposal.summary.is_empty() {
        let _ = writeln!(out, "{}\n", proposal.summary.as_str().trim());
    }
    if !proposal.why.is_empty() {
        let _ = writeln!(out, "## Why\n\n{}\n", proposal.why.as_str().trim());
    }
    if !proposal.what_changes.is_empty() {
        let _ = writeln!(out, "## What changes\n");
        for line in &proposal.what_changes {
            let _ = writeln!(out, "- {line}");
        }
        out.push('\n');
    }
    requirements(subject, &mut out);
    if !subject.tasks().is_empty() {
        let _ = writeln!(out, "## Tasks\n");
        for task in subject.tasks() {
            let mark = if task.status == Status::Done { 'x' } else { ' ' };
            let file = task.file.as_ref().map(|file| format!(" (`{file}`)")).unwrap_or_default();
            let _ = writeln!(out, "- [{mark}] {} {}{file}", task.id, task.title);
        }
        out.push('\n');
    }
    review(subject, &mut out);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn requirements(subject: &Subject, out: &mut String) {
    if subject.specs().next().is_none() {
        return;
    }
    let _ = writeln!(out, "## Requirements\n");
    for (id, spec) in subject.specs() {
        let delta = subject.deltas().ok().and_then(|all| all.iter().find(|it| it.spec == *id));
        for requirement in &spec.requirements {
            let how = match delta.map(|delta| &delta.touched) {
                Some(touched) if touched.added.contains(&requirement.id) => "new: ",
                Some(touched) if touched.edited.contains(&requirement.id) => "edited: ",
                _ => "",
            };
            let Scenarios { names, of_spec } = trace::scenarios(spec, requirement.id);
            let of_spec = if of_spec { " of the whole spec" } else { "" };
            let _ = writeln!(
                out,
                "- {how}**{id}:{}** {} ({}{of_spec})",
                requirement.id,
                requirement.title,
                agentd_core::text::counted(names.len(), "scenario")
            );
        }
        for removed in delta.map_or(&[][..], |delta| &delta.touched.removed) {
            let _ = writeln!(out, "- removed: **{id}:{removed}**");
        }
    }
    out.push('\n');
}

fn review(subject: &Subject, out: &mut String) {
    let plan = over_rounds(&subject.proposal().reviews);
    let code = on_code(subject);
    let state = subject.state();
    let reviews = &subject.proposal().reviews;
    if reviews.is_empty() && state.is_none_or(|state| state.code_review.is_none()) {
        return;
    }
    let _ = writeln!(out, "## Review\n");
    if let Some(last) = reviews.last() {
        let rounds = agentd_core::text::counted(reviews.len(), "round");
        let verdict = last.verdict.label().replace('_', " ");
        let _ = writeln!(out, "- Plan: {verdict} by {}, {rounds}", last.reviewer);
    }
    if let Some(review) = state.and_then(|state| state.code_review.as_ref()) {
        let verdict = review.verdict.label().replace('_', " ");
        let _ = writeln!(out, "- Code: {verdict} by {}", review.reviewer);
    }
    if let Some(tests) = state.and_then(|state| state.test_run.as_ref()) {
        let how = if tests.passed() { "passed" } else { "failed" };
        let _ = writeln!(out, "- Tests: `{}` {how}", tests.command);
    }
    if let Some(state) = state {
        let _ = writeln!(out, "- Cost: {}", dollars(state.total_cost));
    }
    out.push('\n');
    if plan.is_empty() && code.is_empty() {
        return;
    }
    let _ = writeln!(out, "| Finding | Severity | On | State |\n|---|---|---|---|");
    let rows = plan.iter().map(|it| ("plan", it)).chain(code.iter().map(|it| ("code", it)));
    for (on, finding) in rows {
        let issue = finding.issue;
        let cell = |text: &str| text.replace('|', "\\|");
        let _ = writeln!(
            out,
            "| I{} {} | {} | {on} | {} |",
            issue.number,
            cell(issue.title.as_str()),
            issue.severity.label(),
            finding.fate.name()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_on_the_page_or_lead_elsewhere() {
        let page = r#"<p id="I1" id="b-R1"></p><a class="x" href="/changes/a/review?show=all#I1">a</a><a href="/changes/a">b</a><a href="https://x.y/">c</a><a href="/changes/a/specs/b#R1" title="q">d</a><a href="/specs/c#R1">e</a> href="#;
        let expected = r##"<p id="I1" id="b-R1"></p><a class="x" href="#I1">a</a><a>b</a><a href="https://x.y/">c</a><a href="#b-R1" title="q">d</a><a>e</a> href="##;
        assert_eq!(unlinked(page), expected);
        assert_eq!(escaped("a&b"), Some("a&amp;b".to_owned()));
        assert_eq!(escaped("ab"), None);
    }
}
