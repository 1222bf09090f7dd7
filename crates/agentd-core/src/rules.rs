//! Every rule of validation, in one table. A code never changes its meaning;
//! a rule that is given up leaves its code unused.

use crate::diagnostic::{Example, Rule, Severity};

macro_rules! rules {
    ($($ident:ident = $code:literal $name:literal $severity:ident
        $summary:literal why $why:literal fix $fix:literal $(bad $bad:literal good $good:literal)?;)*) => {
        $(
            #[doc = $summary]
            pub static $ident: Rule = Rule {
                code: $code,
                name: $name,
                severity: Severity::$severity,
                summary: $summary,
                why: $why,
                fix: $fix,
                example: rules!(@example $($bad, $good)?),
            };
        )*
        /// All rules, in the order of their codes.
        pub static ALL: &[&Rule] = &[$(&$ident),*];
    };
    (@example) => { None };
    (@example $bad:literal, $good:literal) => { Some(Example { bad: $bad, good: $good }) };
}

/// The rule with this code or name, in any case.
pub fn find(code: &str) -> Option<&'static Rule> {
    ALL.iter()
        .find(|rule| rule.code.eq_ignore_ascii_case(code) || rule.name.eq_ignore_ascii_case(code))
        .copied()
}

rules! {
    ALLOW_UNUSED = "A001" "allow-unused" Low
        "An `agentd:allow` comment is where a finding is."
        why "The text behind it was changed, or the rule was; the next finding would be allowed unseen."
        fix "Delete the comment.";
    ALLOW_INVALID = "A002" "allow-invalid" Medium
        "An `agentd:allow` comment names rules about wording, which are those in Q, and a reason."
        why "The comment does nothing as it is, and a finding that is allowed without a reason cannot be judged."
        fix "Write `<!-- agentd:allow Q001: <reason> -->` on a line of its own."
        bad "<!-- agentd:allow Q001 -->" good "<!-- agentd:allow Q001: `fast` is the name of the mode -->";

    FILE_UNREADABLE = "F001" "file-unreadable" High
        "A document must be readable UTF-8 text of at most 8 MiB."
        why "What cannot be read cannot be checked, and an agent would be shown something else than a person sees."
        fix "Save the file as UTF-8 text, or restore it from git.";
    FRONTMATTER_MISSING = "F002" "frontmatter-missing" Medium
        "A document starts with a YAML frontmatter between two `---` lines."
        why "The frontmatter says what the document is, which version, and when it was written; without it agentd infers what it can."
        fix "Add a frontmatter at the top, or let the planner write the document again."
        bad "# Tasks: add-oauth" good "---\nchange_id: add-oauth\ntype: tasks\nversion: 1\n---\n\n# Tasks: add-oauth";
    FRONTMATTER_UNCLOSED = "F003" "frontmatter-unclosed" High
        "A frontmatter that is opened with `---` is closed with `---`."
        why "Without its end, the whole document would be read as YAML."
        fix "Add a line `---` behind the last key.";
    FRONTMATTER_INVALID = "F004" "frontmatter-invalid" High
        "The frontmatter is valid YAML with the values that belong there."
        why "A value that cannot be read is a value that is ignored."
        fix "Correct the YAML at this place; quote texts that contain `: ` or start with a special character."
        bad "summary: Fix: the login" good "summary: \"Fix: the login\"";
    WRONG_TYPE = "F005" "wrong-type" High
        "The `type` in the frontmatter is that of the document."
        why "A file in the wrong place would be read as something that it is not."
        fix "Correct `type`, or move the file to where it belongs.";
    BAD_ID = "F006" "bad-id" High
        "Ids of changes and specs are lower-case letters, digits and `-`, at most 64, starting with a letter or digit."
        why "Ids become file names, branch names and arguments; nothing else is accepted anywhere."
        fix "Choose an id such as `auth-flow`."
        bad "id: Auth Flow" good "id: auth-flow";
    ID_MISMATCH = "F007" "id-mismatch" High
        "A document names the change or spec whose file it is."
        why "A document copied from elsewhere would be reviewed and merged under a wrong name."
        fix "Correct the id in the frontmatter, or rename the file.";
    FENCE_UNCLOSED = "F008" "fence-unclosed" Medium
        "A code block that is opened is closed."
        why "Readers show everything behind it as code, while agentd keeps reading."
        fix "Add the closing fence.";
    FILE_MISSING = "F009" "file-missing" High
        "A plan has proposal.md, tasks.md and a file for every affected spec."
        why "A part that is missing cannot be reviewed or implemented."
        fix "Write the document, or let the planner write it.";
    STATE_INVALID = "F010" "state-invalid" High
        "STATE.yaml is the one that agentd wrote for this change."
        why "The state says which phase a change is in and what it has cost; a guess would be worse than an error."
        fix "Restore STATE.yaml from git. agentd never overwrites a state that it cannot read.";

    PROPOSAL_SECTION = "P001" "proposal-section" High
        "A proposal has the sections Summary, Why, What Changes and Impact."
        why "Each of them answers a question that a reviewer asks first."
        fix "Add the section with at least one sentence.";
    PROPOSAL_EMPTY = "P002" "proposal-section-empty" Medium
        "The sections of a proposal say something."
        why "An empty section looks answered and is not."
        fix "Write at least one sentence.";
    BAD_SCOPE = "P003" "bad-scope" Medium
        "The scope of a change is patch, minor or major."
        why "The scope decides how closely a change is looked at."
        fix "Write `- **Scope**: minor` (or patch, or major).";
    AFFECTED_SPEC_MISSING = "P004" "affected-spec-missing" High
        "Every affected spec has its file in specs/."
        why "A spec that is announced and not written is a hole in the plan."
        fix "Write the spec, or take it off the list of affected specs.";
    SPEC_NOT_ANNOUNCED = "P005" "spec-not-announced" Medium
        "Every spec of a change is listed as affected in its proposal."
        why "Reviewers and other changes go by the list, and only specs on it are merged."
        fix "Add the spec to `affected_specs` in the frontmatter of proposal.md, or delete its file.";
    SPEC_DEPENDENCY = "P006" "spec-dependency" High
        "A spec depends only on specs of the same change."
        why "The order in which specs are written follows these dependencies."
        fix "Correct `depends`, or add the missing spec to `affected_specs`.";
    SPEC_CYCLE = "P007" "spec-cycle" High
        "Specs do not depend on each other in a circle."
        why "There would be no order in which they can be written."
        fix "Remove one of the dependencies in `affected_specs`.";
    SPEC_TWICE = "P008" "spec-twice" Medium
        "An affected spec is listed once."
        why "It would be written twice, the second over the first."
        fix "Remove the second entry.";

    PROPOSAL_FRONTMATTER = "P009" "proposal-frontmatter" High
        "A proposal starts with a frontmatter."
        why "agentd keeps the affected specs, the version and the checksum of a proposal there."
        fix "Let the planner write the proposal again, or add a frontmatter with `id`, `type: proposal` and `affected_specs`.";

    SPEC_SECTION = "S001" "spec-section" High
        "A spec has the sections Overview, Requirements and Acceptance Criteria."
        why "Overview says what it is about, Requirements what must hold, Acceptance Criteria how that is seen."
        fix "Add the section.";
    SPEC_EMPTY = "S002" "spec-section-empty" Medium
        "The overview of a spec says what it is about."
        why "An empty section looks answered and is not."
        fix "Write at least one sentence.";
    NO_REQUIREMENTS = "S003" "no-requirements" High
        "A spec has at least one requirement, or says which it removes or renames."
        why "Without a requirement there is nothing to implement and nothing to check."
        fix "Add `### R1: <title>` under `## Requirements`.";
    BAD_REQUIREMENT_ID = "S004" "bad-requirement-id" High
        "The heading of a requirement is `### R1: <title>`, numbered from R1."
        why "Tasks, reviews and merges refer to requirements by their ids."
        fix "Number the heading, for instance `### R2: Session timeout`."
        bad "### Session timeout" good "### R2: Session timeout";
    DUPLICATE_REQUIREMENT = "S005" "duplicate-requirement" High
        "Every requirement of a spec has an id of its own."
        why "A reference to the id could mean either."
        fix "Give the second one the next free id.";
    REQUIREMENT_EMPTY = "S006" "requirement-empty" High
        "A requirement has a text."
        why "A title alone cannot be implemented or checked."
        fix "Say in one sentence what MUST hold.";
    BAD_PRIORITY = "S007" "bad-priority" Low
        "The priority of a requirement is high, medium or low."
        why "Other words cannot be compared."
        fix "Write `**Priority**: medium`.";
    NO_SCENARIOS = "S008" "no-scenarios" High
        "A spec has at least as many scenarios as `validation.scenario_min_count` asks for."
        why "A requirement that no scenario shows cannot be accepted or refused."
        fix "Add `### Scenario: <name>` under `## Acceptance Criteria`, with WHEN and THEN.";
    SCENARIO_WITHOUT_WHEN = "S009" "scenario-without-when" High
        "A scenario says WHEN something happens."
        why "Without it nobody knows what to do to see the outcome."
        fix "Add a bullet `- **WHEN** …`.";
    SCENARIO_WITHOUT_THEN = "S010" "scenario-without-then" High
        "A scenario says what is seen THEN."
        why "Without an outcome a test has nothing to check."
        fix "Add a bullet `- **THEN** …`."
        bad "- **WHEN** the password is wrong" good "- **WHEN** the password is wrong\n- **THEN** the answer is 401";
    DUPLICATE_SCENARIO = "S011" "duplicate-scenario" Medium
        "Every scenario of a spec has a name of its own."
        why "A merge finds scenarios by their names."
        fix "Rename one of them.";
    REMOVED_REQUIREMENT = "S012" "removed-requirement" High
        "A requirement that is removed or renamed is one of the main spec, and is not defined in the same file."
        why "It would come back with the merge, or the removal would do nothing."
        fix "Take it off `removes` or `renames`, or delete its section.";
    SCENARIO_PATTERN = "S013" "scenario-pattern" Medium
        "Scenarios match `validation.scenario_pattern` where the project sets one."
        why "The project asks for it in agentd/config.toml."
        fix "Write the scenario in the form that the pattern asks for.";
    REQUIRED_HEADING = "S014" "required-heading" High
        "A spec has the headings of `validation.required_headings` where the project sets them."
        why "The project asks for it in agentd/config.toml."
        fix "Add the section.";

    VAGUE_WORD = "Q001" "vague-word" Medium
        "A requirement says what is meant, not that it is good."
        why "Two people who read `fast` or `appropriate` build two different things, and no test can decide who was right."
        fix "Say how much, how long, how many, or which."
        bad "The page MUST load fast." good "The page MUST be shown within 300 ms.";
    NO_OBLIGATION = "Q002" "no-obligation" Medium
        "A requirement says MUST, SHALL or SHOULD."
        why "Without such a word it is a description, and nobody knows whether it binds."
        fix "Write what the system MUST do.";
    NOT_MEASURABLE = "Q003" "not-measurable" Low
        "A requirement names an outcome that can be observed."
        why "What cannot be observed cannot be accepted."
        fix "Name a value, a code, a message, a state, or a limit.";
    NO_UNHAPPY_PATH = "Q004" "no-unhappy-path" Low
        "A spec has a scenario for what happens when something goes wrong."
        why "Errors are where implementations guess."
        fix "Add a scenario for a wrong input, a missing thing, a time-out or a refusal.";
    PLACEHOLDER = "Q005" "placeholder" Medium
        "Nothing is left open as TBD, TODO, FIXME or ???."
        why "An implementer would have to guess, or would copy the word into the code."
        fix "Decide it, or ask someone who can.";

    NO_TASKS = "T001" "no-tasks" High
        "A plan has at least one task."
        why "Without tasks there is nothing to implement."
        fix "Add tasks, or let the planner write them.";
    BAD_TASK_ID = "T002" "bad-task-id" High
        "A task is numbered by its layer: 1.1 or data.1."
        why "Dependencies and ticks refer to tasks by their ids."
        fix "Use ids such as \"1.1\" (data), \"2.1\" (logic), \"3.1\" (integration), \"4.1\" (testing).";
    DUPLICATE_TASK = "T003" "duplicate-task" High
        "Every task has an id of its own."
        why "A tick or a dependency could mean either."
        fix "Give the second one the next free number in its layer.";
    TASK_BLOCK = "T004" "task-block" High
        "The yaml block of a task is valid YAML."
        why "A task whose fields cannot be read cannot be ordered, ticked or checked."
        fix "Correct the YAML at this place.";
    TASK_CYCLE = "T005" "task-cycle" High
        "Tasks do not depend on each other in a circle."
        why "There would be no order in which they can be done."
        fix "Remove one of the dependencies of the chain in tasks.md.";
    TASK_DEPENDS_NOWHERE = "T006" "task-depends-nowhere" High
        "A task depends only on tasks that exist."
        why "It would wait for ever."
        fix "Correct the id in `depends_on`.";
    BAD_SPEC_REF = "T007" "bad-spec-ref" High
        "`spec_ref` has the form `auth-flow:R1`."
        why "It ties the task to the requirement that it implements."
        fix "Write `spec_ref: \"<spec>:R<number>\"`.";
    SPEC_REF_NOWHERE = "T008" "spec-ref-nowhere" High
        "`spec_ref` points to a requirement that exists in the change or in the main specs."
        why "A task that points nowhere implements something that nobody asked for."
        fix "Correct `spec_ref`, or add the requirement.";
    TASK_WITHOUT_SPEC = "T009" "task-without-spec" Medium
        "In a change with specs every task says which requirement it implements."
        why "Otherwise nobody can judge whether the task is needed."
        fix "Add `spec_ref: \"<spec>:R<number>\"`.";
    REQUIREMENT_UNCOVERED = "T010" "requirement-uncovered" Medium
        "Every requirement of a change is implemented by a task."
        why "A requirement without a task is forgotten."
        fix "Add a task with this `spec_ref`.";
    TASK_WITHOUT_FILE = "T011" "task-without-file" High
        "A task names the file that it creates, modifies or deletes."
        why "The file is the evidence that the task was done."
        fix "Add `file: <path relative to the project>`.";
    BAD_PATH = "T012" "bad-path" High
        "The file of a task is a relative path inside the project."
        why "An absolute path or `..` would let a plan write anywhere."
        fix "Write the path relative to the project's root, with `/`."
        bad "file: /etc/passwd" good "file: src/auth/login.rs";
    BAD_ACTION = "T013" "bad-action" High
        "The action of a task is CREATE, MODIFY or DELETE."
        why "It says what evidence the task needs."
        fix "Write `action: CREATE`, `MODIFY` or `DELETE`.";
    BAD_STATUS = "T014" "bad-status" High
        "The status of a task is pending or done."
        why "Anything else would not be counted."
        fix "Write `status: pending`.";
    TASK_ID_MISMATCH = "T015" "task-id-mismatch" High
        "The id in the block of a task is that of its heading."
        why "A tick would go to one and a dependency to the other."
        fix "Make them the same.";
    TASK_LAYER = "T016" "task-layer" Medium
        "A task stands in one of the layers data, logic, integration and testing, and does not depend on a later one."
        why "Layers are implemented one after the other, each by a session of its own."
        fix "Move the task to the layer where it belongs.";
    TASK_EMPTY = "T017" "task-empty" Low
        "A task has a title and says what to do."
        why "The implementer sees little more than this."
        fix "Describe the task in one or two sentences.";
    TASK_WITHOUT_NUMBER = "T020" "task-without-number" Medium
        "A task has a number, and stands in a layer."
        why "Other tasks depend on it by its number, and a number that agentd derives can change with the tasks before it."
        fix "Write the number behind the checkbox, as in `- [ ] 1.2 Account lock`.";
    TICK_WITHOUT_EVIDENCE = "T021" "tick-without-evidence" Medium
        "A task is ticked once its file shows that it was done."
        why "Nobody's word counts against the files. Implementing and archiving take such a tick back."
        fix "Do the task, or set its status back to `pending`.";
    PROTECTED_PATH = "T018" "protected-path" High
        "A task does not touch agentd's own files."
        why "Specs change by archiving, and the state only by agentd."
        fix "Name a file of the project outside `agentd/` and `.git/`.";

    REVIEW_VERDICT = "R001" "review-verdict" High
        "A review has exactly one verdict that can be read."
        why "A verdict is never guessed from prose."
        fix "Ask for a new review.";
    REVIEW_ISSUE = "R002" "review-issue" Medium
        "An issue of a review has a severity HIGH, MEDIUM or LOW."
        why "The severities decide whether a plan may continue."
        fix "Add `- **Severity**: High`, `Medium` or `Low`.";
    REVIEW_EDITED = "R003" "review-edited" Medium
        "A review stays as it was given."
        why "A verdict that was edited is not the reviewer's."
        fix "Restore it from git, or ask for a new review.";
    FOREIGN_REVIEW = "R004" "foreign-review" Medium
        "A review is written in a call that agentd started."
        why "Anyone can write an approval into a file. agentd keeps such a review, and never takes its verdict."
        fix "Delete it, or leave it; `agentd challenge` and `agentd review` ask for one that counts.";
    CLARIFICATION_INCOMPLETE = "C001" "clarification-incomplete" Low
        "Every clarification has a question and an answer."
        why "The planner builds on them."
        fix "Add `- **Question**: …` and `- **Answer**: …`.";
    TOO_MANY_QUESTIONS = "C002" "too-many-questions" Low
        "There are at most five clarifying questions."
        why "More than five are not read."
        fix "Keep the questions whose answers change the plan.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_and_names_are_unique_and_every_rule_explains_itself() {
        let mut seen = BTreeSet::new();
        for rule in ALL {
            assert!(
                seen.insert(rule.code) && seen.insert(rule.name),
                "{} {}",
                rule.code,
                rule.name
            );
            for sentence in [rule.summary, rule.why, rule.fix] {
                assert!(sentence.ends_with('.'), "{}: {sentence}", rule.code);
            }
            assert_eq!(find(&rule.code.to_lowercase()).map(|r| r.code), Some(rule.code));
        }
        assert!(find("X999").is_none());
    }
}
