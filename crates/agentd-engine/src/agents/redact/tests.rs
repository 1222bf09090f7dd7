use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn redactor() -> Redactor {
    let env = [
        ("GEMINI_API_KEY", "my-dummy\"key"),
        ("HTTPS_PROXY", "http://joe:s3cret-pw@proxy:80/"),
        ("HOME", "/home/longname"),
        ("SSH_KEY_FILE", "/home/x/.ssh/id"),
        ("A_TOKEN", "short"),
        ("DEPLOY_KEY", "first line of a long value\nsecond/line+of a long value"),
    ];
    Redactor::new(&env.map(|(name, value)| (name.into(), value.into())))
}

const LETTERS: &str = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2";

/// Texts with a secret in them, and what of it must be gone. Put together here, so that no
/// scanner takes this file for a leak.
fn secrets() -> Vec<(String, String)> {
    let body = |count: usize| LETTERS[..count].to_owned();
    let alone = |secret: String| (secret.clone(), secret);
    let mut cases: Vec<(String, String)> = [
        ("ghp_", 36),
        ("gho_", 36),
        ("ghu_", 36),
        ("ghs_", 36),
        ("ghr_", 36),
        ("github_pat_", 60),
        ("glpat-", 20),
        ("sk-", 48),
        ("sk-ant-api03-", 40),
        ("sk-proj-", 40),
        ("AIza", 35),
        ("ya29.", 60),
        ("xoxb-", 40),
        ("xoxp-", 40),
        ("xapp-1-", 40),
        ("npm_", 36),
        ("pypi-AgEIcHlwaS5vcmc", 50),
        ("sk_live_", 24),
        ("rk_live_", 24),
        ("hf_", 34),
    ]
    .into_iter()
    .map(|(start, count)| alone(format!("{start}{}", body(count))))
    .collect();
    cases.push(alone(format!("AKIA{}", body(32).to_uppercase().replace('_', "")[..16].to_owned())));
    cases.push(alone(format!("ASIA{}", "ABCDEFGH12345678")));
    cases.push(alone(format!("SG.{}.{}", body(22), body(43))));
    cases.push(alone(format!("eyJ{}.eyJ{}.{}", body(20), body(40), body(43))));
    let aws = format!("{}/+{}", body(20), body(18));
    cases.push((format!("aws_secret_access_key = {aws}"), aws.clone()));
    cases.push((format!("AWS_SECRET_ACCESS_KEY={aws}"), aws.clone()));
    cases.push((format!("\"SecretAccessKey\": \"{aws}\""), aws));
    cases.push(("postgres://joe:p4ss-w0rd@db.example.com/x".into(), "p4ss-w0rd".into()));
    cases.push((format!("https://{}@github.com/a/b", body(40)), body(40)));
    let azure = format!("{}{}==", body(60), body(26));
    cases.push((format!("AccountName=x;AccountKey={azure};EndpointSuffix=y"), azure));
    let slack = format!("T0000/B0000/{}", body(24));
    cases.push((format!("https://hooks.slack.com/services/{slack}"), slack));
    cases.push((format!("Authorization: Bearer {}", body(30)), body(30)));
    cases.push((format!("Authorization: token {}", body(40)), body(40)));
    cases.push((format!("x-api-key: {}", body(32)), body(32)));
    let login = scan::to_base64(b"joe:my-password");
    cases.push((format!("Authorization: Basic {login}"), login));
    cases.push((format!("Set-Cookie: a=b; session_id={}; Path=/", body(32)), body(32)));
    for gap in [" ", "\n  "] {
        let entry = format!("machine x{gap}login joe{gap}password hunter2");
        cases.push((entry, "hunter2".into()));
    }
    for name in ["password", "api_key", "apiKey", "token", "client_secret", "DB_PASSWORD"] {
        for (open, close) in [(": \"", "\""), ("=", ""), (" = '", "'"), ("\":\"", "\"")] {
            cases.push((format!("{name}{open}{}{close}", body(24)), body(24)));
        }
    }
    cases.push((format!("deploy --token {} --now", body(24)), body(24)));
    cases.push((format!("https://x.com/?a=b&access_token={}&c=d", body(24)), body(24)));
    for kind in ["RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "] {
        let key = format!(
            "-----BEGIN {kind}PRIVATE KEY-----\n{}\n{}==\n-----END {kind}PRIVATE KEY-----",
            body(64),
            body(20)
        );
        cases.push((key, body(20)));
    }
    cases
}

