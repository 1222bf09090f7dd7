//! `read_file`.

use std::io::{Read as _, Seek as _, SeekFrom};

use agentd_core::ids::ChangeId;
use agentd_core::rel_path::RelPath;
use serde::Deserialize;
use serde_json::Value;

use super::Session;
use super::input::{self, Path};
use super::outcome::{ActionError, Refusal};
use super::schema::{JsonObject, count, optional, required, text, with_change};
use super::tool::{Answer, Tool, Toolset};
use super::visible_path::{is_secret, locate, secret};
use crate::store::StoreError;

/// How many bytes of a file are shown at once.
pub const READ_CAP: u64 = 256 * 1024;

pub(super) const TOOL: Tool = Tool {
    name: "read_file",
    purpose: "Read a text file of the project.",
    offered_to: Toolset::EVERY,
    by_hand: false,
    read_only: true,
    input: schema,
    // Models read a text better as it is than inside JSON.
    output: None,
    run: |session, arguments| Ok(shown(read_file(session, &input::read(arguments)?)?)),
};

/// A file to read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// The change.
    pub change_id: ChangeId,
    /// The file, relative to the project or to the change.
    pub path: Path,
    /// The byte to start at, for files that are longer than one answer.
    #[serde(default)]
    pub offset: Option<u64>,
}

fn schema(change: Value) -> JsonObject {
    let path = "From the project root or the change, e.g. tasks.md";
    with_change(
        change,
        vec![required("path", text(path)), optional("offset", count("Byte to start at", 0))],
    )
}

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadText {
    /// The file, from the root of the project.
    pub path: RelPath,
    /// The text.
    pub text: String,
    /// How large the file is.
    pub size: u64,
    /// Where to continue reading, if there is more.
    pub next_offset: Option<u64>,
}

/// The text of a file.
pub fn read_file(session: &Session<'_>, input: &ReadFile) -> Result<ReadText, ActionError> {
    let (dir, path) = locate(session, &input.change_id, &input.path.0)?;
    if let Some(path) = [&input.path.0, &path].into_iter().find(|path| is_secret(path)) {
        return Err(secret(path));
    }
    let (mut file, size) = dir.open_file(&path)?;
    let start = input.offset.unwrap_or(0);
    if start > size {
        return Err(Refusal::new(format!(
            "`{path}` has {size} bytes; there is nothing at offset {start}."
        ))
        .into());
    }
    let fail = |source| StoreError::Io { action: "read", path: path.clone(), source };
    file.seek(SeekFrom::Start(start)).map_err(fail)?;
    let mut bytes = Vec::new();
    file.take(READ_CAP).read_to_end(&mut bytes).map_err(fail)?;
    let behind = start + bytes.len() as u64;
    // A character that the start cuts belongs to the piece before.
    let skip =
        if start == 0 { 0 } else { bytes.iter().take(3).take_while(|b| is_inner(**b)).count() };
    let mut end = bytes.len();
    if let Err(error) = std::str::from_utf8(&bytes[skip..]) {
        let cut = error.error_len().is_none() && behind < size;
        if !cut {
            return Err(not_text(&path));
        }
        end = skip + error.valid_up_to();
    }
    let text = String::from_utf8_lossy(&bytes[skip..end]).into_owned();
    if text.contains('\0') {
        return Err(not_text(&path));
    }
    let next = start + end as u64;
    Ok(ReadText { path, text, size, next_offset: (next < size).then_some(next) })
}

fn is_inner(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

fn not_text(path: &RelPath) -> ActionError {
    Refusal::new(format!("`{path}` is a binary file, not UTF-8 text.")).into()
}

fn shown(read: ReadText) -> Answer {
    let note = read.next_offset.map(|next| {
        format!(
            "[{} continues: {next} of {} bytes were shown. Call read_file again with offset {next}.]",
            read.path, read.size
        )
    });
    Answer { value: None, words: read.text, note }
}
