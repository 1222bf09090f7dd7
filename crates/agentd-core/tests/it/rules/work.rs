//! Cases for tasks, reviews and clarifications.

use super::{CLARIFICATIONS, Case, PROPOSAL, REVIEW, SPEC, TASKS};
use crate::example::Edit::{Append, In, Main};

const BLOCK: &str = "\n<!-- agentd:review k -->\n\n## Review 1\n\n- **Verdict**: APPROVED\n\n<!-- /agentd:review k -->\n";
const BLOCK_WITHOUT_VERDICT: &str = "\n<!-- agentd:review k -->\n\n## Review 1\n\n- **Verdict**: not approved\n\n<!-- /agentd:review k -->\n";
const BLOCK_WITH_TWO: &str = "\n<!-- agentd:review k -->\n\n## Review 1\n\n- **Verdict**: APPROVED\n- **Verdict**: REJECTED\n\n<!-- /agentd:review k -->\n";
const BAD_CHECKBOX: &str = "\n## 3. Integration Layer\n\n- [ ] 3.1 Third\n  Action: RENAME\n  File: c.rs\n  Spec: auth-flow:R1\n  Do.\n";
const SIX: &str = "\n## a\n- Question: a\n- Answer: b\n## b\n- Question: a\n- Answer: b\n## c\n- Question: a\n- Answer: b\n\
                   ## d\n- Question: a\n- Answer: b\n## e\n- Question: a\n- Answer: b\n";
const FIVE: &str = "\n## a\n- Question: a\n- Answer: b\n## b\n- Question: a\n- Answer: b\n## c\n- Question: a\n- Answer: b\n\
                    ## d\n- Question: a\n- Answer: b\n";

pub(super) const TASK_CASES: &[Case] = &[
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
        &["tasks.md:30:9 T004"],
        &[In(TASKS, "action: MODIFY\n", "action: 'MODIFY'\n")],
    ),
    (
        &[In(TASKS, "depends_on: []", "depends_on: [logic.1]")],
        &["tasks.md:11:1 T005", "tasks.md:18:1 T016"],
        &[In(TASKS, "depends_on: []", "depends_on: none")],
    ),
    (
        &[In(TASKS, "[\"1.1\"]", "[\"1.1\", \"1.2\"]")],
        &["tasks.md:33:22 T006"],
        &[In(TASKS, "[\"1.1\"]", "[\"1.1\", \"1.1\"]")],
    ),
    (
        &[In(TASKS, "\"auth-flow:R1\"", "[\"auth-flow:R1\", \"auth-flow:1\"]")],
        &["tasks.md:14:1 T007"],
        &[In(TASKS, "\"auth-flow:R1\"", "auth-flow#R1")],
    ),
    (
        &[In(TASKS, "auth-flow:R1", "auth-flow:R9")],
        &["tasks.md:17:12 T008"],
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
        &["tasks.md:16:7 T012", "tasks.md:31:7 T012"],
        &[In(TASKS, "src/login.rs", "etc/passwd"), In(TASKS, "src/session.rs", "./src//..x")],
    ),
    (
        &[In(TASKS, "src/login.rs", "C:\\x"), In(TASKS, "src/session.rs", ".")],
        &["tasks.md:16:7 T012", "tasks.md:31:7 T012"],
        &[],
    ),
    (&[In(TASKS, "MODIFY", "RENAME")], &["tasks.md:30:9 T013"], &[In(TASKS, "MODIFY", "modify")]),
    // Each task has an action, also where another one is wrong already.
    (
        &[In(TASKS, "CREATE", "RENAME"), In(TASKS, "action: MODIFY\n", "")],
        &["tasks.md:15:9 T013", "tasks.md:26:1 T013"],
        &[],
    ),
    // Of a checkbox, everything is reported where it starts.
    (
        &[Append(TASKS, BAD_CHECKBOX)],
        &["tasks.md:41:1 T013"],
        &[Append(
            TASKS,
            "\n## 3. Integration Layer\n\n- [ ] 3.1 Third\n  Action: delete\n  File: c.rs\n  Spec: auth-flow:R1\n  Do.\n",
        )],
    ),
    (
        &[In(TASKS, "action: MODIFY\n", ""), Append(TASKS, BAD_CHECKBOX)],
        &["tasks.md:26:1 T013", "tasks.md:40:1 T013"],
        &[],
    ),
    (
        &[In(TASKS, "status: pending", "status: banana")],
        &["tasks.md:19:9 T014"],
        &[In(TASKS, "status: pending", "status: TODO")],
    ),
    (
        &[In(TASKS, "id: \"2.1\"", "id: \"2.2\"")],
        &["tasks.md:29:6 T015"],
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
    // A task may wait for another one of its layer.
    (
        &[Append(
            TASKS,
            "\n## 3. Integration\n\n- [ ] 3.1 A\n  File: CREATE c.rs\n  Spec: auth-flow\n  Depends: 4.1\n  Do.\n\n\
                         ## 4. Testing\n\n- [ ] 4.1 B\n  File: CREATE d.rs\n  Spec: auth-flow\n  Do.\n",
        )],
        &["tasks.md:44:12 T016"],
        &[Append(
            TASKS,
            "\n## 3. Integration\n\n- [ ] 3.1 A\n  File: CREATE c.rs\n  Spec: auth-flow\n  Depends: 3.2\n  Do.\n\
                         - [ ] 3.2 B\n  File: CREATE d.rs\n  Spec: auth-flow\n  Do.\n",
        )],
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
        &["tasks.md:16:7 T018", "tasks.md:31:7 T018"],
        &[In(TASKS, "src/login.rs", "src/agentd/x"), In(TASKS, "src/session.rs", ".github/x")],
    ),
    (
        &[Append(
            TASKS,
            "\n## 3. Integration Layer\n\n- [ ] Third\n  File: CREATE c.rs\n  Spec: auth-flow:R1\n  Do.\n",
        )],
        &["tasks.md:41:1 T020"],
        &[Append(
            TASKS,
            "\n## 3. Integration Layer\n\n- [ ] 3.1 Third\n  File: CREATE c.rs\n  Spec: auth-flow:R1\n  Do.\n",
        )],
    ),
];

pub(super) const REVIEWS: &[Case] = &[
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
