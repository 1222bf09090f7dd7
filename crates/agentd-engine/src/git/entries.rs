//! What a repository contains: the files of commits and of the index.

use std::collections::{BTreeMap, BTreeSet};

use super::convert::{Attributes, Settings};
use super::error::GitError;
use super::object_name::ObjectKind;
use super::private::{PrivateGitDir, as_path};
use super::status::{read_commit, records};
use super::tool::StartedCall;
use super::walk::{WalkEntry, WalkEntryKind};
use super::{Git, is_hash};

/// How many objects are read at a time.
pub(super) const OBJECTS_AT_ONCE: usize = 1000;
/// The most that is read of a list of files: about five million of them.
const LONGEST_LIST: usize = 512 << 20;

/// A file in a commit or in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) mode: String,
    pub(super) hash: String,
}

impl Entry {
    pub(super) fn is_file(&self) -> bool {
        self.mode.starts_with("100")
    }

    pub(super) fn is_repository(&self) -> bool {
        self.mode == "160000"
    }
}

pub(super) type Entries = BTreeMap<Vec<u8>, Entry>;

/// What is known about the repository.
pub(super) struct Repository {
    pub(super) base: Entries,
    /// The trees that `base` was read from.
    trees: BTreeSet<String>,
    /// What was committed since; none where nothing was.
    pub(super) head: Option<Entries>,
    pub(super) index: Entries,
    /// What the index says is not checked out.
    pub(super) skipped: BTreeSet<Vec<u8>>,
    pub(super) settings: Settings,
}

impl Repository {
    pub(super) fn is_tracked(&self, path: &[u8]) -> bool {
        self.lists().any(|entries| entries.contains_key(path))
    }

    pub(super) fn has_tracked(&self, dir: &[u8]) -> bool {
        let first = [dir, b"/"].concat();
        let starts = |entries: &Entries| {
            let next = entries.range(first.clone()..).next();
            next.is_some_and(|(path, _)| path.starts_with(&first))
        };
        self.lists().any(starts)
    }

    /// Checks that the files of the commit are those that its hash means.
    pub(super) fn check_trees(&self, private: &PrivateGitDir<'_>) -> Result<(), GitError> {
        let trees: Vec<_> = self.trees.iter().map(|tree| (ObjectKind::Tree, &**tree)).collect();
        for some in trees.chunks(OBJECTS_AT_ONCE) {
            private.objects(some)?;
        }
        Ok(())
    }

    pub(super) fn lists(&self) -> impl Iterator<Item = &Entries> {
        [&self.base, &self.index].into_iter().chain(&self.head)
    }
}

impl Git {
    /// Asks what does not depend on the commit, to be read later by [`Git::repository`].
    pub(super) fn ask_repository(&self) -> Result<RepositoryAnswers<'_>, GitError> {
        let files = self.tool.call(&self.top, "ls-files").args(["-v", "-s", "-z"]);
        let settings = self.tool.call(&self.top, "config").args(["--list", "-z", "--includes"]);
        Ok(RepositoryAnswers {
            head: self.commit_call("HEAD").begin()?,
            files: files.at_most(LONGEST_LIST).begin()?,
            settings: settings.begin()?,
        })
    }

    /// Reads it, and makes the index of `private` that of the commit. Whether all of it matches the hash
    /// of the commit is known after [`Repository::check_trees`].
    pub(super) fn repository(
        &self,
        private: &PrivateGitDir<'_>,
        base: &str,
        answers: RepositoryAnswers<'_>,
    ) -> Result<Repository, GitError> {
        let base_files = list(private, base)?;
        // With the trees in it, the index need not be compared with each of them again.
        let indexed = private.call("read-tree").args([base]).begin()?;
        let commit = private.objects(&[(ObjectKind::Commit, base)])?.pop().unwrap_or_default();
        let commit = String::from_utf8_lossy(&commit).into_owned();
        let tree = commit.strip_prefix("tree ").and_then(|rest| rest.lines().next());
        let tree = tree.filter(|tree| is_hash(tree)).unwrap_or_default().to_owned();
        let head = read_commit(&answers.head.ask()?).filter(|head| head != base);
        let head_files = head.map(|head| list(private, &head)).transpose()?;
        let (base_entries, trees) = read_list(&base_files.run()?.stdout);
        // What is not compared may say what it likes.
        let trees = trees.into_iter().filter(|(path, _)| self.leads_to_ours(path));
        let trees = trees.map(|(_, hash)| hash).chain([tree]).collect();
        let head = head_files.map(|files| Ok::<_, GitError>(read_list(&files.run()?.stdout).0));
        let (index, skipped) = read_index(&answers.files.run()?.stdout);
        let settings = Settings::read(&answers.settings.run()?.stdout);
        indexed.run()?;
        let (base, head) = (base_entries, head.transpose()?);
        Ok(Repository { base, trees, head, index, skipped, settings })
    }

    /// Whether a directory is in the project or above it, and does not belong to agentd's changes.
    pub(super) fn leads_to_ours(&self, dir: &[u8]) -> bool {
        self.is_ours(dir) || self.prefix.starts_with(as_path(dir))
    }
}

