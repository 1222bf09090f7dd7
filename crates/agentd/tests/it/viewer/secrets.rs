//! Secrets that an agent meets are in nothing that agentd keeps or shows: 20 kinds of them, each
//! in 10 places, through real runs of an implementer, the tests and a reviewer.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use agentd_core::document::review_block::PlanVerdict;
use serde_json::{Value, json};
use test_project::{Node, Output, TestProject, stamp};

use super::{Viewer, project};

const CHANGE: &str = "add-oauth";
const KINDS: usize = 20;
/// Where they are planted.
const PLACES: [&str; 10] =
    ["text", "arguments", "result", "stderr", "line", "edit", "prompt", "argv", "test", "failure"];

/// Letters and digits that nobody else has.
fn made(kind: usize, place: usize, length: usize) -> String {
    let mut seed = u64::try_from(kind * 100 + place + 1).unwrap();
    let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
    let next = |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(letters[usize::try_from(seed >> 33).unwrap() % letters.len()])
    };
    (0..length).map(next).collect()
}

/// A text with a secret in it, and the secret.
fn secret(kind: usize, place: usize) -> (String, String) {
    let body = |length| made(kind, place, length);
    let alone = |start: &str, length| {
        let secret = format!("{start}{}", body(length));
        (secret.clone(), secret)
    };
    let behind = |name: &str, secret: String| (format!("{name}{secret}"), secret);
    match kind {
        0 => alone("ghp_", 36),
        1 => alone("github_pat_", 60),
        2 => alone("glpat-", 20),
        3 => alone("sk-ant-api03-", 60),
        4 => alone("sk-proj-", 60),
        5 => alone("AIza", 35),
        6 => alone("ya29.", 60),
        7 => alone("xoxb-", 40),
        8 => {
            let id = format!("AKIA{}", body(16).to_uppercase());
            (id.clone(), id)
        }
        9 => behind("aws_secret_access_key = ", format!("{}/+{}", body(20), body(18))),
        10 => alone(&format!("eyJ{}.eyJ{}.", body(20), body(40)), 43),
        11 => {
            let password = body(12);
            (format!("postgres://joe:{password}@db.example.com/app"), password)
        }
        12 => {
            let line = body(48);
            let key = format!(
                "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n{line}\n-----END OPENSSH PRIVATE KEY-----",
                made(kind, place + 50, 64)
            );
            (key, line)
        }
        13 => alone("npm_", 36),
        14 => alone("pypi-AgEIcHlwaS5vcmc", 60),
        15 => alone("sk_live_", 24),
        16 => alone(&format!("SG.{}.", body(22)), 43),
        17 => behind("https://hooks.slack.com/services/", format!("T00/B00/{}", body(24))),
        18 => behind("Authorization: Bearer ", body(40)),
        19 => behind("DefaultEndpointsProtocol=https;AccountKey=", format!("{}==", body(86))),
        _ => unreachable!("{kind}"),
    }
}

/// All kinds for a place, each at the start of a line.
fn planted(place: &str) -> String {
    let place = PLACES.iter().position(|known| *known == place).unwrap();
    let lines = (0..KINDS).map(|kind| format!("{}\n", secret(kind, place).0));
    format!("what is here:\n{}", lines.collect::<String>())
}

/// What the stand-in prints; the end of it is a failure.
fn stream() -> String {
    let says = |content: Value| json!({"type": "assistant", "message": {"id": "m", "role": "assistant", "model": "claude-opus-4-8", "content": [content]}, "session_id": "daa347b4"});
    let answer = json!({"type": "user", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": planted("result")}]}});
    let lines = [
        json!({"type": "system", "subtype": "init", "session_id": "daa347b4", "model": "claude-opus-4-8", "mcp_servers": [{"name": "agentd", "status": "connected"}]}),
        says(json!({"type": "text", "text": planted("text")})),
        says(
            json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": planted("arguments"), "nested": json!({"deep": planted("arguments")}).to_string()}}),
        ),
        answer,
        json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "errors": [planted("failure")], "session_id": "daa347b4", "total_cost_usd": 0.25, "usage": {"input_tokens": 10, "output_tokens": 2}}),
    ];
    let raw = planted("line");
    lines.map(|line| format!("{line}\n{raw}")).concat()
}

/// agentd, in an environment with secrets.
fn run(project: &TestProject, args: &[&str]) -> Output {
    let mut command = project.command(args);
    command
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("AGENTD_TRUST", "all")
        .env("DEPLOY_TOKEN", "a value that only I know");
    project.finish(&mut command)
}

/// Every text below a directory.
fn texts(dir: &Path, found: &mut Vec<(String, String)>) {
    for (path, node) in test_project::tree(dir) {
        if let Node::File { bytes, .. } = node {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            found.push((path.display().to_string(), text));
        }
    }
}

