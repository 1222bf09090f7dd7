//! Writers that are killed in the middle.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::thread;
use std::time::Duration;

use super::{child, child_project, path, sandbox};

const ROUNDS: u64 = 50;
const LINES: usize = 4000;

/// A text of which any part is recognisably not the whole.
fn text(version: u32) -> String {
    let line = format!("version {version}\n");
    format!("{}end of {version}\n", line.repeat(LINES))
}

fn is_whole(found: &str) -> bool {
    let version = found.lines().next().and_then(|line| line.strip_prefix("version ")?.parse().ok());
    version.is_some_and(|version| found == text(version))
}

#[test]
#[ignore = "started by the test below"]
fn child_writes_forever() {
    let Some(project) = child_project() else { return };
    println!("writing");
    std::io::stdout().flush().unwrap();
    for version in 1.. {
        project.dir().write_atomic(&path("dir/file.md"), text(version).as_bytes()).unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_the_old_or_the_new_text() {
    let (_dir, project) = sandbox();
    let file = path("dir/file.md");
    project.dir().write_atomic(&file, text(0).as_bytes()).unwrap();
    let dir = project.root().join("dir");
    let mut seen_leftover = false;
    for round in 0..ROUNDS {
        let mut child =
            child("store::crash::child_writes_forever", project.root()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        assert!(output.lines().map_while(Result::ok).any(|line| line.ends_with("writing")));
        // Spread over some writes without a source of randomness; the machine adds its own.
        thread::sleep(Duration::from_micros(round * 7919 % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = project.dir().read_to_string(&file).unwrap();
        assert!(is_whole(&found), "round {round}: {} bytes", found.len());
        seen_leftover |= fs::read_dir(&dir).unwrap().count() > 1;
    }
    project.dir().write_atomic(&file, b"the last").unwrap();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "leftovers are swept");
    assert!(seen_leftover, "no kill hit a write; the test proves little");
}
