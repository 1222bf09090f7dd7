//! A run that is started elsewhere is on the page as it happens.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Viewer, project};

/// The lines of a stream of events.
fn follow(viewer: &Viewer, target: &str, last: Option<&str>) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", viewer.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut request = format!("GET {target} HTTP/1.1\r\n");
    for (name, value) in viewer.signed_in() {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(last) = last {
        request.push_str(&format!("Last-Event-ID: {last}\r\n"));
    }
    write!(stream, "{request}\r\n").unwrap();
    BufReader::new(stream)
}

fn until(reader: &mut BufReader<TcpStream>, wanted: &str) -> String {
    let mut seen = String::new();
    let begun = Instant::now();
    while !seen.contains(wanted) {
        // A stream that is alive never ends.
        assert!(begun.elapsed() < Duration::from_secs(50), "no {wanted}: {seen}");
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the stream has ended: {seen}");
        seen.push_str(&line);
    }
    seen
}

/// The data of events.
fn data(seen: &str) -> String {
    let lines = seen.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.collect::<Vec<_>>().join("\n")
}

/// What a line takes is measured by `cargo xtask bench --only viewer`.
#[test]
fn agent_lines_arrive_as_they_are_written() {
    let project = project();
    let viewer = Viewer::start(&project);
    let mut stream = follow(&viewer, "/changes/add-oauth/live?after=2:0", None);
    until(&mut stream, "text/event-stream");
    let mut file = File::create(project.path("runs/0002-reproposal.jsonl")).unwrap();
    for number in 0..9 {
        writeln!(file, "{{\"t\":1,\"event\":\"text\",\"text\":\"word-{number} \",\"delta\":true}}")
            .unwrap();
        until(&mut stream, &format!("word-{number} "));
    }
}

