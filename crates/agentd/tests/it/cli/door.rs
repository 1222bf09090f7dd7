//! What a killed agentd left is repaired by the next command, before it
//! runs git, and with a warning that says so.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agentd_core::diagnostic::Severity;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use test_project::TestProject;

use crate::cli::archive_kills::{journal, set_up, traced};

/// Commands that have nothing to do with a project.
const WITHOUT_PROJECT: [&str; 4] = ["completions", "demo", "explain", "help"];

/// Every other command, with arguments with which it opens the project.
const COMMANDS: &[&[&str]] = &[
    &["archive", "add-ready"],
    &["bug", "add-more", "It adds too little", "--auto", "--git", "branch"],
    &["challenge", "add-ready"],
    &["clarify", "add-ready", "--show"],
    &["context", "Add more of it"],
    &["cost", "add-ready"],
    &["decide", "add-ready", "stop"],
    &["doctor"],
    &["drop", "add-ready", "--yes"],
    &["export", "add-ready", "-o", "-"],
    &["fix", "add-ready"],
    &["impl", "add-ready"],
    &["implement", "add-ready"],
    &["init", "--yes", "--agents", "none"],
    &["list"],
    &["log", "add-ready"],
    &["mcp"],
    &["overlap"],
    &["plan", "add-more", "Add more of it", "--auto", "--skip-clarify", "--git", "branch"],
    &["proposal", "add-more", "Add more of it", "--skip-clarify", "--git", "branch"],
    &["rename", "add-ready", "add-steady"],
    &["replay", "add-ready", "--into", "replayed"],
    &["reproposal", "add-ready"],
    &["review", "add-ready"],
    &["revise", "add-ready"],
    &["show", "add-ready"],
    &["status", "add-ready"],
    &["trace", "add-ready"],
    &["trust", "--show"],
    &["unarchive", "add-ready"],
    &["uninstall", "--dry-run"],
    &["verify", "add-ready"],
    &["validate", "add-ready"],
    &["view", "--no-open"],
];

/// The commands that `agentd --help` lists.
fn known(project: &TestProject) -> Vec<String> {
    let help = project.run(["--help"]).exits(0).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| !line.is_empty());
    names
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

fn sh(dir: &Path, script: &str) {
    let status = Command::new("/bin/sh").args(["-ec", script]).current_dir(dir).status().unwrap();
    assert!(status.success(), "{script}");
}

/// A project in which agentd was killed while an implementer was at work, and once more while
/// it archived: the agent planted a hook and rewrote the state, and the archive is half done.
struct Killed {
    project: TestProject,
    saved: PathBuf,
}

/// The only thing that the hook does.
const SPRUNG: &str = "sprung";

impl Killed {
    fn new() -> Self {
        let config = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n[workflow]\nscript_retries = 0\n";
        let project = TestProject::new()
            .root_file("agentd/config.toml", config)
            .change("add-ready")
            .challenged(&[Severity::Low]);
        let project = project.programs(&["git"]);
        // What agentd keeps during the call is what it would leave if it were killed.
        let keep = "PATH=/usr/bin:/bin; cat > /dev/null; cp -r ~/.local/state/agentd/projects/*/calls ~/.claude/; exit 1";
        let project = project.program("claude", keep);
        fs::create_dir(project.home().join(".claude")).unwrap();
        project.run(["decide", "add-ready", "accept"]).exits(0);
        let root = project.root();
        set_up(&root, 3);
        sh(
            &root,
            "git init -q -b main --template= && mkdir -p .git/hooks && \
             git config merge.agentd.driver 'agentd merge-driver' && git add -A && \
             git -c user.name=t -c user.email=t@t commit -qm all",
        );
        let base = project.base();
        sh(&base, "mkdir saved && cp -a project home saved/");
        project.run(["implement", "add-ready"]).exits(1);
        let kept = project.home().join(".claude/calls");
        assert!(fs::read_dir(&kept).unwrap().count() >= 2, "the call kept nothing");
        sh(&base, "cp -a home/.claude/calls kept && rm -rf project home && cp -a saved/* .");
        let killed = Self { project, saved: base.join("saved") };
        killed.plant(&base.join("kept"));
        sh(&base, "rm -rf saved && mkdir saved && cp -a project home saved/");
        killed
    }

