//! Which worker has what, on the pages: by a real claim in a real remote repository.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::Viewer;
use crate::cli::clones::Clones;
use crate::cli::stand_in::{self, CHANGE};

fn until(viewer: &Viewer, page: &str, words: &str) -> String {
    let start = Instant::now();
    loop {
        let body = viewer.get(page).body;
        if body.contains(words) {
            return body;
        }
        assert!(start.elapsed() < Duration::from_secs(40), "{page}: no {words:?} in {body}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn heavy_pages_show_which_worker_has_a_change() {
    let clones = Clones::new("");
    clones.clone_again();
    let step =
        [
            &[
                "step",
                CHANGE,
                "Let people sign in",
                "--skip-clarify",
                "--auto",
                "--trust",
                "--json",
            ][..],
            &["--carry", "origin", "--as", "box-b"],
        ]
        .concat();
    // A checkout in which nobody has used a fleet asks no remote.
    let viewer = Viewer::start(&clones.first);
    assert!(!viewer.get("/").body.contains("Carried by workers"));
    assert!(
        !clones.first.home().join(".local/state").read_dir().is_ok_and(|dir| {
            dir.flatten().any(|entry| entry.path().join("sightings").exists())
        })
    );
    drop(viewer);
    // Somebody else's worker plans, and implements.
    for _ in 0..4 {
        clones.second(&step).exits(0);
    }
    fs::write(stand_in::hold(&clones.first), "").unwrap();
    let mut command = clones.first.command([] as [&str; 0]);
    command.arg("-C").arg(&clones.second).args(&step).args(["--beat", "1"]);
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    stand_in::wait_until("the implementer is called", || {
        stand_in::calls(&clones.first).iter().any(|step| step == "implement-logic")
    });
    // A ref that anyone could have pushed.
    let remote = clones.first.base().join("remote.git");
    let remote = remote.to_str().unwrap();
    let tree = clones.first.git(&["-C", remote, "rev-parse", "main^{tree}"]);
    let message = "x\n\nAgentd-Carried: {\"version\":1,\"state\":\"waiting\",\"worker\":\"eve\",\
                   \"at\":\"2026-11-18T10:00:00Z\",\"why\":\"<script>alert(1)</script>\\u001b[31m\"}";
    let commit = clones.first.git(&["-C", remote, "commit-tree", "-m", message, tree.trim()]);
    let put = |name: &str| {
        clones.first.git(&[
            "-C",
            remote,
            "update-ref",
            &format!("refs/agentd/wip/{name}"),
            commit.trim(),
        ])
    };
    put("evil");
    put("not-a-message.lock-x");
    // What the clone says about its remote runs nothing.
    let sprung = clones.first.base().join("sprung");
    let touch = format!("touch '{}'", sprung.display());
    for key in ["core.sshCommand", "core.fsmonitor", "core.askPass", "remote.origin.uploadpack"] {
        clones.first.git(&["config", key, &touch]);
    }
    // The checkout of somebody who has submitted something.
    clones.first.run(["fleet", "status"]);
    let viewer = Viewer::start(&clones.first);
    let page = until(&viewer, "/", "on worker");
    for words in [
        "<strong>implement-logic</strong>",
        "on worker <strong>box-b</strong>",
        "last sign of life",
        "agentd take add-login",
        "Waits for a person: &lt;script&gt;alert(1)",
        "As `origin` had it",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'));
    assert!(!sprung.exists(), "nothing of the clone was run");
    // On the page of the change, where it is here too; and in the terminal.
    fs::remove_file(stand_in::hold(&clones.first)).unwrap();
    running.wait().unwrap();
    clones.first.run(["take", CHANGE, "--as", "ada"]).exits(0);
    until(&viewer, &format!("/changes/{CHANGE}"), "With <strong>ada</strong>");
    let status = clones.first.run(["status", CHANGE, "--fleet", "--json"]).exits(0).json();
    assert_eq!(status["carried"]["worker"], "ada", "{status:#}");
    assert_eq!(status["carried"]["state"], "taken", "{status:#}");
    let status = clones.first.run(["status", CHANGE]).exits(0);
    assert!(status.stdout.contains("with ada since"), "{status}");
    // What has gone is shown no longer.
    clones.first.git(&["-C", remote, "update-ref", "-d", "refs/agentd/wip/evil"]);
    let start = Instant::now();
    while viewer.get("/").body.contains("data-fleet=\"evil\"") {
        assert!(start.elapsed() < Duration::from_secs(40));
        std::thread::sleep(Duration::from_millis(200));
    }
    // Neither where the remote is reached by a program that the clone names.
    clones.first.git(&["remote", "set-url", "origin", "ssh://nobody@127.0.0.1/x"]);
    let refused = clones.first.run(["status", CHANGE, "--fleet", "--json"]).exits(1).json();
    assert_eq!(refused["error"]["kind"], "remote_unreachable", "{refused:#}");
    assert!(!sprung.exists(), "nothing of the clone was run");
    // Nobody is asked where that is not wanted.
    let offline = Viewer::start_with(&clones.first, &["--offline"]);
    assert!(offline.get("/").body.contains("With <strong>ada</strong>"), "as it was known last");
}
