//! Writing `runs/NNNN-<step>.jsonl` while a call happens, and reading it back.
//! The format is [`agentd_core::run_format`].

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use agentd_core::event::{AgentEvent, KEPT_BYTES};
use agentd_core::layout::ChangeFile;
use agentd_core::run_format::{FileEdit, Record, RunEnd, RunHeader, parse_line};
use serde::Serialize;

use crate::agents::redact::{Open, Redactor};
use crate::store::Change;

/// How much a run file may hold, so that an agent that prints for ever does not
/// fill the disk.
#[derive(Debug, Clone, Copy)]
pub struct RecordLimits {
    /// Bytes of raw lines and standard error. After that only events are kept.
    pub raw_bytes: u64,
    /// Bytes of events. After that only those that say how the call ended.
    pub event_bytes: u64,
    /// The highest number that a run has had: the ledger may know of files that are not here.
    pub last_run: u32,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self { raw_bytes: 64 << 20, event_bytes: 256 << 20, last_run: 0 }
    }
}

/// Writes one run file. What has been given to it is on its way to the disk after
/// every [`flush`](Self::flush), so that a killed agentd leaves a file that ends at
/// most in the middle of a line.
#[derive(Debug)]
pub(crate) struct RunWriter {
    path: PathBuf,
    file: File,
    block: Vec<u8>,
    redactor: Redactor,
    /// What the lines of the agent, and those of its standard error, have left open.
    open: (Open, Open),
    /// The line of standard error that is not whole yet.
    half: Vec<u8>,
    started: Instant,
    raw_left: u64,
    events_left: u64,
    error: Option<io::Error>,
}

/// A line of standard error that gets this long is written before it ends.
const LONGEST_HALF: usize = 64 << 10;

/// A block is written when it gets this long, even between flushes.
const BLOCK: usize = 1 << 20;

