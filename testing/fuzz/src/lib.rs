//! Fuzzing of agentd's parsers.
//!
//! [`TARGETS`] names every parser once. Two programs use the table: `agentd-fuzz`
//! runs anywhere, changing the corpus at random; `agentd-libfuzzer` is guided by
//! coverage. A test replays the corpus, so that what was once found stays fixed.
//!
//! Why not bolero: its 24 crates would bring the random runs, which take 100
//! lines here and know the tokens of our formats, while its coverage-guided mode
//! needs a further cargo command. Why not cargo-fuzz: it needs nightly, for an
//! address sanitizer that has nothing to find in safe code.

mod mutate;
mod targets;

pub use crate::mutate::Mutator;
pub use crate::targets::TARGETS;

use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

/// Something that reads bytes from outside and must neither panic nor hang.
#[derive(Clone, Copy)]
pub struct Target {
    /// What the command line and the corpus directory call it.
    pub name: &'static str,
    /// Reads the bytes; panics where a promise is broken.
    pub run: fn(&[u8]),
}

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// The directory of inputs to start from, one per file.
    pub fn corpus_directory(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(self.name)
    }

    /// The inputs to start from, in the order of their names; none is fine.
    pub fn corpus(&self) -> io::Result<Vec<Vec<u8>>> {
        let directory = self.corpus_directory();
        if !directory.is_dir() {
            return Ok(Vec::new());
        }
        let entries: io::Result<Vec<_>> = fs::read_dir(directory)?.collect();
        let mut paths: Vec<PathBuf> = entries?.into_iter().map(|entry| entry.path()).collect();
        paths.sort();
        paths.iter().map(fs::read).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_corpus_is_read_without_a_panic() {
        for target in TARGETS {
            for input in target.corpus().unwrap() {
                (target.run)(&input);
            }
        }
    }

    #[test]
    fn names_are_unique_and_every_corpus_has_a_target() {
        let names: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
        assert_eq!(names.len(), TARGETS.len());
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        for entry in fs::read_dir(corpus).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(names.contains(name.as_str()), "corpus/{name} belongs to no target");
        }
    }
}
