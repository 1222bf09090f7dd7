//! How often a page reads the files of a change.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::{Viewer, project};

/// Notices every file that is opened in some directories.
struct Watch(OwnedFd);

impl Watch {
    fn new<'p>(dirs: impl IntoIterator<Item = &'p Path>) -> Self {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
        for dir in dirs {
            inotify::add_watch(&watch, dir, WatchFlags::OPEN).unwrap();
        }
        Self(watch)
    }

    /// How often each file was opened since the last time.
    fn opened(&self) -> BTreeMap<String, usize> {
        let mut buffer = vec![MaybeUninit::uninit(); 64 << 10];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut opened = BTreeMap::new();
        loop {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::ISDIR) => {}
                Ok(event) => {
                    let name = event.file_name().unwrap_or_default();
                    *opened.entry(name.to_str().unwrap().to_owned()).or_default() += 1;
                }
                Err(Errno::AGAIN) => return opened,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn page_reads_documents_at_most_twice() {
    let project = project();
    let viewer = Viewer::start(&project);
    // Answered when everything that is read at the start has been read.
    assert_eq!(viewer.get("/").status, 200);
    let change = project.path("");
    let specs = project.path("specs");
    let watch = Watch::new([change.as_path(), specs.as_path()]);
    for page in ["", "/proposal", "/specs/auth-flow", "/tasks", "/review", "/runs", "/comments"] {
        assert_eq!(viewer.get(&format!("/changes/add-oauth{page}")).status, 200);
        let opened = watch.opened();
        // Once for the page, and once to say what archiving would do, which is asked as archiving
        // asks it.
        assert!(opened.values().all(|times| *times <= 2), "{page}: {opened:?}");
        assert_eq!(opened.get("STATE.yaml"), Some(&1), "{page}: {opened:?}");
        for file in ["STATE.yaml", "proposal.md", "tasks.md", "auth-flow.md"] {
            assert!(opened.contains_key(file), "{page}: {opened:?}");
        }
    }
}
