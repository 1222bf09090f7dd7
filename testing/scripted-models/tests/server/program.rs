//! The server as a program.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Ends the program with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn it_announces_its_port_and_logs_requests() {
    let folder = folder("announces");
    let (script, port, log) =
        (folder.join("s.json"), folder.join("port"), folder.join("log.jsonl"));
    fs::write(&script, r#"{"otherwise": {"text": "from the program"}}"#).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scripted-models"));
    command.arg("--script").arg(script).arg("--port-file").arg(&port).arg("--log").arg(&log);
    let _running = Running(command.spawn().unwrap());
    let start = Instant::now();
    while !port.exists() {
        assert!(start.elapsed() < Duration::from_secs(10), "no port file");
        std::thread::sleep(Duration::from_millis(5));
    }
    let port: u16 = fs::read_to_string(port).unwrap().parse().unwrap();
    let body = r#"{"messages": [{"role": "user", "content": "p"}], "tools": [{"name": "t"}]}"#;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    write!(stream, "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("from the program") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    let start = Instant::now();
    let line = loop {
        let line = fs::read_to_string(&log).unwrap();
        if line.ends_with('\n') {
            break line;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "nothing logged");
        std::thread::sleep(Duration::from_millis(5));
    };
    let record: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(record["request"]["prompt"], "p");
    assert_eq!(record["status"], 200);
}

#[test]
fn it_refuses_a_bad_script_and_bad_arguments() {
    let folder = folder("refuses");
    let script = folder.join("s.json");
    fs::write(&script, r#"{"rulez": []}"#).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scripted-models"));
    let output =
        command.arg("--script").arg(&script).arg("--port-file").arg(folder.join("p")).output();
    let output = output.unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("unknown field `rulez`"), "{message}");
    assert!(!folder.join("p").exists());

    let output = Command::new(env!("CARGO_BIN_EXE_scripted-models")).arg("--bogus").output();
    let message = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(message.contains("usage: scripted-models"), "{message}");
}