#[test]
fn reconnected_page_continues() {
    let project = project();
    let viewer = Viewer::start(&project);
    let note = |text: &str| format!("{{\"t\":1,\"note\":\"{text}\"}}\n");
    project.write("runs/0002-fix.jsonl", note("one"));
    let mut stream = follow(&viewer, "/changes/add-oauth/live?after=2:0", None);
    let seen = until(&mut stream, "<div class");
    insta::assert_snapshot!(data(&seen), @r#"{"run":"0002-fix.jsonl","items":[{"html":"<div class=\"entry note\"><span class=\"t\">0:00</span><div class=\"said\">one</div></div>"}]}"#);
    let id = seen.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    drop(stream);
    project.write("runs/0002-fix.jsonl", &(note("one") + &note("two")));
    let mut stream = follow(&viewer, "/changes/add-oauth/live?after=2:0", Some(&id));
    let seen = until(&mut stream, "two");
    insta::assert_snapshot!(data(&seen), @r#"{"run":"0002-fix.jsonl","items":[{"html":"<div class=\"entry note\"><span class=\"t\">0:00</span><div class=\"said\">two</div></div>"}]}"#);
}

#[test]
fn changed_document_is_reported() {
    let project = project();
    let viewer = Viewer::start(&project);
    let tick = || {
        let tasks = project.read("tasks.md").replacen("status: pending", "status: done", 1);
        project.write("tasks.md", &tasks);
    };
    // Between the page and its stream.
    let address = stream_of(&viewer, "/changes/add-oauth");
    tick();
    let seen = until(&mut follow(&viewer, &address, None), "id: ");
    assert!(seen.contains("event: documents"), "{seen}");
    // And while a browser was away, which says where it was.
    let id = seen.rsplit_once("id: ").unwrap().1.trim().to_owned();
    tick();
    let mut stream = follow(&viewer, &address, Some(&id));
    until(&mut stream, "event: documents");
    tick();
    until(&mut stream, "event: documents");
}

/// What a page does not show yet is sent to it: the first lines of a run that began while the page was
/// made were on neither, and a line that was half written was lost.
#[test]
fn page_and_stream_miss_no_line_between_them() {
    let project = project();
    let viewer = Viewer::start(&project);
    let mut file = File::create(project.path("runs/0002-reproposal.jsonl")).unwrap();
    write!(file, "{{\"t\":1,\"note\":\"read\"}}\n{{\"t\":2,\"no").unwrap();
    let address = stream_of(&viewer, "/changes/add-oauth/runs/0002-reproposal.jsonl");
    writeln!(file, "te\":\"half\"}}").unwrap();
    let seen = until(&mut follow(&viewer, &address, None), "half");
    assert!(!seen.contains("read"), "it was on the page already: {seen}");
}

/// A page that was made just before its change was archived stood still, with a dead stream.
#[test]
fn archived_change_is_gone_for_its_page() {
    let project = project();
    let viewer = Viewer::start(&project);
    let address = stream_of(&viewer, "/changes/add-oauth");
    let mut open = follow(&viewer, &address, None);
    until(&mut open, "text/event-stream");
    let archived = project.root().join("agentd/archive");
    std::fs::create_dir_all(&archived).unwrap();
    let name = "2026-11-18-add-oauth";
    std::fs::rename(project.change_dir(), archived.join(name)).unwrap();
    until(&mut open, "event: gone");
    until(&mut follow(&viewer, &address, None), "event: gone");
    let page = viewer.get("/changes/add-oauth");
    assert_eq!(page.status, 303);
    assert_eq!(page.header("location"), Some(format!("/archive/{name}").as_str()));
}

/// The address of the stream of a page.
fn stream_of(viewer: &Viewer, page: &str) -> String {
    let page = viewer.get(page).body;
    let (_, rest) = page.split_once("data-follow=\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

fn of_board(viewer: &Viewer) -> String {
    stream_of(viewer, "/")
}

#[test]
fn board_events_cover_what_it_shows() {
    let project = project();
    let viewer = Viewer::start(&project);
    let mut stream = follow(&viewer, &of_board(&viewer), None);
    until(&mut stream, "text/event-stream");
    let state = project.read("STATE.yaml");
    let lock = project.root().join("agentd/.locks/dark-mode.run");
    let events: [(&str, &dyn Fn()); 6] = [
        ("a phase", &|| {
            project.write("STATE.yaml", state.replace("phase: proposed", "phase: rejected"));
        }),
        ("a tick", &|| {
            let tasks = project.read("tasks.md").replacen("status: pending", "status: done", 1);
            project.write("tasks.md", &tasks);
        }),
        ("a new change", &|| project.write_root("agentd/changes/brand-new/proposal.md", "# New\n")),
        ("one that goes", &|| {
            std::fs::remove_dir_all(project.root().join("agentd/changes/brand-new")).unwrap();
        }),
        ("a main spec", &|| project.write_root("agentd/specs/more.md", "# More\n")),
        ("a run that begins", &|| {
            std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
            let file = File::create(&lock).unwrap();
            file.lock().unwrap();
            // For as long as the test runs.
            std::mem::forget(file);
        }),
    ];
    let mut last = String::new();
    for (what, happens) in events {
        let begun = Instant::now();
        happens();
        let seen = until(&mut stream, "id: ");
        assert_eq!(seen.matches("event: documents").count(), 1, "{what}: {seen}");
        let id = seen.rsplit_once("id: ").unwrap().1.trim().to_owned();
        assert_ne!(id, last, "{what}");
        last = id;
        eprintln!("{what} was reported after {:?}", begun.elapsed());
    }
    assert!(of_board(&viewer).ends_with(&last), "the page shows what was reported last");
}

/// Nothing is lost between a page and its stream, nor while a browser was away.
#[test]
fn reconnected_board_gets_missed_events() {
    let project = project();
    let viewer = Viewer::start(&project);
    let address = of_board(&viewer);
    project.write("tasks.md", project.read("tasks.md").replace("status: pending", "status: done"));
    let seen = until(&mut follow(&viewer, &address, None), "id: ");
    let id = seen.rsplit_once("id: ").unwrap().1.trim().to_owned();
    // As the browser says it, and as the script does.
    let (_, now) = address.split_once("after=").unwrap();
    for (target, last) in [(address.as_str(), Some(&*id)), (&address.replace(now, &id), None)] {
        let mut stream = follow(&viewer, target, last);
        until(&mut stream, "text/event-stream");
        stream.get_ref().set_read_timeout(Some(Duration::from_millis(1200))).unwrap();
        let mut rest = String::new();
        while stream.read_line(&mut rest).is_ok_and(|read| read > 0) {}
        assert!(!rest.lines().any(|line| line.starts_with("event:")), "{rest}");
    }
}
