//! Links between our own documents lead somewhere.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Component;
use std::path::Path;

use crate::Result;
use crate::workspace::Workspace;

/// Checks every relative link in the documents at the top and under `docs/`.
pub(super) fn check(
    workspace: &Workspace,
    files: &[String],
    problems: &mut Vec<String>,
) -> Result<()> {
    let mut documents = BTreeMap::new();
    for file in files.iter().filter(|file| is_document(file)) {
        documents.insert(file.as_str(), fs::read_to_string(workspace.root.join(file))?);
    }
    let known: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    for (file, text) in &documents {
        for (line, target) in targets(text) {
            if let Err(why) = resolve(file, target, &known, &documents) {
                problems.push(format!("{file}:{line}: link to {target}: {why}"));
            }
        }
    }
    Ok(())
}

fn is_document(file: &str) -> bool {
    let markdown = Path::new(file).extension().is_some_and(|extension| extension == "md");
    markdown && (!file.contains('/') || file.starts_with("docs/"))
}

/// Whether the target is a file or directory of ours, and its anchor a heading.
fn resolve(
    file: &str,
    target: &str,
    known: &BTreeSet<&str>,
    documents: &BTreeMap<&str, String>,
) -> std::result::Result<(), &'static str> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() {
        file.to_owned()
    } else {
        join(file, path).ok_or("leads out of the repository")?
    };
    let directory = format!("{path}/");
    let is_directory = path.is_empty() || known.iter().any(|file| file.starts_with(&directory));
    if !known.contains(path.as_str()) && !is_directory {
        return Err("there is no such file");
    }
    match documents.get(path.as_str()) {
        Some(text) if !anchor.is_empty() && !anchors(text).contains(anchor) => {
            Err("there is no such heading")
        }
        _ => Ok(()),
    }
}

/// The path of a link, seen from the root.
fn join(file: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for component in Path::new(link).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// The relative targets of `[text](target)` outside of code, with their lines.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut targets = Vec::new();
    for (number, line) in prose(text) {
        for (index, part) in line.split('`').enumerate() {
            if index % 2 == 1 {
                continue; // inside of backticks
            }
            for (at, _) in part.match_indices("](") {
                let rest = &part[at + 2..];
                let Some(end) = rest.find([')', ' ']) else { continue };
                let target = &rest[..end];
                let elsewhere = target.contains("://") || target.starts_with("mailto:");
                if !elsewhere && !target.is_empty() {
                    targets.push((number, target));
                }
            }
        }
    }
    targets
}

/// The lines outside of fenced code, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let trimmed = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| trimmed.starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            (None, None) => return Some((index + 1, line)),
            (Some(_), _) => {}
        }
        None
    })
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let mut anchor = slug.clone();
        let mut count = 0;
        while !anchors.insert(anchor) {
            count += 1;
            anchor = format!("{slug}-{count}");
        }
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "\
# The `name`: a title

See [docs](docs/use.md#second-part), [here](#the-name-a-title), [the crates](crates/),
[elsewhere](https://example.org/x), not `[code](nowhere.md)`.

```
[in a block](nowhere.md)
```
";

    #[test]
    fn links_are_found_outside_of_code() {
        let found: Vec<_> = targets(README).into_iter().map(|(_, target)| target).collect();
        assert_eq!(found, ["docs/use.md#second-part", "#the-name-a-title", "crates/"]);
    }

    #[test]
    fn a_link_needs_a_file_and_a_heading() {
        let known = BTreeSet::from(["README.md", "docs/use.md", "crates/a/src/lib.rs"]);
        let documents = BTreeMap::from([
            ("README.md", README.to_owned()),
            ("docs/use.md", "# Use\n\n## Second part\n\n## Second part\n".to_owned()),
        ]);
        let check = |file, target| resolve(file, target, &known, &documents);
        for (_, target) in targets(README) {
            assert_eq!(check("README.md", target), Ok(()), "{target}");
        }
        assert_eq!(check("docs/use.md", "../README.md"), Ok(()));
        assert_eq!(check("docs/use.md", "../crates/a"), Ok(()));
        assert_eq!(check("README.md", "docs/use.md#second-part-1"), Ok(()));
        assert_eq!(check("README.md", "docs/gone.md"), Err("there is no such file"));
        assert_eq!(check("README.md", "docs/use.md#third"), Err("there is no such heading"));
        assert_eq!(check("docs/use.md", "../../x.md"), Err("leads out of the repository"));
        assert_eq!(check("README.md", "/etc/passwd"), Err("leads out of the repository"));
    }
}