impl RunWriter {
    /// Starts the next run file of a change.
    pub(crate) fn create(
        change: &Change,
        header: &RunHeader,
        redactor: Redactor,
        limits: RecordLimits,
    ) -> io::Result<Self> {
        let (run, file) =
            change.create_run(&header.step, limits.last_run).map_err(io::Error::other)?;
        let path = change.path().join(ChangeFile::Run(run).path().as_path());
        let mut writer = Self {
            path,
            file,
            block: Vec::new(),
            redactor,
            open: (Open::default(), Open::default()),
            half: Vec::new(),
            started: Instant::now(),
            raw_left: limits.raw_bytes,
            events_left: limits.event_bytes,
            error: None,
        };
        writer.put(&writer.redactor.header(header));
        writer.block.push(b'\n');
        writer.flush();
        match writer.error.take() {
            Some(error) => Err(error),
            None => Ok(writer),
        }
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A line that the agent printed.
    pub(crate) fn raw(&mut self, line: &str) {
        if self.raw_left == 0 {
            return;
        }
        let clean = self.redactor.clean_next(line, &mut self.open.0);
        self.limited("raw", &clean, "raw lines are no longer kept: there were too many");
    }

    /// What the agent wrote to standard error. It is kept in whole lines: half of a key would
    /// not be known for one.
    pub(crate) fn stderr(&mut self, bytes: &[u8]) {
        if self.raw_left == 0 {
            return;
        }
        self.half.extend_from_slice(bytes);
        let end = self.half.iter().rposition(|byte| matches!(byte, b'\n' | b'\r'));
        let whole = match end {
            Some(end) => end + 1,
            None if self.half.len() > LONGEST_HALF => self.half.len(),
            None => return,
        };
        let half = self.half.split_off(whole);
        let lines = std::mem::replace(&mut self.half, half);
        self.stderr_lines(&lines);
    }

    fn stderr_lines(&mut self, lines: &[u8]) {
        let text = String::from_utf8_lossy(lines);
        let clean = self.redactor.clean_next(&text, &mut self.open.1);
        self.limited("stderr", &clean, "standard error is no longer kept: there was too much");
    }

    fn limited(&mut self, key: &str, text: &str, too_much: &str) {
        if self.raw_left == 0 {
            return;
        }
        self.raw_left = self.raw_left.saturating_sub(text.len() as u64);
        if text.len() <= KEPT_BYTES {
            self.record(key, text);
        } else {
            self.record(key, &agentd_core::event::cut(text));
        }
        if self.raw_left == 0 {
            self.note(too_much);
        }
    }

    /// A decoded event.
    pub(crate) fn event(&mut self, event: &AgentEvent<'_>) {
        // The raw record is the record of a line that nobody understood.
        if matches!(event, AgentEvent::Raw { .. }) {
            return;
        }
        let bulky = matches!(
            event,
            AgentEvent::Text { .. } | AgentEvent::ToolCall { .. } | AgentEvent::ToolResult { .. }
        );
        if bulky && self.events_left == 0 {
            return;
        }
        let before = self.block.len();
        self.put_event(event);
        // Nearly always it is done with that: one look at all of its texts at once.
        if self.redactor.suspects(&self.block[before..])
            && let Some(clean) = self.redactor.redact_event(event)
        {
            self.block.truncate(before);
            self.put_event(&clean);
        }
        let size = (self.block.len() - before) as u64;
        if bulky && self.events_left > 0 {
            self.events_left = self.events_left.saturating_sub(size);
            if self.events_left == 0 {
                self.note("texts and tools are no longer kept: there were too many");
            }
        }
        self.flush_if_long();
    }

    /// What has changed in the working tree.
    pub(crate) fn files(&mut self, edits: &[FileEdit]) {
        if !edits.is_empty() {
            self.record("files", &self.redactor.edits(edits));
        }
    }

    /// A remark of agentd's own.
    pub(crate) fn note(&mut self, text: &str) {
        self.record("note", &*self.redactor.clean(text));
    }

    /// Hands everything to the system.
    pub(crate) fn flush(&mut self) {
        if self.block.is_empty() {
            return;
        }
        if let Err(error) = self.file.write_all(&self.block) {
            self.error.get_or_insert(error);
        }
        self.block.clear();
        self.block.shrink_to(2 * BLOCK);
    }

    /// Writes the last line and makes sure that all of it is on disk. An error of
    /// any earlier write comes out here: a run that is not recorded is not done.
    pub(crate) fn end(mut self, end: &RunEnd) -> io::Result<PathBuf> {
        let half = std::mem::take(&mut self.half);
        if !half.is_empty() {
            self.stderr_lines(&half);
        }
        let mut end = end.clone();
        self.redactor.redact_outcome(&mut end.outcome);
        self.record("end", &end);
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => self.file.sync_data().map(|()| self.path),
        }
    }

    fn put_event(&mut self, event: &AgentEvent<'_>) {
        let t = self.now();
        let _ = write!(self.block, "{{\"t\":{t}");
        let brace = self.block.len();
        self.put(&*event.capped());
        // `{"t":1{"event":…}` becomes `{"t":1,"event":…}`.
        if let Some(byte) = self.block.get_mut(brace) {
            *byte = b',';
        }
        self.block.push(b'\n');
    }

    fn record<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        let t = self.now();
        let _ = write!(self.block, "{{\"t\":{t},\"{key}\":");
        self.put(value);
        self.block.extend_from_slice(b"}\n");
        self.flush_if_long();
    }

    fn put<T: Serialize + ?Sized>(&mut self, value: &T) {
        if let Err(error) = serde_json::to_writer(&mut self.block, value) {
            self.error.get_or_insert(error.into());
        }
    }

    fn now(&self) -> u128 {
        self.started.elapsed().as_millis()
    }

    fn flush_if_long(&mut self) {
        if self.block.len() >= BLOCK {
            self.flush();
        }
    }
}

/// The longest line of a run file that is read: agentd cuts every text that it writes there.
pub const LONGEST_LINE: u64 = 8 << 20;
/// The largest run file that is read as a whole.
const LARGEST_RUN: u64 = 512 << 20;

