//! Keeping secrets out of run files: the values of variables that look secret,
//! and texts that look like keys of well-known services.

use std::ffi::OsString;

use aho_corasick::{AhoCorasick, MatchKind};

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Shorter values are not secrets but `true`, `1` or `eu-west`, and replacing them
/// would only spoil the text.
const SHORTEST: usize = 8;

/// Starts of keys that are recognised whatever they belong to, and how many
/// characters must follow for it to be one.
const PREFIXES: [(&str, usize); 14] = [
    ("sk-", 16),
    ("AIza", 30),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("ghu_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AKIA", 16),
    ("ya29.", 20),
    ("Bearer ", 16),
    ("-----BEGIN ", 0),
];

/// Replaces secrets in text that is about to be written.
#[derive(Debug, Clone)]
pub struct Redactor {
    search: Option<AhoCorasick>,
}

impl Redactor {
    /// One that knows the secrets of this environment.
    pub fn new(environment: &[(OsString, OsString)]) -> Self {
        let mut patterns: Vec<String> =
            PREFIXES.iter().map(|(prefix, _)| (*prefix).to_owned()).collect();
        for (name, value) in environment {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
            let secret = if looks_secret(name) { Some(value) } else { password_in_url(value) };
            let Some(secret) = secret else { continue };
            // A path is no secret, and is what the agents talk about.
            if secret.len() < SHORTEST || secret.starts_with('/') {
                continue;
            }
            // As itself, as it looks in JSON, and as it looks in JSON in JSON.
            let once = inner_json(secret);
            patterns.extend([inner_json(&once), once, secret.to_owned()]);
        }
        patterns[PREFIXES.len()..].sort_unstable();
        patterns.dedup();
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        Self { search: search.ok() }
    }

    /// The text without secrets; None when there are none in it, which is the
    /// usual case and costs one pass.
    pub fn redact(&self, text: &[u8]) -> Option<Vec<u8>> {
        let search = self.search.as_ref()?;
        let mut out: Option<Vec<u8>> = None;
        let mut copied = 0;
        let mut from = 0;
        while let Some(found) = search.find(&text[from..]) {
            let start = from + found.start();
            let mut end = from + found.end();
            from = end;
            let mut keep = start;
            if let Some((prefix, least)) = PREFIXES.get(found.pattern().as_usize()) {
                let tail =
                    if *least == 0 { private_key(&text[end..]) } else { token(&text[end..]) };
                // `task-…` is not a key, and neither is `sk-` and three letters.
                let inside_word = start > 0 && is_token(text[start - 1]);
                if tail < *least || tail == 0 || inside_word {
                    continue;
                }
                if *prefix == "Bearer " {
                    keep = end;
                }
                end += tail;
            }
            let out = out.get_or_insert_with(|| Vec::with_capacity(text.len()));
            out.extend_from_slice(&text[copied..keep]);
            out.extend_from_slice(REDACTED.as_bytes());
            copied = end;
            from = end;
        }
        if let Some(out) = &mut out {
            out.extend_from_slice(&text[copied..]);
        }
        out
    }

    /// The text without secrets.
    pub fn redact_text(&self, text: &str) -> String {
        match self.redact(text.as_bytes()) {
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            None => text.to_owned(),
        }
    }
}

/// Parts of names whose values are secrets.
const SECRET_WORDS: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "COOKIE", "_AUTH", "_PAT"];

/// Whether the value of a variable with this name is likely a secret.
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word)) && !name.ends_with("_SOCK")
}

/// `user:password` in `http://user:password@host`.
fn password_in_url(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.contains(':').then_some(user)
}

fn inner_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn token(text: &[u8]) -> usize {
    text.iter().position(|&byte| !is_token(byte) && byte != b'.').unwrap_or(text.len())
}

/// The length of the rest of a private key, up to its end mark or what can be no
/// part of it; 0 if it is something else, such as a certificate.
fn private_key(text: &[u8]) -> usize {
    let head = &text[..text.len().min(40)];
    if memchr::memmem::find(head, b"PRIVATE KEY-----").is_none() {
        return 0;
    }
    let body = text
        .iter()
        .position(|&b| !(b.is_ascii_alphanumeric() || b"+/=\\ -:,.".contains(&b)))
        .unwrap_or(text.len());
    // A backslash at the end belongs to the escape of what follows.
    text[..body].iter().rposition(|&byte| byte != b'\\').map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let env = [
            ("GEMINI_API_KEY", "my-dummy\"key"),
            ("HTTPS_PROXY", "http://joe:s3cret-pw@proxy:80/"),
            ("HOME", "/home/longname"),
            ("SSH_KEY_FILE", "/home/x/.ssh/id"),
            ("A_TOKEN", "short"),
        ];
        Redactor::new(&env.map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn secrets_are_replaced_and_nothing_else() {
        let redactor = redactor();
        let cases = [
            (r#"a my-dummy"key b"#, "a [redacted] b"),
            (r#"{"k":"my-dummy\"key"}"#, r#"{"k":"[redacted]"}"#),
            (r#"{"raw":"{\"k\":\"my-dummy\\\"key\"}"}"#, r#"{"raw":"{\"k\":\"[redacted]\"}"}"#),
            ("via joe:s3cret-pw@proxy", "via [redacted]@proxy"),
            ("key sk-ant-api03-abcdefghijklmnop!", "key [redacted]!"),
            ("Authorization: Bearer abcdefghijklmnopqrst", "Authorization: Bearer [redacted]"),
            ("AIzaSyA-1234567890123456789012345678901", "[redacted]"),
            ("/home/longname short task-runner-is-a-long-name", ""),
            ("sk-learn", ""),
            ("-----BEGIN CERTIFICATE-----", ""),
            (
                r#""-----BEGIN RSA PRIVATE KEY-----\nMIIE+a/b=\n-----END RSA PRIVATE KEY-----\n\"x"#,
                r#""[redacted]\"x"#,
            ),
            ("", ""),
        ];
        for (text, expected) in cases {
            let expected = if expected.is_empty() { text } else { expected };
            assert_eq!(redactor.redact_text(text), expected);
        }
    }

    #[test]
    fn names_tell() {
        for name in ["OPENAI_API_KEY", "github_token", "DB_PASSWORD", "NPM_AUTH", "CI_PAT"] {
            assert!(looks_secret(name), "{name}");
        }
        for name in ["HOME", "PATH", "LANG", "SSH_AUTH_SOCK", "ANTHROPIC_BASE_URL"] {
            assert!(!looks_secret(name), "{name}");
        }
    }
}
