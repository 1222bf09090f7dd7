//! The tasks and what waits for what, drawn as SVG: a lane for each layer, in the order in which they
//! are built, and in a lane from left to right what comes after what.
//!
//! Boxes stand on a grid, so that the spaces between its rows and columns are free: lines that do not
//! lead to the next box go through them, around what is in between.

use std::collections::BTreeMap;

use agentd_core::document::tasks::{Status, Task};
use agentd_core::graph;
use agentd_core::ids::{Layer, TaskId};
use maud::{Markup, html};

const NODE_WIDTH: usize = 190;
const NODE_HEIGHT: usize = 46;
/// The free space between columns, and between rows.
const COLUMN_GAP: usize = 44;
const ROW_GAP: usize = 34;
/// The names of the layers.
const LANE_LABEL: usize = 112;
const MARGIN: usize = 10;

/// How many boxes stand side by side; more go below.
const MOST_COLUMNS: usize = 4;

/// A drawing of more tasks than this is of no use; the list has them all.
const MOST: usize = 150;

/// The place of a task on the page of tasks.
pub(super) fn anchor(id: TaskId) -> String {
    format!("task-{}-{}", id.section, id.number)
}

/// A place on the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    row: usize,
    column: usize,
}

impl Cell {
    fn x(self) -> usize {
        MARGIN + LANE_LABEL + self.column * (NODE_WIDTH + COLUMN_GAP)
    }

    fn y(self) -> usize {
        MARGIN + ROW_GAP / 2 + self.row * (NODE_HEIGHT + ROW_GAP)
    }
}

/// The tasks with their places, and the rows of each lane.
struct Layout<'t> {
    tasks: Vec<(&'t Task, Cell)>,
    /// The name of a lane, its first row, and how many it has.
    lanes: Vec<(&'static str, usize, usize)>,
    columns: usize,
}

/// Each task goes into the column after the last one of its lane that it waits for.
fn layout<'t>(order: &[&'t Task]) -> Layout<'t> {
    let mut layout = Layout { tasks: Vec::new(), lanes: Vec::new(), columns: 0 };
    let mut first_row = 0;
    for layer in Layer::ALL.into_iter().map(Some).chain([None]) {
        let mut depths: BTreeMap<TaskId, usize> = BTreeMap::new();
        // How many rows of each column are taken.
        let mut filled = [0; MOST_COLUMNS];
        for task in order.iter().filter(|task| task.layer == layer) {
            let behind = task.depends_on.iter().filter_map(|id| depths.get(id)).max();
            let depth = behind.map_or(0, |depth| depth + 1);
            depths.insert(task.id, depth);
            // Those that wait for nothing in their lane share its width.
            let free = || (0..MOST_COLUMNS).min_by_key(|column| filled[*column]).unwrap_or(0);
            let column = if depth == 0 { free() } else { depth.min(MOST_COLUMNS - 1) };
            let cell = Cell { row: first_row + filled[column], column };
            filled[column] += 1;
            layout.columns = layout.columns.max(column + 1);
            layout.tasks.push((task, cell));
        }
        let rows = filled.into_iter().max().unwrap_or(0);
        if rows > 0 {
            layout.lanes.push((layer.map_or("other", Layer::name), first_row, rows));
            first_row += rows;
        }
    }
    layout
}