/// Reads a run file, line by line. Lines that are cut short are passed over: the
/// last one of a call that was killed. So are lines that are too long to be agentd's.
pub fn read_run(path: &Path) -> io::Result<impl Iterator<Item = io::Result<Record>>> {
    read_records(agentd_walk::open_regular(path)?)
}

/// How a run ended, from the last line of its file; nothing where agentd was killed before it was
/// written.
pub(crate) fn last_line(mut file: File) -> io::Result<Option<RunEnd>> {
    // It holds at most one text, which was cut to what is kept.
    let length = file.metadata()?.len();
    let tail = (2 * KEPT_BYTES as u64).min(length);
    file.seek(SeekFrom::Start(length - tail))?;
    let mut bytes = Vec::new();
    file.take(tail).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(match text.lines().next_back().and_then(parse_line) {
        Some(Record::End { end, .. }) => Some(*end),
        _ => None,
    })
}

/// Reads a run file that is open, as [`read_run`] does.
pub(crate) fn read_records(file: File) -> io::Result<impl Iterator<Item = io::Result<Record>>> {
    read_some(file, |_| true)
}

/// The same, but only lines that contain some text are parsed.
pub(crate) fn read_records_with(
    file: File,
    text: &[u8],
) -> io::Result<impl Iterator<Item = io::Result<Record>>> {
    read_some(file, move |line| memchr::memmem::find(line, text).is_some())
}

