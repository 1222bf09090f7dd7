//! Every rule of validation: what breaks it, where that is reported, and what just does not.

use std::collections::BTreeSet;

use agentd_core::rules;

use crate::example::Edit::{Append, Gone, Heading, In, Main, Pattern, Scenarios, Unreadable};
use crate::example::{Edit, findings, reports};

const PROPOSAL: &str = "proposal.md";
const SPEC: &str = "specs/auth-flow.md";
const TASKS: &str = "tasks.md";
const CLARIFICATIONS: &str = "clarifications.md";
const REVIEW: &str = "REVIEW.md";
const STATE: &str = "STATE.yaml";

/// Edits that break a rule, all that is found then (file, place and code), and edits that do not.
type Case = (&'static [Edit], &'static [&'static str], &'static [Edit]);

const BLOCK: &str = "\n<!-- agentd:review k -->\n\n## Review 1\n\n- **Verdict**: APPROVED\n\n<!-- /agentd:review k -->\n";
const BLOCK_WITHOUT_VERDICT: &str = "\n<!-- agentd:review k -->\n\n## Review 1\n\n- **Verdict**: not approved\n\n<!-- /agentd:review k -->\n";
const BLOCK_WITH_TWO: &str = "\n<!-- agentd:review k -->\n\n## Review 1\n\n- **Verdict**: APPROVED\n- **Verdict**: REJECTED\n\n<!-- /agentd:review k -->\n";
const SIX: &str = "\n## a\n- Question: a\n- Answer: b\n## b\n- Question: a\n- Answer: b\n## c\n- Question: a\n- Answer: b\n\
                   ## d\n- Question: a\n- Answer: b\n## e\n- Question: a\n- Answer: b\n";
const FIVE: &str = "\n## a\n- Question: a\n- Answer: b\n## b\n- Question: a\n- Answer: b\n## c\n- Question: a\n- Answer: b\n\
                    ## d\n- Question: a\n- Answer: b\n";

const FILES: &[Case] = &[
    (
        &[Unreadable(CLARIFICATIONS), Unreadable(STATE)],
        &["clarifications.md:1:1 F001", "STATE.yaml:1:1 F001"],
        &[Gone(CLARIFICATIONS)],
    ),
    (
        &[In(TASKS, "---\nchange_id: add-login\ntype: tasks\nversion: 1\n---\n", "")],
        &["tasks.md:1:1 F002"],
        &[In(TASKS, "change_id: add-login\ntype: tasks\nversion: 1\n", "")],
    ),
    (
        &[In(SPEC, "---\nid: auth-flow\ntype: spec\ntitle: Auth flow\nversion: 1\n---\n", "")],
        &["specs/auth-flow.md:1:1 F002"],
        &[In(SPEC, "id: auth-flow\ntype: spec\ntitle: Auth flow\nversion: 1\n", "# mine\n")],
    ),
    (
        &[In(TASKS, "version: 1\n---\n", "version: 1\n--\n")],
        &["tasks.md:1:1 F003"],
        &[In(TASKS, "version: 1\n---\n", "version: 1\n--- \n")],
    ),
    (
        &[In(TASKS, "version: 1\n", "version: é one\n")],
        &["tasks.md:4:10 F004"],
        &[In(TASKS, "version: 1\n", "version: 1 # one\n")],
    ),
    (
        &[In(SPEC, "title: Auth flow\n", "title: Fix: the login\n")],
        &["specs/auth-flow.md:4:11 F004"],
        &[In(SPEC, "title: Auth flow\n", "title: \"Fix: the login\"\n")],
    ),
    (
        &[In(TASKS, "type: tasks", "type: spec")],
        &["tasks.md:2:1 F005"],
        &[In(TASKS, "type: tasks\n", "")],
    ),
    (
        &[In(SPEC, "id: auth-flow", "id: Auth Flow")],
        &["specs/auth-flow.md:2:1 F006"],
        &[In(SPEC, "id: auth-flow\n", "")],
    ),
    (
        &[In(TASKS, "change_id: add-login", "change_id: add-logout")],
        &["tasks.md:2:1 F007"],
        &[In(TASKS, "change_id: add-login\n", "")],
    ),
    (
        &[
            In(REVIEW, "change_id: add-login", "change_id: other"),
            In(CLARIFICATIONS, "change: add-login", "change: other"),
        ],
        &["clarifications.md:2:1 F007", "REVIEW.md:2:1 F007"],
        &[In(REVIEW, "change_id: add-login\n", ""), In(CLARIFICATIONS, "change: add-login\n", "")],
    ),
    (
        &[Append(SPEC, "\n## Flow\n\n```mermaid\na\n")],
        &["specs/auth-flow.md:31:1 F008"],
        &[Append(SPEC, "\n## Flow\n\n```mermaid\na\n```\n")],
    ),
    (
        &[Gone(TASKS), Gone(PROPOSAL)],
        &["proposal.md:1:1 F009", "tasks.md:1:1 F009"],
        &[Gone(STATE), Gone(REVIEW)],
    ),
    (
        &[In(STATE, "phase: proposed", "phase: banana")],
        &["STATE.yaml:2:8 F010"],
        &[In(STATE, "phase: proposed", "phase: archived")],
    ),
    (
        &[In(STATE, "add-login", "add-logout")],
        &["STATE.yaml:1:1 F010"],
        &[In(STATE, "phase: proposed", "phase: proposed # mine")],
    ),
];

const PROPOSALS: &[Case] = &[
    (
        &[In(PROPOSAL, "## Why\n", "## Because\n")],
        &["proposal.md:2:1 P001"],
        &[In(PROPOSAL, "## Why\n", "## WHY\n")],
    ),
    (
        &[
            In(PROPOSAL, "They ask for it.\n\n", ""),
            In(PROPOSAL, "- A login form\n", "A login form\n"),
        ],
        &["proposal.md:16:1 P002", "proposal.md:18:1 P002"],
        &[In(PROPOSAL, "They ask for it.", "*"), In(PROPOSAL, "- A", "* A")],
    ),
    (
        &[In(PROPOSAL, ": minor", ": huge")],
        &["proposal.md:26:1 P003"],
        &[In(PROPOSAL, ": minor", ": `MAJOR`")],
    ),
    (
        &[In(PROPOSAL, "---\n\n#", "  - session-store\n---\n\n#")],
        &["proposal.md:2:1 P004"],
        &[
            In(PROPOSAL, "---\n\n#", "  - session-store\n---\n\n#"),
            In("specs/session-store.md", "version: 1", "version: 2"),
            Append(
                TASKS,
                "\n### Task 2.2: More\n\n- File: MODIFY src/a.rs\n- Spec: session-store\n\nDo it.\n",
            ),
        ],
    ),
    (
        &[In(
            PROPOSAL,
            "affected_specs:\n  - id: auth-flow\n    depends: []\n",
            "affected_specs: []\n",
        )],
        &["proposal.md:2:1 P005"],
        &[In(
            PROPOSAL,
            "affected_specs:\n  - id: auth-flow\n    depends: []\n",
            "affected_specs: [auth-flow]\n",
        )],
    ),
    (
        &[In(PROPOSAL, "depends: []", "depends: [session-store]")],
        &["proposal.md:2:1 P006"],
        &[In(PROPOSAL, "    depends: []\n", "")],
    ),
    (
        &[In(PROPOSAL, "depends: []", "depends: [auth-flow]")],
        &["proposal.md:2:1 P007"],
        &[In(PROPOSAL, "    depends: []\n", "    depends: [ ]\n")],
    ),
    (
        &[In(PROPOSAL, "---\n\n#", "  - auth-flow\n---\n\n#")],
        &["proposal.md:2:1 P008"],
        &[In(PROPOSAL, "---\n\n#", "# - auth-flow\n---\n\n#")],
    ),
    (
        &[
            In(
                PROPOSAL,
                "---\nid: add-login\ntype: proposal\nversion: 1\naffected_specs:\n  - id: auth-flow\n    depends: []\n---\n",
                "",
            ),
            In(PROPOSAL, "minor", "minor\n- Affected specs: auth-flow"),
        ],
        &["proposal.md:1:1 P009"],
        &[
            In(
                PROPOSAL,
                "id: add-login\ntype: proposal\nversion: 1\naffected_specs:\n  - id: auth-flow\n    depends: []\n",
                "",
            ),
            In(PROPOSAL, "minor", "minor\n- Affected specs: auth-flow"),
        ],
    ),
];

const SPECS: &[Case] = &[
    (
        &[In(SPEC, "## Overview\n\nHow people sign in.\n\n", "")],
        &["specs/auth-flow.md:2:1 S001"],
        &[In(SPEC, "## Overview", "## overview")],
    ),
    (
        &[In(SPEC, "How people sign in.\n\n", "")],
        &["specs/auth-flow.md:10:1 S002"],
        &[In(SPEC, "How people sign in.", "x")],
    ),
    (
        &[
            In(
                SPEC,
                "### R1: Session\n\n**Priority**: high\n\nThe server MUST return 401 when the password is wrong.\n\n",
                "",
            ),
            In(TASKS, "auth-flow:R1", "auth-flow"),
            In(TASKS, "auth-flow:R1", "auth-flow"),
        ],
        &["specs/auth-flow.md:14:1 S003"],
        &[
            In(
                SPEC,
                "### R1: Session\n\n**Priority**: high\n\nThe server MUST return 401 when the password is wrong.\n\n",
                "",
            ),
            In(SPEC, "version: 1", "version: 1\nremoves: [R1]"),
            Main("auth-flow", &["R1"]),
        ],
    ),
    (
        &[In(
            SPEC,
            "## Acceptance",
            "### Session timeout\n\nIt MUST end after 5 minutes.\n\n## Acceptance",
        )],
        &["specs/auth-flow.md:22:1 S004"],
        &[
            In(
                SPEC,
                "## Acceptance",
                "### R2: Session timeout\n\nIt MUST end after 5 minutes.\n\n## Acceptance",
            ),
            In(TASKS, "auth-flow:R1", "auth-flow:R2"),
        ],
    ),
    (
        &[In(
            SPEC,
            "## Acceptance",
            "### r1: Again\n\nIt MUST end after 5 minutes.\n\n## Acceptance",
        )],
        &["specs/auth-flow.md:22:1 S005"],
        &[
            In(
                SPEC,
                "## Acceptance",
                "### R10: Again\n\nIt MUST end after 5 minutes.\n\n## Acceptance",
            ),
            In(TASKS, "auth-flow:R1", "auth-flow:R10"),
        ],
    ),
    (
        &[In(SPEC, "The server MUST return 401 when the password is wrong.\n", "")],
        &["specs/auth-flow.md:16:1 S006"],
        &[In(SPEC, "The server MUST return 401 when the password is wrong.\n", "MUST be 401\n")],
    ),
    (
        &[In(SPEC, "**Priority**: high", "**Priority**: urgent")],
        &["specs/auth-flow.md:18:1 S007"],
        &[In(SPEC, "**Priority**: high", "- Priority: LOW")],
    ),
    (
        &[Scenarios(2)],
        &["specs/auth-flow.md:22:1 S008"],
        &[
            Scenarios(2),
            In(SPEC, "## Acceptance", "#### Scenario: Nested\n- WHEN a THEN b\n\n## Acceptance"),
        ],
    ),
    (
        &[In(SPEC, "- **WHEN** the password is wrong\n", "- **GIVEN** a wrong password\n")],
        &["specs/auth-flow.md:24:1 S009"],
        &[In(SPEC, "- **WHEN** the password", "* WHEN: the password")],
    ),
    (
        &[In(SPEC, "- **THEN** the", "- Then the")],
        &["specs/auth-flow.md:24:1 S010"],
        &[In(SPEC, "- **THEN** the", "- **Then** the")],
    ),
    (
        &[Append(SPEC, "\n### Scenario: wrong PASSWORD\n- WHEN a THEN b\n")],
        &["specs/auth-flow.md:29:1 S011"],
        &[Append(SPEC, "\n### Scenario: Wrong passwords\n- WHEN a THEN b\n")],
    ),
    (
        &[
            In(SPEC, "version: 1", "version: 1\nremoves: [R2]\nrenames: {R3: x}"),
            Main("auth-flow", &["R1"]),
        ],
        &["specs/auth-flow.md:2:1 S012", "specs/auth-flow.md:2:1 S012"],
        &[
            In(SPEC, "version: 1", "version: 1\nremoves: [R2]\nrenames: {R3: x}"),
            Main("auth-flow", &["R2", "R3"]),
        ],
    ),
    (
        &[In(SPEC, "version: 1", "version: 1\nremoves: [R1]"), Main("auth-flow", &["R1"])],
        &["specs/auth-flow.md:17:1 S012"],
        &[
            In(SPEC, "version: 1", "version: 1\nrenames: {R1: Sessions}"),
            Main("auth-flow", &["R1"]),
        ],
    ),
    (
        &[Pattern("GIVEN .* WHEN .* THEN ")],
        &["specs/auth-flow.md:24:1 S013"],
        &[Pattern("^WHEN .* THEN the answer")],
    ),
    (&[Heading("Security")], &["specs/auth-flow.md:2:1 S014"], &[Heading("overview")]),
    (
        &[In(SPEC, "return 401", "fast return 401")],
        &["specs/auth-flow.md:20:17 Q001"],
        &[In(SPEC, "return 401", "`fast` return 401")],
    ),
    (
        &[In(SPEC, "MUST return", "returns")],
        &["specs/auth-flow.md:16:1 Q002"],
        &[In(SPEC, "MUST return", "shall return")],
    ),
    (
        &[In(
            SPEC,
            "The server MUST return 401 when the password is wrong.",
            "The server MUST be good.",
        )],
        &["specs/auth-flow.md:16:1 Q003"],
        &[In(
            SPEC,
            "The server MUST return 401 when the password is wrong.",
            "The server MUST be `good`.",
        )],
    ),
    (
        &[
            In(SPEC, "Scenario: Wrong password", "Scenario: Sign in"),
            In(SPEC, "WHEN** the password is wrong", "WHEN** the password is right"),
            In(SPEC, "THEN** the answer is 401", "THEN** the answer is 200"),
        ],
        &["specs/auth-flow.md:22:1 Q004"],
        &[
            In(SPEC, "Scenario: Wrong password", "Scenario: Sign in"),
            In(SPEC, "password is wrong\n- ", "password is right\n- "),
        ],
    ),
    (
        &[
            In(SPEC, "return 401", "return é TBD or ???"),
            In(PROPOSAL, "ask for", "ask: é TODO"),
            In(TASKS, "the table", "FIXME"),
        ],
        &[
            "proposal.md:18:13 Q005",
            "specs/auth-flow.md:20:26 Q005",
            "specs/auth-flow.md:20:33 Q005",
            "tasks.md:11:1 Q005",
        ],
        &[In(SPEC, "return 401", "return 401 from TBDS"), In(TASKS, "the table", "the to-do list")],
    ),
];

const TASK_CASES: &[Case] = &[
    (
        &[In(TASKS, "", "---\nchange_id: add-login\n---\n\n# Tasks: add-login\n\nNone.\n")],
        &["tasks.md:5:1 T001"],
        &[In(
            TASKS,
            "",
            "---\nchange_id: add-login\n---\n# T\n- [ ] 1.1 Do\n  File: CREATE a.rs\n  Spec: auth-flow\n  Do it.\n",
        )],
    ),
    // Nothing at all is no plan, whatever else is wrong with it.
    (&[In(TASKS, "", "\n")], &["tasks.md:1:1 F002", "tasks.md:1:1 T001"], &[]),
    (
        &[In(TASKS, "Task 2.1", "Task banana.1")],
        &["tasks.md:26:1 T002"],
        &[In(TASKS, "Task 2.1", "Task logic.1"), In(TASKS, "\"1.1\"]", "\"data.1\"]")],
    ),
    (
        &[
            In(TASKS, "Task 2.1", "Task 1.1"),
            In(TASKS, "\"2.1\"", "\"1.1\""),
            In(TASKS, "[\"1.1\"]", "[]"),
        ],
        &["tasks.md:26:1 T003"],
        &[In(TASKS, "Task 2.1", "Task 2.10"), In(TASKS, "\"2.1\"", "2.10")],
    ),
    (
        &[In(TASKS, "action: MODIFY\n", "action: [MODIFY\n")],
        &["tasks.md:26:1 T009", "tasks.md:26:1 T011", "tasks.md:26:1 T013", "tasks.md:30:9 T004"],
        &[In(TASKS, "action: MODIFY\n", "action: 'MODIFY'\n")],
    ),
    (
        &[In(TASKS, "depends_on: []", "depends_on: [logic.1]")],
        &["tasks.md:11:1 T005", "tasks.md:11:1 T016"],
        &[In(TASKS, "depends_on: []", "depends_on: none")],
    ),
    (
        &[In(TASKS, "[\"1.1\"]", "[\"1.1\", \"1.2\"]")],
        &["tasks.md:26:1 T006"],
        &[In(TASKS, "[\"1.1\"]", "[\"1.1\", \"1.1\"]")],
    ),
    (
        &[In(TASKS, "\"auth-flow:R1\"", "[\"auth-flow:R1\", \"auth-flow:1\"]")],
        &["tasks.md:14:1 T007"],
        &[In(TASKS, "\"auth-flow:R1\"", "auth-flow#R1")],
    ),
    (
        &[In(TASKS, "auth-flow:R1", "auth-flow:R9")],
        &["tasks.md:11:1 T008"],
        &[In(TASKS, "auth-flow:R1", "auth-flow:R9"), Main("auth-flow", &["R9"])],
    ),
    (
        &[In(TASKS, "spec_ref: \"auth-flow:R1\"\n", "")],
        &["tasks.md:11:1 T009"],
        &[In(TASKS, "spec_ref: \"auth-flow:R1\"\n", "spec_ref: auth-flow\n")],
    ),
    (
        &[In(
            SPEC,
            "## Acceptance",
            "### R2: More\n\nIt MUST end after 5 minutes.\n\n## Acceptance",
        )],
        &["tasks.md:7:1 T010"],
        &[
            In(
                SPEC,
                "## Acceptance",
                "### R2: More\n\nIt MUST end after 5 minutes.\n\n## Acceptance",
            ),
            In(TASKS, "auth-flow:R1", "auth-flow"),
        ],
    ),
    (
        &[In(TASKS, "file: src/login.rs\n", "")],
        &["tasks.md:26:1 T011"],
        &[In(TASKS, "file: src/login.rs\n", "file: {path: src/login.rs}\n")],
    ),
    (
        &[In(TASKS, "src/login.rs", "/etc/passwd"), In(TASKS, "src/session.rs", "src/../../x")],
        &["tasks.md:11:1 T012", "tasks.md:26:1 T012"],
        &[In(TASKS, "src/login.rs", "etc/passwd"), In(TASKS, "src/session.rs", "./src//..x")],
    ),
    (
        &[In(TASKS, "src/login.rs", "C:\\x"), In(TASKS, "src/session.rs", ".")],
        &["tasks.md:11:1 T012", "tasks.md:26:1 T012"],
        &[],
    ),
    (&[In(TASKS, "MODIFY", "RENAME")], &["tasks.md:29:1 T013"], &[In(TASKS, "MODIFY", "modify")]),
    // Each task has an action, also where another one is wrong already.
    (
        &[In(TASKS, "CREATE", "RENAME"), In(TASKS, "action: MODIFY\n", "")],
        &["tasks.md:14:1 T013", "tasks.md:26:1 T013"],
        &[],
    ),
    (
        &[In(TASKS, "status: pending", "status: banana")],
        &["tasks.md:14:1 T014"],
        &[In(TASKS, "status: pending", "status: TODO")],
    ),
    (
        &[In(TASKS, "id: \"2.1\"", "id: \"2.2\"")],
        &["tasks.md:29:1 T015"],
        &[In(TASKS, "id: \"2.1\"", "id: logic.1")],
    ),
    (
        &[
            In(TASKS, "## 2. Logic Layer", "## 9. Other"),
            In(TASKS, "Task 2.1", "Task 9.1"),
            In(TASKS, "\"2.1\"", "\"9.1\""),
        ],
        &["tasks.md:26:1 T016"],
        &[
            In(TASKS, "## 2. Logic Layer", "## 9. Logic"),
            In(TASKS, "Task 2.1", "Task 9.1"),
            In(TASKS, "\"2.1\"", "\"9.1\""),
        ],
    ),
    (
        &[In(TASKS, "Compare the hashes.\n", "")],
        &["tasks.md:26:1 T017"],
        &[In(TASKS, "Compare the hashes.", "*")],
    ),
    (
        &[
            In(TASKS, "src/login.rs", "agentd/changes/x/STATE.yaml"),
            In(TASKS, "src/session.rs", ".GIT/config"),
        ],
        &["tasks.md:11:1 T018", "tasks.md:26:1 T018"],
        &[In(TASKS, "src/login.rs", "src/agentd/x"), In(TASKS, "src/session.rs", ".github/x")],
    ),
];

const REVIEWS: &[Case] = &[
    (
        &[In(REVIEW, "verdict: APPROVED", "verdict: not approved")],
        &["REVIEW.md:2:1 R001"],
        &[In(REVIEW, "APPROVED", "approved")],
    ),
    (
        &[Append(PROPOSAL, BLOCK_WITHOUT_VERDICT)],
        &["proposal.md:28:1 R001", "proposal.md:28:1 R003"],
        &[Append(PROPOSAL, "\n```\n<!-- agentd:review k -->\n\n<!-- /agentd:review k -->\n```\n")],
    ),
    (&[Append(PROPOSAL, BLOCK_WITH_TWO)], &["proposal.md:28:1 R001", "proposal.md:28:1 R003"], &[]),
    (
        &[In(REVIEW, "- **Severity**: LOW", "- **Severity**: urgent")],
        &["REVIEW.md:15:1 R002"],
        &[In(REVIEW, "- **Severity**: LOW", "* severity: lOw")],
    ),
    (
        &[Append(PROPOSAL, BLOCK)],
        &["proposal.md:28:1 R003"],
        &[Append(PROPOSAL, "\n<!-- a comment -->\n")],
    ),
    (
        &[In(CLARIFICATIONS, "- **Answer**: A page.\n", "")],
        &["clarifications.md:7:1 C001"],
        &[In(CLARIFICATIONS, "- **Answer**", "**answer**")],
    ),
    (
        &[Append(CLARIFICATIONS, SIX)],
        &["clarifications.md:24:1 C002"],
        &[Append(CLARIFICATIONS, FIVE)],
    ),
];

fn check(cases: &[Case]) {
    assert_eq!(findings(&[]), [""; 0], "the example itself");
    for (bad, expected, good) in cases {
        let found = findings(bad);
        let short: Vec<String> = found
            .iter()
            .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(short, *expected, "{found:#?}");
        assert_eq!(findings(good), [""; 0], "the good twin of {expected:?}");
    }
}

#[test]
fn files_and_frontmatter() {
    check(FILES);
}

#[test]
fn proposals() {
    check(PROPOSALS);
}

#[test]
fn specs_and_their_words() {
    check(SPECS);
}

#[test]
fn tasks() {
    check(TASK_CASES);
}

#[test]
fn reviews_and_clarifications() {
    check(REVIEWS);
}

#[test]
fn every_rule_has_a_case() {
    let cases = [FILES, PROPOSALS, SPECS, TASK_CASES, REVIEWS].concat();
    let tested: BTreeSet<&str> = cases
        .iter()
        .flat_map(|(_, expected, _)| expected.iter())
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    let all: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.code).collect();
    assert_eq!(tested, all);
}

