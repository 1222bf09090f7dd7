//! How often agentd opens the documents of a change, counted by strace: a change is read once,
//! and again only after another process may have written to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use test_project::TestProject;

/// Where distributions put it; `cargo xtask test` installs it where it may.
const STRACE: &str = "/usr/bin/strace";

/// How often a file of some name was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Opens {
    /// All attempts, also those that found no file.
    tried: usize,
    /// Those that found one.
    found: usize,
}

/// Runs agentd and counts what it opens itself, in any of its threads: agents and their MCP
/// servers are processes of their own. None without strace.
fn opens(project: &TestProject, args: &[&str]) -> Option<BTreeMap<String, Opens>> {
    if !Path::new(STRACE).exists() {
        #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
        {
            eprintln!("skipped: there is no {STRACE}");
        }
        return None;
    }
    let agentd = project.command(args);
    let log = project.home().join("strace.log");
    let mut strace = Command::new(STRACE);
    strace
        .args(["--follow-forks", "--trace=open,openat,openat2,clone,clone3", "--output"])
        .arg(&log)
        .arg(agentd.get_program())
        .args(agentd.get_args())
        .current_dir(project.root())
        .env_clear()
        .envs(agentd.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let run = project.finish(&mut strace);
    assert_eq!(run.code, 0, "{}", run.stderr);
    Some(count(&fs::read_to_string(log).unwrap()))
}

fn count(log: &str) -> BTreeMap<String, Opens> {
    let mut threads: BTreeSet<&str> = BTreeSet::new();
    // A call that others interrupt is in two lines: what is asked, and what comes of it.
    let mut unfinished: BTreeMap<&str, &str> = BTreeMap::new();
    let mut counts: BTreeMap<String, Opens> = BTreeMap::new();
    for line in log.lines() {
        let (thread, call) = line.split_once(char::is_whitespace).unwrap();
        let call = call.trim_start();
        if threads.is_empty() {
            threads.insert(thread);
        }
        if !threads.contains(thread) {
            continue;
        }
        if let Some(asked) = call.strip_suffix("<unfinished ...>") {
            unfinished.insert(thread, asked);
            continue;
        }
        let asked =
            if call.starts_with("<...") { unfinished.remove(thread).unwrap() } else { call };
        let result = call.rsplit_once(" = ").map_or("", |(_, result)| result);
        if asked.starts_with("clone") {
            if asked.contains("CLONE_THREAD") {
                threads.insert(result);
            }
        } else if let Some(path) = asked.split('"').nth(1) {
            let name = path.rsplit('/').next().unwrap().to_owned();
            let opens = counts.entry(name).or_default();
            opens.tried += 1;
            opens.found += usize::from(!result.starts_with('-'));
        }
    }
    counts
}

#[test]
fn opens_of_first_process_and_its_threads() {
    let log = "\
        10 openat(AT_FDCWD, \"a/x.md\", O_RDONLY) = 3\n\
        10 clone3({flags=CLONE_VM|CLONE_THREAD} => {parent_tid=[11]}, 88) = 11\n\
        10 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\n\
        12 openat(AT_FDCWD, \"x.md\", O_RDONLY) = 3\n\
        10 <... clone resumed>) = 12\n\
        11 openat2(3, \"x.md\", {flags=O_RDONLY} <unfinished ...>\n\
        10 openat(AT_FDCWD, \"y.md\", O_RDONLY) = -1 ENOENT (No such file or directory)\n\
        11 <... openat2 resumed>, 24) = 4\n\
        10 +++ exited with 0 +++\n";
    let expected = [
        ("x.md".to_owned(), Opens { tried: 2, found: 2 }),
        ("y.md".to_owned(), Opens { tried: 1, found: 0 }),
    ];
    assert_eq!(count(log), BTreeMap::from(expected));
}

#[test]
fn status_and_log_open_each_document_once() {
    let project = TestProject::new().change("add-oauth");
    for command in ["status", "log"] {
        let Some(opens) = opens(&project, &[command, "add-oauth"]) else { return };
        for name in ["STATE.yaml", "proposal.md", "auth-flow.md", "tasks.md"] {
            assert_eq!(opens[name].found, 1, "{command}: {name}: {opens:?}");
        }
        // Status needs no runs, so it does not look for any.
        assert_eq!(opens.contains_key("runs"), command == "log", "{command}: {opens:?}");
    }
}

#[test]
fn heavy_plan_opens_documents_rarely() {
    let roles = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";
    let project = TestProject::new().root_file("agentd/config.toml", roles);
    let asked = "Sign in with Google OAuth";
    let plan = ["plan", "add-oauth", asked, "--auto", "--skip-clarify", "--git", "in-place"];
    let Some(opens) = opens(&project, &plan) else { return };
    let specs = fs::read_dir(project.root().join("agentd/changes/add-oauth/specs")).unwrap();
    assert_eq!(specs.count(), 1);
    assert!(opens["STATE.yaml"].tried <= 12, "{:?}", opens["STATE.yaml"]);
    assert!(opens["proposal.md"].tried <= 8, "{:?}", opens["proposal.md"]);
}
