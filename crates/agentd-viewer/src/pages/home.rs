//! All changes, as a board by phase.

use std::sync::Arc;

use agentd_core::ids::SpecId;
use agentd_core::layout::ArchiveName;
use agentd_core::phase::Phase;

use crate::App;
use crate::board::Board;
use crate::conflicts::Conflict;
use crate::html::{Page, dollars, esc, progress};
use crate::problem::Problem;
use crate::summaries::Known;

/// How much of what it shares a card tells; `agentd overlap` tells all.
const SHOWN_CONFLICTS: usize = 3;

/// The columns of the board. New changes have no state yet.
const COLUMNS: [(&str, &[Option<Phase>]); 5] = [
    ("Planning", &[None, Some(Phase::Proposed)]),
    ("Approved", &[Some(Phase::Challenged)]),
    ("Implementing", &[Some(Phase::Implementing)]),
    ("Complete", &[Some(Phase::Complete), Some(Phase::Archived)]),
    ("Rejected", &[Some(Phase::Rejected)]),
];

pub(crate) fn home(app: &Arc<App>) -> Result<String, Problem> {
    let Board { changes: mut summaries, running, specs, archived, mark } = Board::look(app)?;
    let conflicts = app.conflicts.of(app, &summaries);
    summaries.sort_by(|a, b| b.summary.updated_at.cmp(&a.summary.updated_at));
    let mut out = String::with_capacity(600 * summaries.len() + 4096);
    let cost: f64 = summaries.iter().map(|known| known.summary.cost_usd).sum();
    out.push_str(&format!(
        "<div class=\"title-row\"><h1>{}</h1><p class=\"quiet\" data-live=\"totals\">{} open · {} spent</p>",
        esc(&app.project_name()),
        agentd_core::text::counted(summaries.len(), "change"),
        dollars(cost)
    ));
    let hidden = if summaries.is_empty() { " hidden" } else { "" };
    out.push_str(&format!(
        "<label class=\"filter\"{hidden}><span class=\"visually-hidden\">Filter changes</span>\
         <input type=\"search\" id=\"filter\" placeholder=\"Filter changes ( / )\" autocomplete=\"off\"></label></div>\
         <div data-live=\"empty\">",
    ));
    if summaries.is_empty() {
        out.push_str("<p class=\"empty\">No change is open. Begin one in a terminal:<br><code>agentd plan &lt;id&gt; \"&lt;what you want&gt;\"</code></p>");
    }
    out.push_str(&format!(
        "</div><div class=\"board\" id=\"board\" data-follow=\"/live?after={mark:016x}\">"
    ));
    for (name, phases) in COLUMNS {
        let here: Vec<&Arc<Known>> =
            summaries.iter().filter(|known| phases.contains(&known.summary.phase)).collect();
        if here.is_empty() {
            continue;
        }
        out.push_str(&format!(
            "<section class=\"column\" data-column=\"{name}\"><h2>{name} <span class=\"count\">{}</span></h2><ul class=\"cards\">",
            here.len()
        ));
        for known in here {
            let id = &known.summary.change_id;
            let shared = conflicts.get(id).map_or(&[][..], Vec::as_slice);
            card(&mut out, known, running.contains(id), shared);
        }
        out.push_str("</ul></section>");
    }
    out.push_str("</div><div data-live=\"more\">");
    specs_and_archive(&specs, &archived, &mut out);
    out.push_str("</div>");
    let name = app.project_name();
    Ok(Page { title: &format!("{name} · agentd"), crumbs: &[], project: &name, body: &out }
        .render())
}

fn card(out: &mut String, known: &Known, running: bool, shared: &[Conflict]) {
    let summary = &known.summary;
    let id = &summary.change_id;
    out.push_str(&format!(
        "<li class=\"card\" data-id=\"{id}\"><a href=\"/changes/{id}\"><strong>{}</strong><code>{id}</code></a><p class=\"facts\">",
        esc(&known.title),
    ));
    out.push_str(&progress(summary.tasks.completed, summary.tasks.total));
    out.push_str(&format!("<span>{}</span>", dollars(summary.cost_usd)));
    if let Some(action) = &summary.last_action {
        out.push_str(&format!("<span>{}</span>", esc(action)));
    }
    if let Some(at) = &summary.updated_at {
        out.push_str(&format!(
            "<time datetime=\"{}\">{}</time>",
            esc(at),
            esc(at.get(..10).unwrap_or(at))
        ));
    }
    if running {
        out.push_str("<span class=\"badge live\">running</span>");
    }
    if summary.problem.is_some() {
        out.push_str("<span class=\"badge high\">unreadable</span>");
    } else if summary.phase.is_none() {
        out.push_str("<span class=\"badge\">new</span>");
    }
    for conflict in shared.iter().take(SHOWN_CONFLICTS) {
        out.push_str(&format!(
            "<a class=\"badge medium\" href=\"/changes/{}\">shares {} with {}</a>",
            conflict.with,
            esc(&conflict.what),
            conflict.with
        ));
    }
    if shared.len() > SHOWN_CONFLICTS {
        let more = shared.len() - SHOWN_CONFLICTS;
        out.push_str(&format!("<span class=\"badge medium\">and {more} more</span>"));
    }
    out.push_str("</p></li>");
}

fn specs_and_archive(specs: &[SpecId], archived: &[ArchiveName], out: &mut String) {
    let mut list = |title: &str, items: Vec<(String, String)>| {
        if items.is_empty() {
            return;
        }
        out.push_str(&format!(
            "<section class=\"more\"><h2>{title} <span class=\"count\">{}</span></h2><ul class=\"names\">",
            items.len()
        ));
        for (address, name) in items {
            out.push_str(&format!("<li><a href=\"{}\">{}</a></li>", esc(&address), esc(&name)));
        }
        out.push_str("</ul></section>");
    };
    list("Main specs", specs.iter().map(|id| (format!("/specs/{id}"), id.to_string())).collect());
    let newest_first = archived.iter().rev();
    list(
        "Archive",
        newest_first.map(|name| (format!("/archive/{name}"), name.to_string())).collect(),
    );
}