#[test]
fn heavy_200_secrets_are_never_shown() {
    let project = project();
    project.plan_reviewed(PlanVerdict::Approved, stamp("2026-11-10T11:00:00Z"));
    let outside = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(outside.path().join(name), text).unwrap();
    let at = |name: &str| outside.path().join(name).display().to_string();
    for place in ["edit", "stderr", "test"] {
        put(place, &planted(place));
    }
    put("stream", &stream());
    let agent = format!(
        "#!/bin/sh\ncat > /dev/null\ncat '{}' >&2\ncp '{}' notes.txt\n\
         printf '\\377' > notes.bin; cat '{}' >> notes.bin\n\
         echo \"$DEPLOY_TOKEN\"; echo \"$AGENT_SECRET\"; cat '{}'\nexit 1\n",
        at("stderr"),
        at("edit"),
        at("edit"),
        at("stream"),
    );
    put("claude", &agent);
    fs::set_permissions(outside.path().join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut argv: Vec<String> = planted("argv").lines().map(str::to_owned).collect();
    argv.push(planted("argv"));
    let config = format!(
        "[workflow]\nscript_retries = 0\n[roles]\nimplementer = \"claude\"\nreviewer = \"claude\"\n\
         [git]\nworkflow = \"in-place\"\n[claude]\ncommand = '{}'\nargs = {}\n\
         env = {{ AGENT_SECRET = \"what only agents know\" }}\n\
         [implementation]\ntest_command = \"cat '{}'; exit 1\"\n",
        at("claude"),
        json!(argv),
        at("test"),
    );
    project.write_root("agentd/config.toml", &config);
    let project = project.repository();
    project.commit("start");
    let mut shown: Vec<(String, String)> = Vec::new();
    // The reviewer's prompt has the difference, and so what is in this file.
    project.write_root("prompt.txt", planted("prompt"));
    for command in ["implement", "review"] {
        let output = run(&project, &[command, CHANGE]);
        shown.extend([output.stdout, output.stderr].map(|text| (command.to_owned(), text)));
    }
    let change = project.change_dir();
    texts(&change, &mut shown);
    let exported = run(&project, &["export", CHANGE, "--output", "-"]).stdout;
    shown.push(("export".to_owned(), exported));
    for format in ["--html", "--markdown"] {
        let exported = run(&project, &["export", CHANGE, format, "--output", "-"]).stdout;
        shown.push((format.to_owned(), exported));
    }
    let viewer = Viewer::start(&project);
    let mut pages = vec![format!("/changes/{CHANGE}"), format!("/changes/{CHANGE}/runs")];
    assert!(change.join("runs").is_dir(), "{:?}", &shown[..4]);
    for run in fs::read_dir(change.join("runs")).unwrap() {
        let name = run.unwrap().file_name();
        pages.push(format!("/changes/{CHANGE}/runs/{}", name.to_str().unwrap()));
    }
    assert_eq!(pages.len(), 5, "{pages:?}: {shown:?}");
    for page in pages {
        let answer = viewer.get(&page);
        assert_eq!(answer.status, 200);
        shown.push((page, answer.body));
    }
    // All of it was there to be found.
    let all: String = shown.iter().map(|(_, text)| text.as_str()).collect();
    for what in ["\"stderr\":", "\"raw\":", "\"files\":", "output_tail", "prompt.txt"] {
        assert!(all.contains(what), "no {what}");
    }
    let found: Vec<String> = (0..KINDS * PLACES.len())
        .flat_map(|number| {
            let (kind, place) = (number / PLACES.len(), number % PLACES.len());
            let (_, secret) = secret(kind, place);
            let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
            let has = |text: &str| text.contains(&secret) || text.contains(&hex);
            let places: Vec<String> = shown
                .iter()
                .filter(|(_, text)| has(text))
                .map(|(name, _)| format!("{} of kind {kind} in {name}", PLACES[place]))
                .collect();
            places
        })
        .collect();
    assert!(found.is_empty(), "{} leaks:\n{}", found.len(), found.join("\n"));
    for value in ["a value that only I know", "what only agents know"] {
        assert!(!all.contains(value), "{value}");
    }
}

#[test]
fn old_run_files_are_redacted() {
    let project = project();
    let key = secret(0, 0).0;
    let (pem, line) = secret(12, 0);
    let mut records = vec![
        json!({"t": 1, "event": "text", "text": format!("a\n{key}")}),
        json!({"t": 1, "raw": json!({"text": format!("a\n{key}")}).to_string()}),
    ];
    records.extend(pem.lines().map(|line| json!({"t": 1, "stderr": format!("{line}\n")})));
    let hex: String = format!("\u{1}{key}").bytes().map(|byte| format!("{byte:02x}")).collect();
    records.push(json!({"t": 2, "files": [{"path": "x.bin", "hex": hex}]}));
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    project.write("runs/0002-challenge.jsonl", &text);
    let exported = run(&project, &["export", "add-oauth", "--output", "-"]).stdout;
    let redacted = exported.lines().filter(|line| line.contains("[redacted]"));
    let redacted: Vec<&str> = redacted.map(|line| &line[line.find('{').unwrap()..]).collect();
    insta::assert_snapshot!(redacted.join("\n"), @r#"
    {"t":1,"event":"text","text":"a\n[redacted]"}
    {"t":1,"raw":"{\"text\":\"a\\n[redacted]\"}"}
    {"t":1,"stderr":"[redacted]\n"}
    {"t":1,"stderr":"[redacted]\n"}
    {"t":1,"stderr":"[redacted]\n"}
    {"t":1,"stderr":"[redacted]\n"}
    "#);
    let viewer = Viewer::start(&project);
    let answer = viewer.get("/changes/add-oauth/runs/0002-challenge.jsonl");
    insta::assert_snapshot!(answer.shown(), @r#"
    ## 2 challenge
    All runs (/changes/add-oauth/runs)
    [ everything ] [ text ] [ tools ] [ errors ]
    (#log)
    0:00
    a [redacted]
    0:00
    [redacted]
    0:00
    [redacted]
    0:00
    [redacted]
    0:00
    [redacted]
    0:00
    changed 1 file
    x.bin deleted
    It is gone.
    "#);
    let digits: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    for shown in [exported, answer.body] {
        for secret in [&key, &line, &digits] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
    }
}
