//! Reading run files for pages: their heads, their ends, and what they say about files.

use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use agentd_core::layout::{ChangeFile, RunName};
use agentd_core::run_format::{Record, RunHeader, parse_line};
use agentd_engine::agents::redact::Redactor;
use agentd_engine::agents::run_record::LONGEST_LINE;
use agentd_engine::store::Change;
use axum::http::StatusCode;

use super::live::Position;
use super::problem::Problem;
use super::subject::Subject;
use super::transcript::Earlier;

/// How much of the end of a run file is shown.
const TAIL: u64 = 2 << 20;

/// How many bytes of earlier texts of files are kept for a page.
const MOST_EARLIER: usize = 16 << 20;

/// The first line of a run file.
pub(super) fn head_of(change: &Change, run: &RunName) -> Option<RunHeader> {
    let (file, _) = change.dir().open_file(&ChangeFile::Run(run.clone()).path()).ok()?;
    let mut line = Vec::new();
    BufReader::new(file.take(LONGEST_LINE)).read_until(b'\n', &mut line).ok()?;
    match parse_line(std::str::from_utf8(&line).ok()?)? {
        Record::Header(header) => Some(*header),
        _ => None,
    }
}

/// The end of a run file in whole lines, without secrets, and how far that goes.
pub(super) fn tail(
    change: &Change,
    run: &RunName,
    redactor: &Redactor,
) -> Result<(String, Position), Problem> {
    let path = ChangeFile::Run(run.clone()).path();
    let (mut file, length) = change.dir().open_file(&path)?;
    let mut bytes = Vec::new();
    let read = file
        .seek(SeekFrom::Start(length.saturating_sub(TAIL)))
        .and_then(|_| file.take(TAIL).read_to_end(&mut bytes));
    read.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let offset = length.saturating_sub(TAIL) + whole as u64;
    bytes.truncate(whole);
    let bytes = redactor.redact_run(&bytes).unwrap_or(bytes);
    Ok((
        String::from_utf8_lossy(&bytes).into_owned(),
        Position { run: run.number(), offset, mark: None },
    ))
}

/// What files were before a run, as far as earlier runs have their texts.
pub(super) fn earlier(subject: &Subject, run: &RunName, redactor: &Redactor) -> Earlier {
    let mut earlier = Earlier::new();
    let mut bytes = 0;
    let runs = subject.runs().unwrap_or_default();
    for name in runs.iter().filter(|name| name.number() <= run.number()).rev() {
        let records = subject.snapshot().records_with(name, "\"files\"").unwrap_or_default();
        for record in records {
            let Record::Files { files, .. } = record else { continue };
            for edit in redactor.edits(&files) {
                let (Some(after), Some(text)) = (edit.after, edit.text) else { continue };
                bytes += text.len();
                if bytes > MOST_EARLIER {
                    return earlier;
                }
                earlier.insert((edit.path, after), text);
            }
        }
    }
    earlier
}
