//! A spec taken apart into the pieces that are merged, each with its place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::document::english_titles;
use crate::document::spec::{priority_line, requirement_heading, scenario_name};
use crate::ids::RequirementId;
use crate::outline::{Outline, Section, lines};
use crate::span::Span;

/// The two sections whose content is merged piece by piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// `## Requirements`
    Requirements,
    /// `## Acceptance Criteria`
    Criteria,
}

impl Group {
    /// The title of the section.
    pub fn title(self) -> &'static str {
        match self {
            Self::Requirements => "Requirements",
            Self::Criteria => "Acceptance Criteria",
        }
    }

    fn of_title(title: &str) -> Option<Self> {
        [Self::Requirements, Self::Criteria]
            .into_iter()
            .find(|group| group.title().eq_ignore_ascii_case(title))
    }
}

/// What a piece is: the same piece of two texts has the same key. Names are in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The text between the title and the first section.
    Intro,
    /// Any other section of level 2, by its title.
    Section(String),
    /// The text of a group in front of its first heading.
    Lead(Group),
    /// A requirement, without the scenarios below it.
    Requirement(RequirementId),
    /// A scenario of its own, or another heading of level 3 in a group.
    Item(Group, String),
    /// A scenario below a requirement.
    Nested(RequirementId, String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Intro => f.write_str("introduction"),
            Self::Section(title) => write!(f, "section \"{title}\""),
            Self::Lead(group) => write!(f, "beginning of \"{}\"", group.title()),
            Self::Requirement(id) => id.fmt(f),
            Self::Item(Group::Criteria, name) => write!(f, "scenario \"{name}\""),
            Self::Item(Group::Requirements, name) => write!(f, "heading \"{name}\""),
            Self::Nested(id, name) => write!(f, "{id}, scenario \"{name}\""),
        }
    }
}

/// One piece.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) key: Key,
    /// Heading and all that stands below it, also pieces of their own.
    pub(super) whole: Span,
    /// The title in the heading; of a requirement, what stands behind its id.
    pub(super) title: Span,
    /// Its own text, without blank lines around it.
    pub(super) body: Span,
    /// Where its own text would begin.
    pub(super) body_start: usize,
}

/// A group: its section, and where its own text is.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupLocation {
    pub(super) whole: Span,
}

/// A text and its pieces, in order.
#[derive(Debug)]
pub(super) struct Parts<'t> {
    pub(super) text: &'t str,
    pub(super) all: Vec<Part>,
    index: BTreeMap<Key, usize>,
    /// The scenarios below each requirement.
    nested: BTreeMap<RequirementId, Vec<usize>>,
    /// Keys that are there more than once.
    pub(super) twice: BTreeSet<Key>,
    pub(super) requirements: Option<GroupLocation>,
    pub(super) criteria: Option<GroupLocation>,
    /// Where the first section of level 2 begins.
    pub(super) first_section: Option<usize>,
}

