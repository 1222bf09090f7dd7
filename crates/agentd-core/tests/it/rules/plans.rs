//! Cases for files as such, proposals and specs.

use super::{CLARIFICATIONS, Case, PROPOSAL, REVIEW, SPEC, STATE, TASKS};
use crate::example::Edit::{Append, Gone, Heading, In, Main, Pattern, Scenarios, Unreadable};

pub(super) const FILES: &[Case] = &[
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

pub(super) const PROPOSALS: &[Case] = &[
    (
        &[In(PROPOSAL, "## Why\n", "## Because\n")],
        &["proposal.md:10:1 P001"],
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
        &["proposal.md:8:5 P004"],
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
        &["proposal.md:2:1 P005", "tasks.md:17:12 T008", "tasks.md:32:12 T008"],
        &[In(
            PROPOSAL,
            "affected_specs:\n  - id: auth-flow\n    depends: []\n",
            "affected_specs: [auth-flow]\n",
        )],
    ),
    (
        &[In(PROPOSAL, "depends: []", "depends: [session-store]")],
        &["proposal.md:6:9 P006"],
        &[In(PROPOSAL, "    depends: []\n", "")],
    ),
    (
        &[In(PROPOSAL, "depends: []", "depends: [auth-flow]")],
        &["proposal.md:2:1 P007"],
        &[In(PROPOSAL, "    depends: []\n", "    depends: [ ]\n")],
    ),
    (
        &[In(PROPOSAL, "---\n\n#", "  - auth-flow\n---\n\n#")],
        &["proposal.md:6:9 P008"],
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

const CRITERIA: &str = "## Acceptance Criteria\n\n### Scenario: Wrong password\n\n- **WHEN** the password is wrong\n- **THEN** the answer is 401\n";

pub(super) const SPECS: &[Case] = &[
    (
        &[In(SPEC, "## Overview\n\nHow people sign in.\n\n", "")],
        &["specs/auth-flow.md:8:1 S001"],
        &[In(SPEC, "## Overview", "## overview")],
    ),
    // Scenarios stand under their requirement, or in a section of their own.
    (
        &[In(SPEC, CRITERIA, "")],
        &["specs/auth-flow.md:2:1 S008", "specs/auth-flow.md:8:1 S001"],
        &[In(SPEC, CRITERIA, "#### Scenario: Wrong password\n- WHEN a THEN the answer is 401\n")],
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
        &["specs/auth-flow.md:6:11 S012", "specs/auth-flow.md:7:11 S012"],
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
    // Short words of failure count whole, longer ones as stems.
    (
        &[
            In(SPEC, "Scenario: Wrong password", "Scenario: Notebook"),
            In(SPEC, "WHEN** the password is wrong", "WHEN** the badge is shown"),
            In(SPEC, "THEN** the answer is 401", "THEN** the note is 4012"),
        ],
        &["specs/auth-flow.md:22:1 Q004"],
        &[
            In(SPEC, "Scenario: Wrong password", "Scenario: Cancelled"),
            In(SPEC, "WHEN** the password is wrong", "WHEN** the badge is shown"),
            In(SPEC, "THEN** the answer is 401", "THEN** the note is 4012"),
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
    (
        &[In(
            SPEC,
            "The server MUST",
            "<!-- agentd:allow Q001, Q002: it was vague -->\nThe server MUST",
        )],
        &["specs/auth-flow.md:20:1 A001", "specs/auth-flow.md:20:1 A001"],
        &[In(SPEC, "The server MUST", "<!-- agentd:allow Q001: a name -->\nThe fast server MUST")],
    ),
    (
        &[
            In(SPEC, "The server MUST", "<!-- agentd:allow Q001 -->\nThe server MUST"),
            In(PROPOSAL, "They ask", "<!-- agentd:allow Q009: why -->\nThey ask"),
            In(TASKS, "Write the table.", "<!-- agentd:allow T011: why -->\nWrite the table."),
        ],
        &["proposal.md:18:1 A002", "specs/auth-flow.md:20:1 A002", "tasks.md:22:1 A002"],
        &[In(SPEC, "The server MUST", "<!-- agentd:allowed Q001 -->\nThe server MUST")],
    ),
];
