//! `agentd view` as a browser sees it: a process that speaks HTTP on 127.0.0.1.
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod acting;
mod browser;
mod code;
mod command;
mod connections;
mod export;
mod fleet;
mod kept;
mod live;
pub(crate) mod outline;
mod pages;
mod project;
#[cfg(target_os = "linux")]
mod reads;
mod secrets;
mod security;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use project::project;
use test_project::{TestProject, mask};

/// A viewer that runs.
pub(crate) struct Viewer {
    child: Child,
    /// The address with the token.
    pub(crate) address: String,
    pub(crate) port: u16,
    pub(crate) token: String,
}

impl Viewer {
    pub(crate) fn start(project: &TestProject) -> Self {
        Self::start_with(project, &[])
    }

    pub(crate) fn start_with(project: &TestProject, arguments: &[&str]) -> Self {
        let mut child = project
            .command(["view", "--no-open"])
            .args(arguments)
            .env("USER", "alice")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        let port = address.strip_prefix("http://127.0.0.1:").unwrap().split('/').next().unwrap();
        let port = port.parse().unwrap();
        let token = address.split_once("token=").unwrap().1.to_owned();
        Self { child, address, port, token }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }

    /// The headers that a browser on one of our pages sends.
    pub(crate) fn signed_in(&self) -> Vec<(String, String)> {
        vec![
            ("Host".into(), format!("127.0.0.1:{}", self.port)),
            ("Cookie".into(), format!("agentd_view_{}={}", self.port, self.token)),
        ]
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.send("GET", target, &self.signed_in(), "")
    }

    /// What a form of a page says about what was shown with it.
    #[track_caller]
    pub(crate) fn seen(&self, target: &str, form: &str) -> String {
        let body = self.get(target).body;
        let (_, form) = body.split_once(&format!("<form class=\"{form}\"")).expect("a form");
        let (_, rest) = form.split_once("name=\"seen\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }

    /// What the script of a page does.
    pub(crate) fn post_for_data(&self, target: &str, body: &str) -> (u16, serde_json::Value) {
        let mut headers = self.signed_in();
        headers.push(("Origin".into(), self.origin()));
        headers.push(("Accept".into(), "application/json".into()));
        headers.push(("Content-Type".into(), "application/x-www-form-urlencoded".into()));
        let answer = self.send("POST", target, &headers, body);
        (answer.status, serde_json::from_str(&answer.body).unwrap())
    }

    pub(crate) fn post(&self, target: &str, body: &str) -> Answer {
        let mut headers = self.signed_in();
        headers.push(("Origin".into(), self.origin()));
        headers.push(("Content-Type".into(), "application/x-www-form-urlencoded".into()));
        self.send("POST", target, &headers, body)
    }

    /// One request, exactly as given.
    pub(crate) fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: &str,
    ) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut request = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str(&format!("\r\n{body}"));
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        // A server that refuses may close while we still read.
        let _ = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes)
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let body = String::from_utf8_lossy(bytes.get(end + 4..).unwrap_or_default()).into_owned();
        let mut lines = head.lines();
        let status =
            lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|s| s.parse().ok());
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        Self { status: status.unwrap_or(0), headers, body }
    }

    /// A part of the page as a text browser shows it.
    pub(crate) fn between(&self, start: &str, end: &str) -> String {
        let (_, rest) =
            self.body.split_once(start).unwrap_or_else(|| panic!("no {start}: {}", self.body));
        mask(&outline::outline(rest.split(end).next().unwrap()), Path::new("/nowhere"))
    }

    /// What the page shows, without its head and its form for comments.
    pub(crate) fn shown(&self) -> String {
        let start = self.body.find("<div class=\"content\"").or_else(|| self.body.find("<main"));
        let text = outline::outline(&self.body[start.unwrap()..]);
        let content = text.split("(#comment-template)").next().unwrap();
        let content = content.split("(#help)").next().unwrap();
        mask(content, Path::new("/nowhere"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
