//! The tasks and what waits for what, drawn as SVG: columns from left to right in the
//! order in which the work can be done.

use std::collections::BTreeMap;

use agentd_core::document::tasks::{Status, Task};
use agentd_core::graph;
use agentd_core::ids::TaskId;

use super::html::esc;

const NODE_WIDTH: usize = 212;
const NODE_HEIGHT: usize = 46;
const COLUMN: usize = NODE_WIDTH + 56;
const ROW: usize = NODE_HEIGHT + 16;
const MARGIN: usize = 8;

/// A drawing of more tasks than this helps nobody; the list has them all.
const MOST: usize = 400;

/// The place of a task on the page of tasks.
pub(super) fn anchor(id: TaskId) -> String {
    format!("task-{}-{}", id.section, id.number)
}

/// The drawing; what is wrong with the order instead, where tasks wait for each other.
pub(super) fn svg(tasks: &[Task]) -> Result<String, String> {
    let order = graph::task_order(tasks).map_err(|cycle| {
        format!("These tasks wait for each other: {}", graph::task_chain(&cycle))
    })?;
    if order.is_empty() || order.len() > MOST {
        return Ok(String::new());
    }
    let ready: Vec<TaskId> = graph::ready(tasks).iter().map(|task| task.id).collect();
    let mut columns: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut filled: Vec<usize> = Vec::new();
    let mut places: BTreeMap<TaskId, (usize, usize)> = BTreeMap::new();
    for task in &order {
        let behind = task.depends_on.iter().filter_map(|id| columns.get(id)).max();
        let column = behind.map_or(0, |column| column + 1);
        columns.insert(task.id, column);
        filled.resize(filled.len().max(column + 1), 0);
        places.insert(task.id, (MARGIN + column * COLUMN, MARGIN + filled[column] * ROW));
        filled[column] += 1;
    }
    let width = 2 * MARGIN + filled.len() * COLUMN - (COLUMN - NODE_WIDTH);
    let rows = filled.iter().max().copied().unwrap_or(0);
    let height = 2 * MARGIN + rows * ROW - (ROW - NODE_HEIGHT);
    let mut out = format!(
        "<svg class=\"graph\" role=\"group\" aria-label=\"Tasks and what they wait for\" \
         viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">"
    );
    for task in &order {
        let Some(&(x, y)) = places.get(&task.id) else { continue };
        for id in &task.depends_on {
            let Some(&(from_x, from_y)) = places.get(id) else { continue };
            let (x1, y1) = (from_x + NODE_WIDTH, from_y + NODE_HEIGHT / 2);
            let (x2, y2) = (x, y + NODE_HEIGHT / 2);
            let bend = 28;
            out.push_str(&format!(
                "<path class=\"edge\" d=\"M{x1} {y1}C{} {y1} {} {y2} {x2} {y2}\"/>",
                x1 + bend,
                x2.saturating_sub(bend)
            ));
        }
    }
    for task in &order {
        let Some(&(x, y)) = places.get(&task.id) else { continue };
        let (class, state) = match task.status {
            Status::Done => ("done", "done"),
            Status::Pending if ready.contains(&task.id) => ("ready", "can be done now"),
            Status::Pending => ("waiting", "waits for others"),
        };
        node(&mut out, task, (x, y), class, state);
    }
    Ok(out + "</svg>")
}

fn node(out: &mut String, task: &Task, (x, y): (usize, usize), class: &str, state: &str) {
    const SHOWN: usize = 27;
    let title: String = task.title.as_str().chars().take(SHOWN).collect();
    let more = if task.title.as_str().chars().count() > SHOWN { "…" } else { "" };
    let mark = if task.status == Status::Done { "✓ " } else { "" };
    let layer = task.layer.map_or("", agentd_core::ids::Layer::name);
    out.push_str(&format!(
        "<a href=\"#{}\" class=\"node {class}\"><title>{} {}: {state}</title>\
         <rect x=\"{x}\" y=\"{y}\" width=\"{NODE_WIDTH}\" height=\"{NODE_HEIGHT}\" rx=\"8\"/>\
         <text x=\"{}\" y=\"{}\" class=\"small\">{mark}{} · {layer}</text>\
         <text x=\"{}\" y=\"{}\">{}{more}</text></a>",
        anchor(task.id),
        esc(&task.id),
        esc(&task.title),
        x + 12,
        y + 18,
        esc(&task.id),
        x + 12,
        y + 36,
        esc(&title),
    ));
}

#[cfg(test)]
mod tests {
    use agentd_core::document::tasks;

    use super::*;

    #[test]
    fn tasks_stand_behind_what_they_wait_for() {
        let text = "- [x] 1.1 a\n- [ ] 2.1 <b>\n  Depends: 1.1\n- [ ] 2.2 c\n  Depends: 2.1\n- [ ] 2.3 d\n";
        let svg = svg(&tasks::parse(text).value.tasks).unwrap();
        assert_eq!(svg.matches("class=\"edge\"").count(), 2);
        for class in ["node done", "node ready", "node waiting"] {
            assert!(svg.contains(class), "{svg}");
        }
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"));
    }

    #[test]
    fn a_circle_is_told() {
        let text = "- [ ] 1.1 a\n  Depends: 1.2\n- [ ] 1.2 b\n  Depends: 1.1\n";
        assert!(
            svg(&tasks::parse(text).value.tasks).unwrap_err().contains("data.1 → data.2 → data.1")
        );
    }
}