fn read_some(
    file: File,
    wanted: impl Fn(&[u8]) -> bool,
) -> io::Result<impl Iterator<Item = io::Result<Record>>> {
    let length = file.metadata()?.len();
    if length > LARGEST_RUN {
        let message = format!("it has {length} bytes, and at most {LARGEST_RUN} are read");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(records(BufReader::new(file.take(LARGEST_RUN)), wanted))
}

fn records(
    mut reader: impl io::BufRead,
    wanted: impl Fn(&[u8]) -> bool,
) -> impl Iterator<Item = io::Result<Record>> {
    let mut line = Vec::new();
    std::iter::from_fn(move || {
        loop {
            line.clear();
            match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(read) if read as u64 == LONGEST_LINE && !line.ends_with(b"\n") => {
                    if let Err(error) = reader.skip_until(b'\n') {
                        return Some(Err(error));
                    }
                }
                Ok(_) if !wanted(&line) => {}
                Ok(_) => {
                    if let Some(record) = std::str::from_utf8(&line).ok().and_then(parse_line) {
                        return Some(Ok(record));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use agentd_core::agent::{AgentKind, Role};
    use agentd_core::ids::ChangeId;
    use agentd_core::outcome::AgentOutcome;
    use agentd_core::step_name::StepName;

    use super::*;
    use crate::store::Project;

    fn header() -> RunHeader {
        RunHeader {
            run: agentd_core::run_format::RUN_VERSION,
            step: StepName::Challenge,
            change: ChangeId::new("add-oauth").unwrap(),
            agent: AgentKind::Codex,
            transport: agentd_core::agent::Transport::Cli,
            role: Role::Challenger,
            attempt: 1,
            argv: vec!["codex".into()],
            env: vec!["OPENAI_API_KEY".into()],
            cwd: "/p".into(),
            prompt: "the key is very-secret-value".into(),
            started_at: "2026-11-15T20:00:00Z".into(),
            estimate_usd: Some(0.25),
        }
    }

    fn change(root: &Path) -> Change {
        let project = Project::open(root).unwrap();
        let id = ChangeId::new("add-oauth").unwrap();
        project.change(&id).or_else(|_| project.create_change(&id)).unwrap()
    }

    fn writer(root: &Path, limits: RecordLimits) -> RunWriter {
        let env = [("OPENAI_API_KEY".into(), "very-secret-value".into())];
        RunWriter::create(&change(root), &header(), Redactor::new(&env), limits).unwrap()
    }

    #[test]
    fn records_are_read_back_without_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = writer(dir.path(), RecordLimits::default());
        assert!(run.path().ends_with("0001-challenge.jsonl"));
        let event = AgentEvent::Text { text: "very-secret-value \"q\"".into(), delta: false };
        run.raw("{\"type\":\"x\"}");
        run.event(&event);
        run.event(&AgentEvent::Raw { line: "not again".into() });
        run.stderr(b"warn\n");
        let outcome = AgentOutcome { tool_calls: 3, ..AgentOutcome::default() };
        let end = RunEnd { exit_code: Some(0), signal: None, duration_ms: 5, outcome };
        let path = run.end(&end).unwrap();
        let records: Vec<Record> = read_run(&path).unwrap().map(Result::unwrap).collect();
        let [
            Record::Header(head),
            Record::Raw { .. },
            Record::Event { event, .. },
            Record::Stderr { .. },
            Record::End { end: last, .. },
        ] = &records[..]
        else {
            panic!("{records:?}")
        };
        assert_eq!(head.prompt, "the key is [redacted]");
        assert_eq!(event, &AgentEvent::Text { text: "[redacted] \"q\"".into(), delta: false });
        assert_eq!(**last, end);
        assert!(!fs::read_to_string(&path).unwrap().contains("very-secret"));
        let second = writer(dir.path(), RecordLimits::default());
        assert!(second.path().ends_with("0002-challenge.jsonl"));
    }

    #[test]
    fn a_directory_of_runs_that_is_a_link_is_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let change = change(dir.path());
        let (outside, runs) = (dir.path().join("outside"), change.path().join("runs"));
        fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, &runs).unwrap();
        let limits = RecordLimits::default();
        assert!(RunWriter::create(&change, &header(), Redactor::new(&[]), limits).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_was_cut_anywhere_is_readable() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = writer(dir.path(), RecordLimits::default());
        for n in 0..5 {
            run.event(&AgentEvent::Warning { message: format!("é{n}").into() });
        }
        run.flush();
        let whole = fs::read(run.path()).unwrap();
        let cut = dir.path().join("cut");
        let mut last = 0;
        for length in 0..=whole.len() {
            fs::write(&cut, &whole[..length]).unwrap();
            let count = read_run(&cut).unwrap().map(Result::unwrap).count();
            assert!(count >= last);
            last = count;
        }
        assert_eq!(last, 6);
    }

    #[test]
    fn the_size_is_limited_and_the_end_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut run =
            writer(dir.path(), RecordLimits { raw_bytes: 100, event_bytes: 100, last_run: 0 });
        for _ in 0..1000 {
            run.raw("0123456789");
            run.event(&AgentEvent::Text { text: "0123456789".into(), delta: true });
        }
        run.event(&AgentEvent::Finished { text: None });
        run.flush();
        let records: Vec<Record> = read_run(run.path()).unwrap().map(Result::unwrap).collect();
        let notes = records.iter().filter(|record| matches!(record, Record::Note { .. })).count();
        assert_eq!(notes, 2);
        assert!(records.len() < 30);
        assert!(matches!(
            records.last(),
            Some(Record::Event { event: AgentEvent::Finished { .. }, .. })
        ));
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let note = |text: &str| format!("{{\"t\":1,\"note\":\"{text}\"}}\n");
        let long = "x".repeat(usize::try_from(LONGEST_LINE).unwrap() + 5);
        let text = [note("one"), note(&long), note("two"), long].concat();
        let found: Vec<Record> = records(text.as_bytes(), |_| true).map(Result::unwrap).collect();
        let texts: Vec<&str> = found
            .iter()
            .map(|record| match record {
                Record::Note { text, .. } => text.as_ref(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts, ["one", "two"]);
    }

    #[test]
    fn a_run_file_that_no_memory_holds_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0001-x.jsonl");
        File::create(&path).unwrap().set_len(2 << 30).unwrap();
        let error = read_run(&path).map(|_| ()).unwrap_err();
        let text = error.to_string().replace(&dir.path().display().to_string(), "[DIR]");
        insta::assert_snapshot!(text, @"it has 2147483648 bytes, and at most 536870912 are read");
    }
}
