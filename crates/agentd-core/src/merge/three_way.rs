//! The merge itself, piece by piece.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::{Group, Key, Part, Parts, same_requirement, same_scenario, same_text};
use super::splice::{Order, Section, Splice};
use super::{Conflict, ConflictKind, Merged};
use crate::document::changelog::Touched;
use crate::document::spec;
use crate::ids::RequirementId;
use crate::text::Line;

/// Merges a change into a main spec that exists.
pub(super) fn merge(
    base: Option<&str>,
    main: &str,
    change: &str,
    accept: &dyn Fn(&Conflict) -> bool,
) -> Merged {
    let front = spec::parse(change).value;
    let mut merge = Merge {
        base_known: base.is_some(),
        base: Parts::of(base.unwrap_or_default()),
        main: Parts::of(main),
        accept,
        splice: Splice::default(),
        conflicts: Vec::new(),
        added: Vec::new(),
        edited: BTreeSet::new(),
        removed: Vec::new(),
        renamed: BTreeSet::new(),
        other: Vec::new(),
        new_groups: Vec::new(),
        written: BTreeMap::new(),
        gone: BTreeSet::new(),
    };
    let change = Parts::of(change);
    let mut seen: BTreeSet<&Key> = BTreeSet::new();
    for part in change.all.iter().filter(|part| seen.insert(&part.key)) {
        let piece = Piece { change: &change, part };
        if merge.is_ambiguous(&piece) {
            continue;
        }
        match &part.key {
            Key::Requirement(id) => {
                merge.requirement(&piece, *id, front.renames.get(id).map(Line::as_str));
            }
            Key::Nested(id, _) => merge.nested(&piece, *id),
            Key::Item(group, _) => merge.item(&piece, *group),
            Key::Intro | Key::Section(_) | Key::Lead(_) => merge.prose(&piece),
        }
    }
    for id in &front.removes {
        if change.requirement(*id).is_none() {
            merge.remove(*id);
        }
    }
    for (id, title) in &front.renames {
        if change.requirement(*id).is_none() && !front.removes.contains(id) {
            merge.rename(*id, title.as_str());
        }
    }
    merge.finish()
}

/// A piece of the change.
pub(super) struct Piece<'a, 't> {
    pub(super) change: &'a Parts<'t>,
    pub(super) part: &'a Part,
}

impl<'t> Piece<'_, 't> {
    pub(super) fn key(&self) -> &Key {
        &self.part.key
    }

    pub(super) fn body(&self) -> &'t str {
        self.change.body_of(self.part)
    }

    pub(super) fn whole(&self) -> &'t str {
        self.change.whole_of(self.part)
    }
}

pub(super) struct Merge<'t, 'f> {
    pub(super) base_known: bool,
    pub(super) base: Parts<'t>,
    pub(super) main: Parts<'t>,
    pub(super) accept: &'f dyn Fn(&Conflict) -> bool,
    pub(super) splice: Splice,
    pub(super) conflicts: Vec<Conflict>,
    pub(super) added: Vec<RequirementId>,
    pub(super) edited: BTreeSet<RequirementId>,
    pub(super) removed: Vec<RequirementId>,
    pub(super) renamed: BTreeSet<RequirementId>,
    pub(super) other: Vec<String>,
    /// Groups that the main spec did not have.
    pub(super) new_groups: Vec<Group>,
    /// The texts that pieces are given.
    pub(super) written: BTreeMap<Key, String>,
    /// Pieces that are taken out.
    pub(super) gone: BTreeSet<Key>,
}

/// What comes of three texts of one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The main spec stays as it is.
    Main,
    /// The change's text is taken.
    Change,
    /// Both differ from the base.
    Both,
}

/// The heart of it: who has edited.
pub(super) fn choose<T: Copy>(
    base: Option<T>,
    main: T,
    change: T,
    same: impl Fn(T, T) -> bool,
) -> Choice {
    match base {
        _ if same(main, change) => Choice::Main,
        Some(base) if same(base, change) => Choice::Main,
        Some(base) if same(base, main) => Choice::Change,
        _ => Choice::Both,
    }
}

