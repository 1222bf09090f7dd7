//! What the work on a change has changed, against the commit from which it started.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Git;
use super::error::GitError;
use super::status::{os, path_line, records};

/// The most of a difference that is looked at, before it is brought to its limit.
const LOOKED_AT: usize = 32 << 20;

/// What saying that a file was shortened takes, at most.
const CUT_MARK_BYTES: usize = 64;

/// The least of a file that is worth being shown.
const LEAST_SHARE: usize = 400;

/// Against the commit itself, whatever the repository configures.
/// A submodule has settings of its own, which would be followed for a look into it.
const DIFF: [&str; 6] = [
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "-M",
    "--no-relative",
    "--ignore-submodules=dirty",
];

/// What was changed, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// A unified diff, shortened where it is too long; each file that was shortened says so.
    pub text: String,
    /// Whether something was left out of the text.
    pub truncated: bool,
    /// Every file that was changed, also those that the text leaves out.
    pub files: Vec<ChangedFile>,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path from the top of the checkout.
    pub path: String,
    /// What was done to it.
    pub change: FileChange,
    /// Lines that were added and removed; none for a binary file.
    pub lines: Option<(u64, u64)>,
}

/// What was done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// It is new.
    Added,
    /// It was changed.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed {
        /// The name that it had.
        from: String,
    },
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its hash.
    pub id: String,
    /// When it was made, RFC 3339.
    pub at: String,
    /// The first line of its message.
    pub subject: String,
    /// The rest of its message.
    pub body: String,
    /// The files that it changed, from the top of the checkout.
    pub files: Vec<String>,
}

impl Git {
    /// What was changed in the project since a commit, committed or not, files included that
    /// git does not know yet; without what belongs to agentd's changes.
    pub fn diff(&self, base: &str, limit_bytes: usize) -> Result<Diff, GitError> {
        let base = self.commit_by_hash(base)?;
        let index = self.index_with_new_files()?;
        let files = self.files(&base, &index)?;
        let said = self
            .call("diff")
            .env("GIT_INDEX_FILE", &index.0)
            .args(DIFF)
            .args([&*base, "--"])
            .args(self.everything())
            .at_most(LOOKED_AT)
            .run()?;
        let (text, shortened) = shorten(&said.text(), limit_bytes);
        Ok(Diff { text, truncated: shortened || said.cut, files })
    }

    /// The files that were changed in the project since a commit, as in [`Git::diff`].
    pub fn changed_files(&self, base: &str) -> Result<Vec<ChangedFile>, GitError> {
        let base = self.commit_by_hash(base)?;
        let index = self.index_with_new_files()?;
        self.files(&base, &index)
    }

    fn files(&self, base: &str, index: &Index) -> Result<Vec<ChangedFile>, GitError> {
        let said = self
            .call("diff")
            .env("GIT_INDEX_FILE", &index.0)
            .args(DIFF)
            .args(["--raw", "--numstat", "-z", base, "--"])
            .args(self.everything())
            .run()?;
        Ok(changed_files(&said.stdout))
    }

    /// The commits since a commit that changed the project, oldest first.
    pub fn commits_since(&self, base: &str) -> Result<Vec<Commit>, GitError> {
        let range = format!("{}..HEAD", self.commit_by_hash(base)?);
        let log = |args: [&str; 2]| {
            let fixed = ["-z", "--reverse", "--no-renames", "--no-color", "--no-show-signature"];
            self.call("log").args(fixed).args(args).args([&*range, "--", "."]).run()
        };
        let messages = log(["--no-patch", "--format=%H%n%aI%n%s%n%b"])?;
        let files = log(["--name-only", "--format=%H"])?;
        Ok(commits(&messages.text(), &files.text()))
    }

