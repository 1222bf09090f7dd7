//! Comparing the files on the disk with a commit, in an index of our own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::panic;
use std::path::{Path, PathBuf};
use std::thread;

use agentd_core::layout;

use super::changes::{ChangedFile, FileChange, OmitReason, OmittedFile};
use super::convert::{self, Attributes, ComparedAs};
use super::entries::{
    Entries, Entry, FilteredFiles, OBJECTS_AT_ONCE, Repository, ask_sizes, known_mode, mode,
    read_sizes,
};
use super::error::GitError;
use super::object_name::{ObjectFormat, ObjectKind};
use super::private::{PrivateGitDir, as_path};
use super::seen::Seen;
use super::walk::{self, WalkEntry, WalkEntryKind, WalkInput, WalkResult};
use super::{Git, is_hash};
use crate::store::map_parallel;

/// The largest file that git does not know and that is shown.
const LARGEST_NEW: u64 = 1 << 20;
/// The largest file that is shown at all.
const LARGEST: u64 = 16 << 20;
/// How many new files are shown, and how many bytes they may have in total.
const MOST_NEW: usize = 2000;
const MOST_NEW_BYTES: u64 = 24 << 20;
/// How many files are shown that only a new rule ignores; more are build output, and only listed.
const MOST_IGNORED_SINCE: usize = 50;
/// How many bytes of objects are read at a time.
const BYTES_AT_ONCE: u64 = 24 << 20;

/// The result of a comparison: the index of `private` is what is on the disk.
pub(super) struct Comparison<'g> {
    pub(super) private: PrivateGitDir<'g>,
    pub(super) base: String,
    pub(super) left_out: Vec<OmittedFile>,
    /// Files that were changed and are not in the index.
    pub(super) unseen: Vec<ChangedFile>,
    /// What it was made from.
    pub(super) seen: Seen,
}

/// What to change in the index of the commit.
#[derive(Default)]
struct Plan {
    /// Files that are gone.
    gone: Vec<Vec<u8>>,
    /// Files by their paths: their modes, and where their content is.
    put: BTreeMap<Vec<u8>, (&'static str, PathBuf)>,
    /// Repositories inside, and their commits.
    links: Vec<(Vec<u8>, String)>,
    /// The content that files of the commit had, as far as it was read.
    before: BTreeMap<Vec<u8>, Vec<u8>>,
    left_out: Vec<OmittedFile>,
    unseen: Vec<ChangedFile>,
}

impl Plan {
    fn leave_out(&mut self, path: &[u8], why: OmitReason, size: Option<u64>) {
        self.left_out.push(OmittedFile { path: shown(path), why, files: 1, size });
    }

    fn unseen(&mut self, path: &[u8], change: FileChange) {
        self.unseen.push(ChangedFile { path: shown(path), change, lines: None });
    }
}

impl Git {
    /// Compares the project with a commit.
    pub(super) fn compare(&self, base: &str) -> Result<Comparison<'_>, GitError> {
        let mut seen_before = Seen::begin();
        seen_before.repository_of(&self.root);
        let (asked, answers) = (PrivateGitDir::ask(self)?, self.ask_repository()?);
        let base = self.commit_by_hash(base)?;
        let private = PrivateGitDir::create(self, asked)?;
        let repository = self.repository(&private, &base, answers)?;
        let (checked, walked) = thread::scope(|scope| {
            let checking = scope.spawn(|| repository.check_trees(&private));
            let walked = self.walk(&private, &repository, seen_before);
            (checking.join(), walked)
        });
        checked.unwrap_or_else(|payload| panic::resume_unwind(payload))?;
        let walked = walked?;
        let mut plan = Plan::default();
        let mut seen = BTreeSet::new();
        self.compare_known(&private, &repository, &walked, &mut plan, &mut seen)?;
        take_new(&private, self.top(), &repository, &walked, &mut plan)?;
        self.compare_repositories(&repository, &walked, &mut plan)?;
        self.find_gone(&repository, &walked, &mut plan);
        find_committed(&repository, &seen, &mut plan);
        for (paths, why) in
            [(&walked.special, OmitReason::Special), (&walked.unreadable, OmitReason::Unreadable)]
        {
            for path in paths {
                plan.leave_out(path, why.clone(), None);
            }
        }
        if walked.cut {
            let more = format!("(files beyond the first {})", walk::MOST);
            plan.leave_out(more.as_bytes(), OmitReason::TooMany, None);
        }
        write(&private, self.top(), &base, &mut plan)?;
        plan.left_out.sort_by(|a, b| (&a.why, &a.path).cmp(&(&b.why, &b.path)));
        let (left_out, unseen, seen) = (plan.left_out, plan.unseen, walked.seen);
        Ok(Comparison { private, base, left_out, unseen, seen })
    }

