//! The command itself: what it prints and how it ends.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{Viewer, project};

#[test]
fn first_line_is_address_and_signals_stop() {
    let project = project();
    for signal in [Signal::INT, Signal::TERM] {
        let mut viewer = Viewer::start_with(&project, &["add-oauth"]);
        let expected = format!("http://127.0.0.1:{}/changes/add-oauth?token=", viewer.port);
        assert!(viewer.address.starts_with(&expected), "{}", viewer.address);
        assert_eq!(viewer.get("/changes/add-oauth").status, 200);
        let pid = Pid::from_raw(i32::try_from(viewer.pid()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        assert!(viewer.wait().success());
    }
}

#[test]
fn port_is_chosen_or_reported_as_taken() {
    let project = project();
    let viewer = Viewer::start(&project);
    let port = viewer.port.to_string();
    let output = project.run(["view", "--no-open", "--json", "--port", &port]).exits(1);
    assert_eq!(output.json_error()["kind"], "port", "{output}");
}

#[test]
fn view_of_missing_change() {
    let project = project();
    insta::assert_snapshot!(project.run(["view", "--no-open", "add-oaut"]), @"
    exit 1
    --- stderr
    error: there is no change `add-oaut`

    hint: did you mean `add-oauth`?
    ");
}

/// Attack L1: everybody can read the command line of a browser.
#[test]
fn browser_gets_private_page_not_token() {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::os::unix::fs::PermissionsExt as _;

    let project = project();
    let temp = test_project::temp_dir();
    let fifo = project.bin().join("opened");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let project = project.program("xdg-open", &format!("echo \"$*\" >{}", fifo.display()));
    let mut viewer = project
        .command(["view"])
        .env("TMPDIR", temp.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(viewer.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let (address, token) = (address.trim(), address.trim().split_once("token=").unwrap().1);
    let opened = std::fs::read_to_string(&fifo).unwrap();
    assert!(!opened.contains(token), "{opened}");
    let page = std::path::Path::new(opened.trim());
    assert!(page.starts_with(temp.path()), "{opened}");
    let text = std::fs::read_to_string(page).unwrap();
    insta::assert_snapshot!(text.replace(address, "[ADDRESS]"), @r#"<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=[ADDRESS]"><title>agentd</title><a href="[ADDRESS]">Open the viewer</a>"#);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(page) & 0o777, 0o600);
    assert_eq!(mode(page.parent().unwrap()) & 0o777, 0o700);
    // Once it answers, the viewer listens for signals too.
    let port: u16 = address.split([':', '/']).nth(4).unwrap().parse().unwrap();
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    // Strangers keep no connection.
    assert!(answer.lines().any(|line| line.eq_ignore_ascii_case("connection: close")), "{answer}");
    let pid = Pid::from_raw(i32::try_from(viewer.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert!(viewer.wait().unwrap().success());
    assert!(!page.exists() && !page.parent().unwrap().exists());
}
