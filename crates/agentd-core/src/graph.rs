//! Order between tasks and between specs: cycles, layers, what can be done next.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::document::proposal::AffectedSpec;
use crate::document::tasks::{Status, Task};
use crate::ids::{SpecId, TaskId};

/// A circle of dependencies, in order; the last depends on the first.
pub(crate) type Cycle<T> = Vec<T>;

/// Nodes and what each depends on, in the order in which they are listed.
/// A dependency on something that is not listed is ignored here; it is
/// reported elsewhere.
fn order<T: Ord + Clone>(nodes: &[(T, Vec<T>)]) -> Result<Vec<usize>, Cycle<T>> {
    // Of things listed twice the first counts.
    let mut index: BTreeMap<&T, usize> = BTreeMap::new();
    for (i, (node, _)) in nodes.iter().enumerate() {
        index.entry(node).or_insert(i);
    }
    let mut waiting_for: Vec<usize> = vec![0; nodes.len()];
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (i, (_, depends)) in nodes.iter().enumerate() {
        let on: BTreeSet<usize> = depends.iter().filter_map(|d| index.get(d).copied()).collect();
        waiting_for[i] = on.len();
        for j in on {
            needed_by[j].push(i);
        }
    }
    // The smallest listed index first keeps ties in the listed order.
    let mut ready: BinaryHeap<std::cmp::Reverse<usize>> =
        (0..nodes.len()).filter(|&i| waiting_for[i] == 0).map(std::cmp::Reverse).collect();
    let mut ordered = Vec::with_capacity(nodes.len());
    while let Some(std::cmp::Reverse(i)) = ready.pop() {
        ordered.push(i);
        for &j in &needed_by[i] {
            waiting_for[j] -= 1;
            if waiting_for[j] == 0 {
                ready.push(std::cmp::Reverse(j));
            }
        }
    }
    if ordered.len() == nodes.len() {
        return Ok(ordered);
    }
    // Whatever still waits is in a circle or behind one: going from dependency
    // to dependency among those must come back to a node sooner or later.
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    let mut path = Vec::new();
    let mut at = (0..nodes.len()).find(|&i| waiting_for[i] > 0);
    while let Some(i) = at {
        if let Some(&start) = seen.get(&i) {
            // The walk went from a task to what it depends on; a chain is shown from its smallest member.
            let mut circle: Vec<usize> = path[start..].to_vec();
            let first =
                circle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(at, _)| at);
            circle.rotate_left(first);
            return Err(circle.into_iter().map(|i: usize| nodes[i].0.clone()).collect());
        }
        seen.insert(i, path.len());
        path.push(i);
        at = nodes[i].1.iter().filter_map(|d| index.get(d).copied()).find(|&j| waiting_for[j] > 0);
    }
    Ok(ordered)
}

/// The affected specs in the order in which they are to be written:
/// dependencies first, ties as listed.
pub fn spec_order(specs: &[AffectedSpec]) -> Result<Vec<SpecId>, Cycle<SpecId>> {
    let nodes: Vec<(SpecId, Vec<SpecId>)> =
        specs.iter().map(|spec| (spec.id.clone(), spec.depends.clone())).collect();
    Ok(order(&nodes)?.into_iter().map(|i| specs[i].id.clone()).collect())
}

fn task_nodes(tasks: &[Task]) -> Vec<(TaskId, Vec<TaskId>)> {
    tasks.iter().map(|task| (task.id, task.depends_on.clone())).collect()
}

/// The tasks in the order in which they can be done: dependencies first, then
/// layer by layer, ties as listed.
pub fn task_order(tasks: &[Task]) -> Result<Vec<&Task>, Cycle<TaskId>> {
    let mut by_layer: Vec<&Task> = tasks.iter().collect();
    by_layer.sort_by_key(|task| task.layer.map_or(u32::MAX, super::ids::Layer::section));
    let nodes: Vec<(TaskId, Vec<TaskId>)> =
        by_layer.iter().map(|task| (task.id, task.depends_on.clone())).collect();
    Ok(order(&nodes)?.into_iter().map(|i| by_layer[i]).collect())
}

/// The circle in which tasks depend on each other, if there is one.
pub(crate) fn task_cycle(tasks: &[Task]) -> Option<Cycle<TaskId>> {
    order(&task_nodes(tasks)).err()
}

/// The tasks that are not done and depend on nothing that is not done.
pub fn ready(tasks: &[Task]) -> Vec<&Task> {
    let open: BTreeSet<TaskId> =
        tasks.iter().filter(|task| task.status == Status::Pending).map(|task| task.id).collect();
    tasks
        .iter()
        .filter(|task| {
            task.status == Status::Pending && !task.depends_on.iter().any(|id| open.contains(id))
        })
        .collect()
}

