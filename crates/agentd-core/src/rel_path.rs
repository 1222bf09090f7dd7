//! Paths inside a project, as a validated type.
//!
//! A [`RelPath`] says nothing about what is on disk (a symlink may still lead
//! anywhere, and the store guards against that), but its text can do no harm:
//! it is relative, has no `..`, and names files that every system a colleague
//! may use can hold. Whatever agents, documents and command lines call a path
//! goes through [`RelPath::new`] before anything else sees it.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::text::excerpt;

/// The longest name of one file or directory, in bytes: the limit of ext4, APFS and NTFS.
pub(crate) const MAX_COMPONENT_LEN: usize = 255;

/// The longest whole path, in bytes.
pub(crate) const MAX_PATH_LEN: usize = 4096;

/// Why a text is not a path inside a project.
///
/// Texts are shown cut and with control characters escaped, so that an error
/// is safe to print.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is empty; the project itself is called `.`.
    #[error("path is empty; the directory itself is `.`")]
    Empty,
    /// The path starts at a root or names a drive.
    #[error("path `{shown}` is absolute; paths are relative to the project")]
    Absolute {
        /// The text.
        shown: String,
    },
    /// A component is `..`, even where it would lead back inside.
    #[error("path `{shown}` contains `..`")]
    Parent {
        /// The text.
        shown: String,
    },
    /// A backslash, which is a separator on one system and a letter on others.
    #[error("path `{shown}` contains a backslash; separate with `/`")]
    Backslash {
        /// The text.
        shown: String,
    },
    /// A character that not every file system can hold.
    #[error("path `{shown}` contains {found:?}, which not every file system can hold")]
    BadCharacter {
        /// The text.
        shown: String,
        /// The first offending character.
        found: char,
    },
    /// A name that means a device on Windows, with or without an extension.
    #[error("path `{shown}` contains `{name}`, which is a device and not a file on Windows")]
    Reserved {
        /// The text.
        shown: String,
        /// The reserved component.
        name: String,
    },
    /// A name that Windows would silently shorten into another name.
    #[error("path `{shown}` has a name that ends in a dot or a space")]
    TrailingDotOrSpace {
        /// The text.
        shown: String,
    },
    /// One name is longer than `MAX_COMPONENT_LEN`.
    #[error("path `{shown}` has a name of {len} bytes; at most {MAX_COMPONENT_LEN} are allowed")]
    ComponentTooLong {
        /// The text.
        shown: String,
        /// The length of the name in bytes.
        len: usize,
    },
    /// The whole path is longer than `MAX_PATH_LEN`.
    #[error("path is {len} bytes long; at most {MAX_PATH_LEN} are allowed")]
    TooLong {
        /// The length in bytes.
        len: usize,
    },
}

/// A portable path relative to a project (or to a directory of it).
///
/// Kept in normal form: names joined by single `/`, without `.`; the directory
/// itself is the empty text inside and `.` when shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Box<str>);

impl RelPath {
    /// Takes the text if it is harmless. `./a//b/` and `a/b` are the same path.
    pub fn new(text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.len() > MAX_PATH_LEN {
            return Err(PathError::TooLong { len: text.len() });
        }
        if text.starts_with('/') || has_drive(text) {
            return Err(PathError::Absolute { shown: shown(text) });
        }
        let mut normal = String::with_capacity(text.len());
        for component in text.split('/') {
            if component.is_empty() || component == "." {
                continue;
            }
            check_component(text, component)?;
            if !normal.is_empty() {
                normal.push('/');
            }
            normal.push_str(component);
        }
        Ok(Self(normal.into()))
    }

    /// The directory itself.
    pub fn root() -> Self {
        Self(Box::default())
    }

    /// A path put together from validated ids and constants only.
    pub(crate) fn from_safe(text: String) -> Self {
        debug_assert_eq!(Self::new(&text).as_ref().map(|p| &*p.0), Ok(text.as_str()));
        Self(text.into())
    }

    /// The path as text, `.` for the directory itself.
    pub fn as_str(&self) -> &str {
        if self.0.is_empty() { "." } else { &self.0 }
    }

    /// The path in the form in which the standard library takes it.
    pub fn as_path(&self) -> &Path {
        Path::new(self.as_str())
    }

    /// Whether this is the directory itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The names from the outside in; none for the directory itself.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|component| !component.is_empty())
    }

    /// The last name; none for the directory itself.
    pub fn file_name(&self) -> Option<&str> {
        self.components().next_back()
    }

    /// The directory that holds this path; none for the directory itself.
    pub fn parent(&self) -> Option<Self> {
        let name = self.file_name()?;
        let end = (self.0.len() - name.len()).saturating_sub(1);
        Some(Self(self.0[..end].into()))
    }

    /// This path below `self`.
    #[must_use]
    pub fn join(&self, below: &Self) -> Self {
        if self.is_root() {
            return below.clone();
        }
        if below.is_root() {
            return self.clone();
        }
        Self(format!("{}/{}", self.0, below.0).into())
    }

    /// What is left of this path below `base`; none if it is elsewhere.
    pub fn strip_prefix(&self, base: &Self) -> Option<Self> {
        if base.is_root() {
            return Some(self.clone());
        }
        let rest = self.0.strip_prefix(&*base.0)?;
        if rest.is_empty() {
            return Some(Self::root());
        }
        rest.strip_prefix('/').map(|rest| Self(rest.into()))
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl FromStr for RelPath {
    type Err = PathError;
    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::new(text)
    }
}

