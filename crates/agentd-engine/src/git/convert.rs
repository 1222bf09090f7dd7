//! Files that git stores in another form than on the disk: with other line endings, as a
//! pointer, or through a filter. Filters are programs, and are not run for a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use agentd_core::hash::Digest;

use super::error::GitError;
use super::private::PrivateGitDir;
use super::status::records;
use super::tool::Call;
use crate::agents::work_tree::digest_of;

/// How much of a file git reads to decide whether it is binary.
const SAMPLE: usize = 8000;

/// The beginning of a Git LFS pointer.
const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n";

/// The attributes that change how a file is stored.
const ASKED: [&str; 5] = ["text", "eol", "filter", "working-tree-encoding", "ident"];

/// The settings for how files are stored.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// Whether files on this disk can be executable.
    pub(super) file_mode: bool,
    /// Whether parts of the repository are not checked out.
    pub(super) sparse: bool,
    /// Whether line endings are converted to LF, unless an attribute says otherwise.
    line_ends: bool,
    /// The configured filters.
    filters: BTreeSet<String>,
}

impl Settings {
    /// Reads `git config --list -z`.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut settings = Self { file_mode: true, ..Self::default() };
        for record in records(bytes) {
            let record = String::from_utf8_lossy(record);
            // A key without a value is true.
            let (key, value) = record.split_once('\n').unwrap_or((&record, "true"));
            let on = ["true", "yes", "on", "1"].iter().any(|on| value.eq_ignore_ascii_case(on));
            match key {
                "core.filemode" => settings.file_mode = on,
                "core.sparsecheckout" => settings.sparse = on,
                "core.autocrlf" => settings.line_ends = on || value.eq_ignore_ascii_case("input"),
                _ => {
                    let name = key.strip_prefix("filter.").and_then(|key| key.rsplit_once('.'));
                    settings.filters.extend(name.map(|(name, _)| name.to_owned()));
                }
            }
        }
        settings
    }

    /// A call in which no filter is run.
    pub(super) fn without_filters<'t>(&self, mut call: Call<'t>) -> Call<'t> {
        let mut count = 0;
        for name in &self.filters {
            for (key, value) in [("clean", ""), ("process", ""), ("required", "false")] {
                call = call
                    .env(format!("GIT_CONFIG_KEY_{count}"), format!("filter.{name}.{key}"))
                    .env(format!("GIT_CONFIG_VALUE_{count}"), value);
                count += 1;
            }
        }
        call.env("GIT_CONFIG_COUNT", count.to_string())
    }
}

/// The attributes that the commit gives to files.
pub(super) struct Attributes(BTreeMap<Vec<u8>, BTreeMap<String, String>>);

/// Those of one file.
pub(super) struct FileAttributes<'a>(Option<&'a BTreeMap<String, String>>);

impl Attributes {
    /// Asks git, by the index of the commit.
    pub(super) fn ask<'p>(
        private: &PrivateGitDir<'_>,
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> Result<Self, GitError> {
        let mut input = Vec::new();
        for path in paths {
            input.extend_from_slice(path);
            input.push(0);
        }
        let call = private.call("check-attr").args(["--cached", "-z", "--stdin"]).args(ASKED);
        let output = call.input(input).run()?;
        let mut given: BTreeMap<Vec<u8>, BTreeMap<String, String>> = BTreeMap::new();
        let mut fields = output.stdout.split(|byte| *byte == 0);
        while let (Some(path), Some(name), Some(value)) =
            (fields.next(), fields.next(), fields.next())
        {
            if value == b"unspecified" {
                continue;
            }
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            given.entry(path.to_vec()).or_default().insert(text(name), text(value));
        }
        Ok(Self(given))
    }

    pub(super) fn of(&self, path: &[u8]) -> FileAttributes<'_> {
        FileAttributes(self.0.get(path))
    }

    /// The files that only a program could compare.
    pub(super) fn converted(&self, settings: &Settings) -> Vec<&[u8]> {
        let is = |path: &&[u8]| self.of(path).converter(settings).is_some();
        self.0.keys().map(Vec::as_slice).filter(is).collect()
    }
}

impl FileAttributes<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let value = self.0?.get(name)?;
        Some(value)
    }

    fn is_pointer(&self) -> bool {
        self.get("filter") == Some("lfs")
    }

    /// The filter that the file goes through before it is stored.
    fn converter(&self, settings: &Settings) -> Option<String> {
        if let Some(filter) = self.get("filter").filter(|name| settings.filters.contains(*name)) {
            return Some(filter.to_owned());
        }
        let is_set = |name: &&str| self.get(name).is_some_and(|value| value != "unset");
        ["working-tree-encoding", "ident"].into_iter().find(is_set).map(str::to_owned)
    }

    /// Whether line endings are converted to LF.
    fn unix_line_ends(&self, settings: &Settings) -> bool {
        match self.get("text") {
            Some("unset") => false,
            Some(_) => true,
            None => self.get("eol").is_some() || settings.line_ends,
        }
    }
}

