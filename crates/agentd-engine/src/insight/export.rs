//! A change with its runs as one archive, for a bug report, without secrets.
//!
//! The archive is a plain tar, which every system can open. Anyone who wants it small runs
//! `gzip` on it.

use std::io::{self, Write};

use agentd_core::error_kind::Kind;
use agentd_core::hash::Digest;
use agentd_core::layout::{self, ChangeFile};
use agentd_core::rel_path::RelPath;
use serde_json::json;

use crate::agents::redact::{REDACTED, Redactor, looks_secret};
use crate::explain::{ErrorReport, Explain};
use crate::store::{EntryKind, Project, ProjectDir, StoreError};

/// Why a change could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file of the change cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The archive cannot be written.
    #[error("cannot write the archive: {0}")]
    Write(#[from] io::Error),
}

impl Explain for ExportError {
    fn explain(&self) -> ErrorReport {
        ErrorReport::of(Kind::Export, self)
    }
}

/// What was put into an archive.
#[derive(Debug, Default)]
pub struct Exported {
    /// The files, by their names in the archive.
    pub files: Vec<String>,
    /// How many bytes the archive has.
    pub bytes: u64,
    /// The files in which something was redacted.
    pub redacted: Vec<String>,
    /// Files that were left out, and why.
    pub left_out: Vec<String>,
}

/// The largest file that is taken along.
const LARGEST: u64 = 512 << 20;

/// Writes the archive of a directory in the project, that of a change, whose files it
/// puts below `name`.
pub fn export(
    project: &Project,
    dir: &RelPath,
    name: &str,
    redactor: &Redactor,
    out: &mut dyn Write,
) -> Result<Exported, ExportError> {
    let mut exported = Exported::default();
    let mut manifest = Vec::new();
    let mut tar = tar::Builder::new(Counted { out, bytes: 0 });
    let mut add = |exported: &mut Exported, path: String, bytes: &[u8], redacted: bool| {
        append(&mut tar, &path, bytes)?;
        manifest.push(json!({ "path": path, "sha256": Digest::of(bytes), "redacted": redacted }));
        if redacted {
            exported.redacted.push(path.clone());
        }
        exported.files.push(path);
        Ok::<(), io::Error>(())
    };
    for path in files_below(project.dir(), dir)? {
        let inside = path.strip_prefix(dir).map_or_else(String::new, |path| path.to_string());
        let bytes = match project.dir().read_capped(&path, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) => {
                exported.left_out.push(format!("{inside}: {error}"));
                continue;
            }
        };
        let is_run = path
            .strip_prefix(dir)
            .is_some_and(|path| matches!(ChangeFile::from_path(&path), Some(ChangeFile::Run(_))));
        let clean = if is_run { redactor.redact_run(&bytes) } else { redactor.redact(&bytes) };
        let redacted = clean.is_some();
        let bytes = clean.unwrap_or(bytes);
        add(&mut exported, format!("{name}/{inside}"), &bytes, redacted)?;
    }
    if let Ok(config) = project.dir().read_to_string(&layout::config()) {
        let clean = without_settings(&redactor.redact_text(&config));
        let redacted = clean != config;
        add(&mut exported, format!("{name}/config.toml"), clean.as_bytes(), redacted)?;
    }
    let about = json!({
        "version": 1,
        "agentd": env!("CARGO_PKG_VERSION"),
        "change": name,
        "files": manifest,
        "left_out": exported.left_out,
    });
    let about = format!("{about:#}\n");
    let path = format!("{name}/export.json");
    append(&mut tar, &path, about.as_bytes())?;
    exported.files.push(path);
    let mut written = tar.into_inner()?;
    written.flush()?;
    exported.bytes = written.bytes;
    Ok(exported)
}

/// The files below a directory, by path; links and special files are none.
fn files_below(project: &ProjectDir, dir: &RelPath) -> Result<Vec<RelPath>, StoreError> {
    let mut found = Vec::new();
    let mut open = vec![dir.clone()];
    while let Some(dir) = open.pop() {
        for entry in project.list_dir(&dir)? {
            let Ok(path) = RelPath::new(&entry.name).map(|name| dir.join(&name)) else { continue };
            match entry.kind {
                EntryKind::File => found.push(path),
                EntryKind::Dir => open.push(path),
                EntryKind::Symlink | EntryKind::Other => {}
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Settings of the environment may be secrets that this process does not have: their
/// values go wherever their names say so.
fn without_settings(config: &str) -> String {
    let mut out = String::with_capacity(config.len());
    for line in config.split_inclusive('\n') {
        let mut rest = line;
        while let Some(at) = rest.find('=') {
            let name = rest[..at].trim_end().trim_end_matches('"');
            let name = name
                .rsplit(|c: char| !(c.is_alphanumeric() || c == '_'))
                .next()
                .unwrap_or_default();
            let (head, behind) = rest.split_at(at + 1);
            out.push_str(head);
            let value = behind.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
            rest = behind;
            if let Some(quote) = quote.filter(|_| looks_secret(name)) {
                let end = value[1..].find(quote).map_or(value.len(), |end| end + 2);
                out.push_str(&format!(" {quote}{REDACTED}{quote}"));
                rest = value.get(end..).unwrap_or_default();
            }
        }
        out.push_str(rest);
    }
    out
}

/// Adds a file. It has no time, so that the same change gives the same archive.
fn append<W: Write>(tar: &mut tar::Builder<W>, path: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    tar.append_data(&mut header, path, bytes)
}

/// Counts what is written through it.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_look_secret_lose_their_values() {
        let config = "[gemini]\nenv = { GEMINI_API_KEY = \"abc\", A = \"b\", \"X_TOKEN\"='q' }\ncommand = \"key\"\n";
        let clean = without_settings(config);
        assert_eq!(
            clean,
            "[gemini]\nenv = { GEMINI_API_KEY = \"[redacted]\", A = \"b\", \"X_TOKEN\"= '[redacted]' }\ncommand = \"key\"\n"
        );
        assert_eq!(without_settings("a = 1\n# no = \"x\n"), "a = 1\n# no = \"x\n");
    }

    #[test]
    fn long_names_are_kept() {
        let long = format!("{}/{}", "d".repeat(160), "f".repeat(140));
        let mut tar = tar::Builder::new(Vec::new());
        append(&mut tar, &long, b"text").unwrap();
        let bytes = tar.into_inner().unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.path().unwrap().to_str(), Some(long.as_str()));
    }
}
