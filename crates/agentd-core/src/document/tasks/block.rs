//! The YAML block of a task, in the notations that people use.

use serde::Deserialize;

use crate::span::Span;
use crate::yaml::from_yaml;

/// The YAML of a task, with the types that some fields have in this text.
#[derive(Deserialize)]
#[serde(bound = "File: Deserialize<'de>, Refs: Deserialize<'de>, Depends: Deserialize<'de>")]
struct Block<File, Refs, Depends> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    action: Option<String>,
    #[serde(default = "none")]
    file: Option<File>,
    #[serde(default = "none")]
    spec_ref: Option<Refs>,
    #[serde(alias = "depends", default = "none")]
    depends_on: Option<Depends>,
    #[serde(default)]
    status: Option<String>,
}

fn none<T>() -> Option<T> {
    None
}

/// The long form of `file`, as in the arguments of `create_tasks`.
#[derive(Deserialize)]
struct FileBlock {
    path: String,
    #[serde(default)]
    action: Option<String>,
}

/// What a task's YAML says, whatever its notation.
#[derive(Default)]
pub(super) struct TaskYaml {
    pub(super) id: Option<String>,
    pub(super) action: Option<String>,
    pub(super) file: Option<String>,
    pub(super) spec_refs: Vec<String>,
    pub(super) depends_on: Vec<String>,
    pub(super) status: Option<String>,
}

impl TaskYaml {
    /// Reads YAML with each field in the form agentd writes, or else in the
    /// other ones that people use. Untagged enums would be shorter, but they
    /// read `1.10` as a number first.
    pub(super) fn read(yaml: &str) -> Result<Self, (String, Span)> {
        let list = |text: String| split_list(&text).into_iter().map(str::to_owned).collect();
        let short = |path: String| (path, None);
        let long = |file: FileBlock| (file.path, file.action);
        let same = |items: Vec<String>| items;
        let first = Self::read_as::<String, String, Vec<String>>(yaml, short, list, same);
        let error = match first {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        // What is no YAML at all is none in any other form.
        if from_yaml::<serde::de::IgnoredAny>(yaml).is_err() {
            return Err(error);
        }
        Self::read_as::<String, Vec<String>, Vec<String>>(yaml, short, same, same)
            .or_else(|_| Self::read_as::<String, String, String>(yaml, short, list, list))
            .or_else(|_| Self::read_as::<String, Vec<String>, String>(yaml, short, same, list))
            .or_else(|_| Self::read_as::<FileBlock, String, Vec<String>>(yaml, long, list, same))
            .or_else(|_| {
                Self::read_as::<FileBlock, Vec<String>, Vec<String>>(yaml, long, same, same)
            })
            .or_else(|_| Self::read_as::<FileBlock, String, String>(yaml, long, list, list))
            .or_else(|_| Self::read_as::<FileBlock, Vec<String>, String>(yaml, long, same, list))
            .map_err(|_| error)
    }

    fn read_as<File, Refs, Depends>(
        yaml: &str,
        file: impl Fn(File) -> (String, Option<String>),
        refs: impl Fn(Refs) -> Vec<String>,
        depends: impl Fn(Depends) -> Vec<String>,
    ) -> Result<Self, (String, Span)>
    where
        Block<File, Refs, Depends>: serde::de::DeserializeOwned,
    {
        let block: Block<File, Refs, Depends> = from_yaml(yaml)?;
        let (path, action) = block.file.map(file).unzip();
        Ok(Self {
            id: block.id,
            action: block.action.or(action.flatten()),
            file: path,
            spec_refs: block.spec_ref.map(refs).unwrap_or_default(),
            depends_on: block.depends_on.map(depends).unwrap_or_default(),
            status: block.status,
        })
    }
}

/// `[1.1, 1.2]`, `1.1, 1.2` or none.
pub(super) fn split_list(text: &str) -> Vec<&str> {
    let bare = text.trim().trim_matches(['[', ']']);
    let items = bare.split(',').map(|item| item.trim().trim_matches(['"', '\'', '`']));
    items
        .filter(|item| !item.is_empty() && !item.eq_ignore_ascii_case("none") && *item != "-")
        .collect()
}