/// Questions about a repository that git answers meanwhile.
pub(super) struct RepositoryAnswers<'g> {
    head: StartedCall<'g>,
    files: StartedCall<'g>,
    settings: StartedCall<'g>,
}

/// Files that go through a filter, and which of them are modified according to the user's index.
pub(super) struct FilteredFiles {
    modified: BTreeSet<Vec<u8>>,
    index: BTreeMap<Vec<u8>, String>,
}

impl FilteredFiles {
    pub(super) fn ask(
        git: &Git,
        repository: &Repository,
        attributes: &Attributes,
    ) -> Result<Self, GitError> {
        let mut believed = Self { modified: BTreeSet::new(), index: BTreeMap::new() };
        let converted = attributes.converted(&repository.settings);
        if converted.is_empty() {
            return Ok(believed);
        }
        for path in converted {
            let entry = repository.index.get(path);
            believed.index.extend(entry.map(|entry| (path.to_vec(), entry.hash.clone())));
        }
        let call = git.tool.call(&git.top, "ls-files").args(["-m", "-z"]);
        let output = repository.settings.without_filters(call).run()?;
        believed.modified.extend(records(&output.stdout).map(<[u8]>::to_vec));
        Ok(believed)
    }

    pub(super) fn holds(&self, path: &[u8], hash: &str) -> bool {
        self.index.get(path).is_some_and(|known| known == hash) && !self.modified.contains(path)
    }
}

fn list<'c>(private: &'c PrivateGitDir<'_>, commit: &str) -> Result<StartedCall<'c>, GitError> {
    let call = private.call("ls-tree").args(["-r", "-t", "-z", "--full-tree", commit]);
    call.at_most(LONGEST_LIST).begin()
}

/// Reads `git ls-tree -r -t -z`: files, and the paths and hashes of directories.
fn read_list(bytes: &[u8]) -> (Entries, Vec<(Vec<u8>, String)>) {
    let (mut entries, mut trees) = (Entries::new(), Vec::new());
    for record in records(bytes) {
        let Some((head, path)) = split(record) else { continue };
        let mut fields = head.split(' ').map(str::to_owned);
        let (Some(mode), Some(kind), Some(hash)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if kind == "tree" {
            trees.push((path.to_vec(), hash));
        } else {
            entries.insert(path.to_vec(), Entry { mode, hash });
        }
    }
    (entries, trees)
}

/// Reads `git ls-files -v -s -z`: the files, and those that are not checked out.
fn read_index(bytes: &[u8]) -> (Entries, BTreeSet<Vec<u8>>) {
    let (mut entries, mut skipped) = (Entries::new(), BTreeSet::new());
    for record in records(bytes) {
        let Some((head, path)) = split(record) else { continue };
        let mut fields = head.split(' ').map(str::to_owned);
        let (Some(tag), Some(mode), Some(hash)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if tag.eq_ignore_ascii_case("s") {
            skipped.insert(path.to_vec());
        }
        entries.insert(path.to_vec(), Entry { mode, hash });
    }
    (entries, skipped)
}

fn split(record: &[u8]) -> Option<(&str, &[u8])> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    Some((std::str::from_utf8(&record[..tab]).ok()?, &record[tab + 1..]))
}

/// Asks for the sizes of files in the commit.
pub(super) fn ask_sizes<'c>(
    private: &'c PrivateGitDir<'_>,
    files: &[(&WalkEntry, &Entry)],
) -> Result<StartedCall<'c>, GitError> {
    let input: String = files.iter().map(|(_, entry)| format!("{}\n", entry.hash)).collect();
    private.call("cat-file").args(["--batch-check"]).input(input.into_bytes()).begin()
}

/// Reads the answer.
pub(super) fn read_sizes(
    output: &str,
    files: &[(&WalkEntry, &Entry)],
) -> Result<Vec<u64>, GitError> {
    let sizes: Vec<u64> = output
        .lines()
        .map(|line| line.rsplit(' ').next().and_then(|size| size.parse().ok()))
        .zip(files)
        .map(|(size, (_, entry))| {
            size.ok_or_else(|| GitError::Damaged { object: entry.hash.clone() })
        })
        .collect::<Result<_, _>>()?;
    if sizes.len() == files.len() {
        return Ok(sizes);
    }
    let what = "git cat-file".to_owned();
    Err(GitError::Failed { what, code: 0, output: "it did not answer for each object".to_owned() })
}

/// The mode of a file on the disk.
pub(super) fn mode(found: &WalkEntry) -> &'static str {
    match found.kind {
        WalkEntryKind::File { executable: true } => "100755",
        WalkEntryKind::File { executable: false } => "100644",
        WalkEntryKind::Link => "120000",
    }
}

/// Its mode, taken from the commit if the kind is the same. Some file systems have no modes.
pub(super) fn known_mode(found: &WalkEntry, entry: &Entry, file_mode: bool) -> &'static str {
    match (&*entry.mode, found.kind) {
        ("100755", WalkEntryKind::File { .. }) if !file_mode => "100755",
        (_, WalkEntryKind::File { .. }) if !file_mode => "100644",
        _ => mode(found),
    }
}
