//! Measures the ranking on real commits, without checking anything out: `cases CASES MIRRORS
//! [QUERY [REPO..]]`, where QUERY is a key of a case. What it prints is what `cargo xtask bench --only
//! context` measures with the program itself, in a small part of the time.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::too_many_lines,
    reason = "a measurement that may end with a panic"
)]

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use agentd_rank::{File, Project, kind, rank};

fn git(dir: &str, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(dir).args(args).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let key = args.get(3).map_or("query_leakfree", String::as_str);
    let only = args.get(4..).unwrap_or_default();
    let mut by_repo: BTreeMap<String, Vec<serde_json::Value>> = BTreeMap::new();
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        if !case[key].as_str().unwrap().is_empty() {
            by_repo.entry(case["repo"].as_str().unwrap().to_owned()).or_default().push(case);
        }
    }
    println!(
        "{:12} {:>3} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "", "n", "@8", "@20", "@50", "@120", "mrr"
    );
    let mut all = Vec::new();
    for (repo, cases) in by_repo {
        if !only.is_empty() && !only.contains(&repo) {
            continue;
        }
        let mirrors = std::fs::read_dir(&args[2]).unwrap().flatten();
        let mut mirrors = mirrors.map(|entry| entry.path().to_str().unwrap().to_owned());
        let Some(dir) = mirrors.find(|dir| dir.ends_with(&format!("+{repo}"))) else { continue };
        let dir = format!("{dir}/repo");
        let mut process = Command::new("git")
            .args(["-C", &dir, "cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        let objects = Mutex::new((process.stdin.take().unwrap(), answers));
        let mut cache = Vec::new();
        let mut sums = [0.0; 5];
        let mut number = 0.0;
        for case in &cases {
            let parent = case["parent"].as_str().unwrap();
            let mut files = Vec::new();
            let mut ids = HashMap::new();
            for line in git(&dir, &["ls-tree", "-r", "-l", parent]).lines() {
                let (head, path) = line.split_once('\t').unwrap();
                let head: Vec<&str> = head.split_whitespace().collect();
                let (Ok(size), true) = (head[3].parse(), head[0].starts_with("100")) else {
                    continue;
                };
                let Some(kind) = kind(path, size) else { continue };
                // The object stands for the time: what is the same is found in the cache.
                let mtime = i64::from_str_radix(&head[2][..15], 16).unwrap();
                ids.insert(path.to_owned(), head[2].to_owned());
                files.push(File { path: path.to_owned(), size, mtime, kind });
            }
            let read = |file: &File, most: usize, text: &mut Vec<u8>| {
                let mut objects = objects.lock().unwrap();
                let (ask, answers) = &mut *objects;
                writeln!(ask, "{}", ids[&file.path]).unwrap();
                let mut head = String::new();
                answers.read_line(&mut head).unwrap();
                if head.trim_end().ends_with("missing") {
                    return;
                }
                let size: usize = head.trim_end().rsplit(' ').next().unwrap().parse().unwrap();
                text.resize(size + 1, 0);
                answers.read_exact(text).unwrap();
                text.truncate(size.min(most));
            };
            let format = agentd_rank::LOG_FORMAT;
            let log = git(
                &dir,
                &[
                    "-c",
                    "core.quotepath=off",
                    "log",
                    "--no-merges",
                    "-n3000",
                    "--no-renames",
                    "--name-only",
                    format,
                    parent,
                ],
            );
            let project = Project { files: &files, read: &read, log: &log, cache: &cache };
            let ranking = rank(&project, case[key].as_str().unwrap());
            let place = |wanted: &str| {
                ranking
                    .sources
                    .iter()
                    .position(|found| files[found.file].path == wanted)
                    .unwrap_or(9999)
                    + 1
            };
            let wanted: Vec<&str> = case["files"]
                .as_array()
                .unwrap()
                .iter()
                .map(|path| path.as_str().unwrap())
                .collect();
            let places: Vec<usize> = wanted.iter().map(|path| place(path)).collect();
            for (sum, most) in sums.iter_mut().zip([8, 20, 50, 120]) {
                *sum += places.iter().filter(|place| **place <= most).count() as f64
                    / places.len() as f64;
            }
            sums[4] += 1.0 / *places.iter().min().unwrap() as f64;
            number += 1.0;
            if std::env::var_os("MISSES").is_some() && places.iter().any(|place| *place > 20) {
                println!(
                    "  {:?} {:?} {:?}",
                    case[key].as_str().unwrap().lines().next(),
                    wanted,
                    places
                );
                for found in ranking.sources.iter().take(5) {
                    println!(
                        "      {} {:.2} {:?}",
                        files[found.file].path, found.score, found.words
                    );
                }
            }
            if let Some(new) = ranking.cache {
                cache = new;
            }
        }
        drop(objects);
        process.wait().unwrap();
        let means = sums.map(|sum| sum / number);
        print_row(&repo, number, &means);
        all.push(means);
    }
    let mean: [f64; 5] =
        std::array::from_fn(|at| all.iter().map(|row| row[at]).sum::<f64>() / all.len() as f64);
    print_row("ALL", 0.0, &mean);
}

fn print_row(name: &str, number: f64, means: &[f64]) {
    let means: Vec<String> = means.iter().map(|mean| format!("{mean:6.3}")).collect();
    println!("{name:12} {number:3} {}", means.join(" "));
}
