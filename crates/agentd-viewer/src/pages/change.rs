//! The first page of a change: where it stands, what is wrong, what there is to decide.

use agentd_core::check::FileReport;
use agentd_core::document::issue_fate::Fate;
use agentd_core::figures::tokens;
use agentd_core::phase::Phase;
use agentd_core::state::State;
use agentd_engine::workflow::decisions;

use super::change_page;
use crate::App;
use crate::charts;
use crate::findings::over_rounds;
use crate::html::{dollars, esc, progress, severity, time};
use crate::markdown;
use crate::problem::Problem;
use crate::subject::Subject;

pub(crate) fn overview(app: &App, subject: &Subject) -> Result<String, Problem> {
    let mut out = head(subject);
    if let Some(problem) = &subject.problem {
        out.push_str(&format!("<p class=\"alert\" role=\"alert\">{}</p>", esc(problem)));
    }
    out.push_str("<div data-live=\"decision\">");
    if subject.is_open() {
        decision(&mut out, subject);
    }
    out.push_str("</div>");
    if !subject.proposal.summary.is_empty() {
        let summary = markdown::fragment(subject.proposal.summary.as_str());
        out.push_str(&format!("<section class=\"prose lead\">{summary}</section>"));
    } else if let Some(asked) = subject.state.as_ref().and_then(|state| state.description.as_ref())
    {
        out.push_str(&format!(
            "<section class=\"prose lead\">{}</section>",
            markdown::fragment(asked.as_str())
        ));
    }
    if subject.is_open() {
        super::runs::live_panel(app, &mut out, subject)?;
    }
    out.push_str("<div class=\"two\" data-live=\"findings\">");
    findings(&mut out, subject);
    diagnostics(&mut out, subject);
    out.push_str("</div><div data-live=\"timeline\">");
    if let Some(state) = &subject.state {
        timeline(&mut out, state);
        history(&mut out, state);
    }
    out.push_str("</div>");
    Ok(change_page(app, subject, &subject.address(), &subject.title(), &out))
}

/// The steps of a change's life, in order.
const LIFE: [Phase; 5] =
    [Phase::Proposed, Phase::Challenged, Phase::Implementing, Phase::Complete, Phase::Archived];

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Proposed => "Planning",
        Phase::Challenged => "Approved",
        Phase::Rejected => "Rejected",
        Phase::Implementing => "Implementing",
        Phase::Complete => "Complete",
        Phase::Archived => "Archived",
    }
}

fn head(subject: &Subject) -> String {
    let mut out = format!(
        "<header class=\"change-head\" data-live=\"head\"><h1>{}</h1><p class=\"facts\"><code>{}</code>",
        esc(&subject.title()),
        subject.id()
    );
    if let Some(command) = &subject.running {
        out.push_str(&format!(
            "<span class=\"badge live\" title=\"{}\">running</span>",
            esc(command)
        ));
    }
    let verdict = subject.verdict().map(agentd_core::document::review_block::PlanVerdict::label);
    if let Some(verdict) = verdict {
        let class = verdict.to_lowercase().replace('_', "-");
        out.push_str(&format!(
            "<span class=\"badge {class}\">{}</span>",
            verdict.replace('_', " ")
        ));
    }
    out.push_str(&progress(subject.completed(), subject.tasks.tasks.len()));
    if let Some(state) = &subject.state {
        out.push_str(&format!("<span>{}</span>", dollars(state.total_cost)));
        out.push_str(&format!(
            "<span>{} tokens</span>",
            tokens(state.total_tokens_in.saturating_add(state.total_tokens_out))
        ));
        if let Some(action) = &state.last_action {
            out.push_str(&format!("<span>last: {}</span>", esc(action)));
        }
        if let Some(at) = state.updated_at {
            out.push_str(&time(at));
        }
    }
    out.push_str("</p><ol class=\"life\" aria-label=\"Phases\">");
    let phase = subject.phase();
    let at = phase.and_then(|phase| LIFE.iter().position(|step| *step == phase));
    for (index, step) in LIFE.iter().enumerate() {
        let rejected = phase == Some(Phase::Rejected) && index == 1;
        let (class, current) = match at {
            _ if rejected => ("bad now", " aria-current=\"step\""),
            Some(at) if index == at => ("now", " aria-current=\"step\""),
            Some(at) if index < at => ("past", ""),
            _ if phase == Some(Phase::Rejected) && index == 0 => ("past", ""),
            _ => ("", ""),
        };
        let name = if rejected { phase_name(Phase::Rejected) } else { phase_name(*step) };
        out.push_str(&format!("<li class=\"{class}\"{current}>{name}</li>"));
    }
    out.push_str("</ol></header>");
    out
}