    /// The leftovers: records of a call, what its agent changed, and a journal.
    fn plant(&self, kept: &Path) {
        let root = self.project.root();
        // As soon as it has a journal, and a little later.
        let mut calls = 8..200;
        while !self.journal().exists() {
            traced(&self.project, &["archive", "big"], Some(calls.next().unwrap() + 4));
        }
        let calls = self.journal().with_file_name("calls");
        fs::create_dir_all(&calls).unwrap();
        for entry in fs::read_dir(kept).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "json") {
                fs::copy(&path, calls.join(path.file_name().unwrap())).unwrap();
            }
        }
        let hook = format!("#!/bin/sh\ntouch '{}'\n", self.project.home().join(SPRUNG).display());
        for name in ["post-checkout", "post-index-change", "pre-commit"] {
            let path = root.join(".git/hooks").join(name);
            fs::write(&path, &hook).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let state = root.join("agentd/changes/add-ready/STATE.yaml");
        let text = fs::read_to_string(&state).unwrap();
        assert_eq!(text.matches("phase: challenged").count(), 1, "{text}");
        fs::write(&state, text.replace("phase: challenged", "phase: complete")).unwrap();
    }

    fn journal(&self) -> PathBuf {
        journal(&self.project)
    }

    fn restore(&self) {
        let base = self.saved.parent().unwrap();
        sh(base, "chmod -R u+w project home; rm -rf project home && cp -a saved/* .");
    }

    /// What a command prints beside its data. One that serves is stopped as soon as it does.
    fn run(&self, arguments: &[&str]) -> String {
        let errors = self.project.home().join("stderr");
        let mut child = self
            .project
            .command(arguments)
            .env("AGENTD_TRUST", "all")
            .stdout(Stdio::null())
            .stderr(fs::File::create(&errors).unwrap())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_mins(1);
        while child.try_wait().unwrap().is_none() {
            // The last of the warnings; a pause would be a guess.
            let warned =
                || fs::read_to_string(&errors).is_ok_and(|e| e.contains("journal is whole"));
            let serves = arguments[0] == "view" && !self.journal().exists() && warned();
            if serves || Instant::now() > until {
                kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        fs::read_to_string(&errors).unwrap()
    }
}

/// A warning with the files that it names in order, not as the directory lists them.
fn in_order(warning: &str) -> String {
    let Some((start, files)) = warning.split_once("restored: ") else { return warning.to_owned() };
    let mut files: Vec<&str> = files.split(", ").collect();
    files.sort_unstable();
    format!("{start}restored: {}", files.join(", "))
}

#[test]
fn heavy_every_command_repairs_leftovers() {
    let killed = Killed::new();
    let project = &killed.project;
    let mut tried: Vec<&str> = COMMANDS.iter().map(|arguments| arguments[0]).collect();
    tried.extend(WITHOUT_PROJECT);
    let missing: Vec<String> =
        known(project).into_iter().filter(|name| !tried.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "commands that are not in the table: {missing:?}");
    for arguments in COMMANDS {
        killed.restore();
        let stderr = killed.run(arguments);
        let hooks = fs::read_dir(project.root().join(".git/hooks")).unwrap().count();
        assert_eq!(hooks, 0, "{arguments:?} left a planted hook: {stderr}");
        assert!(!project.home().join(SPRUNG).exists(), "{arguments:?} ran a hook: {stderr}");
        assert!(!killed.journal().exists(), "{arguments:?} left the journal: {stderr}");
        let state = project.root().join("agentd/changes/add-ready/STATE.yaml");
        let text = fs::read_to_string(&state).unwrap_or_default();
        assert!(!text.lines().any(|line| line == "phase: complete"), "{arguments:?}: {text}");
        let warnings = stderr.lines().filter(|line| line.contains(" was interrupted "));
        let warnings = warnings.map(in_order).collect::<Vec<_>>().join("\n");
        insta::allow_duplicates! { insta::assert_snapshot!(warnings, arguments[0], @"
        warning: add-ready-implement-logic was interrupted after it changed files that are not its own; restored: agentd/changes/add-ready/STATE.yaml (changed)
        warning: add-ready-implement-logic was interrupted after it changed files that are not its own; restored: .git/hooks/post-checkout (new), .git/hooks/post-index-change (new), .git/hooks/pre-commit (new)
        warning: archiving `big` was interrupted and has been reverted
        warning: agentd was interrupted while it recorded something for `big`: the journal is whole
        "); }
    }
}
