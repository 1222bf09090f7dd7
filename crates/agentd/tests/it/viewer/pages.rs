//! What the pages show, and what can be done on them.

use super::outline::outline;
use super::{Viewer, project};
use agentd_core::diagnostic::Severity;
use agentd_core::document::comments::{self, Anchor};
use agentd_core::phase::Phase;
use agentd_core::state::{self, Choice};
use test_project::TestProject;

/// A page that must be there, as a text browser shows it, without its head.
#[track_caller]
fn page(viewer: &Viewer, address: &str) -> String {
    let answer = viewer.get(address);
    assert_eq!(answer.status, 200, "{address}: {}", answer.body);
    answer.shown()
}

/// What every page of a change has: its head, what is next, and its tabs.
fn head(viewer: &Viewer, address: &str) -> String {
    viewer.get(address).between("<header class=\"change-head\"", "<div class=\"content\"")
}

/// What a page says about what is next.
fn next(viewer: &Viewer, address: &str) -> String {
    viewer.get(address).between("aria-label=\"What is next\">", "</section>")
}

/// The list of documents beside one.
fn documents(viewer: &Viewer, address: &str) -> String {
    viewer.get(address).between("<nav class=\"documents\"", "</nav>")
}

/// The lines of a page on which something is found.
fn findings(viewer: &Viewer, address: &str) -> String {
    let page = page(viewer, address);
    let lines = page.lines().filter(|line| line.starts_with("(finding"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The row of a change in the list.
fn row(viewer: &Viewer, id: &str) -> Option<String> {
    let body = viewer.get("/").body;
    let (_, rest) = body.split_once(&format!("<tr data-id=\"{id}\">"))?;
    Some(outline(rest.split("<time").next().unwrap().split("</tr>").next().unwrap()))
}

/// A board of all changes, and the page of one of them.
#[test]
fn home_and_first_page_of_change() {
    let project = project();
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(page(&viewer, "/"), @r#"
    (#main) (follows /live?after=[MARK])
    # project
    5 need you 6 changes open $5.14 spent (/costs), $5.14 in 2026-11
    ## (#needs-title) Needs you 5
    - add-oauth Let people sign in with their company account, through OAuth 2.1 with PKCE, and… (/changes/add-oauth) The plan needs revision: 0 high, 1 medium, 1 low
    [TIME]
    reproposal --fresh
    - dark-mode dark mode for everyone, through OAuth 2.1 with PKCE, and keep passwords for… (/changes/dark-mode) The plan was edited since it was approved
    [TIME]
    revise
    - export-reports export reports for everyone, through OAuth 2.1 with PKCE, and keep passwords… (/changes/export-reports) The plan was edited since it was approved
    [TIME]
    revise
    - rewrite-in-cobol rewrite in cobol for everyone, through OAuth 2.1 with PKCE, and keep passwords… (/changes/rewrite-in-cobol) The plan was edited since it was judged
    [TIME]
    challenge
    - speed-up-search speed up search for everyone, through OAuth 2.1 with PKCE, and keep passwords… (/changes/speed-up-search) The plan was edited since it was judged
    [TIME]
    challenge
    (form /) (#list-filter)
    ## Open 6
    (#filter)
    Sort
    needs you
    [ Show ] (current) List (/?) Board (/?view=board) ⚠ 5 share requirements or files with others
    | Planning 2
    | Let people sign in with their company account, through OAuth 2.1 with PKCE, and… add-oauth (/changes/add-oauth) | needs revision | ⚠ 4 | 2/6 | $0.86 |
    [TIME]
    | just-an-idea just-an-idea (/changes/just-an-idea) | new | | | $0.00 |
    | Approved 1
    | speed up search for everyone, through OAuth 2.1 with PKCE, and keep passwords… speed-up-search (/changes/speed-up-search) | plan edited | ⚠ 4 | 2/6 | $0.86 |
    [TIME]
    | Implementing 1
    | export reports for everyone, through OAuth 2.1 with PKCE, and keep passwords… export-reports (/changes/export-reports) | plan edited | ⚠ 4 | 2/6 | $0.86 |
    [TIME]
    | Complete 1
    | dark mode for everyone, through OAuth 2.1 with PKCE, and keep passwords for… dark-mode (/changes/dark-mode) | plan edited | ⚠ 4 | 2/6 | $0.86 |
    [TIME]
    | Rejected 1
    | rewrite in cobol for everyone, through OAuth 2.1 with PKCE, and keep passwords… rewrite-in-cobol (/changes/rewrite-in-cobol) | plan edited | ⚠ 4 | 2/6 | $0.86 |
    [TIME]
    Main specs 1 (/specs) Archive 1 (/archive) Costs (/costs)
    "#);
    insta::assert_snapshot!(viewer.get("/?view=board&phase=Complete").between("<div class=\"board\"", "<p class=\"below\""), @r#"
    ### Complete 1
    - dark mode for everyone, through OAuth 2.1 with PKCE, and keep passwords for… dark-mode (/changes/dark-mode)
    plan edited 2/6 $0.86
    [TIME]
    ⚠ 4
    "#);
    // C11 allows to accept this plan.
    insta::assert_snapshot!(head(&viewer, "/changes/add-oauth"), @r#"
    # Let people sign in with their company account, through OAuth 2.1 with PKCE, and…
    Share
    - One page of HTML (/changes/add-oauth/export.html)
    - Markdown for a pull request (/changes/add-oauth/export.md)
    add-oauth plan: needs revision 2/6 $0.86 updated
    [TIME]
    - (current) Planning
    - Approved
    - Implementing
    - Complete
    - Archived
    Waits for you The plan needs revision.
    (form /changes/add-oauth/decide)
    Round 2 of codex gpt-5-codex ended with NEEDS REVISION: 0 high, 1 medium, 1 low.
    What you accept
    - MEDIUM I2 No scenario for a provider that hangs (/changes/add-oauth/review?show=all#I2)
    - LOW I4 The callback's name differs between spec and tasks (/changes/add-oauth/review?show=all#I4)
    What the planner should know
    [ Request changes ] [ Accept with 2 minor issues ] [ Stop here ]
    then agentd reproposal add-oauth --fresh
    (current) Plan 2 specs, 6 tasks 1 (/changes/add-oauth) Review 2 open, 2 settled (/changes/add-oauth/review) Code 2/6 tasks (/changes/add-oauth/code) Runs 8 (/changes/add-oauth/runs)
    "#);
    insta::assert_snapshot!(documents(&viewer, "/changes/add-oauth"), @r#"
    - (current) Proposal (/changes/add-oauth/proposal)
    - auth-flow (added) new (added) +3 (/changes/add-oauth/specs/auth-flow)
    - session-store 1 (/changes/add-oauth/specs/session-store)
    - Tasks 2/6 1 (/changes/add-oauth/tasks)
    - Clarifications (/changes/add-oauth/clarifications)
    "#);
    insta::assert_snapshot!(head(&viewer, "/changes/just-an-idea"), @r#"
    # just-an-idea
    Share
    - One page of HTML (/changes/just-an-idea/export.html)
    - Markdown for a pull request (/changes/just-an-idea/export.md)
    just-an-idea plan: new no tasks
    - Planning
    - Approved
    - Implementing
    - Complete
    - Archived
    Unfinished No workflow has run on it yet.
    agentd validate just-an-idea
    (current) Plan 0 tasks 5 (/changes/just-an-idea) Review – (/changes/just-an-idea/review) Code – (/changes/just-an-idea/code) Runs – (/changes/just-an-idea/runs)
    "#);
}

/// Filters, order and view are in the address, and the numbers follow them (D9).
#[test]
fn list_is_what_the_address_says() {
    let project = project();
    let viewer = Viewer::start(&project);
    let ids = |query: &str| -> Vec<String> {
        let body = viewer.get(query).body;
        let rows = body.split("<tr data-id=\"").skip(1);
        rows.map(|row| row.split('"').next().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("/").len(), 6);
    assert_eq!(ids("/?q=DARK+mode"), ["dark-mode"]);
    assert_eq!(ids("/?phase=Implementing"), ["export-reports"]);
    assert_eq!(ids("/?verdict=none&phase=Planning"), ["just-an-idea"]);
    assert_eq!(ids("/?verdict=NEEDS_REVISION&q=oauth&phase=Planning"), ["add-oauth"]);
    assert_eq!(ids("/?spec=auth-flow&phase=Planning"), ["add-oauth"]);
    assert_eq!(ids("/?sort=id")[..2], ["add-oauth", "dark-mode"]);
    assert_eq!(ids("/?phase=banana&page=99999999999999999999&sort=x").len(), 6);
    assert!(viewer.get("/?q=nothing+like+it").body.contains("Nothing found."));
    assert!(ids("/?needs=1").contains(&"add-oauth".to_owned()));
}

#[test]
fn document_pages() {
    let project = project();
    let viewer = Viewer::start(&project);
    // Reviews have a page of their own.
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/proposal"), @r#"
    - (current) Proposal (/changes/add-oauth/proposal)
    - auth-flow (added) new (added) +3 (/changes/add-oauth/specs/auth-flow)
    - session-store 1 (/changes/add-oauth/specs/session-store)
    - Tasks 2/6 1 (/changes/add-oauth/tasks)
    - Clarifications (/changes/add-oauth/clarifications)
    Validation 2 findings
    - MEDIUM tasks.md:7 (/changes/add-oauth/tasks?view=source#L7) no task implements auth-flow:R3 (A provider that does not answer) T010: Add a task with this spec_ref.
    - LOW session-store.md:23 (/changes/add-oauth/specs/session-store?view=source#L23) no scenario says what happens when something goes wrong Q004: Add a scenario for a wrong input, a missing thing, a time-out or a refusal.
    proposal.md (current) Read (/changes/add-oauth/proposal) Changes (/changes/add-oauth/proposal?view=changes&from=2) Source (/changes/add-oauth/proposal?view=source) Edit (/changes/add-oauth/proposal?view=edit) [comment on ""]
    (issue-note settled) fixed I3 Audit entries have no retention (/changes/add-oauth/review?show=all#I3)
    (#h-summary)
    ## Summary
    [comment on "heading Summary"]
    (/changes/add-oauth/proposal?view=edit&at=heading%20Summary)
    Let people sign in with their company account, through OAuth 2.1 with PKCE, and keep passwords for those who have no such account.
    (#h-why)
    ## Why
    [comment on "heading Why"]
    (/changes/add-oauth/proposal?view=edit&at=heading%20Why)
    Half of all support requests are about forgotten passwords. Companies that use us ask for single sign-on, and two of them have made it a condition for renewing.
    | Provider | Users today | Wanted by
    | Google Workspace | 1,204 | December
    | Microsoft Entra | 861 | December
    | Okta | 87 | spring
    (#h-what-changes)
    ## What Changes
    [comment on "heading What Changes"]
    (/changes/add-oauth/proposal?view=edit&at=heading%20What%20Changes)
    - A button for each provider on the sign-in page
    - Sessions that are bound to the provider's account
    - An audit entry for every sign-in
    (#h-impact)
    ## Impact
    [comment on "heading Impact"]
    (/changes/add-oauth/proposal?view=edit&at=heading%20Impact)
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
    - Proposal (/changes/add-oauth/proposal)
    - (current) auth-flow (added) new (added) +3 (/changes/add-oauth/specs/auth-flow)
    - session-store 1 (/changes/add-oauth/specs/session-store)
    - Tasks 2/6 1 (/changes/add-oauth/tasks)
    - Clarifications (/changes/add-oauth/clarifications)
    specs/auth-flow.md (current) Read (/changes/add-oauth/specs/auth-flow) Changes (/changes/add-oauth/specs/auth-flow?view=changes&from=2) Main spec (/changes/add-oauth/specs/auth-flow?view=main) Source (/changes/add-oauth/specs/auth-flow?view=source) Edit (/changes/add-oauth/specs/auth-flow?view=edit) [comment on ""]
    (#h-overview)
    ## Overview
    [comment on "heading Overview"]
    (/changes/add-oauth/specs/auth-flow?view=edit&at=heading%20Overview)
    How a person signs in with an account of their company, and what happens when the provider does not answer.
    (#h-requirements)
    ## Requirements
    [comment on "heading Requirements"]
    (/changes/add-oauth/specs/auth-flow?view=edit&at=heading%20Requirements)
    (#h-r1-authorization-with-pkce) (#R1)
    ### R1 Authorization with PKCE
    high ✓ 1.2 (/changes/add-oauth/tasks#task-1-2) ○ 2.1 (/changes/add-oauth/tasks#task-2-1) ○ 3.1 (/changes/add-oauth/tasks#task-3-1) [comment on "R1"]
    (/changes/add-oauth/specs/auth-flow?view=edit&at=R1)
    The server MUST use the authorization code flow with PKCE and reject every answer whose state does not equal the one that was sent within 10 minutes, once.
    (#h-r2-accounts-are-matched-by-subject) (#R2)
    ### R2 Accounts are matched by subject
    high ○ 2.2 (/changes/add-oauth/tasks#task-2-2) ○ 4.1 (/changes/add-oauth/tasks#task-4-1) [comment on "R2"]
    (/changes/add-oauth/specs/auth-flow?view=edit&at=R2)
    (issue-note settled) fixed I1 Accounts are matched by e-mail (/changes/add-oauth/review?show=all#I1)
    The server MUST match accounts by the provider's sub claim and MUST NOT match by e-mail address.
    (#h-r3-a-provider-that-does-not-answer) (#R3)
    ### R3 A provider that does not answer
    medium no task [comment on "R3"]
    (/changes/add-oauth/specs/auth-flow?view=edit&at=R3)
    (issue-note) MEDIUM I2 No scenario for a provider that hangs (/changes/add-oauth/review?show=all#I2)
    The page SHOULD offer the password form when the provider has not answered within 5 seconds.
    (#h-acceptance-criteria)
    ## Acceptance Criteria
    [comment on "heading Acceptance Criteria"]
    (/changes/add-oauth/specs/auth-flow?view=edit&at=heading%20Acceptance%20Criteria)
    (#h-scenario-first-sign-in)
    ### Scenario: First sign-in
    [comment on "heading Scenario: First sign-in"]
    (/changes/add-oauth/specs/auth-flow?view=edit&at=heading%20Scenario%3A%20First%20sign-in)
    - GIVEN a person without an account
    - WHEN they come back from the provider with a valid code
    - THEN an account with the sub of the provider exists
    - AND a session cookie is set
    (#h-scenario-stolen-state)
    ### Scenario: Stolen state
    [comment on "heading Scenario: Stolen state"]
    (/changes/add-oauth/specs/auth-flow?view=edit&at=heading%20Scenario%3A%20Stolen%20state)
    - WHEN an answer arrives with an unknown state
    - THEN the response is 400 and no session exists
    (#h-flow)
    ## Flow
    [comment on "heading Flow"]
    (/changes/add-oauth/specs/auth-flow?view=edit&at=heading%20Flow)
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
    (/changes/add-oauth/specs/auth-flow?view=edit&at=heading%20Interfaces)
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
    - Proposal (/changes/add-oauth/proposal)
    - auth-flow (added) new (added) +3 (/changes/add-oauth/specs/auth-flow)
    - session-store 1 (/changes/add-oauth/specs/session-store)
    - (current) Tasks 2/6 1 (/changes/add-oauth/tasks)
    - Clarifications (/changes/add-oauth/clarifications)
    tasks.md (current) Read (/changes/add-oauth/tasks) Changes (/changes/add-oauth/tasks?view=changes&from=2) Source (/changes/add-oauth/tasks?view=source) Edit (/changes/add-oauth/tasks?view=edit) [comment on ""]
    ## Tasks
    2/6
    (graph) (#arrow) (#node-clip) (node done)
    1.1 Table of sessions with provider and subject: done. migrations/0007_sessions.sql
    (#task-1-1) (node done)
    1.2 Pending authorizations: done. src/auth/pending.rs
    (#task-1-2) (node ready)
    2.1 Exchange of the code: next. src/auth/exchange.rs
    (#task-2-1) (node ready)
    2.2 Match accounts: next. src/auth/accounts.rs
    (#task-2-2) (node waiting)
    3.1 Routes and buttons: waits for others. src/routes.rs
    (#task-3-1) (node waiting)
    4.1 Sign-in against a fake provider: waits for others. tests/sign_in.rs
    (#task-4-1)
    done next waits for others, or for the layer above arrows lead from a task to the one that waits for it
    (issue-note) LOW I4 The callback's name differs between spec and tasks (/changes/add-oauth/review?show=all#I4)
    (finding medium) MEDIUM no task implements auth-flow:R3 (A provider that does not answer)
    line 7 · T010 · Add a task with this spec_ref.
    ### data 2/2
    (#task-1-1)
    #### ✓ 1.1 Table of sessions with provider and subject [comment on "task 1.1"]
    CREATE migrations/0007_sessions.sql session-store:R1 (/changes/add-oauth/specs/session-store#R1)
    Add provider and subject, both not null.
    (#task-1-2)
    #### ✓ 1.2 Pending authorizations [comment on "task 1.2"]
    CREATE src/auth/pending.rs auth-flow:R1 (/changes/add-oauth/specs/auth-flow#R1)
    Keep state and verifier for 10 minutes.
    ### logic 0/2
    (#task-2-1)
    #### ○ 2.1 Exchange of the code [comment on "task 2.1"]
    CREATE src/auth/exchange.rs auth-flow:R1 (/changes/add-oauth/specs/auth-flow#R1) after 1.2 (#task-1-2)
    Check state, send the verifier, read the id token.
    (#task-2-2)
    #### ○ 2.2 Match accounts [comment on "task 2.2"]
    MODIFY src/auth/accounts.rs auth-flow:R2 (/changes/add-oauth/specs/auth-flow#R2) after 1.1 (#task-1-1)
    By sub, never by e-mail.
    ### integration 0/1
    (#task-3-1)
    #### ○ 3.1 Routes and buttons [comment on "task 3.1"]
    MODIFY src/routes.rs auth-flow:R1 (/changes/add-oauth/specs/auth-flow#R1) after 2.1 (#task-2-1), 2.2 (#task-2-2)
    /sign-in/<provider> and /callback.
    (issue-note) LOW I4 The callback's name differs between spec and tasks (/changes/add-oauth/review?show=all#I4)
    ### testing 0/1
    (#task-4-1)
    #### ○ 4.1 Sign-in against a fake provider [comment on "task 4.1"]
    CREATE tests/sign_in.rs auth-flow:R2 (/changes/add-oauth/specs/auth-flow#R2) after 3.1 (#task-3-1)
    Both scenarios, and a provider that hangs.
    "#);
    let source = page(&viewer, "/changes/add-oauth/specs/session-store?view=source");
    insta::assert_snapshot!(source.lines().take(12).collect::<Vec<_>>().join("\n"), @r#"
    - Proposal (/changes/add-oauth/proposal)
    - auth-flow (added) new (added) +3 (/changes/add-oauth/specs/auth-flow)
    - (current) session-store 1 (/changes/add-oauth/specs/session-store)
    - Tasks 2/6 1 (/changes/add-oauth/tasks)
    - Clarifications (/changes/add-oauth/clarifications)
    specs/session-store.md Read (/changes/add-oauth/specs/session-store) Changes (/changes/add-oauth/specs/session-store?view=changes&from=2) Main spec (/changes/add-oauth/specs/session-store?view=main) (current) Source (/changes/add-oauth/specs/session-store?view=source) Edit (/changes/add-oauth/specs/session-store?view=edit) [comment on ""]
    - (#L1) [comment on "line 1"] ---
    - (#L2) [comment on "line 2"] id: session-store
    - (#L3) [comment on "line 3"] type: spec
    - (#L4) [comment on "line 4"] title: Sessions
    - (#L5) [comment on "line 5"] version: 1
    - (#L6) [comment on "line 6"] ---
    "#);
    insta::assert_snapshot!(page(&viewer, "/specs/session-store?history=R1"), @r#"
    (#main)
    agentd/specs/session-store.md
    (#h-specification-sessions)
    # Specification: Sessions
    (#h-overview)
    ## Overview
    Where sessions are kept.
    (#h-requirements)
    ## Requirements
    (#h-r1-sessions-name-their-provider) (#R1)
    ### R1: Sessions name their provider
    History (/specs/session-store?history=R1#R1)
    #### History
    - added by speed-up-search (/changes/speed-up-search) open
    - added by rewrite-in-cobol (/changes/rewrite-in-cobol) open
    - added by export-reports (/changes/export-reports) open
    - added by dark-mode (/changes/dark-mode) open
    - added by add-oauth (/changes/add-oauth) open
    - added by add-passwords (/archive/[DATE]-add-passwords)
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
    "#);
}

/// What has changed since a round, and against the main spec (D15).
#[test]
fn difference_pages() {
    let project = project();
    let main = include_str!("fixtures/session-store.md").replace("MUST", "SHOULD");
    project.write_root("agentd/specs/session-store.md", main);
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/specs/auth-flow?view=changes&from=1&to=2"), @r#"
    - Proposal (/changes/add-oauth/proposal)
    - (current) auth-flow (added) new (added) +3 (/changes/add-oauth/specs/auth-flow)
    - session-store 1 (/changes/add-oauth/specs/session-store)
    - Tasks 2/6 1 (/changes/add-oauth/tasks)
    - Clarifications (/changes/add-oauth/clarifications)
    specs/auth-flow.md Read (/changes/add-oauth/specs/auth-flow) (current) Changes (/changes/add-oauth/specs/auth-flow?view=changes&from=2) Main spec (/changes/add-oauth/specs/auth-flow?view=main) Source (/changes/add-oauth/specs/auth-flow?view=source) Edit (/changes/add-oauth/specs/auth-flow?view=edit) [comment on ""]
    (form /changes/add-oauth/specs/auth-flow)
    From
    to
    [ Show ]
    (added) +1 (removed) −1 lines
    ### R1: Authorization with PKCE
    12 12 Priority: high
    13 13
    14 14 The server MUST use the authorization code flow with PKCE and reject every answer whose
    15 − state does not equal the one that was sent within 10 minutes.
    15 + state does not equal the one that was sent within 10 minutes, once.
    16 16
    17 17 R2: Accounts are matched by subject
    18 18
    "#);
    let same = page(&viewer, "/changes/add-oauth/tasks?view=changes&from=1&to=");
    assert!(same.contains("Nothing has changed in this document."), "{same}");
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/specs/session-store?view=main"), @r#"
    - Proposal (/changes/add-oauth/proposal)
    - auth-flow (added) new (added) +3 (/changes/add-oauth/specs/auth-flow)
    - (current) session-store 1 (/changes/add-oauth/specs/session-store)
    - Tasks 2/6 1 (/changes/add-oauth/tasks)
    - Clarifications (/changes/add-oauth/clarifications)
    specs/session-store.md Read (/changes/add-oauth/specs/session-store) Changes (/changes/add-oauth/specs/session-store?view=changes&from=2) (current) Main spec (/changes/add-oauth/specs/session-store?view=main) Source (/changes/add-oauth/specs/session-store?view=source) Edit (/changes/add-oauth/specs/session-store?view=edit) [comment on ""]
    agentd/specs/session-store.md (/specs/session-store)
    R1 differs from the main spec, and it is not known what the change started from
    ### Main spec
    ### R1: Sessions name their provider
    **Priority**: high
    The store SHOULD keep the provider and the subject of every session, and SHOULD delete a session
    within 1 second after sign-out.
    ### This change
    ### R1: Sessions name their provider
    **Priority**: high
    The store MUST keep the provider and the subject of every session, and MUST delete a session
    within 1 second after sign-out.
    (added) +0 (removed) −0 lines
    "#);
    for none in ["?view=changes&from=9", "?view=changes&from=2&to=7", "?view=main"] {
        let address = format!("/changes/add-oauth/proposal{none}");
        assert_eq!(viewer.get(&address).status, 404, "{address}");
    }
}

#[test]
fn review_pages() {
    let project = project();
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/review?show=all"), @r#"
    open 2 (/changes/add-oauth/review?show=open) settled 2 (/changes/add-oauth/review?show=settled) (current) all 4 (/changes/add-oauth/review?show=all)
    (form /changes/add-oauth/review)
    In
    [ Show ]
    (#I2)
    MEDIUM I2 No scenario for a provider that hangs ● ● open
    codex gpt-5-codex
    [TIME]
    at auth-flow:R3 (/changes/add-oauth/specs/auth-flow#R3)
    A reader cannot tell what is meant, and two implementers would build two things.
    Recommendation
    Say it in one sentence, with a number.
    (form /changes/add-oauth/comments)
    Reply (given to the planner with the finding)
    [ Reply ]
    (#I4)
    LOW I4 The callback's name differs between spec and tasks · ● new
    codex gpt-5-codex
    [TIME]
    at tasks.md (/changes/add-oauth/tasks), task 3.1 (/changes/add-oauth/tasks#task-3-1)
    A reader cannot tell what is meant, and two implementers would build two things.
    Recommendation
    Say it in one sentence, with a number.
    (form /changes/add-oauth/comments)
    Reply (given to the planner with the finding)
    [ Reply ]
    (#I1)
    HIGH I1 Accounts are matched by e-mail ● ✓ fixed
    codex gpt-5-codex
    [TIME]
    at auth-flow:R2 (/changes/add-oauth/specs/auth-flow#R2)
    A reader cannot tell what is meant, and two implementers would build two things.
    Recommendation
    Say it in one sentence, with a number.
    Fixed: Accounts are matched by the provider's id.
    What else changed in this document since round 1 until round 2
    specs/auth-flow.md
    (added) +1 (removed) −1 lines
    ### R1: Authorization with PKCE
    12 12 Priority: high
    13 13
    14 14 The server MUST use the authorization code flow with PKCE and reject every answer whose
    15 − state does not equal the one that was sent within 10 minutes.
    15 + state does not equal the one that was sent within 10 minutes, once.
    16 16
    17 17 R2: Accounts are matched by subject
    18 18
    (form /changes/add-oauth/comments)
    Reply (given to the planner with the finding)
    [ Reply ]
    (#I3)
    LOW I3 Audit entries have no retention ● ✓ fixed
    codex gpt-5-codex
    [TIME]
    at proposal.md (/changes/add-oauth/proposal)
    A reader cannot tell what is meant, and two implementers would build two things.
    Recommendation
    Say it in one sentence, with a number.
    (form /changes/add-oauth/comments)
    Reply (given to the planner with the finding)
    [ Reply ]
    ## Rounds
    (#plan-round-2)
    Plan, round 2 NEEDS REVISION codex gpt-5-codex
    [TIME]
    The takeover is closed. One medium issue is left.
    Found: I2 (/changes/add-oauth/review?show=all#I2), I4 (/changes/add-oauth/review?show=all#I4)
    What changed since then (/changes/add-oauth/proposal?view=changes&from=2)
    (#plan-round-1)
    Plan, round 1 NEEDS REVISION codex gpt-5-codex
    [TIME]
    The flow is sound, but accounts can be taken over by e-mail.
    Found: I1 (/changes/add-oauth/review?show=all#I1), I2 (/changes/add-oauth/review?show=all#I2), I3 (/changes/add-oauth/review?show=all#I3)
    What changed since then (/changes/add-oauth/proposal?view=changes&from=1)
    "#);
    let open = page(&viewer, "/changes/add-oauth/review");
    assert!(open.contains("I2") && !open.contains("(#I1)"), "{open}");
}

#[test]
fn run_pages() {
    let project = project();
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/runs"), @r#"
    (#live)
    ## live Activity (#live-run)
    (#log)
    | # | Step | Agent | 0 5 m 28 s 10 m 57 s | Took | Tokens | Cost | Outcome
    | | proposal-gen | gemini-3-pro |
    | 48.0 s | 48.2k / 3.1k | $0.11 | done
    [TIME]
    | | proposal-review | gemini-3-pro |
    | 21.0 s | 21.0k / 800 | $0.03 | done
    [TIME]
    | | spec-gen-session-store | gemini-3-pro |
    | 39.0 s | 30.5k / 2.4k | $0.07 | done
    [TIME]
    | | spec-gen-auth-flow | gemini-3-pro |
    | 1 m 01 s | 36.8k / 4.1k | $0.09 | done
    [TIME]
    | | tasks-gen | gemini-3-pro |
    | 44.0 s | 41.2k / 2.9k | $0.08 | done
    [TIME]
    | | challenge | gpt-5-codex |
    | 2 m 08 s | 90.3k / 5.2k | $0.21 | done
    [TIME]
    | | reproposal | gemini-3-pro |
    | 1 m 12 s | 62.0k / 3.9k | $0.10 | done
    [TIME]
    | | challenge | gpt-5-codex |
    | 1 m 33 s | 88.0k / 3.1k | $0.16 | done
    [TIME]
    | 1 | challenge (/changes/add-oauth/runs/0001-challenge.jsonl) | codex | | | | | interrupted
    plan review code failed ⋯ waiting is drawn short
    ## In all
    $0.86 418.0k tokens in, 202.0k of them cached 25.5k out 8 calls 8 m 26 s
    By model
    | gemini-3-pro | $0.48 | | 6 calls | 256.9k tokens
    | gpt-5-codex | $0.37 | | 2 calls | 186.6k tokens
    By role
    | planner | $0.48 | | 6 calls | 256.9k tokens
    | challenger | $0.37 | | 2 calls | 186.6k tokens
    "#);
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/runs/0001-challenge.jsonl"), @r#"
    ## 1 challenge
    All runs (/changes/add-oauth/runs) codex as challenger
    Prompt 1 line
    agentd challenge add-oauth
    [ everything ] [ text ] [ tools ] [ errors ]
    (#log)
    challenge codex as challenger
    0:00
    gpt-5-codex · session 0198-abc
    0:00
    I read the proposal and both specs first.
    0:01
    agentd.read_file specs/auth-flow.md
    {
    "change_id": "add-oauth",
    "path": "specs/auth-flow.md"
    }
    # Specification: Sign-in with a company account
    ## Overview
    R2 now says that accounts are matched by subject. R3 still has no scenario.
    1:30
    agentd.append_review NEEDS_REVISION · One medium issue is left.
    {
    "change_id": "add-oauth",
    "verdict": "NEEDS_REVISION",
    "summary": "One medium issue is left."
    }
    proposal.md: review 2 appended
    1:33
    finished after 1 m 33 s
    "#);
    insta::assert_snapshot!(page(&viewer, "/costs"), @r#"
    (#main)
    # Costs
    $5.14 in all 2.5M tokens in, 1.2M of them cached 153.0k out 48 calls 50 m 36 s of work
    (current) all (/costs) 2026-11 $5.14 (/costs?month=2026-11)
    By model
    | gemini-3-pro | $2.90 | | 36 calls | 1.5M tokens
    | gpt-5-codex | $2.25 | | 12 calls | 1.1M tokens
    By role
    | planner | $2.90 | | 36 calls | 1.5M tokens
    | challenger | $2.25 | | 12 calls | 1.1M tokens
    By step
    | challenge | $2.25 | | 12 calls | 1.1M tokens
    | spec-gen | $0.99 | | 12 calls | 442.8k tokens
    | proposal-gen | $0.67 | | 6 calls | 307.8k tokens
    | reproposal | $0.59 | | 6 calls | 395.4k tokens
    | tasks-gen | $0.48 | | 6 calls | 264.6k tokens
    | proposal-review | $0.16 | | 6 calls | 130.8k tokens
    ## By change 6
    | Change | Cost | Calls | Tokens | Last call
    | add-oauth (/changes/add-oauth/runs) | $0.86 | 8 | 418.0k / 25.5k |
    [TIME]
    | add-passwords (/archive/[DATE]-add-passwords/runs) archived | $0.86 | 8 | 418.0k / 25.5k |
    [TIME]
    | dark-mode (/changes/dark-mode/runs) | $0.86 | 8 | 418.0k / 25.5k |
    [TIME]
    | export-reports (/changes/export-reports/runs) | $0.86 | 8 | 418.0k / 25.5k |
    [TIME]
    | rewrite-in-cobol (/changes/rewrite-in-cobol/runs) | $0.86 | 8 | 418.0k / 25.5k |
    [TIME]
    | speed-up-search (/changes/speed-up-search/runs) | $0.86 | 8 | 418.0k / 25.5k |
    [TIME]
    "#);
}

#[test]
fn search_pages() {
    let project = project();
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(page(&viewer, "/search?q=password+support"), @r#"
    (#main)
    # Search
    (form /search)
    (#filter)
    [ Search ] (current) Documents and findings (/search?q=password%20support&in=documents) Transcripts (/search?q=password%20support&in=runs)
    13 places
    - add-oauth · proposal.md
    line 28 (/changes/add-oauth/proposal?view=source#L28) Half of all support requests are about forgotten password s. Companies that use us ask for
    line 24 (/changes/add-oauth/proposal?view=source#L24) password s for those who have no such account.
    - dark-mode · proposal.md
    line 28 (/changes/dark-mode/proposal?view=source#L28) Half of all support requests are about forgotten password s. Companies that use us ask for
    line 24 (/changes/dark-mode/proposal?view=source#L24) password s for those who have no such account.
    - export-reports · proposal.md
    line 28 (/changes/export-reports/proposal?view=source#L28) Half of all support requests are about forgotten password s. Companies that use us ask for
    line 24 (/changes/export-reports/proposal?view=source#L24) password s for those who have no such account.
    - rewrite-in-cobol · proposal.md
    line 28 (/changes/rewrite-in-cobol/proposal?view=source#L28) Half of all support requests are about forgotten password s. Companies that use us ask for
    line 24 (/changes/rewrite-in-cobol/proposal?view=source#L24) password s for those who have no such account.
    - speed-up-search · proposal.md
    line 28 (/changes/speed-up-search/proposal?view=source#L28) Half of all support requests are about forgotten password s. Companies that use us ask for
    line 24 (/changes/speed-up-search/proposal?view=source#L24) password s for those who have no such account.
    - add-passwords · proposal.md
    line 28 (/archive/[DATE]-add-passwords/proposal?view=source#L28) Half of all support requests are about forgotten password s. Companies that use us ask for
    line 19 (/archive/[DATE]-add-passwords/proposal?view=source#L19) # Change: add- password s
    line 24 (/archive/[DATE]-add-passwords/proposal?view=source#L24) password s for those who have no such account.
    "#);
    // A finding leads to its row, settled or not.
    let findings = page(&viewer, "/search?q=provider+that+hangs");
    assert!(findings.contains("finding I2 (/changes/add-oauth/review?show=all#I2)"), "{findings}");
    insta::assert_snapshot!(page(&viewer, "/search?q=still+has+no+scenario&in=runs"), @r#"
    (#main)
    # Search
    (form /search)
    (#filter)
    [ Search ] Documents and findings (/search?q=still%20has%20no%20scenario&in=documents) (current) Transcripts (/search?q=still%20has%20no%20scenario&in=runs)
    1 place
    - add-oauth · run 1 challenge
    transcript (/changes/add-oauth/runs/0001-challenge.jsonl) R3 still has no scenario.
    "#);
    assert!(page(&viewer, "/search?q=zzzz").contains("Nothing found."));
    assert_eq!(viewer.get("/search").status, 200);
}

/// What is archived is neither decided nor commented on.
#[test]
fn archived_pages() {
    let project = project();
    let viewer = Viewer::start(&project);
    let archived = "/archive/2026-10-01-add-passwords";
    insta::assert_snapshot!(page(&viewer, "/archive"), @r#"
    (#main)
    # Archive 1
    (form /archive)
    (#filter)
    [ Show ]
    | 2026-10
    | Let people sign in with their company account, through OAuth 2.1 with PKCE, and… add-passwords (/archive/[DATE]-add-passwords) | 2026-10-01 | $0.86
    "#);
    insta::assert_snapshot!(head(&viewer, archived), @r#"
    # Let people sign in with their company account, through OAuth 2.1 with PKCE, and…
    Share
    - One page of HTML (/archive/[DATE]-add-passwords/export.html)
    - Markdown for a pull request (/archive/[DATE]-add-passwords/export.md)
    add-passwords plan: not challenged yet 2/6 $0.86 updated
    [TIME]
    - Planning
    - Approved
    - Implementing
    - Complete
    - (current) Archived
    Done It is archived.
    agentd show add-passwords
    (current) Plan 2 specs, 6 tasks (/archive/[DATE]-add-passwords) Review – (/archive/[DATE]-add-passwords/review) Code 2/6 tasks (/archive/[DATE]-add-passwords/code) Runs 8 (/archive/[DATE]-add-passwords/runs)
    "#);
    for name in
        ["", "/proposal", "/tasks", "/review", "/code", "/runs", "/comments", "/specs/auth-flow"]
    {
        let body = viewer.get(&format!("{archived}{name}")).body;
        assert!(!body.contains("method=\"post\""), "{name}");
        assert!(!body.contains("add-comment"), "{name}");
    }
    assert_eq!(viewer.get(&format!("{archived}/archive")).status, 404);
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
    insta::assert_snapshot!(findings(&viewer, "/changes/add-oauth/tasks"), @r#"
    (finding medium) MEDIUM no task implements auth-flow:R2 (Accounts are matched by subject)
    (finding medium) MEDIUM no task implements auth-flow:R3 (A provider that does not answer)
    (finding high) HIGH task 2.2 points to auth-flow:R9, which does not exist
    (finding high) HIGH task 4.1 points to auth-flow:R9, which does not exist
    "#);
    let tasks = page(&viewer, "/changes/add-oauth/tasks");
    let (_, task) = tasks.split_once("\n(#task-2-2)").unwrap();
    insta::assert_snapshot!(task.split_once("\n(#task-3-1)").unwrap().0, @r#"
     (node waiting)
    3.1 Routes and buttons: waits for others. src/routes.rs
    "#);
    let session_store = "/changes/add-oauth/specs/session-store";
    insta::assert_snapshot!(findings(&viewer, session_store), @r#"
    (finding high) HIGH the section ## Overview is missing
    (finding low) LOW no scenario says what happens when something goes wrong
    "#);
    let source = page(&viewer, "/changes/add-oauth/tasks?view=source");
    let (before, finding) = source.split_once("(finding").unwrap();
    insta::assert_snapshot!(before.lines().next_back().unwrap(), @r#"- (#L7) [comment on "line 7"] # Tasks: add-oauth"#);
    insta::assert_snapshot!(finding.lines().next().unwrap(), @r#" medium) MEDIUM no task implements auth-flow:R2 (Accounts are matched by subject)"#);
    let proposal = page(&viewer, "/changes/add-oauth");
    let (validation, _) = proposal.split_once("\nproposal.md").unwrap();
    insta::assert_snapshot!(validation, @r#"
    - (current) Proposal (/changes/add-oauth/proposal)
    - auth-flow (added) new (added) +3 (/changes/add-oauth/specs/auth-flow)
    - session-store 2 (/changes/add-oauth/specs/session-store)
    - Tasks 2/6 4 (/changes/add-oauth/tasks)
    - Clarifications (/changes/add-oauth/clarifications)
    Validation 6 findings
    - HIGH session-store.md:8 (/changes/add-oauth/specs/session-store?view=source#L8) the section ## Overview is missing S001: Add the section.
    - HIGH tasks.md:58 (/changes/add-oauth/tasks?view=source#L58) task 2.2 points to auth-flow:R9, which does not exist T008: auth-flow has R1, R2, R3.
    - HIGH tasks.md:88 (/changes/add-oauth/tasks?view=source#L88) task 4.1 points to auth-flow:R9, which does not exist T008: auth-flow has R1, R2, R3.
    - MEDIUM tasks.md:7 (/changes/add-oauth/tasks?view=source#L7) no task implements auth-flow:R2 (Accounts are matched by subject) T010: Add a task with this spec_ref.
    - MEDIUM tasks.md:7 (/changes/add-oauth/tasks?view=source#L7) no task implements auth-flow:R3 (A provider that does not answer) T010: Add a task with this spec_ref.
    - LOW session-store.md:20 (/changes/add-oauth/specs/session-store?view=source#L20) no scenario says what happens when something goes wrong Q004: Add a scenario for a wrong input, a missing thing, a time-out or a refusal.
    "#);
    insta::assert_snapshot!(documents(&viewer, "/changes/add-oauth"), @r#"
    - (current) Proposal (/changes/add-oauth/proposal)
    - auth-flow (added) new (added) +3 (/changes/add-oauth/specs/auth-flow)
    - session-store 2 (/changes/add-oauth/specs/session-store)
    - Tasks 2/6 4 (/changes/add-oauth/tasks)
    - Clarifications (/changes/add-oauth/clarifications)
    "#);
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
    insta::assert_snapshot!(requirement.split_once("(#h-r3").unwrap().0, @r#"
    ### R2 Accounts are matched by subject
    high ○ 2.2 (/changes/add-oauth/tasks#task-2-2) ○ 4.1 (/changes/add-oauth/tasks#task-4-1) [comment on "R2"]
    (/changes/add-oauth/specs/auth-flow?view=edit&at=R2)
    (issue-note settled) fixed I1 Accounts are matched by e-mail (/changes/add-oauth/review?show=all#I1)
    (thread) (#C1)
    (#comment-1)
    alice
    [TIME]
    C1
    By subject of which issuer?
    Edit
    (form /changes/add-oauth/comments/1/edit)
    By subject of which issuer?
    [ Save ]
    (form /changes/add-oauth/comments/1/remove) [ Remove ]
    (form /changes/add-oauth/comments/1) [ Resolve ]
    Reply
    (form /changes/add-oauth/comments/1/answer)
    [ Reply ]
    The server MUST match accounts by the provider's sub claim and MUST NOT match by e-mail address.
    "#);
    assert_eq!(viewer.post("/changes/add-oauth/comments/1", "fate=resolved").status, 303);
    assert_eq!(read().open().count(), 2);
    assert_eq!(read().comments[0].resolved.as_ref().unwrap().by.as_str(), "alice");
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth/comments"), @r#"
    - Proposal (/changes/add-oauth/proposal)
    - auth-flow (added) new (added) +3 (/changes/add-oauth/specs/auth-flow)
    - session-store 1 (/changes/add-oauth/specs/session-store)
    - Tasks 2/6 1 (/changes/add-oauth/tasks)
    - Clarifications (/changes/add-oauth/clarifications)
    - (current) Comments 2 (/changes/add-oauth/comments)
    ## Comments
    Open comments on the plan are given to the planner when it revises the plan; those on code to the implementer when it fixes the code. They are kept in comments.md.
    ### Open 2
    on specs/auth-flow.md · line 3 (/changes/add-oauth/specs/auth-flow#C2)
    (thread) (#C2)
    “type: spec”
    (#comment-2)
    alice
    [TIME]
    C2
    odd
    Edit
    (form /changes/add-oauth/comments/2/edit)
    odd
    [ Save ]
    (form /changes/add-oauth/comments/2/remove) [ Remove ]
    (form /changes/add-oauth/comments/2) [ Resolve ]
    Reply
    (form /changes/add-oauth/comments/2/answer)
    [ Reply ]
    on specs/auth-flow.md · Overview (/changes/add-oauth/specs/auth-flow#C3)
    (thread) (#C3)
    (#comment-3)
    alice
    [TIME]
    C3
    short
    Edit
    (form /changes/add-oauth/comments/3/edit)
    short
    [ Save ]
    (form /changes/add-oauth/comments/3/remove) [ Remove ]
    (form /changes/add-oauth/comments/3) [ Resolve ]
    Reply
    (form /changes/add-oauth/comments/3/answer)
    [ Reply ]
    ### Resolved 1
    on specs/auth-flow.md · R2 (/changes/add-oauth/specs/auth-flow#C1)
    (thread resolved) (#C1)
    (#comment-1)
    alice
    [TIME]
    C1
    By subject of which issuer?
    Edit
    (form /changes/add-oauth/comments/1/edit)
    By subject of which issuer?
    [ Save ]
    (form /changes/add-oauth/comments/1/remove) [ Remove ]
    resolved by alice
    [TIME]
    (form /changes/add-oauth/comments/1) [ Open again ]
    Reply
    (form /changes/add-oauth/comments/1/answer)
    [ Reply ]
    "#);
    assert_eq!(viewer.post("/changes/add-oauth/comments/1", "fate=open").status, 303);
    assert_eq!(read().open().count(), 3);
    assert_eq!(viewer.post("/changes/add-oauth/comments/9", "fate=open").status, 404);
    assert_eq!(viewer.post("/changes/none/comments", "on=proposal.md&text=x").status, 404);
}

#[test]
fn decision_is_that_of_agentd_decide() {
    let project = project();
    let viewer = Viewer::start(&project);
    let seen = viewer.seen("/changes/add-oauth", "decision");
    let decide = |id: &str, form: &str| {
        viewer.post(&format!("/changes/{id}/decide"), &format!("{form}&seen={seen}"))
    };
    let answer = decide("add-oauth", "choice=fix&note=see+I2");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/changes/add-oauth")));
    let state = || state::parse(&project.read("STATE.yaml"), &project.id()).unwrap();
    let made = state().decisions.remove(0);
    assert_eq!(
        (made.choice, made.note.as_str(), made.by.as_str()),
        (Choice::Fix, "see I2", "alice")
    );
    insta::assert_snapshot!(next(&viewer, "/changes/add-oauth"), @r#"
    Waits for you The plan needs revision.
    Decided: changes requested by alice
    [TIME]
    : “see I2”
    (#decide-again)
    Decide again
    (form /changes/add-oauth/decide)
    Round 2 of codex gpt-5-codex ended with NEEDS REVISION: 0 high, 1 medium, 1 low.
    What you accept
    - MEDIUM I2 No scenario for a provider that hangs (/changes/add-oauth/review?show=all#I2)
    - LOW I4 The callback's name differs between spec and tasks (/changes/add-oauth/review?show=all#I4)
    What the planner should know
    [ Request changes ] [ Accept with 2 minor issues ] [ Stop here ]
    then agentd reproposal add-oauth --fresh
    "#);
    assert_eq!(decide("add-oauth", "choice=accept&note=").status, 303);
    assert_eq!(state().phase, Phase::Challenged);
    // What the phase does not allow is refused, and changes nothing.
    let answer = decide("dark-mode", "choice=accept");
    assert_eq!(answer.status, 409, "{answer:?}");
    insta::assert_snapshot!(answer.shown(), @r#"
    (#main)
    # Not possible now
    `dark-mode` has nothing to decide: it is complete
    continue with: agentd archive dark-mode
    All changes (/)
    "#);
    let answer = decide("add-oauth", "choice=banana");
    assert_eq!(answer.status, 422);
    assert!(answer.body.contains("The form is not one that this page sends."), "{answer:?}");
}

/// C11: with a HIGH issue, or after an edit, the plan cannot be accepted, and the page says why.
#[test]
fn no_button_for_unacceptable_plan() {
    let project = TestProject::new().change("add-oauth").challenged(&[Severity::High]);
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(next(&viewer, "/changes/add-oauth"), @r#"
    Waits for you The plan needs revision.
    (form /changes/add-oauth/decide)
    Round 1 of codex ended with NEEDS REVISION: 1 high, 0 medium, 0 low.
    What the planner should know
    [ Request changes ] [ Stop here ]
    The plan cannot be accepted: HIGH issues or more than one MEDIUM issue are left.
    then agentd reproposal add-oauth --fresh
    "#);
    let seen = viewer.seen("/changes/add-oauth", "decision");
    let decide = |choice: &str| {
        viewer.post("/changes/add-oauth/decide", &format!("choice={choice}&seen={seen}")).status
    };
    assert_eq!(decide("accept"), 409);
    // No choice of a person about a plan.
    assert_eq!(decide("archive"), 422);

    // A plan that was edited is challenged first.
    project.replace("tasks.md", "src/auth.rs", "src/other.rs");
    let shown = head(&viewer, "/changes/add-oauth");
    assert!(
        !shown.contains("/decide)") && shown.contains("plan: edited since its review"),
        "{shown}"
    );
    assert_eq!(decide("fix"), 409);
    assert_eq!(project.state().decisions, []);
}

/// What is not written yet is not missing, and nothing leads to it.
#[test]
fn change_that_was_only_begun_has_no_findings() {
    let project = project();
    let begun = "change_id: begun\nphase: proposed\ncreated_at: 2026-11-10T09:00:00Z\n\
                 updated_at: 2026-11-10T09:00:00Z\ndescription: Let people log in\n";
    project.write_root("agentd/changes/begun/STATE.yaml", begun);
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(page(&viewer, "/changes/begun"), @r#"
    ## What was asked for
    Let people log in
    The plan is not written yet. Its documents appear here as they are written.
    "#);
    assert_eq!(viewer.get("/changes/begun/proposal").status, 404);
    // A plan that lost its proposal later is told so, without a link to it.
    let lost = begun.replace("proposed", "implementing");
    project.write_root("agentd/changes/begun/STATE.yaml", lost);
    let shown = viewer.get("/changes/begun");
    assert!(shown.shown().contains("is missing"), "{}", shown.shown());
    assert!(!shown.body.contains("/changes/begun/proposal"), "{}", shown.shown());
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
    insta::assert_snapshot!(row(&viewer, "add-oauth").unwrap(), @r#"| Let people sign in with their company account, through OAuth 2.1 with PKCE, and… add-oauth (/changes/add-oauth) | unreadable | ⚠ 4 | | $0.00 |"#);
    insta::assert_snapshot!(row(&viewer, "dark-mode").unwrap(), @r#"| dark mode for everyone, through OAuth 2.1 with PKCE, and keep passwords for… dark-mode (/changes/dark-mode) | plan edited | ⚠ 4 | 2/6 | $0.86 |"#);
    insta::assert_snapshot!(head(&viewer, "/changes/add-oauth"), @r#"
    # Let people sign in with their company account, through OAuth 2.1 with PKCE, and…
    Share
    - One page of HTML (/changes/add-oauth/export.html)
    - Markdown for a pull request (/changes/add-oauth/export.md)
    add-oauth plan: new no tasks
    - Planning
    - Approved
    - Implementing
    - Complete
    - Archived
    (alert) cannot use the STATE.yaml of add-oauth: externally tagged enum expected scalar or mapping (line 1, column 8)
    Unreadable Repair STATE.yaml, or restore it from git.
    agentd verify add-oauth
    (current) Plan 2 specs, 0 tasks 4 (/changes/add-oauth) Review 2 open, 2 settled (/changes/add-oauth/review) Code – (/changes/add-oauth/code) Runs 1 (/changes/add-oauth/runs)
    "#);
    insta::assert_snapshot!(page(&viewer, "/changes/add-oauth").lines().take(8).collect::<Vec<_>>().join("\n"), @r#"
    - (current) Proposal (/changes/add-oauth/proposal)
    - auth-flow (added) new (added) +3 (/changes/add-oauth/specs/auth-flow)
    - session-store 1 (/changes/add-oauth/specs/session-store)
    - Tasks no tasks 2 (/changes/add-oauth/tasks)
    - Clarifications 1 (/changes/add-oauth/clarifications)
    Validation 5 findings
    - HIGH tasks.md:1 (/changes/add-oauth/tasks?view=source#L1) there is no task T001: Add tasks, or let the planner write them.
    - HIGH clarifications.md:1 (/changes/add-oauth/clarifications?view=source#L1) agentd/changes/add-oauth/clarifications.md is not valid UTF-8: bad byte at offset 0 F001: Save the file as UTF-8 text, or restore it from git.
    "#);
    for name in ["tasks", "comments", "review", "runs", "code"] {
        page(&viewer, &format!("/changes/add-oauth/{name}"));
    }
    assert_eq!(viewer.get("/changes/add-oauth/clarifications").status, 500);
    assert_eq!(viewer.get("/changes/add-oauth/proposal?view=changes&from=1").status, 404);
}

/// Glances are kept between requests: what has changed must show all the same.
#[test]
fn first_page_is_up_to_date() {
    let project = project();
    let viewer = Viewer::start(&project);
    insta::assert_snapshot!(row(&viewer, "add-oauth").unwrap(), @r#"| Let people sign in with their company account, through OAuth 2.1 with PKCE, and… add-oauth (/changes/add-oauth) | needs revision | ⚠ 4 | 2/6 | $0.86 |"#);
    project.write("tasks.md", project.read("tasks.md").replace("status: pending", "status: done"));
    insta::assert_snapshot!(row(&viewer, "add-oauth").unwrap(), @r#"| Let people sign in with their company account, through OAuth 2.1 with PKCE, and… add-oauth (/changes/add-oauth) | needs revision | ⚠ 4 | 6/6 | $0.86 |"#);
    let stop = format!("choice=stop&seen={}", viewer.seen("/changes/add-oauth", "decision"));
    assert_eq!(viewer.post("/changes/add-oauth/decide", &stop).status, 303);
    insta::assert_snapshot!(row(&viewer, "add-oauth").unwrap(), @r#"| Let people sign in with their company account, through OAuth 2.1 with PKCE, and… add-oauth (/changes/add-oauth) | needs revision | ⚠ 4 | 6/6 | $0.86 |"#);
    std::fs::remove_dir_all(project.root().join("agentd/changes/dark-mode")).unwrap();
    assert_eq!(row(&viewer, "dark-mode"), None);
}
