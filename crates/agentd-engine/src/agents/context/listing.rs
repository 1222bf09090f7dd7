//! Candidates as text, for a number of bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use agentd_core::prompt::one_line;
use agentd_core::text::counted;

use super::candidates::{Candidate, RelatedCommit};

/// How many files are described.
const DESCRIBED: usize = 12;
/// How many more are named.
const NAMED: usize = 120;
/// How long the reasons for a file are at the most.
const REASONS: usize = 160;
/// The longest path that is shown whole.
const PATH: usize = 200;

/// The best files with reasons in up to four tenths of the bytes, then further ones by directory.
pub(super) fn files(found: &[Candidate], cap: usize) -> (String, Vec<String>) {
    let found: Vec<&Candidate> = found.iter().filter(|file| file.score > 0.0).collect();
    let mut out = String::new();
    let mut described = 0;
    for file in found.iter().take(DESCRIBED) {
        let entry = described_entry(file);
        if out.len() + entry.len() > cap / 10 * 4 {
            break;
        }
        out.push_str(&entry);
        described += 1;
    }
    out.push_str(&grouped(&found[described..], NAMED, cap.saturating_sub(out.len())));
    (out, Vec::new())
}

/// Tests by directory.
pub(super) fn tests(found: &[Candidate], cap: usize) -> (String, Vec<String>) {
    let found: Vec<&Candidate> = found.iter().filter(|file| file.score > 0.0).collect();
    (grouped(&found, DESCRIBED, cap), Vec::new())
}

/// Commits, one line each.
pub(super) fn commits(found: &[RelatedCommit], cap: usize) -> (String, Vec<String>) {
    let mut out = String::new();
    for commit in found {
        let subject = one_line(&commit.subject, 100);
        let mut line = format!("{} {subject}", commit.date);
        if let Some(first) = commit.files.first() {
            let _ = write!(line, " ({}", one_line(first, PATH));
            if let more @ 1.. = commit.files.len() - 1 {
                let _ = write!(line, " and {more} more");
            }
            line.push(')');
        }
        if out.len() + line.len() + 1 > cap {
            break;
        }
        out.push_str(&line);
        out.push('\n');
    }
    (out, Vec::new())
}

/// `src/login.rs`, and below it what there is to look at.
fn described_entry(file: &Candidate) -> String {
    let mut why = Vec::new();
    if let Some((start, end)) = file.lines {
        why.push(format!("lines {start}-{end}"));
    }
    if file.commits > 0 {
        why.push(counted(file.commits, "similar commit"));
    }
    if !file.words.is_empty() {
        why.push(format!("has {}", file.words.join(" ")));
    }
    let mut line = one_line(&why.join("; "), REASONS);
    for (index, symbol) in file.symbols.iter().enumerate() {
        let symbol = one_line(&format!("{}:{}", symbol.name, symbol.line), PATH);
        let before = match index {
            0 if line.is_empty() => "defines ",
            0 => "; defines ",
            _ => " ",
        };
        if line.len() + before.len() + symbol.len() > REASONS {
            break;
        }
        let _ = write!(line, "{before}{symbol}");
    }
    let path = one_line(&file.path, PATH);
    if line.is_empty() { format!("{path}\n") } else { format!("{path}\n  {line}\n") }
}

/// The names of as many files as fit, by directory: `src/auth/: login.rs logout.rs`.
fn grouped(files: &[&Candidate], most: usize, cap: usize) -> String {
    let mut dirs: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    let mut size = 0;
    for (place, file) in files.iter().take(most).enumerate() {
        let (dir, name) = file.path.rsplit_once('/').unwrap_or((".", &file.path));
        let known = dirs.contains_key(dir);
        let more = name.len() + 1 + if known { 0 } else { dir.len() + 3 };
        if size + more > cap {
            break;
        }
        size += more;
        dirs.entry(dir).or_insert((place, Vec::new())).1.push(name);
    }
    let mut dirs: Vec<(&str, (usize, Vec<&str>))> = dirs.into_iter().collect();
    dirs.sort_by_key(|(_, (place, _))| *place);
    let mut out = String::new();
    for (dir, (_, names)) in dirs {
        let line = match names.as_slice() {
            [name] if dir == "." => (*name).to_owned(),
            [name] => format!("{dir}/{name}"),
            names => format!("{dir}/: {}", names.join(" ")),
        };
        let _ = writeln!(out, "{}", one_line(&line, 4000));
    }
    out
}
