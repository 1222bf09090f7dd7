//! One valid change, small enough to count its lines, and ways to spoil it.

use std::collections::BTreeMap;

use agentd_core::check::{Extras, FileReport, MainSpecs, Weight};
use agentd_core::documents::{Documents, Source};
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_core::rel_path::RelPath;
use agentd_core::span::line_column;

pub(crate) const PROPOSAL: &str = "\
---
id: add-login
type: proposal
version: 1
affected_specs:
  - id: auth-flow
    depends: []
---

# Change: add-login

## Summary

Let people sign in.

## Why

They ask for it.

## What Changes

- A login form

## Impact

- **Scope**: minor
";

pub(crate) const SPEC: &str = "\
---
id: auth-flow
type: spec
title: Auth flow
version: 1
---

# Specification: Auth flow

## Overview

How people sign in.

## Requirements

### R1: Session

**Priority**: high

The server MUST return 401 when the password is wrong.

## Acceptance Criteria

### Scenario: Wrong password

- **WHEN** the password is wrong
- **THEN** the answer is 401
";

pub(crate) const TASKS: &str = "\
---
change_id: add-login
type: tasks
version: 1
---

# Tasks: add-login

## 1. Data Layer

### Task 1.1: Store sessions

```yaml
id: \"1.1\"
action: CREATE
file: src/session.rs
spec_ref: \"auth-flow:R1\"
depends_on: []
status: pending
```

Write the table.

## 2. Logic Layer

### Task 2.1: Check passwords

```yaml
id: \"2.1\"
action: MODIFY
file: src/login.rs
spec_ref: \"auth-flow:R1\"
depends_on: [\"1.1\"]
status: pending
```

Compare the hashes.
";

pub(crate) const CLARIFICATIONS: &str = "\
---
change: add-login
---

# Clarifications

## Q1: Form

- **Question**: Which form?
- **Answer**: A page.
";

pub(crate) const REVIEW: &str = "\
---
change_id: add-login
type: review
verdict: APPROVED
---

# Review: add-login

## Summary

Good.

## Issues

### I1: Naming

- **Severity**: LOW
";

pub(crate) const STATE: &str = "change_id: add-login\nphase: proposed\n";

/// One way to spoil the change.
#[derive(Clone, Copy)]
pub(crate) enum Edit {
    /// In this file, the first such text becomes another; an empty one stands for the whole file.
    In(&'static str, &'static str, &'static str),
    /// This is put at the end of the file.
    Append(&'static str, &'static str),
    /// The file is not there.
    Gone(&'static str),
    /// The file cannot be read.
    Unreadable(&'static str),
    /// The main spec has these requirements.
    Main(&'static str, &'static [&'static str]),
    /// The project wants this heading.
    Heading(&'static str),
    /// The project wants this pattern.
    Pattern(&'static str),
    /// The project wants so many scenarios.
    Scenarios(usize),
    /// The project gives a rule this weight.
    Rule(&'static str, Weight),
}

/// The texts of the change.
fn texts() -> BTreeMap<ChangeFile, Source> {
    let spec = ChangeFile::Spec(SpecId::new("auth-flow").unwrap());
    let texts = [
        (ChangeFile::State, STATE),
        (ChangeFile::Clarifications, CLARIFICATIONS),
        (ChangeFile::Proposal, PROPOSAL),
        (spec, SPEC),
        (ChangeFile::Tasks, TASKS),
        (ChangeFile::Review, REVIEW),
    ];
    texts.into_iter().map(|(file, text)| (file, Source::Text(text.to_owned()))).collect()
}

/// The text of a file. Another spec than the one of the change is like that one.
fn source<'t>(texts: &'t mut BTreeMap<ChangeFile, Source>, file: &str) -> &'t mut Source {
    let file = ChangeFile::from_path(&RelPath::new(file).unwrap()).unwrap();
    let spec = match &file {
        ChangeFile::Spec(id) => SPEC.replace("auth-flow", id.as_str()),
        _ => String::new(),
    };
    texts.entry(file).or_insert(Source::Text(spec))
}

/// The change after these edits, and what the rules know beside it.
pub(crate) fn documents(edits: &[Edit]) -> (Documents, MainSpecs, Extras) {
    let mut texts = texts();
    let mut main = MainSpecs::new();
    let mut extras = Extras::default();
    for edit in edits {
        match *edit {
            Edit::In(file, "", new) => *source(&mut texts, file) = Source::Text(new.to_owned()),
            Edit::In(file, old, new) => {
                let source = source(&mut texts, file);
                let text = source.text().unwrap();
                assert!(text.contains(old), "{file} does not contain {old:?}");
                *source = Source::Text(text.replacen(old, new, 1));
            }
            Edit::Append(file, more) => {
                let source = source(&mut texts, file);
                *source = Source::Text(format!("{}{more}", source.text().unwrap()));
            }
            Edit::Gone(file) => *source(&mut texts, file) = Source::Missing,
            Edit::Unreadable(file) => *source(&mut texts, file) = Source::Unreadable("no".into()),
            Edit::Main(spec, ids) => {
                let ids = ids.iter().map(|id| id.parse().unwrap()).collect();
                main.insert(SpecId::new(spec).unwrap(), ids);
            }
            Edit::Heading(heading) => extras.required_headings.push(heading.to_owned()),
            Edit::Pattern(pattern) => {
                extras.scenario_pattern = Some(regex_lite::Regex::new(pattern).unwrap());
            }
            Edit::Scenarios(count) => extras.scenario_min_count = count,
            Edit::Rule(code, weight) => extras.rules.set(code, weight).unwrap(),
        }
    }
    (Documents::read(ChangeId::new("add-login").unwrap(), texts), main, extras)
}

/// What is found in the change after these edits.
pub(crate) fn reports(edits: &[Edit]) -> Vec<FileReport> {
    let (documents, main, extras) = documents(edits);
    documents.findings(&main, &extras)
}

/// Findings as `file:line:column CODE message`.
pub(crate) fn findings(edits: &[Edit]) -> Vec<String> {
    let mut lines = Vec::new();
    for report in reports(edits) {
        for diagnostic in &report.diagnostics {
            let (line, column) = line_column(&report.text, diagnostic.span.start);
            let (code, message) = (diagnostic.rule.code, &diagnostic.message);
            let file = report.file.in_change().unwrap().path();
            lines.push(format!("{file}:{line}:{column} {code} {message}"));
        }
    }
    lines
}
