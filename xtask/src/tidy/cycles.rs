//! The modules of the core depend on each other in one direction only.
//!
//! The graph is read from the source text: every `crate::a`, `use crate::{a, b::c}` and
//! `super::` path that reaches the crate root is an edge to a top-level module. Tests are
//! left out, since they may use whatever they like.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{is_test, without_tests};
use crate::Result;
use crate::workspace::Workspace;

/// The crates in which a cycle between top-level modules is an error.
const ACYCLIC: &[&str] = &["crates/agentd-core/src/"];

/// From a module to the modules that it uses, each with the file and line of one use.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// Adds a problem for each crate whose modules form a cycle.
pub(super) fn check(
    workspace: &Workspace,
    files: &[String],
    problems: &mut Vec<String>,
) -> Result<()> {
    for directory in ACYCLIC {
        let mut sources = Vec::new();
        for file in files {
            let Some(path) = file.strip_prefix(directory) else { continue };
            if path.strip_suffix(".rs").is_none() || is_test(file) {
                continue;
            }
            let text = fs::read_to_string(workspace.root.join(file))
                .map_err(|error| format!("cannot read {file}: {error}"))?;
            sources.push((path.to_owned(), text));
        }
        if let Some(cycle) = cycle(&graph(&sources)) {
            problems.push(format!("{directory}: modules depend on each other: {cycle}"));
        }
    }
    Ok(())
}

/// The graph of the top-level modules of a crate, from its files: path below `src/` and text.
fn graph(sources: &[(String, String)]) -> Graph {
    let paths: Vec<Vec<&str>> = sources.iter().map(|(path, _)| module_path(path)).collect();
    let modules: BTreeSet<&str> = paths.iter().filter_map(|path| path.first().copied()).collect();
    let mut graph = Graph::new();
    for ((file, text), path) in sources.iter().zip(&paths) {
        let Some(module) = path.first() else { continue };
        for (index, line) in code_lines(text).into_iter().enumerate() {
            for used in roots_in(&line, path.len()) {
                if used != *module && modules.contains(used.as_str()) {
                    let uses = graph.entry((*module).to_owned()).or_default();
                    uses.entry(used).or_insert_with(|| format!("{file}:{}", index + 1));
                }
            }
        }
    }
    graph
}

/// `["document", "spec"]` for `document/spec.rs`; nothing for `lib.rs`.
fn module_path(file: &str) -> Vec<&str> {
    let file = file.strip_suffix(".rs").unwrap_or(file);
    let file = file.strip_suffix("/mod").unwrap_or(file);
    if matches!(file, "lib" | "main") { Vec::new() } else { file.split('/').collect() }
}

/// The lines of a file without comments and tests. A `use` that spans several lines is
/// joined into its first line, and leaves empty ones behind, so that numbers stay right.
fn code_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = None;
    for line in without_tests(text).lines() {
        let code = line.split("//").next().unwrap_or_default().trim();
        match open {
            Some(first) => {
                let joined: &mut String = &mut lines[first];
                joined.push_str(code);
                lines.push(String::new());
                if code.contains(';') {
                    open = None;
                }
            }
            None => {
                let is_use = code.starts_with("use ") || code.contains(" use ");
                if is_use && !code.contains(';') {
                    open = Some(lines.len());
                }
                lines.push(code.to_owned());
            }
        }
    }
    lines
}

/// The first names behind paths in a line that start at the crate root, as seen from a
/// module that is `depth` levels below it.
fn roots_in(line: &str, depth: usize) -> Vec<String> {
    let mut roots = Vec::new();
    for (start, _) in line.match_indices("crate::") {
        roots.extend(first_names(&line[start + "crate::".len()..]));
    }
    let up = "super::".repeat(depth);
    for (start, _) in line.match_indices(&up) {
        let rest = &line[start + up.len()..];
        let longer = rest.starts_with("super::") || line[..start].ends_with("super::");
        if !longer {
            roots.extend(first_names(rest));
        }
    }
    roots
}

