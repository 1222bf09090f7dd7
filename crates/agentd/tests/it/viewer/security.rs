//! Who is refused, and that nothing that an agent writes becomes active.

use std::fs;

use test_project::mask;

use super::{Viewer, project};

/// Words that are in the project, and must be in no answer to a stranger.
const SECRETS: [&str; 5] =
    ["add-oauth", "company account", "session-store", "gemini-3-pro", "just-an-idea"];

/// One request that must be refused.
struct Attack {
    name: &'static str,
    method: &'static str,
    target: &'static str,
    headers: Vec<(&'static str, String)>,
    body: &'static str,
    expected: &'static [u16],
}

fn attacks(port: u16, token: &str) -> Vec<Attack> {
    let host = format!("127.0.0.1:{port}");
    let cookie = format!("agentd_view_{port}={token}");
    let origin = format!("http://{host}");
    let get = |name, target, headers, expected| Attack {
        name,
        method: "GET",
        target,
        headers,
        body: "",
        expected,
    };
    let ours = || ("Host", host.clone());
    let signed = || ("Cookie", cookie.clone());
    let from_us = || ("Origin", origin.clone());
    let form = || ("Content-Type", "application/x-www-form-urlencoded".to_owned());
    let decide = "/changes/add-oauth/decide";
    let post = |name, headers: Vec<(&'static str, String)>, expected| Attack {
        name,
        method: "POST",
        target: decide,
        headers,
        body: "choice=stop",
        expected,
    };
    let mut attacks = vec![
        get("no token", "/", vec![ours()], &[401]),
        get("no token on a change", "/changes/add-oauth", vec![ours()], &[401]),
        get("no token on a change that is not there", "/changes/nothing", vec![ours()], &[401]),
        get("no token on the stream", "/changes/add-oauth/live?after=0:0", vec![ours()], &[401]),
        get("no token on the stream of the board", "/live", vec![ours()], &[401]),
        get("no token on a main spec", "/specs/session-store", vec![ours()], &[401]),
        get("no token on the archive", "/archive/2026-10-01-add-passwords", vec![ours()], &[401]),
        get("no token on the frame", "/diagrams", vec![ours()], &[401]),
        get("wrong token in the address", "/?token=0000", vec![ours()], &[401]),
        get("empty token", "/?token=", vec![ours()], &[401]),
        get(
            "wrong cookie",
            "/",
            vec![ours(), ("Cookie", format!("agentd_view_{port}={}", "0".repeat(64)))],
            &[401],
        ),
        get(
            "a part of the token",
            "/",
            vec![ours(), ("Cookie", format!("agentd_view_{port}={}", &token[..63]))],
            &[401],
        ),
        get(
            "the cookie of another port",
            "/",
            vec![ours(), ("Cookie", format!("agentd_view_1={token}"))],
            &[401],
        ),
        get(
            "the token as another cookie",
            "/",
            vec![ours(), ("Cookie", format!("token={token}"))],
            &[401],
        ),
        get("no host", "/", vec![signed()], &[400, 421]),
        get("a foreign host", "/", vec![("Host", "evil.example".into()), signed()], &[421]),
        get(
            "a foreign host with our port",
            "/",
            vec![("Host", format!("evil.example:{port}")), signed()],
            &[421],
        ),
        get(
            "rebinding with the token",
            "/changes/add-oauth",
            vec![("Host", format!("127.0.0.1.evil.example:{port}")), signed()],
            &[421],
        ),
        get("our host, another port", "/", vec![("Host", "127.0.0.1:1".into()), signed()], &[421]),
        get("our host without a port", "/", vec![("Host", "127.0.0.1".into()), signed()], &[421]),
        get(
            "a host with a user",
            "/",
            vec![("Host", format!("x@127.0.0.1:{port}")), signed()],
            &[400, 421],
        ),
        get("two hosts", "/", vec![ours(), ("Host", "evil.example".into()), signed()], &[400, 421]),
        get("an absolute target elsewhere", "http://evil.example/", vec![ours(), signed()], &[421]),
        get(
            "a foreign origin that reads",
            "/",
            vec![ours(), signed(), ("Origin", "http://evil.example".into())],
            &[403],
        ),
        get(
            "an origin that is null",
            "/",
            vec![ours(), signed(), ("Origin", "null".into())],
            &[403],
        ),
        get(
            "a foreign origin for the stream",
            "/changes/add-oauth/live",
            vec![ours(), signed(), ("Origin", "https://evil.example".into())],
            &[403],
        ),
        get(
            "a foreign origin for the stream of the board",
            "/live",
            vec![ours(), signed(), ("Origin", "https://evil.example".into())],
            &[403],
        ),
        get(
            "our origin by https",
            "/",
            vec![ours(), signed(), ("Origin", format!("https://{host}"))],
            &[403],
        ),
        get(
            "localhost's origin for 127.0.0.1",
            "/",
            vec![ours(), signed(), ("Origin", format!("http://localhost:{port}"))],
            &[403],
        ),
        get(
            "foreign host for assets",
            "/assets/x/viewer.js",
            vec![("Host", "evil.example".into())],
            &[421],
        ),
        get(
            "foreign origin for assets",
            "/assets/x/viewer.js",
            vec![ours(), ("Origin", "http://evil.example".into())],
            &[403],
        ),
        post("a decision without token", vec![ours(), from_us(), form()], &[401]),
        post("a decision without origin", vec![ours(), signed(), form()], &[403]),
        post(
            "a decision from elsewhere",
            vec![ours(), signed(), ("Origin", "http://evil.example".into()), form()],
            &[403],
        ),
        post(
            "a decision with an origin that is null",
            vec![ours(), signed(), ("Origin", "null".into()), form()],
            &[403],
        ),
        post(
            "a decision with a foreign host",
            vec![("Host", "evil.example".into()), signed(), from_us(), form()],
            &[421],
        ),
        post(
            "a decision with a foreign host and its origin",
            vec![
                ("Host", "evil.example".into()),
                signed(),
                ("Origin", "http://evil.example".into()),
                form(),
            ],
            &[421],
        ),
        post(
            "a decision as plain text",
            vec![ours(), signed(), from_us(), ("Content-Type", "text/plain".into())],
            &[415],
        ),
        Attack {
            name: "the token in the address of a decision",
            target: "/changes/add-oauth/decide?token=x",
            ..post("", vec![ours(), from_us(), form()], &[401])
        },
        Attack {
            name: "a decision by GET",
            ..get("", "/changes/add-oauth/decide?choice=stop", vec![ours(), signed()], &[404, 405])
        },
        Attack {
            name: "PUT",
            method: "PUT",
            ..get("", "/changes/add-oauth", vec![ours(), signed(), from_us()], &[405])
        },
        Attack {
            name: "DELETE",
            method: "DELETE",
            ..get("", "/changes/add-oauth", vec![ours(), signed(), from_us()], &[405])
        },
        Attack { name: "TRACE", method: "TRACE", ..get("", "/", vec![ours(), signed()], &[405]) },
        Attack {
            name: "a preflight",
            method: "OPTIONS",
            ..get(
                "",
                decide,
                vec![
                    ours(),
                    ("Origin", "http://evil.example".into()),
                    ("Access-Control-Request-Method", "POST".into()),
                ],
                &[405],
            )
        },
    ];
    // Everything that shows something.
    for target in [
        "/attention",
        "/new",
        "/search?q=account",
        "/costs",
        "/specs",
        "/archive",
        "/changes/add-oauth/review",
        "/changes/add-oauth/code",
        "/changes/add-oauth/archive",
        "/changes/add-oauth/proposal?view=edit",
        "/changes/add-oauth/export.html",
        "/changes/add-oauth/export.md",
        "/changes/add-oauth/comments",
        "/changes/add-oauth/specs/auth-flow",
        "/archive/2026-10-01-add-passwords/review",
        "/archive/2026-10-01-add-passwords/specs/session-store",
    ] {
        attacks.push(get("no token", target, vec![ours()], &[401]));
        let evil = ("Origin", "http://evil.example".into());
        attacks.push(get("a foreign origin", target, vec![ours(), signed(), evil], &[403]));
        let rebound = ("Host", format!("evil.example:{port}"));
        attacks.push(get("a foreign host", target, vec![rebound, signed()], &[421]));
    }
    // Scripts and styles are the same for everybody, but not under any name.
    let rebound = ("Host", format!("evil.example:{port}"));
    attacks.push(get("an asset of another host", "/assets/0/viewer.js", vec![rebound], &[421]));
    // Everything that does something.
    for (target, body) in ACTIONS {
        let act = |name, headers: Vec<(&'static str, String)>, expected| Attack {
            name,
            method: "POST",
            target,
            headers,
            body,
            expected,
        };
        let evil = || ("Origin", "http://evil.example".to_owned());
        attacks.extend([
            act("an action without token", vec![ours(), from_us(), form()], &[401]),
            act("an action without origin", vec![ours(), signed(), form()], &[403]),
            act("an action from elsewhere", vec![ours(), signed(), evil(), form()], &[403]),
            act(
                "an action of another host",
                vec![("Host", format!("evil.example:{port}")), signed(), from_us(), form()],
                &[421],
            ),
            Attack {
                method: "GET",
                ..act("an action by GET", vec![ours(), signed()], &[403, 404, 405])
            },
        ]);
    }
    attacks
}

/// Every address that changes something, with a form that would.
const ACTIONS: [(&str, &str); 14] = [
    ("/new", "id=evil&description=x&then=plan"),
    ("/changes/add-oauth/comments", "on=proposal.md&text=x"),
    ("/changes/add-oauth/comments/1", "fate=resolved"),
    ("/changes/add-oauth/comments/1/answer", "text=x"),
    ("/changes/add-oauth/comments/1/edit", "text=x"),
    ("/changes/add-oauth/comments/1/remove", ""),
    ("/changes/add-oauth/decide", "choice=stop"),
    ("/changes/add-oauth/revise", "note=x"),
    ("/changes/add-oauth/edit", "on=proposal.md&seen=0&text=x"),
    ("/changes/add-oauth/check", "on=proposal.md&text=x"),
    ("/changes/add-oauth/answers", "q0=0"),
    ("/changes/add-oauth/answer", "text=x"),
    ("/changes/add-oauth/run", "command=reproposal-fresh"),
    ("/changes/add-oauth/stop", ""),
];

/// Each route is in the table of attacks, and what takes a form is in that of actions.
#[test]
fn every_route_is_attacked() {
    let routes = include_str!("../../../../agentd-viewer/src/routes.rs");
    let (_, router) = routes.split_once("Router::new()").unwrap();
    let (router, _) = router.split_once(".fallback(").unwrap();
    let attacks = attacks(1, &"0".repeat(64));
    let leads_to = |route: &str, target: &str| {
        let (route, target) = (route.split('/'), target.split('?').next().unwrap().split('/'));
        route.clone().count() == target.clone().count()
            && route.zip(target).all(|(part, name)| part.starts_with('{') || part == name)
    };
    // The first that fits is the most exact one.
    let of_route = |route: &str, target: &str, all: &[&str]| {
        let exact = all.iter().any(|other| !other.contains('{') && leads_to(other, target));
        leads_to(route, target) && (!exact || !route.contains('{'))
    };
    let routes: Vec<(&str, &str)> = router
        .split(".route(")
        .skip(1)
        .map(|route| route.trim_start().trim_start_matches('"').split_once('"').unwrap())
        .collect();
    let all: Vec<&str> = routes.iter().map(|(route, _)| *route).collect();
    assert!(all.len() > 25, "{all:?}");
    for (route, handlers) in &routes {
        for (method, handler) in [("GET", "get("), ("POST", "post(")] {
            if !handlers.contains(handler) {
                continue;
            }
            let is_it =
                |attack: &&Attack| attack.method == method && of_route(route, attack.target, &all);
            assert!(attacks.iter().any(|attack| is_it(&attack)), "nobody attacks {method} {route}");
        }
    }
}

#[test]
fn strangers_are_refused() {
    let project = project();
    let viewer = Viewer::start_with(&project, &["--act"]);
    let before = test_project::tree(&project.root());
    let attacks = attacks(viewer.port, &viewer.token);
    assert!(attacks.len() >= 140, "{}", attacks.len());
    for attack in attacks {
        let headers: Vec<(String, String)> = attack
            .headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let answer = viewer.send(attack.method, attack.target, &headers, attack.body);
        let what = format!("{}: {} {}", attack.name, attack.method, attack.target);
        // The address of comments shows them, too.
        let shows = attack.method == "GET" && attack.target.ends_with("/comments");
        let is_new = attack.method == "GET" && attack.target == "/new";
        if (shows || is_new) && attack.name == "an action by GET" {
            continue;
        }
        assert!(attack.expected.contains(&answer.status), "{what}: {answer:?}");
        for secret in SECRETS {
            assert!(!answer.body.contains(secret), "{} shows {secret}", attack.name);
        }
        assert!(!answer.body.contains(&viewer.token), "{} shows the token", attack.name);
        assert_eq!(answer.header("set-cookie"), None, "{}", attack.name);
        for (name, _) in &answer.headers {
            assert!(!name.starts_with("access-control-"), "{} has {name}", attack.name);
        }
    }
    assert_eq!(test_project::tree(&project.root()), before, "something was written");
}

#[test]
fn no_path_leads_elsewhere() {
    let project = project();
    project.write_root("secret.txt", "company account");
    std::os::unix::fs::symlink(project.root().join("secret.txt"), project.path("specs/linked.md"))
        .unwrap();
    std::os::unix::fs::symlink(project.root(), project.root().join("agentd/changes/linked"))
        .unwrap();
    fs::create_dir_all(project.root().join("agentd/archive")).unwrap();
    let viewer = Viewer::start(&project);
    for target in [
        "/changes/..",
        "/changes/../secret.txt",
        "/changes/%2e%2e",
        "/changes/%2e%2e%2fconfig",
        "/changes/..%2f..%2fsecret.txt",
        "/changes/add-oauth%2f..%2fadd-oauth",
        "/changes/add-oauth/specs/..%2f..%2f..%2f..%2fsecret",
        "/changes/add-oauth/specs/%2e%2e",
        "/changes/add-oauth/specs/linked",
        "/changes/linked",
        "/changes/add-oauth/runs/..%2f..%2fSTATE.yaml",
        "/changes/add-oauth/runs/0001-x%2f..%2f..%2fSTATE.yaml.jsonl",
        "/changes/add-oauth/STATE.yaml",
        "/changes/add-oauth/secret.txt",
        "/changes/add-oauth/archive/..%2f..",
        "/changes/add-oauth/specs/auth-flow%2f..?view=edit",
        "/archive/2026-10-01-add-passwords/archive",
        "/archive/2026-10-01-add-passwords/proposal?view=edit",
        "/changes/ADD-OAUTH",
        "/changes/add-oauth%00",
        "/changes/con",
        "/archive/..",
        "/archive/2026-10-01-..",
        "/archive/add-oauth",
        "/specs/..%2fconfig",
        "/specs/%2e%2e%2f%2e%2e%2fsecret.txt",
        "/assets/x/..%2f..%2fsecret.txt",
        "/assets/../secret.txt",
        "/secret.txt",
        "/etc/passwd",
        "//etc/passwd",
    ] {
        let answer = viewer.get(target);
        assert!([400, 404, 500].contains(&answer.status), "{target}: {}", answer.status);
        assert!(!answer.body.contains("company account"), "{target}");
        assert!(!answer.body.contains("phase: "), "{target}");
    }
}

/// Text of agents that tries to be more than text, in every place where such text is shown.
#[test]
fn what_agents_write_stays_text() {
    const EVIL: &str =
        "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)>";
    let project = project();
    let proposal = project.read("proposal.md");
    let evil_title = format!("Let people {EVIL} sign in");
    project.write("proposal.md", proposal.replace("Let people sign in", &evil_title));
    let spec = project.read("specs/auth-flow.md").replace("Authorization with PKCE", EVIL).replace(
        "sequenceDiagram",
        &format!("graph TD\nA[\"{EVIL}\"]\nclick A href \"javascript:alert(1)\""),
    );
    project.write("specs/auth-flow.md", &spec);
    let tasks = project
        .read("tasks.md")
        .replace("src/auth/pending.rs", EVIL)
        .replace("Match accounts", EVIL);
    project.write("tasks.md", &tasks);
    let state = project
        .read("STATE.yaml")
        .replace("gemini-3-pro", &format!("\"{}\"", EVIL.replace('"', "\\\"")))
        .replace(
            "last_action: challenge",
            &format!("last_action: \"{}\"", EVIL.replace('"', "\\\"")),
        );
    project.write("STATE.yaml", &state);
    let escaped = EVIL.replace('"', "\\\"");
    project.write(
        "clarifications.md",
        project.read("clarifications.md").replace("Google and Microsoft.", EVIL),
    );
    project.write(
        "runs/0002-challenge.jsonl",
        format!(
            "{{\"t\":1,\"event\":\"text\",\"text\":\"{escaped}\"}}\n{{\"t\":2,\"event\":\"tool_call\",\"id\":\"1\",\"name\":\"{escaped}\",\"arguments\":{{\"path\":\"{escaped}\"}}}}\n{{\"t\":3,\"stderr\":\"{escaped}\"}}\n"
        ),
    );
    fs::write(project.path("specs/<img src=x onerror=alert(1)>.md"), "x").unwrap();
    fs::write(project.path("runs/<script>alert(1)<.jsonl"), "x").unwrap();
    let viewer = Viewer::start_with(&project, &["--act"]);
    let comment = format!("on=proposal.md&at={}&text={}", encode(EVIL), encode(EVIL));
    assert_eq!(viewer.post("/changes/add-oauth/comments", &comment).status, 303);
    for page in [
        "/",
        "/changes/add-oauth",
        "/changes/add-oauth/proposal",
        "/changes/add-oauth/proposal?view=source",
        "/changes/add-oauth/specs/auth-flow",
        "/changes/add-oauth/specs/auth-flow?view=source",
        "/changes/add-oauth/tasks",
        "/changes/add-oauth/clarifications",
        "/changes/add-oauth/review?show=all",
        "/changes/add-oauth/specs/auth-flow?view=changes&from=1",
        "/changes/add-oauth/specs/auth-flow?view=main",
        "/changes/add-oauth/specs/auth-flow?view=edit",
        "/changes/add-oauth/code",
        "/changes/add-oauth/runs",
        "/changes/add-oauth/runs/0002-challenge.jsonl",
        "/changes/add-oauth/comments",
        "/changes/add-oauth/archive",
        "/?q=%3Cscript%3Ealert(1)%3C/script%3E",
        "/search?q=alert(1)",
        "/search?q=alert(1)&in=runs",
        "/costs",
        "/new",
    ] {
        let answer = viewer.get(page);
        assert_eq!(answer.status, 200, "{page}: {}", answer.body);
        let has_none = ["/review?show=all", "/code", "/archive", "/costs", "/new"];
        assert!(
            answer.body.contains("alert(1)") || has_none.iter().any(|end| page.ends_with(end)),
            "{page} shows it"
        );
        inert(page, &answer.body);
        let policy = answer.header("content-security-policy").unwrap();
        insta::allow_duplicates! { insta::assert_snapshot!(policy, @"default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"); }
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
}

/// No tag of the page is one that we do not write, or has an attribute that runs something.
fn inert(page: &str, body: &str) {
    assert_eq!(body.matches("<script").count(), 2, "{page}: our own two");
    for tag in body.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        assert!(
            !["img", "iframe", "object", "embed", "style", "base"].contains(&name),
            "{page}: <{tag}>"
        );
        // Attributes only: what stands inside quotes is text.
        let outside: String = tag.split('"').step_by(2).collect();
        for bad in [" on", " style=", "srcdoc"] {
            let hit = outside.to_lowercase().contains(&format!("{bad}load"))
                || (bad != " on" && outside.contains(bad));
            assert!(!hit && !outside.contains(" onerror"), "{page}: <{tag}>");
        }
        assert!(!tag.to_lowercase().contains("href=\"javascript"), "{page}: <{tag}>");
    }
}

pub(super) fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

#[test]
fn token_becomes_http_only_cookie() {
    let project = project();
    let viewer = Viewer::start(&project);
    assert_eq!(viewer.token.len(), 64);
    let host = vec![("Host".to_owned(), format!("localhost:{}", viewer.port))];
    let answer =
        viewer.send("GET", &format!("/changes/add-oauth?token={}", viewer.token), &host, "");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/changes/add-oauth")));
    let cookie = answer.header("set-cookie").unwrap();
    let cookie = cookie.replace(&viewer.token, "[TOKEN]");
    insta::assert_snapshot!(cookie.replace(&viewer.port.to_string(), "[PORT]"), @"agentd_view_[PORT]=[TOKEN]; Path=/; HttpOnly; SameSite=Strict");
    let answer = viewer.send("GET", &format!("//evil.example/?token={}", viewer.token), &host, "");
    assert_eq!(answer.header("location"), Some("/"), "{answer:?}");
}

/// The frame in which Mermaid runs: no origin, no cookie, no address but its own two files.
#[test]
fn diagram_frame_is_sandboxed() {
    let project = project();
    let viewer = Viewer::start(&project);
    let answer = viewer.get("/diagrams");
    let policy = answer.header("content-security-policy").unwrap();
    let policy = mask(policy, &project.base());
    insta::assert_snapshot!(policy.replace(&viewer.port.to_string(), "[PORT]"), @"default-src 'none'; script-src http://127.0.0.1:[PORT]/assets/[MARK]/mermaid.js http://127.0.0.1:[PORT]/assets/[MARK]/diagram.js; style-src 'unsafe-inline'; frame-ancestors http://127.0.0.1:[PORT]; base-uri 'none'; form-action 'none'; sandbox allow-scripts");
    let nowhere = vec![
        ("Host".to_owned(), format!("127.0.0.1:{}", viewer.port)),
        ("Origin".to_owned(), "null".to_owned()),
    ];
    for script in answer.body.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let file = viewer.send("GET", script, &nowhere, "");
        assert_eq!(file.status, 200, "{script}");
        assert_eq!(file.header("access-control-allow-origin"), None);
    }
    assert_eq!(viewer.send("GET", "/", &nowhere, "").status, 403);
}

#[test]
fn comments_only_on_documents() {
    let project = project();
    let viewer = Viewer::start(&project);
    for on in [
        "STATE.yaml",
        "../other/proposal.md",
        "/etc/passwd",
        "src/../../../etc/passwd",
        "agentd/config.toml/x",
        "specs/none.md",
        "runs/0001-challenge.jsonl",
        "comments.md",
        "",
    ] {
        let body = format!("on={}&text=x", encode(on));
        let answer = viewer.post("/changes/add-oauth/comments", &body);
        assert!([400, 404].contains(&answer.status), "{on}: {answer:?}");
    }
    assert!(!project.path("comments.md").exists());
    assert_eq!(viewer.post("/changes/add-oauth/comments", "on=proposal.md&text=%20").status, 400);
}
