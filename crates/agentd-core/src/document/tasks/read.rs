//! Reading `tasks.md`, as agentd writes it and as people do.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::block::{TaskYaml, split_list};
use super::{Action, Status, Task, Tasks, Tick};
use crate::diagnostic::{Diagnostic, Parsed};
use crate::document::fields::{self, fields};
use crate::document::{frontmatter_place, read_id, structure_diagnostics};
use crate::frontmatter;
use crate::ids::{IdError, Layer, TaskId};
use crate::language;
use crate::outline::{Fence, Outline, Section, lines};
use crate::rules;
use crate::span::{Span, Uncompared};
use crate::stamp::Stamp;
use crate::text::{Line, Prose, unescape};

/// Which section number stands for which layer in this text.
type LayerSections = BTreeMap<Layer, u32>;

#[derive(Deserialize, Default)]
#[serde(default)]
struct FrontmatterFields {
    change_id: Option<String>,
    r#type: Option<String>,
    version: Option<u32>,
    created_at: Option<Stamp>,
    updated_at: Option<Stamp>,
}

/// Reads tasks.
pub fn parse(text: &str) -> Parsed<Tasks> {
    let outline = Outline::scan(text);
    let mut diagnostics = structure_diagnostics(&outline);
    let front: FrontmatterFields = frontmatter::read(text, &outline, &mut diagnostics);
    let top = frontmatter_place(&outline);
    if let Some(kind) = front.r#type.as_deref().filter(|kind| *kind != "tasks") {
        diagnostics.push(rules::WRONG_TYPE.at(top, format!("type is `{kind}`, not `tasks`")));
    }
    let sections = outline.sections(text, 2, outline.body(text));
    let layers: LayerSections = sections
        .iter()
        .filter_map(|s| {
            let (number, layer) = layer_heading(s.title);
            // Sections count from 1.
            let number = number.filter(|number| *number > 0);
            layer.map(|layer| (layer, number.unwrap_or_else(|| layer.section())))
        })
        .collect();
    let (tasks, unnumbered) = (Vec::new(), Vec::new());
    let mut reader = Reader { text, outline: &outline, layers, diagnostics, tasks, unnumbered };
    let before = sections.first().map_or(text.len(), |s| s.span.start);
    reader.read_part(Span::new(outline.body_start, before), None);
    for part in &sections {
        reader.read_part(part.body, layer_heading(part.title).1);
    }
    reader.number_the_rest();
    let Reader { mut diagnostics, tasks, .. } = reader;
    let title = outline
        .headings
        .iter()
        .find(|h| h.level == 1)
        .map_or(Span::at(outline.body_start), |h| h.span);
    let value = Tasks {
        change_id: read_id(front.change_id.as_ref(), &rules::BAD_ID, top, &mut diagnostics),
        version: front.version.unwrap_or(1),
        created_at: front.created_at,
        updated_at: front.updated_at,
        tasks,
        frontmatter: Uncompared(top),
        has_frontmatter: Uncompared(outline.frontmatter.is_some_and(|f| f.closed)),
        title: Uncompared(title),
    };
    Parsed { value, diagnostics }
}

/// `1. Data Layer` → 1 and data.
fn layer_heading(title: &str) -> (Option<u32>, Option<Layer>) {
    let number =
        title.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    let mut words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let layer = words.find_map(Layer::from_name).or_else(|| {
        let own = title.trim_start_matches(|c: char| !c.is_alphabetic());
        Layer::from_name(language::heading(own)?)
    });
    (number, layer)
}

struct Reader<'t> {
    text: &'t str,
    outline: &'t Outline,
    layers: LayerSections,
    diagnostics: Vec<Diagnostic>,
    tasks: Vec<Task>,
    /// Tasks without a number of their own, by their place among the tasks.
    unnumbered: Vec<usize>,
}

impl<'t> Reader<'t> {
    /// Reads the tasks of one layer: those with headings, and checkboxes outside of them.
    fn read_part(&mut self, part: Span, layer: Option<Layer>) {
        let mut at = part.start;
        for section in self.outline.sections(self.text, 3, part) {
            let Some(id) = task_heading(section.title) else { continue };
            self.read_checkboxes(Span::new(at, section.span.start), layer);
            self.read_heading_task(&section, id, layer);
            at = section.span.end;
        }
        self.read_checkboxes(Span::new(at, part.end), layer);
    }