    fn walk(
        &self,
        private: &PrivateGitDir<'_>,
        repository: &Repository,
        seen: Seen,
    ) -> Result<WalkResult, GitError> {
        let is_rules = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(walk::RULES);
        let rules: Vec<(&Vec<u8>, &Entry)> = repository
            .base
            .iter()
            .filter(|(path, entry)| entry.is_file() && is_rules(path))
            .filter(|(path, _)| self.leads_to_ours(&path[..path.len() - walk::RULES.len()]))
            .collect();
        let mut texts = BTreeMap::new();
        for some in rules.chunks(OBJECTS_AT_ONCE) {
            let hashes: Vec<_> =
                some.iter().map(|(_, entry)| (ObjectKind::Blob, &*entry.hash)).collect();
            let read = private.objects(&hashes)?;
            texts.extend(some.iter().map(|(path, _)| (*path).clone()).zip(read));
        }
        // What agentd keeps beside the changes is ignored, even if no committed rule says so.
        let own = texts.entry(self.in_project(layout::gitignore().as_str())).or_default();
        for line in layout::GITIGNORE_LINES {
            own.extend_from_slice(format!("\n{line}\n").as_bytes());
        }
        let input = WalkInput {
            top: &self.top,
            start: self.prefix.as_os_str().as_bytes(),
            rules: texts,
            is_tracked: &|path| repository.is_tracked(path),
            has_tracked: &|path| repository.has_tracked(path),
            excluded: &|path| !self.is_ours(path),
        };
        Ok(walk::walk(&input, seen))
    }

    /// A path of the project, from the top of the checkout.
    fn in_project(&self, path: &str) -> Vec<u8> {
        self.prefix.join(path).into_os_string().as_bytes().to_vec()
    }

    /// Whether a path is in the project, and does not belong to agentd's changes.
    pub(super) fn is_ours(&self, path: &[u8]) -> bool {
        let path = as_path(path);
        path.starts_with(&self.prefix)
            && !path.starts_with(self.prefix.join(layout::changes_dir().as_path()))
    }

    /// The files that the commit has and that are on the disk.
    fn compare_known(
        &self,
        private: &PrivateGitDir<'_>,
        repository: &Repository,
        walked: &WalkResult,
        plan: &mut Plan,
        seen: &mut BTreeSet<Vec<u8>>,
    ) -> Result<(), GitError> {
        let mut files: Vec<(&WalkEntry, &Entry)> = Vec::new();
        for found in &walked.files {
            let Some(entry) = repository.base.get(&found.path) else { continue };
            if (found.kind == WalkEntryKind::Link) == (entry.mode == "120000")
                && !entry.is_repository()
            {
                files.push((found, entry));
            } else {
                let content = content_of(private, &self.top, found)?;
                plan.put.insert(found.path.clone(), (mode(found), content));
            }
        }
        let names = map_parallel(&files, |(found, _)| self.name_of(private.format(), found));
        let mut different = Vec::new();
        for ((found, entry), name) in files.into_iter().zip(names) {
            let Some(name) = name? else {
                // One that cannot be read must not stop the comparison of the others.
                plan.leave_out(&found.path, OmitReason::Unreadable, Some(found.size));
                continue;
            };
            let mode = known_mode(found, entry, repository.settings.file_mode);
            if name != entry.hash && entry.is_file() {
                different.push((found, entry));
            } else if name != entry.hash || mode != entry.mode {
                let content = content_of(private, &self.top, found)?;
                plan.put.insert(found.path.clone(), (mode, content));
            } else {
                seen.insert(found.path.clone());
            }
        }
        self.compare_contents(private, repository, &different, plan, seen)
    }