impl Serialize for RelPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

fn shown(text: &str) -> String {
    let cut = excerpt(text, 80);
    if text.chars().nth(80).is_some() { cut + "…" } else { cut }
}

fn has_drive(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':'
}

fn check_component(text: &str, component: &str) -> Result<(), PathError> {
    if component == ".." {
        return Err(PathError::Parent { shown: shown(text) });
    }
    let bad = |c: &char| c.is_control() || matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*');
    if component.contains('\\') {
        return Err(PathError::Backslash { shown: shown(text) });
    }
    if let Some(found) = component.chars().find(bad) {
        return Err(PathError::BadCharacter { shown: shown(text), found });
    }
    if component.ends_with(['.', ' ']) {
        return Err(PathError::TrailingDotOrSpace { shown: shown(text) });
    }
    if component.len() > MAX_COMPONENT_LEN {
        return Err(PathError::ComponentTooLong { shown: shown(text), len: component.len() });
    }
    if is_reserved_name(component) {
        return Err(PathError::Reserved { shown: shown(text), name: component.to_owned() });
    }
    Ok(())
}

/// Whether Windows takes this file name for a device: `CON`, `nul.txt`, `Com1`, …
pub(crate) fn is_reserved_name(component: &str) -> bool {
    const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
    let stem = component.split('.').next().unwrap_or_default().trim_end_matches(' ');
    if DEVICES.iter().any(|device| device.eq_ignore_ascii_case(stem)) {
        return true;
    }
    let mut letters = stem.chars();
    let port: String = letters.by_ref().take(3).collect();
    let is_port = port.eq_ignore_ascii_case("COM") || port.eq_ignore_ascii_case("LPT");
    let number = letters.next();
    is_port
        && letters.next().is_none()
        && number.is_some_and(|c| c.is_ascii_digit() || matches!(c, '¹' | '²' | '³'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_paths_are_kept_in_one_form() {
        let long = format!("{}/x", "a".repeat(255));
        for (text, normal) in [
            (".", "."),
            ("./", "."),
            ("a", "a"),
            ("./a//b/", "a/b"),
            ("a/./b", "a/b"),
            ("...a", "...a"),
            ("..a", "..a"),
            ("~", "~"),
            ("a\u{2215}..\u{2215}b", "a\u{2215}..\u{2215}b"),
            ("connect.rs", "connect.rs"),
            ("com10", "com10"),
            ("company", "company"),
            (&long, &long),
        ] {
            assert_eq!(RelPath::new(text).unwrap().as_str(), normal, "{text}");
        }
    }

    #[test]
    fn harmful_paths_are_refused_for_the_right_reason() {
        let shown = |text: &str| text.to_owned();
        assert_eq!(RelPath::new(""), Err(PathError::Empty));
        assert_eq!(RelPath::new("/a"), Err(PathError::Absolute { shown: shown("/a") }));
        assert_eq!(RelPath::new("C:/a"), Err(PathError::Absolute { shown: shown("C:/a") }));
        assert_eq!(RelPath::new("a/../b"), Err(PathError::Parent { shown: shown("a/../b") }));
        assert!(matches!(RelPath::new("a\\b"), Err(PathError::Backslash { .. })));
        assert!(matches!(RelPath::new("a\0b"), Err(PathError::BadCharacter { found: '\0', .. })));
        assert!(matches!(RelPath::new("ab:c"), Err(PathError::BadCharacter { found: ':', .. })));
        for device in ["CON", "nul.txt", "a/Aux/b", "com1", "LPT9.md", "COM¹", "con .md", "CONIN$"]
        {
            assert!(matches!(RelPath::new(device), Err(PathError::Reserved { .. })), "{device}");
        }
        for trailing in ["a.", "a /b", "a/... ", "...", ".. /x"] {
            let result = RelPath::new(trailing);
            assert!(matches!(result, Err(PathError::TrailingDotOrSpace { .. })), "{trailing}");
        }
        let name = "a".repeat(256);
        assert!(matches!(RelPath::new(&name), Err(PathError::ComponentTooLong { len: 256, .. })));
        let path = "a/".repeat(2049);
        assert!(matches!(RelPath::new(&path), Err(PathError::TooLong { len: 4098 })));
    }

    #[test]
    fn paths_come_apart_and_together() {
        let path = RelPath::new("a/b/c").unwrap();
        assert_eq!(path.file_name(), Some("c"));
        assert_eq!(path.parent().unwrap().as_str(), "a/b");
        assert_eq!(RelPath::new("a").unwrap().parent(), Some(RelPath::root()));
        assert_eq!(RelPath::root().parent(), None);
        let base = RelPath::new("a/b").unwrap();
        assert_eq!(path.strip_prefix(&base).unwrap().as_str(), "c");
        assert_eq!(RelPath::new("a/bc").unwrap().strip_prefix(&base), None);
        assert_eq!(base.join(&RelPath::new("c").unwrap()), path);
        assert_eq!(RelPath::root().join(&path), path);
        assert_eq!(path.join(&RelPath::root()), path);
    }
}