/// The drawing, if one helps; as an error the circle, if tasks wait for each other.
pub(super) fn svg(tasks: &[Task], running: bool) -> Result<Option<Markup>, String> {
    let order = graph::task_order(tasks).map_err(|cycle| {
        format!("These tasks wait for each other: {}", graph::task_chain(&cycle))
    })?;
    if order.is_empty() || order.len() > MOST {
        return Ok(None);
    }
    let next = next(tasks);
    let Layout { tasks, lanes, columns } = layout(&order);
    let places: BTreeMap<TaskId, Cell> =
        tasks.iter().map(|(task, cell)| (task.id, *cell)).collect();
    let rows: usize = lanes.iter().map(|(_, _, rows)| rows).sum();
    let width = 2 * MARGIN + LANE_LABEL + columns * (NODE_WIDTH + COLUMN_GAP) - COLUMN_GAP / 2;
    let height = 2 * MARGIN + rows * (NODE_HEIGHT + ROW_GAP);
    Ok(Some(html! {
        svg.graph role="group" aria-label="Tasks and what they wait for"
            viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) {
            defs {
                marker #arrow viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
                    orient="auto-start-reverse" { path d="M0 0 8 4 0 8z" {} }
                clipPath #node-clip {
                    rect x="4" y="0" width=(NODE_WIDTH - 8) height=(NODE_HEIGHT) {}
                }
            }
            @for (index, (name, first, rows)) in lanes.iter().enumerate() {
                @let top = Cell { row: *first, column: 0 }.y() - ROW_GAP / 2;
                @if index % 2 == 1 {
                    rect.lane x="0" y=(top) width=(width) height=(rows * (NODE_HEIGHT + ROW_GAP)) {}
                }
                text.lane-name x=(MARGIN) y=(top + ROW_GAP / 2 + NODE_HEIGHT / 2 + 4) { (name) }
            }
            @for (task, cell) in &tasks {
                @for from in &task.depends_on {
                    @if let Some(place) = places.get(from) {
                        path.edge d=(route(*place, *cell)) marker-end="url(#arrow)"
                            data-from=(anchor(*from)) data-to=(anchor(task.id)) {}
                    }
                }
            }
            @for (task, cell) in &tasks {
                (node(task, *cell, next.contains(&task.id), running))
            }
        }
    }))
}

/// The tasks that can be done next: layers are built in order.
fn next(tasks: &[Task]) -> Vec<TaskId> {
    let pending = |task: &&Task| task.status == Status::Pending;
    // Without a layer it is ordinary logic, as the workflow sees it.
    let layer = |task: &Task| task.layer.unwrap_or(Layer::Logic);
    let order = |layer: Layer| Layer::ALL.iter().position(|other| *other == layer);
    let Some(first) = tasks.iter().filter(pending).map(layer).min_by_key(|it| order(*it)) else {
        return Vec::new();
    };
    let ready = graph::ready(tasks).into_iter().filter(|task| layer(task) == first);
    ready.map(|task| task.id).collect()
}

/// A line from one task to the one that waits for it.
fn route(from: Cell, to: Cell) -> String {
    let middle = NODE_HEIGHT / 2;
    if from.row == to.row && from.column + 1 == to.column {
        let y = from.y() + middle;
        return format!("M{} {y}H{}", from.x() + NODE_WIDTH, to.x() - 2);
    }
    // Lines in the same space lie beside each other.
    let shift = (from.row * 7 + from.column * 5 + to.column * 3) % 5 * 4;
    let (x1, x2) = (from.x() + NODE_WIDTH / 2, to.x() + NODE_WIDTH / 2);
    let below = from.y() + NODE_HEIGHT + 7 + shift / 2;
    let above = to.y() - 9 - shift / 4;
    let end = to.y() - 2;
    if from.row + 1 == to.row {
        return format!("M{x1} {}V{below}H{x2}V{end}", from.y() + NODE_HEIGHT);
    }
    let channel = to.x() - COLUMN_GAP / 2 - 8 + shift;
    format!("M{x1} {}V{below}H{channel}V{above}H{x2}V{end}", from.y() + NODE_HEIGHT)
}