    /// The name of the object that a file on the disk would be; none for one that cannot be read.
    fn name_of(&self, format: ObjectFormat, found: &WalkEntry) -> Result<Option<String>, GitError> {
        if self.tool.cancel.as_ref().is_some_and(|cancel| cancel.reason().is_some()) {
            return Err(GitError::Interrupted { what: "reading the working tree".to_owned() });
        }
        let path = self.top.join(as_path(&found.path));
        let name = match found.kind {
            WalkEntryKind::File { .. } => format.name_of_file(&path),
            WalkEntryKind::Link => format.name_of_link(&path),
        };
        Ok(name.ok())
    }

    /// Files whose bytes differ, perhaps only because git stores them in another form.
    fn compare_contents(
        &self,
        private: &PrivateGitDir<'_>,
        repository: &Repository,
        different: &[(&WalkEntry, &Entry)],
        plan: &mut Plan,
        seen: &mut BTreeSet<Vec<u8>>,
    ) -> Result<(), GitError> {
        if different.is_empty() {
            return Ok(());
        }
        let paths = different.iter().map(|(found, _)| &*found.path);
        let sizes = ask_sizes(private, different)?;
        let attributes = Attributes::ask(private, paths)?;
        let believed = FilteredFiles::ask(self, repository, &attributes)?;
        let sizes = read_sizes(&sizes.run()?.text(), different)?;
        let mut rest: &[(&WalkEntry, &Entry)] = different;
        let mut sizes: &[u64] = &sizes;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = sizes.iter().take(OBJECTS_AT_ONCE).take_while(|size| {
                bytes += if **size > LARGEST { 0 } else { **size };
                bytes <= BYTES_AT_ONCE
            });
            let count = fits.count().max(1);
            let (some, some_sizes) = (&rest[..count], &sizes[..count]);
            (rest, sizes) = (&rest[count..], &sizes[count..]);
            let small: Vec<_> = some
                .iter()
                .zip(some_sizes)
                .filter(|(_, size)| **size <= LARGEST)
                .map(|((_, entry), _)| (ObjectKind::Blob, &*entry.hash))
                .collect();
            let mut contents = private.objects(&small)?.into_iter();
            for ((found, entry), size) in some.iter().zip(some_sizes) {
                let before = if *size <= LARGEST { contents.next() } else { None };
                let mode = known_mode(found, entry, repository.settings.file_mode);
                let place = self.top.join(as_path(&found.path));
                let of = attributes.of(&found.path);
                let is_believed = believed.holds(&found.path, &entry.hash);
                let side = convert::side(&repository.settings, &of, &place, before.as_deref());
                match side {
                    ComparedAs::Same if mode == entry.mode => {
                        seen.insert(found.path.clone());
                        continue;
                    }
                    ComparedAs::Filtered(filter) if is_believed && mode == entry.mode => {
                        let why = OmitReason::Filtered { filter };
                        plan.leave_out(&found.path, why, Some(found.size));
                        continue;
                    }
                    ComparedAs::Content(content) => {
                        plan.put.insert(found.path.clone(), (mode, private.file(&content)?));
                    }
                    ComparedAs::Same => {
                        let content = private.file(before.as_deref().unwrap_or_default())?;
                        plan.put.insert(found.path.clone(), (mode, content));
                    }
                    ComparedAs::AsItIs | ComparedAs::Filtered(_)
                        if found.size <= LARGEST && before.is_some() =>
                    {
                        plan.put.insert(found.path.clone(), (mode, as_path(&found.path)));
                    }
                    ComparedAs::AsItIs | ComparedAs::Filtered(_) => {
                        plan.leave_out(&found.path, OmitReason::TooLarge, Some(found.size));
                        plan.unseen(&found.path, FileChange::Modified);
                    }
                }
                plan.before.extend(before.map(|before| (found.path.clone(), before)));
            }
        }
        Ok(())
    }

    /// Nested repositories are not entered: they have settings of their own.
    fn compare_repositories(
        &self,
        repository: &Repository,
        walked: &WalkResult,
        plan: &mut Plan,
    ) -> Result<(), GitError> {
        for path in &walked.repositories {
            plan.leave_out(path, OmitReason::Repository, None);
            let is_link = |entries: &&Entries| entries.get(path).is_some_and(Entry::is_repository);
            if !repository.lists().any(|entries| is_link(&entries)) {
                continue;
            }
            let inner = self.top.join(as_path(path)).join(".git");
            let head = self.call("rev-parse").args(["--verify", "--quiet", "HEAD^{commit}"]);
            let output = head.env("GIT_DIR", inner).ask()?;
            let commit = output.text().trim().to_owned();
            let before = repository.base.get(path).map(|entry| &*entry.hash);
            if output.code == 0 && is_hash(&commit) && before != Some(&commit) {
                plan.links.push((path.clone(), commit));
            }
        }
        Ok(())
    }

    /// The files of the commit that are not on the disk.
    fn find_gone(&self, repository: &Repository, walked: &WalkResult, plan: &mut Plan) {
        let there: BTreeSet<&[u8]> = walked.files.iter().map(|found| &*found.path).collect();
        let not_looked_at = |path: &[u8]| {
            let lists = [&walked.unreadable, &walked.special, &walked.repositories];
            lists.into_iter().flatten().any(|dir| as_path(path).starts_with(as_path(dir)))
        };
        let mut not_checked_out: BTreeMap<&[u8], u64> = BTreeMap::new();
        for (path, entry) in &repository.base {
            if there.contains(&**path) || !self.is_ours(path) || not_looked_at(path) {
                continue;
            }
            let place = self.top.join(as_path(path));
            if entry.is_repository() && place.symlink_metadata().is_ok_and(|it| it.is_dir()) {
                continue;
            }
            if repository.settings.sparse && repository.skipped.contains(path) {
                let end =
                    path.iter().position(|byte| *byte == b'/').map_or(path.len(), |at| at + 1);
                *not_checked_out.entry(&path[..end]).or_default() += 1;
            } else {
                plan.gone.push(path.clone());
            }
        }
        for (path, files) in not_checked_out {
            let (path, why) = (shown(path), OmitReason::NotCheckedOut);
            plan.left_out.push(OmittedFile { path, why, files, size: None });
        }
    }
}