    /// A copy of the index that also knows the files that git does not know yet, so that git
    /// itself shows them as new. The index of the user stays as it is.
    fn index_with_new_files(&self) -> Result<Index, GitError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let ask = |args: &[&str]| -> Result<PathBuf, GitError> {
            let said = self.call("rev-parse").args(args).run()?;
            Ok(path_line(&said.stdout).unwrap_or_default())
        };
        let from = self.root.join(ask(&["--git-path", "index"])?);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("agentd-index-{}-{number}", std::process::id());
        let index = Index(ask(&["--absolute-git-dir"])?.join(name));
        copy(&from, &index.0).map_err(|source| GitError::Path { path: index.0.clone(), source })?;
        let unknown = self
            .call("ls-files")
            .args(["--others", "--exclude-standard", "--full-name", "-z", "--"])
            .args(self.everything())
            .run()?;
        let nothing = self.call("hash-object").args(["-t", "blob", "/dev/null"]).run()?;
        let nothing = nothing.text().trim().to_owned();
        let mut entries = Vec::new();
        // A directory is a repository of its own.
        for path in records(&unknown.stdout).filter(|path| !path.ends_with(b"/")) {
            entries.extend_from_slice(format!("100644 {nothing}\t").as_bytes());
            entries.extend_from_slice(path);
            entries.push(0);
        }
        if !entries.is_empty() {
            let update = self.tool.call(&self.top, "update-index").args(["-z", "--index-info"]);
            update.env("GIT_INDEX_FILE", &index.0).input(entries).run()?;
        }
        Ok(index)
    }
}

/// A copy of the index, gone with this.
struct Index(PathBuf);

