//! All changes, as a board by phase.

use std::collections::{BTreeMap, BTreeSet};

use agentd_core::ids::ChangeId;
use agentd_core::phase::Phase;
use agentd_engine::overlap::overlaps;
use agentd_engine::store::{Project, map_parallel};

use crate::cli::summary::{self, Summary};
use crate::viewer::App;
use crate::viewer::html::{Page, dollars, esc, progress};
use crate::viewer::markdown::headline;
use crate::viewer::problem::Problem;
use crate::viewer::subject;

/// Two open changes that touch the same thing.
pub(super) struct Conflict {
    pub(super) with: ChangeId,
    pub(super) what: String,
}

/// What each open change shares with others, as `agentd overlap` finds it. A board without
/// it is still a board.
fn conflicts(project: &Project) -> BTreeMap<ChangeId, Vec<Conflict>> {
    let mut shared: BTreeMap<ChangeId, Vec<Conflict>> = BTreeMap::new();
    for overlap in overlaps(project, None).unwrap_or_default() {
        for touch in &overlap.changes {
            let others = overlap.changes.iter().filter(|other| other.change_id != touch.change_id);
            let others = others.map(|other| (other.change_id.clone(), overlap.what.clone()));
            let conflicts = others.map(|(with, what)| Conflict { with, what });
            shared.entry(touch.change_id.clone()).or_default().extend(conflicts);
        }
    }
    shared
}

/// The columns of the board. New changes have no state yet.
const COLUMNS: [(&str, &[Option<Phase>]); 5] = [
    ("Planning", &[None, Some(Phase::Proposed)]),
    ("Approved", &[Some(Phase::Challenged)]),
    ("Implementing", &[Some(Phase::Implementing)]),
    ("Complete", &[Some(Phase::Complete), Some(Phase::Archived)]),
    ("Rejected", &[Some(Phase::Rejected)]),
];

pub(crate) fn home(app: &App) -> Result<String, Problem> {
    let project = &app.project;
    let listed = project.change_ids()?;
    let summaries = map_parallel(&listed.ids, |id| summary::of(project, id));
    // One that cannot be looked at must not take the others with it.
    let mut summaries: Vec<Summary> = summaries.into_iter().filter_map(Result::ok).collect();
    summaries.sort_by(|a, b| b.updated_at.cmp(&a.updated_at));
    let running = running(project);
    let conflicts = conflicts(project);
    let mut out = String::with_capacity(600 * summaries.len() + 4096);
    let cost: f64 = summaries.iter().map(|summary| summary.cost_usd).sum();
    out.push_str(&format!(
        "<div class=\"title-row\"><h1>{}</h1><p class=\"quiet\">{} open · {} spent</p>",
        esc(&app.project_name()),
        crate::ui::counted(summaries.len(), "change"),
        dollars(cost)
    ));
    if !summaries.is_empty() {
        out.push_str(
            "<label class=\"filter\"><span class=\"visually-hidden\">Filter changes</span>\
             <input type=\"search\" id=\"filter\" placeholder=\"Filter changes ( / )\" autocomplete=\"off\"></label>",
        );
    }
    out.push_str("</div>");
    if summaries.is_empty() {
        out.push_str("<p class=\"empty\">No change is open. Begin one in a terminal:<br><code>agentd plan &lt;id&gt; \"&lt;what you want&gt;\"</code></p>");
    }
    out.push_str("<div class=\"board\">");
    for (name, phases) in COLUMNS {
        let here: Vec<&Summary> = summaries.iter().filter(|s| phases.contains(&s.phase)).collect();
        if here.is_empty() {
            continue;
        }
        out.push_str(&format!(
            "<section class=\"column\"><h2>{name} <span class=\"count\">{}</span></h2><ul class=\"cards\">",
            here.len()
        ));
        for summary in here {
            let shared = conflicts.get(&summary.change_id).map_or(&[][..], Vec::as_slice);
            card(&mut out, summary, running.contains(&summary.change_id), shared);
        }
        out.push_str("</ul></section>");
    }
    out.push_str("</div>");
    specs_and_archive(app, &mut out)?;
    let name = app.project_name();
    Ok(Page { title: &format!("{name} · agentd"), crumbs: &[], project: &name, body: &out }
        .render())
}

/// The changes on which a workflow runs now: only those with a lock file are looked at.
fn running(project: &Project) -> BTreeSet<ChangeId> {
    let entries = project.dir().list_dir(&agentd_core::layout::locks_dir()).unwrap_or_default();
    let ids =
        entries.iter().filter_map(|entry| ChangeId::new(entry.name.strip_suffix(".run")?).ok());
    ids.filter(|id| subject::running(project, id).is_some()).collect()
}

fn card(out: &mut String, summary: &Summary, running: bool, shared: &[Conflict]) {
    let id = &summary.change_id;
    out.push_str(&format!(
        "<li class=\"card\"><a href=\"/changes/{id}\"><strong>{}</strong><code>{id}</code></a><p class=\"facts\">",
        esc(&if summary.title.is_empty() { id.to_string() } else { headline(&summary.title) }),
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
    for conflict in shared {
        out.push_str(&format!(
            "<a class=\"badge medium\" href=\"/changes/{}\">shares {} with {}</a>",
            conflict.with,
            esc(&conflict.what),
            conflict.with
        ));
    }
    out.push_str("</p></li>");
}

fn specs_and_archive(app: &App, out: &mut String) -> Result<(), Problem> {
    let specs = app.project.spec_ids()?.ids;
    let archived = app.project.archived()?.ids;
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
    Ok(())
}