/// The files that the commit does not have.
fn take_new(
    private: &PrivateGitDir<'_>,
    top: &Path,
    repository: &Repository,
    walked: &WalkResult,
    plan: &mut Plan,
) -> Result<(), GitError> {
    let mut new: Vec<&WalkEntry> =
        walked.files.iter().filter(|found| !repository.base.contains_key(&found.path)).collect();
    let since = new.iter().filter(|found| found.ignored_since.is_some()).count();
    if since > MOST_IGNORED_SINCE {
        let mut groups: BTreeMap<&[u8], (u64, u64)> = BTreeMap::new();
        new.retain(|found| {
            let Some(by) = &found.ignored_since else { return true };
            let group = groups.entry(by).or_default();
            *group = (group.0 + 1, group.1.saturating_add(found.size));
            false
        });
        for (path, (files, size)) in groups {
            let mut path = shown(path);
            if files > 1 {
                path.push('/');
            }
            let why = OmitReason::IgnoredSince;
            plan.left_out.push(OmittedFile { path, why, files, size: Some(size) });
        }
    }
    // The small ones first: a large one must not take the place of many.
    new.sort_by_key(|found| found.size);
    let (mut count, mut bytes) = (0, 0);
    for found in new {
        let why = if found.size > LARGEST_NEW {
            OmitReason::TooLarge
        } else if count >= MOST_NEW || bytes + found.size > MOST_NEW_BYTES {
            OmitReason::TooMany
        } else if found.kind != WalkEntryKind::Link
            && fs::File::open(top.join(as_path(&found.path))).is_err()
        {
            OmitReason::Unreadable
        } else {
            (count, bytes) = (count + 1, bytes + found.size);
            let content = content_of(private, top, found)?;
            plan.put.insert(found.path.clone(), (mode(found), content));
            continue;
        };
        plan.leave_out(&found.path, why, Some(found.size));
        plan.unseen(&found.path, FileChange::Added);
    }
    Ok(())
}

