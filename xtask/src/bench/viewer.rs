//! `agentd view`: how long a page takes from the request to its last byte.

use std::fs;
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

/// The file whose difference is measured, from the project.
const CODE: &str = "src/bench_code.rs";

/// For how long after an edit the viewer keeps nothing that was made from the file.
const RACY: Duration = Duration::from_millis(2_200);

/// How many lines of code the measured difference has.
const LINES: usize = 5_000;

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let project = bench.project("viewer", bench.size)?;
    let change = super::mcp::only_change(&project)?;
    let coded = with_code(&project, &change)?;
    let home = format!("agentd view: first page, {} changes", bench.size.changes);
    let page =
        |name: &str, path: String, limit, bar| (format!("agentd view: {name}"), path, limit, bar);
    let pages = [
        (home.clone(), "/".to_owned(), 50.0, "50 ms"),
        page("a change", format!("/changes/{change}"), 30.0, "30 ms"),
        page("a document", format!("/changes/{change}/proposal"), 30.0, "30 ms"),
        page("its reviews", format!("/changes/{change}/review"), 30.0, "30 ms"),
        page("its runs", format!("/changes/{change}/runs"), 30.0, "30 ms"),
        page("a difference of 5,000 lines", format!("/changes/{coded}/code"), 100.0, "100 ms"),
    ];
    live(bench, report)?;
    let viewer = match Viewer::start(bench, &project) {
        Ok(viewer) => viewer,
        Err(error) => {
            for (name, _, _, bar) in pages {
                report.add(Row::not_measurable(&name, bar, error.to_string()));
            }
            return Ok(());
        }
    };
    let path = format!("/changes/{coded}/code");
    let mut took = Vec::new();
    // After an edit nothing is known: what differs is found out again.
    for number in 0..bench.rounds.div_ceil(8) {
        edit(&project, number)?;
        took.push(viewer.get(&path)?.0);
    }
    let name = "agentd view: a difference of 5,000 lines, after an edit";
    let value = Samples::new(took).median();
    report.add(Row::measured(name, Unit::Milliseconds, value, 100.0, "100 ms"));
    // What was changed a moment ago is not kept.
    std::thread::sleep(RACY);
    for (name, path, limit, bar) in pages {
        let mut took = Vec::new();
        for _ in 0..bench.rounds.div_ceil(2) {
            took.push(viewer.get(&path)?.0);
        }
        // The first one counts like any other: little is kept between requests.
        let samples = Samples::new(took);
        report.add(Row::measured(&name, Unit::Milliseconds, samples.median(), limit, bar));
    }
    let (_, body) = viewer.get("/")?;
    #[expect(clippy::cast_precision_loss, reason = "pages are shorter than 2^52 bytes")]
    let (size, elements) = (body.len() as f64 / 1000.0, elements(&body) as f64);
    let name = format!("{home}: size");
    report.add(Row::measured(&name, Unit::Kilobytes, size, 250.0, "250 kB"));
    let name = format!("{home}: elements");
    report.add(Row::measured(&name, Unit::Count, elements, 3_000.0, "3,000"));
    Ok(())
}