impl<'t> Merge<'t, '_> {
    /// Whether a conflict stands; if not, the change's text wins.
    pub(super) fn stands(
        &mut self,
        what: &Key,
        kind: ConflictKind,
        base: Option<&str>,
        main: Option<&str>,
        change: Option<&str>,
    ) -> bool {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let conflict = Conflict {
            what: what.to_string(),
            kind,
            base: owned(base),
            main: owned(main),
            change: owned(change),
        };
        if (self.accept)(&conflict) {
            return false;
        }
        self.conflicts.push(conflict);
        true
    }

    /// A piece that is there twice cannot be merged unless it says the same as before.
    fn is_ambiguous(&mut self, piece: &Piece<'_, 't>) -> bool {
        let key = piece.key();
        let twice_here = piece.change.twice.contains(key);
        if !twice_here && !self.main.twice.contains(key) {
            return false;
        }
        let main = self.main.get(key).map(|part| self.main.whole_of(part));
        if !twice_here && main.is_some_and(|main| same_text(main, piece.whole())) {
            return true;
        }
        let base = self.base.get(key).map(|part| self.base.whole_of(part));
        if !twice_here && base.is_some_and(|base| same_text(base, piece.whole())) {
            return true;
        }
        self.conflicts.push(Conflict {
            what: key.to_string(),
            kind: ConflictKind::Ambiguous,
            base: base.map(str::to_owned),
            main: main.map(str::to_owned),
            change: Some(piece.whole().to_owned()),
        });
        true
    }

    pub(super) fn both_kind(&self, in_base: bool) -> ConflictKind {
        match (self.base_known, in_base) {
            (false, _) => ConflictKind::NoBase,
            (true, true) => ConflictKind::BothEdited,
            (true, false) => ConflictKind::BothAdded,
        }
    }

    fn requirement(&mut self, piece: &Piece<'_, 't>, id: RequirementId, rename: Option<&str>) {
        let key = Key::Requirement(id);
        let base = self.base.get(&key).cloned();
        let title = rename.unwrap_or_else(|| piece.change.title_of(piece.part));
        let Some(main) = self.main.get(&key).cloned() else {
            let unchanged = base.as_ref().is_some_and(|base| {
                let whole = same_text(self.base.whole_of(base), piece.whole());
                let apart = self.base.title_of(base) == title
                    && same_requirement(self.base.body_of(base), piece.body())
                    && piece.change.nested(id).all(|own| {
                        let before = self.base.get(&own.key);
                        before.is_some_and(|before| {
                            same_scenario(self.base.body_of(before), piece.change.body_of(own))
                        })
                    });
                whole && rename.is_none() || apart
            });
            if unchanged {
                return;
            }
            if let Some(base) = &base {
                let text = self.base.whole_of(base);
                let kind = ConflictKind::RemovedInMain;
                if self.stands(&key, kind, Some(text), None, Some(piece.whole())) {
                    return;
                }
            }
            self.insert_requirement(id, piece);
            return;
        };
        self.title(id, &main, base.as_ref(), title, rename.is_some());
        let base_body = base.as_ref().map(|part| self.base.body_of(part));
        let choice = choose(base_body, self.main.body_of(&main), piece.body(), same_requirement);
        let wins = match choice {
            Choice::Main => false,
            Choice::Change => true,
            Choice::Both => {
                let base = base.as_ref().map(|part| self.base.whole_of(part));
                let kind = self.both_kind(base.is_some());
                let main = self.main.whole_of(&main);
                !self.stands(&key, kind, base, Some(main), Some(piece.whole()))
            }
        };
        if wins {
            self.put_body(&main, piece.body());
            self.edited.insert(id);
        }
    }

    /// Three titles of one requirement.
    fn title(
        &mut self,
        id: RequirementId,
        main: &Part,
        base: Option<&Part>,
        title: &str,
        renames: bool,
    ) {
        let now = self.main.title_of(main);
        // Who says `renames` means it, whatever the title was.
        let before = match base {
            Some(base) => Some(self.base.title_of(base)),
            None if renames && !self.base_known => Some(now),
            None => None,
        };
        let choice = choose(before, now, title, |a, b| a.trim() == b.trim());
        let wins = match choice {
            Choice::Main => false,
            Choice::Change => true,
            Choice::Both => {
                let kind = match self.both_kind(before.is_some()) {
                    ConflictKind::BothEdited => ConflictKind::BothRenamed,
                    kind => kind,
                };
                let key = Key::Requirement(id);
                !self.stands(&key, kind, before, Some(now), Some(title))
            }
        };
        if !wins {
            return;
        }
        let title = Line::new(title);
        let separator = match self.main.text[..main.title.start].chars().next_back() {
            Some(' ' | '\t') => "",
            Some(c) if c.is_ascii_digit() => ": ",
            _ => " ",
        };
        self.splice.replace(main.title, &format!("{separator}{title}"));
        self.renamed.insert(id);
    }

    /// A scenario below a requirement.
    fn nested(&mut self, piece: &Piece<'_, 't>, id: RequirementId) {
        let Some(requirement) = self.main.requirement(id).cloned() else { return };
        let key = piece.key();
        let base = self.base.get(key).cloned();
        let base_body = base.as_ref().map(|part| self.base.body_of(part));
        let Some(main) = self.main.get(key).cloned() else {
            if !self.is_missed(key, base_body, piece) {
                let at = requirement.whole.end;
                self.splice.insert(at, Order::Nested, piece.whole());
                self.written.insert(key.clone(), piece.body().to_owned());
                self.edited.insert(id);
            }
            return;
        };
        if self.scenario_wins(piece, base.as_ref(), &main) {
            self.put_body(&main, piece.body());
            self.edited.insert(id);
        }
    }

    /// A scenario of its own, or another heading among requirements.
    fn item(&mut self, piece: &Piece<'_, 't>, group: Group) {
        let key = piece.key();
        let base = self.base.get(key).cloned();
        let base_body = base.as_ref().map(|part| self.base.body_of(part));
        match self.main.get(key).cloned() {
            None => {
                if self.is_missed(key, base_body, piece) {
                    return;
                }
                let at = self.group_end(group);
                self.splice.insert(at, Order::Block(section_of(group), u32::MAX), piece.whole());
                self.written.insert(key.clone(), piece.body().to_owned());
            }
            Some(main) => {
                if !self.scenario_wins(piece, base.as_ref(), &main) {
                    return;
                }
                self.put_body(&main, piece.body());
            }
        }
        self.other.push(key.to_string());
    }

    /// Whether a piece that the main spec does not have is to stay away.
    fn is_missed(&mut self, key: &Key, base: Option<&str>, piece: &Piece<'_, 't>) -> bool {
        match base {
            None => false,
            Some(base) if same_scenario(base, piece.body()) => true,
            Some(base) => {
                let kind = ConflictKind::RemovedInMain;
                self.stands(key, kind, Some(base), None, Some(piece.whole()))
            }
        }
    }

    fn scenario_wins(&mut self, piece: &Piece<'_, 't>, base: Option<&Part>, main: &Part) -> bool {
        let base_body = base.map(|part| self.base.body_of(part));
        match choose(base_body, self.main.body_of(main), piece.body(), same_scenario) {
            Choice::Main => false,
            Choice::Change => true,
            Choice::Both => {
                let kind = self.both_kind(base.is_some());
                let base = base.map(|part| self.base.whole_of(part));
                let main = self.main.whole_of(main);
                !self.stands(piece.key(), kind, base, Some(main), Some(piece.whole()))
            }
        }
    }

    fn remove(&mut self, id: RequirementId) {
        let key = Key::Requirement(id);
        let Some(main) = self.main.get(&key).cloned() else { return };
        let text = self.main.whole_of(&main);
        let base = self.base.get(&key).map(|part| self.base.whole_of(part));
        if self.main.twice.contains(&key) {
            let main = Some(text.to_owned());
            let (what, kind) = (key.to_string(), ConflictKind::Ambiguous);
            let base = base.map(str::to_owned);
            self.conflicts.push(Conflict { what, kind, base, main, change: None });
            return;
        }
        if !base.is_some_and(|base| same_text(base, text)) {
            let kind =
                if self.base_known { ConflictKind::RemovedInChange } else { ConflictKind::NoBase };
            if self.stands(&key, kind, base, Some(text), None) {
                return;
            }
        }
        self.gone.insert(key);
        self.gone.extend(self.main.nested(id).map(|part| part.key.clone()));
        self.splice.remove(main.whole);
        self.removed.push(id);
    }

    fn rename(&mut self, id: RequirementId, title: &str) {
        let key = Key::Requirement(id);
        let base = self.base.get(&key).cloned();
        match (self.main.get(&key).cloned(), base) {
            (Some(main), base) => self.title(id, &main, base.as_ref(), title, true),
            (None, Some(base)) => {
                let text = self.base.whole_of(&base);
                // There is nothing left that could be renamed, whatever people decide.
                self.stands(&key, ConflictKind::RemovedInMain, Some(text), None, Some(title));
            }
            (None, None) => {}
        }
    }

    pub(super) fn put_body(&mut self, main: &Part, text: &str) {
        self.written.insert(main.key.clone(), text.to_owned());
        if main.body.start == main.body.end {
            self.splice.insert(main.body_start, Order::Body, text);
        } else {
            self.splice.replace(main.body, text);
        }
    }

    /// A new requirement stands behind those with smaller numbers, so that it does not
    /// matter which of two changes is archived first.
    fn insert_requirement(&mut self, id: RequirementId, piece: &Piece<'_, 't>) {
        let smaller = self
            .main
            .requirements()
            .filter(|(other, _)| *other < id)
            .last()
            .map(|(_, p)| p.whole.end);
        let first = self.main.requirements().next().map(|(_, part)| part.whole.start);
        let at = match smaller.or(first) {
            Some(at) => at,
            None => self.group_end(Group::Requirements),
        };
        self.splice.insert(at, Order::Block(Section::Requirements, id.number()), piece.whole());
        self.written.insert(piece.key().clone(), piece.body().to_owned());
        for own in piece.change.nested(id) {
            self.written.insert(own.key.clone(), piece.change.body_of(own).to_owned());
        }
        self.added.push(id);
    }

    /// Where a group ends; one that is missing is begun.
    pub(super) fn group_end(&mut self, group: Group) -> usize {
        if let Some(place) = self.main.group(group) {
            return place.whole.end;
        }
        let at = match (group, self.main.criteria) {
            (Group::Requirements, Some(criteria)) => criteria.whole.start,
            _ => self.main.text.len(),
        };
        if !self.new_groups.contains(&group) {
            self.new_groups.push(group);
            let order = Order::Block(section_of(group), 0);
            self.splice.insert(at, order, &format!("## {}", group.title()));
        }
        at
    }

    fn finish(mut self) -> Merged {
        let text = std::mem::take(&mut self.splice).apply(self.main.text);
        if let Some((key, was, is)) = self.misread(&text) {
            let (what, kind) = (key.to_string(), ConflictKind::Misread);
            let change = self.written.get(&key).cloned();
            self.conflicts.push(Conflict { what, kind, base: was, main: is, change });
        }
        let touched = Touched {
            created: false,
            added: self.added,
            edited: self.edited.into_iter().collect(),
            removed: self.removed,
            renamed: self.renamed.into_iter().collect(),
            other: self.other,
        };
        Merged { text, conflicts: self.conflicts, touched }
    }
}

pub(super) fn section_of(group: Group) -> Section {
    match group {
        Group::Requirements => Section::Requirements,
        Group::Criteria => Section::Criteria,
    }
}