#[test]
fn every_kind_of_secret_is_found_in_every_place() {
    let redactor = redactor();
    for (text, secret) in secrets() {
        for before in ["", " ", "\n", "\t", "\r\n", "x: ", "(", "\u{1b}[31m", "é", "1\u{2192}"] {
            for after in ["", "\n", " and more", "\")"] {
                let plain = format!("{before}{text}{after}");
                let clean = redactor.redact_text(&plain);
                assert!(!clean.contains(&secret), "{plain:?} -> {clean:?}");
                assert!(clean.ends_with(after), "{plain:?} -> {clean:?}");
                assert_eq!(redactor.redact(clean.as_bytes()), None, "once is enough: {clean:?}");
                // As JSON, as JSON in JSON, and so on; all of it stays JSON.
                let mut json = Value::from(plain.clone()).to_string();
                for _ in 0..3 {
                    let clean = redactor.redact_text(&json);
                    assert!(!clean.contains(&secret), "{json} -> {clean}");
                    assert!(serde_json::from_str::<Value>(&clean).is_ok(), "{json} -> {clean}");
                    let escaped = json.replace("\\n", "\\u000a").replace("\\t", "\\u0009");
                    let clean = redactor.redact_text(&escaped);
                    assert!(!clean.contains(&secret), "{escaped} -> {clean}");
                    assert!(serde_json::from_str::<Value>(&clean).is_ok(), "{escaped} -> {clean}");
                    json = Value::from(json).to_string();
                }
            }
        }
    }
}

#[test]
fn ordinary_text_is_not_redacted() {
    let redactor = redactor();
    for text in [
        "",
        "/home/longname short task-runner-is-a-long-name",
        "sk-learn scikit sk-learn-extensions-and-more",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "token: 123e4567-e89b-12d3-a456-426614174000",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "integrity sha512-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4AIzaSyA9k1L2m3",
        "{\"input_tokens\":1034,\"cache_read_input_tokens\":200,\"output_tokens\":1}",
        "Add login with email and password lock after 5 attempts; a login by password is gone",
        "the password is checked: a token must have sixteen characters at least",
        "let token = parse_next_token_from_stream(input);",
        "let api_key = std::env::var(\"OPENAI_API_KEY\")?;",
        "password: ${DB_PASSWORD_FROM_ENV_2}",
        "const apiKey = process.env.MY_SERVICE_API_KEY_2;",
        "token=<your-token-here-16-chars>",
        "Bearer authentication is described in RFC 6750",
        "basic usage: see https://example.com/a?b=c and git@github.com:a/b.git",
        "https://docs.rs/serde/1.0.229/serde/index.html",
        "ssh://git@github.com/a/b",
        "secret sauce, cookie: a recipe",
        "npm_config_registry npm_lifecycle_event hf_transfer",
        "AKIANOTAKEY eyJust.kidding.here ASIA",
        "the key `primary_key` and \"sort_key\": \"2026-11-15T20:00:00Z\"",
        "fn github_pat_is_checked_for_length() ghp_your_token_goes_right_here",
        "tokenizer = AutoTokenizer.from_pretrained(model_name_v2)",
        "keyboard-interactive monkey=chimpanzee1234567890",
    ] {
        assert_eq!(redactor.redact_text(text), text);
    }
}