/// Lesson 6: what earlier programs let pass, with the words that people see.
#[test]
fn lesson_6_is_told_in_full() {
    let all = findings(&[
        In(TASKS, "depends_on: []", "depends_on: [\"2.1\", \"3.7\"]"),
        In(TASKS, "src/login.rs", "/etc/passwd"),
        In(TASKS, "auth-flow:R1", "auth-flow:R7"),
        In(SPEC, "## Acceptance", "### R1: Twice\n\nIt MUST end after 5 minutes.\n\n## Acceptance"),
    ]);
    let expected = [
        "specs/auth-flow.md:22:1 S005 R1 is there twice",
        "tasks.md:11:1 T005 Circular dependency detected: data.1 → logic.1 → data.1 (1.1 → 2.1 → 1.1)",
        "tasks.md:11:1 T006 task 1.1 depends on 3.7, which does not exist",
        "tasks.md:11:1 T008 task 1.1 points to auth-flow:R7, which does not exist",
        "tasks.md:11:1 T016 task 1.1 depends on 2.1 of a later layer",
        "tasks.md:26:1 T012 task 2.1: path `/etc/passwd` is absolute; paths are relative to the project",
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_dangling_reference_is_told_what_there_is() {
    let found = reports(&[In(TASKS, "auth-flow:R1", "auth-flow:R7"), Main("auth-flow", &["R3"])]);
    let advice: Vec<&str> = found[0].diagnostics.iter().map(|d| d.advice()).collect();
    assert_eq!(advice, ["`auth-flow` has R1, R3."]);
}

#[test]
fn a_circle_of_three_specs_is_told_as_its_chain() {
    let specs = "affected_specs:\n  - {id: c, depends: [a]}\n  - {id: auth-flow, depends: [c]}\n  - {id: a, depends: [auth-flow]}\n";
    let found =
        findings(&[In(PROPOSAL, "affected_specs:\n  - id: auth-flow\n    depends: []\n", specs)]);
    let expected = [
        "proposal.md:2:1 P004 specs/c.md is missing or cannot be read",
        "proposal.md:2:1 P004 specs/a.md is missing or cannot be read",
        "proposal.md:2:1 P007 circular dependency of specs: c → a → auth-flow → c",
    ];
    assert_eq!(found, expected);
}
