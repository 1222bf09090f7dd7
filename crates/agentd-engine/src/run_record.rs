//! Writing `runs/NNNN-<step>.jsonl` while a call happens, and reading it back.
//! The format is [`agentd_core::run_format`].

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use agentd_core::event::{AgentEvent, KEPT_BYTES};
use agentd_core::run_format::{FileEdit, Record, RunEnd, RunHeader, parse_line};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;

use crate::redact::Redactor;

/// How much a run file may hold, so that an agent that prints for ever does not
/// fill the disk.
#[derive(Debug, Clone, Copy)]
pub struct RecordLimits {
    /// Bytes of raw lines and standard error. After that only events are kept.
    pub raw_bytes: u64,
    /// Bytes of events. After that only those that tell how the call ended.
    pub event_bytes: u64,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self { raw_bytes: 64 << 20, event_bytes: 256 << 20 }
    }
}

/// Writes one run file. What has been given to it is on its way to the disk after
/// every [`flush`](Self::flush), so that a killed agentd leaves a file that ends at
/// most in the middle of a line.
#[derive(Debug)]
pub struct RunWriter {
    path: PathBuf,
    file: File,
    block: Vec<u8>,
    redactor: Redactor,
    started: Instant,
    raw_left: u64,
    events_left: u64,
    error: Option<io::Error>,
}

/// A block is written when it gets this long, even between flushes.
const BLOCK: usize = 1 << 20;

impl RunWriter {
    /// Starts the next file in `runs_dir`, which is made if it is not there.
    pub fn create(
        runs_dir: &Path,
        header: &RunHeader,
        redactor: Redactor,
        limits: RecordLimits,
    ) -> io::Result<Self> {
        fs::create_dir_all(runs_dir)?;
        // A link that came with the repository would lead what an agent says elsewhere.
        let dir = rustix::fs::open(
            runs_dir,
            OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let mut number = next_number(runs_dir)?;
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let (path, file) = loop {
            let name = format!("{number:04}-{}.jsonl", header.step);
            match rustix::fs::openat(&dir, &name, flags, Mode::from_raw_mode(0o666)) {
                Ok(file) => break (runs_dir.join(name), File::from(file)),
                Err(Errno::EXIST) => number += 1,
                Err(error) => return Err(error.into()),
            }
        };
        let mut writer = Self {
            path,
            file,
            block: Vec::new(),
            redactor,
            started: Instant::now(),
            raw_left: limits.raw_bytes,
            events_left: limits.event_bytes,
            error: None,
        };
        writer.put(header);
        writer.block.push(b'\n');
        writer.flush();
        match writer.error.take() {
            Some(error) => Err(error),
            None => Ok(writer),
        }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A line that the agent printed.
    pub fn raw(&mut self, line: &str) {
        self.limited("raw", line, "raw lines are no longer kept: there were too many");
    }

    /// What the agent wrote to standard error.
    pub fn stderr(&mut self, text: &str) {
        self.limited("stderr", text, "standard error is no longer kept: there was too much");
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
    pub fn event(&mut self, event: &AgentEvent<'_>) {
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
        let t = self.now();
        let _ = write!(self.block, "{{\"t\":{t}");
        let brace = self.block.len();
        self.put(&*event.capped());
        // `{"t":1{"event":…}` becomes `{"t":1,"event":…}`.
        if let Some(byte) = self.block.get_mut(brace) {
            *byte = b',';
        }
        self.block.push(b'\n');
        let size = (self.block.len() - before) as u64;
        if bulky && self.events_left > 0 {
            self.events_left = self.events_left.saturating_sub(size);
            if self.events_left == 0 {
                self.note("texts and tools are no longer kept: there were too many");
            }
        }
        self.flush_if_long();
    }

    /// What has changed in the work tree.
    pub fn files(&mut self, edits: &[FileEdit]) {
        if !edits.is_empty() {
            self.record("files", edits);
        }
    }

    /// A remark of agentd's own.
    pub fn note(&mut self, text: &str) {
        self.record("note", text);
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) {
        if self.block.is_empty() {
            return;
        }
        let redacted = self.redactor.redact(&self.block);
        let result = self.file.write_all(redacted.as_deref().unwrap_or(&self.block));
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
        self.block.clear();
        self.block.shrink_to(2 * BLOCK);
    }

    /// Writes the last line and makes sure that all of it is on disk. An error of
    /// any earlier write comes out here: a run that is not recorded is not done.
    pub fn end(mut self, end: &RunEnd) -> io::Result<PathBuf> {
        self.record("end", end);
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => self.file.sync_data().map(|()| self.path),
        }
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

/// One more than the highest number in the directory.
fn next_number(runs_dir: &Path) -> io::Result<u32> {
    let mut highest = 0;
    for entry in fs::read_dir(runs_dir)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.split('-').next());
        highest = highest.max(number.and_then(|number| number.parse().ok()).unwrap_or(0));
    }
    Ok(highest + 1)
}

/// Reads a run file, line by line. Lines that are cut short are passed over: the
/// last one of a call that was killed.
pub fn read_run(path: &Path) -> io::Result<impl Iterator<Item = io::Result<Record>>> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    Ok(std::iter::from_fn(move || {
        loop {
            line.clear();
            match reader.read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(_) => {
                    if let Some(record) = std::str::from_utf8(&line).ok().and_then(parse_line) {
                        return Some(Ok(record));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::agent::{AgentKind, Role};
    use agentd_core::outcome::AgentOutcome;

    fn header() -> RunHeader {
        RunHeader {
            run: agentd_core::run_format::RUN_VERSION,
            step: "challenge".into(),
            change: "add-oauth".into(),
            agent: AgentKind::Codex,
            role: Role::Challenger,
            attempt: 1,
            argv: vec!["codex".into()],
            env: vec!["OPENAI_API_KEY".into()],
            cwd: "/p".into(),
            prompt: "the key is very-secret-value".into(),
            started_at: "2026-11-15T20:00:00Z".into(),
        }
    }

    fn writer(dir: &Path, limits: RecordLimits) -> RunWriter {
        let env = [("OPENAI_API_KEY".into(), "very-secret-value".into())];
        RunWriter::create(dir, &header(), Redactor::new(&env), limits).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back_and_secrets_are_not_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = writer(dir.path(), RecordLimits::default());
        assert!(run.path().ends_with("0001-challenge.jsonl"));
        let event = AgentEvent::Text { text: "very-secret-value \"q\"".into(), delta: false };
        run.raw("{\"type\":\"x\"}");
        run.event(&event);
        run.event(&AgentEvent::Raw { line: "not again".into() });
        run.stderr("warn\n");
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
        let (outside, runs) = (dir.path().join("outside"), dir.path().join("runs"));
        fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, &runs).unwrap();
        let limits = RecordLimits::default();
        assert!(RunWriter::create(&runs, &header(), Redactor::new(&[]), limits).is_err());
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
        let mut run = writer(dir.path(), RecordLimits { raw_bytes: 100, event_bytes: 100 });
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
}
