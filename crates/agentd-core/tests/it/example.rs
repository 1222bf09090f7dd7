//! One valid change, small enough to count its lines, and ways to spoil it.

use agentd_core::check::{self, ChangeTexts, Extras, FileReport, MainSpecs, Source};
use agentd_core::ids::{ChangeId, SpecId};
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
}

pub(crate) fn change() -> ChangeTexts {
    let text = |text: &str| Source::Text(text.to_owned());
    ChangeTexts {
        id: ChangeId::new("add-login").unwrap(),
        state: text(STATE),
        clarifications: text(CLARIFICATIONS),
        proposal: text(PROPOSAL),
        specs: vec![(SpecId::new("auth-flow").unwrap(), text(SPEC))],
        tasks: text(TASKS),
        review: text(REVIEW),
    }
}

fn source<'c>(change: &'c mut ChangeTexts, file: &str) -> &'c mut Source {
    match file {
        "STATE.yaml" => &mut change.state,
        "clarifications.md" => &mut change.clarifications,
        "proposal.md" => &mut change.proposal,
        "tasks.md" => &mut change.tasks,
        "REVIEW.md" => &mut change.review,
        _ => {
            let name = file.strip_prefix("specs/").and_then(|name| name.strip_suffix(".md"));
            let id = SpecId::new(name.unwrap()).unwrap();
            let at = change.specs.iter().position(|(spec, _)| *spec == id);
            let at = at.unwrap_or_else(|| {
                change.specs.push((id, Source::Text(SPEC.replace("auth-flow", name.unwrap()))));
                change.specs.len() - 1
            });
            &mut change.specs[at].1
        }
    }
}

/// What is found in the change after these edits.
pub(crate) fn reports(edits: &[Edit]) -> Vec<FileReport> {
    let mut change = change();
    let mut main = MainSpecs::new();
    let mut extras = Extras::default();
    for edit in edits {
        match *edit {
            Edit::In(file, "", new) => *source(&mut change, file) = Source::Text(new.to_owned()),
            Edit::In(file, old, new) => {
                let source = source(&mut change, file);
                let text = source.text().unwrap();
                assert!(text.contains(old), "{file} does not contain {old:?}");
                *source = Source::Text(text.replacen(old, new, 1));
            }
            Edit::Append(file, more) => {
                let source = source(&mut change, file);
                *source = Source::Text(format!("{}{more}", source.text().unwrap()));
            }
            Edit::Gone(file) => *source(&mut change, file) = Source::Missing,
            Edit::Unreadable(file) => *source(&mut change, file) = Source::Unreadable("no".into()),
            Edit::Main(spec, ids) => {
                let ids = ids.iter().map(|id| id.parse().unwrap()).collect();
                main.insert(SpecId::new(spec).unwrap(), ids);
            }
            Edit::Heading(heading) => extras.required_headings.push(heading.to_owned()),
            Edit::Pattern(pattern) => {
                extras.scenario_pattern = Some(regex_lite::Regex::new(pattern).unwrap());
            }
            Edit::Scenarios(count) => extras.scenario_min_count = count,
        }
    }
    check::change(&change, &main, &extras)
}

/// Findings as `file:line:column CODE message`.
pub(crate) fn findings(edits: &[Edit]) -> Vec<String> {
    let mut lines = Vec::new();
    for report in reports(edits) {
        for diagnostic in &report.diagnostics {
            let (line, column) = line_column(&report.text, diagnostic.span.start);
            let (code, message) = (diagnostic.rule.code, &diagnostic.message);
            lines.push(format!("{}:{line}:{column} {code} {message}", report.file));
        }
    }
    lines
}
