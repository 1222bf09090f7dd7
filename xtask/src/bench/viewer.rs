//! `agentd view`: how long a page takes from the request to its last byte.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use super::Bench;
use super::measure::Samples;
use super::report::Report;
use super::report::Row;
use super::report::Unit;
use crate::Result;

/// How long to wait for an answer before giving up.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let project = bench.project("viewer", bench.size)?;
    let change = super::mcp::only_change(&project)?;
    let home = format!("agentd view: first page, {} changes", bench.size.changes);
    let pages = [
        (home, "/".to_owned(), 50.0, "50 ms"),
        ("agentd view: a change".to_owned(), format!("/changes/{change}"), 30.0, "30 ms"),
        (
            "agentd view: a document".to_owned(),
            format!("/changes/{change}/proposal"),
            30.0,
            "30 ms",
        ),
    ];
    let viewer = match Viewer::start(bench, &project) {
        Ok(viewer) => viewer,
        Err(error) => {
            for (name, _, _, bar) in pages {
                report.add(Row::not_measurable(&name, bar, error.to_string()));
            }
            return Ok(());
        }
    };
    for (name, path, limit, bar) in pages {
        let mut took = Vec::new();
        for _ in 0..bench.rounds.div_ceil(2) {
            took.push(viewer.get(&path)?);
        }
        // The first one counts like any other: nothing is kept between requests.
        let samples = Samples::new(took);
        report.add(Row::measured(&name, Unit::Milliseconds, samples.median(), limit, bar));
    }
    Ok(())
}

struct Viewer {
    child: Child,
    port: u16,
    token: String,
}

impl Viewer {
    fn start(bench: &Bench, project: &Path) -> Result<Self> {
        let mut command = bench.agentd(project, &["view", "--no-open"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut address = String::new();
        let stdout = child.stdout.take().ok_or("no stdout")?;
        BufReader::new(stdout).read_line(&mut address)?;
        let found = address.trim().strip_prefix("http://127.0.0.1:").and_then(|rest| {
            let (port, token) = rest.split_once("/?token=")?;
            Some((port.parse().ok()?, token.to_owned()))
        });
        let Some((port, token)) = found else {
            child.kill()?;
            child.wait()?;
            return Err("`agentd view` prints no address".into());
        };
        Ok(Self { child, port, token })
    }

    /// The time of one request; an answer other than 200 is an error.
    fn get(&self, path: &str) -> Result<Duration> {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let Self { port, token, .. } = self;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
             Cookie: agentd_view_{port}={token}\r\n\r\n"
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let took = begun.elapsed();
        if answer.starts_with(b"HTTP/1.1 200 ") {
            Ok(took)
        } else {
            Err(format!("{path}: no page").into())
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
