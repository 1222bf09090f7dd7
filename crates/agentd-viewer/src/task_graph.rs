//! The tasks and what waits for what, drawn as SVG: columns from left to right in the
//! order in which the work can be done.

use std::collections::BTreeMap;

use agentd_core::document::tasks::{Status, Task};
use agentd_core::graph;
use agentd_core::ids::TaskId;
use maud::{Markup, html};

const NODE_WIDTH: usize = 212;
const NODE_HEIGHT: usize = 46;
const COLUMN: usize = NODE_WIDTH + 56;
const ROW: usize = NODE_HEIGHT + 16;
const MARGIN: usize = 8;

/// A drawing of more tasks than this is of no use; the list has them all.
const MOST: usize = 400;

/// The place of a task on the page of tasks.
pub(super) fn anchor(id: TaskId) -> String {
    format!("task-{}-{}", id.section, id.number)
}

/// The tasks with their places in the drawing.
struct Layout<'t> {
    tasks: Vec<(&'t Task, Point)>,
    width: usize,
    height: usize,
}

/// The upper left corner of a task.
#[derive(Debug, Clone, Copy)]
struct Point {
    x: usize,
    y: usize,
}

/// Each task goes into the column after the last one that it waits for.
fn layout<'t>(order: &[&'t Task]) -> Layout<'t> {
    let mut columns: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut filled: Vec<usize> = Vec::new();
    let mut tasks = Vec::new();
    for task in order {
        let behind = task.depends_on.iter().filter_map(|id| columns.get(id)).max();
        let column = behind.map_or(0, |column| column + 1);
        columns.insert(task.id, column);
        filled.resize(filled.len().max(column + 1), 0);
        tasks
            .push((*task, Point { x: MARGIN + column * COLUMN, y: MARGIN + filled[column] * ROW }));
        filled[column] += 1;
    }
    let rows = filled.iter().max().copied().unwrap_or(0);
    Layout {
        tasks,
        width: 2 * MARGIN + filled.len() * COLUMN - (COLUMN - NODE_WIDTH),
        height: 2 * MARGIN + rows * ROW - (ROW - NODE_HEIGHT),
    }
}

/// The drawing, if one helps; as an error the circle, if tasks wait for each other.
pub(super) fn svg(tasks: &[Task]) -> Result<Option<Markup>, String> {
    let order = graph::task_order(tasks).map_err(|cycle| {
        format!("These tasks wait for each other: {}", graph::task_chain(&cycle))
    })?;
    if order.is_empty() || order.len() > MOST {
        return Ok(None);
    }
    let ready: Vec<TaskId> = graph::ready(tasks).iter().map(|task| task.id).collect();
    let Layout { tasks, width, height } = layout(&order);
    let places: BTreeMap<TaskId, Point> =
        tasks.iter().map(|(task, place)| (task.id, *place)).collect();
    Ok(Some(html! {
        svg.graph role="group" aria-label="Tasks and what they wait for"
            viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) {
            @for (task, place) in &tasks {
                @for from in task.depends_on.iter().filter_map(|id| places.get(id)) {
                    (edge(*from, *place))
                }
            }
            @for (task, place) in &tasks {
                (node(task, *place, ready.contains(&task.id)))
            }
        }
    }))
}

/// A line from one task to the one that waits for it.
fn edge(from: Point, to: Point) -> Markup {
    const BEND: usize = 28;
    let (x1, y1) = (from.x + NODE_WIDTH, from.y + NODE_HEIGHT / 2);
    let (x2, y2) = (to.x, to.y + NODE_HEIGHT / 2);
    let (bend1, bend2) = (x1 + BEND, x2.saturating_sub(BEND));
    html! { path.edge d=(format!("M{x1} {y1}C{bend1} {y1} {bend2} {y2} {x2} {y2}")) {} }
}

fn node(task: &Task, Point { x, y }: Point, ready: bool) -> Markup {
    const SHOWN: usize = 27;
    let (class, mark, state) = match task.status {
        Status::Done => ("done", "✓ ", "done"),
        Status::Pending if ready => ("ready", "", "can be done now"),
        Status::Pending => ("waiting", "", "waits for others"),
    };
    let title: String = task.title.as_str().chars().take(SHOWN).collect();
    let more = if task.title.as_str().chars().count() > SHOWN { "…" } else { "" };
    let layer = task.layer.map_or("", agentd_core::ids::Layer::name);
    html! {
        a.node.(class) href={ "#" (anchor(task.id)) } {
            title { (task.id) " " (task.title) ": " (state) }
            rect x=(x) y=(y) width=(NODE_WIDTH) height=(NODE_HEIGHT) rx="8" {}
            text.small x=(x + 12) y=(y + 18) { (mark) (task.id) " · " (layer) }
            text x=(x + 12) y=(y + 36) { (title) (more) }
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_core::document::tasks;

    use super::*;

    #[test]
    fn tasks_come_after_what_they_wait_for() {
        let text = "- [x] 1.1 a\n- [ ] 2.1 <b>\n  Depends: 1.1\n- [ ] 2.2 c\n  Depends: 2.1\n- [ ] 2.3 d\n";
        let svg = svg(&tasks::parse(text).value.tasks).unwrap().unwrap().into_string();
        assert_eq!(svg.matches("class=\"edge\"").count(), 2);
        for class in ["node done", "node ready", "node waiting"] {
            assert!(svg.contains(class), "{svg}");
        }
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"));
    }

    #[test]
    fn a_circle_is_reported() {
        let text = "- [ ] 1.1 a\n  Depends: 1.2\n- [ ] 1.2 b\n  Depends: 1.1\n";
        let circle = svg(&tasks::parse(text).value.tasks).unwrap_err();
        assert!(circle.contains("data.1 → data.2 → data.1"), "{circle}");
    }
}