impl<'t> Parts<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let outline = Outline::scan(text);
        let body = outline.body(text);
        let sections = outline.sections(text, 2, body);
        let mut parts = Self {
            text,
            all: Vec::new(),
            index: BTreeMap::new(),
            nested: BTreeMap::new(),
            twice: BTreeSet::new(),
            requirements: None,
            criteria: None,
            first_section: sections.first().map(|section| section.span.start),
        };
        parts.add_intro(&outline, body);
        for (section, title) in sections.iter().zip(english_titles(&sections)) {
            match Group::of_title(title) {
                Some(Group::Requirements) if parts.requirements.is_none() => {
                    parts.requirements = Some(GroupLocation { whole: section.span });
                    parts.add_group(&outline, Group::Requirements, section);
                }
                Some(Group::Criteria) if parts.criteria.is_none() => {
                    parts.criteria = Some(GroupLocation { whole: section.span });
                    parts.add_group(&outline, Group::Criteria, section);
                }
                _ => parts.add(Key::Section(folded(title)), section, section.body.end),
            }
        }
        parts
    }

    fn add_intro(&mut self, outline: &Outline, body: Span) {
        let end = self.first_section.unwrap_or(body.end);
        let title = outline.headings.iter().find(|h| h.level == 1 && h.span.start < end);
        let start = title.map_or(body.start, |h| crate::outline::next_line(self.text, h.span.end));
        let own = trimmed(self.text, Span::new(start.min(end), end));
        let whole = Span::new(start.min(end), end);
        let title = Span::at(own.start);
        self.push(Part { key: Key::Intro, whole, title, body: own, body_start: whole.start });
    }

    fn add_group(&mut self, outline: &Outline, group: Group, section: &Section<'t>) {
        let items = outline.sections(self.text, 3, section.body);
        let lead_end = items.first().map_or(section.body.end, |item| item.span.start);
        let lead = Span::new(section.body.start, lead_end);
        let body = trimmed(self.text, lead);
        let (key, title) = (Key::Lead(group), Span::at(body.start));
        self.push(Part { key, whole: lead, title, body, body_start: lead.start });
        for item in &items {
            match (group, requirement_heading(item.title)) {
                (Group::Requirements, Some((id, title))) => {
                    self.add_requirement(outline, id, title, item);
                }
                (Group::Requirements, None) => {
                    self.add(Key::Item(group, folded(item.title)), item, item.body.end);
                }
                (Group::Criteria, _) => {
                    let name = scenario_name(item.title).unwrap_or(item.title);
                    self.add(Key::Item(group, folded(name)), item, item.body.end);
                }
            }
        }
    }

    fn add_requirement(
        &mut self,
        outline: &Outline,
        id: RequirementId,
        title: &str,
        item: &Section<'t>,
    ) {
        let below = outline.sections(self.text, 4, item.body);
        let first = below.iter().position(|part| scenario_name(part.title).is_some());
        let below = first.map_or(&below[..0], |first| &below[first..]);
        let own_end = below.first().map_or(item.body.end, |part| part.span.start);
        let key = Key::Requirement(id);
        let title_end = item.heading.title.end;
        let title = trimmed(self.text, Span::new(title_end - title.len(), title_end));
        let own = Span::new(item.body.start.min(own_end), own_end);
        let body = trimmed(self.text, own);
        let first_time = !self.index.contains_key(&key);
        self.push(Part { key, whole: item.span, title, body, body_start: own.start });
        for part in below {
            let name = scenario_name(part.title).unwrap_or(part.title);
            if first_time {
                self.nested.entry(id).or_default().push(self.all.len());
            }
            self.add(Key::Nested(id, folded(name)), part, part.body.end);
        }
    }

    fn add(&mut self, key: Key, section: &Section<'_>, end: usize) {
        let body = trimmed(self.text, Span::new(section.body.start, end));
        let title = section.heading.title;
        let (whole, body_start) = (section.span, section.body.start);
        self.push(Part { key, whole, title, body, body_start });
    }

    fn push(&mut self, part: Part) {
        if self.index.contains_key(&part.key) {
            self.twice.insert(part.key.clone());
        } else {
            self.index.insert(part.key.clone(), self.all.len());
        }
        self.all.push(part);
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Part> {
        self.index.get(key).map(|&i| &self.all[i])
    }

    pub(super) fn requirement(&self, id: RequirementId) -> Option<&Part> {
        self.get(&Key::Requirement(id))
    }

    /// The requirements, as they stand in the text.
    pub(super) fn requirements(&self) -> impl Iterator<Item = (RequirementId, &Part)> {
        self.all.iter().filter_map(|part| match part.key {
            Key::Requirement(id) => Some((id, part)),
            _ => None,
        })
    }

    /// The scenarios below a requirement.
    pub(super) fn nested(&self, id: RequirementId) -> impl Iterator<Item = &Part> {
        self.nested.get(&id).into_iter().flatten().map(|&i| &self.all[i])
    }

    pub(super) fn group(&self, group: Group) -> Option<GroupLocation> {
        match group {
            Group::Requirements => self.requirements,
            Group::Criteria => self.criteria,
        }
    }

    pub(super) fn title_of(&self, part: &Part) -> &'t str {
        part.title.of(self.text)
    }

    pub(super) fn body_of(&self, part: &Part) -> &'t str {
        part.body.of(self.text)
    }

    /// Heading and everything below, without blank lines around it.
    pub(super) fn whole_of(&self, part: &Part) -> &'t str {
        trimmed(self.text, part.whole).of(self.text)
    }
}

/// A name as it is compared: in lower case, with single spaces.
pub(super) fn folded(name: &str) -> String {
    let words: Vec<String> = name.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

/// A span without blank lines around it; an indentation of the first line stays.
pub(super) fn trimmed(text: &str, span: Span) -> Span {
    let inside = span.of(text);
    let first = lines(inside).find(|(_, line, _)| !line.trim().is_empty());
    let Some((start, _, _)) = first else { return Span::at(span.start) };
    Span::new(span.start + start, span.start + inside.trim_end().len())
}

/// Whether two texts are the same but for line ends and spaces that nobody sees.
pub(super) fn same_text(a: &str, b: &str) -> bool {
    let lines = |text: &'_ str| -> Vec<String> { text.trim().lines().map(plain).collect() };
    a == b || lines(a) == lines(b)
}

fn plain(line: &str) -> String {
    line.trim_end().to_owned()
}

/// Whether the texts of two requirements say the same: a priority that is not given is medium.
pub(super) fn same_requirement(a: &str, b: &str) -> bool {
    fn split(text: &str) -> (String, &str) {
        let first = lines(text).find(|(_, line, _)| !line.trim().is_empty());
        match first.and_then(|(_, line, next)| Some((priority_line(line)?, next))) {
            Some((priority, next)) => (priority.to_lowercase(), &text[next..]),
            None => ("medium".to_owned(), text),
        }
    }
    if a == b {
        return true;
    }
    let ((a_priority, a), (b_priority, b)) = (split(a), split(b));
    a_priority == b_priority && same_text(a, b)
}

/// Whether two scenarios say the same: bullets and stars do not count.
pub(super) fn same_scenario(a: &str, b: &str) -> bool {
    let steps = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| {
            let line = line.trim();
            let bare = line.strip_prefix(['-', '*', '+']).filter(|rest| rest.starts_with(' '));
            bare.unwrap_or(line).trim().replace("**", "")
        });
        lines.filter(|line| !line.is_empty()).collect()
    };
    a == b || steps(a) == steps(b)
}
