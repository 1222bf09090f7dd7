//! The reviews of the plan: findings over the rounds, each round, and what changed between them.

use std::collections::BTreeSet;

use agentd_core::document::issue_fate::IssueFate;
use agentd_core::document::review_block::{Issue, ReviewBlock};
use agentd_core::document::round::{self, Round};
use agentd_core::layout::ChangeFile;

use super::change_page;
use crate::App;
use crate::diff::{Change, diff, hunks};
use crate::findings::over_rounds;
use crate::html::{esc, severity, time};
use crate::markdown;
use crate::problem::Problem;
use crate::routes::View;
use crate::subject::Subject;

pub(crate) fn reviews(app: &App, subject: &Subject) -> String {
    let here = format!("{}/reviews", subject.address());
    let rounds = &subject.proposal.reviews;
    let mut out = String::from("<h1>Reviews of the plan</h1>");
    if rounds.is_empty() {
        out.push_str("<p class=\"empty\">Nobody has reviewed the plan yet.</p>");
    }
    let findings = over_rounds(rounds);
    if !findings.is_empty() {
        matrix(&mut out, rounds, &findings);
    }
    for review in rounds.iter().rev() {
        push_round(&mut out, subject, review);
    }
    change_page(app, subject, &here, "Reviews", &out)
}

/// Which round told which finding, and what became of it.
fn matrix(out: &mut String, rounds: &[ReviewBlock], findings: &[IssueFate<'_>]) {
    out.push_str("<h2>Findings over the rounds</h2><div class=\"table\"><table class=\"matrix\"><thead><tr><th>Finding</th>");
    for round in rounds {
        out.push_str(&format!(
            "<th class=\"round\"><a href=\"#round-{0}\">Round {0}</a></th>",
            round.iteration
        ));
    }
    out.push_str("<th>Now</th></tr></thead><tbody>");
    for finding in findings {
        let Issue { number, title, severity: weight, .. } = finding.issue;
        out.push_str(&format!(
            "<tr id=\"i{number}\"><td>{} <strong>I{number}</strong> {}</td>",
            severity(*weight),
            esc(title)
        ));
        let mut before = false;
        for told in &finding.named {
            let (mark, what) = match (told, before) {
                (true, _) => ("●", "found"),
                (false, true) => ("✓", "not found any more"),
                (false, false) => ("", "not found yet"),
            };
            before |= told;
            out.push_str(&format!(
                "<td class=\"round {}\"><span aria-hidden=\"true\">{mark}</span><span class=\"visually-hidden\">{what}</span></td>",
                if *told { "told" } else { "" }
            ));
        }
        let standing = finding.fate.name();
        out.push_str(&format!("<td><span class=\"badge {standing}\">{standing}</span></td></tr>"));
    }
    out.push_str("</tbody></table></div>");
}

fn push_round(out: &mut String, subject: &Subject, review: &ReviewBlock) {
    let verdict = review.verdict.label();
    let number = review.iteration;
    out.push_str(&format!(
        "<section class=\"round-block\" id=\"round-{number}\"><h2>Round {number} <span class=\"badge {}\">{}</span></h2><p class=\"facts\"><span>{}</span>",
        verdict.to_lowercase().replace('_', "-"),
        verdict.replace('_', " "),
        esc(&review.reviewer)
    ));
    if let Some(date) = review.date {
        out.push_str(&time(date));
    }
    if kept(subject, number).is_some() {
        let later = kept(subject, number + 1)
            .map(|_| format!("&amp;to={}", number + 1))
            .unwrap_or_default();
        let what = if later.is_empty() { "since then" } else { "before the next round" };
        out.push_str(&format!(
            "<a href=\"{}/changes?from={number}{later}\">What changed {what}</a>",
            subject.address()
        ));
    }
    out.push_str(&format!(
        "</p><div class=\"prose\">{}</div>",
        markdown::fragment(review.summary.as_str())
    ));
    for issue in &review.issues {
        out.push_str(&format!(
            "<details class=\"issue\" open><summary>{} <strong>I{}</strong> {}</summary><div class=\"prose\">",
            severity(issue.severity),
            issue.number,
            esc(&issue.title)
        ));
        if !issue.location.is_empty() {
            out.push_str(&format!("<p class=\"quiet\">{}</p>", esc(&issue.location)));
        }
        out.push_str(&markdown::fragment(issue.description.as_str()));
        if !issue.recommendation.is_empty() {
            out.push_str(&format!(
                "<h4>Recommendation</h4>{}",
                markdown::fragment(issue.recommendation.as_str())
            ));
        }
        out.push_str("</div></details>");
    }
    out.push_str("</section>");
}

/// The plan as a round saw it.
fn kept(subject: &Subject, number: u32) -> Option<Round> {
    let text = subject.change.read(&ChangeFile::Round(number)).ok()?;
    round::parse(&text)
}

pub(crate) fn plan_changes(app: &App, subject: &Subject, view: &View) -> Result<String, Problem> {
    let from = view.from.unwrap_or(1);
    let old = kept(subject, from).ok_or_else(Problem::not_found)?;
    let (new, name) = match view.to {
        Some(to) => (kept(subject, to).ok_or_else(Problem::not_found)?, format!("round {to}")),
        None => (subject.texts.round(), "now".to_owned()),
    };
    let here = format!("{}/reviews", subject.address());
    let mut out = format!(
        "<h1>What changed</h1><p class=\"facts\"><span>round {from} → {name}</span><a href=\"{here}\">Back to the reviews</a></p>"
    );
    let files: BTreeSet<&String> = old.files.keys().chain(new.files.keys()).collect();
    let mut differing = 0;
    for file in files {
        let text = |round: &'_ Round| round.files.get(file).cloned().unwrap_or_default();
        let (before, after) = (text(&old), text(&new));
        let changes = diff(&before, &after);
        let parts = hunks(&changes, 3);
        if parts.is_empty() {
            continue;
        }
        differing += 1;
        out.push_str(&format!("<h2><code>{}</code></h2><div class=\"diff scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Changes in {}\">", esc(file), esc(file)));
        for part in parts {
            out.push_str("<div class=\"hunk\">");
            for change in part {
                let (class, mark, line) = match change {
                    Change::Same(line) => ("same", " ", line),
                    Change::Removed(line) => ("removed", "−", line),
                    Change::Added(line) => ("added", "+", line),
                };
                out.push_str(&format!(
                    "<div class=\"{class}\"><span>{mark}</span><code>{}</code></div>",
                    esc(line)
                ));
            }
            out.push_str("</div>");
        }
        out.push_str("</div>");
    }
    if differing == 0 {
        out.push_str("<p class=\"empty\">Nothing has changed.</p>");
    }
    Ok(change_page(app, subject, &here, "What changed", &out))
}