impl Drop for Index {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Copies an index with its time, by which git knows which files it has to look at.
fn copy(from: &PathBuf, to: &PathBuf) -> std::io::Result<()> {
    let modified = match std::fs::metadata(from) {
        Ok(metadata) => metadata.modified()?,
        // Nothing was ever added.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    std::fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(modified)
}

/// Reads `git diff --raw --numstat -z`.
fn changed_files(bytes: &[u8]) -> Vec<ChangedFile> {
    let text = |bytes: &[u8]| os(bytes).to_string_lossy().into_owned();
    let mut files: Vec<ChangedFile> = Vec::new();
    let mut records = records(bytes);
    while let Some(record) = records.next() {
        if record.starts_with(b":") {
            let status = record.rsplit(|byte| *byte == b' ').next().and_then(<[u8]>::first);
            let Some(path) = records.next().map(text) else { break };
            let (path, change) = match status {
                Some(b'A') => (path, FileChange::Added),
                Some(b'D') => (path, FileChange::Deleted),
                Some(b'R') => match records.next().map(text) {
                    Some(to) => (to, FileChange::Renamed { from: path }),
                    None => break,
                },
                _ => (path, FileChange::Modified),
            };
            files.push(ChangedFile { path, change, lines: None });
            continue;
        }
        let mut fields = record.splitn(3, |byte| *byte == b'\t').map(text);
        let (Some(added), Some(removed)) = (fields.next(), fields.next()) else { continue };
        let path = match fields.next().filter(|path| !path.is_empty()) {
            Some(path) => Some(path),
            // A renamed file: its two names come by themselves.
            None => records.next().and_then(|_| records.next()).map(text),
        };
        if let Some(file) = files.iter_mut().find(|file| Some(&file.path) == path.as_ref()) {
            file.lines = added.parse().ok().zip(removed.parse().ok());
        }
    }
    files
}

/// Reads the two forms of `git log -z` above. Neither a message nor a name can hold a NUL,
/// and no name in a commit can be the hash of a later one.
fn commits(messages: &str, files: &str) -> Vec<Commit> {
    let read = |record: &str| {
        let mut lines = record.splitn(4, '\n').map(str::to_owned);
        let (id, at, subject) = (lines.next()?, lines.next()?, lines.next()?);
        let body = lines.next().unwrap_or_default().trim().to_owned();
        super::is_hash(&id).then_some(Commit { id, at, subject, body, files: Vec::new() })
    };
    let mut commits: Vec<Commit> = messages.split('\0').filter_map(read).collect();
    let mut seen = 0;
    for name in files.split('\0').filter(|name| !name.is_empty()) {
        if commits.get(seen).is_some_and(|next| next.id == name.trim_start_matches('\n')) {
            seen += 1;
        } else if let Some(commit) = seen.checked_sub(1).and_then(|last| commits.get_mut(last)) {
            // The first name has a line end in front of it.
            let first = commit.files.is_empty();
            let name = if first { name.strip_prefix('\n').unwrap_or(name) } else { name };
            commit.files.push(name.to_owned());
        }
    }
    commits
}

/// Brings a diff to a size. Small files stay whole and large ones share what is left, so that
/// a lock file does not push everything else out.
fn shorten(text: &str, limit: usize) -> (String, bool) {
    if text.len() <= limit {
        return (text.to_owned(), false);
    }
    let mut files: Vec<&str> = Vec::new();
    let mut rest = text;
    // Every line of content has a mark in front, so that only a header starts so.
    while let Some(at) = rest.get(1..).and_then(|behind| behind.find("\ndiff --git ")) {
        let (file, behind) = rest.split_at(at + 2);
        files.push(file);
        rest = behind;
    }
    files.push(rest);
    // A share of which nothing could be read helps nobody: then some files get nothing, those
    // first that are new, since what they break is seen elsewhere.
    let scarce = limit / files.len() < LEAST_SHARE;
    let is_new = |file: &str| scarce && file.contains("\nnew file mode ");
    let mut by_size: Vec<usize> = (0..files.len()).collect();
    by_size.sort_by_cached_key(|&i| (is_new(files[i]), files[i].len()));
    let mut shares = vec![0; files.len()];
    let mut left = limit;
    for (taken, &i) in by_size.iter().enumerate() {
        let fair = (left / (files.len() - taken)).max(LEAST_SHARE).min(left);
        shares[i] = files[i].len().min(fair);
        left -= shares[i];
    }
    let mut short = String::new();
    for (file, share) in files.into_iter().zip(shares) {
        push_shortened(&mut short, file, share);
    }
    (short, true)
}

fn push_shortened(out: &mut String, file: &str, share: usize) {
    if file.len() <= share {
        out.push_str(file);
        return;
    }
    // A share that is too small for the mark gets nothing.
    let Some(room) = share.checked_sub(CUT_MARK_BYTES) else { return };
    let head = agentd_core::outcome::head(file, room);
    let whole = head.rfind('\n').map_or(0, |at| at + 1);
    let dropped = file[whole..].lines().count();
    out.push_str(&file[..whole]);
    out.push_str(&format!("[agentd: cut, lines of this file left out: {dropped}]\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_does_not_push_out_small_ones() {
        let file = |name: &str, lines: usize| {
            format!("diff --git a/{name} b/{name}\n@@ -0,0 +1 @@\n{}", "+x\n".repeat(lines))
        };
        let text = [file("Cargo.lock", 10_000), file("src/a.rs", 10), file("z", 2)].concat();
        assert_eq!(shorten(&text, text.len()), (text.clone(), false));
        let (short, cut) = shorten(&text, 2000);
        assert!(cut && short.len() <= 2000 && short.len() > 1800, "{}", short.len());
        assert!(short.ends_with(&[file("src/a.rs", 10), file("z", 2)].concat()), "{short}");
        assert_eq!(short.matches("[agentd: cut, lines of this file left out: ").count(), 1);
        // Many files: some are left out, and those that were there before are not.
        let new =
            |i: usize| file(&format!("new-{i}"), 20).replace("\n@@", "\nnew file mode 100644\n@@");
        let many: String = (0..300).map(new).chain([file("zz", 40)]).collect();
        let (short, cut) = shorten(&many, 4000);
        assert!(cut && short.len() <= 4000 && short.len() > 3500, "{}", short.len());
        assert!(short.ends_with(&file("zz", 40)) && short.starts_with(&new(0)), "{short}");
        for limit in 0..400 {
            assert!(shorten(&text, limit).0.len() <= limit, "{limit}");
        }
        // Content cannot look like the header of a file.
        let sly = format!("diff --git a/x b/x\n{}", "+\n+diff --git a/y b/y\n".repeat(200));
        assert_eq!(shorten(&sly, 1000).0.matches("[agentd: cut").count(), 1);
    }

    #[test]
    fn files_are_read_with_their_lines() {
        let bytes = b":100644 100644 1 2 M\0a\0:100644 100644 1 2 R090\0old\0new\0\
            :000000 100644 0 2 A\0b in\0:100644 000000 1 0 D\0gone\0\
            1\t2\ta\x003\t4\t\0old\0new\0-\t-\tb in\x000\t7\tgone\0";
        let file = |path: &str, change, lines| ChangedFile { path: path.into(), change, lines };
        let expected = [
            file("a", FileChange::Modified, Some((1, 2))),
            file("new", FileChange::Renamed { from: "old".into() }, Some((3, 4))),
            file("b in", FileChange::Added, None),
            file("gone", FileChange::Deleted, Some((0, 7))),
        ];
        assert_eq!(changed_files(bytes), expected);
        assert_eq!(changed_files(b":100644 100644 1 2 R\0only"), []);
    }
}