    fn id(&self, text: &str) -> Result<TaskId, IdError> {
        let mut id: TaskId = text.parse()?;
        let by_name = text.starts_with(|c: char| c.is_ascii_alphabetic());
        if by_name
            && let Some(layer) = Layer::from_section(id.section)
            && let Some(&section) = self.layers.get(&layer)
        {
            id.section = section;
        }
        Ok(id)
    }

    fn read_id(&mut self, text: &str, place: Span) -> Option<TaskId> {
        let id = self.id(text);
        if let Err(error) = &id {
            self.diagnostics.push(rules::BAD_TASK_ID.at(place, error.to_string()));
        }
        id.ok()
    }

    /// Gives tasks without a number those behind the highest one of their layer, in the order of
    /// the text: a tick does not change them, and neither does a task of another layer.
    fn number_the_rest(&mut self) {
        let mut highest: BTreeMap<u32, u32> = BTreeMap::new();
        for task in &self.tasks {
            let of_section = highest.entry(task.id.section).or_default();
            *of_section = task.id.number.max(*of_section);
        }
        for index in std::mem::take(&mut self.unnumbered) {
            let task = &mut self.tasks[index];
            let of_section = highest.entry(task.id.section).or_default();
            *of_section = of_section.saturating_add(1);
            task.id.number = *of_section;
            let message = format!("the task has no number; it is taken as {}", task.id);
            self.diagnostics.push(rules::TASK_WITHOUT_NUMBER.at(task.place.0, message));
        }
    }

    fn read_heading_task(
        &mut self,
        section: &Section<'t>,
        (id, title): (&'t str, &'t str),
        layer: Option<Layer>,
    ) {
        let place = section.heading.span;
        let Some(id) = self.read_id(id, place) else { return };
        let fence = self.outline.fences_in(section.body).find(|fence| {
            let info = fence.info.of(self.text);
            fence.closed && (info.starts_with("yaml") || info.starts_with("yml"))
        });
        let mut task = bare_task(id, layer, title, place);
        if let Some(fence) = fence.copied() {
            let mut description = String::new();
            description.push_str(&self.text[section.body.start..fence.span.start]);
            description
                .push_str(self.text.get(fence.span.end..section.body.end).unwrap_or_default());
            task.description = Prose::new(&unescape(Prose::new(&description).as_str()));
            self.read_block(&fence, &mut task);
        } else {
            self.read_labels(section.body, &mut task);
        }
        self.tasks.push(task);
    }

    fn read_block(&mut self, fence: &Fence, task: &mut Task) {
        let yaml = fence.content.of(self.text);
        let block = match TaskYaml::read(yaml) {
            Ok(block) => block,
            Err((message, span)) => {
                let span = span.shifted(fence.content.start);
                self.diagnostics.push(rules::TASK_BLOCK.at(span, message));
                return;
            }
        };
        task.tick = Uncompared(status_place(yaml, fence.content.start));
        let text = self.text;
        let place = |label: &str, value: &str| {
            fields::value_in(text, fence.content, &[label], value).unwrap_or(fence.content)
        };
        if let Some(written) = &block.id
            && let Some(id) = self.read_id(written, fence.content)
            && id != task.id
        {
            let message = format!("the heading says {}, the block says {id}", task.id);
            self.diagnostics.push(rules::TASK_ID_MISMATCH.at(place("id", written), message));
        }
        let strs =
            |items: &'_ [String]| items.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        task.file = block.file.map(|path| Line::new(&path));
        let action = block.action.as_deref();
        let action_is_bad = action.is_some_and(|action| Action::from_name(action).is_none());
        let at =
            if action_is_bad { place("action", action.unwrap_or_default()) } else { fence.content };
        self.read_action(action, at, task);
        self.read_refs(&split_list(&strs(&block.spec_refs)), fence.content, task);
        self.read_depends(&split_list(&strs(&block.depends_on)), fence.content, task);
        match block.status.as_deref() {
            None => {}
            Some(status) => match read_status(status) {
                Some(status) => task.status = status,
                None => {
                    let message = format!("`{status}` is not a status");
                    self.diagnostics.push(rules::BAD_STATUS.at(place("status", status), message));
                }
            },
        }
    }