/// What was committed and is not in the working tree: no diff with the working tree shows it.
fn find_committed(repository: &Repository, seen: &BTreeSet<Vec<u8>>, plan: &mut Plan) {
    let Some(head) = &repository.head else { return };
    for path in seen {
        if head.get(path) != repository.base.get(path) {
            plan.leave_out(path, OmitReason::OnlyCommitted, None);
        }
    }
    for (path, entry) in head {
        let is_new = !repository.base.contains_key(path) && !entry.is_repository();
        if is_new && !plan.put.contains_key(path) && !is_named(plan, path) {
            plan.leave_out(path, OmitReason::OnlyCommitted, None);
        }
    }
}

fn is_named(plan: &Plan, path: &[u8]) -> bool {
    let path = shown(path);
    plan.left_out.iter().any(|left_out| left_out.path == path)
}

/// Updates the index of the commit to what is on the disk.
fn write(
    private: &PrivateGitDir<'_>,
    top: &Path,
    base: &str,
    plan: &mut Plan,
) -> Result<(), GitError> {
    let (mut text, mut binary): (Vec<&[u8]>, Vec<&[u8]>) = (Vec::new(), Vec::new());
    let mut named = Vec::new();
    for (path, (mode, place)) in &plan.put {
        let before = plan.before.get(path).map(Vec::as_slice);
        if !mode.starts_with("100") {
            continue;
        }
        match convert::look(&top.join(place), before) {
            convert::ShowAs::AsGitDoes => {}
            convert::ShowAs::Text => text.push(path),
            convert::ShowAs::Binary(size) => {
                binary.push(path);
                named.push((path.clone(), size));
            }
        }
    }
    private.set_kinds(&text, &binary)?;
    for (path, size) in named {
        plan.leave_out(&path, OmitReason::Binary, Some(size));
    }
    let hashes = private.store(plan.put.values().map(|(_, place)| place.as_path()))?;
    let mut lines = Vec::new();
    let mut line = |mode: &str, hash: &str, path: &[u8]| {
        lines.extend_from_slice(format!("{mode} {hash}\t").as_bytes());
        lines.extend_from_slice(path);
        lines.push(0);
    };
    let nothing = "0".repeat(base.len());
    for path in &plan.gone {
        line("0", &nothing, path);
    }
    for ((path, (mode, _)), hash) in plan.put.iter().zip(&hashes) {
        line(mode, hash, path);
    }
    for (path, commit) in &plan.links {
        line("160000", commit, path);
    }
    if !lines.is_empty() {
        private.call("update-index").args(["-z", "--index-info"]).input(lines).run()?;
    }
    Ok(())
}

/// The path of the content that git would store for a file.
fn content_of(
    private: &PrivateGitDir<'_>,
    top: &Path,
    found: &WalkEntry,
) -> Result<PathBuf, GitError> {
    let path = as_path(&found.path);
    match found.kind {
        WalkEntryKind::File { .. } => Ok(path),
        WalkEntryKind::Link => {
            let to = fs::read_link(top.join(&path)).unwrap_or_default();
            private.file(to.as_os_str().as_bytes())
        }
    }
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