/// A title, shortened to what fits into a box. What the estimate misses is clipped.
fn fitting(title: &str) -> String {
    const UNITS: usize = 25;
    let mut units = 0;
    let mut out = String::new();
    for c in title.chars() {
        // Characters of East Asia are twice as wide.
        units += if c >= '\u{2e80}' { 2 } else { 1 };
        if units > UNITS {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

fn node(task: &Task, cell: Cell, is_next: bool, running: bool) -> Markup {
    let (class, mark, state) = match task.status {
        Status::Done => ("done", "✓ ", "done"),
        Status::Pending if is_next && running => ("ready running", "", "in work"),
        Status::Pending if is_next => ("ready", "", "next"),
        Status::Pending => ("waiting", "", "waits for others"),
    };
    let file = task.file.as_ref().map_or("", |file| file.as_str());
    let name = file.rsplit('/').next().unwrap_or_default();
    html! {
        a.node.(class) href={ "#" (anchor(task.id)) } data-task=(anchor(task.id)) {
            title { (task.id) " " (task.title) ": " (state) ". " (file) }
            g transform={ "translate(" (cell.x()) " " (cell.y()) ")" } {
                rect width=(NODE_WIDTH) height=(NODE_HEIGHT) rx="8" {}
                g clip-path="url(#node-clip)" {
                    text.small x="12" y="18" { (mark) (task.id) " " (fitting(name)) }
                    text x="12" y="36" { (fitting(task.title.as_str())) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_core::document::tasks;

    use super::*;

    const TASKS: &str = "## 1. Data Layer\n\n- [x] 1.1 a\n- [ ] 1.2 b\n\n## 2. Logic Layer\n\n\
        - [ ] 2.1 <b>\n  Depends: 1.1\n- [ ] 2.2 c\n  Depends: 2.1\n- [ ] 2.3 d\n\n\
        ## 4. Testing Layer\n\n- [ ] 4.1 e\n  Depends: 1.1, 2.2\n";

    #[test]
    fn layers_are_lanes_and_come_in_order() {
        let tasks = tasks::parse(TASKS).value.tasks;
        let svg = svg(&tasks, false).unwrap().unwrap().into_string();
        assert_eq!(svg.matches("class=\"edge\"").count(), 4);
        assert_eq!(svg.matches("marker-end").count(), 4, "each has an arrow");
        assert_eq!(svg.matches("class=\"lane-name\"").count(), 3);
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"));
        // 2.3 waits for nobody, but the data layer is not built yet (D11).
        let next: Vec<String> = next(&tasks).iter().map(ToString::to_string).collect();
        assert_eq!(next, ["1.2"]);
    }

    /// No line runs through a box that it does not lead to or from.
    #[test]
    fn lines_go_around_boxes() {
        let cell = |row, column| Cell { row, column };
        let all: Vec<Cell> =
            (0..5).flat_map(|row| (0..5).map(move |column| cell(row, column))).collect();
        for &from in &all {
            for &to in &all {
                let is_later = to.row > from.row || (to.row == from.row && to.column > from.column);
                if !is_later {
                    continue;
                }
                let points = points(&route(from, to));
                for pair in points.windows(2) {
                    for other in all.iter().filter(|other| **other != from && **other != to) {
                        assert!(
                            !crosses(pair[0], pair[1], *other),
                            "{from:?} to {to:?} through {other:?}"
                        );
                    }
                }
            }
        }
    }

    /// The corners of a path of `M`, `H` and `V`.
    fn points(path: &str) -> Vec<(usize, usize)> {
        let rest = path.strip_prefix('M').unwrap();
        let end = rest.find(['H', 'V']).unwrap();
        let (x, y) = rest[..end].split_once(' ').unwrap();
        let mut at = (x.parse().unwrap(), y.parse().unwrap());
        let mut points = vec![at];
        let mut rest = &rest[end..];
        while !rest.is_empty() {
            let end = rest[1..].find(['H', 'V']).map_or(rest.len(), |end| end + 1);
            let number = rest[1..end].parse().unwrap();
            if rest.starts_with('H') {
                at.0 = number;
            } else {
                at.1 = number;
            }
            points.push(at);
            rest = &rest[end..];
        }
        points
    }

    fn crosses(a: (usize, usize), b: (usize, usize), cell: Cell) -> bool {
        let (left, right) = (a.0.min(b.0), a.0.max(b.0));
        let (top, bottom) = (a.1.min(b.1), a.1.max(b.1));
        left < cell.x() + NODE_WIDTH
            && right > cell.x()
            && top < cell.y() + NODE_HEIGHT
            && bottom > cell.y()
    }

    #[test]
    fn titles_fit() {
        assert_eq!(fitting("short"), "short");
        assert_eq!(fitting(&"x".repeat(40)).chars().count(), 26);
        assert_eq!(fitting(&"寬".repeat(40)).chars().count(), 13);
    }

    #[test]
    fn a_circle_is_reported() {
        let text = "- [ ] 1.1 a\n  Depends: 1.2\n- [ ] 1.2 b\n  Depends: 1.1\n";
        let circle = svg(&tasks::parse(text).value.tasks, false).unwrap_err();
        assert!(circle.contains("data.1 → data.2 → data.1"), "{circle}");
    }
}