    fn read_action(&mut self, action: Option<&str>, place: Span, task: &mut Task) {
        let Some(name) = action else { return };
        task.action = Action::from_name(name);
        if task.action.is_none() {
            self.diagnostics
                .push(rules::BAD_ACTION.at(place, format!("`{name}` is not an action")));
        }
    }

    fn read_refs(&mut self, refs: &[&str], place: Span, task: &mut Task) {
        for text in refs {
            match text.parse() {
                Ok(spec_ref) => task.spec_refs.push(spec_ref),
                Err(error) => {
                    self.diagnostics.push(rules::BAD_SPEC_REF.at(place, error.to_string()));
                }
            }
        }
    }

    fn read_depends(&mut self, ids: &[&str], place: Span, task: &mut Task) {
        for text in ids {
            task.depends_on.extend(self.read_id(text, place));
        }
    }

    /// Reads `File:`, `Action:`, `Spec:` and `Depends:` labels; the rest is the description.
    fn read_labels(&mut self, body: Span, task: &mut Task) {
        let mut rest = String::new();
        let mut at = body.start;
        for field in fields(self.text, body) {
            if !self.read_label(&field, task) {
                continue;
            }
            rest.push_str(&self.text[at..field.span.start]);
            at = field.span.end;
        }
        rest.push_str(&self.text[at..body.end]);
        task.description = Prose::new(&unescape(Prose::new(&rest).as_str()));
    }

    fn read_label(&mut self, field: &fields::Field<'_>, task: &mut Task) -> bool {
        let line = field.line();
        let value = line.as_str();
        if field.is(&["File", "Path"]) {
            self.read_file(value, field.span, task);
        } else if field.is(&["Action"]) {
            self.read_action(Some(value.trim_matches('`')), field.span, task);
        } else if field.is(&["Spec", "Spec ref", "Spec_ref", "Spec Reference"]) {
            self.read_refs(&split_list(value), field.span, task);
        } else if field.is(&["Depends", "Depends on", "Depends_on"]) {
            self.read_depends(&split_list(value), field.span, task);
        } else if field.is(&["Status"]) {
            task.status = read_status(value).unwrap_or_default();
        } else {
            return false;
        }
        true
    }

    /// `src/a.rs`, `CREATE src/a.rs` or `src/a.rs (CREATE)`.
    fn read_file(&mut self, value: &str, place: Span, task: &mut Task) {
        let mut path = value.trim();
        if let Some((first, rest)) = path.split_once(' ')
            && Action::from_name(first).is_some()
        {
            self.read_action(Some(first), place, task);
            path = rest;
        } else if let Some((rest, last)) = path.rsplit_once(" (")
            && let Some(action) = last.strip_suffix(')')
        {
            self.read_action(Some(action), place, task);
            path = rest;
        }
        task.file = Some(Line::new(path.trim_matches(['`', ' '])));
    }

    /// Reads `- [ ] 1.1 Title` lines with what is indented below them.
    fn read_checkboxes(&mut self, part: Span, layer: Option<Layer>) {
        let mut open: Option<(Task, usize)> = None;
        for (start, line, next) in lines(part.of(self.text)) {
            let (start, next) = (start + part.start, next + part.start);
            let checkbox = if self.outline.in_fence(start) { None } else { checkbox(line) };
            if let Some((mark, id, title)) = checkbox {
                self.close_checkbox(open.take(), start);
                let place = Span::new(start, start + line.len());
                let Some(id) = self.checkbox_id(id, layer, place) else { continue };
                let done = line[mark..].starts_with(['x', 'X']);
                let task = Task {
                    status: if done { Status::Done } else { Status::Pending },
                    tick: Uncompared(Tick::Checkbox(Span::new(start + mark, start + mark + 1))),
                    ..bare_task(id, layer, title, place)
                };
                open = Some((task, next));
            } else if !line.trim().is_empty() && !line.starts_with([' ', '\t']) {
                self.close_checkbox(open.take(), start);
            }
        }
        self.close_checkbox(open.take(), part.end);
    }

    /// The id of a checkbox. One without a number gets it from its layer, when all others are
    /// known; one without a layer either is no task, which is said.
    fn checkbox_id(
        &mut self,
        id: Option<&str>,
        layer: Option<Layer>,
        place: Span,
    ) -> Option<TaskId> {
        if let Some(id) = id {
            return self.read_id(id, place);
        }
        let Some(layer) = layer else {
            let message = "the checkbox has no number and is in no layer, so it is not a task";
            self.diagnostics.push(rules::TASK_WITHOUT_NUMBER.at(place, message));
            return None;
        };
        let section = self.layers.get(&layer).copied().unwrap_or_else(|| layer.section());
        Some(TaskId { section, number: 0 })
    }

