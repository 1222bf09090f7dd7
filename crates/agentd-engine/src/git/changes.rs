//! What was changed since the commit from which the work on a change started.

use super::Git;
use super::compare::Comparison;
use super::error::GitError;
use super::seen::Seen;
use super::shorten::shorten;
use super::status::{os, records};

/// The most of a diff that is read before it is shortened.
const LOOKED_AT: usize = 32 << 20;

/// How two lists of files are compared.
const DIFF: [&str; 7] =
    ["--cached", "--no-ext-diff", "--no-textconv", "--no-color", "-M", "--no-relative", "-r"];

/// What was changed, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// A unified diff, shortened where it is too long; each file that was shortened says so.
    pub text: String,
    /// Whether something was left out of the text.
    pub truncated: bool,
    /// Every file that was changed, also those that the text leaves out.
    pub files: Vec<ChangedFile>,
    /// What is in the working tree, or was committed, and is not in the text.
    pub left_out: Vec<OmittedFile>,
}

/// Something that a diff does not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedFile {
    /// Its path from the top of the checkout; a directory that stands for several files ends
    /// in `/`.
    pub path: String,
    /// Why it is not shown.
    pub why: OmitReason,
    /// How many files it stands for.
    pub files: u64,
    /// How large it is, in bytes, where that is known.
    pub size: Option<u64>,
}

/// Why something is not in a diff.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum OmitReason {
    /// It was committed, and the working tree has what was there before.
    OnlyCommitted,
    /// It is ignored, by a rule that is newer than the commit to compare with.
    IgnoredSince,
    /// It goes through a filter, which is a program and is not run; according to git it is
    /// unchanged.
    Filtered {
        /// The name of the filter.
        filter: String,
    },
    /// It is a repository of its own.
    Repository,
    /// It is neither a file nor a directory nor a link.
    Special,
    /// It cannot be read.
    Unreadable,
    /// There are more new files than are shown.
    TooMany,
    /// It is too large.
    TooLarge,
    /// It is not text.
    Binary,
    /// The sparse checkout of the user leaves it out.
    NotCheckedOut,
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
    /// git does not know yet; without what belongs to agentd's changes. The files on the disk
    /// are compared, whatever the index says about them.
    pub fn diff(&self, base: &str, limit_bytes: usize) -> Result<Diff, GitError> {
        Ok(self.diff_of(self.compare(base)?, limit_bytes)?.0)
    }

    /// The same, and what it was made from: as long as that is as it was, the diff is the same.
    pub(crate) fn diff_to_keep(
        &self,
        base: &str,
        limit_bytes: usize,
    ) -> Result<(Diff, Seen), GitError> {
        let mut settings = Seen::begin();
        let listed = self.list_settings().begin()?;
        let (diff, mut seen) = self.diff_of(self.compare(base)?, limit_bytes)?;
        // What has changed meanwhile is too new to be kept.
        self.see_settings(&listed.run()?.stdout, &mut settings);
        seen.and(settings);
        Ok((diff, seen))
    }

    fn diff_of(
        &self,
        compared: Comparison<'_>,
        limit_bytes: usize,
    ) -> Result<(Diff, Seen), GitError> {
        let text = compared.private.call("diff-index").args(DIFF).args(["-p", &*compared.base]);
        let text = text.at_most(LOOKED_AT).begin()?;
        let files = files(&compared)?;
        let output = text.run()?;
        // A NUL is not text, and would end a prompt that is passed as an argument.
        let (text, shortened) = shorten(&output.text().replace('\0', "\u{2400}"), limit_bytes);
        let truncated = shortened || output.cut;
        Ok((Diff { text, truncated, files, left_out: compared.left_out }, compared.seen))
    }

    /// The files that were changed in the project since a commit, as in [`Git::diff`].
    pub fn changed_files(&self, base: &str) -> Result<Vec<ChangedFile>, GitError> {
        files(&self.compare(base)?)
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
}

fn files(compared: &Comparison<'_>) -> Result<Vec<ChangedFile>, GitError> {
    let call = compared.private.call("diff-index").args(DIFF);
    let output = call.args(["--raw", "--numstat", "-z", &*compared.base]).run()?;
    let mut files = changed_files(&output.stdout);
    files.extend_from_slice(&compared.unseen);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
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
            // A renamed file: its two names follow as records of their own.
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

#[cfg(test)]
mod tests {
    use super::*;

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
