//! The pages in real Chromium. `cargo xtask test` installs playwright-core, and Chromium
//! where it may.

use std::path::PathBuf;
use std::process::Command;

use agentd_core::document::comments;
use agentd_core::state::{self, Choice};

use super::{Viewer, project};

#[test]
fn heavy_viewer_in_chromium() {
    let Ok(modules) = std::env::var("AGENTD_NPM_VIEWER") else {
        eprintln!("skipped: AGENTD_NPM_VIEWER is not set; `cargo xtask test` sets it");
        return;
    };
    let Some(chromium) = chromium() else {
        eprintln!("skipped: there is no Chromium; `apt-get install chromium`");
        return;
    };
    let project = project();
    let viewer = Viewer::start(&project);
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let pictures = target.parent().unwrap().join("screenshots");
    std::fs::create_dir_all(&pictures).unwrap();
    let output = Command::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/viewer/browser.mjs"))
        .args([&viewer.address, &chromium])
        .arg(&pictures)
        .arg(project.root())
        .env("AGENTD_NPM_VIEWER", modules)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    eprintln!("{printed}");
    // What was done in the browser is on the disk.
    let comments = comments::parse(&project.read("comments.md")).value.comments;
    assert!(comments.iter().any(|comment| comment.text.as_str() == "Which clock?"));
    let state = state::parse(&project.read("STATE.yaml"), &project.id()).unwrap();
    assert_eq!(state.decisions.first().map(|made| made.choice), Some(Choice::Fix));
}

fn chromium() -> Option<String> {
    let named = std::env::var("AGENTD_CHROMIUM").ok();
    let usual = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let found = usual.into_iter().find(|path| std::path::Path::new(path).exists());
    named.or_else(|| found.map(str::to_owned))
}