    fn close_checkbox(&mut self, open: Option<(Task, usize)>, end: usize) {
        let Some((mut task, start)) = open else { return };
        let mut description = String::new();
        for (_, line, _) in lines(self.text.get(start..end).unwrap_or_default()) {
            let bare = line.trim().trim_start_matches("- ");
            let labelled = format!("- {bare}\n");
            let read = fields(&labelled, Span::new(0, labelled.len()));
            let mut known = false;
            if let Some(field) = read.first() {
                let before = self.diagnostics.len();
                known = self.read_label(field, &mut task);
                for diagnostic in &mut self.diagnostics[before..] {
                    diagnostic.span = task.place.0;
                }
            }
            if !known {
                description.push_str(line.trim());
                description.push('\n');
            }
        }
        task.description = Prose::new(&description);
        if task.id.number == 0 {
            self.unnumbered.push(self.tasks.len());
        }
        self.tasks.push(task);
    }
}

/// A task of which only the heading is known.
fn bare_task(id: TaskId, layer: Option<Layer>, title: &str, place: Span) -> Task {
    Task {
        id,
        layer: layer.or_else(|| Layer::from_section(id.section)),
        title: Line::new(title),
        action: None,
        file: None,
        spec_refs: Vec::new(),
        depends_on: Vec::new(),
        status: Status::Pending,
        description: Prose::default(),
        place: Uncompared(place),
        tick: Uncompared(Tick::Nowhere),
    }
}

fn read_status(text: &str) -> Option<Status> {
    let known = [
        ("pending", Status::Pending),
        ("todo", Status::Pending),
        ("open", Status::Pending),
        ("done", Status::Done),
        ("completed", Status::Done),
        ("complete", Status::Done),
    ];
    known
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text.trim()))
        .map(|(_, status)| status)
}

/// Where the status is in a task's YAML.
fn status_place(yaml: &str, offset: usize) -> Tick {
    let says_something =
        |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = lines(yaml).map(|(_, line, _)| line).find(says_something).map_or(0, indent);
    for (start, line, _) in lines(yaml).filter(|(_, line, _)| indent(line) == own) {
        if let Some(value) = line.trim_start().strip_prefix("status:") {
            let bare_value = value.trim();
            let bare_value = bare_value.split(" #").next().unwrap_or_default().trim_end();
            let at = offset + start + (line.len() - value.trim_start().len());
            return Tick::Value(Span::new(at, at + bare_value.len()));
        }
    }
    Tick::Missing(offset + yaml.len())
}

/// `Task 1.1: title` or `1.1 title` → the id and the title.
fn task_heading(title: &str) -> Option<(&str, &str)> {
    let is_task = title.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("task "));
    let rest = if is_task { title[5..].trim_start() } else { title };
    split_task_id(rest).or_else(|| if is_task { rest.split_once(':') } else { None })
}

/// The id that a text starts with, and what follows it.
fn split_task_id(text: &str) -> Option<(&str, &str)> {
    let bare = text.trim_start_matches("**");
    let end = bare.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(bare.len());
    let id = bare[..end].trim_end_matches('.');
    let looks = id.contains('.') && id.ends_with(|c: char| c.is_ascii_digit());
    let rest = bare[end..].trim_start_matches("**").trim_start();
    let rest = rest.strip_prefix([':', '-', '–', '—']).unwrap_or(rest).trim_start();
    looks.then_some((id, rest))
}

/// A checkbox line: where its mark stands, the id of the task if it has one, the title.
fn checkbox(line: &str) -> Option<(usize, Option<&str>, &str)> {
    let rest =
        line.strip_prefix(['-', '*', '+'])?.strip_prefix(' ')?.trim_start().strip_prefix('[')?;
    let mark = line.len() - rest.len();
    let behind = rest.strip_prefix([' ', 'x', 'X'])?.strip_prefix(']')?.trim_start();
    let behind = behind.strip_prefix("Task ").unwrap_or(behind);
    match split_task_id(behind) {
        Some((id, title)) => Some((mark, Some(id), title)),
        None => Some((mark, None, behind)),
    }
}