#[test]
fn secrets_are_replaced_and_nothing_else() {
    let redactor = redactor();
    let cases = [
        (r#"a my-dummy"key b"#, "a [redacted] b"),
        (r#"{"k":"my-dummy\"key"}"#, r#"{"k":"[redacted]"}"#),
        (r#"{"raw":"{\"k\":\"my-dummy\\\"key\"}"}"#, r#"{"raw":"{\"k\":\"[redacted]\"}"}"#),
        ("via joe:s3cret-pw@proxy", "via [redacted]@proxy"),
        ("my-dummy%22key", "[redacted]"),
        ("second/line+of a long value", "[redacted]"),
        (r"second\/line+of a long value", "[redacted]"),
        ("key sk-ant-api03-abcdefghijklmnop!", "key [redacted]!"),
        ("Authorization: Bearer abcdefghijklmnopqrst", "Authorization: Bearer [redacted]"),
        ("AIzaSyA-1234567890123456789012345678901", "[redacted]"),
        ("ftp://a:b1c2@h/x", "ftp://a:[redacted]@h/x"),
        (r#""a":"https:\/\/joe:pw12@h\/x""#, r#""a":"https:\/\/joe:[redacted]@h\/x""#),
        (
            r#""-----BEGIN RSA PRIVATE KEY-----\nMIIE+a/b=\n-----END RSA PRIVATE KEY-----\n\"x"#,
            r#""[redacted]\n\"x"#,
        ),
        // Cut off: what looks like lines of a key goes.
        (
            "-----BEGIN EC PRIVATE KEY-----\nDEK-Info: AES\n\nMIIEabcdefghijklmnop\nthen some prose",
            "[redacted]\nthen some prose",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(redactor.redact_text(text), expected);
    }
}

#[test]
fn base64_of_a_value_is_found_at_every_place_in_it() {
    let redactor = redactor();
    for before in ["", "j", "jo", "joe:"] {
        let encoded = scan::to_base64(format!("{before}my-dummy\"key-more").as_bytes());
        let clean = redactor.redact_text(&encoded);
        assert!(clean.contains(REDACTED), "{before}: {encoded}");
    }
    assert_eq!(scan::to_base64(b"joe:pw"), "am9lOnB3");
    for text in ["", "a", "ab", "abc", "joe:\u{e9}"] {
        let digits = scan::to_base64(text.as_bytes());
        assert_eq!(scan::from_base64(digits.as_bytes()).unwrap(), text.as_bytes());
    }
}

#[test]
fn a_private_key_over_several_lines_is_found() {
    let redactor = redactor();
    let mut open = Open::default();
    let lines = [
        ("before", "before"),
        ("-----BEGIN RSA PRIVATE KEY-----", "[redacted]"),
        ("MIIEowIBAAKCAQEAabcdefghijklmnop", "[redacted]"),
        ("abcd==", "[redacted]"),
        ("-----END RSA PRIVATE KEY-----", "[redacted]"),
        ("abcdefghijklmnopqrst", "abcdefghijklmnopqrst"),
        ("-----BEGIN EC PRIVATE KEY-----\nMIIEowIBAAKCAQEAabcdefghijklmnop\n", "[redacted]\n"),
        ("{\"type\":\"other\"}", "{\"type\":\"other\"}"),
        ("MIIEowIBAAKCAQEAabcdefghijklmnop", "MIIEowIBAAKCAQEAabcdefghijklmnop"),
    ];
    for (line, expected) in lines {
        assert_eq!(redactor.clean_next(line, &mut open), expected);
    }
}

#[test]
fn binary_files_and_arguments_after_names_are_checked() {
    let redactor = redactor();
    let key = format!("ghp_{}", &LETTERS[..36]);
    let bytes = [b"\xff\x00".to_vec(), key.clone().into_bytes(), b"\xff".to_vec()].concat();
    let edit = FileEdit {
        path: "a.bin".into(),
        created: true,
        before: None,
        after: None,
        text: None,
        hex: Some(hex(&bytes)),
        executable: false,
    };
    let clean = redactor.edits(std::slice::from_ref(&edit));
    let bytes = unhex(clean[0].hex.as_deref().unwrap()).unwrap();
    assert_eq!(bytes, b"\xff\x00[redacted]\xff");
    let header = RunHeader {
        run: 1,
        step: agentd_core::step_name::StepName::Challenge,
        change: agentd_core::ids::ChangeId::new("x").unwrap(),
        agent: agentd_core::agent::AgentKind::Claude,
        transport: agentd_core::agent::Transport::Cli,
        role: agentd_core::agent::Role::Planner,
        attempt: 1,
        argv: [
            "agent",
            "--token",
            &LETTERS[..20],
            "--model",
            "gpt-5-codex-2026-11-15",
            "-----BEGIN RSA PRIVATE KEY-----",
            &LETTERS[..48],
        ]
        .map(str::to_owned)
        .to_vec(),
        env: vec![],
        cwd: "/p".into(),
        prompt: format!("see\n{key}"),
        started_at: String::new(),
        estimate_usd: None,
    };
    let clean = redactor.header(&header);
    assert_eq!(
        clean.argv,
        ["agent", "--token", REDACTED, "--model", "gpt-5-codex-2026-11-15", REDACTED, REDACTED]
    );
    assert_eq!(clean.prompt, "see\n[redacted]");
}

#[test]
fn old_run_files_are_cleaned_line_by_line() {
    let redactor = redactor();
    let key = format!("ghp_{}", &LETTERS[..36]);
    let digits = hex(key.as_bytes());
    let text = [
        r#"{"t":1,"raw":"a \"token\" and 2.50"}"#.to_owned(),
        r#"{"t":1,"raw":"-----BEGIN RSA PRIVATE KEY-----"}"#.to_owned(),
        r#"{"t":1,"raw":"MIIEowIBAAKCAQEAabcdefghijklmnop"}"#.to_owned(),
        format!(r#"{{"t":2,"files":[{{"path":"x","hex":"{digits}"}}]}}"#),
        format!(r#"{{"t":3,"raw":"{{\"a\":\"\\n{key}\"}}"}}"#),
        "{\"t\":4,\"ra".to_owned(),
    ];
    let clean = redactor.redact_run(text.join("\n").as_bytes()).unwrap();
    let expected = [
        text[0].clone(),
        r#"{"t":1,"raw":"[redacted]"}"#.to_owned(),
        r#"{"t":1,"raw":"[redacted]"}"#.to_owned(),
        format!(r#"{{"t":2,"files":[{{"path":"x","hex":"{}"}}]}}"#, hex(REDACTED.as_bytes())),
        r#"{"t":3,"raw":"{\"a\":\"\\n[redacted]\"}"}"#.to_owned(),
        text[5].clone(),
    ];
    assert_eq!(String::from_utf8(clean).unwrap(), expected.join("\n"));
    assert_eq!(redactor.redact_run(expected.join("\n").as_bytes()), None);
}

#[test]
fn secret_names_are_recognized() {
    for name in ["OPENAI_API_KEY", "github_token", "DB_PASSWORD", "NPM_AUTH", "CI_PAT"] {
        assert!(looks_secret(name), "{name}");
    }
    for name in ["HOME", "PATH", "LANG", "SSH_AUTH_SOCK", "ANTHROPIC_BASE_URL"] {
        assert!(!looks_secret(name), "{name}");
    }
}

proptest! {
    /// Whatever surrounds a secret, JSON stays JSON and text stays text.
    #[test]
    fn json_stays_json(
        parts in proptest::collection::vec(
            prop_oneof![
                "[\\\\\"' \n\tnu0:=@/.a-z-]{0,12}",
                proptest::sample::select(secrets()).prop_map(|(text, _)| text),
                proptest::sample::select(vec!["password", "token=", "\\n", "://a:", "-----BEGIN PRIVATE KEY-----", "eyJ", "\\", "\\/", "\\u002f", "Cookie: sid="]).prop_map(str::to_owned),
            ],
            0..8,
        ),
    ) {
        let text = parts.concat();
        let redactor = redactor();
        redactor.redact_text(&text);
        redactor.clean_next(&text, &mut Open { key: true });
        let once = serde_json::json!({ "t": 1, "raw": text }).to_string();
        let twice = serde_json::json!({ "t": 1, "raw": once }).to_string();
        for json in [once, twice] {
            let clean = redactor.redact_text(&json);
            let value: Value = serde_json::from_str(&clean)
                .map_err(|error| TestCaseError::fail(format!("{error}: {json} -> {clean}")))?;
            prop_assert_eq!(&value["t"], 1);
        }
    }
}