/// `a` of `a::b`; `a` and `c` of `{a::b, c::{d, e}}`.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut names, mut depth, mut part) = (Vec::new(), 0_usize, String::new());
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => names.push(name(&std::mem::take(&mut part))),
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && c != ',' {
            part.push(c);
        }
    }
    names.push(name(&part));
    names.retain(|name| !name.is_empty());
    names
}

/// A cycle, as `a -> b (a.rs:3) -> a (b.rs:7)`, where there is one.
fn cycle(graph: &Graph) -> Option<String> {
    let mut done = BTreeSet::new();
    graph.keys().find_map(|start| walk(graph, start, &mut Vec::new(), &mut done))
}

fn walk<'g>(
    graph: &'g Graph,
    module: &'g str,
    path: &mut Vec<(&'g str, &'g str)>,
    done: &mut BTreeSet<&'g str>,
) -> Option<String> {
    for (used, place) in graph.get(module).into_iter().flatten() {
        path.push((module, place));
        if let Some(first) = path.iter().position(|(on_path, _)| on_path == used) {
            let mut shown = (*used).clone();
            let ends = path[first + 1..].iter().map(|(module, _)| *module).chain([used.as_str()]);
            for ((_, place), to) in path[first..].iter().zip(ends) {
                shown.push_str(&format!(" -> {to} ({place})"));
            }
            return Some(shown);
        }
        if !done.contains(used.as_str())
            && let Some(found) = walk(graph, used, path, done)
        {
            return Some(found);
        }
        path.pop();
    }
    done.insert(module);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle_of(files: &[(&str, &str)]) -> Option<String> {
        let sources: Vec<_> =
            files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        cycle(&graph(&sources))
    }

    #[test]
    fn modules_that_use_each_other_are_a_cycle() {
        let a = ("a.rs", "use crate::b::B;\n");
        assert_eq!(cycle_of(&[a, ("b.rs", "use std::fmt;\n")]), None);
        let found = cycle_of(&[a, ("b.rs", "//! B.\n\nfn f() { crate::a::g() }\n")]);
        assert_eq!(found.unwrap(), "a -> b (a.rs:1) -> a (b.rs:3)");
    }

    #[test]
    fn groups_nested_files_and_super_paths_count() {
        for uses in [
            "use crate::{c, a::x};",
            "use crate::{\n    c::{d, e},\n    a::x,\n};",
            "use super::super::a;",
            "use super::super::{c, a::{f, g}};",
            "pub(crate) use crate::a;",
            "fn f() -> crate::a::T { crate::c::t() }",
        ] {
            let files = [
                ("a/mod.rs", "use super::b::x;\n"),
                ("b/deep.rs", uses),
                ("c.rs", ""),
                ("b.rs", ""),
            ];
            assert!(cycle_of(&files).is_some(), "{uses}");
        }
        // One level up from `b/deep.rs` is still in `b`.
        let files = [("a.rs", "use crate::b;"), ("b/deep.rs", "use super::a;"), ("b/a.rs", "")];
        assert_eq!(cycle_of(&files), None);
    }

    #[test]
    fn a_cycle_of_three_is_found_behind_other_modules() {
        let files = [
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::c;\nuse crate::z;"),
            ("c.rs", "use crate::d;"),
            ("d.rs", "use crate::b;"),
            ("z.rs", ""),
        ];
        let found = cycle_of(&files).unwrap();
        assert_eq!(found, "b -> c (b.rs:1) -> d (c.rs:1) -> b (d.rs:1)");
    }

    #[test]
    fn comments_and_tests_are_no_dependencies() {
        let b = "/// See [`crate::a`].\nstruct B; // crate::a\n\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n";
        assert_eq!(cycle_of(&[("a.rs", "use crate::b;"), ("b.rs", b)]), None);
    }
}