/// A circle as people read it: `data.1 → logic.1 → data.1`.
pub fn task_chain(cycle: &[TaskId]) -> String {
    chain(cycle.iter().map(|id| id.layer_form()))
}

/// A circle as people read it, its first member again at the end; of a long one the beginning.
pub fn chain(members: impl Iterator<Item = String>) -> String {
    const NAMED: usize = 30;
    let mut members = members;
    let mut names: Vec<String> = members.by_ref().take(NAMED).collect();
    let first = names.first().cloned();
    let more = members.count();
    if more > 0 {
        names.push(format!("… {more} more …"));
    }
    names.extend(first);
    names.join(" → ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::document::tasks;

    fn specs(list: &[(&str, &[&str])]) -> Vec<AffectedSpec> {
        let id = |text: &&str| SpecId::new(text).unwrap();
        list.iter()
            .map(|(name, depends)| AffectedSpec {
                id: id(name),
                depends: depends.iter().map(id).collect(),
            })
            .collect()
    }

    fn order_of(list: &[(&str, &[&str])]) -> Result<Vec<String>, String> {
        spec_order(&specs(list))
            .map(|ids| ids.iter().map(ToString::to_string).collect())
            .map_err(|cycle| chain(cycle.iter().map(ToString::to_string)))
    }

    /// C16: dependency order, ties in the listed order, a cycle is an error.
    #[test]
    fn c16_specs_come_after_what_they_depend_on() {
        assert_eq!(order_of(&[("c", &["b"]), ("a", &[]), ("b", &[])]).unwrap(), ["a", "b", "c"]);
        assert_eq!(order_of(&[("b", &[]), ("a", &[]), ("c", &["x"])]).unwrap(), ["b", "a", "c"]);
        assert_eq!(
            order_of(&[("z", &["a"]), ("a", &["b"]), ("b", &["a"])]).unwrap_err(),
            "a → b → a"
        );
        assert_eq!(order_of(&[("a", &["a"])]).unwrap_err(), "a → a");
    }

    fn read(text: &str) -> Vec<Task> {
        tasks::parse(text).value.tasks
    }

    #[test]
    fn a_cycle_of_tasks_is_shown_as_a_chain() {
        let tasks = read(
            "- [ ] 1.1 a\n  Depends: 2.1\n- [ ] 2.1 b\n  Depends: data.1\n- [ ] 4.1 c\n  Depends: 1.1\n",
        );
        assert_eq!(task_chain(&task_cycle(&tasks).unwrap()), "data.1 → logic.1 → data.1");
    }

    #[test]
    fn a_cycle_of_thousands_is_shown_by_its_start() {
        let chain_text = chain((0..100_000).map(|n| n.to_string()));
        assert!(chain_text.starts_with("0 → 1 → 2 → "), "{chain_text}");
        assert!(chain_text.ends_with(" → 29 → … 99970 more … → 0"), "{chain_text}");
        assert_eq!(chain(["a", "b"].map(str::to_owned).into_iter()), "a → b → a");
    }

    #[test]
    fn ready_tasks_wait_for_nothing() {
        let tasks = read(
            "- [x] 1.1 a\n- [ ] 2.1 b\n  Depends: 1.1\n- [ ] 2.2 c\n  Depends: 2.1\n- [ ] 2.3 d\n",
        );
        let ids: Vec<String> = ready(&tasks).iter().map(|task| task.id.to_string()).collect();
        assert_eq!(ids, ["2.1", "2.3"]);
    }

    #[test]
    fn order_goes_layer_by_layer() {
        let tasks = read("- [ ] 4.1 a\n- [ ] 1.2 b\n  Depends: 1.1\n- [ ] 1.1 c\n- [ ] 2.1 d\n");
        let ids: Vec<String> =
            task_order(&tasks).unwrap().iter().map(|t| t.id.to_string()).collect();
        assert_eq!(ids, ["1.1", "1.2", "2.1", "4.1"]);
    }

    proptest! {
        #[test]
        fn an_order_respects_every_dependency_or_finds_a_cycle(
            edges in proptest::collection::vec((0..12_usize, 0..12_usize), 0..30)
        ) {
            let mut nodes: Vec<(usize, Vec<usize>)> = (0..12).map(|n| (n, Vec::new())).collect();
            for (a, b) in edges {
                nodes[a].1.push(b);
            }
            match order(&nodes) {
                Ok(ordered) => {
                    let place: BTreeMap<usize, usize> = ordered.iter().enumerate().map(|(at, n)| (*n, at)).collect();
                    for (node, depends) in &nodes {
                        for on in depends {
                            prop_assert!(place[on] < place[node]);
                        }
                    }
                }
                Err(cycle) => {
                    for (i, node) in cycle.iter().enumerate() {
                        let next = cycle[(i + 1) % cycle.len()];
                        prop_assert!(nodes[*node].1.contains(&next));
                    }
                }
            }
        }
    }
}