/// What a file is compared as.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ComparedAs {
    /// It is what the commit has.
    Same,
    AsItIs,
    /// What git would store of it.
    Content(Vec<u8>),
    /// Only this filter could decide.
    Filtered(String),
}

/// What a file is compared as if its bytes differ from those in the commit. `before` is the
/// content in the commit, unless it is too large.
pub(super) fn side(
    settings: &Settings,
    given: &FileAttributes<'_>,
    place: &Path,
    before: Option<&[u8]>,
) -> ComparedAs {
    if given.is_pointer()
        && let Some(pointed) = before.and_then(pointed_to)
        && let Ok((digest, size)) = File::open(place).and_then(digest_of)
    {
        if digest == pointed {
            return ComparedAs::Same;
        }
        return ComparedAs::Content(format!("{POINTER}oid {digest}\nsize {size}\n").into_bytes());
    }
    if let Some(filter) = given.converter(settings) {
        return ComparedAs::Filtered(filter);
    }
    let Some(before) = before.filter(|_| given.unix_line_ends(settings)) else {
        return ComparedAs::AsItIs;
    };
    let has_windows_ends = |bytes: &[u8]| memchr::memmem::find(bytes, b"\r\n").is_some();
    let limit = 2 * before.len() as u64 + (16 << 20);
    let now = read(place, limit).filter(|now| has_windows_ends(now) && !is_binary(now));
    let Some(now) = now.filter(|_| !has_windows_ends(before)) else { return ComparedAs::AsItIs };
    let mut unix = Vec::with_capacity(now.len());
    for (at, &byte) in now.iter().enumerate() {
        if byte != b'\r' || now.get(at + 1) != Some(&b'\n') {
            unix.push(byte);
        }
    }
    if unix == before { ComparedAs::Same } else { ComparedAs::Content(unix) }
}

/// The digest in a Git LFS pointer.
fn pointed_to(content: &[u8]) -> Option<Digest> {
    let text = std::str::from_utf8(content).ok()?.strip_prefix(POINTER)?;
    text.lines().find_map(|line| line.strip_prefix("oid ")?.parse().ok())
}

/// How a changed file is to be shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ShowAs {
    /// As git decides.
    AsGitDoes,
    /// As text: a NUL in it would make git hide it.
    Text,
    /// Not at all; its size.
    Binary(u64),
}

/// How a changed file is shown, by its content. One that was text stays text, and so does
/// everything that can be read as text.
pub(super) fn look(place: &Path, before: Option<&[u8]>) -> ShowAs {
    let mut sample = vec![0; SAMPLE];
    let Ok(mut file) = File::open(place) else { return ShowAs::AsGitDoes };
    let mut length = 0;
    while let Ok(read @ 1..) = file.read(&mut sample[length..]) {
        length += read;
    }
    sample.truncate(length);
    let was_binary = before.is_some_and(is_binary);
    if !is_binary(&sample) && !was_binary {
        return ShowAs::AsGitDoes;
    }
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    let is_text = || {
        let now = read(place, 16 << 20);
        now.is_some_and(|now| std::str::from_utf8(&now).is_ok())
    };
    if (before.is_some() && !was_binary) || is_text() { ShowAs::Text } else { ShowAs::Binary(size) }
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(SAMPLE)].contains(&0)
}

fn read(place: &Path, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(place).ok()?.take(limit + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= limit).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        let bytes = b"core.autocrlf\ninput\0core.filemode\nfalse\0filter.a.b.clean\nx\0\
            core.sparsecheckout\0filter.lfs.process\ny\0";
        let settings = Settings::read(bytes);
        assert!(settings.line_ends && !settings.file_mode && settings.sparse);
        assert_eq!(settings.filters.iter().collect::<Vec<_>>(), ["a.b", "lfs"]);
        assert!(Settings::read(b"").file_mode);
    }

    #[test]
    fn readable_bytes_are_shown_as_text() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x");
        for (before, now, expected) in [
            (None, &b"text"[..], ShowAs::AsGitDoes),
            (None, b"te\0xt", ShowAs::Text),
            (None, b"\0\xff", ShowAs::Binary(2)),
            (Some(&b"text"[..]), b"\0\xff", ShowAs::Text),
            (Some(b"\0\xff"), b"\0\xfe\xff", ShowAs::Binary(3)),
            (Some(b"\0\xff"), b"now text", ShowAs::Text),
        ] {
            std::fs::write(&file, now).unwrap();
            assert_eq!(look(&file, before), expected, "{before:?} {now:?}");
        }
    }
}
