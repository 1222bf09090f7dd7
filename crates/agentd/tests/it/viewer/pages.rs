//! What the pages show, and what can be done on them.

use super::outline::outline;
use super::{Viewer, project};
use agentd_core::diagnostic::Severity;
use agentd_core::document::comments::{self, Anchor};
use agentd_core::phase::Phase;
use agentd_core::state::{self, Choice};
use test_project::TestProject;

/// A page that must be there, as a text browser shows it, without its menu.
#[track_caller]
fn page(viewer: &Viewer, address: &str) -> String {
    let answer = viewer.get(address);
    assert_eq!(answer.status, 200, "{address}: {}", answer.body);
    answer.shown()
}

/// The menu of a page.
fn menu(viewer: &Viewer, address: &str) -> String {
    let body = viewer.get(address).body;
    let (_, rest) = body.split_once("<nav class=\"menu\"").unwrap();
    outline(rest.split("</nav>").next().unwrap())
}

/// The lines of a page on which something is found.
fn findings(viewer: &Viewer, address: &str) -> String {
    let page = page(viewer, address);
    let lines = page.lines().filter(|line| line.starts_with("(finding"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The card of a change on the board: its lines up to the next card.
fn card(viewer: &Viewer, id: &str) -> Option<String> {
    let body = viewer.get("/").body;
    let (_, rest) = body.split_once(&format!("<li class=\"card\" data-id=\"{id}\">"))?;
    let facts = rest.split("<time").next().unwrap().split("</li>").next().unwrap();
    Some(outline(facts))
}

#[test]
fn board_and_overview() {
    let project = project();
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(page(&viewer, "/"), @"
    (#main)
    # project
    6 changes open · $4.29 spent
    (#filter)
    (#board) (follows /live?after=[MARK])
    ## Planning 2
    - Let people sign in with their company account, through OAuth 2.1 with PKCE, and… add-oauth (/changes/add-oauth)
    2/6 $0.86 challenge
    2026-11-10
    shares auth-flow:R1 with dark-mode (/changes/dark-mode) shares auth-flow:R1 with export-reports (/changes/export-reports) shares auth-flow:R1 with rewrite-in-cobol (/changes/rewrite-in-cobol) and 53 more
    - just-an-idea just-an-idea (/changes/just-an-idea)
    no tasks $0.00 new
    ## Approved 1
    - speed up search for everyone, through OAuth 2.1 with PKCE, and keep passwords… speed-up-search (/changes/speed-up-search)
    2/6 $0.86 challenge
    2026-11-10
    shares auth-flow:R1 with add-oauth (/changes/add-oauth) shares auth-flow:R1 with dark-mode (/changes/dark-mode) shares auth-flow:R1 with export-reports (/changes/export-reports) and 53 more
    ## Implementing 1
    - export reports for everyone, through OAuth 2.1 with PKCE, and keep passwords… export-reports (/changes/export-reports)
    2/6 $0.86 challenge
    2026-11-10
    shares auth-flow:R1 with add-oauth (/changes/add-oauth) shares auth-flow:R1 with dark-mode (/changes/dark-mode) shares auth-flow:R1 with rewrite-in-cobol (/changes/rewrite-in-cobol) and 53 more
    ## Complete 1
    - dark mode for everyone, through OAuth 2.1 with PKCE, and keep passwords for… dark-mode (/changes/dark-mode)
    2/6 $0.86 challenge
    2026-11-10
    shares auth-flow:R1 with add-oauth (/changes/add-oauth) shares auth-flow:R1 with export-reports (/changes/export-reports) shares auth-flow:R1 with rewrite-in-cobol (/changes/rewrite-in-cobol) and 53 more
    ## Rejected 1
    - rewrite in cobol for everyone, through OAuth 2.1 with PKCE, and keep passwords… rewrite-in-cobol (/changes/rewrite-in-cobol)
    2/6 $0.86 challenge
    2026-11-10
    shares auth-flow:R1 with add-oauth (/changes/add-oauth) shares auth-flow:R1 with dark-mode (/changes/dark-mode) shares auth-flow:R1 with export-reports (/changes/export-reports) and 53 more
    ## Main specs 1
    - session-store (/specs/session-store)
    ## Archive 1
    - [DATE]-add-passwords (/archive/[DATE]-add-passwords)
    ");
    // C11 allows to accept this plan.
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth"), @r#"
    # Let people sign in with their company account, through OAuth 2.1 with PKCE, and…
    add-oauth NEEDS REVISION 2/6 $0.86 443.5k tokens last: challenge
    [TIME]
    - (current) Planning
    - Approved
    - Implementing
    - Complete
    - Archived
    waiting: its plan needs revision
    Next: agentd reproposal add-oauth --fresh
    (form /changes/add-oauth/decide)
    ## Your decision
    Round 2 ended with NEEDS REVISION: 0 high, 1 medium, 1 low.
    Reason
    [ Request changes ] [ Accept with 2 minor issues ] [ Stop here ]
    Let people sign in with their company account, through OAuth 2.1 with PKCE, and keep passwords for those who have no such account.
    ## Activity live (#live-run) 0001-challenge.jsonl
    (#log) (follows /changes/add-oauth/live?after=1:1176)
    - challenge codex as challenger
    - gpt-5-codex · session 0198-abc
    - I read the proposal and both specs first.
    - agentd.read_file specs/auth-flow.md
    {
    "change_id": "add-oauth",
    "path": "specs/auth-flow.md"
    }
    - ✓ # Specification: Sign-in with a company account
    # Specification: Sign-in with a company account
    ## Overview
    - R2 now says that accounts are matched by subject. R3 still has no scenario.
    - agentd.append_review NEEDS_REVISION · One medium issue is left.
    {
    "change_id": "add-oauth",
    "verdict": "NEEDS_REVISION",
    "summary": "One medium issue is left."
    }
    - ✓ proposal.md: review 2 appended
    proposal.md: review 2 appended
    - finished after 1 m 33 s
    ## Findings 2 open, 2 settled
    - MEDIUM No scenario for a provider that hangs (/changes/add-oauth/reviews#i2) open
    - LOW The callback's name differs between spec and tasks (/changes/add-oauth/reviews#i4) new
    - HIGH Accounts are matched by e-mail (/changes/add-oauth/reviews#i1) fixed
    - LOW Audit entries have no retention (/changes/add-oauth/reviews#i3) fixed
    ## Validation 2 findings
    - LOW session-store:23 (/changes/add-oauth/specs/session-store?view=source#L23) no scenario says what happens when something goes wrong
    - MEDIUM Tasks:7 (/changes/add-oauth/tasks?view=source#L7) no task implements auth-flow:R3 (A provider that does not answer)
    ## Timeline
    (chart)
    proposal-gen: 48.0 s
    proposal-review: 21.0 s
    spec-gen-session-store: 39.0 s
    spec-gen-auth-flow: 1 m 01 s
    tasks-gen: 44.0 s
    challenge: 2 m 08 s
    reproposal: 1 m 12 s
    challenge: 1 m 33 s
    "#);
}

#[test]
fn document_pages() {
    let project = project();
    let viewer = Viewer::start(&project);
    // Reviews have a page of their own.
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/proposal"), @r#"
    proposal.md (current) Read (/changes/add-oauth/proposal) Source (/changes/add-oauth/proposal?view=source) [comment on ""]
    (#h-change-add-oauth)
    # Change: add-oauth
    [comment on "heading Change: add-oauth"]
    (#h-summary)
    ## Summary
    [comment on "heading Summary"]
    Let people sign in with their company account, through OAuth 2.1 with PKCE, and keep passwords for those who have no such account.
    (#h-why)
    ## Why
    [comment on "heading Why"]
    Half of all support requests are about forgotten passwords. Companies that use us ask for single sign-on, and two of them have made it a condition for renewing.
    | Provider | Users today | Wanted by
    | Google Workspace | 1,204 | December
    | Microsoft Entra | 861 | December
    | Okta | 87 | spring
    (#h-what-changes)
    ## What Changes
    [comment on "heading What Changes"]
    - A button for each provider on the sign-in page
    - Sessions that are bound to the provider's account
    - An audit entry for every sign-in
    (#h-impact)
    ## Impact
    [comment on "heading Impact"]
    - Scope: minor
    - Affected specs: session-store, auth-flow
    - Affected files: 6
    - Affected code: src/auth/, src/session.rs
    - Breaking changes: none
    ## On this page
    - Summary (#h-summary)
    - Why (#h-why)
    - What Changes (#h-what-changes)
    - Impact (#h-impact)
    "#);
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/specs/auth-flow"), @r#"
    specs/auth-flow.md (current) Read (/changes/add-oauth/specs/auth-flow) Source (/changes/add-oauth/specs/auth-flow?view=source) [comment on ""]
    (#h-specification-sign-in-with-a-company-account)
    # Specification: Sign-in with a company account
    [comment on "heading Specification: Sign-in with a company account"]
    (#h-overview)
    ## Overview
    [comment on "heading Overview"]
    How a person signs in with an account of their company, and what happens when the provider does not answer.
    (#h-requirements)
    ## Requirements
    [comment on "heading Requirements"]
    (#h-r1-authorization-with-pkce) (#R1)
    ### R1: Authorization with PKCE
    [comment on "R1"]
    ✓ task 1.2 (/changes/add-oauth/tasks#task-1-2) ○ task 2.1 (/changes/add-oauth/tasks#task-2-1) ○ task 3.1 (/changes/add-oauth/tasks#task-3-1)
    Priority: high
    The server MUST use the authorization code flow with PKCE and reject every answer whose state does not equal the one that was sent within 10 minutes, once.
    (#h-r2-accounts-are-matched-by-subject) (#R2)
    ### R2: Accounts are matched by subject
    [comment on "R2"]
    ○ task 2.2 (/changes/add-oauth/tasks#task-2-2) ○ task 4.1 (/changes/add-oauth/tasks#task-4-1)
    Priority: high
    The server MUST match accounts by the provider's sub claim and MUST NOT match by e-mail address.
    (#h-r3-a-provider-that-does-not-answer) (#R3)
    ### R3: A provider that does not answer
    [comment on "R3"]
    no task
    Priority: medium
    The page SHOULD offer the password form when the provider has not answered within 5 seconds.
    (#h-acceptance-criteria)
    ## Acceptance Criteria
    [comment on "heading Acceptance Criteria"]
    (#h-scenario-first-sign-in)
    ### Scenario: First sign-in
    [comment on "heading Scenario: First sign-in"]
    - GIVEN a person without an account
    - WHEN they come back from the provider with a valid code
    - THEN an account with the sub of the provider exists
    - AND a session cookie is set
    (#h-scenario-stolen-state)
    ### Scenario: Stolen state
    [comment on "heading Scenario: Stolen state"]
    - WHEN an answer arrives with an unknown state
    - THEN the response is 400 and no session exists
    (#h-flow)
    ## Flow
    [comment on "heading Flow"]
    (mermaid) sequenceDiagram
    participant B as Browser
    participant S as Server
    participant P as Provider
    B->>S: GET /sign-in/google
    S-->>B: 302 with state and challenge
    B->>P: authorize
    P-->>B: 302 with code
    B->>S: GET /callback?code&state
    S->>P: exchange code
    P-->>S: id token
    S-->>B: session cookie
    (#h-interfaces)
    ## Interfaces
    [comment on "heading Interfaces"]
    pub fn callback(query: &Query, pending: &Pending) -> Result<Session, SignInError>;
    ## On this page
    - Overview (#h-overview)
    - Requirements (#h-requirements)
    - R1: Authorization with PKCE (#h-r1-authorization-with-pkce)
    - R2: Accounts are matched by subject (#h-r2-accounts-are-matched-by-subject)
    - R3: A provider that does not answer (#h-r3-a-provider-that-does-not-answer)
    - Acceptance Criteria (#h-acceptance-criteria)
    - Scenario: First sign-in (#h-scenario-first-sign-in)
    - Scenario: Stolen state (#h-scenario-stolen-state)
    - Flow (#h-flow)
    - Interfaces (#h-interfaces)
    "#);
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/tasks"), @r#"
    tasks.md (current) Read (/changes/add-oauth/tasks) Source (/changes/add-oauth/tasks?view=source) [comment on ""]
    # Tasks
    2/6
    (graph) (node done)
    1.1 Table of sessions with provider and subject: done
    (#task-1-1) (node done)
    1.2 Pending authorizations: done
    (#task-1-2) (node ready)
    2.1 Exchange of the code: can be done now
    (#task-2-1) (node ready)
    2.2 Match accounts: can be done now
    (#task-2-2) (node waiting)
    3.1 Routes and buttons: waits for others
    (#task-3-1) (node waiting)
    4.1 Sign-in against a fake provider: waits for others
    (#task-4-1)
    done can be done now waits for others
    (finding medium) MEDIUM T010 no task implements auth-flow:R3 (A provider that does not answer)
    line 7 · Add a task with this `spec_ref`.
    ## data
    (#task-1-1)
    ### ✓ 1.1 Table of sessions with provider and subject
    [comment on "task 1.1"]
    CREATE migrations/0007_sessions.sql session-store:R1 (/changes/add-oauth/specs/session-store#R1)
    Add provider and subject, both not null.
    (#task-1-2)
    ### ✓ 1.2 Pending authorizations
    [comment on "task 1.2"]
    CREATE src/auth/pending.rs auth-flow:R1 (/changes/add-oauth/specs/auth-flow#R1)
    Keep state and verifier for 10 minutes.
    ## logic
    (#task-2-1)
    ### ○ 2.1 Exchange of the code
    [comment on "task 2.1"]
    CREATE src/auth/exchange.rs auth-flow:R1 (/changes/add-oauth/specs/auth-flow#R1) after 1.2 (#task-1-2)
    Check state, send the verifier, read the id token.
    (#task-2-2)
    ### ○ 2.2 Match accounts
    [comment on "task 2.2"]
    MODIFY src/auth/accounts.rs auth-flow:R2 (/changes/add-oauth/specs/auth-flow#R2) after 1.1 (#task-1-1)
    By sub, never by e-mail.
    ## integration
    (#task-3-1)
    ### ○ 3.1 Routes and buttons
    [comment on "task 3.1"]
    MODIFY src/routes.rs auth-flow:R1 (/changes/add-oauth/specs/auth-flow#R1) after 2.1 (#task-2-1), 2.2 (#task-2-2)
    /sign-in/<provider> and /callback.
    ## testing
    (#task-4-1)
    ### ○ 4.1 Sign-in against a fake provider
    [comment on "task 4.1"]
    CREATE tests/sign_in.rs auth-flow:R2 (/changes/add-oauth/specs/auth-flow#R2) after 3.1 (#task-3-1)
    Both scenarios, and a provider that hangs.
    "#);
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/clarifications"), @r#"
    clarifications.md (current) Read (/changes/add-oauth/clarifications) Source (/changes/add-oauth/clarifications?view=source) [comment on ""]
    (#h-clarifications)
    # Clarifications
    [comment on "heading Clarifications"]
    (#h-q1-providers)
    ## Q1: Providers
    [comment on "heading Q1: Providers"]
    - Question: Which providers first?
    - Answer: Google and Microsoft.
    - Rationale: They cover 96 % of the people who asked.
    (#h-q2-passwords)
    ## Q2: Passwords
    [comment on "heading Q2: Passwords"]
    - Question: Do passwords stay?
    - Answer: Yes, for accounts without a company.
    "#);
    insta::assert_snapshot!(page(&viewer, "/specs/session-store"), @"
    (#main)
    agentd/specs/session-store.md
    (#h-specification-sessions)
    # Specification: Sessions
    (#h-overview)
    ## Overview
    Where sessions are kept.
    (#h-requirements)
    ## Requirements
    (#h-r1-sessions-name-their-provider)
    ### R1: Sessions name their provider
    Priority: high
    The store MUST keep the provider and the subject of every session, and MUST delete a session within 1 second after sign-out.
    (#h-acceptance-criteria)
    ## Acceptance Criteria
    (#h-scenario-sign-out)
    ### Scenario: Sign-out
    - WHEN a person signs out
    - THEN the session is gone after 1 second
    (#h-flow)
    ## Flow
    (mermaid) flowchart LR
    A[sign in] --> B{account known?}
    B -- yes --> C[session]
    B -- no --> D[account] --> C
    ## On this page
    - Overview (#h-overview)
    - Requirements (#h-requirements)
    - R1: Sessions name their provider (#h-r1-sessions-name-their-provider)
    - Acceptance Criteria (#h-acceptance-criteria)
    - Scenario: Sign-out (#h-scenario-sign-out)
    - Flow (#h-flow)
    ");
}

#[test]
fn review_pages() {
    let project = project();
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/reviews"), @"
    # Reviews of the plan
    ## Findings over the rounds
    | Finding | Round 1 (#round-1) | Round 2 (#round-2) | Now
    (#i2) | MEDIUM I2 No scenario for a provider that hangs | ● | ● | open
    (#i4) | LOW I4 The callback's name differs between spec and tasks | | ● | new
    (#i1) | HIGH I1 Accounts are matched by e-mail | ● | ✓ | fixed Accounts are matched by the provider's id.
    (#i3) | LOW I3 Audit entries have no retention | ● | ✓ | fixed
    (#round-2)
    ## Round 2 NEEDS REVISION
    codex gpt-5-codex
    [TIME]
    What changed since then (/changes/add-oauth/changes?from=2)
    The takeover is closed. One medium issue is left.
    MEDIUM I2 No scenario for a provider that hangs
    auth-flow:R3
    A reader cannot tell what is meant, and two implementers would build two things.
    #### Recommendation
    Say it in one sentence, with a number.
    LOW I4 The callback's name differs between spec and tasks
    tasks 3.1
    A reader cannot tell what is meant, and two implementers would build two things.
    #### Recommendation
    Say it in one sentence, with a number.
    (#round-1)
    ## Round 1 NEEDS REVISION
    codex gpt-5-codex
    [TIME]
    What changed before the next round (/changes/add-oauth/changes?from=1&to=2)
    The flow is sound, but accounts can be taken over by e-mail.
    HIGH I1 Accounts are matched by e-mail
    auth-flow:R2
    A reader cannot tell what is meant, and two implementers would build two things.
    #### Recommendation
    Say it in one sentence, with a number.
    MEDIUM I2 No scenario for a provider that hangs
    auth-flow:R3
    A reader cannot tell what is meant, and two implementers would build two things.
    #### Recommendation
    Say it in one sentence, with a number.
    LOW I3 Audit entries have no retention
    proposal
    A reader cannot tell what is meant, and two implementers would build two things.
    #### Recommendation
    Say it in one sentence, with a number.
    ");
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/changes?from=1&to=2"), @"
    # What changed
    round 1 → round 2 Back to the reviews (/changes/add-oauth/reviews)
    ## specs/auth-flow.md
    **Priority**: high
    The server MUST use the authorization code flow with PKCE and reject every answer whose
    (removed) − `state` does not equal the one that was sent within 10 minutes.
    (added) + `state` does not equal the one that was sent within 10 minutes, once.
    ### R2: Accounts are matched by subject
    ");
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/changes?from=2"), @"
    # What changed
    round 2 → now Back to the reviews (/changes/add-oauth/reviews)
    Nothing has changed.
    ");
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/trace"), @"
    # Traceability
    ## From requirements to files
    | Requirement | Scenarios | Tasks | Files
    | auth-flow:R1 (/changes/add-oauth/specs/auth-flow#R1) Authorization with PKCE | 2 of the spec | ✓ 1.2 (/changes/add-oauth/tasks#task-1-2) ○ 2.1 (/changes/add-oauth/tasks#task-2-1) ○ 3.1 (/changes/add-oauth/tasks#task-3-1) | src/auth/pending.rs src/auth/exchange.rs src/routes.rs
    | auth-flow:R2 (/changes/add-oauth/specs/auth-flow#R2) Accounts are matched by subject | 2 of the spec | ○ 2.2 (/changes/add-oauth/tasks#task-2-2) ○ 4.1 (/changes/add-oauth/tasks#task-4-1) | src/auth/accounts.rs tests/sign_in.rs
    | auth-flow:R3 (/changes/add-oauth/specs/auth-flow#R3) A provider that does not answer | 2 of the spec | no task |
    | session-store:R1 (/changes/add-oauth/specs/session-store#R1) Sessions name their provider | 1 of the spec | ✓ 1.1 (/changes/add-oauth/tasks#task-1-1) | migrations/0007_sessions.sql
    ## From files to requirements
    | File | Tasks | Requirements
    | migrations/0007_sessions.sql | ✓ 1.1 (/changes/add-oauth/tasks#task-1-1) | session-store:R1 (/changes/add-oauth/specs/session-store#R1)
    | src/auth/accounts.rs | ○ 2.2 (/changes/add-oauth/tasks#task-2-2) | auth-flow:R2 (/changes/add-oauth/specs/auth-flow#R2)
    | src/auth/exchange.rs | ○ 2.1 (/changes/add-oauth/tasks#task-2-1) | auth-flow:R1 (/changes/add-oauth/specs/auth-flow#R1)
    | src/auth/pending.rs | ✓ 1.2 (/changes/add-oauth/tasks#task-1-2) | auth-flow:R1 (/changes/add-oauth/specs/auth-flow#R1)
    | src/routes.rs | ○ 3.1 (/changes/add-oauth/tasks#task-3-1) | auth-flow:R1 (/changes/add-oauth/specs/auth-flow#R1)
    | tests/sign_in.rs | ○ 4.1 (/changes/add-oauth/tasks#task-4-1) | auth-flow:R2 (/changes/add-oauth/specs/auth-flow#R2)
    ");
}

#[test]
fn run_pages() {
    let project = project();
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/runs"), @r#"
    # Runs and cost
    ## Activity live (#live-run) 0001-challenge.jsonl
    (#log) (follows /changes/add-oauth/live?after=1:1176)
    - challenge codex as challenger
    - gpt-5-codex · session 0198-abc
    - I read the proposal and both specs first.
    - agentd.read_file specs/auth-flow.md
    {
    "change_id": "add-oauth",
    "path": "specs/auth-flow.md"
    }
    - ✓ # Specification: Sign-in with a company account
    # Specification: Sign-in with a company account
    ## Overview
    - R2 now says that accounts are matched by subject. R3 still has no scenario.
    - agentd.append_review NEEDS_REVISION · One medium issue is left.
    {
    "change_id": "add-oauth",
    "verdict": "NEEDS_REVISION",
    "summary": "One medium issue is left."
    }
    - ✓ proposal.md: review 2 appended
    proposal.md: review 2 appended
    - finished after 1 m 33 s
    $0.86 in total 418.0k tokens in 25.5k out 8 calls
    ## Timeline
    (chart)
    proposal-gen: 48.0 s
    proposal-review: 21.0 s
    spec-gen-session-store: 39.0 s
    spec-gen-auth-flow: 1 m 01 s
    tasks-gen: 44.0 s
    challenge: 2 m 08 s
    reproposal: 1 m 12 s
    challenge: 1 m 33 s
    ## Tokens by step
    (chart)
    proposal-gen: 12.0k in, cached
    proposal-gen: 36.2k in
    proposal-gen: 3.1k out
    proposal-review: 15.0k in, cached
    proposal-review: 6.0k in
    proposal-review: 800 out
    spec-gen-session-store: 14.0k in, cached
    spec-gen-session-store: 16.5k in
    spec-gen-session-store: 2.4k out
    spec-gen-auth-flow: 16.0k in, cached
    spec-gen-auth-flow: 20.8k in
    spec-gen-auth-flow: 4.1k out
    tasks-gen: 22.0k in, cached
    tasks-gen: 19.2k in
    tasks-gen: 2.9k out
    challenge: 30.0k in, cached
    challenge: 60.3k in
    challenge: 5.2k out
    reproposal: 41.0k in, cached
    reproposal: 21.0k in
    reproposal: 3.9k out
    challenge: 52.0k in, cached
    challenge: 36.0k in
    challenge: 3.1k out
    in, cached in out
    ## Cost by step
    (chart)
    proposal-gen: $0.11
    proposal-review: $0.03
    spec-gen-session-store: $0.07
    spec-gen-auth-flow: $0.09
    tasks-gen: $0.08
    challenge: $0.21
    reproposal: $0.10
    challenge: $0.16
    All figures
    | Step | Model | Ended | Time | In | Cached | Out | Cost
    | proposal-gen | gemini-3-pro |
    [TIME]
    | 48.0 s | 48.2k | 12.0k | 3.1k | $0.11
    | proposal-review | gemini-3-pro |
    [TIME]
    | 21.0 s | 21.0k | 15.0k | 800 | $0.03
    | spec-gen-session-store | gemini-3-pro |
    [TIME]
    | 39.0 s | 30.5k | 14.0k | 2.4k | $0.07
    | spec-gen-auth-flow | gemini-3-pro |
    [TIME]
    | 1 m 01 s | 36.8k | 16.0k | 4.1k | $0.09
    | tasks-gen | gemini-3-pro |
    [TIME]
    | 44.0 s | 41.2k | 22.0k | 2.9k | $0.08
    | challenge | gpt-5-codex |
    [TIME]
    | 2 m 08 s | 90.3k | 30.0k | 5.2k | $0.21
    | reproposal | gemini-3-pro |
    [TIME]
    | 1 m 12 s | 62.0k | 41.0k | 3.9k | $0.10
    | challenge | gpt-5-codex |
    [TIME]
    | 1 m 33 s | 88.0k | 52.0k | 3.1k | $0.16
    ## Transcripts
    - 0001 challenge (/changes/add-oauth/runs/0001-challenge.jsonl)
    "#);
    let run = "/changes/add-oauth/runs/0001-challenge.jsonl";
    insta::assert_snapshot!(page(&viewer, run), @r#"
    # 0001 challenge
    All runs (/changes/add-oauth/runs)
    (#log) (follows /changes/add-oauth/live?after=1:1176)
    - challenge codex as challenger
    - gpt-5-codex · session 0198-abc
    - I read the proposal and both specs first.
    - agentd.read_file specs/auth-flow.md
    {
    "change_id": "add-oauth",
    "path": "specs/auth-flow.md"
    }
    - ✓ # Specification: Sign-in with a company account
    # Specification: Sign-in with a company account
    ## Overview
    - R2 now says that accounts are matched by subject. R3 still has no scenario.
    - agentd.append_review NEEDS_REVISION · One medium issue is left.
    {
    "change_id": "add-oauth",
    "verdict": "NEEDS_REVISION",
    "summary": "One medium issue is left."
    }
    - ✓ proposal.md: review 2 appended
    proposal.md: review 2 appended
    - finished after 1 m 33 s
    "#);
}

/// What is archived is neither decided nor commented on.
#[test]
fn archived_pages() {
    let project = project();
    let viewer = Viewer::start(&project);
    let archived = "/archive/2026-10-01-add-passwords";
    insta::assert_snapshot!(page(&viewer, archived), @"
    # Let people sign in with their company account, through OAuth 2.1 with PKCE, and…
    add-passwords 2/6 $0.86 443.5k tokens last: challenge
    [TIME]
    - Planning
    - Approved
    - Implementing
    - Complete
    - (current) Archived
    Let people sign in with their company account, through OAuth 2.1 with PKCE, and keep passwords for those who have no such account.
    ## Timeline
    (chart)
    proposal-gen: 48.0 s
    proposal-review: 21.0 s
    spec-gen-session-store: 39.0 s
    spec-gen-auth-flow: 1 m 01 s
    tasks-gen: 44.0 s
    challenge: 2 m 08 s
    reproposal: 1 m 12 s
    challenge: 1 m 33 s
    ");
    insta::assert_snapshot!(page(&viewer, &format!("{archived}/proposal")), @"
    proposal.md (current) Read (/archive/[DATE]-add-passwords/proposal) Source (/archive/[DATE]-add-passwords/proposal?view=source)
    (#h-change-add-passwords)
    # Change: add-passwords
    (#h-summary)
    ## Summary
    Let people sign in with their company account, through OAuth 2.1 with PKCE, and keep passwords for those who have no such account.
    (#h-why)
    ## Why
    Half of all support requests are about forgotten passwords. Companies that use us ask for single sign-on, and two of them have made it a condition for renewing.
    | Provider | Users today | Wanted by
    | Google Workspace | 1,204 | December
    | Microsoft Entra | 861 | December
    | Okta | 87 | spring
    (#h-what-changes)
    ## What Changes
    - A button for each provider on the sign-in page
    - Sessions that are bound to the provider's account
    - An audit entry for every sign-in
    (#h-impact)
    ## Impact
    - Scope: minor
    - Affected specs: session-store, auth-flow
    - Affected files: 6
    - Affected code: src/auth/, src/session.rs
    - Breaking changes: none
    ## On this page
    - Summary (#h-summary)
    - Why (#h-why)
    - What Changes (#h-what-changes)
    - Impact (#h-impact)
    ");
}

#[test]
fn findings_stand_at_their_lines() {
    let project = project();
    let tasks = project
        .read("tasks.md")
        .replace("spec_ref: \"auth-flow:R2\"", "spec_ref: \"auth-flow:R9\"");
    project.write("tasks.md", &tasks);
    let spec = project
        .read("specs/session-store.md")
        .replace("## Overview\n\nWhere sessions are kept.\n", "");
    project.write("specs/session-store.md", &spec);
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(findings(&viewer, "/changes/add-oauth/tasks"), @"
    (finding medium) MEDIUM T010 no task implements auth-flow:R2 (Accounts are matched by subject)
    (finding medium) MEDIUM T010 no task implements auth-flow:R3 (A provider that does not answer)
    (finding high) HIGH T008 task 2.2 points to auth-flow:R9, which does not exist
    (finding high) HIGH T008 task 4.1 points to auth-flow:R9, which does not exist
    ");
    let tasks = page(&viewer, "/changes/add-oauth/tasks");
    let (_, task) = tasks.split_once("\n(#task-2-2)\n").unwrap();
    insta::assert_snapshot!(task.split_once("\n(#task-3-1)\n").unwrap().0, @r#"
    ### ○ 2.2 Match accounts
    [comment on "task 2.2"]
    MODIFY src/auth/accounts.rs auth-flow:R9 (/changes/add-oauth/specs/auth-flow#R9) after 1.1 (#task-1-1)
    By sub, never by e-mail.
    (finding high) HIGH T008 task 2.2 points to auth-flow:R9, which does not exist
    line 58 · `auth-flow` has R1, R2, R3.
    ## integration
    "#);
    let session_store = "/changes/add-oauth/specs/session-store";
    insta::assert_snapshot!(findings(&viewer, session_store), @"
    (finding high) HIGH S001 the section `## Overview` is missing
    (finding low) LOW Q004 no scenario says what happens when something goes wrong
    ");
    let source = page(&viewer, "/changes/add-oauth/tasks?view=source");
    let (before, finding) = source.split_once("(finding").unwrap();
    insta::assert_snapshot!(before.lines().next_back().unwrap(), @r#"- (#L7) [comment on "line 7"] # Tasks: add-oauth"#);
    insta::assert_snapshot!(finding.lines().next().unwrap(), @" medium) MEDIUM T010 no task implements auth-flow:R2 (Accounts are matched by subject)");
    let overview = page(&viewer, "/changes/add-oauth");
    let (_, validation) = overview.split_once("# Validation").unwrap();
    insta::assert_snapshot!(validation.split("\n## ").next().unwrap(), @"
     6 findings
    - HIGH session-store:8 (/changes/add-oauth/specs/session-store?view=source#L8) the section `## Overview` is missing
    - LOW session-store:20 (/changes/add-oauth/specs/session-store?view=source#L20) no scenario says what happens when something goes wrong
    - MEDIUM Tasks:7 (/changes/add-oauth/tasks?view=source#L7) no task implements auth-flow:R2 (Accounts are matched by subject)
    - MEDIUM Tasks:7 (/changes/add-oauth/tasks?view=source#L7) no task implements auth-flow:R3 (A provider that does not answer)
    - HIGH Tasks:58 (/changes/add-oauth/tasks?view=source#L58) task 2.2 points to auth-flow:R9, which does not exist
    - HIGH Tasks:88 (/changes/add-oauth/tasks?view=source#L88) task 4.1 points to auth-flow:R9, which does not exist
    ");
    insta::assert_snapshot!(menu(&viewer, "/changes/add-oauth"), @"
    - (current) Overview (/changes/add-oauth)
    - Proposal (/changes/add-oauth/proposal)
    - auth-flow (/changes/add-oauth/specs/auth-flow)
    - session-store 2 (/changes/add-oauth/specs/session-store)
    - Tasks 4 (/changes/add-oauth/tasks)
    - Clarifications (/changes/add-oauth/clarifications)
    - Reviews 2 (/changes/add-oauth/reviews)
    - Traceability (/changes/add-oauth/trace)
    - Runs and cost (/changes/add-oauth/runs)
    - Comments (/changes/add-oauth/comments)
    ");
}

#[test]
fn comment_resolve_and_reopen() {
    let project = project();
    let viewer = Viewer::start(&project);
    for (at, text) in
        [("R2", "By+subject+of+which+issuer%3F"), ("line+3", "odd"), ("heading+Overview", "short")]
    {
        let body = format!("on=specs%2Fauth-flow.md&at={at}&text={text}");
        assert_eq!(viewer.post("/changes/add-oauth/comments", &body).status, 303);
    }
    let read = || comments::parse(&project.read("comments.md")).value;
    let first = &read().comments[0];
    assert_eq!((first.by.as_str(), first.text.as_str()), ("alice", "By subject of which issuer?"));
    assert_eq!(first.at, Anchor::Requirement("R2".parse().unwrap()));
    let spec = page(&viewer, "/changes/add-oauth/specs/auth-flow");
    let (_, requirement) = spec.split_once("(#R2)").unwrap();
    insta::assert_snapshot!(requirement.split_once("(#R3)").unwrap().0, @r#"

    ### R2: Accounts are matched by subject
    [comment on "R2"]
    ○ task 2.2 (/changes/add-oauth/tasks#task-2-2) ○ task 4.1 (/changes/add-oauth/tasks#task-4-1)
    (#c1)
    alice
    [TIME]
    By subject of which issuer?
    (form /changes/add-oauth/comments/1) [ Resolve ]
    Priority: high
    The server MUST match accounts by the provider's sub claim and MUST NOT match by e-mail address.
    (#h-r3-a-provider-that-does-not-answer)
    "#);
    assert_eq!(viewer.post("/changes/add-oauth/comments/1", "fate=resolved").status, 303);
    assert_eq!(read().open().count(), 2);
    assert_eq!(read().comments[0].resolved.as_ref().unwrap().by.as_str(), "alice");
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/comments"), @"
    # Comments
    Open comments go into the next reproposal. They are kept in comments.md.
    ## Open 2
    (#c2)
    alice
    [TIME]
    on specs/auth-flow.md · line 3 (/changes/add-oauth/specs/auth-flow?view=source#L3)
    odd
    (form /changes/add-oauth/comments/2) [ Resolve ]
    (#c3)
    alice
    [TIME]
    on specs/auth-flow.md · Overview (/changes/add-oauth/specs/auth-flow#c3)
    short
    (form /changes/add-oauth/comments/3) [ Resolve ]
    ## Resolved 1
    (#c1)
    alice
    [TIME]
    on specs/auth-flow.md · R2 (/changes/add-oauth/specs/auth-flow#c1) resolved by alice
    By subject of which issuer?
    (form /changes/add-oauth/comments/1) [ Open again ]
    ");
    assert_eq!(viewer.post("/changes/add-oauth/comments/1", "fate=open").status, 303);
    assert_eq!(read().open().count(), 3);
    assert_eq!(viewer.post("/changes/add-oauth/comments/9", "fate=open").status, 404);
    assert_eq!(viewer.post("/changes/none/comments", "on=proposal.md&text=x").status, 404);
}

/// What an overview shows of decisions: the form, and those that were made.
fn decisions(overview: &str) -> String {
    let start = overview.find("(form /changes/add-oauth/decide)").unwrap();
    overview[start..].split("\n## Activity").next().unwrap().to_owned()
}

#[test]
fn decision_is_that_of_agentd_decide() {
    let project = project();
    let viewer = Viewer::start(&project);
    let answer = viewer.post("/changes/add-oauth/decide", "choice=fix&note=see+I2");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/changes/add-oauth")));
    let state = || state::parse(&project.read("STATE.yaml"), &project.id()).unwrap();
    let made = state().decisions.remove(0);
    assert_eq!(
        (made.choice, made.note.as_str(), made.by.as_str()),
        (Choice::Fix, "see I2", "alice")
    );
    let overview = page(&viewer, "/changes/add-oauth");
    insta::assert_snapshot!(decisions(&overview), @"
    (form /changes/add-oauth/decide)
    ## Your decision
    Round 2 ended with NEEDS REVISION: 0 high, 1 medium, 1 low.
    Decided: changes requested by alice
    [TIME]
    “see I2”
    Reason
    [ Request changes ] [ Accept with 2 minor issues ] [ Stop here ]
    Let people sign in with their company account, through OAuth 2.1 with PKCE, and keep passwords for those who have no such account.
    ");
    assert_eq!(viewer.post("/changes/add-oauth/decide", "choice=accept&note=").status, 303);
    assert_eq!(state().phase, Phase::Challenged);
    // What the phase does not allow is refused, and changes nothing.
    let answer = viewer.post("/changes/dark-mode/decide", "choice=accept");
    assert_eq!(answer.status, 409, "{answer:?}");
    insta::assert_snapshot!(answer.shown(), @"
    (#main)
    # Not possible now
    `dark-mode` has nothing to decide: it is complete
    continue with: agentd archive dark-mode
    All changes (/)
    ");
    assert_eq!(viewer.post("/changes/add-oauth/decide", "choice=banana").status, 422);
}

/// C11: with a HIGH issue, or after an edit, the plan cannot be accepted, and the page says why.
#[test]
fn no_button_for_unacceptable_plan() {
    let project = TestProject::new().change("add-oauth").challenged(&[Severity::High]);
    let viewer = Viewer::start(&project);
    let overview = page(&viewer, "/changes/add-oauth");
    insta::assert_snapshot!(decisions(&overview), @"
    (form /changes/add-oauth/decide)
    ## Your decision
    Round 1 ended with NEEDS REVISION: 1 high, 0 medium, 0 low.
    Reason
    [ Request changes ] [disabled: Accept with 1 minor issue ] [ Stop here ]
    (#why-not) The plan cannot be accepted: HIGH issues or more than one MEDIUM issue are left.
    Sign in with OAuth.
    ");
    assert_eq!(viewer.post("/changes/add-oauth/decide", "choice=accept").status, 409);
    // No choice of a person about a plan.
    assert_eq!(viewer.post("/changes/add-oauth/decide", "choice=archive").status, 422);

    // A plan that was edited is challenged first.
    project.replace("tasks.md", "src/auth.rs", "src/other.rs");
    let overview = page(&viewer, "/changes/add-oauth");
    assert!(!overview.contains("/decide)"), "{overview}");
    assert_eq!(viewer.post("/changes/add-oauth/decide", "choice=fix").status, 409);
    assert_eq!(project.state().decisions, []);
}

#[test]
fn broken_files_are_reported_on_their_page() {
    let project = project();
    project.write("STATE.yaml", "phase: [");
    project.write("tasks.md", "\u{feff}no tasks here");
    project.write("rounds/0001.json", "{");
    project.write("comments.md", "---\nx: [\n");
    std::fs::write(project.path("clarifications.md"), b"\xff\xfe").unwrap();
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(card(&viewer, "add-oauth").unwrap(), @"
    Let people sign in with their company account, through OAuth 2.1 with PKCE, and… add-oauth (/changes/add-oauth)
    no tasks $0.00 unreadable shares auth-flow:R1 with dark-mode (/changes/dark-mode) shares auth-flow:R1 with export-reports (/changes/export-reports) shares auth-flow:R1 with rewrite-in-cobol (/changes/rewrite-in-cobol) and 29 more
    ");
    insta::assert_snapshot!(card(&viewer, "dark-mode").unwrap(), @"
    dark mode for everyone, through OAuth 2.1 with PKCE, and keep passwords for… dark-mode (/changes/dark-mode)
    2/6 $0.86 challenge
    ");
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth"), @r#"
    # Let people sign in with their company account, through OAuth 2.1 with PKCE, and…
    add-oauth NEEDS REVISION no tasks
    - Planning
    - Approved
    - Implementing
    - Complete
    - Archived
    (alert) cannot use the STATE.yaml of `add-oauth`: externally tagged enum expected scalar or mapping (line 1, column 8)
    Let people sign in with their company account, through OAuth 2.1 with PKCE, and keep passwords for those who have no such account.
    ## Activity live (#live-run) 0001-challenge.jsonl
    (#log) (follows /changes/add-oauth/live?after=1:1176)
    - challenge codex as challenger
    - gpt-5-codex · session 0198-abc
    - I read the proposal and both specs first.
    - agentd.read_file specs/auth-flow.md
    {
    "change_id": "add-oauth",
    "path": "specs/auth-flow.md"
    }
    - ✓ # Specification: Sign-in with a company account
    # Specification: Sign-in with a company account
    ## Overview
    - R2 now says that accounts are matched by subject. R3 still has no scenario.
    - agentd.append_review NEEDS_REVISION · One medium issue is left.
    {
    "change_id": "add-oauth",
    "verdict": "NEEDS_REVISION",
    "summary": "One medium issue is left."
    }
    - ✓ proposal.md: review 2 appended
    proposal.md: review 2 appended
    - finished after 1 m 33 s
    ## Findings 2 open, 2 settled
    - MEDIUM No scenario for a provider that hangs (/changes/add-oauth/reviews#i2) open
    - LOW The callback's name differs between spec and tasks (/changes/add-oauth/reviews#i4) new
    - HIGH Accounts are matched by e-mail (/changes/add-oauth/reviews#i1) fixed
    - LOW Audit entries have no retention (/changes/add-oauth/reviews#i3) fixed
    ## Validation 5 findings
    - LOW session-store:23 (/changes/add-oauth/specs/session-store?view=source#L23) no scenario says what happens when something goes wrong
    - MEDIUM Tasks:1 (/changes/add-oauth/tasks?view=source#L1) tasks.md has no frontmatter
    - HIGH Tasks:1 (/changes/add-oauth/tasks?view=source#L1) there is no task
    - HIGH Clarifications:1 (/changes/add-oauth/clarifications?view=source#L1) `agentd/changes/add-oauth/clarifications.md` is not valid UTF-8: bad byte at offset 0
    - HIGH STATE.yaml externally tagged enum expected scalar or mapping (line 1, column 8)
    "#);
    for name in ["tasks", "comments", "reviews", "runs", "trace"] {
        page(&viewer, &format!("/changes/add-oauth/{name}"));
    }
    assert_eq!(viewer.get("/changes/add-oauth/clarifications").status, 500);
    assert_eq!(viewer.get("/changes/add-oauth/changes?from=1").status, 404);
}

/// Summaries are kept between requests: what has changed must show all the same.
#[test]
fn first_page_is_up_to_date() {
    let project = project();
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(card(&viewer, "add-oauth").unwrap(), @"
    Let people sign in with their company account, through OAuth 2.1 with PKCE, and… add-oauth (/changes/add-oauth)
    2/6 $0.86 challenge
    ");
    project.write("tasks.md", project.read("tasks.md").replace("status: pending", "status: done"));
    insta::assert_snapshot!(card(&viewer, "add-oauth").unwrap(), @"
    Let people sign in with their company account, through OAuth 2.1 with PKCE, and… add-oauth (/changes/add-oauth)
    6/6 $0.86 challenge
    ");
    assert_eq!(viewer.post("/changes/add-oauth/decide", "choice=stop").status, 303);
    insta::assert_snapshot!(card(&viewer, "add-oauth").unwrap(), @"
    Let people sign in with their company account, through OAuth 2.1 with PKCE, and… add-oauth (/changes/add-oauth)
    6/6 $0.86 decide
    ");
    std::fs::remove_dir_all(project.root().join("agentd/changes/dark-mode")).unwrap();
    assert_eq!(card(&viewer, "dark-mode"), None);
}