/// The question that a plan waits with, as three buttons.
fn decision(out: &mut String, subject: &Subject) {
    if subject.phase() != Some(Phase::Proposed) {
        return;
    }
    let (Some(state), Some(review)) = (&subject.state, subject.proposal.reviews.last()) else {
        return;
    };
    let counts = review.counts();
    let accept = match review.issues.len() {
        0 => "Approve".to_owned(),
        1 => "Accept with 1 minor issue".to_owned(),
        n => format!("Accept with {n} minor issues"),
    };
    let why_not = decisions::accepted(state, &subject.texts).err();
    let why_not = why_not.map(|refused| refused.reason.unwrap_or("its phase does not allow it"));
    let decided = state
        .decisions
        .last()
        .filter(|decision| review.date.is_some_and(|date| decision.at.moment() >= date.moment()));
    out.push_str(&format!(
        "<form class=\"decision\" method=\"post\" action=\"{}/decide\"><h2>Your decision</h2>",
        subject.address()
    ));
    out.push_str(&format!(
        "<p>Round {} ended with <strong>{}</strong>: {} high, {} medium, {} low.</p>",
        review.iteration,
        review.verdict.label().replace('_', " "),
        counts.high,
        counts.medium,
        counts.low
    ));
    if let Some(decision) = decided {
        out.push_str(&format!(
            "<p class=\"decided\">Decided: <strong>{}</strong> by {} {}{}</p>",
            esc(choice(decision.choice)),
            esc(&decision.by),
            time(decision.at),
            if decision.note.is_empty() {
                String::new()
            } else {
                format!(" “{}”", esc(&decision.note))
            }
        ));
    }
    out.push_str(
        "<label>Why <input name=\"note\" maxlength=\"400\" placeholder=\"optional, kept with the decision\" autocomplete=\"off\"></label>\
         <div class=\"buttons\"><button name=\"choice\" value=\"fix\" class=\"primary\">Request changes</button>",
    );
    let disabled = if why_not.is_some() { " disabled aria-describedby=\"why-not\"" } else { "" };
    out.push_str(&format!(
        "<button name=\"choice\" value=\"accept\"{disabled}>{}</button>\
         <button name=\"choice\" value=\"stop\">Stop here</button></div>",
        esc(&accept)
    ));
    if let Some(why) = why_not {
        out.push_str(&format!(
            "<p class=\"quiet\" id=\"why-not\">It cannot be accepted: {}.</p>",
            esc(why)
        ));
    }
    out.push_str("</form>");
}

fn choice(choice: agentd_core::state::Choice) -> &'static str {
    match choice {
        agentd_core::state::Choice::Fix => "changes requested",
        agentd_core::state::Choice::Accept => "accepted",
        agentd_core::state::Choice::Stop => "stopped",
        agentd_core::state::Choice::Archive => "archived by force",
    }
}

/// The findings of the last round, and how many are settled.
fn findings(out: &mut String, subject: &Subject) {
    let all = over_rounds(&subject.proposal.reviews);
    if all.is_empty() {
        return;
    }
    let gone = all.iter().filter(|finding| finding.fate == Fate::Fixed).count();
    out.push_str(&format!(
        "<section class=\"panel\"><h2>Findings <span class=\"quiet\">{} open, {gone} fixed</span></h2><ul class=\"findings\">",
        all.len() - gone
    ));
    for finding in all.iter().take(12) {
        let standing = finding.fate.name();
        out.push_str(&format!(
            "<li class=\"{}\">{} <a href=\"{}/reviews#i{}\">{}</a> <span class=\"standing\">{}</span></li>",
            standing,
            severity(finding.issue.severity),
            subject.address(),
            finding.issue.number,
            esc(&finding.issue.title),
            standing,
        ));
    }
    out.push_str("</ul>");
    if all.len() > 12 {
        out.push_str(&format!(
            "<p><a href=\"{}/reviews\">All {} findings</a></p>",
            subject.address(),
            all.len()
        ));
    }
    out.push_str("</section>");
}

/// What `agentd validate` says, by document.
fn diagnostics(out: &mut String, subject: &Subject) {
    let count: usize = subject.reports.iter().map(|report| report.diagnostics.len()).sum();
    if !subject.is_open() {
        return;
    }
    out.push_str("<section class=\"panel\"><h2>Validation ");
    if count == 0 {
        out.push_str("</h2><p class=\"good\">✓ The documents are sound.</p></section>");
        return;
    }
    out.push_str(&format!(
        "<span class=\"quiet\">{}</span></h2><ul class=\"findings\">",
        agentd_core::text::counted(count, "finding")
    ));
    for (file, name) in subject.documents() {
        let (text, found) = subject.diagnostics(&file);
        for diagnostic in found.iter().take(8) {
            let line = agentd_core::span::line_column(text, diagnostic.span.start).0;
            out.push_str(&format!(
                "<li>{} <a href=\"{}?view=source#L{line}\">{}:{line}</a> {}</li>",
                severity(diagnostic.severity()),
                esc(&subject.document_address(&file)),
                esc(&name),
                esc(&diagnostic.message)
            ));
        }
    }
    // Findings about files that have no page, such as a stray one among the specs.
    let shown = subject.documents();
    let has_page = |report: &FileReport| {
        report.file.in_change().is_some_and(|file| shown.iter().any(|(known, _)| known == file))
    };
    for report in subject.reports.iter().filter(|report| !has_page(report)) {
        for diagnostic in report.diagnostics.iter().take(8) {
            out.push_str(&format!(
                "<li>{} <code>{}</code> {}</li>",
                severity(diagnostic.severity()),
                esc(report.file.path().rsplit('/').next().unwrap_or_default()),
                esc(&diagnostic.message)
            ));
        }
    }
    out.push_str("</ul></section>");
}

fn timeline(out: &mut String, state: &State) {
    if state.llm_calls.is_empty() {
        return;
    }
    out.push_str(&format!(
        "<section class=\"panel\"><h2>Timeline</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Timeline\">{}</div></section>",
        charts::timeline(&state.llm_calls)
    ));
}

/// What people have decided.
fn history(out: &mut String, state: &State) {
    if state.decisions.is_empty() {
        return;
    }
    out.push_str("<section class=\"panel\"><h2>Decisions</h2><ul class=\"plain\">");
    for decision in state.decisions.iter().rev() {
        let note = if decision.note.is_empty() {
            String::new()
        } else {
            format!(" “{}”", esc(&decision.note))
        };
        out.push_str(&format!(
            "<li>{} {} by {}{note}</li>",
            time(decision.at),
            choice(decision.choice),
            esc(&decision.by)
        ));
    }
    out.push_str("</ul></section>");
}