/// What happens now is on the page soon: a line of an agent, and a run that was started there.
fn live(bench: &Bench, report: &mut Report) -> Result<()> {
    let project = bench.project("viewer-live", bench.size)?;
    let config = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";
    fs::write(project.join("agentd/config.toml"), config)?;
    let viewer = Viewer::start(bench, &project)?;
    let change = super::mcp::only_change(&project)?;
    let runs = project.join("agentd/changes").join(&change).join("runs");
    fs::create_dir_all(&runs)?;
    let mut file = fs::File::create(runs.join("0001-proposal-gen.jsonl"))?;
    let mut stream = viewer.follow(&change)?;
    let mut took = Vec::new();
    for number in 0..bench.rounds {
        let begun = Instant::now();
        writeln!(
            file,
            "{{\"t\":1,\"event\":\"text\",\"text\":\"word-{number} \",\"delta\":true}}"
        )?;
        until(&mut stream, &format!("word-{number} "))?;
        took.push(begun.elapsed());
    }
    let name = "agentd view: a line of an agent is sent";
    let value = Samples::new(took).median();
    report.add(Row::measured(name, Unit::Milliseconds, value, 300.0, "300 ms"));

    let (mut is_live, mut says) = (Vec::new(), Vec::new());
    for number in 0..bench.rounds.div_ceil(8) {
        let change = format!("bench-run-{number}");
        let begun = Instant::now();
        let words = "Let+people+export+their+reports+as+CSV+files+within+2+seconds";
        viewer.post("/new", &format!("id={change}&description={words}&then=plan"))?;
        let page = format!("/changes/{change}");
        // As the page is after the click.
        let body = String::from_utf8_lossy(&viewer.get(&page)?.1).into_owned();
        if !body.contains("class=\"next live\"") {
            return Err(format!("{change} is not live").into());
        }
        is_live.push(begun.elapsed());
        until(&mut viewer.follow(&change)?, "event: run")?;
        says.push(begun.elapsed());
        let begun = Instant::now();
        while String::from_utf8_lossy(&viewer.get(&page)?.1).contains("class=\"next live\"") {
            if begun.elapsed() > PATIENCE {
                return Err(format!("{change} does not end").into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    for (what, took) in [("is on its page", is_live), ("has said something there", says)] {
        let name = format!("agentd view: a run that was started {what}");
        let value = Samples::new(took).median();
        report.add(Row::measured(&name, Unit::Milliseconds, value, 500.0, "500 ms"));
    }
    Ok(())
}

/// Reads a stream of events until there is something in it.
fn until(stream: &mut BufReader<TcpStream>, wanted: &str) -> Result<()> {
    let mut line = String::new();
    while !line.contains(wanted) {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(format!("the stream ended before {wanted}").into());
        }
    }
    Ok(())
}

/// Changes a line of the measured code.
fn edit(project: &Path, number: usize) -> Result<()> {
    let file = project.join(CODE);
    let mut text = fs::read_to_string(&file)?;
    text.push_str(&format!("// edit {number}\n"));
    Ok(fs::write(file, text)?)
}

/// How many elements a page has: tags that open one.
fn elements(body: &[u8]) -> usize {
    body.windows(2).filter(|two| two[0] == b'<' && two[1].is_ascii_alphabetic()).count()
}

/// A change with code: the repository begins with an empty file, and then has many lines.
fn with_code(project: &Path, like: &str) -> Result<String> {
    let git = |args: &[&str]| -> Result<String> {
        let mut command = crate::process::command(Path::new("git"), project);
        command.args(["-c", "user.name=bench", "-c", "user.email=bench@example.org"]).args(args);
        let output = command.output()?;
        if !output.status.success() {
            return Err(format!("git {args:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    git(&["init", "-q"])?;
    fs::create_dir_all(project.join("src"))?;
    let line = |n: usize| format!("    let value_{n} = compute({n}, \"text {n}\"); // line {n}\n");
    let file = project.join(CODE);
    fs::write(&file, (0..LINES / 2).map(line).collect::<String>())?;
    // All of the project, so that nothing else is new.
    git(&["add", "."])?;
    git(&["commit", "-q", "-m", "start"])?;
    // Packed, as every clone is: thousands of loose directories would measure git.
    git(&["gc", "-q"])?;
    let base = git(&["rev-parse", "HEAD"])?;
    fs::write(
        &file,
        (0..LINES / 2).map(|n| line(n).replace("compute", "look_up")).collect::<String>(),
    )?;
    let id = "bench-code";
    let (from, to) =
        (project.join("agentd/changes").join(like), project.join("agentd/changes").join(id));
    fs::create_dir_all(&to)?;
    fs::copy(from.join("proposal.md"), to.join("proposal.md"))?;
    let state = format!(
        "change_id: {id}\nphase: implementing\ncreated_at: 2026-11-10T09:00:00Z\n\
         updated_at: 2026-11-10T10:20:00Z\ngit:\n  workflow: in-place\n  base_commit: {base}\n"
    );
    fs::write(to.join("STATE.yaml"), state)?;
    Ok(id.to_owned())
}

struct Viewer {
    child: Child,
    port: u16,
    token: String,
}

impl Viewer {
    fn start(bench: &Bench, project: &Path) -> Result<Self> {
        let mut command = bench.agentd(project, &["view", "--no-open", "--act"]);
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

    /// The events of a change, from the beginning.
    fn follow(&self, change: &str) -> Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let Self { port, token, .. } = self;
        write!(
            stream,
            "GET /changes/{change}/live?after=1:0 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\
             Cookie: agentd_view_{port}={token}\r\n\r\n"
        )?;
        Ok(BufReader::new(stream))
    }

    /// Sends a form, as a page does.
    fn post(&self, path: &str, form: &str) -> Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let Self { port, token, .. } = self;
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
             Origin: http://127.0.0.1:{port}\r\nCookie: agentd_view_{port}={token}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        if answer.starts_with("HTTP/1.1 303 ") {
            Ok(())
        } else {
            Err(format!("{path}: {}", answer.lines().next().unwrap_or_default()).into())
        }
    }

    /// The time of one request, and the page; an answer other than 200 is an error.
    fn get(&self, path: &str) -> Result<(Duration, Vec<u8>)> {
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
            Ok((took, answer))
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
